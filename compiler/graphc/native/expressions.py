# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of the kernel language: of numbers, of memory (on the stack, at addresses, shared with other
threads, of code) and of vectors, which are several neighbouring numbers in one value.

`row(a, i, lanes)` reads them and `put(a, i, x)` writes them; arithmetic, comparisons and `choose` go lane by
lane, and a number among vectors counts for each lane. `lanes` is known when translating: code on vectors is
short whatever the size of a matrix, and is not left to the loop vectoriser.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.native import (
    BOOL,
    BYTE,
    F64,
    I64,
    Operand,
    Routine,
    Static,
    Type,
    Value,
    builtins,
    kind_of,
    literal,
)
from graphc.native.numbers import Numbers

if TYPE_CHECKING:
    from ast import Call


class Vectors(Numbers):
    """Translates the builtins for vectors."""

    def _call_row(
        self, node: ast.Call, pointer: Value, i: Operand, lanes: Static, count: Value | None = None
    ) -> Value:
        kind = pointer.type.element.over(int(lanes.value))
        if isinstance(count, Static) and count.value is None:
            count = None
        elif isinstance(count, Static) and count.value <= 0:
            return Value(literal(0, kind), kind)
        address = self.address(pointer, i, node)
        align = kind.bits // 8
        if count is None:
            return self.assign(f"load {kind.llvm}, ptr {address}, align {align}", kind)
        mask = self._below(node, count, kind.lanes)
        name = f"llvm.masked.load.{kind.mangled}.p0"
        self.translator.declarations.add(
            f"declare {kind.llvm} @{name}(ptr, i32, <{kind.lanes} x i1>, {kind.llvm})"
        )
        text = f"call {kind.llvm} @{name}(ptr {address}, i32 {align}, {mask}, {kind.llvm} zeroinitializer)"
        return self.assign(text, kind)

    def _call_put(
        self, node: ast.Call, pointer: Value, i: Operand, x: Value, count: Value | None = None
    ) -> None:
        if isinstance(count, Static) and count.value is None:
            count = None
        kind = pointer.type.element.over(x.type.lanes)
        value = self.convert(x, kind, node)
        address = self.address(pointer, i, node)
        align = kind.bits // 8
        if count is None:
            self.emit(f"store {kind.llvm} {value.text}, ptr {address}, align {align}")
            return
        mask = self._below(node, count, kind.lanes)
        name = f"llvm.masked.store.{kind.mangled}.p0"
        self.translator.declarations.add(f"declare void @{name}({kind.llvm}, ptr, i32, <{kind.lanes} x i1>)")
        self.emit(f"call void @{name}({kind.llvm} {value.text}, ptr {address}, i32 {align}, {mask})")

    def _below(self, node: ast.Call, count: Value, lanes: int) -> str:
        mask = self.compare("Lt", self._positions(lanes), self.convert(count, I64.over(lanes), node), node)
        return f"<{lanes} x i1> {mask.text}"

    def _call_spread(self, node: ast.Call, x: Value, lanes: Static) -> Value:
        value = self.value(x, node)
        return self.convert(value, value.type.over(int(lanes.value)), node)

    def _call_positions(self, node: ast.Call, lanes: Static) -> Value:
        return self._positions(int(lanes.value))

    def _positions(self, lanes: int) -> Value:
        return Value(f"<{', '.join(f'i64 {i}' for i in range(lanes))}>", I64.over(lanes))

    def _call_total(self, node: ast.Call, x: Value) -> Value:
        kind = x.type
        name = f"llvm.vector.reduce.fadd.{kind.mangled}"
        one = kind.element
        self.translator.declarations.add(f"declare {one.llvm} @{name}({one.llvm}, {kind.llvm})")
        # In pairs, whatever the flags of the kernel are: the order is that of the machine's registers.
        zero = literal(-0.0, one)
        return self.assign(f"call reassoc {one.llvm} @{name}({one.llvm} {zero}, {kind.llvm} {x.text})", one)

    def _shuffled(self, a: Value, b: Value, places: list[int]) -> Value:
        """The numbers at these places of two vectors, one after the other."""
        kind, mask = a.type.llvm, ", ".join(f"i32 {k}" for k in places)
        return self.assign(
            f"shufflevector {kind} {a.text}, {kind} {b.text}, <{len(places)} x i32> <{mask}>", a.type
        )

    def _call_evens(self, node: ast.Call, a: Value, b: Value) -> Value:
        n = a.type.lanes
        return a if n == 1 else self._shuffled(a, b, [*range(0, 2 * n, 2)])

    def _call_odds(self, node: ast.Call, a: Value, b: Value) -> Value:
        n = a.type.lanes
        return b if n == 1 else self._shuffled(a, b, [*range(1, 2 * n, 2)])

    def _call_low(self, node: ast.Call, a: Value, b: Value) -> Value:
        n = a.type.lanes
        return a if n == 1 else self._shuffled(a, b, [k // 2 + k % 2 * n for k in range(n)])

    def _call_high(self, node: ast.Call, a: Value, b: Value) -> Value:
        n = a.type.lanes
        return b if n == 1 else self._shuffled(a, b, [(k + n) // 2 + k % 2 * n for k in range(n)])

    def _call_backwards(self, node: ast.Call, a: Value) -> Value:
        n = a.type.lanes
        return a if n == 1 else self._shuffled(a, a, [*range(n)][::-1])

    def _call_choose(self, node: ast.Call, condition: Operand, a: Operand, b: Operand) -> Value:
        a, b = self.promote(a, b, node)
        if isinstance(condition, Static):
            return a if condition.value else b
        test = self.value(condition, node)
        if test.type.lanes == 1:
            test = self.truth(condition, node)
        kind = a.type if a.type.pointer else a.type.element.over(max(a.type.lanes, test.type.lanes))
        a, b = self.convert(a, kind, node), self.convert(b, kind, node)
        hint = ", !unpredictable !{}" if test.type == Type("bool") else ""
        text = f"select {test.type.llvm} {test.text}, {kind.llvm} {a.text}, {kind.llvm} {b.text}{hint}"
        return self.assign(text, kind)


_I32 = Static("i32")
_NOTHING = Static(None)
_READS = ("monotonic", "acquire", "seq_cst")
_WRITES = ("monotonic", "release", "seq_cst")
_ORDERS = (*_READS, "release", "acq_rel")


class Pointers(Vectors):
    """Translates the builtins for memory and the calls of C functions."""

    def _call_ref(self, node: Call, x: Operand, type_: Static = _I32) -> Value:
        if isinstance(x, Static) and isinstance(x.value, str):
            x, type_ = Static(ord(x.value)), Static("u8")
        kind = kind_of(type_.value)
        slot = self.alloca(kind.llvm)
        self.emit(f"store {kind.llvm} {self.convert(x, kind, node, explicit=True).text}, ptr {slot}")
        return Value(slot, kind.to)

    def _call_local(self, node: Call, count: Static, type_: Static) -> Value:
        kind = kind_of(type_.value)
        # Rows of matrices are vectors of up to a cache line.
        align = ", align 64" if int(count.value) * kind.bits >= 512 else ""
        return Value(self.alloca(f"[{int(count.value)} x {kind.stored}]{align}"), kind.to)

    def table(self, values: tuple[float, ...]) -> Value:
        """A constant array."""
        kind = I64 if all(type(x) is int for x in values) else F64
        return Value(f"@{self.translator.table(values, kind)}", kind.to)

    def _call_view(self, node: Call, pointer: Value | Static, type_: Static) -> Value:
        if isinstance(pointer, Static):
            pointer = self.table(pointer.value)
        return Value(pointer.text, kind_of(type_.value).to)

    def _call_word(self, node: Call, pointer: Value, i: Value) -> Value:
        return self.assign(f"load i64, ptr {self.address(pointer, i, node)}, align 1", Type("u64"))

    def _call_variable(self, node: Call, name: Static, type_: Static) -> Value:
        symbol = name.value.replace("?", self.translator.letter)
        return Value(f"@{symbol}", kind_of(type_.value).to)

    def _call_address(self, node: Call, pointer: Value) -> Value:
        return self.assign(f"ptrtoint ptr {pointer.text} to i64", I64)

    def _call_at(self, node: Call, address: Operand, type_: Static) -> Value:
        number = self.convert(address, I64, node)
        return self.assign(f"inttoptr i64 {number.text} to ptr", kind_of(type_.value).to)

    # -- shared with other threads ---------------------------------------------------------------------------

    def _order(self, node: Call, order: Static, known: tuple[str, ...] = _ORDERS) -> str:
        if order.value not in known:
            self.fail(node, f"{order.value!r} is no order of memory here; there are {', '.join(known)}")
        return str(order.value)

    def _call_atomic_load(self, node: Call, pointer: Value, i: Operand, order: Static) -> Value:
        kind, how = pointer.type.element, self._order(node, order, _READS)
        place = self.address(pointer, i, node)
        return self.assign(f"load atomic {kind.llvm}, ptr {place} {how}, align {kind.bits // 8}", kind)

    def _call_atomic_store(self, node: Call, pointer: Value, i: Operand, x: Operand, order: Static) -> Static:
        kind, how = pointer.type.element, self._order(node, order, _WRITES)
        value, place = self.convert(x, kind, node), self.address(pointer, i, node)
        self.emit(f"store atomic {kind.llvm} {value.text}, ptr {place} {how}, align {kind.bits // 8}")
        return _NOTHING

    def _call_fetch_add(self, node: Call, pointer: Value, i: Operand, x: Operand, order: Static) -> Value:
        return self._changed("add", node, pointer, i, x, order)

    def _call_exchange(self, node: Call, pointer: Value, i: Operand, x: Operand, order: Static) -> Value:
        return self._changed("xchg", node, pointer, i, x, order)

    def _changed(self, how: str, node: Call, pointer: Value, i: Operand, x: Operand, order: Static) -> Value:
        kind = pointer.type.element
        value, place = self.convert(x, kind, node), self.address(pointer, i, node)
        text = f"atomicrmw {how} ptr {place}, {kind.llvm} {value.text} {self._order(node, order)}"
        return self.assign(text, kind)

    def _call_compare_exchange(
        self, node: Call, pointer: Value, i: Operand, old: Operand, new: Operand, order: Static
    ) -> Value:
        kind = pointer.type.element
        a, b = (f"{kind.llvm} {self.convert(x, kind, node).text}" for x in (old, new))
        place, how = self.address(pointer, i, node), self._order(node, order)
        # Where it fails, what was read is not looked at: no order follows from it.
        pair = self.assign(f"cmpxchg ptr {place}, {a}, {b} {how} monotonic", kind)
        return self.assign(f"extractvalue {{{kind.llvm}, i1}} {pair.text}, 1", BOOL)

    # -- code ------------------------------------------------------------------------------------------------

    def _call_function(self, node: Call, target: Static, *types: Static, returns: Static = _NOTHING) -> Value:
        formal = [Value("", kind_of(x.value)) for x in types]
        symbol, result = self.translator.routine(target.value, formal)
        expected = None if returns.value is None else kind_of(returns.value)
        if result != expected:
            have = "nothing" if result is None else result.name
            self.fail(node, f"{target.value.__name__} returns {have}, not {returns.value}")
        return Value(f"@{symbol}", BYTE.to)

    def _call_invoke(
        self, node: Call, function: Value, *arguments: Operand, returns: Static = _NOTHING
    ) -> Operand:
        if not isinstance(function, Value) or not function.type.pointer:
            self.fail(node, "invoke calls what a pointer points at")
        result = None if returns.value is None else kind_of(returns.value)
        return self._called(function.text, [self.value(x, node) for x in arguments], result)

    def _call_call(
        self, node: Call, name: Static, *arguments: Operand, returns: Static = _NOTHING
    ) -> Operand:
        symbol = name.value.replace("?", self.translator.letter)
        values = [self.value(x, node) for x in arguments]
        result = None if returns.value is None else kind_of(returns.value)
        kind = "void" if result is None else result.llvm
        self.translator.called.add(symbol)
        self.translator.declarations.add(
            f"declare {kind} @{symbol}({', '.join(x.type.llvm for x in values)})"
        )
        return self._called(f"@{symbol}", values, result)

    def _called(self, function: str, values: list[Value], result: Type | None) -> Operand:
        passed = ", ".join(f"{x.type.llvm} {x.text}" for x in values)
        if result is None:
            self.emit(f"call void {function}({passed})")
            return _NOTHING
        return self.assign(f"call {result.llvm} {function}({passed})", result)

    # -- vectors of the machine ------------------------------------------------------------------------------

    def _call_lanes_of(self, node: Call, type_: Static) -> Static:
        return Static(self.translator.register * 8 // kind_of(type_.value).bits)


_FOLD: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Pow: operator.pow,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_MATH = {
    name: f"llvm.{name}" for name in ("sqrt", "floor", "ceil", "exp", "log", "copysign", "fma", "fmuladd")
}


class Expressions(Pointers):
    """Translates expressions."""

    def lookup(self, name: str) -> Any:
        raise NotImplementedError

    def inlined(self, function: Routine, arguments: Sequence[Operand]) -> Any:
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Any:
        """A `Value` or a `Static`."""
        method = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if method is None:
            self.fail(node, f"{type(node).__name__} is not part of the kernel language")
        return method(node)

    def _on_constant(self, node: ast.Constant) -> Static:
        return Static(node.value)

    def _on_tuple(self, node: ast.Tuple) -> tuple[Operand, ...]:
        return tuple(self.expression(x) for x in node.elts)

    def _on_name(self, node: ast.Name) -> Any:
        known = self.read(node.id)
        if known is not None:
            return known
        found = self.lookup(node.id)
        if found is None:
            self.fail(node, f"{node.id} is not defined")
        return Static(found)

    def _on_attribute(self, node: ast.Attribute) -> Any:
        source = self.expression(node.value)
        if isinstance(source, Static):
            return Static(getattr(source.value, node.attr))
        if node.attr in ("real", "imag"):
            return self.part(source, node.attr)
        self.fail(node, f"numbers have no attribute {node.attr}")

    def _on_unaryop(self, node: ast.UnaryOp) -> Any:
        x = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(x, Static):
                return Static(not x.value)
            return self.assign(f"xor i1 {self.truth(x, node).text}, true", BOOL)
        if isinstance(x, Static):
            return Static(-x.value if isinstance(node.op, ast.USub) else x.value)
        if isinstance(node.op, ast.USub):
            return self.negate(x)
        if isinstance(node.op, ast.Invert):
            return self.assign(f"xor {x.type.llvm} {x.text}, -1", x.type)
        return x

    def _on_binop(self, node: ast.BinOp) -> Any:
        a, b = self.expression(node.left), self.expression(node.right)
        if isinstance(a, Static) and isinstance(b, Static):
            return Static(_FOLD[type(node.op)](a.value, b.value))
        a, b = self.promote(a, b, node)
        return self.arithmetic(type(node.op).__name__, a, b, node)

    def _on_compare(self, node: ast.Compare) -> Any:
        result: Any = None
        left = self.expression(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expression(right_node)
            one = self._comparison(op, left, right, node)
            left = right
            if result is None:
                result = one
            elif isinstance(result, Static) and isinstance(one, Static):
                result = Static(result.value and one.value)
            else:
                both = [self.convert(x, BOOL, node).text for x in (result, one)]
                result = self.assign(f"and i1 {both[0]}, {both[1]}", BOOL)
        return result

    def _comparison(self, op: ast.AST, a: Operand, b: Operand, node: ast.Compare) -> Any:
        if isinstance(a, Static) and isinstance(b, Static):
            return Static(_FOLD[type(op)](a.value, b.value))
        if any(isinstance(x, Static) and x.value is None for x in (a, b)):
            if isinstance(op, ast.Is | ast.IsNot):
                return Static(isinstance(op, ast.IsNot))
            self.fail(node, "only what is known when translating can be None")
        return self.compare(type(op).__name__, *self.promote(a, b, node), node)

    def _on_boolop(self, node: ast.BoolOp) -> Any:
        """Short-circuit evaluation, so that `i < n and a[i] > x` reads nothing beyond the end."""
        stop = isinstance(node.op, ast.Or)
        values = list(node.values)
        first = self.expression(values.pop(0))
        while isinstance(first, Static):
            if bool(first.value) == stop or not values:
                return Static(bool(first.value))
            first = self.expression(values.pop(0))
        after = self.label()
        known = [(self.block, self.truth(first, node))]
        for other in values:
            more = self.label()
            self.branch(known[-1][1], *((after, more) if stop else (more, after)))
            self.start(more)
            value = self.truth(self.expression(other), node)
            known.append((self.block, value))
        self.jump(after)
        return self.either(after, known)

    def _on_ifexp(self, node: ast.IfExp) -> Any:
        then, other, after = self.label(), self.label(), self.label()
        self.branch_on(node.test, then, other)
        is_known = not {then, other} <= self._edges.keys()
        found: list[tuple[str, Any]] = []
        for label, part in ((then, node.body), (other, node.orelse)):
            self.start(label)
            if self.block:
                value = self.expression(part)
                if not is_known:
                    value = self.convert(value, found[0][1].type, node) if found else self.value(value, node)
                found.append((self.block, value))
                self.jump(after)
        return self.either(after, found)

    def branch_on(self, node: ast.expr, then: str, other: str) -> None:
        """Goes to one of two labels; of `and` and `or` as much is evaluated as need be."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch_on(node.operand, other, then)
        elif isinstance(node, ast.BoolOp):
            for value in node.values[:-1]:
                more = self.label()
                self.branch_on(value, *((more, other) if isinstance(node.op, ast.And) else (then, more)))
                self.start(more)
                if not self.block:
                    return
            self.branch_on(node.values[-1], then, other)
        else:
            test = self.expression(node)
            if isinstance(test, Static):
                self.jump(then if test.value else other)
            else:
                self.branch(self.truth(test, node), then, other)

    def _on_subscript(self, node: ast.Subscript) -> Any:
        pointer = self.expression(node.value)
        if isinstance(pointer, Static):
            index = self.expression(node.slice)
            if not isinstance(index, Static):
                if not (
                    isinstance(pointer.value, tuple) and all(isinstance(x, float) for x in pointer.value)
                ):
                    self.fail(node, "an unknown index needs an array, or a tuple of floats")
                table = self.table(pointer.value)
                return self.load(table, self.address(table, index, node))
            return Static(pointer.value[index.value])
        if isinstance(node.slice, ast.Slice):
            if node.slice.upper is not None or node.slice.step is not None or node.slice.lower is None:
                self.fail(node, "a pointer is moved by a[k:]")
            text = self.address(pointer, self.expression(node.slice.lower), node)
            return Value(text, pointer.type)
        return self.load(pointer, self.address(pointer, self.expression(node.slice), node))

    # -- calls -----------------------------------------------------------------------------------------------

    def _on_call(self, node: Any) -> Any:
        function = self.expression(node.func)
        if not isinstance(function, Static):
            self.fail(node, "only routines and builtins can be called")
        target = function.value
        arguments: list[Any] = []
        for x in node.args:
            arguments += self.expression(x.value) if isinstance(x, ast.Starred) else [self.expression(x)]
        keywords = {k.arg: self.expression(k.value) for k in node.keywords}
        known = getattr(self, f"_call_{getattr(target, '__name__', '')}", None)
        if getattr(target, "__module__", "") in ("builtins", "math", builtins.__name__):
            if known is not None:
                return known(node, *arguments, **keywords)
            if target.__name__ in _MATH:
                return self._intrinsic(target.__name__, node, *arguments)
        if not callable(target) or keywords:
            self.fail(node, f"{target!r} cannot be called in a kernel")
        if getattr(target, "is_inlined", False):
            return self.inlined(target, arguments)
        symbol, result = self.translator.routine(target, arguments)
        passed = [x for x in arguments if isinstance(x, Value)]
        text = ", ".join(f"{x.type.llvm} {x.text}" for x in passed)
        if result is None:
            self.emit(f"call void @{symbol}({text})")
            return Static(None)
        return self.assign(f"call {result.llvm} @{symbol}({text})", result)

    def _call_cast(self, node: ast.Call, x: Operand, type_: Static) -> Value:
        kind = kind_of(type_.value)
        return self.convert(x, kind, node, explicit=True)

    def _call_type_of(self, node: ast.Call, x: Value) -> Static:
        return Static(x.type.element if x.type.pointer else x.type)

    def _call_int(self, node: ast.Call, x: Operand) -> Operand:
        return Static(int(x.value)) if isinstance(x, Static) else self.convert(x, I64, node, explicit=True)

    def _call_isnan(self, node: ast.Call, x: Value) -> Operand:
        if x.type.is_complex:
            parts = [self.part(x, name).text for name in ("real", "imag")]
            return self.assign(f"fcmp uno {x.type.real.llvm} {parts[0]}, {parts[1]}", BOOL)
        if not x.type.is_float:
            return Static(False)
        return self.assign(f"fcmp uno {x.type.llvm} {x.text}, {x.text}", BOOL)

    def _call_real(self, node: ast.Call, x: Value) -> Value:
        return self.part(x, "real") if x.type.is_complex else x

    def _call_imag(self, node: ast.Call, x: Value) -> Value:
        return self.part(x, "imag") if x.type.is_complex else self.convert(Static(0), x.type, node)

    def _call_conj(self, node: ast.Call, x: Value) -> Value:
        if not x.type.is_complex:
            return x
        return self.complex(self.part(x, "real"), self.negate(self.part(x, "imag")))

    def _call_complex(self, node: ast.Call, a: Value, b: Value) -> Value:
        return self.complex(a, b)

    def _call_abs(self, node: ast.Call, x: Operand) -> Operand:
        if isinstance(x, Static):
            return Static(abs(x.value))
        if x.type.is_float:
            return self.intrinsic("llvm.fabs", [x])
        if x.type.is_complex:
            self.fail(node, "abs of a complex number is left to hypot of its parts")
        negative = self.compare("Lt", x, self.convert(Static(0), x.type, node), node)
        return self.select(negative, self.negate(x), x)

    def _call_len(self, node: ast.Call, x: Static) -> Static:
        return Static(len(x.value))

    def _call_min(self, node: ast.Call, *values: Any) -> Value:
        return self._extreme("Lt", node, values, min)

    def _call_max(self, node: ast.Call, *values: Any) -> Value:
        return self._extreme("Gt", node, values, max)

    def _extreme(
        self, comparison: str, node: ast.Call, values: tuple[Operand, ...], fold: Callable[..., object]
    ) -> Any:
        known = [x.value for x in values if isinstance(x, Static)]
        if len(known) == len(values):
            return Static(fold(*known))
        best = values[0]
        for x in values[1:]:
            best, x = self.promote(best, x, node)
            best = self.select(self.compare(comparison, x, best, node), x, best)
        return best

    def _call_copysign(self, node: ast.Call, x: Value, y: Value) -> Value:
        return self._intrinsic("copysign", node, *self.promote(x, y, node))

    def _call_fmuladd(self, node: ast.Call, x: Value, y: Value, z: Value) -> Value:
        return self._fused("fmuladd", node, x, y, z)

    def _call_fma(self, node: ast.Call, x: Value, y: Value, z: Value) -> Value:
        return self._fused("fma", node, x, y, z)

    def _fused(self, name: str, node: ast.Call, x: Value, y: Value, z: Value) -> Value:
        x, y = self.promote(x, y, node)
        return self._intrinsic(name, node, x, y, self.convert(z, self.value(x, node).type, node))

    def _intrinsic(self, name: str, node: ast.Call, *values: Operand) -> Value:
        return self.intrinsic(_MATH[name], [self.value(x, node) for x in values])

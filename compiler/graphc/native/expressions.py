# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of the kernel language."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from graphc.native import builtins
from graphc.native.pointers import Pointers
from graphc.native.types import BOOL, I64, Operand, Routine, Static, Value, kind_of

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
        target, arguments = function.value, [self.expression(x) for x in node.args]
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

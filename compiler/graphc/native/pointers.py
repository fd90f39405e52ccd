# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of the kernel language: on the stack, at addresses, shared with other threads, and of code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.native.types import BOOL, BYTE, F64, I64, Operand, Static, Type, Value, kind_of
from graphc.native.vectors import Vectors

if TYPE_CHECKING:
    from ast import Call

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

    def _call_fetch_min(self, node: Call, pointer: Value, i: Operand, x: Operand, order: Static) -> Value:
        return self._changed("min" if pointer.type.signed else "umin", node, pointer, i, x, order)

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

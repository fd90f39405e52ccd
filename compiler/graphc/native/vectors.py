# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors of the kernel language: several neighbouring numbers in one value.

`row(a, i, lanes)` reads them and `put(a, i, x)` writes them; arithmetic, comparisons and `choose` go lane by
lane, and a number among vectors counts for each lane. `lanes` is known when translating: code on vectors is
short whatever the size of a matrix, and is not left to the loop vectoriser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.native.numbers import Numbers
from graphc.native.types import I64, Operand, Static, Type, Value, literal

if TYPE_CHECKING:
    import ast


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

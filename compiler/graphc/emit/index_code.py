# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic of the emitter: sizes and offsets, folded where they are known."""

from __future__ import annotations

from collections.abc import Callable

from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, addi, muli, subi

ADD, SUBTRACT, MULTIPLY = addi.__name__, subi.__name__, muli.__name__
_DIVISIONS = frozenset("divsi divui floordivsi ceildivsi remsi remui".split())
# Right operands that change nothing.
_NEUTRAL = {ADD: 0, SUBTRACT: 0, MULTIPLY: 1, "floordivsi": 1, "ceildivsi": 1}


class IndexCode:
    """Mixin of `Emitter`. Values of index type are SSA names; known ones are remembered and folded."""

    raw: Callable[[str], str]
    _literals: dict[str, int | bool]
    _names: dict[tuple[str, int | str | bytes] | str, str]

    def const_index(self, value: int) -> str:
        """A constant of index type."""
        return self._constant(value, f"arith.constant {value} : index")

    def _constant(self, value: int | bool, text: str) -> str:
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = self.raw(text)
            self._literals[name] = value
        return name

    def known(self, operand: str) -> int | None:
        """The value of an index operand that is a constant."""
        value = self._literals.get(operand)
        return None if value is None else int(value)

    def arith(self, name: str, a: str, b: str) -> str:
        """Integer arithmetic on index operands; ``name`` is an operation of the arith dialect, such as
        ``addi``.
        """
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None and name in BINARY and not (y == 0 and name in _DIVISIONS):
            return self.const_index(BINARY[name](x, y))
        if y is not None and y == _NEUTRAL.get(name):
            return a
        if x is not None and x == _NEUTRAL.get(name) and name in (ADD, MULTIPLY):
            return b
        return self.raw(f"arith.{name} {a}, {b} : index")

    def add(self, a: str, b: str) -> str:
        """``a + b`` of index operands."""
        return self.arith(ADD, a, b)

    def subtract(self, a: str, b: str) -> str:
        """``a - b`` of index operands."""
        return self.arith(SUBTRACT, a, b)

    def multiply(self, a: str, b: str) -> str:
        """``a * b`` of index operands."""
        return self.arith(MULTIPLY, a, b)

    def compare(self, predicate: str, a: str, b: str) -> str:
        """An ``i1`` from two index operands; ``predicate`` is one of eq, ne, slt, sle, sgt, sge."""
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None:
            return self.truth(bool(COMPARISONS[predicate](x, y)))
        return self.raw(f"arith.cmpi {predicate}, {a}, {b} : index")

    def truth(self, value: bool) -> str:
        """A constant ``i1``."""
        return self._constant(value, f"arith.constant {'true' if value else 'false'}")

    def both(self, a: str, b: str) -> str:
        """Logical and of two ``i1``."""
        for x, other in ((a, b), (b, a)):
            if x in self._literals:
                return other if self._literals[x] else x
        return self.raw(f"arith.andi {a}, {b} : i1")

    def select(self, condition: str, a: str, b: str) -> str:
        """``a`` if the ``i1`` condition holds, else ``b``; both of index type."""
        if condition in self._literals:
            return a if self._literals[condition] else b
        return self.raw(f"arith.select {condition}, {a}, {b} : index")

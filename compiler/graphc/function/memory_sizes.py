# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes in a memory plan: expressions of the sizes of arguments, as text and as numbers.

The expressions are those of the manifest's record (see `graphc.passes.buffer.memory._record`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc_runtime.index_arithmetic import BINARY, COMPARISONS, SIGNS

Number = int | None

_LONGEST = 60
_CALLS = {"maxsi": "max", "minsi": "min", "maxui": "max", "minui": "min", "ceildivsi": "ceildiv"}
_COMPARISONS = tuple(COMPARISONS.values())


class Argument:
    """An argument of a kernel, as far as it is known.

    Args:
        name: how texts call it.
        shape: its sizes, None where unknown.
        value: its value if it is a number.
    """

    def __init__(self, name: str, shape: Sequence[Number], value: Number = None) -> None:
        self.name, self.shape, self.value = name, tuple(shape), value


class Sizes:
    """The expressions of a record, for given arguments.

    Args:
        nodes: the expressions.
        arguments: of the kernel: inputs, then results.
    """

    def __init__(self, nodes: Sequence[Sequence[Any]], arguments: Sequence[Argument]) -> None:
        self._nodes, self._arguments = nodes, arguments
        self._values: dict[int, Number] = {}
        self._texts: dict[int, str] = {}

    def value(self, number: int) -> Number:
        """The value of an expression, None if it is not known."""
        if number not in self._values:
            self._values[number] = self._value(number)
        return self._values[number]

    def _value(self, number: int) -> Number:
        name, *operands = self._nodes[number]
        if name == "const":
            return int(operands[0])
        if name == "dim":
            argument, axis = operands
            return self._arguments[argument].shape[axis]
        if name == "value":
            return self._arguments[operands[0]].value
        if name == "?":
            return None
        predicate = operands.pop(0) if name == "cmpi" else 0
        values = [self.value(operand) for operand in operands]
        if name == "select":
            return None if values[0] is None else values[1] if values[0] else values[2]
        a, b = values
        if a is None or b is None:
            return None
        if name == "cmpi":
            return int(_COMPARISONS[predicate](a, b))
        try:
            return BINARY[name](a, b)
        except ZeroDivisionError:
            return None

    def product(self, numbers: Sequence[int]) -> Number:
        """The product of sizes; one that is negative counts as 0."""
        result = 1
        for number in numbers:
            value = self.value(number)
            if value is None:
                return None
            result *= max(value, 0)
        return result

    def text(self, number: int) -> str:
        """An expression the way it would be written in Python."""
        if number not in self._texts:
            value = self.value(number)
            text = str(value) if value is not None else self._text(number)
            self._texts[number] = text if len(text) <= _LONGEST else "?"
        return self._texts[number]

    def _text(self, number: int) -> str:
        name, *operands = self._nodes[number]
        if name == "dim":
            argument, axis = operands
            return f"{self._arguments[argument].name}.shape[{axis}]"
        if name == "value":
            return self._arguments[operands[0]].name
        if name in SIGNS:
            a, b = map(self.text, operands)
            return f"({a} {SIGNS[name]} {b})"
        if name in _CALLS:
            a, b = map(self.text, operands)
            return f"{_CALLS[name]}({a}, {b})"
        if name == "select":
            a, b = (self.text(operand) for operand in operands[1:])
            return a if a == b else f"({a} or {b})"
        return "?"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index values as expressions of the sizes of arguments, as plain data."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import reduce

from graphc.ir.build import predicate_of
from graphc.ir.walk import definition, incoming, is_parameter
from graphc.lowering.memory.layouts import size_of
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import read_results
from graphc_runtime.index_arithmetic import BINARY, muli

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")


def _operands_first(value: ir.Value, known: Container[ir.Value]) -> Iterator[ir.Value]:
    """The values that an arithmetic value is computed from, each after its operands, and then itself, without
    those that are known. Sums of many sizes are too deep for recursion.
    """
    stack = [(value, 0)]
    while stack:
        value, done = stack.pop()
        if value in known:
            continue
        owner = value.owner
        if not isinstance(owner, ir.Block) and (owner.name.startswith("arith.") or owner.name in _CASTS):
            if done < len(owner.operands):
                stack += [(value, done + 1), (owner.operands[done], 0)]
                continue
        yield value


class Expressions:
    """Index values as expressions of the sizes of arguments.

    Attributes:
        nodes: `["const", n]`, `["dim", argument, axis]`, `["value", argument]`, `["cmpi", predicate, a, b]`,
            `["select", c, a, b]`, `["divui", a, b]` and the like; `["variable", n]` for the variable of a
            loop; `["?"]` for what depends on more than these.
        variables: of loops, by number.
    """

    def __init__(self) -> None:
        self.nodes: list[list[int | str]] = []
        self.variables: dict[ir.Value, int] = {}
        self._numbers: dict[ir.Value, int] = {}
        self._known: dict[str, int] = {}

    def number(self, value: ir.Value | int | tuple[ir.Value, int] | None) -> int:
        """The number of the expression of a value, or of what `size_of` gave."""
        if value is None:
            return self._add(["?"])
        if isinstance(value, int):
            return self._add(["const", value])
        if isinstance(value, tuple):
            return self._untold(*value)
        if isinstance(value, list):
            parts = [self.number(part) for part in value]
            return reduce(lambda a, b: self._add([muli.__name__, a, b]), parts)
        for known in _operands_first(value, self._numbers):
            self._numbers[known] = self._number(known)
        return self._numbers[value]

    def size(self, memref: ir.Value, axis: int) -> int:
        """The number of the expression of a size of a buffer."""
        return self.number(size_of(memref, axis))

    def _untold(self, memref: ir.Value, axis: int) -> int:
        """The expression of a size of an argument, or of what a loop carries, which keeps its sizes."""
        if (definition(memref) or memref.owner.owner).name == "scf.for":
            return self.size(incoming(memref)[0], axis)
        return self._add(["dim", memref.arg_number, axis] if is_parameter(memref) else ["?"])

    def _number(self, value: ir.Value) -> int:
        if isinstance(value.owner, ir.Block):
            known = self.variables.get(value)
            return self._add(["?"] if known is None else ["variable", known])
        op = value.owner.operation
        name = op.name
        if name in _CASTS:
            return self.number(op.operands[0])
        if name == "arith.constant":
            constant = constant_value(value)
            return self._add(["?"] if constant is None else ["const", constant])
        if name == "memref.dim":
            axis = constant_value(op.operands[1])
            return self.number(None) if axis is None else self.size(op.operands[0], axis)
        if name == "memref.load" and len(op.operands) == 1 and isinstance(op.operands[0].owner, ir.Block):
            return self._add(["value", op.operands[0].arg_number])
        if name == "scf.if":
            # One of two: which is not looked at.
            sides = [self.number(x) for x in read_results(value)]
            return sides[0] if len(set(sides)) == 1 else self._add(["select", self.number(None), *sides])
        operands = [self.number(x) for x in op.operands] if name.startswith("arith.") else []
        short = name.removeprefix("arith.")
        if short == "cmpi":
            return self._add(["cmpi", predicate_of(op), *operands])
        if short == "select" or short in BINARY:
            return self._add([short, *operands])
        return self._add(["?"])

    def _add(self, node: list[int | str]) -> int:
        key = str(node)
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return self._known[key]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Liveness: memory that the values of a block take, and when it is free again.

The order of a block's units decides how much is in use at once. A gradient's products with what was kept of
the forward pass, for example, are read by nobody but the caller: done as soon as their operands are there,
they free these; done at the end, every operand is kept until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.ir.kinds import static_shape
from graphc.ir.views import COUNTS, INLINED, RENAMES
from graphc.ir.walk import inputs_of
from graphc_dialects._mlir import ir

# Operations whose result is their first operand's memory.
ALIASES = frozenset({*INLINED, *RENAMES})
# What stands for a size that is not known; only the comparison of sums counts.
UNKNOWN_SIZE = 512


class Liveness:
    """Elements in use while the units of a block are done one after the other.

    Args:
        members: the operations of each unit.
        kept: values that live in memory of the caller, such as results.
    """

    def __init__(
        self, members: Mapping[tuple[str, int], Sequence[ir.Operation]], kept: Sequence[ir.Value]
    ) -> None:
        self._kept = {root(value) for value in kept}
        self._weight: dict[ir.Value, int] = {}
        self._readers: dict[ir.Value, set[Any]] = {}
        self._made: dict[tuple[str, int], list[ir.Value]] = {}
        self._read: dict[tuple[str, int], set[ir.Value]] = {}
        for unit, operations in members.items():
            self._made[unit] = [r for op in operations for r in op.results if self._takes_memory(op, r)]
        for unit, operations in members.items():
            inside = {result for op in operations for result in op.results}
            outside = {x for op in operations for x in inputs_of(op)} - inside
            self._read[unit] = {value for value in map(root, outside) if value in self._weight}
            for value in self._read[unit]:
                self._readers[value].add(unit)
        for unit, values in self._made.items():
            # What nobody outside reads stays in registers.
            self._made[unit] = [value for value in values if self._readers[value]]

    def _takes_memory(self, op: ir.Operation, result: ir.Value) -> bool:
        if op.name in ALIASES or not isinstance(result.type, ir.RankedTensorType):
            return False
        if result in self._kept:
            return False
        self._weight[result] = _elements(result)
        self._readers[result] = set()
        return True

    def growth(self, unit: tuple[str, int]) -> int:
        """Elements in use after a unit less those before it, if it is done next."""
        made = sum(self._weight[value] for value in self._made[unit])
        freed = sum(self._weight[value] for value in self._read[unit] if self._readers[value] == {unit})
        return made - freed

    def rank(self, unit: tuple[str, int]) -> int:
        """-1 for units that free memory, 0 for those after which as much is in use, 1 for others.

        A sum of what nobody else reads any more, for example, comes before a product that needs as much as it
        frees: else its operand is kept until the end of all such products. A few elements do not count.
        """
        growth = self.growth(unit)
        return 1 if growth > 0 else -1 if growth <= -UNKNOWN_SIZE else 0

    def done(self, unit: tuple[str, int]) -> list[Any]:
        """Says that a unit is done; returns the units whose growth is another now."""
        changed: list[ir.Type] = []
        for value in self._read[unit]:
            readers = self._readers[value]
            readers.discard(unit)
            if len(readers) == 1:
                changed.extend(readers)
        return changed


def root(value: ir.Value) -> ir.Value:
    """The value whose memory a value is part of."""
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name not in ALIASES or owner.name in COUNTS:
            return value
        value = owner.operands[0]


def _elements(value: ir.Value) -> int:
    count = 1
    for size in static_shape(value):
        count *= UNKNOWN_SIZE if size is None else size
    return count

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies cheap producers into every cluster that reads them.

Storing `x - y` in one loop to load it in another moves three times the data of computing it again from x and
y, which the second loop has to wait for anyway. A value is copied if it is the result of a few cheap
operations on at most two arrays that are in memory in any case, and if nothing but clusters reads it.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.kinds import CHEAP, PER_ELEMENT, REDUCTIONS, static_shape
from graphc.ir.views import GATHERS, INLINED
from graphc_dialects._mlir import ir

MAX_OPERATIONS = 3
MAX_ARRAYS = 2


class Recomputation:
    """One function's copies.

    Args:
        clusters: cluster number of the results of each operation of one block that has one; copies are added.
            (An operation itself is no key: its hash changes with its operands.)
    """

    def __init__(self, clusters: dict[ir.Value, int]) -> None:
        self._clusters = clusters
        self._copies: dict[tuple[ir.Value, int], ir.Value | None] = {}
        self._read_by_clusters: dict[ir.Value, bool] = {}
        self.copied = 0

    def apply(self, op: ir.Operation) -> None:
        """Replaces operands of a cluster member by copies in its own cluster, where that pays."""
        number = self._clusters[op.results[0]]
        self._block = op.block
        if op.name in GATHERS:
            # Its operands are read at positions of their own, not at those of the loop.
            return
        for position, operand in enumerate(op.operands):
            if self._clusters.get(operand, number) == number:
                continue
            key = (operand, number)
            if key not in self._copies:
                self._copies[key] = self._copy(op, operand, number)
            replacement = self._copies[key]
            if replacement is not None:
                op.operands[position] = replacement

    def _copy(self, user: ir.Operation, value: ir.Value, number: int) -> ir.Value | None:
        arrays: set[Any] = set()
        chain: list[Any] = []
        if not self._collect(value, number, arrays, chain) or not chain:
            return None
        # All members of a cluster share one iteration space: nothing that is broadcast can be copied into it.
        space = static_shape(user.operands[0] if user.name in REDUCTIONS else user.results[0])
        shapes = [static_shape(op.results[0]) for op in chain]
        if any(
            size == 1 and whole != 1 for shape in shapes for size, whole in zip(shape, space, strict=True)
        ):
            return None
        mapping: dict[Any, Any] = {}
        for op in reversed(chain):
            if op.results[0] in mapping:
                continue
            copy = op.clone(ip=ir.InsertionPoint(user))
            copy.attributes["cluster"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
            for position, operand in enumerate(copy.operands):
                if operand in mapping:
                    copy.operands[position] = mapping[operand]
            self._clusters[copy.results[0]] = number
            mapping[op.results[0]] = copy.results[0]
            self.copied += 1
        return mapping[value]

    def _collect(
        self, value: ir.Value, number: int, arrays: set[ir.Value], chain: list[ir.Operation]
    ) -> bool:
        """True if the value is cheap; gathers the operations to copy (users before producers) and the arrays
        read.
        """
        other = self._clusters.get(value)
        if other == number:
            return self._array(value, arrays)
        owner = value.owner
        if other is None:
            if isinstance(owner, ir.Block) or owner.operation.block != self._block:
                # What comes from outside of a loop is in memory; computing it again in each iteration costs
                # more.
                return self._array(value, arrays)
            if owner.name == "arith.constant":
                return True
            if owner.name in INLINED:
                return all(self._is_stored(x) for x in owner.operands) and self._array(value, arrays)
            return self._array(value, arrays)
        if owner.name in REDUCTIONS:
            return self._array(value, arrays)
        if owner.name not in CHEAP or not self._only_clusters_read(value):
            return self._is_kept(value) and self._array(value, arrays)
        chain.append(owner)
        if len(chain) > MAX_OPERATIONS:
            return False
        return all(self._collect(x, number, arrays, chain) for x in owner.operands)

    def _array(self, value: ir.Value, arrays: set[ir.Value]) -> bool:
        if any(size != 1 for size in static_shape(value)):
            arrays.add(value)
        return len(arrays) <= MAX_ARRAYS

    def _is_stored(self, value: ir.Value) -> bool:
        """True if a view's operand is in memory (or no tensor at all) without this view."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return True
        return owner.name in REDUCTIONS or not (owner.name in PER_ELEMENT or owner.name in INLINED)

    def _is_kept(self, value: ir.Value) -> bool:
        """True if something that is no cluster, such as a matrix product, reads the value from memory."""
        users = [use.owner.operation for use in value.uses]
        return any(
            op.block == self._block and not self._is_member(op) and op.name not in INLINED for op in users
        )

    def _only_clusters_read(self, value: ir.Value) -> bool:
        found = self._read_by_clusters.get(value)
        if found is None:
            # Copies do not change this: they are in clusters, and so is all that they are made for.
            users = [use.owner.operation for use in value.uses]
            found = all(self._is_member(op) and op.block == self._block for op in users)
            self._read_by_clusters[value] = found
        return found

    def _is_member(self, op: ir.Operation) -> bool:
        return len(op.results) > 0 and op.results[0] in self._clusters

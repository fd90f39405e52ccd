# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides which operations share a loop nest."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.ir.kinds import (
    PER_ELEMENT,
    REDUCTIONS,
    reduced_axes,
    static_shape,
)
from graphc.ir.views import GATHERS
from graphc.ir.walk import functions, inputs_of, walk
from graphc.lowering.recompute import Recomputation
from graphc.passes import Pass
from graphc.passes.graph._clusters import UnitGraph
from graphc_dialects._mlir import ir
from graphc_dialects.check import NAME as CHECK
from graphc_runtime.record import record

Shape = tuple[int | None, ...]


@record()
class _Cluster:
    """A fused cluster's iteration space, its reads from others, and its writes."""

    domain: Shape
    axes: tuple[int, ...] | None = None
    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)


@record()
class Fusion(Pass):
    """Marks the elementwise operations and reductions that will be computed in one loop nest.

    Producers are merged into consumers over the same iteration domain, also when the producer has several
    users (its value is then an additional result of the loop), and siblings that read the same array are
    merged, so that several reductions over one input need one sweep. Each member gets the attribute `cluster
    = n`. Views (dimshuffle, broadcast_to, iota, slice) get none: every reader inlines them.

    Cheap producers that only clusters read are copied into each of them instead of being stored (see
    graphc.lowering.recompute).

    Two operations are merged only if no third one outside the loop lies between them, a reduction's result is
    never read inside its own loop, and all reductions of a loop remove the same axes.

    Options:
        max-inputs: largest number of distinct arrays one loop may read, before cheap producers are copied.

    Source: PyTensor's `local_elemwise_fusion` and `local_careduce_fusion`; the acyclicity test is the usual
    one of fusion by contraction in a DAG (Kennedy and McKinley, 1993).
    """

    stage = "graph"
    max_inputs: int = 16

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            regions = [region for op in [function, *walk(function)] for region in op.regions]
            first = 0
            for block in [block for region in regions for block in region.blocks]:
                first += self._mark([op.operation for op in block.operations], first)

    def _mark(self, operations: list[ir.Operation], first: int) -> int:
        """Numbers the clusters of one block from `first`; returns how many there are."""
        planner = _Planner(self.max_inputs)
        for op in operations:
            planner.add(op)
        numbers: dict[int, int] = {}
        clusters: dict[ir.Value, int] = {}
        for op, node in planner.members:
            number = numbers.setdefault(planner.units.find(node), first + len(numbers))
            op.attributes["cluster"] = planner.integer(number)
            clusters.update((result, number) for result in op.results)
        self._recompute([op for op, _ in planner.members], clusters)
        self.count("clusters", len(numbers))
        self.count("fused operations", len(planner.members))
        return len(numbers)

    def _recompute(self, members: list[ir.Operation], clusters: dict[ir.Value, int]) -> None:
        copies = Recomputation(clusters)
        for op in members:
            copies.apply(op)
        for op in reversed(members):
            if all(next(result.uses, None) is None for result in op.results):
                op.erase()
        self.count("recomputed operations", copies.copied)


class _Planner:
    """Greedy clustering in program order."""

    # Units between two that are merged; without a limit, programs in which everything depends on everything
    # would take quadratic time.
    _LIMIT = 1000
    # What a unit that reads a value may cost in attempts to merge it with later units that read it, before
    # these no longer ask: in chains of updates nobody can merge with the readers of a common factor.
    _PATIENCE = 500

    def __init__(self, max_inputs: int) -> None:
        self.units = UnitGraph(limit=self._LIMIT)
        self.members: list[tuple[Any, int]] = []
        self._max_inputs = max_inputs
        self._node_of: dict[ir.Value, int] = {}
        self._shapes: dict[ir.Value, Shape] = {}
        self._shapes_of_types: dict[ir.Type, Shape] = {}
        self._id_of: dict[ir.Value, int] = {}
        self._reductions: set[int] = set()
        self._clusters: dict[int, _Cluster] = {}
        # Of each value, the units that read it and what is left of their patience.
        self._readers: dict[tuple[int, Shape], dict[int, int]] = {}
        self._last_check: int | None = None

    def integer(self, number: int) -> ir.Attribute:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)

    def add(self, op: ir.Operation) -> None:
        name, operands = op.name, list(op.operands)
        if len(op.regions):
            operands = inputs_of(op)
        results = list(op.results)
        reduction = name in REDUCTIONS
        member = reduction or name in PER_ELEMENT
        domain = self._shape(operands[0] if reduction else results[0]) if member else ()
        # Operands that are read at computed positions must be in memory first.
        inlines = member and name not in GATHERS
        inline = [k for k, operand in enumerate(operands) if inlines and self._covers(operand, domain)]
        needed = self._dependences(operands, set(inline) if member else None)
        is_check = name == CHECK
        if not member and not needed and not is_check:
            return  # constants and views of arguments lie on no path between units
        node = self.units.add(needed)
        for result in results:
            self._node_of[result] = node
        if is_check:
            self._last_check = node
        if member:
            self.members.append((op, node))
            if reduction:
                self._reductions.add(node)
            identities = [self._identity(operand) for operand in operands]
            arrays = [i for i, operand in zip(identities, operands, strict=True) if self._is_array(operand)]
            writes = {self._identity(result) for result in results}
            axes = reduced_axes(op) if reduction else None
            self._clusters[node] = _Cluster(domain, axes, set(arrays), writes)
            self._merge(node, domain, [(operands[i], identities[i]) for i in inline])

    def _merge(self, node: int, domain: Shape, read: list[tuple[ir.Value, int]]) -> None:
        """Merges a new unit with what makes the values that it reads inline, and with others that read them.

        Args:
            node: the unit.
            domain: what it iterates over.
            read: the values, with their identities.
        """
        for operand, _ in read:
            producer = self._node_of.get(operand)
            if producer is not None and producer in self._clusters:
                self._try_merge(producer, node)
        for _, identity in read:
            readers = self._readers.setdefault((identity, domain), {})
            if not self._merge_with_reader(node, readers):
                readers[node] = self._PATIENCE

    def _merge_with_reader(self, node: int, readers: dict[int, int]) -> bool:
        """Merges a unit with the first of a value's readers that it can be merged with, if there is one."""
        for reader, patience in list(readers.items()):
            visits = self.units.visits
            if self._try_merge(reader, node):
                return True
            patience -= 1 + self.units.visits - visits
            if patience > 0:
                readers[reader] = patience
            else:
                del readers[reader]
        return False

    def _shape(self, value: ir.Value) -> Shape:
        found = self._shapes.get(value)
        if found is None:
            kind = value.type
            found = self._shapes_of_types.get(kind)
            if found is None:
                found = self._shapes_of_types[kind] = static_shape(value)
            self._shapes[value] = found
        return found

    def _is_array(self, value: ir.Value) -> bool:
        """True if a tensor may have more than one element."""
        shape = self._shape(value)
        return shape.count(1) != len(shape)

    def _identity(self, value: ir.Value) -> int:
        return self._id_of.setdefault(value, len(self._id_of))

    def _covers(self, operand: ir.Value, domain: Shape) -> bool:
        """True if the operand is read once per iteration, at the iteration's own position."""
        shape = self._shape(operand)
        if shape == domain:
            return True
        return len(shape) == len(domain) and all(
            have == want or (want is not None and have is None) or (want is None and have not in (None, 1))
            for have, want in zip(shape, domain, strict=True)
        )

    def _dependences(self, operands: list[ir.Value], inline: set[int] | None) -> list[int]:
        """Node ids an operation depends on.

        An edge that needs its source finished (a reduction's result, a gathered or broadcast operand) goes
        through a node of its own, which makes a merge across it a cycle. Every operation depends on the
        checks before it.
        """
        nodes = [] if self._last_check is None else [self._last_check]
        for position, operand in enumerate(operands):
            node = self._node_of.get(operand)
            if node is None:
                continue
            blocking = inline is not None and (position not in inline or node in self._reductions)
            nodes.append(self.units.add([node]) if blocking else node)
        return nodes

    def _try_merge(self, a: int, b: int) -> bool:
        a, b = self.units.find(a), self.units.find(b)
        if a == b:
            return True
        first, second = self._clusters[a], self._clusters[b]
        domain: Shape | None = first.domain
        if domain != second.domain:
            domain = _common_domain(first.domain, second.domain)
        axes_agree = first.axes is None or second.axes is None or first.axes == second.axes
        if domain is None or not axes_agree:
            return False
        reads = (first.reads - second.writes) | (second.reads - first.writes)
        if len(reads) > self._max_inputs or not self.units.can_merge(a, b):
            return False
        leader = self.units.merge(a, b)
        axes = first.axes if first.axes is not None else second.axes
        few, writes = sorted((first.writes, second.writes), key=len)
        writes |= few
        self._clusters[leader] = _Cluster(domain, axes, reads, writes)
        return True


def _common_domain(a: Shape, b: Shape) -> Shape | None:
    """The more precise of two domains, or None if they may differ."""
    if len(a) != len(b):
        return None
    merged: list[int | None] = []
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x != y:
            return None
        known = x if x is not None else y
        if x != y and known == 1:
            return None
        merged.append(known)
    return tuple(merged)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Brings a block into the order of a plan's steps, with copies of what is computed again."""

from __future__ import annotations

from graphc.ir.walk import walk
from graphc.lowering.liveness import ALIASES, root
from graphc.passes.graph.memory._recipes import Plan
from graphc.passes.graph.memory._steps import Program, Step
from graphc_dialects._mlir import ir


def rewrite(program: Program, plan: Plan, block: ir.Block) -> int:
    """Makes a plan come true; returns how many operations on elements are done more than before.

    What computes an array that nobody reads any more is erased.
    """
    return _Rewriter(program, block).run(plan)


class _Rewriter:
    def __init__(self, program: Program, block: ir.Block) -> None:
        self._program = program
        self._end = block.operations[-1].operation
        # What stands for a version of an array, where that is not the array itself.
        self._values: dict[int, ir.Value] = {}
        # Operations may have to read other arrays by the time they are copied.
        self._operands = [list(node.op.operands) for node in program.nodes]
        clusters = [
            ir.IntegerAttr(node.op.attributes["cluster"]).value
            for node in program.nodes
            if "cluster" in node.op.attributes
        ]
        self._flops = 0
        self._next_cluster = max(clusters, default=-1) + 1

    def run(self, plan: Plan) -> int:
        for step in plan.steps:
            with ir.InsertionPoint(self._end):
                self._copy(step) if step.is_copy else self._move(step)
        for node in reversed(self._program.nodes):
            is_removable = node.is_pure or node.op.name in ALIASES
            if is_removable and all(next(result.uses, None) is None for result in node.op.results):
                self._flops -= node.flops
                node.op.erase()
        return self._flops

    def _move(self, step: Step) -> None:
        """Moves the operations of a unit to the end of what has been done."""
        nodes = self._program.nodes
        first = nodes[step.nodes[0]].op
        mapping = self._mapping(step)
        cluster = first.attributes["cluster"] if step.added else None
        for number in step.added:
            self._clone(number, cluster, mapping)
        for number in step.nodes:
            op = nodes[number].op
            if op == self._end:
                self._read(op, mapping)
                continue
            op.move_before(self._end)
            if mapping:
                self._read(op, mapping)

    def _copy(self, step: Step) -> None:
        """Computes the operations of a step again, as a unit of their own."""
        mapping = self._mapping(step)
        cluster = None
        if "cluster" in self._program.nodes[step.nodes[0]].op.attributes:
            cluster = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self._next_cluster)
            self._next_cluster += 1
        for number in (*step.added, *step.nodes):
            self._clone(number, cluster, mapping)
        for array, version in step.makes.items():
            self._values[version] = mapping[self._program.arrays[array]]

    def _mapping(self, step: Step) -> dict[ir.Value, ir.Value]:
        """What a step reads instead of arrays."""
        return {
            self._program.arrays[array]: self._values[version]
            for array, version in step.reads.items()
            if version in self._values
        }

    def _clone(self, number: int, cluster: ir.Attribute | None, mapping: dict[ir.Value, ir.Value]) -> None:
        op = self._program.nodes[number].op
        copy = op.clone()
        for position, operand in enumerate(self._operands[number]):
            copy.operands[position] = operand
        self._flops += self._program.nodes[number].flops
        if cluster is not None:
            copy.attributes["cluster"] = cluster
        with ir.InsertionPoint(copy):
            self._read(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))

    def _read(self, op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
        """Lets an operation, and those in its regions, read other arrays."""
        with ir.InsertionPoint(op):
            for inner in [op, *walk(op)] if len(op.regions) else [op]:
                for position, operand in enumerate(inner.operands):
                    new = self._seen(operand, mapping)
                    if new != operand:
                        inner.operands[position] = new

    def _seen(self, value: ir.Value, mapping: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value, with views made again of arrays that others stand for."""
        if value in mapping:
            return mapping[value]
        source = root(value)
        if source == value or source not in mapping:
            return value
        view = value.owner.operation
        copy = view.clone()
        copy.operands[0] = self._seen(view.operands[0], mapping)
        mapping[value] = copy.results[0]
        return copy.results[0]

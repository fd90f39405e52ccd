# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along rows, with the work around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from graphc.ir.lifetimes import root_of
from graphc.ir.walk import blocks_outside_loops, functions
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._memory import SizeKey, size_key
from graphc.passes.gpu._nest import Nest
from graphc.passes.gpu._rows import RowKernel, RowNest, as_rows
from graphc.passes.gpu._simple import NESTS, as_generic
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

Keys: TypeAlias = "set[tuple[SizeKey, ...]]"
# Nests of a run: what they hand each other is computed again at each use.
_MOST = 16


@record()
class GpuRows(Pass):
    """Makes one kernel of a run of operations that each work on rows, if there is a reduction among them.

    A row is what the last dimensions of a nest run through while those before them stay; a block of threads
    has one row at a time. Each thread reduces a stripe of the row, warps combine their values by shuffles,
    and the block through shared memory: the order depends on sizes only. A softmax so reads its input once
    from memory (the second and third time it is in the cache) and writes its result once: what operations of
    the run hand each other is computed again or stays in registers, and arrays that only they used
    disappear.

    A run goes on after operations that could as well be done before it. It ends at the first one that reads
    what the run writes, or writes what it reads, in another way than row by row. Method: vertical fusion of
    reductions, as in XLA's and Triton's softmax kernels.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for block in blocks_outside_loops(function):
                for op in [op.operation for op in block.operations]:
                    if op.name in NESTS:
                        as_generic(op)
                for run in _lowered(block):
                    self.count("kernels")
                    self.count("operations", len(run.nests))


class _Run:
    """Nests on the same rows, in order."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.nests: list[RowNest] = []
        self._written: set[ir.Value] = set()
        self._touched: set[ir.Value] = set()
        # What is read of memory, and arrays with elements for columns that are written.
        self._read: set[ir.Value] = set()
        self._arrays: set[ir.Value] = set()
        # What the numbers of rows are known to be equal to.
        self._keys: Keys = set()
        # Fills of arrays whose number of rows is not known to be that of the run.
        self.unknown: dict[ir.Operation, Keys] = {}

    @property
    def is_useful(self) -> bool:
        """Whether anything is reduced."""
        return any(row.combiners for row in self.nests)

    def take(self, op: ir.Operation) -> bool:
        """Adds a nest, if it belongs to the run.

        A fill may come before what says that the array has the run's rows.
        """
        row = as_rows(Nest(op), self.rows)
        if row is None or len(self.nests) == _MOST:
            return False
        if not (self._is_safe(row) and self._keeps_order(row)):
            return False
        keys = _row_keys(row)
        if self.nests and not keys & self._keys:
            if row.nest.inputs:
                return False
            self.unknown[op] = keys
        else:
            self._learn(keys)
        self.nests.append(row)
        self._read.update(self._reads(row))
        self._written.update(operand.buffer for operand in row.nest.outputs)
        self._arrays.update(o.buffer for o in row.nest.outputs if not row.is_row(o))
        self._touched.update(operand.buffer for operand in row.nest.operands)
        return True

    def _learn(self, keys: Keys) -> None:
        """Adds what the number of rows is equal to, and fills that this says the rows of."""
        self._keys |= keys
        known = [op for op, others in self.unknown.items() if others & self._keys]
        for op in known:
            self._learn(self.unknown.pop(op, set()))

    def _is_safe(self, row: RowNest) -> bool:
        """Whether all that it reads of what the run writes, or writes of what it reads, is of its own row and
        element.
        """
        outputs = {operand.buffer for operand in row.nest.outputs}
        for operand in row.nest.operands:
            if operand.buffer in self._written | outputs and not row.is_own(operand):
                return False
        gathered = [x for nest in [*(r.nest for r in self.nests), row.nest] for x in nest.gathered]
        written = {root_of(buffer) for buffer in self._written | outputs}
        if any(root_of(buffer) in written for buffer in gathered):
            return False
        for before in self.nests:
            if any(o.buffer in outputs and not before.is_own(o) for o in before.nest.operands):
                return False
        roots: dict[ir.Value, ir.Value] = {}
        for buffer in [*self._touched, *(operand.buffer for operand in row.nest.operands)]:
            same = roots.setdefault(root_of(buffer), buffer)
            if same != buffer and ({same, buffer} & (self._written | outputs)):
                return False
        return True

    def _reads(self, row: RowNest) -> set[ir.Value]:
        """The buffers that it reads in memory, since nothing before in the run has written them.

        The initial values of reductions are read before the block's barriers, and count as nothing.
        """
        nest = row.nest
        starts = [nest.outputs[place] for place in row.combiners]
        read = [o for o in nest.needed(nest.yields) if not any(o is start for start in starts)]
        return {operand.buffer for operand in read} - self._written

    def _keeps_order(self, row: RowNest) -> bool:
        """Whether what is written at the end of the row may be: nothing may want to read what was there.

        Elements are read and written by one thread in one loop, if just one array is written.
        """
        read = self._read | self._reads(row)
        outputs = {o.buffer for o in row.nest.outputs}
        arrays = self._arrays | {o.buffer for o in row.nest.outputs if not row.is_row(o)}
        if read & ((self._written | outputs) - arrays):
            return False
        return not read & arrays or len(arrays) == 1

    def may_pass(self, op: ir.Operation) -> bool:
        """Whether an operation that is not of the run may as well be done before all of it.

        Then the run goes on after it, and may read what it writes.
        """
        memory = [value for value in op.operands if isinstance(value.type, ir.MemRefType)]
        if op.name == "linalg.generic":
            memory += Nest(op).gathered
        written = memory if op.name == "memref.store" else [o.buffer for o in Nest(op).outputs]
        roots = {root_of(buffer) for buffer in self._written}
        touched = {root_of(buffer) for buffer in self._touched}
        return not (
            any(root_of(buffer) in roots for buffer in memory)
            or any(root_of(buffer) in touched for buffer in written)
        )

    def may_pass_run(self, launch: ir.Operation, other: _Run) -> bool:
        """As `may_pass`, of the kernel of another run."""
        memory = {root_of(value) for value in launch.operands if isinstance(value.type, ir.MemRefType)}
        written = {root_of(buffer) for buffer in other._written}
        own = {root_of(buffer) for buffer in self._written}
        return not (memory & own or written & {root_of(buffer) for buffer in self._touched})

    def lower(self) -> ir.Operation:
        """Replaces the nests by one kernel, where the last one stands; returns its launch."""
        last = self.nests[-1].nest.op
        inside = [row.nest.op for row in self.nests]
        kept = [buffer for buffer in self._written if _is_read_elsewhere(buffer, inside)]
        launch = RowKernel(Kernel(last, "rows"), self.rows, kept).write(self.nests)
        for op in inside:
            op.erase()
        return launch


def _row_keys(row: RowNest) -> Keys:
    """What is known to be equal to the nest's number of rows."""
    return {
        tuple(size_key(operand.buffer, axis) for axis in range(row.rows))
        for operand in row.nest.operands
        if row.is_own(operand)
    }


def _lowered(block: ir.Block) -> Iterator[_Run]:
    """Lowers the runs of a block that have a reduction.

    A run may begin with the work that reductions start from: fills, and elementwise work on their rows.
    """
    operations = [op.operation for op in block.operations]
    runs: dict[ir.Operation, _Run] = {}
    place = 0
    while place < len(operations):
        found = [_grown(operations, place, rows, runs) for rows in _possible_rows(operations[place])]
        useful = [run for run in found if run.is_useful]
        if not useful:
            place += 1
            continue
        best = max(useful, key=lambda run: (len(run.nests), run.rows))
        inside = {row.nest.op for row in best.nests}
        end = operations.index(best.nests[-1].nest.op)
        # What a run has passed over may begin another one.
        between = [op for op in operations[place:end] if op not in inside]
        launch = best.lower()
        runs[launch] = best
        operations = [*operations[:place], *between, launch, *operations[end + 1 :]]
        yield best


def _possible_rows(op: ir.Operation) -> range:
    """How many dimensions rows could have in a run that starts here."""
    return range(Nest(op).rank + 1) if op.name == "linalg.generic" else range(0)


def _grown(operations: list[ir.Operation], start: int, rows: int, runs: dict[ir.Operation, _Run]) -> _Run:
    """The longest run from a place on, among the kernels of other runs."""
    run, place, end = _Run(rows), start, len(operations)
    while place < end:
        op = operations[place]
        if op.name == "linalg.generic":
            taken = run.take(op) or (bool(run.nests) and run.may_pass(op))
        elif op in runs:
            taken = run.may_pass_run(op, runs[op])
        else:
            taken = _is_harmless(op) or (op.name == "memref.store" and run.may_pass(op))
        if taken:
            place += 1
        if (not taken or place == end) and run.unknown:
            # Again, up to the first fill that has turned out to be of something else.
            end = operations.index(next(iter(run.unknown)))
            run, place = _Run(rows), start
        elif not taken:
            break
    return run


def _is_harmless(op: ir.Operation) -> bool:
    """Whether the nests before an operation may as well be computed after it."""
    if op.name == "memref.alloc":
        return True
    dialect = op.name.partition(".")[0]
    return dialect in ("arith", "affine") or (dialect == "memref" and op.name not in _ACCESSES)


_ACCESSES = ("memref.load", "memref.store", "memref.copy", "memref.dealloc")


def _is_read_elsewhere(buffer: ir.Value, inside: list[ir.Operation]) -> bool:
    """Whether anything but some nests uses an array's memory."""
    if isinstance(buffer.owner, ir.Block) or buffer.owner.name != "memref.alloc":
        return True
    return any(use.owner.operation not in inside and use.owner.name != "memref.dim" for use in buffer.uses)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along rows, with the work around them.

Rows are held in registers, not in shared memory between the passes over them: fewer blocks fit on a
multiprocessor then (softmax of 2^18 x 1024 on an H200: 700 us instead of 619 with the row read again).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import all_of
from graphc.ir.walk import functions
from graphc.lowering.calls import product
from graphc.passes import Pass
from graphc.passes.gpu._host import host_blocks
from graphc.passes.gpu._kernel import H200, Kernel
from graphc.passes.gpu._nest import Effects, Nest, SizeKey, is_read_elsewhere, keeps_apart, size_key
from graphc.passes.gpu._rows import RowKernel, RowNest, as_rows, longest_of
from graphc.passes.gpu.gpu_elementwise import NESTS, as_generic
from graphc.passes.gpu.gpu_parts import in_parts, reduce_in_parts
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

Keys: TypeAlias = "set[tuple[SizeKey, ...]]"
# Nests of a run: what they hand each other is computed again at each use.
_MOST = 16
# Elements that one block takes in less time than a launch needs.
_SMALL = 16384


@record()
class GpuRows(Pass):
    """Makes one kernel of a run of operations that each work on rows, if there is a reduction among them.

    A row is what the last dimensions of a nest run through while those before them stay; a part of a warp,
    a warp or a block of threads has one row. Each thread reduces its elements of the row, warps combine their
    values by shuffles, and the block through shared memory: the order depends on sizes only. A softmax so
    reads its input once and writes its result once: what operations of the run hand each other stays in
    registers, or is computed again for rows that do not fit there (more than 16,384 float32), and arrays that
    only they used disappear.

    A run goes on after operations that could as well be done before it. It ends at the first one that reads
    what the run writes, or writes what it reads, in another way than row by row. Method: vertical fusion of
    reductions, as in XLA's and Triton's softmax kernels.

    Few long rows have several blocks each: reductions write parts, which a second kernel combines, and
    elementwise work is left to `graphc-gpu-elementwise`. Where sizes are not known, the host chooses.

    Attributes:
        threads: threads of a block, where a row has several blocks.
        blocks: the most blocks of a row.
        rows: as many rows keep a device busy with a block for each: two for a multiprocessor.
        elements: rows of fewer elements have one block.
    """

    threads: int = 256
    blocks: int = 1024
    rows: int = 2 * H200.processors
    elements: int = 32768

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for block in host_blocks(function):
                for op in [op.operation for op in block.operations]:
                    if op.name in NESTS:
                        as_generic(op)
                for run in _lowered(block, self):
                    self.count("kernels")
                    self.count("operations", len(run.nests))


class _Run:
    """Nests on the same rows, in order."""

    def __init__(self, rows: int, few: bool) -> None:
        self.rows = rows
        # Rows of many elements are left to kernels that have several blocks for one.
        self._few = few or not rows
        self.nests: list[RowNest] = []
        # As nests of a run that is lowered are gone.
        self.effects = Effects()
        # What is read of memory.
        self._read: set[ir.Value] = set()
        # What the numbers of rows are known to be equal to.
        self._keys: Keys = set()
        # Fills of arrays whose number of rows is not known to be that of the run.
        self.unknown: dict[ir.Operation, Keys] = {}

    @property
    def _outputs(self) -> list[ir.Value]:
        """Outputs, in order: code does not depend on where values lie in memory."""
        return list(dict.fromkeys(operand.buffer for row in self.nests for operand in row.nest.outputs))

    def take(self, op: ir.Operation) -> bool:
        """Adds a nest, if it belongs to the run.

        A fill may come before what says that the array has the run's rows.
        """
        row = as_rows(Nest(op), self.rows)
        if row is None or len(self.nests) == _MOST or (self._few and not _has_few(row)):
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
        self.effects |= Effects.of_nest(row.nest)
        return True

    def _learn(self, keys: Keys) -> None:
        """Adds what the number of rows is equal to, and fills that this says the rows of."""
        self._keys |= keys
        for op in [op for op, others in self.unknown.items() if others & self._keys]:
            self._learn(self.unknown.pop(op, set()))

    def _is_safe(self, row: RowNest) -> bool:
        """True if all that it reads of what the run writes, or writes of what it reads, is of its own row and
        element.
        """
        rows = [*self.nests, row]
        written = [operand.buffer for each in rows for operand in each.nest.outputs]
        operands = [(operand, each.is_own(operand)) for each in rows for operand in each.nest.operands]
        return keeps_apart(operands, [buffer for each in rows for buffer in each.nest.gathered], written)

    def _reads(self, row: RowNest) -> set[ir.Value]:
        """The buffers that it reads in memory, since nothing before in the run has written them.

        The initial values of reductions are read before the block's barriers, and count as nothing.
        """
        nest = row.nest
        starts = [nest.outputs[place] for place in row.combiners]
        read = [o for o in nest.needed(nest.yields) if not any(o is start for start in starts)]
        return {operand.buffer for operand in read}.difference(self._outputs)

    def _keeps_order(self, row: RowNest) -> bool:
        """True if what is written at the end of the row may be: nothing may want to read what was there.

        Elements are read and written by one thread in one loop, if just one array is written.
        """
        read = self._read | self._reads(row)
        written = [(r, operand) for r in [*self.nests, row] for operand in r.nest.outputs]
        arrays = {operand.buffer for r, operand in written if not r.is_row(operand)}
        if read & ({operand.buffer for _, operand in written} - arrays):
            return False
        return not read & arrays or len(arrays) == 1

    def lower(self, options: GpuRows) -> ir.Operation:
        """Replaces the nests by kernels, where the last one stands; gives what stands there now: a launch, or
        a choice between that and several blocks for a row.
        """
        last = self.nests[-1].nest.op
        inside = [row.nest.op for row in self.nests]
        kept = [buffer for buffer in self._outputs if is_read_elsewhere(buffer, inside)]
        is_long = self._is_long(last, options)
        if is_long is None:
            made = RowKernel(Kernel(last, "rows"), self.rows, kept).write(self.nests)
        else:
            with ir.InsertionPoint(last), last.location:
                made = ir.Operation.create("scf.if", operands=[is_long], regions=2)
                then = ir.Block.create_at_start(made.regions[0], [])
                with ir.InsertionPoint(then):
                    end = build.create("scf.yield", [], [])
                self._spread(end, kept, options)
                if is_long.owner.name != "arith.constant":
                    with ir.InsertionPoint(ir.Block.create_at_start(made.regions[1], [])):
                        copies = [op.clone().operation for op in inside]
                        build.create("scf.yield", [], [])
                    nests = [
                        row for row in (as_rows(Nest(op), self.rows) for op in copies) if row is not None
                    ]
                    RowKernel(Kernel(copies[-1], "rows"), self.rows, kept).write(nests)
                    for op in copies:
                        op.erase()
            for _ in _lowered(then, options, few=True):
                pass
        for op in inside:
            op.erase()
        return made

    def _is_long(self, anchor: ir.Operation, options: GpuRows) -> ir.Value | None:
        """True if rows are so few and so long that each should have several blocks.

        None if they are not, or cannot: then a value is made neither on the host nor on the device.
        """
        if self._few or all(map(_has_few, self.nests)):
            return None
        if any(row.combiners and in_parts(row.nest) is None for row in self.nests):
            return None
        with ir.InsertionPoint(anchor), anchor.location:
            extents = [[row.nest.extent(axis) for axis in range(row.nest.rank)] for row in self.nests]
            longest = longest_of(self.nests, extents)
            number = product(extents[0][: self.rows])
            found = all_of([number < options.rows, longest >= options.elements])
        return None if build.constant_value(found) == 0 else found

    def _spread(self, end: ir.Operation, kept: list[ir.Value], options: GpuRows) -> None:
        """Writes the nests before an operation, each for itself, with reductions in parts.

        What an accumulator begins with is written after the parts, beside the nest that combines them.
        """
        new: dict[ir.Value, ir.Value] = {}
        fills: dict[ir.Value, ir.Operation] = {}
        with ir.InsertionPoint(end), end.location:
            for buffer in self._outputs:
                if buffer not in kept:
                    new[buffer] = buffer.owner.clone().results[0]
            for row in self.nests:
                outputs = [operand.buffer for operand in row.nest.outputs]
                if not (row.nest.inputs or row.columns) and len(outputs) == 1:
                    fills[outputs[0]] = row.nest.op
                    continue
                wanted = {operand.buffer for operand in row.nest.operands}
                starts = [op for buffer, op in fills.items() if buffer in wanted]
                fills = {buffer: op for buffer, op in fills.items() if buffer not in wanted}
                reduced = {row.nest.outputs[place].buffer for place in row.combiners}
                before = [op for op in starts if op.operands[0] not in reduced]
                _copied(before, new)
                (copy,) = _copied([row.nest.op], new)
                parts = in_parts(Nest(copy)) if row.combiners else None
                if parts is not None:
                    combined = reduce_in_parts(parts, threads=options.threads, blocks=options.blocks)
                    with ir.InsertionPoint(combined):
                        _copied([op for op in starts if op not in before], new)
            _copied(list(fills.values()), new)


def _copied(operations: Sequence[ir.Operation], new: Mapping[ir.Value, ir.Value]) -> list[ir.Operation]:
    """Copies of nests at the insertion point, of other buffers."""
    copies = [op.clone().operation for op in operations]
    for copy in copies:
        for place, operand in enumerate(copy.operands):
            copy.operands[place] = new.get(operand, operand)
    return copies


def _has_few(row: RowNest) -> bool:
    """True if a block is enough for a row of any size that it can have."""
    number = row.most_columns
    return number is not None and number <= _SMALL


def _row_keys(row: RowNest) -> Keys:
    """Keys that are known to be equal to the nest's number of rows."""
    return {
        tuple(size_key(operand.buffer, axis) for axis in range(row.rows))
        for operand in row.nest.operands
        if row.is_own(operand)
    }


def _lowered(block: ir.Block, options: GpuRows, *, few: bool = False) -> Iterator[_Run]:
    """Lowers the runs of a block of the host that have a reduction, with `few` those of rows of few elements.

    A run may begin with the work that reductions start from: fills, and elementwise work on their rows.
    """
    operations = [op.operation for op in block.operations]
    runs: dict[ir.Operation, _Run] = {}
    place = 0
    while place < len(operations):
        # Possible numbers of dimensions of rows in a run that starts here.
        first = operations[place]
        possible = range(Nest(first).rank + 1 if first.name == "linalg.generic" else 0)
        found = [_grown(operations, place, rows, runs, few) for rows in possible]
        useful = [run for run in found if any(row.combiners for row in run.nests)]
        if not useful:
            place += 1
            continue
        best = max(useful, key=lambda run: (len(run.nests), run.rows))
        inside = {row.nest.op for row in best.nests}
        end = operations.index(best.nests[-1].nest.op)
        # What a run has passed over may begin another one.
        between = [op for op in operations[place:end] if op not in inside]
        launch = best.lower(options)
        runs[launch] = best
        operations = [*operations[:place], *between, launch, *operations[end + 1 :]]
        yield best


def _grown(
    operations: list[ir.Operation], start: int, rows: int, runs: dict[ir.Operation, _Run], few: bool
) -> _Run:
    """The longest run from a place on, among the kernels of other runs."""
    run, place, end = _Run(rows, few), start, len(operations)
    while place < end:
        op = operations[place]
        taken = op.name == "linalg.generic" and run.take(op)
        if not taken and (op in runs or _may_be_passed(op, run)):
            # It may as well be done before all of the run, which then may read what it writes.
            taken = run.effects.commutes(runs[op].effects if op in runs else Effects.of(op))
        place += taken
        if (not taken or place == end) and run.unknown:
            # Again, up to the first fill that has turned out to be of something else.
            end = operations.index(next(iter(run.unknown)))
            run, place = _Run(rows, few), start
        elif not taken:
            break
    return run


def _may_be_passed(op: ir.Operation, run: _Run) -> bool:
    """True if a run may go on after an operation: the host does not wait for it, and it is known."""
    if op.name == "linalg.generic":
        return bool(run.nests)
    return op.name not in _ENDS and op.name.partition(".")[0] in ("arith", "affine", "memref")


_ENDS = ("memref.load", "memref.copy", "memref.dealloc")

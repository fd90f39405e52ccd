# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of columns of rows that are read for something else, too: a matrix times a vector and back."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.lifetimes import root_of
from graphc.ir.value import all_of, as_index, flag, larger, parts_of, smaller
from graphc.ir.walk import blocks_outside_loops, functions, inputs_of
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import H200, Kernel, allocate
from graphc.passes.gpu._nest import (
    Effects,
    Nest,
    are_aligned,
    is_read_elsewhere,
    keeps_apart,
    lanes_of,
    wide_operands,
)
from graphc.passes.gpu._notation import barrier, block_id, grid_dim, loads_first, on_first_thread, thread_id
from graphc.passes.gpu._reduce import BlockReduction, Held, Share
from graphc.passes.gpu._rows import Row, RowNest, as_rows, read_in_memory, shape_of_blocks
from graphc.passes.gpu.gpu_elementwise import as_generic
from graphc.passes.gpu.gpu_parts import Parts, in_parts, is_columns
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Vectors of a row that a thread holds, the most elements of one, and the threads of a block.
_GROUPS, _LANES, _THREADS = 4, 4, 256
# Bytes of shared memory for sums.
_SHARED = 40 << 10
# Blocks of a multiprocessor.
_RESIDENT = 2
# Rows of a thread at least, and rows from which on parts of columns are worth it.
_EACH, _ROWS = 8, 4096


@record()
class GpuSweep(Pass):
    """Makes one kernel of a reduction over rows and of what is done to each row for it, such as A'(f(A x)).

    A row of the array is read once, and held in registers while it is reduced (A x), while the values that
    belong to it are computed (f), and while it is added to the sums of the columns, of which each thread has
    those that it reads. A block of threads has every so manyth row; blocks write their parts, which nests
    reduce that follow, as for other reductions of columns. So gradients of linear, logistic and other
    generalised linear models read their data once: value, weights of the rows, and gradient.

    Rows that a block cannot hold, and few of them, are left to other passes. Where sizes are not known, the
    host chooses. The number of blocks follows from the sizes: equal calls give equal bits.

    Attributes:
        blocks: that run at a time: two on each multiprocessor.
        rows: fewer are left to other passes.
    """

    blocks: int = H200.processors * _RESIDENT
    rows: int = _ROWS

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for block in blocks_outside_loops(function):
                for op in [op.operation for op in block.operations if op.operation.name == "linalg.generic"]:
                    found = _found(op)
                    if found and self._lower(found):
                        self.count("kernels")
                        self.count("operations", len(found))

    def _lower(self, operations: list[ir.Operation]) -> bool:
        """Replaces nests, where the last one stands, unless sizes say that it is not worth it."""
        last, kept = operations[-1], _kept(operations)
        kernel = _Sweep(operations, kept)
        with ir.InsertionPoint(last), last.location:
            count, size = kernel.extents
            fits = all_of([count >= self.rows, size > 0, size < kernel.most + 1])
            if build.constant_value(fits) == 0 or not kernel.fits_in_shared_memory:
                return False

            def others() -> None:
                for op in operations:
                    op.clone()

            def own() -> None:
                copies = [op.clone().operation for op in operations]
                _Sweep(copies, kept).write(self.blocks)
                for op in copies:
                    op.erase()

            either(fits, [], own, others)
        for op in operations:
            op.erase()
        return True


class _Part:
    """The part of a sweep that one nest is: its work on a row, and its sums over rows.

    Attributes:
        row: what it does to each row, or reads of it.
        parts: the reduction over rows; None if there is none.
        is_last: whether it has an accumulator for each column.
    """

    def __init__(self, op: ir.Operation) -> None:
        nest, row = Nest(op), None
        self.is_last = nest.rank == 2 and is_columns(nest)
        if not self.is_last:
            nest = Nest(op)  # that one may have been turned round
        is_sum = nest.reduction == [True]
        self.parts: Parts | None = in_parts(nest) if self.is_last or is_sum else None
        if self.is_last:
            row = RowNest(nest, 1, {})
        elif is_sum:
            inner, others = Nest(op), [] if self.parts is None else self.parts.others
            inner.reduction = [False]
            inner.outputs = [inner.outputs[place] for place, _ in others]
            inner.yields = [inner.yields[place] for place, _ in others]
            row = RowNest(inner, 1, {})
        else:
            row = as_rows(nest, 1)
        fails = nest.gathered or (self.parts is None and (self.is_last or any(nest.reduction[:1])))
        self.row = None if fails else row

    @property
    def written(self) -> list[ir.Value]:
        """Arrays with something for each row."""
        return [] if self.is_last or self.row is None else [o.buffer for o in self.row.nest.outputs]


def _found(last: ir.Operation) -> list[ir.Operation]:
    """The nests of a sweep that ends with one, in order; none if there is none."""
    end = _Part(last)
    if not end.is_last or end.row is None or end.parts is None or end.parts.others:
        return []
    operations = [op.operation for op in last.block.operations]
    operations = operations[: operations.index(last)]
    wanted, found = {o.buffer for o in end.row.nest.inputs}, {last: end}
    for number, op in reversed(list(enumerate(operations))):
        if op.name == "linalg.fill" and op.operands[1] in wanted:
            generic = as_generic(op)
            assert generic is not None
            operations[number] = op = generic
        if op.name != "linalg.generic" or not wanted & set(op.operands):
            continue
        part = _Part(op)
        if not part.is_last and part.row is not None and wanted & set(part.written):
            found[op] = part
            wanted |= {o.buffer for o in part.row.nest.inputs}
    inside = [op for op in [*operations, last] if op in found]
    parts = [found[op] for op in inside]
    if not any(part.row is not None and part.row.combiners for part in parts) or not _are_own(parts):
        return []
    return inside if _delayed(inside) else []


def _are_own(parts: Sequence[_Part]) -> bool:
    """True if what is written is read by its own row only, under one name."""
    operands, accumulators = [], list[ir.Value]()
    for part in parts:
        assert part.row is not None
        nest = part.row.nest
        operands += [(o, part.row.is_own(o)) for o in (nest.inputs if part.is_last else nest.operands)]
        accumulators += [] if part.parts is None else [o.buffer for o in part.parts.accumulators]
    return keeps_apart(operands, accumulators, [buffer for part in parts for buffer in part.written])


def _kept(inside: Sequence[ir.Operation]) -> list[ir.Value]:
    """Arrays with something for each row that are read elsewhere."""
    written = dict.fromkeys(buffer for op in inside for buffer in _Part(op).written)
    return [buffer for buffer in written if is_read_elsewhere(buffer, list(inside))]


# -- other operations between those of a sweep --------------------------------------------------------------


def _delayed(inside: Sequence[ir.Operation]) -> bool:
    """Moves what stands between nests, and may not be done before all of them, behind the last.

    A number that is computed along with others, which wait for the nests, is computed for itself.

    Returns:
        whether that is possible.
    """
    block = inside[0].block
    between = [op.operation for op in block.operations]
    between = between[between.index(inside[0]) : between.index(inside[-1]) + 1]
    effects = {op: Effects.of(op) for op in between}

    def must_follow(op: ir.Operation, other: ir.Operation) -> bool:
        return not effects[op].commutes(effects[other]) or bool({*other.results}.intersection(inputs_of(op)))

    while True:
        late: list[ir.Operation] = []
        seen: list[ir.Operation] = []
        blocked = None
        for op in between:
            if op in inside:
                blocked = next(((op, other) for other in late if must_follow(op, other)), None)
                if blocked is not None:
                    break
                seen.append(op)
            elif any(must_follow(op, other) for other in [*seen, *late]):
                late.append(op)
        if blocked is None:
            break
        apart = _computed_apart(*blocked, inside)
        if apart is None:
            return False
        between.insert(between.index(blocked[1]), apart)
        effects |= {op: Effects.of(op) for op in (apart, blocked[0])}
    end = inside[-1]
    for op in reversed(late):
        op.move_after(end)
    return True


def _computed_apart(
    user: ir.Operation, maker: ir.Operation, inside: Sequence[ir.Operation]
) -> ir.Operation | None:
    """A nest for one number of several that another one makes, which reads nothing that nests write."""
    if maker.name != "linalg.generic":
        return None
    nest, written = Nest(maker), {root_of(x) for op in inside for x in _Part(op).written}
    written |= {root_of(o.buffer) for op in inside for o in Nest(op).outputs}
    places = [place for place, o in enumerate(nest.outputs) if o.buffer in list(user.operands)]
    if nest.rank or len(places) != 1 or len(nest.outputs) < 2:
        return None
    value = nest.yields[places[0]]
    needed = nest.needed([value])
    if any(root_of(operand.buffer) in written for operand in needed):
        return None
    buffer = nest.outputs[places[0]].buffer
    with ir.InsertionPoint(maker), maker.location:
        new = allocate([], ir.MemRefType(buffer.type).element_type)

        def body(given: list[ir.Value]) -> list[ir.Value]:
            pairs = zip([operand.argument for operand in needed], given[:-1], strict=True)
            return nest.compute([value], dict(pairs), [])

        made = make_nest([(operand.buffer, []) for operand in needed], [(new, [])], [], body)
    for number, operand in enumerate(user.operands):
        if operand == buffer:
            user.operands[number] = new
    return made


# -- the kernel ---------------------------------------------------------------------------------------------


class _Sweep:
    """Writes the kernel of nests on the same rows.

    Args:
        operations: the nests.
        kept: arrays with something for each row that are read elsewhere.
    """

    def __init__(self, operations: Sequence[ir.Operation], kept: Sequence[ir.Value]) -> None:
        self._anchor, self._kept = operations[-1], kept
        *self._parts, self._last = map(_Part, operations)
        found = [part.row for part in [*self._parts, self._last]]
        self._rows = [row for row in found if row is not None]
        self._nest = self._rows[-1].nest
        self._sums = [part.parts for part in self._parts if part.parts is not None]
        assert self._last.parts is not None
        self._columns = self._last.parts
        written = {buffer for part in self._parts for buffer in part.written}
        nests = [row.nest for row in self._rows if row.columns]
        self._wide = [operand for operand in wide_operands(nests) if operand.buffer not in written]
        self._lanes = min(lanes_of(self._wide), _LANES)
        # What is written where it was read: all threads of the row read it before.
        self._in_place = bool(read_in_memory(self._rows[:-1]) & set(kept))
        self._each = self._lanes * _GROUPS
        # The most columns.
        self.most = _THREADS * self._each

    @property
    def extents(self) -> tuple[ir.Value, ir.Value]:
        """Numbers of rows and columns."""
        return self._nest.extent(0), self._nest.extent(1)

    @property
    def fits_in_shared_memory(self) -> bool:
        """True if a block has room for what its threads have added up."""
        sums = [o for parts in self._sums for o in parts.accumulators]
        sizes = [(self.most, self._columns.accumulators), (_THREADS, sums)]
        return sum(n * dtype_of(o.argument.type).itemsize for n, found in sizes for o in found) <= _SHARED

    def write(self, blocks: int) -> None:
        """The kernel, its launch, and nests that combine its parts."""
        kernel = Kernel(self._anchor, "sweep")
        with kernel.host():
            self._count, self._size = self.extents
            self._width, self._height = shape_of_blocks(larger(self._size, 1), self._each)
            size, width = (build.constant_value(x) for x in (self._size, self._width))
            if size is not None and width is not None:
                self._each = min(self._each, -(-size // (width * self._lanes)) * self._lanes)
            parts = larger(smaller(parts_of(self._count, self._height * _EACH), blocks), 1)
            self._extents = [[row.nest.extent(axis) for axis in range(row.nest.rank)] for row in self._rows]
        results = [self._columns.buffers(kernel, [self._size, parts])]
        results += [found.buffers(kernel, [parts]) for found in self._sums]
        rooms = [(self._columns, self.most), *((found, _THREADS) for found in self._sums)]
        shared = [
            [kernel.shared([size], operand.argument.type) for operand in found.accumulators]
            for found, size in rooms
        ]
        kernel.limit(_THREADS, _RESIDENT)
        with kernel.body():
            self._reduction = BlockReduction(kernel, self._width)
            starts = self._columns.neutral() * self._each
            for found in self._sums:
                starts += found.neutral()

            def rows(behind: ir.Value | None) -> None:
                self._behind = behind
                first, step = block_id() * self._height, grid_dim() * self._height
                values = carry(self._count, starts, self._row, start=first, step=step)
                loads_first(values[0].owner.regions[0].blocks[0])
                self._share_values(values, shared)

            together = flag(False)
            if self._lanes > 1:
                together = are_aligned(self._wide, self._lanes) & (self._size % self._lanes).equals(0)
            either(together, [], lambda: rows(build.const_index(0)), lambda: rows(None))
            barrier()
            self._combine(shared, results)
        kernel.launch([parts], [self._width, self._height])
        for found, buffers in zip([self._columns, *self._sums], results, strict=True):
            found.combine(self._anchor, buffers)

    def _held(self, row: ir.Value, active: ir.Value) -> tuple[Share, Held]:
        share = Share([row], self._lanes, self._behind, thread_id(), self._width, _GROUPS, active)
        return share, Held(share, [self._size], is_aligned=self._behind is not None)

    def _row(self, first: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """The accumulators of a thread after its next row; those without one read the last."""
        row = first + thread_id(1)
        active, row = row < self._count, smaller(row, self._count - 1)
        share, held = self._held(row, active)
        writer = Row(share, self._reduction, self._kept, in_place=self._in_place)
        for work in self._rows:
            if work.columns:
                writer.hold(work, held)
        known: dict[ir.Value, ir.Value] = {}
        for part, sizes in zip(self._parts, self._extents, strict=False):
            assert part.row is not None
            if part.parts is not None:
                nest = part.parts.nest
                known |= writer.numbers(part.row, nest.needed(nest.yields))
            writer.nest(part.row, sizes)
        last = self._rows[-1]
        readers = writer.readers(last)
        writer.store()

        found: list[ir.Value] = []

        def add(parts: Parts, values: dict[ir.Value, ir.Value], indices: Sequence[ir.Value]) -> None:
            own = carried[len(found) : len(found) + len(parts.accumulators)]
            values.update(zip(parts.arguments(), own, strict=True))
            wanted = [parts.nest.yields[place] for place in parts.combiners]
            found.extend(parts.nest.compute(wanted, values, indices))

        columns = self._columns
        needed = columns.nest.needed([columns.nest.yields[place] for place in columns.combiners])
        given = [o.argument for o in needed if o not in columns.accumulators]
        for number, group in enumerate(held.groups):
            for lane in range(self._lanes):
                values = {argument: readers[argument](group, lane) for argument in given}
                add(columns, values, held.indices(number, lane))
        for sums in self._sums:
            add(sums, dict(known), [row])
        return [build.select(active, *pair) for pair in zip(found, carried, strict=True)]

    def _share_values(self, values: Sequence[ir.Value], shared: Sequence[Sequence[ir.Value]]) -> None:
        """Writes what a thread has added up where the block sees it: columns of a row of threads in order."""
        (_, held), rest = self._held(build.const_index(0), flag(True)), list(values)
        columns, *sums = shared
        first = thread_id(1) * (self._width * self._each)
        for number in range(self._each // self._lanes):
            for lane in range(self._lanes):
                place = first + as_index(held.place(number, lane))
                for buffer in columns:
                    buffer[place] = rest.pop(0)
        with when(thread_id().equals(0)):
            for buffers in sums:
                for buffer in buffers:
                    buffer[thread_id(1)] = rest.pop(0)

    def _combine(self, shared: Sequence[Sequence[ir.Value]], results: Sequence[Sequence[ir.Value]]) -> None:
        """Combines what rows of threads have added up, in order, and writes the parts of the block."""
        columns, *sums = shared
        width = self._width * self._each
        start = thread_id(1) * self._width + thread_id()
        with span(self._size, start, self._width * self._height) as column:
            totals = self._total(self._columns, columns, column, width)
            for total, buffer in zip(totals, results[0], strict=True):
                buffer[column, block_id()] = total
        if sums:
            with on_first_thread(), when(thread_id(1).equals(0)):
                for found, buffers, parts in zip(self._sums, sums, results[1:], strict=True):
                    for total, buffer in zip(self._total(found, buffers, 0, 1), parts, strict=True):
                        buffer[block_id()] = total

    def _total(
        self, parts: Parts, buffers: Sequence[ir.Value], place: ir.Value | int, stride: ir.Value | int
    ) -> list[ir.Value]:
        def body(line: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return parts.merge(carried, [buffer[line * stride + place] for buffer in buffers])

        return carry(self._height, parts.neutral(), body)

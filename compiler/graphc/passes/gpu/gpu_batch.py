# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over rows of a batch that are independent: a block of threads runs all iterations for a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.value import all_of, larger, parts_of, smaller
from graphc.ir.walk import copy_with, definition, is_inside, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.loops import Operand
from graphc.lowering.memory.layouts import kept_axes
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._host import HostLoop, replace_loops
from graphc.passes.gpu._kernel import H200, Kernel, allocate, blocks_for
from graphc.passes.gpu._nest import WIDTH, Nest, is_read_elsewhere, load, size_key, store, whole
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    extract,
    read_vector,
    split,
    thread_id,
    zero,
)
from graphc.passes.gpu.gpu_elementwise import all_generic
from graphc.passes.gpu.gpu_matmul import as_product
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_VIEWS = ("memref.cast", "memref.subview")
_HARMLESS = VIEWS | {"memref.alloc", "memref.dim"}
# What computes an index at the insertion point.
Code = Callable[[], ir.Value]
# A buffer that is no view of another, and the axis of it that a batch lies along.
Place = tuple[ir.Value, int]


@record()
class Segment:
    """Nests that a thread does one after the other for an element: the first one may be a reduction, of
    elements that `start` has written; the others are elementwise work on its result's.
    """

    nests: list[Nest]
    start: Nest | None = None

    @property
    def all(self) -> list[Nest]:
        """All nests."""
        return self.nests if self.start is None else [self.start, *self.nests]


class BatchLoop(HostLoop):
    """A loop that blocks of threads can run for their own rows of a batch.

    Attributes:
        segments: what an iteration does, in order; threads wait for each other after each.
        allocations: arrays that live for one iteration.
        given: of values carried into an iteration the initial ones, and those that an iteration hands on.
    """

    def __init__(self, op: ir.Operation) -> None:
        super().__init__(op)
        self.segments: list[Segment] = []
        self.allocations = [inner for inner in self.body if inner.name == "memref.alloc"]
        self.given = dict(zip(self.carried, zip(self.initial, self.yields, strict=True), strict=True))

    @property
    def nests(self) -> list[Nest]:
        """All of the segments."""
        return [nest for segment in self.segments for nest in segment.all]


def as_batch_loop(op: ir.Operation) -> BatchLoop | None:
    """The loop as work on rows of a batch; None if it is something else."""
    all_generic(op)
    loop = BatchLoop(op)
    for inner in loop.body:
        is_nest = inner.name == "linalg.generic"
        if is_nest and not _take(loop, Nest(inner)):
            return None
        if not is_nest and inner.name not in _HARMLESS and not inner.name.startswith("arith."):
            return None
    if not loop.carries_arrays:
        return None
    if not any(any(segment.nests[0].reduction) for segment in loop.segments) or not _keeps_apart(loop):
        return None
    if any(_before(loop, size) is None for alloc in loop.allocations for size in alloc.operands):
        return None
    return loop if all(size_before(loop, nest.outputs[0].buffer, 0) for nest in loop.nests) else None


def _take(loop: BatchLoop, nest: Nest) -> bool:
    """Adds a nest to the last segment, or begins another one."""
    if nest.rank < 1 or nest.reduction[0]:
        return False
    reduced = any(nest.reduction)
    kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
    if any(operand.axes != kept for operand in nest.outputs) or (reduced and len(nest.outputs) != 1):
        return False
    last = loop.segments[-1] if loop.segments else None
    if reduced and last and len(last.nests) == 1 and _is_start(last.nests[0], nest.outputs[0].buffer):
        loop.segments[-1] = Segment([nest], last.nests[0])
    elif not reduced and last and _goes_on(last, nest):
        last.nests.append(nest)
    else:
        loop.segments.append(Segment([nest]))
    return True


def _is_start(nest: Nest, buffer: ir.Value) -> bool:
    """True if a nest writes all of a buffer, from numbers or elements at the same place of other arrays."""
    whole = list(range(nest.rank))
    if len(nest.outputs) != 1 or nest.outputs[0].buffer != buffer or any(nest.reduction) or nest.gathered:
        return False
    if nest.depends_on(nest.yields[0], [nest.outputs[0].argument]):
        return False
    return all(operand.axes == whole for operand in nest.operands)


def _goes_on(segment: Segment, nest: Nest) -> bool:
    """True if a nest is work on the same elements, each of which needs no others that the segment writes."""
    written = {operand.buffer for each in segment.nests for operand in each.outputs}
    whole = list(range(nest.rank))
    own = [operand for operand in nest.operands if operand.axes == whole]
    if not any(operand.buffer in written for operand in own):
        return False
    others = [operand.buffer for operand in nest.inputs if operand.axes != whole]
    return not {root_of(buffer) for buffer in [*others, *nest.gathered]} & {
        root_of(buffer) for buffer in written
    }


def _keeps_apart(loop: BatchLoop) -> bool:
    """True if memory that the loop writes is read and written at the rows of a block only."""
    places: dict[ir.Value, int] = {}
    # What is handed on may be any of the memory that the loop was given.
    for buffer in [*(operand.buffer for nest in loop.nests for operand in nest.outputs), *loop.given]:
        found = _places(loop, buffer, 0, set())
        if found is None or any(places.setdefault(root, axis) != axis for root, axis in found):
            return False
    if any(_places(loop, end, 0, set()) is None for ends in loop.given.values() for end in ends):
        return False
    written = {root_of(view) for view in places}
    if len(written) < len(places):
        return False
    for buffer, rows in _reads(loop):
        if _memory(loop, buffer, set()) & written:
            found = _places(loop, buffer, rows[0], set()) if len(rows) == 1 else None
            if found is None or any(places.get(root) != axis for root, axis in found):
                return False
    return True


def _reads(loop: BatchLoop) -> Iterator[tuple[ir.Value, list[int]]]:
    """Buffers that nests read, with the axes along which that is at their row."""
    for nest in loop.nests:
        for operand in nest.inputs:
            yield operand.buffer, [place for place, axis in enumerate(operand.axes) if axis == 0]
        for read in [op for outer in nest.body for op in [outer, *walk(outer)] if op.name == "memref.load"]:
            made = [definition(index, "linalg.index") for index in read.operands[1:]]
            dims = [None if op is None else ir.IntegerAttr(op.attributes["dim"]).value for op in made]
            yield read.operands[0], [place for place, axis in enumerate(dims) if axis == 0]


def _memory(loop: BatchLoop, buffer: ir.Value, seen: set[ir.Value]) -> set[ir.Value]:
    """The values that a buffer may be a view of."""
    root = root_of(buffer)
    if root not in loop.given or root in seen:
        return {root}
    seen.add(root)
    return {found for end in loop.given[root] for found in _memory(loop, end, seen)}


def _places(loop: BatchLoop, buffer: ir.Value, axis: int, seen: set[ir.Value]) -> set[Place] | None:
    """Strides of an axis of a buffer, from its beginning on, in all memory that it may be; None: unknown.

    What is made before the loop of other memory, and is no part of it, stands for that.
    """
    while (view := definition(buffer, *_VIEWS)) is not None:
        if (inner := axis if view.name == "memref.cast" else _axis_before(view, axis)) is None:
            return None
        buffer, axis = view.operands[0], inner
    if buffer not in loop.given:
        return {(buffer, axis)} if buffer == root_of(buffer) or not is_inside(buffer, loop.op) else None
    if buffer in seen:
        return set()
    seen.add(buffer)
    found: set[Place] = set()
    for end in loop.given[buffer]:
        if (more := _places(loop, end, axis, seen)) is None:
            return None
        found |= more
    return found


def _axis_before(view: ir.Operation, axis: int) -> int | None:
    """The axis of a subview's source that is one of its result, if it begins at 0 and goes in steps of 1."""
    kept = kept_axes(view)
    offsets, strides = (
        list(ir.DenseI64ArrayAttr(view.attributes[f"static_{name}"])) for name in ("offsets", "strides")
    )
    if kept is None or offsets[kept[axis]] != 0 or strides[kept[axis]] != 1:
        return None
    return kept[axis]


# -- rows of a batch times a matrix, by one block ----------------------------------------------------------

# How much of the rows is in shared memory at a time, and how much of the matrix a thread reads at once.
_DEPTH, _AHEAD = 256, 8


@record(frozen=True)
class Form:
    """Division of a product among the threads of a block.

    Attributes:
        rows: of a block.
        groups: of threads, each of which has a part of the additions of all columns, for all rows.
        columns: threads of a group, at most.
        kept: elements of the matrix that a thread has in registers from step to step.
    """

    rows: int
    groups: int
    columns: int
    kept: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block, at most."""
        return self.groups * self.columns


# A matrix that is read in every step is read for some rows; one that stays in registers, and for the rest in
# the cache of the multiprocessor, leaves a row to each of these.
STREAMED, KEPT = Form(4, 4, 128), Form(1, 2, 256, 48)
# Takes the row, the column, what the product is there, and what was asked for before it.
Finish: TypeAlias = Callable[[ir.Value, ir.Value, ir.Value, "list[ir.Value]"], None]
# Takes the row and the column; gives values that `Finish` needs.
Ahead: TypeAlias = Callable[[ir.Value, ir.Value], "list[ir.Value]"]


def is_row_product(nest: Nest) -> bool:
    """True if a nest is a product of rows, along its first dimension, with a matrix."""
    found = as_product(nest)
    if found is None or nest.rank != 3 or len(nest.body) > 2 or nest.body[0].name == "complex.mul":
        return False
    return nest.reduction[2] and all(len(operand.axes) == 2 for operand in nest.inputs)


def sides(nest: Nest) -> tuple[Operand, Operand]:
    """The rows and the matrix."""
    first, second = nest.inputs
    return (first, second) if 0 in first.axes else (second, first)


class BlockProduct:
    """Products of a kernel whose blocks have threads along x and groups of them along y.

    An element of the matrix is read once a block, or once and for all. The rows are in shared memory. The
    parts of the groups are added up in order.

    Args:
        kernel: it gets shared memory for each element type.
        form: of its blocks.
    """

    def __init__(self, kernel: Kernel, form: Form) -> None:
        self._kernel, self._form = kernel, form
        self._buffers: dict[str, tuple[ir.Value, ir.Value]] = {}

    def keep(self, right: Operand) -> list[ir.Value]:
        """The elements of a matrix that a thread keeps, at the insertion point, which is before the loop."""
        depth, columns = (build.dim(right.buffer, right.axes.index(axis)) for axis in (2, 1))
        column = smaller(thread_id(), columns - 1)
        own = thread_id(1) * (_DEPTH // self._form.groups)
        found: list[ir.Value] = []
        for number in range(self._form.kept):
            deep = own + number
            value = load(right, [column, column, smaller(deep, depth - 1)])
            found.append(build.select(deep < depth, value, zero(value.type)))
        return found

    def write(
        self,
        nest: Nest,
        right: Operand,
        kept: list[ir.Value],
        first: ir.Value,
        finish: Finish,
        ahead: tuple[Sequence[ir.Type], Ahead],
    ) -> None:
        """The product, of rows from `first` on, at the insertion point.

        Args:
            nest: a product.
            right: the matrix, as the nest or otherwise; `kept` is what the thread has of it.
            first: the block's first row.
            finish: writes what takes an element's sum; one thread does for each element.
            ahead: types of values, and what asks for them; it takes as long as the product, so that the
                thread need not wait.
        """
        form, (kinds, ask) = self._form, ahead
        self._nest, self._right, self._first, self._kept = nest, right, first, kept
        self._left, self._kind = sides(nest)[0], nest.outputs[0].argument.type
        if str(self._kind) not in self._buffers:
            left = self._kernel.shared([form.rows, _DEPTH], self._kind, alignment=WIDTH)
            parts = self._kernel.shared([form.groups, form.rows, form.columns], self._kind)
            self._buffers[str(self._kind)] = left, parts
        self._staged, self._parts = self._buffers[str(self._kind)]
        self._lanes = max(WIDTH // int(dtype_of(self._kind).itemsize), 1)
        self._sizes = [nest.extent(axis) for axis in range(3)]
        self._tx, self._ty, self._width = thread_id(), thread_id(1), block_dim()
        with span(self._sizes[1], step=self._width) as start:
            column = start + self._tx
            self._column = smaller(column, self._sizes[1] - 1)
            row = self._first + self._ty
            conditions = [row < self._sizes[0], column < self._sizes[1]]
            if form.rows < form.groups:
                conditions.append(self._ty < form.rows)
            inside = all_of(conditions)
            values = either(inside, kinds, lambda: ask(row, column), lambda: list(map(zero, kinds)))
            zeros = [zero(self._kind)] * form.rows
            sums = carry(self._sizes[2], zeros, self._chunk, step=_DEPTH)
            for number, value in enumerate(sums):
                self._parts[self._ty, number, self._tx] = value
            barrier()
            with when(inside):
                sums = [self._parts[group, self._ty, self._tx] for group in range(form.groups)]
                finish(row, column, reduce(add, sums), values)
            barrier()

    def _chunk(self, start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one part of the rows."""
        self._stage(start)
        barrier()
        own = self._ty * (_DEPTH // self._form.groups)
        begin = start + own
        left = self._sizes[2] - begin
        count = smaller(larger(left, 0), _DEPTH // self._form.groups)
        whole = count // _AHEAD * _AHEAD
        kept = len(self._kept)

        def added(place: ir.Value, matrix: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            lefts = [self._row_part(row, place) for row in range(self._form.rows)]
            for i, right in enumerate(matrix):
                sums = [self._add(part[i], right, total) for part, total in zip(lefts, sums, strict=True)]
            return sums

        def several(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return added(own + at, [matrix(begin + (at + i)) for i in range(_AHEAD)], sums)

        def one(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            right, place = matrix(begin + at), own + at
            lefts = [self._staged[row, place] for row in range(self._form.rows)]
            return [self._add(left, right, total) for left, total in zip(lefts, sums, strict=True)]

        def matrix(deep: ir.Value) -> ir.Value:
            return load(self._right, [self._column, self._column, deep])

        for first in range(0, kept, _AHEAD):
            sums = added(own + first, self._kept[first : first + _AHEAD], sums)
        sums = carry(whole, sums, several, start=kept, step=_AHEAD)
        sums = carry(count, sums, one, start=larger(whole, kept) if kept else whole)
        barrier()
        return sums

    def _stage(self, start: ir.Value) -> None:
        """Copies a part of the rows to shared memory, with zeros where there are none."""
        thread = self._ty * self._width + self._tx
        threads = self._width * self._form.groups
        with span(self._form.rows * _DEPTH, start=thread, step=threads) as element:
            r, k = element // _DEPTH, element % _DEPTH
            row, deep = self._first + r, start + k
            self._staged[r, k] = zero(self._kind)
            with when((row < self._sizes[0]) & (deep < self._sizes[2])):
                self._staged[r, k] = load(self._left, [row, row, deep])

    def _row_part(self, row: int, at: ir.Value) -> list[ir.Value]:
        """Neighbouring elements of a row in shared memory."""
        found: list[ir.Value] = []
        for start in range(0, _AHEAD, self._lanes):
            vector = read_vector(self._staged, [row, at + start], self._lanes, WIDTH)
            found += [extract(vector, lane) for lane in range(self._lanes)]
        return found[:_AHEAD]

    def _add(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        nest = self._nest
        values = {self._left.argument: left, self._right.argument: right, nest.outputs[0].argument: total}
        return nest.compute(nest.yields, values, [])[0]


# -- sizes that the host has to know -----------------------------------------------------------------------


def _before(loop: BatchLoop, value: ir.Value) -> Code | None:
    """Code that computes an index before the loop; None if that cannot be."""
    if not is_inside(value, loop.op):
        return lambda: value
    if (op := definition(value)) is None:
        return None
    if op.name == "memref.dim":
        axis = build.constant_value(op.operands[1])
        return None if axis is None else size_before(loop, op.operands[0], axis)
    known = [code for operand in op.operands if (code := _before(loop, operand)) is not None]
    if not op.name.startswith("arith.") or len(known) < len(op.operands):
        return None

    def copy() -> ir.Value:
        return copy_with(op, {x: code() for x, code in zip(op.operands, known, strict=True)}).results[0]

    return copy


def size_before(loop: BatchLoop, buffer: ir.Value, axis: int) -> Code | None:
    """Code that computes a size of a buffer before the loop; None if that cannot be."""
    found = size_key(buffer, axis, loop.starts)
    if isinstance(found, int):
        return partial(build.const_index, found)
    if isinstance(found, tuple):
        return None if is_inside(found[0], loop.op) else partial(build.dim, *found)
    return _before(loop, found)


def _made(code: Code | None) -> ir.Value:
    assert code is not None, "it was asked whether it is known"
    return code()


def is_outside(loop: BatchLoop, buffer: ir.Value) -> bool:
    """True if a buffer is made before the loop, which does not write it."""
    return not is_inside(buffer, loop.op) and root_of(buffer) not in _written(loop)


def _written(loop: BatchLoop) -> set[ir.Value]:
    """The memory that a loop writes."""
    outputs = [o for segment in loop.segments for nest in segment.nests for o in nest.outputs]
    return {root for o in outputs for root in _memory(loop, o.buffer, set())}


_BLOCKS = (1 << 31) - 1


class BatchKernel:
    """Writes the kernel of a loop, whose results nothing uses: they go to arrays, by their numbers."""

    def __init__(self, work: BatchLoop, arrays: dict[int, ir.Value], form: Form) -> None:
        self._work, self._op, self._arrays, self._form = work, work.op, arrays, form
        self._kernel = Kernel(work.op, "recurrent")
        self._hoisted: set[ir.Value] = set()

    def lower(self) -> None:
        """The kernel and its launch."""
        work, op = self._work, self._op
        with self._kernel.host():
            grid, threads = self._blocks()
            turned = {nest: self._turned(nest) for nest in products_of(work)}
            for alloc in work.allocations:
                self._hoist(alloc)
        products = BlockProduct(self._kernel, self._form)
        with self._kernel.body():
            self._row = block_id() * self._form.rows
            kept = {nest: products.keep(matrix) for nest, matrix in turned.items()}
            self._kernel.take(op)
            for number, array in self._arrays.items():
                self._copy(whole(op.results[number]), whole(array))
        for segment in work.segments:
            first = segment.nests[0]
            with ir.InsertionPoint(segment.nests[-1].op), first.op.location:
                if first in turned:
                    self._product(segment, products, turned[first], kept[first])
                else:
                    self._elements(segment)
                barrier()
        for nest in work.nests:
            nest.op.erase()
        self._kernel.limit(self._form.threads)
        self._kernel.launch([grid], threads)

    # -- on the host ---------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[ir.Value, list[ir.Value]]:
        """Number of blocks and of threads: in a group as many as the longest row has elements."""
        work = self._work
        rows, columns = build.const_index(0), build.const_index(1)
        for buffer in {n.outputs[0].buffer: n for s in work.segments for n in s.nests}:
            first, *others = (
                size_before(work, buffer, axis) for axis in range(ir.MemRefType(buffer.type).rank)
            )
            rows = larger(rows, _made(first))
            if all(others):
                columns = larger(columns, product([_made(size) for size in others]))
        warps, form = blocks_for(columns, WARP, self._form.columns // WARP), self._form
        return blocks_for(rows, form.rows, _BLOCKS), [warps * WARP, build.const_index(form.groups)]

    def _turned(self, nest: Nest) -> Operand:
        """The matrix of a product, as a copy where neighbouring threads would not read neighbours."""
        matrix = sides(nest)[1]
        if matrix.axes[-1] != 2 or not is_outside(self._work, matrix.buffer):
            return matrix
        kind = ir.MemRefType(matrix.buffer.type)
        copy = allocate(build.dims(matrix.buffer)[::-1], kind.element_type)
        _copy(matrix.buffer, copy, [1, 0])
        return Operand(copy, [2, 1], matrix.argument)

    def _hoist(self, alloc: ir.Operation) -> None:
        """Takes memory that each iteration would take before the loop."""
        kind = ir.MemRefType(alloc.results[0].type)
        given = iter(list(alloc.operands))
        sizes = [
            build.const_index(size) if size >= 0 else _made(_before(self._work, next(given)))
            for size in kind.shape
        ]
        array = allocate(sizes, kind.element_type)
        if array.type != kind:
            array = build.create("memref.cast", [kind], [array]).result
        for operand in [operand for nest in self._work.nests for operand in nest.operands]:
            if operand.buffer == alloc.results[0]:
                operand.buffer = array
        alloc.results[0].replace_all_uses_with(array)
        alloc.erase()
        self._hoisted.add(array)

    # -- in the kernel -------------------------------------------------------------------------------------

    def _copy(self, source: Operand, target: Operand) -> None:
        """The block's rows of an array."""
        self._each(build.dims(target.buffer), lambda at: store(load(source, at), target, at))

    def _each(self, sizes: list[ir.Value], work: Callable[[list[ir.Value]], None]) -> None:
        """Does something with each element of the block's rows of an array of some sizes."""
        columns = product(sizes[1:])
        width = block_dim()
        thread = thread_id(1) * width + thread_id()
        with span(columns * self._form.rows, start=thread, step=width * self._form.groups) as element:
            row = self._row + element // columns
            with when(row < sizes[0]):
                work([row, *split(element % columns, sizes[1:])])

    def _product(
        self, segment: Segment, products: BlockProduct, matrix: Operand, kept: list[ir.Value]
    ) -> None:
        """A product, and what is done with its elements."""
        nest = segment.nests[0]
        output = nest.outputs[0]
        written = _written(self._work)
        # What the work on its elements reads of arrays that the loop does not write.
        early = [
            operand
            for other in segment.nests[1:]
            for operand in other.needed(other.yields)
            if not _memory(self._work, operand.buffer, set()) & written
        ]

        def ahead(row: ir.Value, column: ir.Value) -> list[ir.Value]:
            before = self._before(segment, [row, column])
            return [before, *(load(operand, [row, column]) for operand in early)]

        def finish(row: ir.Value, column: ir.Value, total: ir.Value, values: list[ir.Value]) -> None:
            value = values[0] + total
            known = dict(zip([operand.argument for operand in early], values[1:], strict=True))
            self._chain(segment, [row, column], {output.buffer: value}, known)

        kinds = [operand.argument.type for operand in (output, *early)]
        products.write(nest, matrix, kept, self._row, finish, (kinds, ahead))

    def _elements(self, segment: Segment) -> None:
        """Work on elements, with reductions that a thread does for itself."""
        nest = segment.nests[0]
        kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
        sizes = [nest.extent(axis) for axis in range(nest.rank)]

        def element(indices: list[ir.Value]) -> None:
            if not any(nest.reduction):
                self._chain(segment, indices, {}, {}, first=0)
                return
            place = [build.const_index(0)] * nest.rank
            for axis, index in zip(kept, indices, strict=True):
                place[axis] = index
            total = nest.reduce_at(place, sizes, [self._before(segment, indices)])
            self._chain(segment, indices, {nest.outputs[0].buffer: total[0]}, {})

        self._each([sizes[axis] for axis in kept], element)

    def _before(self, segment: Segment, indices: list[ir.Value]) -> ir.Value:
        """Initial value of an element of a reduction's result."""
        start = segment.start
        if start is not None:
            return start.compute(start.yields, start.read(indices), indices)[0]
        return load(whole(segment.nests[0].outputs[0].buffer), indices)

    def _chain(
        self,
        segment: Segment,
        indices: list[ir.Value],
        held: dict[ir.Value, ir.Value],
        known: Mapping[ir.Value, ir.Value],
        first: int = 1,
    ) -> None:
        """The nests of a segment from one on, for an element; `held` is what buffers hold of it, `known` what
        operands have been read.
        """
        for buffer, value in held.items():
            self._store(segment, buffer, value, indices)
        for nest in segment.nests[first:]:
            whole = list(range(nest.rank))
            given = {
                o.argument: held[o.buffer] for o in nest.operands if o.axes == whole and o.buffer in held
            }
            found = nest.compute(nest.yields, nest.read(indices, {**known, **given}), indices)
            held = {buffer: value for buffer, value in held.items() if self._is_temporary(segment, buffer)}
            for operand, value in zip(nest.outputs, found, strict=True):
                held[operand.buffer] = value
                self._store(segment, operand.buffer, value, indices)

    def _store(self, segment: Segment, buffer: ir.Value, value: ir.Value, indices: list[ir.Value]) -> None:
        if not self._is_temporary(segment, buffer):
            store(value, whole(buffer), indices)

    def _is_temporary(self, segment: Segment, buffer: ir.Value) -> bool:
        """True if only the nests of a segment use an array, which lives for one iteration."""
        inside = [nest.op for nest in segment.all]
        return buffer in self._hoisted and not is_read_elsewhere(buffer, inside)


def _copy(source: ir.Value, target: ir.Value, axes: Sequence[int] | None = None) -> None:
    """A nest that copies an array, whose axes may be in another order."""
    own = range(ir.MemRefType(target.type).rank)
    make_nest([(source, own if axes is None else axes)], [(target, own)], [False] * len(own), lambda x: x[:1])


def products_of(work: BatchLoop) -> list[Nest]:
    """The products of rows with a matrix."""
    return [segment.nests[0] for segment in work.segments if is_row_product(segment.nests[0])]


# -- which form --------------------------------------------------------------------------------------------


def replace_loop(work: BatchLoop) -> None:
    """Writes the loop as what takes the least time for its sizes, which are compared in the call."""
    op = work.op
    with ir.InsertionPoint(op), op.location:
        arrays = work.arrays(lambda number: build.dims(work.initial[number]))

        def kernel(form: Form) -> None:
            copy = as_batch_loop(op.clone())
            assert copy is not None, "the loop is one"
            BatchKernel(copy, arrays, form).lower()

        def steps() -> None:
            copy = op.clone()
            _fix_places(copy)
            for number, array in arrays.items():
                _copy(copy.results[number], array)

        _least(work, kernel, steps)
    op.erase()


def _fix_places(op: ir.Operation) -> None:
    """Copies the rows of products to an array that is the same in each step of a loop of launches.

    A library is asked for products at fixed places; a state is at another one in each step.
    """
    work = as_batch_loop(op)
    assert work is not None, "the loop is one"
    for nest in products_of(work):
        rows = sides(nest)[0]
        sizes = [size_before(work, rows.buffer, axis) for axis in (0, 1)]
        if not is_inside(rows.buffer, op) or not all(sizes):
            continue
        with ir.InsertionPoint(op):
            array = allocate(list(map(_made, sizes)), ir.MemRefType(rows.buffer.type).element_type)
        with ir.InsertionPoint(nest.op):
            _copy(rows.buffer, array)
        nest.op.operands[[o is rows for o in nest.operands].index(True)] = array


def _least(work: BatchLoop, kernel: Callable[[Form], None], steps: Callable[[], None]) -> None:
    """Makes what takes the least time, at the insertion point.

    A step of the kernel that reads its matrix takes what that takes for each 4 rows, a step of the one that
    keeps it what a row takes, each as often as there are more blocks than multiprocessors; a product as a
    launch takes no less than a launch, and for many or wide rows what its arithmetic takes.
    """
    of, products = H200, products_of(work)
    floats = [nest for nest in products if isinstance(nest.outputs[0].argument.type, ir.F32Type | ir.F64Type)]
    outside = [nest for nest in floats if is_outside(work, sides(nest)[1].buffer)]
    if not products or len(outside) < len(products):
        kernel(STREAMED)
        return
    rows = _made(size_before(work, products[0].outputs[0].buffer, 0))
    matrices = [sides(nest)[1] for nest in products]
    sizes = [build.dims(matrix.buffer) for matrix in matrices]
    elements = reduce(add, [one * two for one, two in sizes])
    bytes_ = elements * int(dtype_of(products[0].outputs[0].argument.type).itemsize)
    streamed = parts_of(rows, STREAMED.rows * of.processors) * (bytes_ // of.read + of.step)
    launched = rows * elements // of.multiplied + (of.product * len(products) + of.others)
    kept = None
    if len(products) == 1 and isinstance(products[0].outputs[0].argument.type, ir.F32Type):
        fits = all_of([larger(*sizes[0]) <= _DEPTH, smaller(*sizes[0]) > 0])
        kept = parts_of(rows, KEPT.rows * of.processors) * of.kept_step
        kept = build.select(fits, kept, launched + streamed)

    def in_kernels() -> None:
        if kept is None:
            kernel(STREAMED)
        else:
            either(kept < streamed, [], lambda: kernel(KEPT), lambda: kernel(STREAMED))

    best = streamed if kept is None else smaller(kept, streamed)
    either(launched < best, [], steps, in_kernels)


@record()
class GpuBatch(Pass):
    """Makes one kernel of a loop whose body has reductions, such as the products of a recurrent network.

    That is so where all arrays that the loop writes have the batch as an axis, and nothing reads another row
    of them than its own: the first dimension of each nest is the batch. A block of threads runs all
    iterations for some rows, so that its threads wait for each other only, and not for the grid. The gradient
    of such a loop is one again; what it sums over the batch has become a product after the loop.

    Products keep the rows in shared memory, in parts of 256 elements; groups of threads each have a part of
    the additions for all rows of the block, and the parts are added up in order. There are up to three forms,
    of which the sizes choose in the call the one that takes the least time by a model (`_least`). A float32
    matrix of at most 256 x 256 stays on the multiprocessor for the whole loop, a part of it in registers and
    the rest in its cache, and a block has one row. Else a block reads the matrix in each iteration, for 4
    rows. Where that takes longer than launching a product for all rows, the loop stays one of launches. A
    matrix that lies across is copied once before the loop. Elementwise work on a product's result is done by
    the thread that has the sum. Arrays that live for one iteration are taken once, or not at all.

    Source: G. Diamos et al., "Persistent RNNs: stashing recurrent weights on-chip" (2016), for the loop
    within the kernel; there the weights stay in registers and the grid waits for each step.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        self.count("kernels", replace_loops(module, as_batch_loop, replace_loop))

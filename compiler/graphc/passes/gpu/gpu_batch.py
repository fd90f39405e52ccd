# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over rows of a batch that have nothing to do with each other.

The kernel of a loop over a batch: a block of threads runs all iterations for its rows.

A few rows times a matrix, by one block of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.lifetimes import VIEWS
from graphc.ir.value import all_of, larger, smaller
from graphc.ir.walk import functions, is_inside, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, span, when
from graphc.lowering.partial_reductions import constant
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._host import is_poll, polls_of, replace_loops
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    extract,
    read_vector,
    thread_id,
)
from graphc.passes.gpu._rows import split
from graphc.passes.gpu.gpu_elementwise import NESTS, as_generic
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_VIEWS = ("memref.cast", "memref.subview")
_HARMLESS = VIEWS | {"memref.alloc", "memref.dim"}
# A buffer that is no view of another, and the axis of it that a batch lies along.
Place = tuple[ir.Value, int]


@record()
class Segment:
    """Nests that a thread does one after the other for an element.

    Attributes:
        nests: the first one may be a reduction; the others are elementwise work on its result's elements.
        fill: what writes a number to the result of the first one before.
    """

    nests: list[Nest]
    fill: Nest | None = None


@record()
class BatchLoop:
    """A loop that blocks of threads can run for their own rows of a batch.

    Attributes:
        op: the `scf.for`.
        segments: what an iteration does, in order; threads wait for each other after each.
        allocations: arrays that live for one iteration.
    """

    op: ir.Operation
    segments: list[Segment] = field(default_factory=list)
    allocations: list[ir.Operation] = field(default_factory=list)

    @cached_property
    def carried(self) -> dict[ir.Value, tuple[ir.Value, ir.Value]]:
        """Values carried into an iteration: the initial ones, or those that an iteration hands on."""
        block = self.op.regions[0].blocks[0]
        *_, end = block.operations
        first = list(self.op.operands)[3:]
        yields = list(end.operation.operands)
        return dict(zip(list(block.arguments)[1:], zip(first, yields, strict=True), strict=True))


def as_batch_loop(op: ir.Operation, polls: frozenset[str]) -> BatchLoop | None:
    """The loop as work on rows of a batch; None if it is something else."""
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations][:-1]
    body = [inner for inner in body if not is_poll(inner, polls)]
    if not all(isinstance(value.type, ir.MemRefType) for value in list(block.arguments)[1:]):
        return None
    loop = BatchLoop(op)
    for inner in body:
        if inner.name == "linalg.generic":
            if not _take(loop, Nest(inner)):
                return None
        elif inner.name not in _HARMLESS and not inner.name.startswith("arith."):
            return None
        if inner.name == "memref.alloc":
            loop.allocations.append(inner)
    if not any(any(segment.nests[0].reduction) for segment in loop.segments) or not _keeps_apart(loop):
        return None
    if not all(_is_sized_outside(loop, alloc) for alloc in loop.allocations):
        return None
    nests = [nest for segment in loop.segments for nest in segment.nests]
    return loop if all(knows_size(loop, nest.outputs[0].buffer, 0) for nest in nests) else None


def _take(loop: BatchLoop, nest: Nest) -> bool:
    """Adds a nest to the last segment, or begins another one."""
    if nest.rank < 1 or nest.reduction[0]:
        return False
    reduced = any(nest.reduction)
    kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
    if any(operand.axes != kept for operand in nest.outputs) or (reduced and len(nest.outputs) != 1):
        return False
    last = loop.segments[-1] if loop.segments else None
    if reduced:
        begun = Segment([nest])
        buffer = nest.outputs[0].buffer
        if last is not None and len(last.nests) == 1 and _is_fill(last.nests[0], buffer):
            loop.segments.pop()
            begun.fill = last.nests[0]
        loop.segments.append(begun)
    elif last is not None and _goes_on(last, nest):
        last.nests.append(nest)
    else:
        loop.segments.append(Segment([nest]))
    return True


def _is_fill(nest: Nest, buffer: ir.Value) -> bool:
    """True if a nest writes one number, from outside, to all of a buffer."""
    if nest.inputs or nest.body or len(nest.outputs) != 1 or nest.outputs[0].buffer != buffer:
        return False
    return nest.yields[0] != nest.outputs[0].argument


def _goes_on(segment: Segment, nest: Nest) -> bool:
    """True if a nest is work on the same elements, each of which needs no others that the segment writes."""
    written = {operand.buffer for each in segment.nests for operand in each.outputs}
    whole = list(range(nest.rank))
    own = [operand for operand in nest.operands if operand.axes == whole]
    if not any(operand.buffer in written for operand in own):
        return False
    others = [operand.buffer for operand in nest.inputs if operand.axes != whole]
    return not {_root(buffer) for buffer in [*others, *nest.gathered]} & {_root(buffer) for buffer in written}


def _root(buffer: ir.Value) -> ir.Value:
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _HARMLESS - {"memref.alloc"}:
        buffer = buffer.owner.operands[0]
    return buffer


def _keeps_apart(loop: BatchLoop) -> bool:
    """True if memory that the loop writes is read and written at the rows of a block only."""
    nests = [nest for segment in loop.segments for nest in segment.nests]
    places: dict[ir.Value, int] = {}
    for nest in nests:
        for operand in nest.outputs:
            found = _places(loop, operand.buffer, 0, set())
            if found is None or any(places.setdefault(root, axis) != axis for root, axis in found):
                return False
    # What is handed on may be any of the memory that the loop was given.
    for argument, ends in loop.carried.items():
        found = _places(loop, argument, 0, set())
        if found is None or any(_places(loop, end, 0, set()) is None for end in ends):
            return False
        if any(places.setdefault(root, axis) != axis for root, axis in found):
            return False
    if len({_root(view) for view in places}) < len(places):
        return False
    return all(_reads_own(loop, nest, places) for nest in nests)


def _reads_own(loop: BatchLoop, nest: Nest, places: dict[ir.Value, int]) -> bool:
    """True if what a nest reads of written memory is of its own row."""
    written = {_root(view) for view in places}
    for operand in nest.inputs:
        if not _memory(loop, operand.buffer, set()) & written:
            continue
        if operand.axes.count(0) != 1:
            return False
        found = _places(loop, operand.buffer, operand.axes.index(0), set())
        if found is None or any(places.get(root) != axis for root, axis in found):
            return False
    for read in [op for outer in nest.body for op in [outer, *walk(outer)] if op.name == "memref.load"]:
        buffer, *indices = read.operands
        if not _memory(loop, buffer, set()) & written:
            continue
        rows = [axis for axis, index in enumerate(indices) if _is_row(index)]
        found = _places(loop, buffer, rows[0], set()) if len(rows) == 1 else None
        if found is None or any(places.get(root) != axis for root, axis in found):
            return False
    return True


def _is_row(index: ir.Value) -> bool:
    owner = index.owner
    if isinstance(owner, ir.Block) or owner.name != "linalg.index":
        return False
    return ir.IntegerAttr(owner.attributes["dim"]).value == 0


def _memory(loop: BatchLoop, buffer: ir.Value, seen: set[ir.Value]) -> set[ir.Value]:
    """The values that a buffer may be a view of."""
    root = _root(buffer)
    if root not in loop.carried or root in seen:
        return {root}
    seen.add(root)
    return {found for end in loop.carried[root] for found in _memory(loop, end, seen)}


def _places(loop: BatchLoop, buffer: ir.Value, axis: int, seen: set[ir.Value]) -> set[Place] | None:
    """Strides of an axis of a buffer, from its beginning on, in all memory that it may be; None: unknown.

    What is made before the loop of other memory, and is no part of it, stands for that.
    """
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _VIEWS:
        inner = axis if buffer.owner.name == "memref.cast" else _axis_before(buffer.owner.operation, axis)
        if inner is None:
            return None
        buffer, axis = buffer.owner.operands[0], inner
    if buffer not in loop.carried:
        return {(buffer, axis)} if buffer == _root(buffer) or not is_inside(buffer, loop.op) else None
    if buffer in seen:
        return set()
    seen.add(buffer)
    found: set[Place] = set()
    for end in loop.carried[buffer]:
        more = _places(loop, end, axis, seen)
        if more is None:
            return None
        found |= more
    return found


def _axis_before(view: ir.Operation, axis: int) -> int | None:
    """The axis of a subview's source that is one of its result, if it begins at 0 and goes in steps of 1."""
    sizes, offsets, strides = (
        list(ir.DenseI64ArrayAttr(view.attributes[f"static_{name}"]))
        for name in ("sizes", "offsets", "strides")
    )
    rank = ir.MemRefType(view.results[0].type).rank
    kept = [i for i, size in enumerate(sizes) if size != 1] if len(sizes) > rank else list(range(rank))
    if len(kept) != rank or offsets[kept[axis]] != 0 or strides[kept[axis]] != 1:
        return None
    return kept[axis]


# -- sizes that the host has to know -----------------------------------------------------------------------


def _is_sized_outside(loop: BatchLoop, alloc: ir.Operation) -> bool:
    return all(_can_move(loop, size) for size in alloc.operands)


def _can_move(loop: BatchLoop, value: ir.Value) -> bool:
    """True if an index can be computed before the loop."""
    if not is_inside(value, loop.op):
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "memref.dim":
        axis = build.constant_value(owner.operands[1])
        return axis is not None and knows_size(loop, owner.operands[0], axis)
    return owner.name.startswith("arith.") and all(_can_move(loop, operand) for operand in owner.operands)


def knows_size(loop: BatchLoop, buffer: ir.Value, axis: int) -> bool:
    """True if a size of a buffer can be computed before the loop."""
    found = _size(loop, buffer, axis)
    return isinstance(found, tuple | int) or (found is not None and _can_move(loop, found))


def size_before(loop: BatchLoop, buffer: ir.Value, axis: int) -> ir.Value:
    """A size of a buffer, computed at the insertion point, which is before the loop."""
    found = _size(loop, buffer, axis)
    assert found is not None, "it was asked whether it is known"
    if isinstance(found, int):
        return build.const_index(found)
    return build.dim(*found) if isinstance(found, tuple) else moved(loop, found)


def _size(loop: BatchLoop, buffer: ir.Value, axis: int) -> int | ir.Value | tuple[ir.Value, int] | None:
    """A number, an index, or an axis of a buffer from outside of the loop."""
    known = ir.MemRefType(buffer.type).shape[axis]
    if known >= 0:
        return int(known)
    if buffer in loop.carried:
        return _size(loop, loop.carried[buffer][0], axis)
    if not is_inside(buffer, loop.op):
        return buffer, axis
    owner = buffer.owner.operation
    if owner.name == "memref.cast":
        return _size(loop, owner.operands[0], axis)
    if owner.name == "memref.alloc":
        shape = list(ir.MemRefType(buffer.type).shape)
        return owner.operands[sum(size < 0 for size in shape[:axis])]
    return _size_of_view(owner, axis) if owner.name == "memref.subview" else None


def _size_of_view(view: ir.Operation, axis: int) -> ir.Value | None:
    """The operand of a subview that is a size of its result."""
    counts = list(ir.DenseI32ArrayAttr(view.attributes["operandSegmentSizes"]))
    sizes = list(ir.DenseI64ArrayAttr(view.attributes["static_sizes"]))
    given = iter(list(view.operands)[sum(counts[:2]) : sum(counts[:3])])
    dynamic = [next(given) if size == build.DYNAMIC else None for size in sizes]
    rank = ir.MemRefType(view.results[0].type).rank
    if len(sizes) > rank:
        dynamic = [x for x, size in zip(dynamic, sizes, strict=True) if size != 1]
    return dynamic[axis] if len(dynamic) == rank else None


def moved(loop: BatchLoop, value: ir.Value) -> ir.Value:
    """An index, computed at the insertion point, which is before the loop."""
    if not is_inside(value, loop.op):
        return value
    operands = list(value.owner.operands)
    if value.owner.name == "memref.dim":
        axis = build.constant_value(operands[1])
        assert axis is not None, "it was asked whether it is known"
        return size_before(loop, operands[0], axis)
    copy = value.owner.clone()
    for place, operand in enumerate(operands):
        copy.operands[place] = moved(loop, operand)
    return copy.results[0]


def is_outside(loop: BatchLoop, buffer: ir.Value) -> bool:
    """True if a buffer is made before the loop, which does not write it."""
    nests = [nest for segment in loop.segments for nest in segment.nests]
    written = {root for nest in nests for o in nest.outputs for root in _memory(loop, o.buffer, set())}
    return not is_inside(buffer, loop.op) and _root(buffer) not in written


_PRODUCTS = (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"])
# How much of the rows is in shared memory at a time, and how much of the matrix a thread reads at once.
_DEPTH, _AHEAD = 256, 8
# Bytes of a load from shared memory.
_WIDTH = 16
# Takes the row, the column and what the product is there.
Finish = Callable[[ir.Value, ir.Value, ir.Value], None]


def is_product(nest: Nest) -> bool:
    """True if a nest is a product of rows, along its first dimension, with a matrix."""
    if [op.name for op in nest.body] not in _PRODUCTS or nest.rank != 3 or len(nest.inputs) != 2:
        return False
    if nest.reduction != [False, False, True] or nest.indexed:
        return False
    left, right = sides(nest)
    return sorted(left.axes, key=str) == [0, 2] and sorted(right.axes, key=str) == [1, 2]


def sides(nest: Nest) -> tuple[Operand, Operand]:
    """The rows and the matrix."""
    first, second = nest.inputs
    return (first, second) if 0 in first.axes else (second, first)


class BlockProduct:
    """Products of a kernel whose blocks have threads along x and `rows` groups of them along y.

    A group has a part of the additions of all columns, for all rows: an element of the matrix is read once a
    block. The rows are in shared memory. The parts are added up in order.

    Args:
        kernel: it gets shared memory for each element type.
        rows: of a block.
        columns: the most threads along x.
    """

    def __init__(self, kernel: Kernel, rows: int, columns: int) -> None:
        self._kernel, self._rows, self._columns = kernel, rows, columns
        self._buffers: dict[str, tuple[ir.Value, ir.Value]] = {}

    def write(self, nest: Nest, right: Operand, first: ir.Value, finish: Finish) -> None:
        """The product, of rows from `first` on, at the insertion point.

        Args:
            nest: a product.
            right: the matrix, as the nest or otherwise.
            first: the block's first row.
            finish: writes what takes an element's sum; one thread does for each element.
        """
        kind = nest.outputs[0].argument.type
        if str(kind) not in self._buffers:
            left = self._kernel.shared([self._rows, _DEPTH], kind, alignment=_WIDTH)
            parts = self._kernel.shared([self._rows, self._rows, self._columns], kind)
            self._buffers[str(kind)] = left, parts
        _Writer(nest, right, first, self._rows, self._buffers[str(kind)]).write(finish)


class _Writer:
    """One product."""

    def __init__(
        self, nest: Nest, right: Operand, first: ir.Value, rows: int, buffers: tuple[ir.Value, ir.Value]
    ) -> None:
        self._nest, self._right, self._first, self._rows = nest, right, first, rows
        self._left = sides(nest)[0]
        self._staged, self._parts = buffers
        self._kind = nest.outputs[0].argument.type
        self._lanes = max(_WIDTH // int(dtype_of(self._kind).itemsize), 1)
        self._sizes = [nest.extent(axis) for axis in range(3)]
        self._tx, self._ty = thread_id(), thread_id(1)
        self._width = block_dim()

    def write(self, finish: Finish) -> None:
        """The product, in blocks of columns."""
        with span(self._sizes[1], step=self._width) as first:
            column = first + self._tx
            self._column = smaller(column, self._sizes[1] - 1)
            zeros = [self._zero()] * self._rows
            sums = carry(self._sizes[2], zeros, self._chunk, step=_DEPTH)
            for number, value in enumerate(sums):
                self._parts[self._ty, number, self._tx] = value
            barrier()
            row = self._first + self._ty
            inside = [row < self._sizes[0], column < self._sizes[1]]
            with when(all_of(inside)):
                finish(row, column, self._total())
            barrier()

    def _total(self) -> ir.Value:
        """The sum of the groups' parts."""
        total: ir.Value | None = None
        for group in range(self._rows):
            place = [build.const_index(group), self._ty, self._tx]
            part = self._parts[place]
            total = part if total is None else self._sum(total, part)
        assert total is not None
        return total

    def _chunk(self, start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one part of the rows."""
        self._stage(start)
        barrier()
        own = self._ty * (_DEPTH // self._rows)
        begin = start + own
        left = self._sizes[2] - begin
        count = smaller(larger(left, 0), _DEPTH // self._rows)
        whole = count // _AHEAD * _AHEAD

        def several(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            deep = [at + i for i in range(_AHEAD)]
            matrix = [self._matrix(begin + i) for i in deep]
            lefts = [self._row_part(row, own + at) for row in range(self._rows)]
            for i, right in enumerate(matrix):
                sums = [self._add(part[i], right, total) for part, total in zip(lefts, sums, strict=True)]
            return sums

        def one(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            right, place = self._matrix(begin + at), own + at
            lefts = [self._staged_at(row, place) for row in range(self._rows)]
            return [self._add(left, right, total) for left, total in zip(lefts, sums, strict=True)]

        sums = carry(whole, sums, several, step=_AHEAD)
        sums = carry(count, sums, one, start=whole)
        barrier()
        return sums

    def _stage(self, start: ir.Value) -> None:
        """Copies a part of the rows to shared memory, with zeros where there are none."""
        thread = self._ty * self._width + self._tx
        threads = self._width * self._rows
        with span(self._rows * _DEPTH, start=thread, step=threads) as element:
            r, k = element // _DEPTH, element % _DEPTH
            row, deep = self._first + r, start + k
            inside = [row < self._sizes[0], deep < self._sizes[2]]
            both = all_of(inside)
            self._staged[r, k] = self._zero()
            with when(both):
                self._staged[r, k] = load(self._left, [row, row, deep])

    def _inside(self, *places: tuple[ir.Value, ir.Value]) -> ir.Value:
        """True if two indices are below their limits."""
        conditions = [index < limit for index, limit in places]
        return all_of(conditions)

    def _matrix(self, deep: ir.Value) -> ir.Value:
        return load(self._right, [self._column, self._column, deep])

    def _row_part(self, row: int, at: ir.Value) -> list[ir.Value]:
        """Neighbouring elements of a row in shared memory."""
        found: list[ir.Value] = []
        for start in range(0, _AHEAD, self._lanes):
            vector = read_vector(self._staged, [row, at + start], self._lanes, _WIDTH)
            found += [extract(vector, lane) for lane in range(self._lanes)]
        return found[:_AHEAD]

    def _staged_at(self, row: int, at: ir.Value) -> ir.Value:
        return self._staged[row, at]

    def _add(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        nest = self._nest
        values = {self._left.argument: left, self._right.argument: right, nest.outputs[0].argument: total}
        return nest.compute(nest.yields, values, [])[0]

    def _sum(self, a: ir.Value, b: ir.Value) -> ir.Value:
        name = "arith.addi" if isinstance(self._kind, ir.IntegerType) else "arith.addf"
        return build.create(name, [a.type], [a, b]).result

    def _zero(self) -> ir.Value:
        return constant(self._kind, 0 if isinstance(self._kind, ir.IntegerType) else 0.0)


# Rows of a block, which is also how many groups of threads share the additions of a product.
ROWS = 4
# Threads of a group, at most.
COLUMNS = 256
_BLOCKS = (1 << 31) - 1


class BatchKernel:
    """Writes the kernel of a loop, and replaces the loop by its launch."""

    def __init__(self, work: BatchLoop) -> None:
        self._work, self._op = work, work.op
        self._kernel = Kernel(work.op, "recurrent")
        self._hoisted: set[ir.Value] = set()

    def lower(self) -> None:
        """The kernel, its launch, and arrays for what the loop gives."""
        work, op = self._work, self._op
        with self._kernel.host():
            grid, threads = self._blocks()
            turned = {nest: self._turned(nest) for nest in self._products()}
            for alloc in work.allocations:
                self._hoist(alloc)
        results = self._results()
        products = BlockProduct(self._kernel, ROWS, COLUMNS)
        with self._kernel.body():
            self._row = block_id() * ROWS
            self._kernel.take(op)
            for result, array in results:
                self._copy(result, array)
        for segment in work.segments:
            first = segment.nests[0]
            with ir.InsertionPoint(segment.nests[-1].op), first.op.location:
                if first in turned:
                    self._product(segment, products, turned[first])
                else:
                    self._elements(segment)
                barrier()
        for segment in work.segments:
            for nest in [*segment.nests, *([segment.fill] if segment.fill is not None else [])]:
                nest.op.erase()
        self._kernel.launch([grid], threads)

    def _products(self) -> list[Nest]:
        return [segment.nests[0] for segment in self._work.segments if is_product(segment.nests[0])]

    # -- on the host ---------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[ir.Value, list[ir.Value]]:
        """Number of blocks and of threads: in a group as many as the longest row has elements."""
        work = self._work
        rows, columns = build.const_index(0), build.const_index(1)
        for buffer in {n.outputs[0].buffer: n for s in work.segments for n in s.nests}:
            rows = larger(rows, size_before(work, buffer, 0))
            axes = range(1, ir.MemRefType(buffer.type).rank)
            if all(knows_size(work, buffer, axis) for axis in axes):
                columns = larger(columns, product([size_before(work, buffer, axis) for axis in axes]))
        warps = blocks_for(columns, WARP, COLUMNS // WARP)
        each = build.const_index(ROWS)
        return blocks_for(rows, each, _BLOCKS), [warps * WARP, each]

    def _turned(self, nest: Nest) -> Operand:
        """The matrix of a product, as a copy where neighbouring threads would not read neighbours."""
        matrix = sides(nest)[1]
        if matrix.axes[-1] != 2 or not is_outside(self._work, matrix.buffer):
            return matrix
        kind = ir.MemRefType(matrix.buffer.type)
        copy = allocate(build.dims(matrix.buffer)[::-1], kind.element_type)
        make_nest([(matrix.buffer, [1, 0])], [(copy, [0, 1])], [False] * 2, lambda given: given[:1])
        return Operand(copy, [2, 1], matrix.argument)

    def _hoist(self, alloc: ir.Operation) -> None:
        """Takes memory that each iteration would take before the loop."""
        kind = ir.MemRefType(alloc.results[0].type)
        given = iter(list(alloc.operands))
        sizes = [
            build.const_index(size) if size >= 0 else moved(self._work, next(given)) for size in kind.shape
        ]
        array = allocate(sizes, kind.element_type)
        if array.type != kind:
            array = build.create("memref.cast", [kind], [array]).result
        for segment in self._work.segments:
            for operand in [operand for nest in segment.nests for operand in nest.operands]:
                if operand.buffer == alloc.results[0]:
                    operand.buffer = array
        alloc.results[0].replace_all_uses_with(array)
        alloc.erase()
        self._hoisted.add(array)

    def _results(self) -> list[tuple[ir.Value, ir.Value]]:
        """Results of the loop that somebody uses, with arrays that take their place."""
        op = self._op
        found: list[tuple[ir.Value, ir.Value]] = []
        for result, initial in zip(op.results, list(op.operands)[3:], strict=True):
            if next(iter(result.uses), None) is None:
                continue
            with self._kernel.host():
                array = allocate(build.dims(initial), ir.MemRefType(result.type).element_type)
                cast = build.create("memref.cast", [result.type], [array]).result
            result.replace_all_uses_with(cast)
            found.append((result, array))
        return found

    # -- in the kernel -------------------------------------------------------------------------------------

    def _copy(self, source: ir.Value, target: ir.Value) -> None:
        """The block's rows of an array."""
        sizes, axes = build.dims(target), list(range(ir.MemRefType(target.type).rank))
        operands = [Operand(buffer, [*axes], buffer) for buffer in (source, target)]
        self._each(sizes, lambda indices: store(load(operands[0], indices), operands[1], indices))

    def _each(self, sizes: list[ir.Value], work: Callable[[list[ir.Value]], None]) -> None:
        """Does something with each element of the block's rows of an array of some sizes."""
        columns = product(sizes[1:])
        width = block_dim()
        thread = thread_id(1) * width
        thread = thread + thread_id()
        with span(columns * ROWS, start=thread, step=width * ROWS) as element:
            row = self._row + element // columns
            with when(row < sizes[0]):
                work([row, *split(element % columns, sizes[1:])])

    def _product(self, segment: Segment, products: BlockProduct, matrix: Operand) -> None:
        """A product, and what is done with its elements."""
        nest = segment.nests[0]
        output = nest.outputs[0]

        def finish(row: ir.Value, column: ir.Value, total: ir.Value) -> None:
            before = self._before(segment, [row, column])
            name = "arith.addi" if isinstance(total.type, ir.IntegerType) else "arith.addf"
            value = build.create(name, [total.type], [before, total]).result
            self._chain(segment, [row, column], {output.buffer: value})

        products.write(nest, matrix, self._row, finish)

    def _elements(self, segment: Segment) -> None:
        """Work on elements, with reductions that a thread does for itself."""
        nest = segment.nests[0]
        kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
        sizes = [nest.extent(axis) for axis in range(nest.rank)]

        def element(indices: list[ir.Value]) -> None:
            if not any(nest.reduction):
                self._chain(segment, indices, {}, first=0)
                return
            place = dict(zip(kept, indices, strict=True))
            output = nest.outputs[0]

            def run(axes: list[int], values: list[ir.Value]) -> list[ir.Value]:
                if axes:

                    def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                        place[axes[0]] = number
                        return run(axes[1:], carried)

                    return carry(sizes[axes[0]], values, body)
                where = [place[axis] for axis in range(nest.rank)]
                given = {output.argument: values[0]}
                return nest.compute(nest.yields, self._read(nest, where, given), where)

            reduced = [axis for axis in range(nest.rank) if nest.reduction[axis]]
            total = run(reduced, [self._before(segment, indices)])
            self._chain(segment, indices, {output.buffer: total[0]})

        self._each([sizes[axis] for axis in kept], element)

    def _before(self, segment: Segment, indices: list[ir.Value]) -> ir.Value:
        """Initial value of an element of a reduction's result."""
        if segment.fill is not None:
            return segment.fill.yields[0]
        output = segment.nests[0].outputs[0]
        return load(Operand(output.buffer, list(range(len(indices))), output.argument), indices)

    def _chain(
        self, segment: Segment, indices: list[ir.Value], held: dict[ir.Value, ir.Value], first: int = 1
    ) -> None:
        """The nests of a segment from one on, for an element; `held` is what buffers hold of it."""
        for buffer, value in held.items():
            self._store(segment, buffer, value, indices)
        for nest in segment.nests[first:]:
            whole = list(range(nest.rank))
            given = {
                o.argument: held[o.buffer] for o in nest.operands if o.axes == whole and o.buffer in held
            }
            found = nest.compute(nest.yields, self._read(nest, indices, given), indices)
            held = {buffer: value for buffer, value in held.items() if self._is_temporary(segment, buffer)}
            for operand, value in zip(nest.outputs, found, strict=True):
                held[operand.buffer] = value
                self._store(segment, operand.buffer, value, indices)

    def _read(
        self, nest: Nest, indices: list[ir.Value], given: dict[ir.Value, ir.Value]
    ) -> dict[ir.Value, ir.Value]:
        """The operands of a nest at an element."""
        values = dict(given)
        for operand in nest.needed(nest.yields):
            if operand.argument not in values:
                values[operand.argument] = load(operand, indices)
        return values

    def _store(self, segment: Segment, buffer: ir.Value, value: ir.Value, indices: list[ir.Value]) -> None:
        if not self._is_temporary(segment, buffer):
            store(value, Operand(buffer, list(range(len(indices))), buffer), indices)

    def _is_temporary(self, segment: Segment, buffer: ir.Value) -> bool:
        """True if only the nests of a segment use an array, which lives for one iteration."""
        if buffer not in self._hoisted:
            return False
        inside = {nest.op for nest in segment.nests}
        if segment.fill is not None:
            inside.add(segment.fill.op)
        return all(use.owner.operation in inside or use.owner.name == "memref.dim" for use in buffer.uses)


@record()
class GpuBatch(Pass):
    """Makes one kernel of a loop whose body has reductions, such as the products of a recurrent network.

    That is so where all arrays that the loop writes have the batch as an axis, and nothing reads another row
    of them than its own: the first dimension of each nest is the batch. A block of threads runs all
    iterations for 4 rows, so that its threads wait for each other only, and not for the grid. The gradient
    of such a loop is one again; what it sums over the batch has become a product after the loop.

    Products keep the rows in shared memory, in parts of 256 elements; four groups of threads each have a
    quarter of the additions for all 4 rows, so that an element of the matrix is read once a block and
    iteration, and the parts are added up in order. A matrix that lies across is copied once before the loop.
    Elementwise work on a product's result is done by the thread that has the sum. Arrays that live for one
    iteration are taken once, or not at all. The loop's polls for interrupts go: a kernel runs to its end.

    Source: G. Diamos et al., "Persistent RNNs: stashing recurrent weights on-chip" (2016), for the loop
    within the kernel; there the weights stay in registers and the grid waits for each step.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            for inner in [inner for inner in walk(op) if inner.name in NESTS]:
                as_generic(inner)
            work = as_batch_loop(op, polls)
            if work is None:
                return False
            for inner in walk(op):
                if is_poll(inner, polls):
                    inner.erase()
            BatchKernel(work).lower()
            return True

        if any(op.name == "scf.for" for function in functions(module) for op in walk(function)):
            self.count("kernels", replace_loops(module, replace))

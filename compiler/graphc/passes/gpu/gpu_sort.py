# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along rows: tiles in shared memory, and merges of them; keys whose order is that of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, bits_as, converted, larger, literal, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import bisected, span
from graphc.passes import Pass
from graphc.passes.gpu._calls import calls_of
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    global_position,
    grid_dim,
    thread_id,
)
from graphc.passes.gpu._rows import split
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


class Keys:
    """Numbers of a real element type as unsigned integers of 32 or 64 bits in the same order, NaN last.

    Args:
        dtype: of the numbers.
        exact: whether -0.0 comes before 0.0, and is not its equal.
    """

    def __init__(self, dtype: np.dtype, *, exact: bool) -> None:
        self._dtype, self._exact = dtype, exact
        self.width = 64 if dtype.itemsize == 8 else 32
        self.type = ir.IntegerType.get_signless(self.width)
        self._sign = 1 << (self.width - 1)

    def last(self) -> ir.Value:
        """The key of NaN: none comes after it."""
        return literal(-1, self.type)

    def of(self, value: ir.Value) -> ir.Value:
        """The key of a number as it is in memory."""
        if self._dtype.kind != "f":
            signed = self._dtype.kind == "i"
            if ir.IntegerType(value.type).width < self.width:
                value = self._op("extsi" if signed else "extui", value)
            return value ^ -self._sign if signed else value
        if self._dtype == np.float16:
            value = converted(value, ir.F32Type.get())
        bits = bits_as(value, self.type)
        if not self._exact:
            bits = build.select(bits.equals(-self._sign), 0, bits)
        negative = self._op("shrsi", bits, literal(self.width - 1, self.type))
        key = bits ^ (negative | -self._sign)
        # NaN alone differs from itself.
        return build.select(value.differs(value), self.last(), key)

    def number(self, key: ir.Value, kind: ir.Type) -> ir.Value:
        """The number of a key, as it is in memory."""
        if self._dtype.kind != "f":
            return converted(key ^ -self._sign if self._dtype.kind == "i" else key, kind)
        flipped = ((key >> (self.width - 1)) - 1) | -self._sign
        wide = ir.F64Type.get() if self.width == 64 else ir.F32Type.get()
        return converted(bits_as(key ^ flipped, wide), kind)

    def _op(self, name: str, *operands: ir.Value) -> ir.Value:
        return build.create(f"arith.{name}", [self.type], list(operands)).result


_THREADS, _MERGE_THREADS = 512, 256
_ROWS, _BLOCKS = 65535, 1 << 20
# The position of what is no element of the row.
_NONE = (1 << 31) - 1
# A key, and where positions are wanted, its position.
Item = list[ir.Value]
# Takes the number of a row, a place in it, and what belongs there.
Write = Callable[[ir.Value, ir.Value, Item], None]


class SortKernels:
    """The kernels of a sort: rows that are no longer than a tile, tiles of longer ones, merges, results.

    Args:
        op: before which they are launched.
        source, result: rows, along the last axis, of numbers; of these or of positions.
        dtype: of the numbers.
        tile: elements of a row that a block sorts, a power of 2; half of it for pairs of 64 bits and more.
        positions: whether the result is what sorts the numbers, and not they.
    """

    def __init__(
        self,
        op: ir.Operation,
        source: ir.Value,
        result: ir.Value,
        dtype: np.dtype,
        tile: int,
        *,
        positions: bool,
    ) -> None:
        self._op, self._positions = op, positions
        self._source, self._result = source, result
        self._keys = Keys(dtype, exact=not positions)
        self._tile = tile // 2 if self._positions and self._keys.width == 64 else tile
        self._types = [self._keys.type, ir.IntegerType.get_signless(32)][: 1 + self._positions]
        self._direct = Kernel(op, "sort")
        with self._direct.host():
            *self._sizes, self._n = build.dims(self._source)
            self._rows = product(self._sizes)
            self._fits = self._n <= self._tile
            self._threads = larger(blocks_for(self._n, 2 * WARP, _THREADS // WARP), 1) * WARP
            self._long_rows = build.select(self._fits, 0, self._rows)
            self._memory = [allocate([2, self._long_rows, self._n], kind) for kind in self._types]

    def lower(self) -> None:
        """The kernels and their launches."""
        with self._direct.host():
            short = smaller(build.select(self._fits, self._rows, 0), _BLOCKS)
            long, tiles = smaller(self._long_rows, _BLOCKS), blocks_for(self._n, self._tile, _ROWS)
        self._sort(self._direct, self._finish)
        self._direct.launch([short, 1], [self._threads])
        kernel = Kernel(self._op, "tiles")
        self._sort(kernel, self._keep)
        kernel.launch([long, tiles], [self._threads])
        source = self._merges()
        with self._each(Kernel(self._op, "sorted")) as (row, place):
            self._finish(row, place, self._kept(source, row, place))

    # -- tiles ---------------------------------------------------------------------------------------------

    def _sort(self, kernel: Kernel, write: Write) -> None:
        """A kernel whose blocks sort tiles, and write them somewhere."""
        shared = [kernel.shared([self._tile], kind) for kind in self._types]
        with kernel.body():
            self._thread, self._width = thread_id(), block_dim()
            with span(self._rows, block_id(), grid_dim()) as row:
                first, stride = (x * self._tile for x in (block_id(1), grid_dim(1)))
                with span(self._n, first, stride) as start:
                    self._one_tile(shared, row, start, write)

    def _one_tile(self, shared: list[ir.Value], row: ir.Value, start: ir.Value, write: Write) -> None:
        levels = _levels(smaller(self._n, self._tile))
        size = build.const_index(1) << levels
        indices = split(row, self._sizes)
        with span(size, self._thread, self._width) as place:
            _store(self._item(indices, start + place), shared, place)
        barrier()
        with span(levels) as level, span(level + 1) as inner:
            distance = level - inner
            with span(size >> 1, self._thread, self._width) as pair:
                self._exchange(shared, pair, level, distance)
            barrier()
        with span(smaller(self._n - start, self._tile), self._thread, self._width) as place:
            write(row, start + place, _load(shared, place))
        barrier()

    def _item(self, indices: Sequence[ir.Value], place: ir.Value) -> Item:
        """An element of a row; past its end what comes after all others."""
        inside = place < self._n
        value = self._source[*indices, smaller(place, self._n - 1)]
        item = [build.select(inside, self._keys.of(value), self._keys.last())]
        if self._positions:
            item.append(build.select(inside, converted(place, self._types[1]), _NONE))
        return item

    def _exchange(self, shared: list[ir.Value], pair: ir.Value, level: ir.Value, distance: ir.Value) -> None:
        """Puts two elements of a tile in order: upwards or downwards, in turns of twice the level's size."""
        step = build.const_index(1) << distance
        low = pair & (step - 1)
        first = ((pair - low) << 1) + low
        second = first + step
        upwards = ((first >> (level + 1)) & 1).equals(0)
        a, b = _load(shared, first), _load(shared, second)
        wrong = build.select(upwards, _after(a, b), _after(b, a))
        _store([build.select(wrong, y, x) for x, y in zip(a, b, strict=True)], shared, first)
        _store([build.select(wrong, x, y) for x, y in zip(a, b, strict=True)], shared, second)

    # -- longer rows ---------------------------------------------------------------------------------------

    def _merges(self) -> ir.Value:
        """Merges runs of twice the length each time; returns in which half of the memory they end."""
        index = build.index_type()
        with ir.InsertionPoint(self._op), self._op.location:
            initial = [build.const_index(self._tile), build.const_index(0)]
            made = ir.Operation.create("scf.while", results=[index] * 2, operands=initial, regions=2)
            before, after = (ir.Block.create_at_start(region, [index] * 2) for region in made.regions)
            with ir.InsertionPoint(before):
                both = (before.arguments[0] < self._n) & (self._long_rows > 0)
                build.create("scf.condition", [], [both, *before.arguments])
            with ir.InsertionPoint(after):
                width, source = after.arguments
                end = build.create("scf.yield", [], [width * 2, 1 - source])
        with self._each(Kernel(end, "merge")) as (row, place):
            self._merge(row, place, width, source)
        return made.results[1]

    @contextmanager
    def _each(self, kernel: Kernel) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Elements of long rows, in a kernel with threads along x and rows along y, which is launched."""
        with kernel.host():
            grid = [blocks_for(self._n, _MERGE_THREADS, _BLOCKS), smaller(self._long_rows, _ROWS)]
        with kernel.body():
            (first, stride), (line, lines) = global_position(0), global_position(1)
            with span(self._rows, line, lines) as row, span(self._n, first, stride) as place:
                yield row, place
        kernel.launch(grid, [_MERGE_THREADS])

    def _merge(self, row: ir.Value, place: ir.Value, width: ir.Value, source: ir.Value) -> None:
        """Puts an element where it belongs: after those of its run and of the other one that come before."""
        run = place // width
        start = run * width
        odd = (run & 1).differs(0)
        pair = build.select(odd, start - width, start)
        other = smaller(build.select(odd, pair, start + width), self._n)
        end = smaller(other + width, self._n)
        mine = self._kept(source, row, place)

        def is_earlier(at: ir.Value) -> ir.Value:
            found = self._kept(source, row, at)
            earlier = _after(mine, found)
            # Of equal keys those of the run before come first.
            return earlier if self._positions else earlier | (odd & mine[0].equals(found[0]))

        target = pair + (place - start) + (bisected(other, end, is_earlier) - other)
        _store(mine, self._memory, 1 - source, row, target)

    def _keep(self, row: ir.Value, place: ir.Value, item: Item) -> None:
        _store(item, self._memory, 0, row, place)

    def _kept(self, half: ir.Value, row: ir.Value, place: ir.Value) -> Item:
        return _load(self._memory, half, row, place)

    def _finish(self, row: ir.Value, place: ir.Value, item: Item) -> None:
        """Writes an element of the result."""
        element = ir.MemRefType(self._result.type).element_type
        if self._positions:
            value = build.create("arith.extsi", [element], [item[1]]).result
        else:
            value = self._keys.number(item[0], element)
        self._result[*split(row, self._sizes), place] = value


def _after(a: Item, b: Item) -> ir.Value:
    """True if `a` comes after `b`: by keys, then by positions."""
    found = a[0].above(b[0])
    return found | (a[0].equals(b[0]) & a[1].above(b[1])) if len(a) > 1 else found


def _levels(count: ir.Value) -> ir.Value:
    """Number of doublings of 1 that reach a count."""
    kind = ir.IntegerType.get_signless(64)
    number = converted(larger(count, 1) - 1, kind)
    zeros = build.create("math.ctlz", [kind], [number]).result
    return 64 - as_index(zeros)


def _load(arrays: Sequence[ir.Value], *place: ir.Value) -> Item:
    return [x[place] for x in arrays]


def _store(item: Item, arrays: Sequence[ir.Value], *place: ir.Value | int) -> None:
    for value, array in zip(item, arrays, strict=True):
        array[place] = value


@record()
class GpuSort(Pass):
    """Makes kernels of calls that sort rows, or that give the positions which do.

    Numbers become unsigned integers in the same order, with NaN last. Rows of up to `tile` elements are
    sorted in shared memory, by one block each, with Batcher's bitonic network. Longer ones are sorted in
    tiles, which are merged in passes over memory, twice as long each time: a thread finds by bisection how
    many elements of the other run come before its own, and so where it belongs. Positions are compared where
    keys are equal, so that equal elements stay in their order. Of the kernels only those are launched that a
    row's length asks for. Complex numbers are left to others.

    Source: K. Batcher, "Sorting networks and their applications" (1968); for merges by ranks, N. Satish et
    al., "Designing efficient sorting algorithms for manycore GPUs" (2009).

    Attributes:
        tile: elements that a block sorts, a power of 2; half as many for positions of numbers of 64 bits.
    """

    tile: int = 4096

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("sort", "argsort")):
            if call.dtypes[0].kind == "c":
                continue
            positions = call.kernel.name == "argsort"
            source, result = call.buffers[:2]
            SortKernels(call.op, source, result, call.dtypes[0], self.tile, positions=positions).lower()
            call.erase()
            self.count("calls")

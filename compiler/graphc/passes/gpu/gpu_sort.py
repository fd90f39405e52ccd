# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along rows.

Kernels that sort rows: tiles in shared memory, and merges of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.ir import build
from graphc.lowering.carried import carry_while, loop
from graphc.passes.gpu._calls import calls_of
from graphc.passes.gpu._kernel import (
    Kernel,
    allocate,
    at_most,
    barrier,
    blocks_for,
    global_position,
    position,
)
from graphc.passes.gpu._keys import ABOVE, EQUAL, Keys
from graphc.passes.gpu._reduce import WARP
from graphc.passes.gpu._rows import product, split
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

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
            tile_size, zero = build.const_index(self._tile), build.const_index(0)
            self._fits = build.compare_index(3, self._n, tile_size)
            width = blocks_for(self._n, build.const_index(2 * WARP), _THREADS // WARP)
            width = build.index_op("maxsi", width, build.const_index(1))
            self._threads = build.index_op("muli", width, build.const_index(WARP))
            self._long_rows = build.select(self._fits, zero, self._rows)
            sizes = [build.const_index(2), self._long_rows, self._n]
            self._memory = [allocate(sizes, kind) for kind in self._types]

    def lower(self) -> None:
        """The kernels and their launches."""
        with self._direct.host():
            short = build.select(self._fits, self._rows, build.const_index(0))
            short, one = at_most(short, _BLOCKS), build.const_index(1)
            long, tiles = at_most(self._long_rows, _BLOCKS), blocks_for(self._n, self._size(), _ROWS)
        self._sort(self._direct, self._finish)
        self._direct.launch([short, one], [self._threads])
        kernel = Kernel(self._op, "tiles")
        self._sort(kernel, self._keep)
        kernel.launch([long, tiles], [self._threads])
        source = self._merges()
        kernel = Kernel(self._op, "sorted")
        with kernel.host():
            threads = build.const_index(_MERGE_THREADS)
            grid = [blocks_for(self._n, threads, _BLOCKS), at_most(self._long_rows, _ROWS)]
        with kernel.body():
            self._each(lambda row, place: self._finish(row, place, self._kept(source, row, place)))
        kernel.launch(grid, [threads])

    def _size(self) -> ir.Value:
        return build.const_index(self._tile)

    # -- tiles ---------------------------------------------------------------------------------------------

    def _sort(self, kernel: Kernel, write: Write) -> None:
        """A kernel whose blocks sort tiles, and write them somewhere."""
        shared = [kernel.shared([self._tile], kind) for kind in self._types]
        with kernel.body():
            self._thread, self._width = position("thread_id"), position("block_dim")
            _, rows = loop(self._rows, [], start=position("block_id"), step=position("grid_dim"))
            with ir.InsertionPoint(rows):
                first = build.index_op("muli", position("block_id", 1), self._size())
                stride = build.index_op("muli", position("grid_dim", 1), self._size())
                _, tiles = loop(self._n, [], start=first, step=stride)
                with ir.InsertionPoint(tiles):
                    self._one_tile(shared, rows.arguments[0], tiles.arguments[0], write)
                    build.create("scf.yield", [], [])
                build.create("scf.yield", [], [])

    def _one_tile(self, shared: list[ir.Value], row: ir.Value, start: ir.Value, write: Write) -> None:
        levels = _levels(build.index_op("minsi", self._n, self._size()))
        size = build.index_op("shli", build.const_index(1), levels)
        indices = split(row, self._sizes)

        def fill(place: ir.Value) -> None:
            _store(self._item(indices, build.index_op("addi", start, place)), shared, place)

        self._stripes(size, fill)
        barrier()
        _, block = loop(levels, [])
        with ir.InsertionPoint(block):
            level = block.arguments[0]
            _, inner = loop(build.index_op("addi", level, build.const_index(1)), [])
            with ir.InsertionPoint(inner):
                distance = build.index_op("subi", level, inner.arguments[0])
                half = build.index_op("shrui", size, build.const_index(1))
                self._stripes(half, lambda pair: self._exchange(shared, pair, level, distance))
                barrier()
                build.create("scf.yield", [], [])
            build.create("scf.yield", [], [])
        count = build.index_op("minsi", build.index_op("subi", self._n, start), self._size())
        self._stripes(
            count, lambda place: write(row, build.index_op("addi", start, place), _load(shared, place))
        )
        barrier()

    def _stripes(self, count: ir.Value, work: Callable[[ir.Value], None]) -> None:
        """Does something for each number up to a count, a block's threads side by side."""
        _, block = loop(count, [], start=self._thread, step=self._width)
        with ir.InsertionPoint(block):
            work(block.arguments[0])
            build.create("scf.yield", [], [])

    def _item(self, indices: Sequence[ir.Value], place: ir.Value) -> Item:
        """An element of a row; past its end what comes after all others."""
        inside = build.compare_index(2, place, self._n)
        last = build.index_op("subi", self._n, build.const_index(1))
        at = build.index_op("minsi", place, last)
        element = ir.MemRefType(self._source.type).element_type
        value = build.create("memref.load", [element], [self._source, *indices, at]).result
        item = [build.select(inside, self._keys.of(value), self._keys.last())]
        if self._positions:
            kind = self._types[1]
            number = build.create("arith.index_cast", [kind], [place]).result
            none = build.create("arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, _NONE)).result
            item.append(build.select(inside, number, none))
        return item

    def _exchange(self, shared: list[ir.Value], pair: ir.Value, level: ir.Value, distance: ir.Value) -> None:
        """Puts two elements of a tile in order: upwards or downwards, in turns of twice the level's size."""
        one = build.const_index(1)
        step = build.index_op("shli", one, distance)
        low = build.index_op("andi", pair, build.index_op("subi", step, one))
        high = build.index_op("shli", build.index_op("subi", pair, low), one)
        first = build.index_op("addi", high, low)
        second = build.index_op("addi", first, step)
        turn = build.index_op("shrui", first, build.index_op("addi", level, one))
        upwards = build.compare_index(0, build.index_op("andi", turn, one), build.const_index(0))
        a, b = _load(shared, first), _load(shared, second)
        wrong = build.select(upwards, _after(a, b), _after(b, a))
        _store([build.select(wrong, y, x) for x, y in zip(a, b, strict=True)], shared, first)
        _store([build.select(wrong, x, y) for x, y in zip(a, b, strict=True)], shared, second)

    # -- longer rows ---------------------------------------------------------------------------------------

    def _merges(self) -> ir.Value:
        """Merges runs of twice the length each time; returns in which half of the memory they end."""
        index, bit = build.index_type(), ir.IntegerType.get_signless(1)
        with ir.InsertionPoint(self._op), self._op.location:
            initial = [self._size(), build.const_index(0)]
            made = ir.Operation.create("scf.while", results=[index] * 2, operands=initial, regions=2)
            before, after = (ir.Block.create_at_start(region, [index] * 2) for region in made.regions)
            with ir.InsertionPoint(before):
                some = build.compare_index(2, before.arguments[0], self._n)
                rows = build.compare_index(4, self._long_rows, build.const_index(0))
                both = build.create("arith.andi", [bit], [some, rows]).result
                build.create("scf.condition", [], [both, *before.arguments])
            with ir.InsertionPoint(after):
                width, source = after.arguments
                one = build.const_index(1)
                nexts = [
                    build.index_op("muli", width, build.const_index(2)),
                    build.index_op("subi", one, source),
                ]
                end = build.create("scf.yield", [], nexts)
        kernel = Kernel(end, "merge")
        with kernel.host():
            threads = build.const_index(_MERGE_THREADS)
            grid = [blocks_for(self._n, threads, _BLOCKS), at_most(self._long_rows, _ROWS)]
        with kernel.body():
            self._each(lambda row, place: self._merge(row, place, width, source))
        kernel.launch(grid, [threads])
        found: ir.Value = made.results[1]
        return found

    def _each(self, work: Callable[[ir.Value, ir.Value], None]) -> None:
        """Does something for each element of each row, in a kernel with threads along x and rows along y."""
        (place, stride), (row, rows) = global_position(0), global_position(1)
        _, outer = loop(self._rows, [], start=row, step=rows)
        with ir.InsertionPoint(outer):
            _, inner = loop(self._n, [], start=place, step=stride)
            with ir.InsertionPoint(inner):
                work(outer.arguments[0], inner.arguments[0])
                build.create("scf.yield", [], [])
            build.create("scf.yield", [], [])

    def _merge(self, row: ir.Value, place: ir.Value, width: ir.Value, source: ir.Value) -> None:
        """Puts an element where it belongs: after those of its run and of the other one that come before."""
        run = build.index_op("divui", place, width)
        start = build.index_op("muli", run, width)
        odd = build.compare_index(1, build.index_op("andi", run, build.const_index(1)), build.const_index(0))
        pair = build.select(odd, build.index_op("subi", start, width), start)
        other = build.select(odd, pair, build.index_op("addi", start, width))
        other = build.index_op("minsi", other, self._n)
        end = build.index_op("minsi", build.index_op("addi", other, width), self._n)
        mine = self._kept(source, row, place)

        def search(values: list[ir.Value]) -> list[ir.Value]:
            low, high = values
            middle = build.index_op("divui", build.index_op("addi", low, high), build.const_index(2))
            found = self._kept(source, row, middle)
            earlier = _after(mine, found)
            if not self._positions:
                # Of equal keys those of the run before come first.
                bit = ir.IntegerType.get_signless(1)
                same = build.create(
                    "arith.andi", [bit], [odd, build.compare_index(EQUAL, mine[0], found[0])]
                ).result
                earlier = build.create("arith.ori", [bit], [earlier, same]).result
            above = build.index_op("addi", middle, build.const_index(1))
            return [build.select(earlier, above, low), build.select(earlier, high, middle)]

        low, _ = carry_while([other, end], lambda values: build.compare_index(2, *values), search)
        rank = build.index_op("subi", low, other)
        inside = build.index_op("subi", place, start)
        target = build.index_op("addi", build.index_op("addi", pair, inside), rank)
        half = build.index_op("subi", build.const_index(1), source)
        for value, memory in zip(mine, self._memory, strict=True):
            build.create("memref.store", [], [value, memory, half, row, target])

    def _keep(self, row: ir.Value, place: ir.Value, item: Item) -> None:
        for value, memory in zip(item, self._memory, strict=True):
            build.create("memref.store", [], [value, memory, build.const_index(0), row, place])

    def _kept(self, half: ir.Value, row: ir.Value, place: ir.Value) -> Item:
        pairs = zip(self._types, self._memory, strict=True)
        return [
            build.create("memref.load", [kind], [memory, half, row, place]).result for kind, memory in pairs
        ]

    def _finish(self, row: ir.Value, place: ir.Value, item: Item) -> None:
        """Writes an element of the result."""
        element = ir.MemRefType(self._result.type).element_type
        if self._positions:
            value = build.create("arith.extsi", [element], [item[1]]).result
        else:
            value = self._keys.number(item[0], element)
        build.create("memref.store", [], [value, self._result, *split(row, self._sizes), place])


def _after(a: Item, b: Item) -> ir.Value:
    """True if `a` comes after `b`: by keys, then by positions."""
    found = build.compare_index(ABOVE, a[0], b[0])
    if len(a) > 1:
        bit = ir.IntegerType.get_signless(1)
        later = [build.compare_index(EQUAL, a[0], b[0]), build.compare_index(ABOVE, a[1], b[1])]
        both = build.create("arith.andi", [bit], later).result
        found = build.create("arith.ori", [bit], [found, both]).result
    return found


def _levels(count: ir.Value) -> ir.Value:
    """Number of doublings of 1 that reach a count."""
    kind = ir.IntegerType.get_signless(64)
    one = build.const_index(1)
    rest = build.index_op("subi", build.index_op("maxsi", count, one), one)
    number = build.create("arith.index_cast", [kind], [rest]).result
    zeros = build.create("math.ctlz", [kind], [number]).result
    index = build.create("arith.index_cast", [build.index_type()], [zeros]).result
    found: ir.Value = build.index_op("subi", build.const_index(64), index)
    return found


def _load(arrays: Sequence[ir.Value], place: ir.Value) -> Item:
    return [
        build.create("memref.load", [ir.MemRefType(x.type).element_type], [x, place]).result for x in arrays
    ]


def _store(item: Item, arrays: Sequence[ir.Value], place: ir.Value) -> None:
    for value, array in zip(item, arrays, strict=True):
        build.create("memref.store", [], [value, array, place])


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

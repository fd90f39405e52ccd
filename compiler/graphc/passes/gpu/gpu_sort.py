# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along rows, by comparisons in shared memory or by digits, with keys whose order is that of numbers;
elements where a mask is true, and their positions: counts, prefix sums, and each element to its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, bits_as, converted, larger, literal, parts_of, smaller
from graphc.ir.walk import copy_with
from graphc.library.sorting import by_block
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, either, loop, span, when
from graphc.passes import Pass
from graphc.passes.gpu import _notation
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import GRID, GRID_ROWS, H200, Kernel, allocate, blocks_for
from graphc.passes.gpu._nest import exact
from graphc.passes.gpu._notation import (
    WARP,
    added,
    barrier,
    bits_set,
    block_id,
    grid_dim,
    lanes_before,
    lanes_where,
    on_first_thread,
    share,
    split,
    thread_id,
)
from graphc.passes.gpu.gpu_running import BlockPrefix, Running, prefix_sums
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


class Keys:
    """Numbers of a real element type as unsigned integers of as many bits in the same order, NaN last.

    Args:
        dtype: of the numbers.
        exact: whether -0.0 comes before 0.0, and is not its equal.
    """

    def __init__(self, dtype: np.dtype, *, exact: bool) -> None:
        self._dtype, self._exact = dtype, exact
        self.width = 8 * dtype.itemsize
        self.type = ir.IntegerType.get_signless(self.width)
        self._sign = 1 << (self.width - 1)

    def last(self) -> ir.Value:
        """The key of NaN: none comes after it."""
        return literal(-1, self.type)

    def of(self, value: ir.Value) -> ir.Value:
        """The key of a number as it is in memory."""
        if self._dtype.kind != "f":
            return value ^ -self._sign if self._dtype.kind == "i" else value
        bits = bits_as(value, self.type)
        if not self._exact:
            bits = build.select(bits.equals(-self._sign), 0, bits)
        shift = literal(self.width - 1, self.type)
        negative = build.create("arith.shrsi", [self.type], [bits, shift]).result
        key = bits ^ (negative | -self._sign)
        # NaN alone differs from itself.
        return build.select(value.differs(value), self.last(), key)

    def number(self, key: ir.Value, kind: ir.Type) -> ir.Value:
        """The number of a key, of the type that it has in memory."""
        if self._dtype.kind != "f":
            return key ^ -self._sign if self._dtype.kind == "i" else key
        flipped = ((key >> (self.width - 1)) - 1) | -self._sign
        return bits_as(key ^ flipped, kind)


# The position of what is no element of the row.
_NONE = (1 << 31) - 1
# A key, and what is moved with it.
Item = list[ir.Value]
# Takes the number of a row, a place in it, and what belongs there.
Write = Callable[[ir.Value, ir.Value, Item], None]


@record(frozen=True)
class Digits:
    """Sizes of the kernels that sort by digits.

    Attributes:
        bits: of a digit, 8 or 9.
        threads: of a block: a power of 2, whole warps, not more than there are digits.
        items: of a thread at a time, of 32 bits, where several blocks sort a row; else half of them.
        blocks: on a multiprocessor at a time; else one more, if nothing is moved with keys.
        parts: blocks of the grid, about; each has a part of a row.
        each: numbers that a block adds up of how often digits come.
    """

    bits: int = 8
    threads: int = 256
    items: int = 32
    blocks: int = 2
    parts: int = 8 * H200.processors
    each: int = 2048


class RowParts:
    """Kernels on rows, each in parts of some tiles, of which a block has the same one of each row; a warp has
    neighbours of a tile, item after item.
    """

    # Numbers of rows, of their elements, of parts, of the elements of a part, and of a thread's of a tile.
    _rows: ir.Value
    _n: ir.Value
    _parts: ir.Value
    _chunk: ir.Value
    _items: int
    # In the kernel at hand: the thread, the row, and the first element of the part and the one behind it.
    _thread: ir.Value
    _row: ir.Value
    _start: ir.Value
    _stop: ir.Value

    @contextmanager
    def _part(self, kernel: Kernel, threads: int, blocks: int) -> Iterator[None]:
        """The part of a row that is the block's, for each of its rows, in a kernel that is launched; so many
        blocks of so many threads are on a multiprocessor.
        """
        with kernel.body():
            self._thread = thread_id()
            with span(self._rows, block_id(1), grid_dim(1)) as row:
                self._row = row
                self._start = block_id() * self._chunk
                self._stop = smaller(self._start + self._chunk, self._n)
                yield
        with kernel.host():
            grid = [self._parts, smaller(self._rows, GRID_ROWS)]
        kernel.limit(threads, blocks)
        kernel.launch(grid, [threads])

    def _before(self, sums: ir.Value, at: ir.Value) -> ir.Value:
        """The sum of what comes before a number of the row, of running sums."""
        before = sums[self._row, larger(at - 1, 0)]
        return build.select(at.equals(0), 0, before)

    def _first(self) -> ir.Value:
        """The place of the first of the thread's items in a tile."""
        return self._thread // WARP * (WARP * self._items) + self._thread % WARP

    def _items_from(
        self, start: ir.Value, read: Callable[[list[ir.Value]], list[ir.Value]], nothing: list[ir.Value]
    ) -> list[tuple[ir.Value, Item]]:
        """Items of the thread in a tile, each beside those of the other lanes; and whether they exist.

        `read` gives the parts of items at some places, one after the other; `nothing` is an item that stands
        for those beyond the end.
        """
        # All comparisons are with literals: what is the same for all tiles would take registers.
        place, items = start + self._first(), self._items
        left, kinds = self._stop - place, [part.type for part in nothing]

        def all_() -> list[ir.Value]:
            return read([place + i * WARP for i in range(items)])

        def some() -> list[ir.Value]:
            found = []
            for i in range(items):
                found += either(left > i * WARP, kinds, partial(read, [place + i * WARP]), lambda: nothing)
            return found

        # The last lane of the warp has as much less left as it is behind.
        full = left > (items * WARP - 1) - thread_id() % WARP
        found = iter(either(full, kinds * items, all_, some))
        return [(left > i * WARP, [next(found) for _ in kinds]) for i in range(items)]


class RadixSort(RowParts):
    """Sorts rows by the digits of their keys, the lowest first; equal keys stay in their order.

    A row that fits a tile is sorted by one block, in shared memory. Of longer ones, for each digit, each
    block counts those of its part of a row, a prefix sum over (digit, part) says where each begins, and each
    block moves its items there, in tiles that it orders in shared memory first: what goes to one place is
    written side by side (`library/sorting/by_block.py`).

    Args:
        op: before which kernels are launched.
        rows, n: number of rows, and their length; values of the host.
        types: of keys and of what is moved with them.
        passes: how many digits keys have, at least 1.
        read: gives an item of a row, its key first.
        write: takes an item of the result.
        sizes: of the kernels.

    Source: D. Merrill, A. Grimshaw, "High performance and scalable radix sorting" (2011).
    """

    def __init__(
        self,
        op: ir.Operation,
        rows: ir.Value,
        n: ir.Value,
        types: Sequence[ir.Type],
        passes: ir.Value | int,
        read: Callable[[ir.Value, ir.Value], Item],
        write: Write,
        sizes: Digits,
    ) -> None:
        self._n, self._types, self._read, self._write, self._size = n, list(types), read, write, sizes
        self._word, self._long = (ir.IntegerType.get_signless(width) for width in (32, 64))
        self._hold(sizes.items // 2)
        self._warps, self._digits = sizes.threads // WARP, 1 << sizes.bits
        with ir.InsertionPoint(op), op.location:
            self._passes = as_index(passes)
            fits = n <= self._tile
            short, self._rows = build.select(fits & (n > 0), rows, 0), build.select(fits, 0, rows)
        known = constant_value(n)
        if known is None or known <= self._tile:
            self._sort_tiles(Kernel(op, "tiles"), short)
        if known is None or known > self._tile:
            self._hold(sizes.items)
            self._sort_rows(op)

    def _hold(self, items: int) -> None:
        """Of pairs and of long keys as many as shared memory and registers have place for."""
        width = sum(int(kind.width) for kind in self._types)
        self._items = max(items * 32 // max(width, 32), 1)
        self._tile = self._items * self._size.threads

    # -- rows of a tile ------------------------------------------------------------------------------------

    def _sort_tiles(self, kernel: Kernel, rows: ir.Value) -> None:
        """One block sorts a row."""
        self._shared(kernel)
        with kernel.body():
            self._thread = thread_id()
            with span(rows, block_id(), grid_dim()) as row:
                self._row, self._stop = row, self._n
                items = self._items_at(build.const_index(0), self._types, first=True)

                def step(turn: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
                    self._shift = turn * self._size.bits
                    found = self._items_of(values)
                    ranks, _, _ = self._ranks([self._digit(item[0]) for item in found])
                    for item, rank in zip(found, ranks, strict=True):
                        _store(item, self._tiles, as_index(rank))
                    barrier()
                    place = self._first()
                    values = [x for i in range(self._items) for x in _load(self._tiles, place + i * WARP)]
                    barrier()
                    return values

                values = [x for _, item in items for x in item]
                sorted_ = self._items_of(carry(self._passes, values, step))
                place = self._first()
                for i, item in enumerate(sorted_):
                    with when(self._n > place + i * WARP):
                        self._write(row, place + i * WARP, item)
        with kernel.host():
            grid = [smaller(rows, GRID)]
        kernel.limit(self._size.threads, self._size.blocks + (len(self._types) == 1))
        kernel.launch(grid, [self._size.threads])

    def _items_of(self, parts: list[ir.Value]) -> list[Item]:
        each = len(self._types)
        return [parts[at : at + each] for at in range(0, len(parts), each)]

    # -- longer ones ---------------------------------------------------------------------------------------

    def _sort_rows(self, op: ir.Operation) -> None:
        """Several blocks sort a row."""
        with ir.InsertionPoint(op), op.location:
            tiles = larger(parts_of(self._n, self._tile), 1)
            # Of literals alone: memory whose size needs other divisions is asked for in each step of a loop.
            wanted = build.const_index(self._size.parts)
            for several in (1, 4, 16, 64, 256):
                fewer = build.const_index(-(-self._size.parts // (4 * several)))
                wanted = build.select(self._rows > several, fewer, wanted)
            self._parts = smaller(tiles, wanted)
            self._chunk = parts_of(tiles, self._parts) * self._tile
            halves = smaller(self._passes - 1, 2)
            self._memory = [allocate([halves, self._rows, self._n], kind) for kind in self._types]
            self._counts = allocate([self._rows, self._parts * self._digits], self._long)
            steps, block = loop(self._passes, [])
            with ir.InsertionPoint(block):
                end = build.create("scf.yield", [], [])
        kernel = Kernel(end, "digits")
        with kernel.host():
            turn = block.arguments[0]
            self._to, self._from = turn & 1, 1 - (turn & 1)
            self._is_first, self._is_last = turn.equals(0), turn.equals(self._passes - 1)
            self._shift = turn * self._size.bits
        self._count(kernel)
        prefix_sums(end, self._counts, self._size.each)
        self._move(Kernel(end, "radix"))
        known = constant_value(self._passes)
        if known is not None:
            # Launches one after the other need no count of steps, and may be part of a step themselves.
            with ir.InsertionPoint(steps), op.location:
                for step in range(known):
                    new: dict[ir.Value, ir.Value] = {turn: build.const_index(step)}
                    for each in [x.operation for x in block.operations][:-1]:
                        copy_with(each, new)
            steps.erase()

    def _count(self, kernel: Kernel) -> None:
        """Counts of digits in each part."""
        found = kernel.shared([self._digits], self._word)
        with self._part(kernel, self._size.threads, self._size.blocks):
            for digit in self._own():
                found[digit] = literal(0, self._word)
            barrier()
            with span(self._stop, self._start, self._tile) as start:
                for exists, (key,) in self._items_at(start, self._types[:1]):
                    with when(exists):
                        added(found, literal(1, self._word), as_index(self._digit(key)))
            barrier()
            for digit in self._own():
                count = converted(found[digit], self._long)
                self._counts[self._row, digit * self._parts + block_id()] = count
            barrier()

    def _move(self, kernel: Kernel) -> None:
        """Items of each part to where the prefix sums say."""
        self._shared(kernel)
        self._away = kernel.shared([self._digits], self._long)
        with self._part(kernel, self._size.threads, self._size.blocks):
            for digit in self._own():
                at = digit * self._parts + block_id()
                self._away[digit] = self._before(self._counts, at)
            with span(self._stop, self._start, self._tile) as start:
                self._move_tile(start)

    def _shared(self, kernel: Kernel) -> None:
        """Memory for ranks, and for a tile in order."""
        self._prefix = BlockPrefix(kernel, Running("add", np.dtype("int32")))
        self._room = kernel.shared([self._warps * self._digits], self._word)
        self._tiles = [kernel.shared([self._tile], kind) for kind in self._types]

    def _move_tile(self, start: ir.Value) -> None:
        """Moves a tile; takes and leaves where the next item of each digit goes."""
        items = [item for _, item in self._items_at(start, self._types)]
        digits = [self._digit(item[0]) for item in items]
        ranks, begins, counts = self._ranks(digits)
        for digit, begin in zip(self._own(), begins, strict=True):
            self._away[digit] = self._away[digit] - converted(begin, self._long)
        for item, rank in zip(items, ranks, strict=True):
            _store(item, self._tiles, as_index(rank))
        barrier()
        # What is beyond the end comes last.
        left = smaller(self._stop - start, self._tile) - self._thread

        def put(write: Write) -> None:
            for turn in range(self._items):
                rank = turn * self._size.threads
                item = _load(self._tiles, self._thread + rank)
                place = as_index(self._away[as_index(self._digit(item[0]))]) + self._thread
                with when(left > rank):
                    write(self._row, place + rank, item)

        either(self._is_last, [], lambda: put(self._write), lambda: put(self._keep))
        barrier()
        for digit, begin, count in zip(self._own(), begins, counts, strict=True):
            self._away[digit] = self._away[digit] + converted(begin + count, self._long)

    def _ranks(self, digits: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
        """Places of items in a tile in order of digits; where own digits begin, and how often they come."""

        def before(count: ir.Value) -> ir.Value:
            return self._prefix.before([count])[0][0]

        own = list(self._own())
        return by_block.ranks(_notation, digits, own, self._size.bits, self._warps, self._room, before)

    def _own(self) -> Iterator[ir.Value]:
        """The thread's digits, side by side."""
        each = self._digits // self._size.threads
        yield from (self._thread * each + number for number in range(each))

    def _items_at(
        self, start: ir.Value, types: list[ir.Type], *, first: bool = False
    ) -> list[tuple[ir.Value, Item]]:
        """The thread's items of the tile from `start` on, of parts of some types, and whether there are so
        many; beyond the part's end is what comes after all others. Each pass sees whether it is the first.
        """

        def read(places: list[ir.Value]) -> list[ir.Value]:
            def given() -> list[ir.Value]:
                return [x for place in places for x in self._read(self._row, place)[: len(types)]]

            def kept() -> list[ir.Value]:
                memory = self._memory[: len(types)]
                return [x for at in places for x in _load(memory, self._from, self._row, at)]

            return given() if first else either(self._is_first, types * len(places), given, kept)

        nothing = [literal(-1, kind) for kind in types]
        return self._items_from(start, read, nothing)

    def _digit(self, key: ir.Value) -> ir.Value:
        """The digit of a key at hand, as a word."""
        moved = key >> converted(converted(self._shift, self._long), key.type)
        return converted(moved, self._word) & (self._digits - 1)

    def _keep(self, row: ir.Value, place: ir.Value, item: Item) -> None:
        _store(item, self._memory, self._to, row, place)


_THREADS = 512


def demand_fewer(count: ir.Value, limit: int, given: str) -> None:
    """Makes a check of what is numbered with 32 bits, at the insertion point, unless it is known to hold.

    The text says `{given}` for the number.
    """
    known = constant_value(count)
    if known is None or known >= limit:
        most = build.const_index(limit)
        message = f"{given}, and a device sorts fewer than {{expected}}; compile it with mode='fast_run'"
        build.check(count < most, count, most, message)


class SortKernels:
    """The kernels of a call that sorts rows, or gives the positions which do (`argsort`).

    Args:
        call: before which they are launched.
        tile: elements of a row that is sorted by comparisons at most, a power of 2.
        sizes: of the kernels for longer rows.
    """

    def __init__(self, call: LibraryCall, tile: int, sizes: Digits) -> None:
        op, self._tile, self._positions = call.op, tile, call.kernel.name == "argsort"
        self._source, self._result = map(exact, call.buffers[:2])
        self._keys = Keys(call.dtypes[0], exact=not self._positions)
        self._types = [self._keys.type, ir.IntegerType.get_signless(32)][: 1 + self._positions]
        with ir.InsertionPoint(op), op.location:
            *self._sizes, self._n = build.dims(self._source)
            self._rows = product(self._sizes)
            fits = self._n <= tile
            threads = larger(blocks_for(self._n, 2 * WARP, _THREADS // WARP), 1) * WARP
            short = smaller(build.select(fits & (self._n > 0), self._rows, 0), GRID)
            long = build.select(fits, 0, self._rows)
            if self._positions:
                demand_fewer(self._n, 1 << 31, "argsort: a row has {given} elements")
        known = constant_value(self._n)
        if known is None or known <= tile:
            kernel = Kernel(op, "sort")
            shared = [kernel.shared([tile], kind) for kind in self._types]
            with kernel.body(), span(self._rows, block_id(), grid_dim()) as row:
                self._sort(shared, row)
            kernel.launch([short], [threads])
        if known is None or known > tile:
            passes = -(-self._keys.width // sizes.bits)
            RadixSort(op, long, self._n, self._types, passes, self._read, self._finish, sizes)

    def _read(self, row: ir.Value, place: ir.Value) -> Item:
        key = self._keys.of(self._source[*split(row, self._sizes), place])
        return [key, converted(place, self._types[1])] if self._positions else [key]

    def _sort(self, shared: list[ir.Value], row: ir.Value) -> None:
        """A block sorts a row; past its end is what comes after all others."""
        count = smaller(self._n, self._tile)
        levels = _levels(count)
        size = build.const_index(1) << levels
        with share(size) as place:
            inside = place < self._n
            key, *position = self._read(row, smaller(place, self._n - 1))
            item = [build.select(inside, key, self._keys.last())]
            _store([*item, *(build.select(inside, x, _NONE) for x in position)], shared, place)
        barrier()
        by_block.network(_notation, shared, size, levels, _after)
        with share(count) as place:
            self._finish(row, place, _load(shared, place))
        barrier()

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
    sorted in shared memory, by one block each, with Batcher's bitonic network; positions are compared where
    keys are equal, so that equal elements stay in their order. Longer ones are sorted by digits of 8 bits,
    from the lowest on, by one block each as long as they fit into its shared memory (4,096 of 32 bits); else
    by three or four kernels a digit, which read keys twice and write them once. Of all these those are
    launched that a row's length asks for. Complex numbers are left to others.

    Attributes:
        tile: elements of a row that is sorted by comparisons at most, a power of 2.
        bits: of a digit (`Digits`).
        threads: of a block.
        items: of a thread at a time.
        blocks: on a multiprocessor at a time.
        parts: blocks of the grid, about.
    """

    tile: int = 1024
    bits: int = 8
    threads: int = 256
    items: int = 32
    blocks: int = 2
    parts: int = 8 * H200.processors

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        sizes = Digits(self.bits, self.threads, self.items, self.blocks, self.parts)
        for call in calls_of(module, ("sort", "argsort")):
            if call.dtypes[0].kind == "c":
                continue
            SortKernels(call, self.tile, sizes)
            call.erase()
            self.count("calls")


# -- elements where a mask is true ---------------------------------------------------------------------------

# Threads of a block, blocks of the grid, about, and counts that one adds up.
_SELECTS, _PARTS, _EACH = 256, 8 * H200.processors, 2048


class SelectKernels(RowParts):
    """The kernels of a call: how many elements of each part are chosen, and where these go.

    Args:
        call: `compress`, `flatnonzero` or `count_true`, which is to be erased afterwards.
    """

    _items = 16

    def __init__(self, call: LibraryCall) -> None:
        *given, self._mask, self._result = map(exact, call.buffers)
        self._source = given[0] if given else None
        # Numbers of two parts are read where they are written.
        self._is_late = call.dtypes[0].kind == "c"
        self._word, self._long = (ir.IntegerType.get_signless(width) for width in (32, 64))
        self._tile = tile = _SELECTS * self._items
        with ir.InsertionPoint(call.op), call.op.location:
            self._n = build.dims(self._mask)[-1]
            self._sizes = build.dims(self._result)
            counts = call.kernel.name == "count_true"
            self._count = self._n if counts else self._sizes.pop()
            self._rows = product(self._sizes)
            tiles = larger(parts_of(self._n, tile), 1)
            parts = smaller(tiles, parts_of(build.const_index(_PARTS), larger(self._rows, 1)))
            self._chunk = parts_of(tiles, parts) * tile
            self._parts = parts_of(self._n, self._chunk)
            self._ends = allocate([self._rows, self._parts], self._long)
        self._note(Kernel(call.op, "chosen"))
        prefix_sums(call.op, self._ends, _EACH)
        if counts:
            self._total(Kernel(call.op, "count"))
        else:
            self._choose(Kernel(call.op, "select"))

    @contextmanager
    def _each(self, kernel: Kernel) -> Iterator[None]:
        """The block's part of each of its rows."""
        self._prefix = BlockPrefix(kernel, Running("add", np.dtype("int32")))
        with self._part(kernel, _SELECTS, 3):
            self._indices = split(self._row, self._sizes)
            yield

    def _found(self, start: ir.Value, arrays: list[ir.Value]) -> list[list[ir.Value]]:
        """The thread's elements of a tile: of each array, the first of which is the mask."""
        nothing = [literal(0, ir.MemRefType(array.type).element_type) for array in arrays]

        def read(places: list[ir.Value]) -> list[ir.Value]:
            return [self._at(array, place) for place in places for array in arrays]

        found = self._items_from(start, read, nothing)
        return [[flag.differs(0), *parts] for _, (flag, *parts) in found]

    def _at(self, array: ir.Value, place: ir.Value) -> ir.Value:
        """An element of the row; arrays with one row serve all."""
        shape = list(ir.MemRefType(array.type).shape)[:-1]
        row = [build.const_index(0) if size == 1 else x for size, x in zip(shape, self._indices, strict=True)]
        return array[*row, place]

    def _note(self, kernel: Kernel) -> None:
        with self._each(kernel):

            def tile(start: ir.Value, counts: list[ir.Value]) -> list[ir.Value]:
                (count,) = counts
                for (flag,) in self._found(start, [self._mask]):
                    count = count + converted(flag, self._word)
                return [count]

            none = [literal(0, self._word)]
            counts = carry(self._stop, none, tile, start=self._start, step=self._tile)
            (total,) = self._prefix.before(counts)[1]
            with on_first_thread():
                self._ends[self._row, block_id()] = converted(total, self._long)

    def _total(self, kernel: Kernel) -> None:
        """Final values of the last part of each row."""
        with kernel.each(self._rows, _SELECTS, GRID_ROWS) as row:
            (total,) = either(
                self._parts > 0,
                [self._long],
                lambda: [self._ends[row, self._parts - 1]],
                lambda: [literal(0, self._long)],
            )
            self._result[split(row, self._sizes)] = total

    def _choose(self, kernel: Kernel) -> None:
        with self._each(kernel):
            first = as_index(self._before(self._ends, block_id()))
            carry(self._stop, [first], self._tile_to, start=self._start, step=self._tile)

    def _tile_to(self, start: ir.Value, firsts: list[ir.Value]) -> list[ir.Value]:
        """Writes what is chosen of a tile, from a place on; gives the place after it."""
        # All are read before the first one is written, as one read would wait for the other.
        arrays = [self._mask] if self._source is None or self._is_late else [self._mask, self._source]
        items, lower = self._found(start, arrays), lanes_before()
        count, inside = literal(0, self._word), []
        for flag, *_ in items:
            lanes = lanes_where(flag)
            inside.append(count + bits_set(lanes & lower))
            count = count + bits_set(lanes)
        # The last lane has the warp's: all lanes get the sum of the warps before.
        is_last = (self._thread % WARP).equals(WARP - 1)
        (others,), (total,) = self._prefix.before([build.select(is_last, count, 0)])
        place = start + self._first()
        (first,) = firsts
        for i, ((flag, *value), at) in enumerate(zip(items, inside, strict=True)):
            to = first + as_index(others + at)
            with when(flag & (to < self._count)):
                here = place + i * WARP
                if self._source is None:
                    value = [converted(here, self._long)]
                elif self._is_late:
                    value = [self._at(self._source, here)]
                self._result[*self._indices, to] = value[0]
        return [first + as_index(total)]


@record()
class GpuSelect(Pass):
    """Makes kernels of calls that give the elements where a mask is true, their positions, or their number.

    Each block counts those of its part of a row, prefix sums of the counts say where the first one of each
    part goes, and each block reads its part again and writes: the lanes of a warp side by side, by the bits
    of a ballot. How many there are in all is known before: the host has asked for it.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("compress", "flatnonzero", "count_true")):
            SelectKernels(call)
            call.erase()
            self.count("calls")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements where a mask is true, and their positions: counts, prefix sums, and each element to its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from graphc.ir import build
from graphc.ir.value import as_index, converted, larger, literal, parts_of, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, either, span, when
from graphc.passes import Pass
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import GRID_ROWS, H200, Kernel, allocate
from graphc.passes.gpu._nest import exact
from graphc.passes.gpu._notation import (
    WARP,
    bits_set,
    block_id,
    grid_dim,
    lanes_before,
    lanes_where,
    on_first_thread,
    split,
    thread_id,
)
from graphc.passes.gpu.gpu_running import BlockPrefix, Running, prefix_sums
from graphc.passes.gpu.gpu_sort import first_of_warp, items_of_warp
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_THREADS, _ITEMS = 256, 16
# Blocks of the grid, about, and counts that one adds up.
_PARTS, _EACH = 8 * H200.processors, 2048


class SelectKernels:
    """The kernels of a call: how many elements of each part are chosen, and where these go.

    Args:
        call: `compress`, `flatnonzero` or `count_true`, which is to be erased afterwards.
    """

    def __init__(self, call: LibraryCall) -> None:
        *given, self._mask, self._result = map(exact, call.buffers)
        self._source = given[0] if given else None
        # Numbers of two parts are read where they are written.
        self._is_late = call.dtypes[0].kind == "c"
        self._word, self._long = (ir.IntegerType.get_signless(width) for width in (32, 64))
        self._tile = tile = _THREADS * _ITEMS
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
        """The block's part of each of its rows, in a kernel that is launched."""
        self._prefix = BlockPrefix(kernel, Running("add", np.dtype("int32")))
        with kernel.body():
            self._thread = thread_id()
            with span(self._rows, block_id(1), grid_dim(1)) as row:
                self._row, self._indices = row, split(row, self._sizes)
                self._start = block_id() * self._chunk
                self._stop = smaller(self._start + self._chunk, self._n)
                yield
        with kernel.host():
            grid = [self._parts, smaller(self._rows, GRID_ROWS)]
        kernel.limit(_THREADS, 3)
        kernel.launch(grid, [_THREADS])

    def _items(self, start: ir.Value, arrays: list[ir.Value]) -> list[list[ir.Value]]:
        """The thread's elements of a tile: of each array, the first of which is the mask."""
        place = start + first_of_warp(self._thread, _ITEMS)
        nothing = [literal(0, ir.MemRefType(array.type).element_type) for array in arrays]

        def read(places: list[ir.Value]) -> list[ir.Value]:
            return [self._at(array, place) for place in places for array in arrays]

        found = items_of_warp(place, _ITEMS, self._stop, read, nothing)
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
                for (flag,) in self._items(start, [self._mask]):
                    count = count + converted(flag, self._word)
                return [count]

            none = [literal(0, self._word)]
            counts = carry(self._stop, none, tile, start=self._start, step=self._tile)
            (total,) = self._prefix.before(counts)[1]
            with on_first_thread():
                self._ends[self._row, block_id()] = converted(total, self._long)

    def _total(self, kernel: Kernel) -> None:
        """Final values of the last part of each row."""
        with kernel.each(self._rows, _THREADS, GRID_ROWS) as row:
            (total,) = either(
                self._parts > 0,
                [self._long],
                lambda: [self._ends[row, self._parts - 1]],
                lambda: [literal(0, self._long)],
            )
            self._result[split(row, self._sizes)] = total

    def _choose(self, kernel: Kernel) -> None:
        with self._each(kernel):
            before = self._ends[self._row, larger(block_id() - 1, 0)]
            first = as_index(build.select(block_id().equals(0), 0, before))
            carry(self._stop, [first], self._tile_to, start=self._start, step=self._tile)

    def _tile_to(self, start: ir.Value, firsts: list[ir.Value]) -> list[ir.Value]:
        """Writes what is chosen of a tile, from a place on; gives the place after it."""
        # All are read before the first one is written, as one read would wait for the other.
        arrays = [self._mask] if self._source is None or self._is_late else [self._mask, self._source]
        items, lower = self._items(start, arrays), lanes_before()
        count, inside = literal(0, self._word), []
        for flag, *_ in items:
            lanes = lanes_where(flag)
            inside.append(count + bits_set(lanes & lower))
            count = count + bits_set(lanes)
        # The last lane has the warp's: all lanes get the sum of the warps before.
        is_last = (self._thread % WARP).equals(WARP - 1)
        (others,), (total,) = self._prefix.before([build.select(is_last, count, 0)])
        place = start + first_of_warp(self._thread, _ITEMS)
        (first,) = firsts
        for number, ((flag, *value), at) in enumerate(zip(items, inside, strict=True)):
            to = first + as_index(others + at)
            with when(flag & (to < self._count)):
                here = place + number * WARP
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

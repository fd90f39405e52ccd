# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of extremes of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.ir.value import converted, larger, literal, parts_of, smaller
from graphc.lowering.calls import number, product
from graphc.lowering.carried import carry, either, span, when
from graphc.passes import Pass
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._nest import Operand, are_aligned, is_wide, lanes_of
from graphc.passes.gpu._notation import WARP, block_id, grid_dim, on_first_thread, thread_id
from graphc.passes.gpu._reduce import BlockReduction, at_once
from graphc.passes.gpu._rows import Columns, Group, shape_of_blocks, split
from graphc.passes.gpu.gpu_sort import Keys
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_LATEST = (1 << 63) - 1
_PARTS, _BLOCKS = 1024, 1 << 20
# From so many rows on, one block for a row keeps a device busy.
_MANY = 512
# Operations for an element.
_COST = 12


@record()
class GpuExtreme(Pass):
    """Makes two kernels of each call that finds the first largest, or smallest, element of rows.

    Numbers become unsigned integers in the same order, with NaN, which wins, last. Blocks of threads find the
    extreme of parts of rows and its position, and then a warp for each row that of its parts. Where there are
    many rows they have one part each, and that is all. Complex numbers are left to others.

    Attributes:
        each: elements of a part, at least.
    """

    each: int = 16384

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("arg_extreme",)):
            if call.dtypes[0].kind == "c":
                continue
            _Kernels(call, self.each).lower()
            call.erase()
            self.count("calls")


class _Kernels:
    """The kernels of a call."""

    def __init__(self, call: LibraryCall, each: int) -> None:
        self._op = call.op
        self._source, self._result = map(_without_casts, call.buffers[:2])
        self._smallest, self._is_float = bool(call.attribute("smallest")), call.dtypes[0].kind == "f"
        self._keys = Keys(call.dtypes[0], exact=False)
        self._first, self._second = Kernel(call.op, "extremes"), Kernel(call.op, "extreme")
        rank = ir.MemRefType(self._source.type).rank
        # What stands for it in a nest is not asked for.
        self._operand = Operand(self._source, list(range(rank)), self._source)
        with self._first.host():
            *self._sizes, self._n = build.dims(self._source)
            self._rows = product(self._sizes)
            parts = larger(blocks_for(self._n, each, _PARTS), 1)
            self._parts = build.select(self._rows >= _MANY, 1, parts)
            self._one = self._parts.equals(1)
            self._found = [allocate([self._rows, self._parts], kind) for kind in self._kinds]

    @property
    def _kinds(self) -> list[ir.Type]:
        """Of a key and a position."""
        return [self._keys.type, ir.IntegerType.get_signless(64)]

    def lower(self) -> None:
        """The kernels, their launches, and whether there is an element at all."""
        self._write_parts()
        self._write_rows()
        with ir.InsertionPoint(self._op), self._op.location:
            status = converted(self._n.equals(0), ir.IntegerType.get_signless(64))
        self._op.results[0].replace_all_uses_with(status)

    def _write_parts(self) -> None:
        """The kernel that finds the extreme of parts of rows; if there is one part, that is all."""
        kernel, wide = self._first, [o for o in (self._operand,) if is_wide(o, len(self._sizes))]
        lanes = lanes_of(wide)
        with kernel.host():
            width, height = shape_of_blocks(self._n, 16)
            grid = smaller(parts_of(self._rows, height), _BLOCKS)
        with kernel.body():
            aligned = are_aligned(wide, lanes) if lanes > 1 else None
            part = block_id(1)
            first = part * width + thread_id()
            stride = grid_dim(1) * width

            def line(row: ir.Value, active: ir.Value, reduction: BlockReduction) -> None:
                indices = split(row, self._sizes)
                share = Columns(indices, [self._n], lanes, aligned, first, stride, active)
                found = share.fold(self._neutral(), self._take, self._later, at_once(_COST, lanes))
                found = reduction.together(found, self._later, self._neutral())
                with when(thread_id().equals(0) & active):
                    either(
                        self._one,
                        [],
                        lambda: self._store(found[1], indices),
                        lambda: self._store_part(found, row, part),
                    )

            self._each_row(kernel, width, height, line)
        kernel.launch([grid, self._parts], [width, height])

    def _write_rows(self) -> None:
        """The kernel that finds the extreme of all parts of a row."""
        kernel = self._second
        with kernel.host():
            # Where a row has one part, there is nothing left to do.
            rows = build.select(self._one, 0, smaller(self._rows, _BLOCKS))
            width, height = build.const_index(WARP), build.const_index(1)
        with kernel.body():

            def line(row: ir.Value, active: ir.Value, reduction: BlockReduction) -> None:
                def take(part: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                    return self._later(carried, [buffer[row, part] for buffer in self._found])

                own = carry(self._parts, self._neutral(), take, start=thread_id(), step=width)
                found = reduction.together(own, self._later, self._neutral())
                with on_first_thread():
                    self._store(found[1], split(row, self._sizes))

            self._each_row(kernel, width, height, line)
        kernel.launch([rows], [width])

    def _each_row(
        self,
        kernel: Kernel,
        width: ir.Value,
        height: ir.Value,
        line: Callable[[ir.Value, ir.Value, BlockReduction], None],
    ) -> None:
        """The rows of a block, `height` at a time; threads without one see the last."""
        reduction = BlockReduction(kernel, width)
        start = block_id() * height
        with span(self._rows, start=start, step=grid_dim() * height) as first:
            row = first + thread_id(1)
            line(smaller(row, self._rows - 1), row < self._rows, reduction)

    def _neutral(self) -> list[ir.Value]:
        """Initial key, which any element beats but those with the first key: where nothing has won,
        these are all.
        """
        return [literal(0, self._keys.type), build.const_i64(_LATEST)]

    def _take(self, group: Group, lane: int, carried: list[ir.Value]) -> list[ir.Value]:
        """The extreme after an element; positions grow, so that the first of equal ones stays."""
        key, place = self._key(group.load(self._operand, lane)), number(group.indices(lane)[-1])
        wins = key.above(carried[0])
        return [build.select(wins, new, old) for new, old in zip((key, place), carried, strict=True)]

    def _later(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """Of two extremes the one with the larger key; of equal ones the first."""
        wins = right[0].above(left[0]) | (left[0].equals(right[0]) & right[1].below(left[1]))
        return [build.select(wins, x, y) for x, y in zip(right, left, strict=True)]

    def _store(self, place: ir.Value, indices: Sequence[ir.Value]) -> list[ir.Value]:
        """Writes the position of a row's extreme."""
        self._result[indices] = build.select(place.equals(_LATEST), 0, place)
        return []

    def _store_part(self, found: Sequence[ir.Value], row: ir.Value, part: ir.Value) -> list[ir.Value]:
        """Writes the extreme of a part of a row."""
        for value, buffer in zip(found, self._found, strict=True):
            buffer[row, part] = value
        return []

    def _key(self, value: ir.Value) -> ir.Value:
        """A key, the largest of which wins."""
        key, last = self._keys.of(value), self._keys.last()
        if not self._smallest:
            return key
        turned = key ^ last
        return build.select(key.equals(last), key, turned) if self._is_float else turned


def _without_casts(buffer: ir.Value) -> ir.Value:
    """The array whose type says most of where its elements are."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name == "memref.cast":
        buffer = buffer.owner.operands[0]
    return buffer

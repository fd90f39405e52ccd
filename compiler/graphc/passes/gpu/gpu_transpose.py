# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise work that reads arrays across."""

from __future__ import annotations

from graphc.ir.lifetimes import root_of
from graphc.ir.value import smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import span, when
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel, blocks_for
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._notation import barrier, block_id, grid_dim, thread_id
from graphc.passes.gpu._rows import split
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_BLOCKS = 65535
# Elements along each side of a square, and rows of a block of threads.
_TILE, _ROWS = 32, 8
# Squares in shared memory.
_MOST = 4


@record()
class GpuTranspose(Pass):
    """Makes a kernel of elementwise nests some of whose inputs lie across the result.

    The last dimension of such an input is not that of the result, so that either reads or writes of
    neighbouring threads would be far apart. A block copies squares of 32 by 32 elements to shared memory,
    along the rows of the input, and reads them back along the rows of the result. What else the nest does is
    done on the way. All inputs that lie across have the same last dimension; others make the nest an
    elementwise one. Method: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA (2009).
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                nest = Nest(op)
                if _is_across(nest):
                    self._lower(op)

    def _lower(self, op: ir.Operation) -> None:
        kernel = Kernel(op, "transpose")
        with kernel.host():
            nest = Nest(op)
            nest.collapse()
        _Writer(nest, kernel).lower()
        op.erase()
        self.count("kernels")


def _across(nest: Nest) -> list[Operand]:
    """The inputs whose last dimension is another one than that of the nest."""
    last = nest.rank - 1
    return [o for o in nest.inputs if o.axes and o.axes[-1] not in (None, last) and last in o.axes]


def _is_across(nest: Nest) -> bool:
    if nest.rank < 2 or any(nest.reduction) or nest.gathered:
        return False
    found = _across(nest)
    if not 0 < len(found) <= _MOST or len({operand.axes[-1] for operand in found}) > 1:
        return False
    if any(operand.axes != list(range(nest.rank)) for operand in nest.outputs):
        return False
    last, other = nest.rank - 1, found[0].axes[-1]
    if nest.is_unit(last) or (other is not None and nest.is_unit(other)):
        return False
    written = {root_of(operand.buffer) for operand in nest.outputs}
    return not any(root_of(operand.buffer) in written for operand in found)


class _Writer:
    """Writes the kernel of a nest."""

    def __init__(self, nest: Nest, kernel: Kernel) -> None:
        self._nest, self._kernel = nest, kernel
        self._inputs = _across(nest)
        self._last = nest.rank - 1
        self._other = next(axis for axis in [self._inputs[0].axes[-1]] if axis is not None)
        self._rest = [axis for axis in range(nest.rank) if axis not in (self._last, self._other)]

    def lower(self) -> None:
        """The kernel and its launch."""
        nest = self._nest
        with self._kernel.host():
            self._sizes = [nest.extent(axis) for axis in range(nest.rank)]
            images = product([self._sizes[axis] for axis in self._rest])
            grid = [
                blocks_for(self._sizes[self._last], _TILE, 1 << 30),
                blocks_for(self._sizes[self._other], _TILE, _BLOCKS),
                smaller(images, _BLOCKS),
            ]
        # One element more in a row: threads that read a column do not meet in one bank.
        shared = [self._kernel.shared([_TILE, _TILE + 1], o.argument.type) for o in self._inputs]
        with self._kernel.body(), span(images, block_id(2), grid_dim(2)) as image:
            rest = split(image, [self._sizes[axis] for axis in self._rest])
            place = dict(zip(self._rest, rest, strict=True))
            first, stride = (x * _TILE for x in (block_id(1), grid_dim(1)))
            with span(self._sizes[self._other], first, stride) as number:
                self._square(place, number, shared)
        self._kernel.launch(grid, [_TILE, _ROWS])

    def _square(self, place: dict[int, ir.Value], other: ir.Value, shared: list[ir.Value]) -> None:
        """A square of the result."""
        tx, ty = thread_id(), thread_id(1)
        last = block_id() * _TILE
        lines = [ty + row for row in range(0, _TILE, _ROWS)]
        for operand, buffer in zip(self._inputs, shared, strict=True):
            for line in lines:
                across, along = self._clamped(self._other, other, tx), self._clamped(self._last, last, line)
                buffer[line, tx] = load(operand, self._indices(place, across, along))
        barrier()
        for line in lines:
            row, column = other + line, last + tx
            with when((row < self._sizes[self._other]) & (column < self._sizes[self._last])):
                self._element(self._indices(place, row, column), shared, tx, line)
        barrier()

    def _element(self, indices: list[ir.Value], shared: list[ir.Value], tx: ir.Value, line: ir.Value) -> None:
        nest = self._nest
        values = {o.argument: buffer[tx, line] for o, buffer in zip(self._inputs, shared, strict=True)}
        for operand in nest.needed(nest.yields):
            if operand.argument not in values:
                values[operand.argument] = load(operand, indices)
        found = nest.compute(nest.yields, values, indices)
        for operand, value in zip(nest.outputs, found, strict=True):
            store(value, operand, indices)

    def _clamped(self, axis: int, first: ir.Value, offset: ir.Value) -> ir.Value:
        """An index that is at most the last one."""
        return smaller(first + offset, self._sizes[axis] - 1)

    def _indices(self, place: dict[int, ir.Value], other: ir.Value, last: ir.Value) -> list[ir.Value]:
        found = {**place, self._other: other, self._last: last}
        return [found[axis] for axis in range(self._nest.rank)]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of matrices, one block of threads a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from graphc.ir import build
from graphc.ir.value import all_of, larger, literal, smaller
from graphc.lowering.carried import span
from graphc.lowering.scalars.builder import Scalar, ScalarBuilder
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    grid_dim,
    on_first_thread,
    thread_id,
)
from graphc.passes.gpu._rows import product, split
from graphc_dialects._mlir import ir

# Sides of matrices that one warp works on in shared memory, and threads of larger ones.
SMALL, _THREADS = WARP, 256
_BLOCKS = 1 << 20


class Matrix:
    """A matrix in memory: a buffer and the indices before its own.

    Args:
        buffer: of a real element type.
        before: the first indices.
    """

    def __init__(self, buffer: ir.Value, before: Sequence[ir.Value] = ()) -> None:
        self._buffer, self._before = buffer, list(before)
        self.type = ir.MemRefType(buffer.type).element_type

    def load(self, i: ir.Value, j: ir.Value) -> ir.Value:
        """An element."""
        return self._buffer[*self._before, i, j]

    def store(self, value: ir.Value, i: ir.Value, j: ir.Value) -> None:
        """Writes an element."""
        self._buffer[*self._before, i, j] = value


class Block:
    """Common work of the threads of a block.

    Args:
        call: whose numbers they compute with.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._b, self._dtype = ScalarBuilder(ir), call.dtypes[0]
        self.thread, self.threads = thread_id(), block_dim()

    def op(self, name: str, *values: ir.Value) -> ir.Value:
        """A method of `ScalarBuilder`."""
        return getattr(self._b, name)(*(Scalar(x, self._dtype) for x in values)).value

    def function(self, name: str, value: ir.Value) -> ir.Value:
        """An elementary function."""
        return self._b.math(name, Scalar(value, self._dtype)).value

    def constant(self, number: float) -> ir.Value:
        """A number."""
        return self._b.const(number, self._dtype).value

    def each(self, start: ir.Value, stop: ir.Value, work: Callable[[ir.Value], None]) -> None:
        """Numbers of a range, shared by the threads."""
        with span(stop, start=start + self.thread, step=self.threads) as number:
            work(number)

    def cells(self, rows: ir.Value, columns: ir.Value, work: Callable[[ir.Value, ir.Value], None]) -> None:
        """Elements of a matrix, shared by the threads."""
        count = rows * columns

        def cell(number: ir.Value) -> None:
            work(number // columns, number % columns)

        self.each(build.const_index(0), count, cell)

    def divide_row(self, work: Matrix, i: ir.Value, first: ir.Value, count: ir.Value) -> None:
        """Divides elements of a row by the one on the diagonal, for which all threads wait.

        Args:
            work: the matrix.
            i: the row.
            first: the column of the first element.
            count: how many elements.
        """
        pivot = work.load(i, i)

        def divide(number: ir.Value) -> None:
            column = first + number
            work.store(self.op("truediv", work.load(i, column), pivot), i, column)

        self.each(build.const_index(0), count, divide)
        barrier()


class Work(Protocol):
    """Work of the threads of a block on a matrix."""

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the memory to work in, at the insertion point."""

    def __call__(self, block: Block, indices: list[ir.Value], work: Matrix) -> ir.Value:
        """Writes it.

        Args:
            block: the threads.
            indices: of the matrix in the batch.
            work: memory to work in.

        Returns:
            Whether the matrix is fine; all threads have the same answer.
        """


class MatrixKernels:
    """Two kernels of a call for a batch of matrices: one warp a matrix, for sides up to 32, in shared memory,
    and a block a matrix for larger ones, in memory of the device. The sizes say which of them is launched.

    Args:
        call: its operation is to be erased afterwards. The first buffer has the matrices.
        work: writes what is done with a matrix.
        columns: the most columns of the memory to work in for small matrices.
        checked: whether it is an error if a matrix is not fine.
        error: which one, by its number among those of the library's kernel.
    """

    def __init__(
        self, call: LibraryCall, work: Work, columns: int = SMALL, *, checked: bool, error: int = 1
    ) -> None:
        self._call, self._work, self._columns, self._error = call, work, columns, error
        self._small = Kernel(call.op, f"{call.kernel.name}_small")
        with self._small.host():
            *self._sizes, _, _ = build.dims(call.buffers[0])
            self._count = product(self._sizes)
            rows, wide = work.sides
            limits = [size <= limit for size, limit in ((rows, SMALL), (wide, columns))]
            self._is_small = all_of(limits)
            many = build.select(self._is_small, 0, self._count)
            self._memory = allocate([many, rows, wide], ir.MemRefType(call.buffers[0].type).element_type)
            self._status = allocate([self._count], ir.IntegerType.get_signless(64)) if checked else None
            warps = blocks_for(rows, WARP, _THREADS // WARP)
            warps = larger(warps, 1)
            self._threads = warps * WARP

    def lower(self) -> None:
        """The kernels and their launches; what used the call's status reads that of all matrices."""
        large = Kernel(self._call.op, self._call.kernel.name)
        kind = ir.MemRefType(self._memory.type).element_type
        # One element more in a row: threads that read a column do not meet in one bank.
        shared = self._small.shared([SMALL, self._columns + 1], kind)
        self._write(self._small, lambda number: Matrix(shared))
        self._write(large, lambda number: Matrix(self._memory, [number]))
        with self._small.host():
            grid, none = smaller(self._count, _BLOCKS), build.const_index(0)
            grids = build.select(self._is_small, grid, none), build.select(self._is_small, none, grid)
            warp = build.const_index(WARP)
        self._small.launch([grids[0]], [warp])
        large.launch([grids[1]], [self._threads])
        op = self._call.op
        with ir.InsertionPoint(op), op.location:
            status = _zero() if self._status is None else _largest(self._status)
        op.results[0].replace_all_uses_with(status)

    def _write(self, kernel: Kernel, memory: Callable[[ir.Value], Matrix]) -> None:
        with kernel.body():
            block = Block(self._call)
            start, stride = block_id(), grid_dim()
            with span(self._count, start=start, step=stride) as number:
                fine = self._work(block, split(number, self._sizes), memory(number))
                if self._status is not None:
                    status = build.select(fine, build.const_i64(0), self._error)
                    with on_first_thread():
                        self._status[number] = status
                barrier()


def _largest(numbers: ir.Value) -> ir.Value:
    """The largest of an array of numbers, on the host; 0 if there are none."""
    kind = ir.MemRefType(numbers.type).element_type
    found = allocate([], kind)
    build.fill_buffer(_zero(), found)
    maps = [ir.AffineMap.get_identity(1), ir.AffineMap.get(1, 0, [])]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<reduction>")]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
    }
    made = ir.Operation.create("linalg.generic", operands=[numbers, found], attributes=attributes, regions=1)
    block = ir.Block.create_at_start(made.regions[0], [kind, kind])
    with ir.InsertionPoint(block):
        larger = build.create("arith.maxsi", [kind], list(block.arguments)).result
        build.create("linalg.yield", [], [larger])
    return found[()]


def _zero() -> ir.Value:
    kind = ir.IntegerType.get_signless(64)
    return literal(0, kind)


def in_triangle(i: ir.Value, j: ir.Value, lower: bool) -> tuple[ir.Value, ir.Value]:
    """Flags of the elements of one triangle of a symmetric matrix."""
    large, small = larger(i, j), smaller(i, j)
    return (large, small) if lower else (small, large)


def true() -> ir.Value:
    """A condition that holds."""
    kind = ir.IntegerType.get_signless(1)
    return literal(1, kind)


def above_zero(value: ir.Value) -> ir.Value:
    """True if a number is above 0, and not NaN."""
    zero = literal(0.0, value.type)
    return _compare(2, value, zero)


def is_not_zero(value: ir.Value) -> ir.Value:
    """True if a number is not 0; NaN is not."""
    zero = literal(0.0, value.type)
    return _compare(13, value, zero)


def _compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    bit = ir.IntegerType.get_signless(1)
    return build.create("arith.cmpf", [bit], [a, b], predicate=attribute).result

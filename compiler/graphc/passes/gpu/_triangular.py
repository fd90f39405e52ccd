# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky factors and triangular systems, by the threads of a block."""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering.carried import carry
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._matrices import Block, Matrix, above_zero, is_not_zero, true
from graphc.passes.gpu._notation import barrier, on_first_thread
from graphc_dialects._mlir import ir

_NAN = float("nan")


class Cholesky:
    """The factor of a matrix, column by column: a thread has rows of what is left.

    Args:
        call: of the library's kernel.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._call, self._lower = call, bool(call.attribute("lower"))

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the matrix."""
        n = build.dims(self._call.buffers[0])[-1]
        return n, n

    def __call__(self, block: Block, indices: list[ir.Value], work: Matrix) -> ir.Value:
        source, result = (Matrix(buffer, indices) for buffer in self._call.buffers)
        n = build.dim(self._call.buffers[0], len(indices))
        block.cells(n, n, lambda i, j: work.store(source.load(*self._turned(i, j)), i, j))
        barrier()
        fine = factor(block, work, n)

        def write(i: ir.Value, j: ir.Value) -> None:
            inside = j <= i if self._lower else i <= j
            value = build.select(inside, work.load(*self._turned(i, j)), block.constant(0.0))
            result.store(build.select(fine, value, block.constant(_NAN)), i, j)

        block.cells(n, n, write)
        return fine

    def _turned(self, i: ir.Value, j: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The element of the lower triangle that one of the matrix is."""
        return (i, j) if self._lower else (j, i)


def factor(block: Block, work: Matrix, n: ir.Value) -> ir.Value:
    """Makes Cholesky's factor of a matrix in its lower triangle.

    Args:
        block: the threads.
        work: the matrix; other columns may be beside it.
        n: how many rows it has.

    Returns:
        Whether there is one.
    """

    def column(j: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        pivot, after = work.load(j, j), j + 1
        fine = carried[0] & above_zero(pivot)
        root = block.function("sqrt", pivot)
        barrier()
        with on_first_thread():
            work.store(root, j, j)
        block.each(after, n, lambda i: work.store(block.op("truediv", work.load(i, j), root), i, j))
        barrier()

        def row(i: ir.Value) -> None:
            own = work.load(i, j)

            def element(k: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                change = block.op("mul", own, work.load(k, j))
                work.store(block.op("sub", work.load(i, k), change), i, k)
                return []

            carry(i + 1, [], element, start=after)

        block.each(after, n, row)
        barrier()
        return [fine]

    return carry(n, [true()], column)[0]


class Triangular:
    """The solution of a triangular system, row by row: threads have elements of what is left.

    Args:
        call: of the library's kernel.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._call = call
        self._transposed = bool(call.attribute("trans"))
        self._forward = bool(call.attribute("lower")) != self._transposed
        self._unit = bool(call.attribute("unit_diagonal"))

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the right side."""
        *_, n, k = build.dims(self._call.buffers[1])
        return n, k

    def __call__(self, block: Block, indices: list[ir.Value], work: Matrix) -> ir.Value:
        a, b, result = (Matrix(buffer, indices) for buffer in self._call.buffers)
        n, k = (build.dim(self._call.buffers[1], len(indices) + axis) for axis in range(2))
        self._block, self._a, self._work, self._n, self._k = block, a, work, n, k
        fine = true() if self._unit else carry(n, [true()], self._regular)[0]
        block.cells(n, k, lambda i, c: work.store(b.load(i, c), i, c))
        barrier()
        carry(n, [], self._row)
        nothing = block.constant(_NAN)
        block.cells(n, k, lambda i, c: result.store(build.select(fine, work.load(i, c), nothing), i, c))
        return fine

    def _regular(self, i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        condition = is_not_zero(self._a.load(i, i))
        return [carried[0] & condition]

    def _row(self, step: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        block, work, one = self._block, self._work, build.const_index(1)
        last = self._n - one - step
        i = step if self._forward else last
        if not self._unit:
            pivot = self._a.load(i, i)

            def divide(c: ir.Value) -> None:
                work.store(block.op("truediv", work.load(i, c), pivot), i, c)

            block.each(build.const_index(0), self._k, divide)
            barrier()
        first = i + one if self._forward else build.const_index(0)

        def element(number: ir.Value, c: ir.Value) -> None:
            row = first + number
            factor = self._a.load(*((i, row) if self._transposed else (row, i)))
            change = block.op("mul", factor, work.load(i, c))
            work.store(block.op("sub", work.load(row, c), change), row, c)

        # As many rows are left from either end.
        block.cells(last, self._k, element)
        barrier()
        return []

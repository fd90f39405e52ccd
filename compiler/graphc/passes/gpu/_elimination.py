# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems, inverses and determinants by elimination with row exchanges, by the threads of a block."""

from __future__ import annotations

from graphc.ir import build
from graphc.library.linalg.solve import GENERAL
from graphc.lowering.carried import carry
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._matrices import Block, Matrix, in_triangle, is_not_zero, true
from graphc.passes.gpu._notation import barrier, on_first_thread
from graphc_dialects._mlir import ir

CALLS = ("solve", "inv", "det", "slogdet")
_NAN = float("nan")


class Elimination:
    """Elimination in a matrix, from its rows with the right sides after them.

    Args:
        call: of one of `CALLS`.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._call, self._name = call, call.kernel.name
        self._buffers = call.buffers[: len(call.kernel.types)]
        is_solve = self._name == "solve"
        self._is_half = is_solve and call.attribute("assume") != GENERAL
        self._lower = is_solve and bool(call.attribute("lower"))
        self._transposed = is_solve and not self._is_half and bool(call.attribute("transposed"))

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the memory to work in, at the insertion point."""
        n = build.dims(self._buffers[0])[-1]
        if not self._is_system:
            return n, n
        right = n if self._name == "inv" else build.dims(self._buffers[1])[-1]
        return n, n + right

    def __call__(self, block: Block, indices: list[ir.Value], work: Matrix) -> ir.Value:
        self._block, self._work = block, work
        self._n, self._width = self.sides
        self._k = self._width - self._n
        source = Matrix(self._buffers[0], indices)

        block.cells(self._n, self._n, lambda i, j: work.store(source.load(*self._place(i, j)), i, j))
        if self._is_system:

            def right(i: ir.Value, c: ir.Value) -> None:
                work.store(self._right(indices, i, c), i, self._after(c))

            block.cells(self._n, self._k, right)
        barrier()
        one, nothing = block.constant(1.0), block.constant(0.0)
        fine, sign, value = carry(self._n, [true(), one, nothing if self._is_log else one], self._column)
        if not self._is_system:
            self._write_number(indices, sign, value)
            return true()
        carry(self._n, [], self._substitute)
        result = Matrix(self._buffers[-1], indices)

        def write(i: ir.Value, c: ir.Value) -> None:
            found = work.load(i, self._after(c))
            result.store(build.select(fine, found, block.constant(_NAN)), i, c)

        block.cells(self._n, self._k, write)
        return fine

    def _place(self, i: ir.Value, j: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Position of an element: of a symmetric matrix in the triangle that is said."""
        if not self._is_half:
            return (j, i) if self._transposed else (i, j)
        return in_triangle(i, j, self._lower)

    @property
    def _is_log(self) -> bool:
        return self._name == "slogdet"

    @property
    def _is_system(self) -> bool:
        return self._name in ("solve", "inv")

    def _after(self, column: ir.Value) -> ir.Value:
        """A column of the right sides."""
        return self._n + column

    def _right(self, indices: list[ir.Value], i: ir.Value, c: ir.Value) -> ir.Value:
        if self._name == "inv":
            block = self._block
            return build.select(i.equals(c), block.constant(1.0), block.constant(0.0))
        return Matrix(self._buffers[1], indices).load(i, c)

    def _write_number(self, indices: list[ir.Value], sign: ir.Value, value: ir.Value) -> None:
        values = [sign, value] if self._is_log else [value]
        with on_first_thread():
            for number, buffer in zip(values, self._buffers[1:], strict=True):
                buffer[indices] = number

    def _column(self, j: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """Brings the largest element of a column into its row, and takes that off the rows below."""
        block, work, n = self._block, self._work, self._n
        fine, sign, value = carried
        row = self._largest(j)
        barrier()

        def swap(c: ir.Value) -> None:
            here, there = work.load(j, c), work.load(row, c)
            work.store(there, j, c)
            work.store(here, row, c)

        # Where the row is its own, a thread writes what it has read.
        block.each(build.const_index(0), self._width, swap)
        barrier()
        pivot, below = work.load(j, j), j + 1
        regular, nothing = is_not_zero(pivot), block.constant(0.0)

        def factor(i: ir.Value) -> None:
            found = block.op("truediv", work.load(i, j), pivot)
            work.store(build.select(regular, found, nothing), i, j)

        block.each(below, n, factor)
        barrier()

        def change(i: ir.Value, c: ir.Value) -> None:
            i, c = below + i, below + c
            product = block.op("mul", work.load(i, j), work.load(j, c))
            work.store(block.op("sub", work.load(i, c), product), i, c)

        rows, columns = (size - below for size in (n, self._width))
        block.cells(rows, columns, change)
        barrier()
        both = fine & regular
        moved = row.differs(j)
        return [both, *self._number(sign, value, pivot, moved)]

    def _largest(self, j: ir.Value) -> ir.Value:
        """The row from j on with the first largest element of column j; each thread looks for itself."""
        block, work = self._block, self._work

        def body(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            size = block.op("abs", work.load(i, j))
            larger = block.op("gt", size, carried[0])
            return [build.select(larger, x, y) for x, y in zip((size, i), carried, strict=True)]

        start = j + 1
        return carry(self._n, [block.op("abs", work.load(j, j)), j], body, start=start)[1]

    def _number(
        self, sign: ir.Value, value: ir.Value, pivot: ir.Value, moved: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The determinant, or its sign and logarithm, with one more pivot."""
        block = self._block
        if not self._is_log:
            product = block.op("mul", value, pivot)
            return sign, build.select(moved, block.op("neg", product), product)
        turned = block.op("mul", sign, block.op("sign", pivot))
        size = block.function("log", block.op("abs", pivot))
        return build.select(moved, block.op("neg", turned), turned), block.op("add", value, size)

    def _substitute(self, step: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        """A row of the solution, from the last one on."""
        block, work = self._block, self._work
        last = self._n - 1
        i = last - step
        block.divide_row(work, i, self._n, self._k)

        def change(row: ir.Value, c: ir.Value) -> None:
            c = self._after(c)
            product = block.op("mul", work.load(row, i), work.load(i, c))
            work.store(block.op("sub", work.load(row, c), product), row, c)

        block.cells(i, self._k, change)
        barrier()
        return []

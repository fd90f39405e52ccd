# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Systems with positive definite matrices, by the threads of a block."""

from __future__ import annotations

from graphc.ir import build
from graphc.lowering.carried import carry
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._kernel import barrier
from graphc.passes.gpu._matrices import Block, Matrix, in_triangle
from graphc.passes.gpu._triangular import factor
from graphc_dialects._mlir import ir

_NAN = float("nan")


class Positive:
    """The solution of a system by Cholesky's factor, the right sides beside the matrix.

    Args:
        call: of the library's kernel.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._call, self._lower = call, bool(call.attribute("lower"))

    @property
    def sides(self) -> tuple[ir.Value, ir.Value]:
        """Rows and columns of the memory to work in, at the insertion point."""
        *_, n, k = build.dims(self._call.buffers[1])
        return n, build.index_op("addi", n, k)

    def __call__(self, block: Block, indices: list[ir.Value], work: Matrix) -> ir.Value:
        a, b, result = (Matrix(buffer, indices) for buffer in self._call.buffers[:3])
        n, k = (build.dim(self._call.buffers[1], len(indices) + axis) for axis in range(2))
        self._block, self._work, self._n, self._k = block, work, n, k

        block.cells(n, n, lambda i, j: work.store(a.load(*in_triangle(i, j, self._lower)), i, j))
        block.cells(n, k, lambda i, c: work.store(b.load(i, c), i, self._after(c)))
        barrier()
        fine = factor(block, work, n)
        carry(n, [], self._forward)
        carry(n, [], self._backward)

        def write(i: ir.Value, c: ir.Value) -> None:
            result.store(build.select(fine, work.load(i, self._after(c)), block.constant(_NAN)), i, c)

        block.cells(n, k, write)
        return fine

    def _after(self, column: ir.Value) -> ir.Value:
        """A column of the right sides."""
        found: ir.Value = build.index_op("addi", self._n, column)
        return found

    def _forward(self, i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        """A row of the solution for the factor, from the first one on: it is taken off those below."""
        self._block.divide_row(self._work, i, self._n, self._k)
        below = build.index_op("addi", i, build.const_index(1))

        def change(number: ir.Value, c: ir.Value) -> None:
            row = build.index_op("addi", below, number)
            self._take_off(row, i, self._work.load(row, i), c)

        self._block.cells(build.index_op("subi", self._n, below), self._k, change)
        barrier()
        return []

    def _backward(self, step: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        """A row of the solution for its transpose, from the last one on: it is taken off those above."""
        last = build.index_op("subi", self._n, build.const_index(1))
        i = build.index_op("subi", last, step)
        self._block.divide_row(self._work, i, self._n, self._k)
        self._block.cells(i, self._k, lambda row, c: self._take_off(row, i, self._work.load(i, row), c))
        barrier()
        return []

    def _take_off(self, row: ir.Value, i: ir.Value, share: ir.Value, c: ir.Value) -> None:
        """Takes a share of a row of right sides off an element of another one."""
        block, work, c = self._block, self._work, self._after(c)
        work.store(block.op("sub", work.load(row, c), block.op("mul", share, work.load(i, c))), row, c)

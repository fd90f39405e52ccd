# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors, systems, inverses and determinants of batches of matrices.

Systems with positive definite matrices, by the threads of a block.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import build
from graphc.library.linalg.solve import POSITIVE
from graphc.lowering.carried import carry
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._elimination import CALLS, Elimination
from graphc.passes.gpu._matrices import SMALL, Block, Matrix, MatrixKernels, Work, in_triangle
from graphc.passes.gpu._notation import barrier
from graphc.passes.gpu._triangular import Cholesky, Triangular, factor
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

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
        return n, n + k

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
        return self._n + column

    def _forward(self, i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        """A row of the solution for the factor, from the first one on: it is taken off those below."""
        self._block.divide_row(self._work, i, self._n, self._k)
        below = i + 1

        def change(number: ir.Value, c: ir.Value) -> None:
            row = below + number
            self._take_off(row, i, self._work.load(row, i), c)

        self._block.cells(self._n - below, self._k, change)
        barrier()
        return []

    def _backward(self, step: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        """A row of the solution for its transpose, from the last one on: it is taken off those above."""
        last = self._n - 1
        i = last - step
        self._block.divide_row(self._work, i, self._n, self._k)
        self._block.cells(i, self._k, lambda row, c: self._take_off(row, i, self._work.load(i, row), c))
        barrier()
        return []

    def _take_off(self, row: ir.Value, i: ir.Value, share: ir.Value, c: ir.Value) -> None:
        """Takes a share of a row of right sides off an element of another one."""
        block, work, c = self._block, self._work, self._after(c)
        work.store(block.op("sub", work.load(row, c), block.op("mul", share, work.load(i, c))), row, c)


@record()
class GpuFactor(Pass):
    """Makes kernels of calls for factors, systems, inverses and determinants of float32 and float64.

    The factors are Cholesky's; systems are general or triangular.

    Where no side is longer than 32, one warp has a matrix, in shared memory; otherwise a block of up to 256
    threads, in memory of the device. Sizes say which of the two kernels is launched. A factor is made column
    by column, and a thread has rows of what is left; a triangular system is solved row by row, and threads
    have elements of what is left. Other systems are solved by elimination with row exchanges, the right sides
    beside the matrix, which may be of twice as many columns then; so are those that are said to be symmetric,
    of which one triangle is read, and those that are said to be positive definite by Cholesky's factor.
    Matrices that have no factor, or are singular, are noted for each matrix of the batch;
    if that is an error, the host reads whether there is one.

    Source: G. Golub and C. Van Loan, "Matrix Computations", outer product Cholesky, column-oriented
    substitution, Gaussian elimination with partial pivoting.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("cholesky", "solve_triangular", *CALLS)):
            name = call.kernel.name
            if call.dtypes[0].kind != "f" or call.dtypes[0].itemsize < 4:
                continue
            is_positive = name == "solve" and call.attribute("assume") == POSITIVE
            kind = Positive if is_positive else _OTHERS.get(name, Elimination)
            columns = SMALL if name in _OTHERS else 2 * SMALL
            error = NOT_POSITIVE if is_positive else 1
            MatrixKernels(call, kind(call), columns, checked=_is_checked(call), error=error).lower()
            call.erase()
            self.count("calls")


# Of the errors of the library's `solve`, that a matrix is not positive definite.
NOT_POSITIVE = 2
_OTHERS: dict[str, Callable[[LibraryCall], Work]] = {"cholesky": Cholesky, "solve_triangular": Triangular}


def _is_checked(call: LibraryCall) -> bool:
    """True if a matrix that has no factor, or is singular, is an error."""
    if call.kernel.name in ("det", "slogdet"):
        return False
    if "unit_diagonal" in call.kernel.keywords and call.attribute("unit_diagonal"):
        return False
    return call.kernel.may_fail

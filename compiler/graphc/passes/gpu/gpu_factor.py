# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors, systems, inverses and determinants of batches of matrices."""

from __future__ import annotations

from collections.abc import Callable

from graphc.library.linalg.solve import POSITIVE
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._elimination import CALLS, Elimination
from graphc.passes.gpu._matrices import SMALL, MatrixKernels, Work
from graphc.passes.gpu._positive import Positive
from graphc.passes.gpu._triangular import Cholesky, Triangular
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


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
    """Whether a matrix that has no factor, or is singular, is an error."""
    if call.kernel.name in ("det", "slogdet"):
        return False
    if "unit_diagonal" in call.kernel.keywords and call.attribute("unit_diagonal"):
        return False
    return call.kernel.may_fail

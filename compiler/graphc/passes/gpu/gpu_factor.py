# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky factors and triangular systems of batches of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._matrices import MatrixKernels, Work
from graphc.passes.gpu._triangular import Cholesky, Triangular
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir


@dataclass
class GpuFactor(Pass):
    """Makes kernels of calls for Cholesky factors and triangular systems of float32 and float64.

    Where no side is longer than 32, one warp has a matrix, in shared memory; otherwise a block of up to 256
    threads, in memory of the device. Sizes say which of the two kernels is launched. A factor is made column
    by column, and a thread has rows of what is left; a system is solved row by row, and threads have elements
    of what is left. Matrices that have no factor, or are singular, are noted for each matrix of the batch;
    if that is an error, the host reads whether there is one.

    Source: G. Golub and C. Van Loan, "Matrix Computations", outer product Cholesky and column-oriented
    substitution.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("cholesky", "solve_triangular")):
            if call.dtypes[0].kind != "f" or call.dtypes[0].itemsize < 4:
                continue
            work: Work = Cholesky(call) if call.kernel.name == "cholesky" else Triangular(call)
            MatrixKernels(call, work, checked=_is_checked(call)).lower()
            call.erase()
            self.count("calls")


def _is_checked(call: LibraryCall) -> bool:
    """Whether a matrix that has no factor, or is singular, is an error."""
    if "unit_diagonal" in call.kernel.keywords and call.attribute("unit_diagonal"):
        return False
    return "check" not in call.kernel.keywords or bool(call.attribute("check"))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solves linear systems where programs invert matrices, and factors a matrix once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import Rewriter
from graphc.ir.walk import functions, walk
from graphc.passes.graph.linear._rules import rules
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class LinearSystems(Pass):
    """Replaces inverses and determinants by what is cheaper or more accurate, and shares factorizations.

    | pattern | becomes | why |
    |---|---|---|
    | `inv(A) @ b`, `b @ inv(A)` | `solve(A, b)`, `solve(A.T, b.T).T` | a third of the work, smaller errors |
    | `inv(inv(A))` | `A` | no work; a singular matrix is not noticed |
    | `log(det(A))` | the logarithm of `slogdet(A)`, NaN where the sign is negative | no overflow |
    | `log(abs(det(A)))`, `sign(det(A))` | the results of `slogdet(A)` | no overflow |
    | `solve(L, b)`, L a Cholesky factor or its transpose | `solve_triangular(L, b)` | no factorization |
    | `solve(L @ L.T, b)`, L a Cholesky factor | two triangular systems | no factorization |
    | `cholesky(L @ L.T)`, L a Cholesky factor | `L` | no work |
    | several `solve(A, ...)` | one `lu_factor(A)`, and triangular systems | one factorization |
    | several positive definite `solve(A, ...)` | one `cholesky(A)`, and triangular systems | the same |
    | `solve(A, b)` in a loop that does not change A | `lu_factor(A)`, which leaves the loop | the same |

    An inverse or a determinant with other uses stays, as it is computed anyway. Determinants are looked at
    for real matrices, but in `log(abs(det(A)))`. The gradient of a system is a system with the same matrix,
    so that a value and its gradient share one factorization. Batches share factors only where the matrices
    are known to be large: for small ones, several passes over them cost more than a second factorization.

    `L @ L.T` is recognised for real matrices. `LinAlgError` is raised for the same matrices, but for
    `inv(inv(A))`. Rounding differs in the last places.

    Source: PyTensor's `tensor/rewriting/linalg`.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            operations = list(walk(function))
            if not any(op.name in _TRIGGERS for op in operations):
                continue
            rewriter = Rewriter(function, rules(operations))
            rewriter.run()
            for name, number in rewriter.counts.items():
                self.count(name.strip("_").replace("_", " "), number)


_TRIGGERS = frozenset({"graphc.inv", "graphc.det", "graphc.solve", "graphc.cholesky"})

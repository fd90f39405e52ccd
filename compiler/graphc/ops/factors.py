# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of matrices (Cholesky, LU, QR), and linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, only
from graphc.graph.op import multilinear
from graphc.ops.create import eye, tril, triu
from graphc.ops.join import concatenate, stack
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.math import minimum
from graphc.ops.matrices import (
    _MatrixOp,
    add,
    adjoint,
    conj,
    diagonal,
    in_triangle,
    mm,
    on_diagonal,
    real,
    transposed,
)
from graphc.ops.shape import product_of, sizes_of
from graphc.ops.shaping import batch_in_front, dimshuffle, reshape, shape

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


# What is known of a matrix, by the number that the kernel knows it by.
ASSUMPTIONS = {"gen": 0, "sym": 1, "her": 2, "pos": 3}


class _Solver(_MatrixOp):
    """Base of ops with a matrix and right-hand sides as columns."""

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """Many right-hand sides of one matrix are columns."""
        a, b = inputs
        if batched[0] or node.inputs[0].type.ndim > 2:
            return batch_in_front(self, node, inputs, batched, size)
        return [columns_solved(self, a, b)]


def columns_solved(
    op: Callable[[Variable, Variable], TensorVariable], a: Variable, b: Variable
) -> TensorVariable:
    """``op(a, b)`` for one matrix and a batch of right-hand sides, with a single factorization."""
    *batch, n, k = sizes_of(b)
    rank = b.type.ndim
    rows = dimshuffle(b, (rank - 2, *range(rank - 2), rank - 1))
    flat = reshape(rows, (n, -1)) if all(b.type.shape) else reshape(rows, (n, product_of([*batch, k])))
    found = reshape(op(a, flat), (n, *batch, k))
    return dimshuffle(found, (*range(1, rank - 1), 0, rank - 1))


class SolveTriangular(_Solver):
    """Solution of ``op(A) X = B`` for a triangular A; the other triangle is not read.

    Args:
        lower: which triangle A has.
        trans: op: 0 nothing, 1 the transpose, 2 the conjugate transpose.
        unit_diagonal: the diagonal is not read and counts as 1.
        check: raise LinAlgError where A is singular, else the solution is NaN.
    """

    kernel = "solve_triangular"
    lower: bool = False
    trans: int = 0
    unit_diagonal: bool = False
    check: bool = True

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (x,), g = inputs, outputs, only(cotangents)
        back = type(self)(self.lower, 0 if self.trans else 1, self.unit_diagonal, self.check)
        g_b = back(conj(a) if self.trans == 2 else a, g)
        g_a = -mm(g_b, transposed(x))
        if self.trans:
            g_a = transposed(g_a)
        if self.trans == 2:
            g_a = conj(g_a)
        offset = int(self.unit_diagonal)
        return [tril(g_a, -offset) if self.lower else triu(g_a, offset), g_b]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a, _), (x,), (t_a, t_b) = inputs, outputs, tangents
        term = None
        if t_a is not None:
            offset = int(self.unit_diagonal)
            t_a = tril(t_a, -offset) if self.lower else triu(t_a, offset)
            term = -mm((t_a, transposed(t_a), adjoint(t_a))[self.trans], x)
        return [self(a, add([t_b, term]))]


class Solve(_Solver):
    """Solution of ``A X = B``, or of ``A^T X = B``.

    Args:
        assume_a: "gen"; "sym", "her" or "pos": one triangle of a symmetric, Hermitian or positive definite
            matrix is read.
        lower: which.
        transposed: whether A is transposed.
        check: raise LinAlgError where A is singular or not positive definite, else the solution is NaN.
    """

    kernel = "solve"
    __props__ = ("assume", "lower", "transposed", "check")

    def __init__(
        self, assume_a: str = "gen", lower: bool = False, transposed: bool = False, check: bool = True
    ) -> None:
        self.assume, self.lower, self.transposed = ASSUMPTIONS[assume_a], lower, transposed
        self.check = check

    def _turned(self) -> Solve:
        back = type(self)(lower=self.lower, transposed=not self.transposed, check=self.check)
        back.assume = self.assume
        return back

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (x,), g = inputs, outputs, only(cotangents)
        g_b = self._turned()(a, g)
        whole = -mm(x, transposed(g_b)) if self.transposed else -mm(g_b, transposed(x))
        if self.assume == 0:
            return [whole, g_b]
        return [in_triangle(whole, self.lower, hermitian=self.assume > 1), g_b]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a, _), (x,), (t_a, t_b) = inputs, outputs, tangents
        term = None
        if t_a is not None:
            if self.assume:
                half = tril(t_a, -1) if self.lower else triu(t_a, 1)
                mirrored = adjoint(half) if self.assume > 1 else transposed(half)
                t_a = half + mirrored + on_diagonal(diagonal(t_a))
            term = -mm(transposed(t_a) if self.transposed else t_a, x)
        return [self(a, add([t_b, term]))]


class SolveBanded(_Solver):
    """Solution of a banded system.

    Args:
        lower: diagonals below the main one.
        upper: diagonals above.
        transposed: solve with the transpose.
    """

    kernel = "solve_banded"
    lower: int
    upper: int
    transposed: bool = False

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (ab, _), (x,), g = inputs, outputs, only(cotangents)
        g_b = type(self)(self.lower, self.upper, not self.transposed)(ab, g)
        rows, columns = (x, g_b) if self.transposed else (g_b, x)
        bands = [self._band(rows, columns, row - self.upper) for row in range(self.lower + self.upper + 1)]
        return [stack(bands, axis=-2), g_b]

    def _band(self, rows: Variable, columns: Variable, offset: int) -> TensorVariable:
        """-sum_c rows[j + offset, c] columns[j, c] for each column j of the matrix, 0 outside of it."""
        n = rows.shape[-2]
        shift = minimum(abs(offset), n)
        if offset >= 0:
            values = -(rows[..., shift:, :] * columns[..., : n - shift, :]).sum(-1)
        else:
            values = -(rows[..., : n - shift, :] * columns[..., shift:, :]).sum(-1)
        nothing = (columns[..., :shift, :] * 0).sum(-1)
        return concatenate([values, nothing] if offset >= 0 else [nothing, values], axis=-1)


class Sylvester(_MatrixOp):
    """Solution X of ``A X + X B = C``."""

    kernel = "sylvester"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, b, _), (x,), g = inputs, outputs, only(cotangents)
        g_c = self(transposed(a), transposed(b), g)
        return [-mm(g_c, transposed(x)), -mm(transposed(x), g_c), g_c]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a, b, _), (x,), (t_a, t_b, t_c) = inputs, outputs, tangents
        terms = [t_c, None if t_a is None else -mm(t_a, x), None if t_b is None else -mm(x, t_b)]
        return [self(a, b, add(terms))]


class Cholesky(_MatrixOp):
    """Cholesky factor; reads one triangle.

    Args:
        lower: the factor L of ``A = L L^H`` from the lower triangle, else U of ``A = U^H U`` from the upper.
        check: raise LinAlgError where there is no factor, else it is NaN.

    Source of the gradient: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    """

    kernel = "cholesky"
    lower: bool = True
    check: bool = True

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (factor,), g = outputs, only(cotangents)
        g = conj(g)
        if not self.lower:
            factor, g = adjoint(factor), adjoint(g)
        # `graphc-linear-systems` knows this form, and PyTensor's of it.
        product = mm(adjoint(factor), g)
        middle = tril(product) - on_diagonal(diagonal(product) / 2)
        # L^-H middle L^-1
        left = SolveTriangular(True, 2)(factor, middle)
        whole = adjoint(SolveTriangular(True, 2)(factor, adjoint(left)))
        found = tril(whole + adjoint(whole)) - on_diagonal(real(diagonal(whole)))
        return [conj(found if self.lower else adjoint(found))]


class LUFactor(_MatrixOp):
    """LU factors in one matrix, and the rows exchanged (int32, as of LAPACK but from 0).

    Inputs: the matrix (m, n) and min(m, n).
    """

    kernel = "lu_factor"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, "int32"]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False], [False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (lu, pivots), g = inputs, outputs, only(cotangents[:1])
        m, n = a.type.shape[-2:]
        if m is not None and n is not None and m != n:
            raise UndefinedGradientError(
                f"the gradient of LU factors is known for square matrices, got {a.type}"
            )
        lower, upper = tril(lu, -1) + eye(shape(lu)[-1], dtype=lu.type.dtype), triu(lu)
        inner = tril(mm(transposed(lower), tril(g, -1)), -1)
        inner = inner + triu(mm(triu(g), transposed(upper)))
        # L^-T inner U^-T, with the rows put back.
        left = SolveTriangular(True, 1, True)(lower, inner)
        whole = transposed(SolveTriangular(False, 0)(upper, transposed(left)))
        order = PivotToPermutation()(pivots, shape(a)[-2])
        return [PermuteRows(True)(whole, order), None]


class PivotToPermutation(DiscreteOp):
    """The order of m rows after exchanges: (k) and m to (m)."""

    kernel = "pivot_to_permutation"
    dtype_rule = "0 -> int64"


class PermuteRows(KernelOp):
    """Rows in another order: ``out[i] = x[order[i]]``, or the inverse of that."""

    kernel = "permute_rows"
    dtype_rule = "0 int64 -> 0"
    inverse: bool = False
    depends_on = (0,)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [PermuteRows(not self.inverse)(only(cotangents), inputs[1]), None]

    pushforward = multilinear


class QR(_MatrixOp):
    """Orthonormal and upper triangular factor: (m, n) and k to (m, k), (k, n).

    Args:
        complete: k is m; otherwise it is min(m, n).

    Source of the gradient: S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
    functions", 2010; for wide matrices, the columns beyond the square part follow linearly.
    """

    kernel = "qr"
    complete: bool = False

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (q, r), (g_q, g_r) = inputs, outputs, cotangents
        _require_square_part(self, a, self.complete)
        return [conj(_qr_pullback(a, k, q, r, g_q, g_r)), None]


class QRUpper(_MatrixOp):
    """The upper triangular factor alone: (m, n) and k to (k, n)."""

    kernel = "qr_r"
    complete: bool = False

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (r,) = inputs, outputs
        _require_square_part(self, a, self.complete)
        q = QR(self.complete)(a, k)[0]
        return [conj(_qr_pullback(a, k, q, r, None, only(cotangents))), None]


class QRRaw(_MatrixOp):
    """Householder reflectors (n, m), and their factors (k), as ``numpy.linalg.qr(..., "raw")``."""

    kernel = "qr_raw"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError('qr(mode="raw") has no gradient; use mode="reduced"')


def _require_square_part(op: KernelOp, a: Variable, complete: bool) -> None:
    m, n = a.type.shape[-2:]
    if complete and (m is None or n is None or m > n):
        raise UndefinedGradientError(
            f"the gradient of a complete QR decomposition is known for matrices with no more rows than "
            f'columns, got {a.type}; use mode="reduced"'
        )


def _qr_pullback(
    a: Variable, k: Variable, q: Variable, r: Variable, g_q: Variable | None, g_r: Variable | None
) -> Variable:
    """In terms of the square part: A = [X Y], R = [U V], X = Q U, Y = Q V."""
    g_q, g_r = (None if g is None else conj(g) for g in (g_q, g_r))
    m, n = a.type.shape[-2:]
    tall = m is not None and n is not None and m >= n
    if tall:
        return _tall_pullback(q, r, g_q, g_r)
    upper, g_upper, g_rest = r[..., :k], None, None
    if g_r is not None:
        g_upper, g_rest = g_r[..., :k], g_r[..., k:]
        g_q = add([g_q, mm(a[..., k:], adjoint(g_rest))])
    first = _tall_pullback(q, upper, g_q, g_upper)
    rest = a[..., k:] * 0 if g_rest is None else mm(q, g_rest)
    return concatenate([first, rest], axis=-1)


def _tall_pullback(q: Variable, r: Variable, g_q: Variable | None, g_r: Variable | None) -> Variable:
    left = None if g_r is None else mm(g_r, adjoint(r))
    right = None if g_q is None else -mm(adjoint(q), g_q)
    inner = add([left, right])
    over = triu(inner, 1)
    middle = over + adjoint(over) + on_diagonal(real(diagonal(inner)))
    whole = add([g_q, mm(q, middle)])
    # whole R^-H
    return adjoint(SolveTriangular(False, 0)(r, adjoint(whole)))

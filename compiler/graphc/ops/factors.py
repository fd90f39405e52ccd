# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of matrices: Cholesky, LU, QR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.create import eye, tril, triu
from graphc.ops.join import concatenate
from graphc.ops.kernel import DiscreteOp, KernelOp
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
from graphc.ops.shaping import shape
from graphc.ops.solvers import SolveTriangular

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


class Cholesky(_MatrixOp):
    """Cholesky factor; reads one triangle.

    Args:
        lower: the factor L of ``A = L L^H`` from the lower triangle, else U of ``A = U^H U`` from the upper.
        check: raise LinAlgError where there is no factor, else it is NaN.

    Source of the gradient: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    """

    kernel = "cholesky"
    __props__ = ("lower", "check")

    def __init__(self, lower: bool = True, check: bool = True) -> None:
        self.lower, self.check = lower, check

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (factor,), (g,) = outputs, cotangents
        if g is None:
            return [None]
        g = conj(g)
        if not self.lower:
            factor, g = adjoint(factor), adjoint(g)
        lower = tril(mm(adjoint(factor), g))
        middle = lower - on_diagonal(diagonal(lower) / 2)
        # L^-H middle L^-1
        left = SolveTriangular(True, 2)(factor, middle)
        whole = adjoint(SolveTriangular(True, 2)(factor, adjoint(left)))
        return [conj(in_triangle((whole + adjoint(whole)) / 2, self.lower))]


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
        (a, _), (lu, pivots), g = inputs, outputs, cotangents[0]
        if g is None:
            return [None, None]
        m, n = a.type.shape[-2:]
        if m is not None and n is not None and m != n:
            raise UndefinedGradientError(
                f"the gradient of LU factors is known for square matrices, got {a.type}"
            )
        lower, upper = tril(lu, -1) + _eye(lu), triu(lu)
        inner = tril(mm(transposed(lower), tril(g, -1)), -1)
        inner = inner + triu(mm(triu(g), transposed(upper)))
        # L^-T inner U^-T, with the rows put back.
        left = SolveTriangular(True, 1, True)(lower, inner)
        whole = transposed(SolveTriangular(False, 0)(upper, transposed(left)))
        order = PivotToPermutation()(pivots, shape(a)[-2])
        return [PermuteRows(True)(whole, order), None]


def _eye(x: Variable) -> TensorVariable:
    return eye(shape(x)[-1], dtype=x.type.dtype)


class PivotToPermutation(DiscreteOp):
    """The order of m rows after exchanges: (k) and m to (m)."""

    kernel = "pivot_to_permutation"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["int64"]


class PermuteRows(KernelOp):
    """Rows in another order: ``out[i] = x[order[i]]``, or the inverse of that."""

    kernel = "permute_rows"
    __props__ = ("inverse",)

    def __init__(self, inverse: bool = False) -> None:
        self.inverse = inverse

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "int64"], [given[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,) = cotangents
        return [None if g is None else PermuteRows(not self.inverse)(g, inputs[1]), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None if tangents[0] is None else self(tangents[0], inputs[1])]


class QR(_MatrixOp):
    """Orthonormal and upper triangular factor: (m, n) and k to (m, k), (k, n).

    Args:
        complete: k is m; otherwise it is min(m, n).

    Source of the gradient: S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
    functions", 2010; for wide matrices, the columns beyond the square part follow linearly.
    """

    kernel = "qr"
    __props__ = ("complete",)

    def __init__(self, complete: bool = False) -> None:
        self.complete = complete

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (q, r), (g_q, g_r) = inputs, outputs, cotangents
        _require_square_part(self, a, self.complete)
        return [conj(_qr_pullback(a, k, q, r, g_q, g_r)), None]


class QRUpper(_MatrixOp):
    """The upper triangular factor alone: (m, n) and k to (k, n)."""

    kernel = "qr_r"
    __props__ = ("complete",)

    def __init__(self, complete: bool = False) -> None:
        self.complete = complete

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (r,), (g_r,) = inputs, outputs, cotangents
        if g_r is None:
            return [None, None]
        _require_square_part(self, a, self.complete)
        q = QR(self.complete)(a, k)[0]
        return [conj(_qr_pullback(a, k, q, r, None, g_r)), None]


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

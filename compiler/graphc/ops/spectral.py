# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues and singular values.

Gradients of vectors hold for functions that do not depend on their signs and phases, and divide by
differences of the values: equal ones give infinities. These must not be left out: in the gradient of
V f(w) V^H their place belongs to f'(w), which neither the cotangent of V nor that of w tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.graph.basic import Maybe, Variable, Variables
from graphc.ops.elementwise import is_complex
from graphc.ops.math import cast, real
from graphc.ops.matrices import (
    _MatrixOp,
    add,
    adjoint,
    complex_dtype,
    conj,
    diagonal,
    differences,
    eye_like,
    in_triangle,
    mm,
    on_diagonal,
    real_dtype,
)
from graphc.ops.shaping import expand_dims
from graphc.ops.solvers import Solve


class Eigh(_MatrixOp):
    """Eigenvalues in ascending order and eigenvectors (columns) of a Hermitian matrix.

    Args:
        lower: whether the lower triangle is read.
    """

    kernel = "eigh"
    __props__ = ("lower",)

    def __init__(self, lower: bool = True) -> None:
        self.lower = lower

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_dtype(dtype), dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (w, v), (g_w, g_v) = outputs, cotangents
        values = None if g_w is None else on_diagonal(g_w)
        vectors = None if g_v is None else differences(w) * mm(adjoint(v), conj(g_v))
        inner = _as(add([values, vectors]), v)
        whole = mm(mm(v, inner), adjoint(v))
        return [conj(in_triangle((whole + adjoint(whole)) / 2, self.lower))]


class Eigvalsh(_MatrixOp):
    """Eigenvalues of a Hermitian matrix in ascending order; argument as of `Eigh`."""

    kernel = "eigvalsh"
    __props__ = ("lower",)

    def __init__(self, lower: bool = True) -> None:
        self.lower = lower

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_dtype(dtype)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,) = cotangents
        if g is None:
            return [None]
        v: Variable = Eigh(self.lower)(inputs[0])[1]
        whole = mm(v * expand_dims(g, -2), adjoint(v))
        return [conj(in_triangle(whole, self.lower))]


def _as(x: Variable, model: Variable) -> Variable:
    """x in the dtype of another variable."""
    return cast(x, model.type.dtype)


class Eig(_MatrixOp):
    """Eigenvalues and right eigenvectors, complex, of a square matrix."""

    kernel = "eig"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [complex_dtype(dtype)] * 2

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (w, v), (g_w, g_v) = inputs, outputs, cotangents
        values = None if g_w is None else on_diagonal(conj(g_w))
        vectors = None
        if g_v is not None:
            raw = mm(adjoint(v), conj(g_v))
            # Vectors have length 1: what would change it is taken away.
            raw = raw - mm(adjoint(v), v * expand_dims(real(diagonal(raw)), -2))
            vectors = raw * conj(differences(w))
        inner = add([values, vectors])
        whole = Solve()(adjoint(v), mm(inner, adjoint(v)))
        return [conj(whole) if is_complex(a) else real(whole)]


class _SingularValues(_MatrixOp):
    """Base of the ops with singular values among their results; the inputs are the matrix and min(m, n)."""


class SVD(_SingularValues):
    """Singular value decomposition: (m, n) and k to U (m, k), s (k), V^H (k, n); k is min(m, n)."""

    kernel = "svd"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_dtype(dtype), dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [conj(_svd_pullback(*outputs, *cotangents)), None]


class SVDFull(_SingularValues):
    """As `SVD` with square unitary factors.

    Vectors beyond the first k are any basis of the rest: their derivatives hold for functions that do not
    depend on which.
    """

    kernel = "svd_full"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_dtype(dtype), dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (u, s, vh), (g_u, g_s, g_vh) = inputs, outputs, cotangents
        m, n = a.type.shape[-2:]
        if m is not None and m == n:
            return [conj(_svd_pullback(u, s, vh, g_u, g_s, g_vh)), None]
        first, first_h, rest = u[..., :, :k], vh[..., :k, :], []
        if g_u is not None:
            turned = mm(adjoint(conj(g_u[..., :, k:])), first) / expand_dims(s, -2)
            rest.append(mm(mm(u[..., :, k:], turned), first_h))
            g_u = g_u[..., :, :k]
        if g_vh is not None:
            turned = mm(first_h, adjoint(conj(g_vh[..., k:, :]))) / expand_dims(s, -1)
            rest.append(mm(mm(first, turned), vh[..., k:, :]))
            g_vh = g_vh[..., :k, :]
        whole = _svd_pullback(first, s, first_h, g_u, g_s, g_vh)
        return [conj(add([whole, *(-x for x in rest)])), None]


class SingularValues(_SingularValues):
    """Singular values in descending order: (m, n) and min(m, n) to (min(m, n))."""

    kernel = "singular_values"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_dtype(dtype)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,) = cotangents
        if g is None:
            return [None, None]
        u, _, vh = SVD()(*inputs)
        return [conj(mm(u * expand_dims(g, -2), vh)), None]


def _svd_pullback(
    u: Variable, s: Variable, vh: Variable, g_u: Variable | None, g_s: Variable | None, g_vh: Variable | None
) -> Variable:
    """Source: J. Townsend, "Differentiating the singular value decomposition", 2016."""
    g_u = None if g_u is None else conj(g_u)
    g_v = None if g_vh is None else adjoint(conj(g_vh))
    v, row, column = adjoint(vh), expand_dims(s, -2), expand_dims(s, -1)
    # 1 / (s_j^2 - s_i^2), times one of the two: no square is formed, which may not be a number of the dtype.
    spread, both = differences(s), row + column + eye_like(s)
    inner, outer = [None if g_s is None else on_diagonal(g_s)], []
    if g_u is not None:
        turned = mm(adjoint(u), g_u)
        skew = turned - adjoint(turned)
        inner.append(spread * skew * (row / both))
        if is_complex(u):
            # The phase of u is taken as given; that of v follows.
            inner.append(on_diagonal(diagonal(skew) / (2 * s)))
        outer.append(mm((g_u - mm(u, turned)) / row, vh))
    if g_v is not None:
        turned = mm(vh, g_v)
        inner.append((column / both) * spread * (turned - adjoint(turned)))
        outer.append(mm(u / row, adjoint(g_v - mm(v, turned))))
    middle = _as(add(inner), u) if any(x is not None for x in inner) else None
    return add([None if middle is None else mm(mm(u, middle), vh), *outer])

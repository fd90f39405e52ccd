# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues and singular values.

Gradients of vectors divide by differences of the values. They hold for functions that do not depend on which
vectors were found: on their signs and phases and, where values are equal, on the basis of their space.

Of equal values neither the cotangent of V nor that of w tells the gradient: that of V f(w) V^H needs f'(w),
the limit of a quotient of differences. So what comes back from w and V is computed of values that are moved
apart (`Apart`) by the square root of the rounding error, relative to the largest: it is the gradient at a
matrix near the given one, right to about 1e-7 (float32: 1e-3). Second derivatives divide by a difference once
more: all that is read of the values is moved by the cube root then, and they are right to about 1e-5
(float32: 1e-2). A tangent alone does not know what it will be multiplied by, so that forward mode transposes
the whole pullback (`Op.together`). Values are moved where they differ by no more than their rounding errors;
of matrices without such values nothing changes. Vectors that are combined with eigenvalues of another call
are not known to belong to these. Functions that depend on the basis have no gradient: what is given for them
there is large and means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import FieldOp, same_tangent
from graphc.graph.replace import rebuild
from graphc.graph.traversal import ancestors
from graphc.ops.create import tril, zeros_like
from graphc.ops.elementwise import is_complex
from graphc.ops.factors import Solve
from graphc.ops.join import concatenate
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, eq, gt, le, real, switch
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
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import batch_in_front, expand_dims

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


class Apart(FieldOp):
    """Values (..., n) of which those that are equal to within rounding differ by a little.

    Args:
        to_zero: whether values that are 0 are moved as well: singular values, which are divided by.
        order: of the derivative. Each divides rounding errors by a difference once more.
    """

    takes_as_stored = False
    to_zero: bool = False
    order: int = 1
    absent: ClassVar[dict[str, str]] = {"emit": "the compiler puts the graph it stands for in its place"}

    def make_node(self, w: Variable) -> Apply:
        return Apply(self, [w], [w.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (w,) = inputs
        size, eps = np.abs(w), float(np.finfo(w.dtype).eps)
        largest = size.max(-1, keepdims=True, initial=0)
        near = _NEAR * eps * w.shape[-1] * largest
        count = (np.tril(np.abs(w[..., :, None] - w[..., None, :]) <= near[..., None], -1)).sum(-1)
        if self.to_zero:
            count = count + (size <= near)
        step = eps ** (1 / (1 + self.order)) * np.where(largest == 0, 1, largest)
        output_storage[0][0] = np.asarray(np.where(count > 0, w + step * count, w), w.dtype)

    def inline_on(self, inputs: Sequence[Variable]) -> list[Variable]:
        (w,) = inputs
        size, eps = abs_(w), float(np.finfo(w.type.dtype).eps)
        # Of no values there is no largest.
        none = zeros_like(sum_(size, axis=-1, keepdims=True))
        largest = max_(concatenate([size, none], axis=-1), axis=-1, keepdims=True)
        near = largest * (_NEAR * eps * cast(size_of(w, w.type.ndim - 1), size.type.dtype))
        close = le(abs_(expand_dims(w, -1) - expand_dims(w, -2)), expand_dims(near, -1))
        count = sum_(cast(tril(close, -1), "int64"), axis=-1)
        if self.to_zero:
            count = count + cast(le(size, near), "int64")
        step = eps ** (1 / (1 + self.order)) * switch(eq(largest, 0), 1, largest)
        moved = w + step * cast(count, size.type.dtype)
        return [switch(gt(count, 0), moved, w)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [cotangents[0]]

    pushforward = same_tangent

    batch = batch_in_front


# Values that differ by so many rounding errors of the largest one, times their number, are equal.
_NEAR = 4.0


def _moved_apart(
    w: Variable, cotangents: Sequence[Variable | None], to_zero: bool = False
) -> tuple[Variable, list[Variable | None]]:
    """The values that differ, and cotangents computed of these, also those of former derivatives."""
    given = [g for g in cotangents if g is not None]
    former = {
        v: v.owner.op.order
        for v in ancestors(given, blockers=[w])
        if v.owner is not None and isinstance(v.owner.op, Apart) and v.owner.inputs[0] is w
    }
    apart: Variable = Apart(to_zero, 1 + max(former.values(), default=0))(w)
    found = iter(rebuild(given, dict.fromkeys((w, *former), apart), copy_nodes=False, strict=False))
    return apart, [None if g is None else next(found) for g in cotangents]


class Eigh(_MatrixOp):
    """Eigenvalues in ascending order and eigenvectors (columns) of a Hermitian matrix.

    Args:
        lower: whether the lower triangle is read.
    """

    kernel = "eigh"
    together = True
    lower: bool = True

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_dtype(dtype), dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (w, v), (g_w, g_v) = outputs, cotangents
        if g_v is not None:
            w, (g_w, g_v) = _moved_apart(w, cotangents)
        values = None if g_w is None else on_diagonal(g_w)
        vectors = None if g_v is None else differences(w) * mm(adjoint(v), conj(g_v))
        inner = _as(add([values, vectors]), v)
        whole = mm(mm(v, inner), adjoint(v))
        return [conj(in_triangle((whole + adjoint(whole)) / 2, self.lower))]


class Eigvalsh(_MatrixOp):
    """Eigenvalues of a Hermitian matrix in ascending order; argument as of `Eigh`."""

    kernel = "eigvalsh"
    lower: bool = True

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [real_dtype(dtype)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g = only(cotangents)
        # Further derivatives go through vectors, beside which what is read of the values belongs to them.
        w, v = Eigh(self.lower)(inputs[0])
        (g,) = rebuild([g], {outputs[0]: w}, copy_nodes=False, strict=False)
        whole = mm(v * expand_dims(g, -2), adjoint(v))
        return [conj(in_triangle(whole, self.lower))]


def _as(x: Variable, model: Variable) -> Variable:
    """x in the dtype of another variable."""
    return cast(x, model.type.dtype)


class Eig(_MatrixOp):
    """Eigenvalues and right eigenvectors, complex, of a square matrix."""

    kernel = "eig"
    together = True

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [complex_dtype(dtype)] * 2

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (w, v), (g_w, g_v) = inputs, outputs, cotangents
        if g_v is not None:
            w, (g_w, g_v) = _moved_apart(w, cotangents)
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

    together = True

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_dtype(dtype), dtype]


class SVD(_SingularValues):
    """Singular value decomposition: (m, n) and k to U (m, k), s (k), V^H (k, n); k is min(m, n)."""

    kernel = "svd"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        u, s, vh = outputs
        if cotangents[0] is not None or cotangents[2] is not None:
            s, cotangents = _moved_apart(s, cotangents, to_zero=True)
        return [conj(_svd_pullback(u, s, vh, *cotangents)), None]


class SVDFull(_SingularValues):
    """As `SVD` with square unitary factors.

    Vectors beyond the first k are any basis of the rest: their derivatives hold for functions that do not
    depend on which.
    """

    kernel = "svd_full"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (u, s, vh) = inputs, outputs
        if cotangents[0] is not None or cotangents[2] is not None:
            s, cotangents = _moved_apart(s, cotangents, to_zero=True)
        g_u, g_s, g_vh = cotangents
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
        g = only(cotangents)
        u, s, vh = SVD()(*inputs)
        (g,) = rebuild([g], {outputs[0]: s}, copy_nodes=False, strict=False)
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

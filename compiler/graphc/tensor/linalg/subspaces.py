# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bases of ranges and null spaces, and equations of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.create import zeros
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.join import concatenate
from graphc.ops.math import cast, gt, maximum
from graphc.ops.matrices import adjoint, float_dtype, real_dtype
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import product_of, size_of, sizes_of
from graphc.ops.shaping import expand_dims, ravel, reshape, transpose
from graphc.tensor.linalg.checks import matrix
from graphc.tensor.linalg.decompositions import cholesky, svd
from graphc.tensor.linalg.solving import solve
from graphc.tensor.products import matmul

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["cho_factor", "null_space", "orth", "polar", "tensorsolve"]


def _with_rank(
    A: TensorLike, rcond: TensorLike, what: str
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Singular vectors of one matrix, and how many of its singular values count."""
    a = matrix(A, what)
    if a.type.ndim != 2:
        raise ValueError(f"{what} takes one matrix, as the number of vectors depends on it; got {a.type}")
    u, s, vh = svd(a, full_matrices=True)
    if rcond is None:
        dtype = float_dtype(a.type.dtype)
        largest = cast(maximum(size_of(a, 0), size_of(a, 1)), real_dtype(dtype))
        rcond = largest * float(np.finfo(dtype).eps)
    # An empty matrix has no largest value.
    top = max_(concatenate([s, zeros((1,), dtype=s.type.dtype)]))
    return u, vh, sum_(gt(s, rcond * top))


def orth(A: TensorLike, rcond: Any = None) -> TensorVariable:
    """An orthonormal basis (m, r) of the range of a matrix (m, n) of rank r.

    Args:
        A: array-like.
        rcond: singular values up to ``rcond`` times the largest count as 0; by default the precision times
            max(m, n).

    Examples:
        >>> pt.linalg.orth(np.array([[1.0, 0.0], [0.0, 0.0]])).shape.eval()
        array([2, 1])
    """
    u, _, rank = _with_rank(A, rcond, "orth")
    return u[:, :rank]


def null_space(A: TensorLike, rcond: Any = None) -> TensorVariable:
    """An orthonormal basis (n, n - r) of the null space of a matrix (m, n) of rank r; arguments as `orth`.

    Examples:
        >>> pt.linalg.null_space(np.array([[1.0, 0.0]])).shape.eval()
        array([2, 1])
    """
    _, vh, rank = _with_rank(A, rcond, "null_space")
    return adjoint(vh[rank:, :])


def polar(a: TensorLike, side: str = "right") -> tuple[TensorVariable, TensorVariable]:
    """Polar decomposition: U with orthonormal columns or rows, and P Hermitian and positive semidefinite.

    Args:
        a: array-like (..., m, n).
        side: "right": ``a = U @ P``; "left": ``a = P @ U``.

    Examples:
        >>> [v.eval().round(6).tolist() for v in pt.linalg.polar(2 * np.eye(2))]
        [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]]
    """
    if side not in ("right", "left"):
        raise ValueError(f'side must be "right" or "left", got {side!r}')
    w, s, vh = svd(matrix(a, "polar"), full_matrices=False)
    s = expand_dims(s, -2)
    p = matmul(adjoint(vh) * s, vh) if side == "right" else matmul(w * s, adjoint(w))
    return matmul(w, vh), p


def cho_factor(
    a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[TensorVariable, bool]:
    """A Cholesky factor for `cho_solve`: the factor, with zeros in the other triangle, and ``lower``.

    Examples:
        >>> pt.linalg.cho_factor([[4.0, 0.0], [0.0, 9.0]], lower=True)[0].eval()
        array([[2., 0.],
               [0., 3.]])
    """
    return cholesky(a, lower=lower), bool(lower)


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> TensorVariable:
    """The x with ``tensordot(a, x, x.ndim) == b``.

    Args:
        a: array-like of shape ``b.shape + x.shape``.
        b: array-like.
        axes: axes of a that are moved to its end first.

    Examples:
        >>> pt.linalg.tensorsolve(2 * np.eye(2), [2.0, 4.0]).round(6).eval()
        array([1., 2.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if axes is not None:
        last = [normalize_axis(axis, a.type.ndim, "tensorsolve") for axis in axes]
        a = transpose(a, [*(i for i in range(a.type.ndim) if i not in last), *last])
    if b.type.ndim >= a.type.ndim:
        raise ValueError(f"tensorsolve: a must have more dimensions than b, got {a.type} and {b.type}")
    shape = sizes_of(a)[b.type.ndim :]
    flat = reshape(a, (product_of(sizes_of(b)), product_of(shape)))
    return reshape(solve(flat, ravel(b), b_ndim=1), shape)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inverses, determinants, powers and exponentials."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.hooks import publish
from graphc.ops.create import eye, zeros_like
from graphc.ops.math import abs as abs_
from graphc.ops.math import bitwise_and, cast, gt, maximum, sqr, switch
from graphc.ops.matrices import float_dtype, real_dtype
from graphc.ops.matrix_functions import Det, Expm, Inv, Pinv, SLogDet, directional
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of, sizes_of
from graphc.ops.shaping import reshape
from graphc.tensor.linalg.checks import largest_of, matrix, square
from graphc.tensor.linalg.decompositions import svd
from graphc.tensor.products import matmul

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def det(x: TensorLike) -> TensorVariable:
    """Determinants of square matrices (..., n, n); the gradient inverts them.

    Examples:
        >>> pt.linalg.det([[1.0, 2.0], [3.0, 5.0]]).round(6).eval()
        array(-1.)
    """
    return Det()(square(x, "det"))


def slogdet(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Sign (of modulus 1 or 0) and logarithm of the absolute value of determinants.

    Examples:
        >>> [v.eval().round(6).tolist() for v in pt.linalg.slogdet([[2.0, 0.0], [0.0, -0.5]])]
        [-1.0, 0.0]
    """
    sign, logdet = SLogDet()(square(x, "slogdet"))
    return sign, logdet


def inv(x: TensorLike) -> TensorVariable:
    """Inverses of square matrices (..., n, n).

    Raises:
        LinAlgError: when run, a matrix is singular.

    Examples:
        >>> pt.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).eval()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    return Inv()(square(x, "inv"))


matrix_inverse = inv


def pinv(x: TensorLike, rcond: TensorLike | None = None, hermitian: bool = False) -> TensorVariable:
    """Pseudo-inverses of matrices (..., m, n).

    Args:
        x: array-like.
        rcond: singular values up to ``rcond`` times the largest count as 0; by default 1e-15, as in NumPy.
        hermitian: for compatibility; the result is the same.

    Examples:
        >>> pt.linalg.pinv([[2.0, 0.0], [0.0, 4.0]]).round(6).eval()
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    x = matrix(x, "pinv")
    limit = 1e-15 if rcond is None else rcond
    return Pinv()(x, cast(as_tensor_variable(limit), real_dtype(float_dtype(x.type.dtype))))


def expm(A: TensorLike) -> TensorVariable:
    """Exponentials of square matrices.

    Examples:
        >>> pt.linalg.expm(np.zeros((2, 2))).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    return Expm()(square(A, "expm"))


def expm_frechet(
    A: TensorLike,
    E: TensorLike,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = False,
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    """Exponentials of square matrices, and their derivatives in a direction.

    Args:
        A, E: array-likes (..., n, n) of one shape: the matrices and the directions.
        method, check_finite: for compatibility, without effect.
        compute_expm: whether the exponentials are returned, before the derivatives.

    Source: R. Mathias, "A chain rule for matrix functions and applications", 1996.

    Examples:
        >>> pt.linalg.expm_frechet(np.zeros((2, 2)), np.eye(2), compute_expm=False).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    a, direction = square(A, "expm_frechet"), square(E, "expm_frechet")
    if a.type.ndim != direction.type.ndim:
        raise ValueError(f"expm_frechet takes matrices of one shape, got {a.type} and {direction.type}")
    slope = directional(Expm(), a, direction)
    return (Expm()(a), slope) if compute_expm else slope


def matrix_power(M: TensorLike, n: int) -> TensorVariable:
    """Powers of square matrices, by repeated squaring.

    Args:
        M: array-like (..., k, k).
        n: an int known when the graph is built; negative powers are those of the inverse.

    Examples:
        >>> pt.linalg.matrix_power([[1, 1], [0, 1]], 3).eval()
        array([[1, 3],
               [0, 1]])
    """
    m: TensorVariable = square(M, "matrix_power")
    if not isinstance(n, int | np.integer):
        raise TypeError(f"the exponent of matrix_power must be an int, got {n!r}")
    if n == 0:
        return zeros_like(m) + eye(size_of(m, m.type.ndim - 1), dtype=m.type.dtype)
    if n < 0:
        m, n = inv(m), -n
    result = None
    while True:
        if n & 1:
            result = m if result is None else matmul(result, m)
        n >>= 1
        if not n:
            assert result is not None
            return result
        m = matmul(m, m)


def lstsq(
    a: TensorLike, b: TensorLike, rcond: TensorLike | None = None
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Least squares solutions of ``a @ x = b``, of the smallest norm where there are several.

    Args:
        a: array-like (..., m, n).
        b: array-like (m,) or (..., m, k).
        rcond: singular values up to ``rcond`` times the largest count as 0; by default the precision times
            max(m, n). What is not between 0 and 1 stands for the precision, as in LAPACK.

    Returns:
        x (..., n) or (..., n, k); sums of squared residuals () or (..., k), computed whatever the rank is;
        int32 ranks (...); singular values (..., min(m, n)).

    Examples:
        >>> pt.linalg.lstsq(np.array([[1.0], [1.0]]), [1.0, 3.0])[0].eval().round(6)
        array([2.])
    """
    a = matrix(a, "lstsq")
    b = as_tensor_variable(b)
    dtype = float_dtype(a.type.dtype, b.type.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    if rcond is None:
        rcond = cast(maximum(*sizes_of(a)[-2:]), real_dtype(dtype)) * float(np.finfo(dtype).eps)
    else:
        # LAPACK takes what would drop every singular value, or none, for the precision.
        rcond = as_tensor_variable(rcond)
        inside = bitwise_and(rcond > 0, rcond < 1)
        rcond = switch(inside, cast(rcond, real_dtype(dtype)), float(np.finfo(dtype).eps))
    # Where the solution is a number, neither the inverse nor its product overflows.
    top = largest_of(a)
    x = matmul(pinv(a / top, rcond), b / top)
    rest = b - matmul(a, x)
    residuals = sum_(sqr(abs_(rest)), axis=-1 if b.type.ndim == 1 else -2)
    values: Any = svd(a, compute_uv=False)
    rank = sum_(gt(values, rcond * max_(values, axis=-1, keepdims=True)), axis=-1)
    return x, residuals, cast(rank, "int32"), values


def tensorinv(a: TensorLike, ind: int = 2) -> TensorVariable:
    """The inverse of what an array does with ``tensordot(a, x, x.ndim)``.

    Args:
        a: array-like whose first ``ind`` sizes have the product of the others.
        ind: how many axes are on the left.

    Examples:
        >>> pt.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)).shape.eval()
        array([2, 2, 2, 2])
    """
    a = as_tensor_variable(a)
    if not 0 < ind <= a.type.ndim:
        raise ValueError(f"ind must be between 1 and the number of dimensions, {a.type.ndim}; got {ind}")
    sizes = sizes_of(a)
    flat = reshape(a, [reduce(mul, part, constant(1, dtype="int64")) for part in (sizes[:ind], sizes[ind:])])
    return reshape(inv(flat), (*sizes[ind:], *sizes[:ind]))


publish(globals())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ops.canonical import SolveContinuousARE, SolveDiscreteARE
from graphc.ops.create import eye as eye_
from graphc.ops.matrices import adjoint, conj
from graphc.ops.shaping import reshape
from graphc.ops.sizes import size_of, sizes_of
from graphc.ops.solvers import Sylvester
from graphc.tensor.linalg.checks import matrix, square
from graphc.tensor.linalg.functions import inv
from graphc.tensor.linalg.products import matrix_kron
from graphc.tensor.linalg.solving import solve
from graphc.tensor.products import matmul

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
]


def solve_sylvester(A: TensorLike, B: TensorLike, Q: TensorLike) -> TensorVariable:
    """Solution X of ``A X + X B = Q``.

    Args:
        A: array-like (..., m, m).
        B: array-like (..., n, n).
        Q: array-like (..., m, n).

    Source: R. Bartels and G. Stewart, "Solution of the matrix equation AX + XB = C", 1972, by LAPACK.

    Examples:
        >>> pt.linalg.solve_sylvester(np.eye(2), np.eye(2), 2 * np.eye(2)).round(6).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    name = "solve_sylvester"
    return Sylvester()(square(A, name), square(B, name), matrix(Q, name))


def solve_continuous_lyapunov(A: TensorLike, Q: TensorLike) -> TensorVariable:
    """Solution X of ``A X + X A^H = Q``; square matrices (..., n, n).

    Examples:
        >>> pt.linalg.solve_continuous_lyapunov(np.eye(2), 2 * np.eye(2)).round(6).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    a = square(A, "solve_continuous_lyapunov")
    return solve_sylvester(a, adjoint(a), Q)


solve_lyapunov = solve_continuous_lyapunov


def solve_discrete_lyapunov(A: TensorLike, Q: TensorLike, method: str = "bilinear") -> TensorVariable:
    """Solution X of ``A X A^H - X + Q = 0``.

    Args:
        A: array-like (..., n, n).
        Q: array-like (..., n, n).
        method: "bilinear" makes a continuous equation of it; "direct" solves one linear system of n**2
            unknowns, which also works where A has the eigenvalue -1.

    Examples:
        >>> pt.linalg.solve_discrete_lyapunov(0.5 * np.eye(2), 3 * np.eye(2)).round(6).eval()
        array([[4., 0.],
               [0., 4.]])
    """
    a, q = square(A, "solve_discrete_lyapunov"), square(Q, "solve_discrete_lyapunov")
    eye = eye_(size_of(a, a.type.ndim - 1), dtype=a.type.dtype)
    if method == "bilinear":
        away = inv(adjoint(a) + eye)
        b = matmul(adjoint(a) - eye, away)
        c: TensorVariable = matmul(matmul(inv(a + eye), q), away)
        return solve_continuous_lyapunov(adjoint(b), -2 * c)
    if method != "direct":
        raise ValueError(f'method must be "bilinear" or "direct", got {method!r}')
    product = matrix_kron(a, conj(a))
    *batch, n, _ = sizes_of(q)
    system = eye_(size_of(product, product.type.ndim - 1), dtype=a.type.dtype) - product
    flat = solve(system, reshape(q, (*batch, n * n)), b_ndim=1)
    return reshape(flat, (*batch, n, n))


def solve_discrete_are(A: TensorLike, B: TensorLike, Q: TensorLike, R: TensorLike) -> TensorVariable:
    """Stabilizing solution X of ``A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0``.

    It runs in Python, by ``scipy.linalg.solve_discrete_are``. The gradient, for real matrices, is that of
    symmetric Q and R.

    Args:
        A: array-like (..., n, n).
        B: array-like (..., n, m).
        Q: symmetric (..., n, n).
        R: symmetric (..., m, m).

    Examples:
        >>> pt.linalg.solve_discrete_are(np.zeros((1, 1)), np.eye(1), np.eye(1), np.eye(1)).round(6).eval()
        array([[1.]])
    """
    name = "solve_discrete_are"
    return SolveDiscreteARE()(square(A, name), matrix(B, name), square(Q, name), square(R, name))


def solve_continuous_are(a: TensorLike, b: TensorLike, q: TensorLike, r: TensorLike) -> TensorVariable:
    """Stabilizing solution X of ``A^H X + X A - X B R^-1 B^H X + Q = 0``; as `solve_discrete_are`.

    Examples:
        >>> pt.linalg.solve_continuous_are(np.zeros((1, 1)), np.eye(1), np.eye(1), np.eye(1)).round(6).eval()
        array([[1.]])
    """
    name = "solve_continuous_are"
    return SolveContinuousARE()(square(a, name), matrix(b, name), square(q, name), square(r, name))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Maybe, Variable, Variables, only
from graphc.ops.canonical import _PythonMatrices
from graphc.ops.create import eye as eye_
from graphc.ops.factors import Sylvester
from graphc.ops.matrices import adjoint, conj, mm, transposed
from graphc.ops.shape import size_of, sizes_of
from graphc.ops.shaping import reshape
from graphc.tensor.linalg.checks import matrix, square
from graphc.tensor.linalg.functions import inv
from graphc.tensor.linalg.products import matrix_kron
from graphc.tensor.linalg.solving import solve
from graphc.tensor.products import matmul

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov",
    "solve_lyapunov", "solve_sylvester",
]  # fmt: skip


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


def _symmetric(x: np.ndarray) -> np.ndarray:
    """The symmetric part of what is nearly symmetric, as after rounding or in finite differences; SciPy
    refuses what differs in more than the last places.
    """
    rest = np.abs(x - x.conj().T).max(initial=0)
    near = np.finfo(x.dtype).eps ** 0.25 * np.abs(x).max(initial=0)
    return (x + x.conj().T) / 2 if 0 < rest <= near else x


class _Riccati(_PythonMatrices):
    """Base of the algebraic Riccati equations; inputs A (n, n), B (n, m), Q (n, n), R (m, m)."""

    form = "(n,n),(n,m),(n,n),(m,m)->(n,n)"

    def compute(self, a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        import scipy.linalg

        solve: Callable[..., np.ndarray] = getattr(scipy.linalg, self.kernel)
        return solve(a, b, _symmetric(q), _symmetric(r))

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> Variable:
        raise NotImplementedError

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        """By the equation of the closed loop, ``A - B K``; symmetric parts of Q and R are meant.

        Source: T. C. Kao and G. Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic
        Riccati equations", 2020.
        """
        (a, b, _, r), (x,), g = inputs, outputs, only(cotangents)
        gain = self._gain(a, b, r, x)
        closed = a - mm(b, gain)
        s = self._adjoint(closed, (g + transposed(g)) / 2)
        g_a = self._slope(x, closed, s)
        return [g_a, -mm(g_a, transposed(gain)), s, mm(mm(gain, s), transposed(gain))]

    def _adjoint(self, closed: Variable, g: Variable) -> Variable:
        raise NotImplementedError

    def _slope(self, x: Variable, closed: Variable, s: Variable) -> Variable:
        raise NotImplementedError


class SolveDiscreteARE(_Riccati):
    """Stabilizing solution X of ``A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0``."""

    kernel = "solve_discrete_are"

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> TensorVariable:
        bx = mm(transposed(b), x)
        return solve(r + mm(bx, b), mm(bx, a), b_ndim=2)

    def _adjoint(self, closed: Variable, g: Variable) -> TensorVariable:
        # S = F S F^T + G
        return solve_discrete_lyapunov(closed, g)

    def _slope(self, x: Variable, closed: Variable, s: Variable) -> TensorVariable:
        return 2 * mm(mm(x, closed), s)


class SolveContinuousARE(_Riccati):
    """Stabilizing solution X of ``A^H X + X A - X B R^-1 B^H X + Q = 0``."""

    kernel = "solve_continuous_are"

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> TensorVariable:
        return solve(r, mm(transposed(b), x), b_ndim=2)

    def _adjoint(self, closed: Variable, g: Variable) -> TensorVariable:
        # F S + S F^T = -G
        return solve_continuous_lyapunov(closed, -g)

    def _slope(self, x: Variable, closed: Variable, s: Variable) -> TensorVariable:
        return 2 * mm(x, s)


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

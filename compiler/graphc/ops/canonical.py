# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schur and QZ forms, QR with exchanged columns, square root and logarithm of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.create import zeros_like
from graphc.ops.factors import _qr_pullback, _require_square_part
from graphc.ops.join import concatenate
from graphc.ops.matrices import _MatrixOp, complex_dtype, conj, mm, transposed
from graphc.ops.python_matrices import _PythonMatrices
from graphc.ops.shaping import expand_dims, shape
from graphc.ops.solvers import Sylvester
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

SORTS = (None, "lhp", "rhp", "iuc", "ouc")


class QRPivoted(_MatrixOp):
    """Factors of ``a[:, order]``, and the order (int32): (m, n) and k to (m, k), (k, n), (n).

    Args:
        complete: k is m; otherwise it is min(m, n).
    """

    kernel = "qr_pivoted"
    __props__ = ("complete",)

    def __init__(self, complete: bool = False) -> None:
        self.complete = complete

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, dtype, "int32"]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, False], [False, False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (q, r, order), (g_q, g_r, _) = inputs, outputs, cotangents
        _require_square_part(self, a, self.complete)
        if g_q is None and g_r is None:
            return [None, None]
        order = expand_dims(order, -2)  # each matrix of a batch has its own
        moved = pt.permute_row_elements(a, order)
        g: Variable = conj(_qr_pullback(moved, k, q, r, g_q, g_r))
        return [pt.permute_row_elements(g, order, inverse=True), None]


class Schur(_MatrixOp):
    """Schur form T and unitary Z of ``A = Z T Z^H``.

    Args:
        sort: number of the order of eigenvalues, in `SORTS`.
    """

    kernel = "schur"
    __props__ = ("sort",)
    absent: ClassVar[dict[str, str]] = {"pullback": "the order and the phases of the vectors jump"}

    def __init__(self, sort: int = 0) -> None:
        self.sort = sort

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(
            f"schur has no gradient: {self.absent['pullback']}; use eig, eigh, or a function of the matrix"
        )


class _Principal(_MatrixOp):
    """Base of functions of complex matrices."""

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = complex_dtype(given[0])
        return [dtype], [dtype]


class Sqrtm(_Principal):
    """Principal square root of a complex matrix."""

    kernel = "sqrtm"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (y,), (g,) = outputs, cotangents
        # dA = Y dY + dY Y
        return [None if g is None else Sylvester()(transposed(y), transposed(y), g)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (y,), (t,) = outputs, tangents
        return [None if t is None else Sylvester()(y, y, t)]


class Logm(_Principal):
    """Principal logarithm of a complex matrix."""

    kernel = "logm"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (g,) = inputs, cotangents
        return [None if g is None else self._derivative(transposed(a), g)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a,), (t,) = inputs, tangents
        return [None if t is None else self._derivative(a, t)]

    def _derivative(self, a: Variable, direction: Variable) -> TensorVariable:
        """A block of the logarithm of [[a, direction], [0, a]]."""
        top = concatenate([a, direction], axis=-1)
        bottom = concatenate([zeros_like(direction), a], axis=-1)
        whole: TensorVariable = self(concatenate([top, bottom], axis=-2))
        n = shape(a)[-1]
        return whole[..., :n, n:]


class QZ(_PythonMatrices):
    """Generalized Schur forms of two matrices, numerators and denominators of eigenvalues, and the vectors:
    ``A = Q AA Z^H``, ``B = Q BB Z^H``.

    Args:
        sort: number of the order of eigenvalues, in `SORTS`.
    """

    signature = "(n,n),(n,n)->(n,n),(n,n),(n),(n),(n,n),(n,n)"
    __props__ = ("sort",)
    absent: ClassVar[dict[str, str]] = {
        **_PythonMatrices.absent,
        "pullback": "the order and the phases of the vectors jump",
    }

    def __init__(self, sort: int = 0) -> None:
        self.sort = sort

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, dtype, complex_dtype(dtype), dtype, dtype, dtype]

    def compute(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import ordqz

        # Where no eigenvalue is chosen nothing is moved.
        sort = SORTS[self.sort] or (lambda alpha, beta: np.zeros(len(alpha), bool))
        output = "complex" if a.dtype.kind == "c" else "real"
        return ordqz(a, b, sort=sort, output=output, check_finite=False)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(f"qz has no gradient: {self.absent['pullback']}")


def _symmetric(x: np.ndarray) -> np.ndarray:
    """The symmetric part of what is nearly symmetric, as after rounding or in finite differences; SciPy
    refuses what differs in more than the last places.
    """
    rest = np.abs(x - x.conj().T).max(initial=0)
    near = np.finfo(x.dtype).eps ** 0.25 * np.abs(x).max(initial=0)
    return (x + x.conj().T) / 2 if 0 < rest <= near else x


class _Riccati(_PythonMatrices):
    """Base of the algebraic Riccati equations; inputs A (n, n), B (n, m), Q (n, n), R (m, m)."""

    signature = "(n,n),(n,m),(n,n),(m,m)->(n,n)"

    def compute(self, a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        return self._solver()(a, b, _symmetric(q), _symmetric(r))

    @staticmethod
    def _solver() -> Callable[..., np.ndarray]:
        """SciPy's function."""
        raise NotImplementedError

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> Variable:
        raise NotImplementedError

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        """By the equation of the closed loop, ``A - B K``; symmetric parts of Q and R are meant.

        Source: T. C. Kao and G. Hennequin, "Automatic differentiation of Sylvester, Lyapunov, and algebraic
        Riccati equations", 2020.
        """
        (a, b, _, r), (x,), (g,) = inputs, outputs, cotangents
        if g is None:
            return [None] * 4
        gain = self._gain(a, b, r, x)
        closed = a - mm(b, gain)
        s = self._adjoint(closed, (g + transposed(g)) / 2)
        gs = self._parts(a, b, x, gain, closed, s)
        return [*gs[:2], s, gs[2]]

    def _adjoint(self, closed: Variable, g: Variable) -> Variable:
        raise NotImplementedError

    def _parts(
        self,
        a: Variable,
        b: Variable,
        x: Variable,
        gain: Variable,
        closed: Variable,
        s: Variable,
    ) -> Any:
        raise NotImplementedError


class SolveDiscreteARE(_Riccati):
    """Stabilizing solution X of ``A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0``."""

    @staticmethod
    def _solver() -> Callable[..., np.ndarray]:
        from scipy.linalg import solve_discrete_are

        return solve_discrete_are

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> TensorVariable:
        bx = mm(transposed(b), x)
        return pt.linalg.solve(r + mm(bx, b), mm(bx, a), b_ndim=2)

    def _adjoint(self, closed: Variable, g: Variable) -> TensorVariable:
        # S = F S F^T + G
        return pt.linalg.solve_discrete_lyapunov(closed, g)

    def _parts(
        self,
        a: Variable,
        b: Variable,
        x: Variable,
        gain: Variable,
        closed: Variable,
        s: Variable,
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        g_a = 2 * mm(mm(x, closed), s)
        return g_a, -mm(g_a, transposed(gain)), mm(mm(gain, s), transposed(gain))


class SolveContinuousARE(_Riccati):
    """Stabilizing solution X of ``A^H X + X A - X B R^-1 B^H X + Q = 0``."""

    @staticmethod
    def _solver() -> Callable[..., np.ndarray]:
        from scipy.linalg import solve_continuous_are

        return solve_continuous_are

    def _gain(self, a: Variable, b: Variable, r: Variable, x: Variable) -> TensorVariable:
        return pt.linalg.solve(r, mm(transposed(b), x), b_ndim=2)

    def _adjoint(self, closed: Variable, g: Variable) -> TensorVariable:
        # F S + S F^T = -G
        return pt.linalg.solve_continuous_lyapunov(closed, -g)

    def _parts(
        self,
        a: Variable,
        b: Variable,
        x: Variable,
        gain: Variable,
        closed: Variable,
        s: Variable,
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        g_a = 2 * mm(x, s)
        return g_a, -mm(g_a, transposed(gain)), mm(mm(gain, s), transposed(gain))

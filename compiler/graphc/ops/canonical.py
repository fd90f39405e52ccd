# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schur and QZ forms, QR with exchanged columns, square root and logarithm of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.create import zeros_like
from graphc.ops.factors import _qr_pullback, _require_square_part
from graphc.ops.join import concatenate
from graphc.ops.matrices import _MatrixOp, complex_dtype, conj, transposed
from graphc.ops.python_matrices import _PythonMatrices
from graphc.ops.scattering import Gather
from graphc.ops.shaping import broadcast_to, expand_dims, shape
from graphc.ops.sizes import sizes_of
from graphc.ops.solvers import Sylvester

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
        # Each matrix of a batch has an order of its own.
        moved = _columns(a, order)
        g: Variable = conj(_qr_pullback(moved, k, q, r, g_q, g_r))
        return [_columns(g, order.argsort(axis=-1)), None]


def _columns(a: Variable, order: Variable) -> TensorVariable:
    """The columns of matrices in an order."""
    result: TensorVariable = Gather()(a, broadcast_to(expand_dims(order, -2), sizes_of(a)))
    return result


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

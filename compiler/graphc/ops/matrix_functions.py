# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Determinants, inverses and the exponential of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.matrices import (
    _MatrixOp,
    adjoint,
    conj,
    eye_like,
    float_dtype,
    is_complex,
    mm,
    real_dtype,
    transposed,
)
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


def _spread(x: Variable) -> TensorVariable:
    """Numbers, one for each matrix, with two more axes."""
    return pt.shape_padright(x, 2)


class Det(_MatrixOp):
    """Determinant."""

    kernel = "det"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (det,), (g,) = inputs, outputs, cotangents
        if g is None:
            return [None]
        return [_spread(g * det) * transposed(Inv()(a))]


class SLogDet(_MatrixOp):
    """Sign, and logarithm of the absolute value of the determinant."""

    kernel = "slogdet"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_dtype(dtype)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (sign, _), (g_sign, g_log) = inputs, outputs, cotangents
        terms: Variable | None = None if g_log is None else g_log
        if g_sign is not None and is_complex(a):
            turning = pt.imag(g_sign * sign) * 1j
            terms = turning if terms is None else terms + turning
        if terms is None:
            return [None]
        return [_spread(terms) * transposed(Inv()(a))]


class Inv(_MatrixOp):
    """Inverse."""

    kernel = "inv"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (y,), (g,) = outputs, cotangents
        if g is None:
            return [None]
        return [-mm(mm(transposed(y), g), transposed(y))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (y,), (t,) = outputs, tangents
        return [None if t is None else -mm(mm(y, t), y)]


class Pinv(_MatrixOp):
    """Pseudo-inverse; the second input is what singular values count as 0 below, relative to the largest.

    Source of the gradient: G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear
    least squares problems whose variables separate", 1973.
    """

    kernel = "pinv"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(given[0])
        return [dtype, real_dtype(dtype)], [dtype]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (p,), (g,) = inputs, outputs, cotangents
        if g is None:
            return [None, None]
        g = conj(g)
        along = -mm(mm(adjoint(p), g), adjoint(p))
        rows = mm(mm(eye_like(a, -2) - mm(a, p), adjoint(g)), mm(p, adjoint(p)))
        columns = mm(mm(mm(adjoint(p), p), adjoint(g)), eye_like(a) - mm(p, a))
        return [conj(along + rows + columns), None]


class Expm(_MatrixOp):
    """Matrix exponential."""

    kernel = "expm"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (g,) = inputs, cotangents
        return [None if g is None else _derivative(transposed(a), g)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a,), (t,) = inputs, tangents
        return [None if t is None else _derivative(a, t)]


def _derivative(a: Variable, direction: Variable) -> TensorVariable:
    """Of the exponential at a: a block of the exponential of [[a, direction], [0, a]]."""
    zero = pt.zeros_like(direction)
    top = pt.concatenate([a, direction], axis=-1)
    whole: TensorVariable = Expm()(pt.concatenate([top, pt.concatenate([zero, a], axis=-1)], axis=-2))
    n = pt.shape(a)[-1]
    return whole[..., :n, n:]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Determinants, inverses and the exponential of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import Op
from graphc.ops.create import zeros_like
from graphc.ops.elementwise import is_complex
from graphc.ops.factors import Solve
from graphc.ops.ifelse import ifelse
from graphc.ops.join import concatenate
from graphc.ops.math import abs as abs_
from graphc.ops.math import bitwise_or, cast, eq, imag, isfinite, le, sqr, switch
from graphc.ops.matrices import (
    _MatrixOp,
    add,
    adjoint,
    conj,
    diagonal,
    eye_like,
    float_dtype,
    mm,
    on_diagonal,
    real_dtype,
    transposed,
)
from graphc.ops.reduce import any as any_
from graphc.ops.reduce import prod
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import batch_in_front, expand_dims, shape, shape_padright
from graphc.ops.spectral import SVD

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


def _spread(x: Variable) -> TensorVariable:
    """Numbers, one for each matrix, with two more axes."""
    return shape_padright(x, 2)


class Det(_MatrixOp):
    """Determinant."""

    kernel = "det"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (det,), g = inputs, outputs, only(cotangents)
        return [_spread(g) * Cofactors()(a, det)]


class Cofactors(Op):
    """The derivative of the determinant by each element, which singular matrices have, too.

    Operands: the matrix and its determinant.

    Of regular matrices it is the determinant times the transposed inverse. Else it follows from the singular
    value decomposition, by products of all singular values but one; its own derivative from those of all but
    two. Further derivatives at singular matrices are those of the decomposition, where it has them.
    """

    takes_as_stored = False

    __props__ = ()
    depends_on = (0,)
    absent: ClassVar[dict[str, str]] = {"emit": "the compiler puts the graph it stands for in its place"}

    def make_node(self, a: Variable, det: Variable) -> Apply:
        return Apply(self, [a, det], [a.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        a, det = inputs
        if (det != 0).all():
            output_storage[0][0] = np.swapaxes(np.linalg.inv(a), -1, -2) * det[..., None, None]
            return
        u, s, vh = np.linalg.svd(a)
        n = s.shape[-1]
        others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
        sign = np.linalg.det(u) * np.linalg.det(vh)
        output_storage[0][0] = np.asarray(
            (sign[..., None, None] * u.conj() * others[..., None, :]) @ vh.conj(), a.dtype
        )

    def inline_on(self, inputs: Sequence[Variable]) -> list[Variable]:
        a, det = inputs
        u, s, vh, sign = _turned(a)
        others = prod(switch(eq(eye_like(a), 1), 1, expand_dims(s, -2)), axis=-1)
        turned = mm(_spread(sign) * u * expand_dims(others, -2), vh)
        return [_unless_singular(a, det, lambda inverse: _spread(det) * transposed(inverse), turned)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, det), g = inputs, only(cotangents)

        def regular(inverse: Variable) -> Variable:
            y = transposed(inverse)
            inner = sum_(g * y, axis=(-2, -1), keepdims=True)
            return _spread(det) * (inner * y - mm(mm(y, transposed(g)), y))

        u, s, vh, sign = _turned(a)
        one = eq(eye_like(a), 1)
        # All but two: the third axis is multiplied over.
        left = bitwise_or(expand_dims(one, -2), expand_dims(one, -3))
        others = prod(switch(left, 1, expand_dims(s, (-2, -3))), axis=-1)
        others = switch(one, 0, others)
        inner = mm(mm(transposed(u), g), transposed(vh))
        along = on_diagonal(sum_(others * expand_dims(diagonal(inner), -2), axis=-1))
        turned = mm(mm(_spread(sign) * u, along - others * transposed(inner)), vh)
        return [_unless_singular(a, det, regular, turned), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        """Second derivatives are symmetric."""
        return [self.pullback(inputs, outputs, tangents[:1])[0]]

    batch = batch_in_front


def _turned(a: Variable) -> tuple[Variable, Variable, Variable, Variable]:
    """Conjugated singular vectors, values between them, and the determinant of what the vectors are."""
    u, s, vh = SVD()(a, size_of(a, a.type.ndim - 1))
    return conj(u), cast(s, a.type.dtype), conj(vh), Det()(u) * Det()(vh)


def _unless_singular(
    a: Variable, det: Variable, regular: Callable[[Variable], Variable], singular: Variable
) -> Variable:
    """A function of the inverse, or what stands for it if one of the matrices has none, or a poor one.

    Its errors and those of the determinant, which come from two factorizations, would not cancel.
    """
    # That of a matrix without one is NaN here.
    inverse = Solve(check=False)(a, eye_like(a))
    squares = [sum_(sqr(abs_(x)), axis=(-2, -1)) for x in (a, inverse)]
    digits = float(1 / np.finfo(a.type.dtype).eps)
    poor = eq(det, 0) | isfinite(det) & ~le(squares[0] * squares[1], digits)
    chosen: Variable = ifelse(any_(poor), singular, regular(inverse))
    return chosen


class SLogDet(_MatrixOp):
    """Sign, and logarithm of the absolute value of the determinant."""

    kernel = "slogdet"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, real_dtype(dtype)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a,), (sign, _), (g_sign, g_log) = inputs, outputs, cotangents
        turning = imag(g_sign * sign) * 1j if g_sign is not None and is_complex(a) else None
        terms = [term for term in (g_log, turning) if term is not None]
        return [_spread(add(terms)) * transposed(Inv()(a)) if terms else None]


class Inv(_MatrixOp):
    """Inverse."""

    kernel = "inv"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (y,), g = outputs, only(cotangents)
        return [-mm(mm(transposed(y), g), transposed(y))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [-mm(mm(outputs[0], only(tangents)), outputs[0])]


class Pinv(_MatrixOp):
    """Pseudo-inverse; the second input is what singular values count as 0 below, relative to the largest.

    Source of the gradient: G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear
    least squares problems whose variables separate", 1973.
    """

    kernel = "pinv"
    depends_on = (0,)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(given[0])
        return [dtype, real_dtype(dtype)], [dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (p,), g = inputs, outputs, only(cotangents)
        g = conj(g)
        along = -mm(mm(adjoint(p), g), adjoint(p))
        rows = mm(mm(eye_like(a, -2) - mm(a, p), adjoint(g)), mm(p, adjoint(p)))
        columns = mm(mm(mm(adjoint(p), p), adjoint(g)), eye_like(a) - mm(p, a))
        return [conj(along + rows + columns), None]


def directional(function: Op, a: Variable, direction: Variable) -> TensorVariable:
    """A block of a function of [[a, direction], [0, a]]: the derivative in that direction."""
    top = concatenate([a, direction], axis=-1)
    bottom = concatenate([zeros_like(direction), a], axis=-1)
    whole: TensorVariable = function(concatenate([top, bottom], axis=-2))
    n = shape(a)[-1]
    return whole[..., :n, n:]


def pullback_by_blocks(
    op: Op, inputs: Variables, outputs: Variables, cotangents: Maybe
) -> list[Variable | None]:
    """`Op.pullback` of a function of matrices."""
    return [directional(op, transposed(inputs[0]), only(cotangents))]


def pushforward_by_blocks(
    op: Op, inputs: Variables, outputs: Variables, tangents: Maybe
) -> list[Variable | None]:
    """`Op.pushforward` of a function of matrices."""
    return [directional(op, inputs[0], only(tangents))]


class Expm(_MatrixOp):
    """Matrix exponential."""

    kernel = "expm"

    pullback, pushforward = pullback_by_blocks, pushforward_by_blocks

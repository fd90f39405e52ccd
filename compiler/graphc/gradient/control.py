# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that return their input unchanged and say what becomes of its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from graphc.graph.basic import Apply, Variable, only
from graphc.graph.op import FieldOp, no_cotangents, no_tangents, same_tangent
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.undefined import grad_undefined
from graphc.ops.math import clip
from graphc.ops.shaping import batch_in_front

if TYPE_CHECKING:
    import numpy as np

    from graphc.emit.emitter import Emitter
    from graphc.graph.basic import Maybe, Variables
    from graphc.graph.tensor import TensorLike
    from graphc_runtime.thunk import Register


class _Identity(FieldOp):
    """The value of the input, under a rule for the derivative."""

    __props__: ClassVar[tuple[str, ...] | None] = ()
    view_map = {0: [0]}

    def make_node(self, x: TensorLike) -> Apply:
        x = x if isinstance(x, Variable) else as_tensor_variable(x)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = inputs[0]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return [operands[0]]

    batch = batch_in_front


class ZeroGrad(_Identity):
    """The derivative is zero."""

    pullback, pushforward = no_cotangents, no_tangents


class DisconnectedGrad(ZeroGrad):
    """The output counts as independent of the input."""

    depends_on = ()


class UndefinedGrad(_Identity):
    """Asking for the derivative is an error."""

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [grad_undefined(self, 0, inputs[0], "it passes through undefined_grad")]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [grad_undefined(self, 0, inputs[0], "it passes through undefined_grad")]


class GradClip(_Identity):
    """The cotangent is clipped; tangents pass unchanged, as clipping is not linear and has no transpose."""

    __props__ = ("clip_lower_bound", "clip_upper_bound")

    def __init__(self, clip_lower_bound: float, clip_upper_bound: float) -> None:
        if not clip_lower_bound <= clip_upper_bound:
            raise ValueError(
                "grad_clip needs lower_bound <= upper_bound, "
                f"got {clip_lower_bound!r} and {clip_upper_bound!r}"
            )
        self.clip_lower_bound = clip_lower_bound
        self.clip_upper_bound = clip_upper_bound

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [clip(only(cotangents), self.clip_lower_bound, self.clip_upper_bound)]

    pushforward = same_tangent


class GradScale(_Identity):
    """The cotangent is multiplied by a number."""

    multiplier: float

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [only(cotangents) * self.multiplier]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [only(tangents) * self.multiplier]


zero_grad_ = ZeroGrad()
disconnected_grad_ = DisconnectedGrad()
undefined_grad_ = UndefinedGrad()


def zero_grad(x: Variable) -> Variable:
    """``x`` with a zero derivative; the cost still counts as depending on it.

    Examples:
        >>> x = pt.scalar("x")
        >>> slope = graphc.grad(x * graphc.zero_grad(x), x)
        >>> float(slope.eval({x: 3.0}))
        3.0
    """
    return zero_grad_(x)


def disconnected_grad(x: Variable) -> Variable:
    """``x`` as a constant for derivatives: `grad` does not see what it was computed from.

    Examples:
        >>> x = pt.scalar("x")
        >>> slope = graphc.grad(x * graphc.disconnected_grad(x), x)
        >>> float(slope.eval({x: 3.0}))
        3.0
    """
    return disconnected_grad_(x)


def undefined_grad(x: Variable) -> Variable:
    """``x``; asking for a derivative through it raises `NullTypeGradError`.

    Examples:
        >>> x = pt.scalar("x")
        >>> y = graphc.gradient.undefined_grad(x**2)
        >>> float(y.eval({x: 3.0}))
        9.0
    """
    return undefined_grad_(x)


def grad_clip(x: Variable, lower_bound: float, upper_bound: float) -> Variable:
    """``x`` whose gradient is clipped elementwise to ``[lower_bound, upper_bound]``.

    Examples:
        >>> x = pt.scalar("x")
        >>> slope = graphc.grad(10 * graphc.grad_clip(x, -1.0, 1.0), x)
        >>> float(slope.eval({x: 3.0}))
        1.0
    """
    return GradClip(lower_bound, upper_bound)(x)


def grad_scale(x: Variable, multiplier: float) -> Variable:
    """``x`` whose gradient is multiplied by ``multiplier``.

    Examples:
        >>> x = pt.scalar("x")
        >>> float(graphc.grad(graphc.gradient.grad_scale(x**2, 10.0), x).eval({x: 3.0}))
        60.0
    """
    return GradScale(multiplier)(x)


consider_constant = zero_grad

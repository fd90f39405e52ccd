# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activation functions. All of them are elementwise, but for `glu`, and have derivatives of every order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.hooks import publish
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.elementwise import floating
from graphc.ops.math import abs as abs_
from graphc.ops.math import clip, erfc, expm1, gt, minimum, sigmoid, softplus, switch, tanh
from graphc.ops.shape import known_size, size_of
from graphc.ops.shaping import dimshuffle

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# Klambauer et al., Self-normalizing neural networks (2017).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848, 1.0507009873554804934


def relu(x: TensorLike, alpha: TensorLike = 0) -> TensorVariable:
    """x where it is positive, ``alpha * x`` elsewhere.

    Examples:
        >>> pt.nn.relu([-1.0, 2.0]).eval()
        array([0., 2.])
    """
    x = as_tensor_variable(x)
    return switch(gt(x, 0), x, 0 if isinstance(alpha, int) and alpha == 0 else alpha * x)


def relu6(x: TensorLike) -> TensorVariable:
    """x between 0 and 6, and the nearer of these elsewhere.

    Examples:
        >>> pt.nn.relu6([-1.0, 2.0, 9.0]).eval()
        array([0., 2., 6.])
    """
    return clip(as_tensor_variable(x), 0, 6)


def leaky_relu(x: TensorLike, negative_slope: TensorLike = 0.01) -> TensorVariable:
    """x where it is positive, ``negative_slope * x`` elsewhere.

    Examples:
        >>> pt.nn.leaky_relu([-1.0, 2.0]).eval()
        array([-0.01,  2.  ])
    """
    return relu(x, negative_slope)


def prelu(x: TensorLike, alpha: TensorLike, axis: int = 1) -> TensorVariable:
    """`leaky_relu` with a slope for each channel.

    Args:
        x: array-like.
        alpha: slopes, 0-d or a vector as long as the axis of channels.
        axis: the axis of channels.

    Examples:
        >>> pt.nn.prelu(np.array([[-1.0, 2.0]]), np.array([0.1, 0.1])).eval()
        array([[-0.1,  2. ]])
    """
    x, alpha = as_tensor_variable(x), as_tensor_variable(alpha)
    if alpha.type.ndim == 1:
        channels = normalize_axis(axis, x.type.ndim, "prelu")
        alpha = dimshuffle(alpha, tuple(0 if i == channels else "x" for i in range(x.type.ndim)))
    return relu(x, alpha)


def elu(x: TensorLike, alpha: TensorLike = 1) -> TensorVariable:
    """x where it is positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Examples:
        >>> pt.nn.elu([-1.0, 2.0]).round(4).eval()
        array([-0.6321,  2.    ])
    """
    x = as_tensor_variable(x)
    return switch(gt(x, 0), x, alpha * expm1(minimum(x, 0)))


def celu(x: TensorLike, alpha: TensorLike = 1.0) -> TensorVariable:
    """x where it is positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere, whose derivative is continuous.

    Examples:
        >>> pt.nn.celu([-1.0, 2.0]).round(4).eval()
        array([-0.6321,  2.    ])
    """
    x = floating(x)
    return switch(gt(x, 0), x, alpha * expm1(minimum(x, 0) / alpha))


def selu(x: TensorLike) -> TensorVariable:
    """`elu`, scaled so that layers keep mean 0 and variance 1 (Klambauer et al., 2017).

    Examples:
        >>> pt.nn.selu([-1.0, 2.0]).round(4).eval()
        array([-1.1113,  2.1014])
    """
    return elu(floating(x), _SELU_ALPHA) * _SELU_SCALE


def gelu(x: TensorLike, approximate: bool | str = False) -> TensorVariable:
    """x times the probability that a standard normal is below x (Hendrycks and Gimpel, 2016).

    Args:
        x: array-like.
        approximate: True or ``"tanh"`` for the form with tanh of a cubic; False or ``"none"`` is exact.

    Raises:
        ValueError: another value of ``approximate``.

    Examples:
        >>> pt.nn.gelu([-1.0, 2.0]).round(4).eval()
        array([-0.1587,  1.9545])
    """
    if approximate not in (True, False, "tanh", "none"):
        raise ValueError(f'gelu: approximate must be False ("none") or True ("tanh"), got {approximate!r}')
    x = floating(x)
    if approximate in (True, "tanh"):
        return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    # erfc keeps the relative accuracy of small values on the left.
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


def silu(x: TensorLike) -> TensorVariable:
    """``x * sigmoid(x)``.

    Examples:
        >>> pt.nn.silu([0.0, 2.0]).round(4).eval()
        array([0.    , 1.7616])
    """
    x = floating(x)
    return x * sigmoid(x)


def swish(x: TensorLike, beta: TensorLike = 1) -> TensorVariable:
    """``x * sigmoid(beta * x)``.

    Examples:
        >>> pt.nn.swish([0.0, 2.0]).round(4).eval()
        array([0.    , 1.7616])
    """
    x = floating(x)
    return x * sigmoid(x if isinstance(beta, int) and beta == 1 else beta * x)


def mish(x: TensorLike) -> TensorVariable:
    """``x * tanh(softplus(x))``.

    Examples:
        >>> pt.nn.mish([0.0, 2.0]).round(4).eval()
        array([0.   , 1.944])
    """
    x = floating(x)
    return x * tanh(softplus(x))


def hard_sigmoid(x: TensorLike) -> TensorVariable:
    """``x / 6 + 1 / 2`` between 0 and 1, the nearer of these elsewhere.

    Examples:
        >>> pt.nn.hard_sigmoid([-9.0, 0.0, 9.0]).eval()
        array([0. , 0.5, 1. ])
    """
    return clip(floating(x) / 6 + 0.5, 0, 1)


def hard_tanh(x: TensorLike) -> TensorVariable:
    """x between -1 and 1, the nearer of these elsewhere.

    Examples:
        >>> pt.nn.hard_tanh([-9.0, 0.5, 9.0]).eval()
        array([-1. ,  0.5,  1. ])
    """
    return clip(as_tensor_variable(x), -1, 1)


def softsign(x: TensorLike) -> TensorVariable:
    """``x / (1 + abs(x))``.

    Examples:
        >>> pt.nn.softsign([1.0, -3.0]).eval()
        array([ 0.5 , -0.75])
    """
    x = floating(x)
    return x / (1 + abs_(x))


def log_sigmoid(x: TensorLike) -> TensorVariable:
    """``log(sigmoid(x))``, without overflow.

    Examples:
        >>> pt.nn.log_sigmoid([0.0]).round(6).eval()
        array([-0.693147])
    """
    return -softplus(-floating(x))


def glu(x: TensorLike, axis: int = -1) -> TensorVariable:
    """The first half of an axis times the sigmoid of the second (Dauphin et al., 2017).

    Raises:
        ValueError: the static size of the axis is odd.

    Examples:
        >>> pt.nn.glu([2.0, 0.0]).eval()
        array([1.])
    """
    x = floating(x)
    axis = normalize_axis(axis, x.type.ndim, "glu")
    size = size_of(x, axis)
    known = known_size(size)
    if known is not None and known % 2:
        raise ValueError(f"glu halves axis {axis} of {x} of type {x.type}, whose size is odd")
    half = size // 2 if known is None else known // 2
    before = (slice(None),) * axis
    return x[(*before, slice(None, half))] * sigmoid(x[(*before, slice(half, None))])


publish(globals())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalized activations, and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.checks import required
from graphc.ops.dimshuffle import normalize_axes, normalize_axis
from graphc.ops.math import cast, ge, sqrt, switch
from graphc.ops.shape import sizes_of
from graphc.ops.shaping import dimshuffle, reshape
from graphc.tensor.nn.windows import per_axis
from graphc.tensor.random.continuous import random
from graphc.tensor.reductions import mean as mean_

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["batch_norm", "batch_normalization", "dropout", "group_norm", "layer_norm", "rms_norm"]


def _floating(x: TensorLike) -> TensorVariable:
    x = as_tensor_variable(x)
    return x if x.type.kind == "f" else cast(x, "float64")


def _standardized(
    x: TensorVariable, axes: tuple[int, ...], eps: float
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """x less its mean and over its deviation; the mean; the variance."""
    mean = mean_(x, axis=axes, keepdims=True)
    apart = x - mean
    variance = mean_(apart * apart, axis=axes, keepdims=True)
    return apart / sqrt(variance + eps), mean, variance


def _scaled(x: TensorVariable, gamma: TensorLike | None, beta: TensorLike | None) -> TensorVariable:
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def layer_norm(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: int | Sequence[int] = -1,
    eps: float = 1e-5,
) -> TensorVariable:
    """x with mean 0 and variance 1 over some axes (Ba, Kiros and Hinton, 2016).

    Args:
        x: array-like.
        gamma, beta: what it is multiplied by and what is added; they broadcast against x from the right.
        axis: axes that are normalized.
        eps: added to the variance.

    Examples:
        >>> pt.nn.layer_norm([1.0, 3.0], eps=0.0).eval()
        array([-1.,  1.])
    """
    x = _floating(x)
    return _scaled(_standardized(x, normalize_axes(axis, x.type.ndim, "layer_norm"), eps)[0], gamma, beta)


def rms_norm(
    x: TensorLike, gamma: TensorLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-6
) -> TensorVariable:
    """x over the root of the mean of its squares (Zhang and Sennrich, 2019); arguments as `layer_norm`.

    Examples:
        >>> pt.nn.rms_norm([3.0, 3.0], eps=0.0).eval()
        array([1., 1.])
    """
    x = _floating(x)
    axes = normalize_axes(axis, x.type.ndim, "rms_norm")
    return _scaled(x / sqrt(mean_(x * x, axis=axes, keepdims=True) + eps), gamma, None)


def group_norm(
    x: TensorLike,
    groups: int,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> TensorVariable:
    """x normalized over groups of channels and all axes after them (Wu and He, 2018).

    Args:
        x: (n, c, ...).
        groups: how many groups; c must be a multiple of it.
        gamma, beta: vectors with an element for each channel.
        axis: axis of the channels.
        eps: added to the variance.

    Examples:
        >>> pt.nn.group_norm(np.array([[1.0, 3.0]]), 1, eps=0.0).eval()
        array([[-1.,  1.]])
    """
    x = _floating(x)
    axis = normalize_axis(axis, x.type.ndim, "group_norm")
    (groups,) = per_axis(groups, 1, "group_norm: groups")
    known = x.type.shape[axis]
    if known is not None and known % groups:
        raise ValueError(f"group_norm: {known} channels of {x} do not make {groups} groups")
    sizes = sizes_of(x)
    parts = reshape(x, [*sizes[:axis], groups, sizes[axis] // groups, *sizes[axis + 1 :]])
    normal = _standardized(parts, tuple(range(axis + 1, x.type.ndim + 1)), eps)[0]
    channel = [_along(v, axis, x.type.ndim) for v in (gamma, beta)]
    return _scaled(reshape(normal, sizes), *channel)


def _along(v: TensorLike | None, axis: int, ndim: int) -> TensorVariable | None:
    """A vector with an element for each channel, to broadcast; None and 0-d ones as they are."""
    if v is None:
        return None
    v = as_tensor_variable(v)
    if v.type.ndim == 1:
        return dimshuffle(v, tuple(0 if i == axis else "x" for i in range(ndim)))
    return v


def batch_norm(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """x with mean 0 and variance 1 over all axes but the channels', as in training (Ioffe, Szegedy, 2015).

    Args:
        x: (n, c, ...).
        gamma, beta: vectors with an element for each channel: what it is multiplied by and what is added.
        axis: axis of the channels.
        eps: added to the variance.

    Returns:
        The result, and the means and variances (biased) of the channels, from which running averages for
        `batch_normalization` are made.

    Examples:
        >>> [v.eval().shape for v in pt.nn.batch_norm(np.ones((2, 3)))]
        [(2, 3), (3,), (3,)]
    """
    x = _floating(x)
    axis = normalize_axis(axis, x.type.ndim, "batch_norm")
    axes = tuple(i for i in range(x.type.ndim) if i != axis)
    normal, mean, variance = _standardized(x, axes, eps)
    channel = [_along(v, axis, x.type.ndim) for v in (gamma, beta)]
    mean, variance = (dimshuffle(v, (axis,)) for v in (mean, variance))
    return _scaled(normal, *channel), mean, variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, gamma: Any = None, beta: Any = None, axis: int = 1, eps: float = 1e-5
) -> TensorVariable:
    """x normalized with given means and variances of the channels, as in prediction.

    Args:
        x: (n, c, ...).
        mean, variance: vectors with an element for each channel.
        gamma, beta, axis, eps: as `batch_norm`.

    Examples:
        >>> pt.nn.batch_normalization(np.array([[3.0]]), np.array([1.0]), np.array([4.0]), eps=0.0).eval()
        array([[1.]])
    """
    x = _floating(x)
    axis = normalize_axis(axis, x.type.ndim, "batch_normalization")
    mean, variance, gamma, beta = (_along(v, axis, x.type.ndim) for v in (mean, variance, gamma, beta))
    return _scaled((x - mean) / sqrt(variance + eps), gamma, beta)


def dropout(x: TensorLike, p: TensorLike, rng: Any, train: bool = True, return_next_rng: bool = False) -> Any:
    """x with elements set to 0 at random, the others divided by the probability to stay.

    Args:
        x: array-like.
        p: probability that an element is set to 0, in [0, 1).
        rng: a generator variable, or a `graphc.tensor.random.RandomStream`.
        train: False returns x.
        return_next_rng: return the generator after the draws, too (of generator variables).

    Returns:
        The result, or ``(next_rng, result)``.

    Raises:
        ValueError: ``p`` is out of range.

    Examples:
        >>> pt.nn.dropout(np.ones(3), 0.5, pt.random.shared_rng(seed=1), train=False).eval()
        array([1., 1., 1.])
    """
    x = _floating(x)
    p = required(
        as_tensor_variable(p), lambda p: (p >= 0) & (p < 1), "dropout: the probability p must be in [0, 1)"
    )
    if not train:
        return (rng, x) if return_next_rng else x
    dtype = x.type.dtype if x.type.dtype in ("float32", "float64") else "float32"
    options: dict[str, Any] = {"size": sizes_of(x), "dtype": dtype, "return_next_rng": True}
    if hasattr(rng, "gen"):
        following, draws = rng.random(**options)
    else:
        following, draws = random(rng=rng, **options)
    result = switch(ge(draws, p), x / cast(1 - p, x.type.dtype), 0)
    return (following, result) if return_next_rng else result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maxima and means of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.ops.create import ones
from graphc.ops.elementwise import floating
from graphc.ops.pooling import MaxPool, WindowSum
from graphc.ops.reduce import extreme_of_nothing
from graphc.ops.shape import sizes_of
from graphc.ops.shaping import expand_dims, squeeze
from graphc.tensor.nn.windows import Window, known, parse_padding, per_axis, window
from graphc.tensor.padding import pad

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"]

Numbers = int | Sequence[int]
Padding = str | int | Sequence[int] | Sequence[Sequence[int]]


def _windows(
    what: str, x: Variable, size: Numbers, stride: Numbers | None, padding: Padding
) -> tuple[tuple[int, ...], tuple[int, ...], list[Window], list[int | None]]:
    """Sizes and strides of the windows, the windows along both axes, static numbers of leading elements."""
    x = operand(x, f"{what} takes images of at least 2 dimensions", 2)
    sizes = per_axis(size, 2, f"{what}: window")
    strides = sizes if stride is None else per_axis(stride, 2, f"{what}: stride")
    rules = parse_padding(padding, 2, what)
    for rule, taps in zip(rules, sizes, strict=True):
        if not isinstance(rule, str) and max(rule) >= taps:
            raise ValueError(f"{what}: a padding of {rule} makes windows of size {taps} without elements")
    windows = [
        window(x, x.type.ndim - 2 + i, constant(np.int64(sizes[i])), strides[i], rules[i], 1)
        for i in range(2)
    ]
    return sizes, strides, windows, [known(w.low) for w in windows]


def _filled(x: Variable, windows: Sequence[Window], lows: list[int | None], value: float) -> Any:
    """x with leading elements where only the graph knows how many."""
    widths: list[Any] = [(0, 0)] * (x.type.ndim - 2)
    widths += [(w.low, 0) if low is None else (0, 0) for w, low in zip(windows, lows, strict=True)]
    return x if None not in lows else pad(x, widths, constant_values=value)


def max_pool2d(
    x: TensorLike, window: Numbers, stride: Numbers | None = None, padding: Padding = "valid"
) -> TensorVariable:
    """Maxima of windows over the last two axes; NaN wherever a window has one.

    Args:
        x: (..., h, w), not complex.
        window: sizes of the windows.
        stride: steps of the windows; their sizes by default.
        padding: as for `conv2d`; elements outside do not count.

    Raises:
        ValueError: options are out of range.

    Examples:
        >>> pt.nn.max_pool2d(np.arange(4.0).reshape(1, 1, 2, 2), 2).eval()
        array([[[[3.]]]])
    """
    x = as_tensor_variable(x)
    sizes, strides, windows, lows = _windows("max_pool2d", x, window, stride, padding)
    least = extreme_of_nothing("max", x.type.numpy_dtype)
    counts = [w.count for w in windows]
    x = _filled(x, windows, lows, least)
    pads = tuple(low or 0 for low in lows)
    return MaxPool(sizes, strides, pads)(x, *counts, return_list=True)[0]  # type: ignore[arg-type]


def avg_pool2d(
    x: Any,
    window: Numbers,
    stride: Numbers | None = None,
    padding: Padding = "valid",
    count_include_pad: bool = False,
) -> TensorVariable:
    """Means of windows over the last two axes.

    Args:
        x: (..., h, w); integers become float64.
        window: sizes of the windows.
        stride: steps of the windows; their sizes by default.
        padding: as for `conv2d`.
        count_include_pad: elements outside count as zeros; otherwise they do not count.

    Raises:
        ValueError: options are out of range.

    Examples:
        >>> pt.nn.avg_pool2d(np.arange(4.0).reshape(1, 1, 2, 2), 2).eval()
        array([[[[1.5]]]])
    """
    x = floating(x)
    sizes, strides, windows, lows = _windows("avg_pool2d", x, window, stride, padding)
    counts = [w.count for w in windows]
    op = WindowSum(sizes, strides, tuple(low or 0 for low in lows))  # type: ignore[arg-type]
    total: Any = op(_filled(x, windows, lows, 0), *counts)
    if count_include_pad or all(isinstance(w.low, int) and w.low == 0 == w.high for w in windows):
        return total / (sizes[0] * sizes[1])
    inside = ones(sizes_of(x)[-2:], dtype=x.type.dtype)
    return total / op(_filled(inside, windows, lows, 0), *counts)


def _line(
    x: Any, what: str, size: int, stride: int | None, padding: str | int | Sequence[int | Sequence[int]]
) -> tuple[Any, ...]:
    """Arguments of the function for images of height 1."""
    x = operand(x, f"{what} takes sequences of at least 1 dimension", 1)
    (taps,) = per_axis(size, 1, f"{what}: window")
    (step,) = (taps,) if stride is None else per_axis(stride, 1, f"{what}: stride")
    if not isinstance(padding, str):
        pair = padding if isinstance(padding, list | tuple) else (padding, padding)
        padding = [(0, 0), tuple(pair[0] if len(pair) == 1 else pair)]
    return expand_dims(x, -2), (1, taps), (1, step), padding


def max_pool1d(
    x: TensorLike, window: int, stride: int | None = None, padding: Padding = "valid"
) -> TensorVariable:
    """Maxima of windows along the last axis; arguments as `max_pool2d`.

    Examples:
        >>> pt.nn.max_pool1d(np.arange(4.0).reshape(1, 1, 4), 2).eval()
        array([[[1., 3.]]])
    """
    return squeeze(max_pool2d(*_line(x, "max_pool1d", window, stride, padding)), -2)


def avg_pool1d(
    x: TensorLike,
    window: int,
    stride: int | None = None,
    padding: Padding = "valid",
    count_include_pad: bool = False,
) -> TensorVariable:
    """Means of windows along the last axis; arguments as `avg_pool2d`.

    Examples:
        >>> pt.nn.avg_pool1d(np.arange(4.0).reshape(1, 1, 4), 2).eval()
        array([[[0.5, 2.5]]])
    """
    images, taps, step, rule = _line(x, "avg_pool1d", window, stride, padding)
    return squeeze(avg_pool2d(images, taps, step, rule, count_include_pad), -2)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that move over images: strides, padding and the sizes that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import constant
from graphc.ops.math import maximum
from graphc.ops.shape import known_size, size_of
from graphc_runtime.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

_NAMES = ("valid", "same", "full", "half")


def per_axis(value: Any, ndim: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One integer, or one for each axis; less than 2**31, so that sizes made of several do not overflow.

    Raises:
        ValueError: another number of them, or one below ``least`` or too large.
        TypeError: not integers.
    """
    given = list(value) if isinstance(value, list | tuple) else [value] * ndim
    if len(given) != ndim:
        raise ValueError(f"{what} must be an integer or {ndim} of them, got {value!r}")
    try:
        numbers = tuple(int(x.__index__()) for x in given)
    except (AttributeError, TypeError):
        raise TypeError(f"{what} must be integers known when the graph is built, got {value!r}") from None
    if any(x < least for x in numbers):
        raise ValueError(f"{what} must be at least {least}, got {value!r}")
    if any(x >= 2**31 for x in numbers):
        raise ValueError(f"{what} must be less than 2**31, got {value!r}")
    return numbers


def parse_padding(padding: str | int | Sequence[int | Sequence[int]], ndim: int, what: str) -> list[Any]:
    """For each axis, the name of a rule or the numbers of elements before and after.

    Raises:
        ValueError: neither a name, nor integers, nor pairs of them.
    """
    if isinstance(padding, str):
        name = padding.lower()
        if name not in _NAMES:
            raise ValueError(
                f"{what}: padding must be one of {', '.join(_NAMES)} or numbers, got {padding!r}"
            )
        return [name] * ndim
    given = list(padding) if isinstance(padding, list | tuple) else [padding] * ndim
    if len(given) != ndim:
        raise ValueError(f"{what}: padding must be a number or have {ndim} entries, got {padding!r}")
    result = []
    for entry in given:
        pair = tuple(entry) if isinstance(entry, list | tuple) else (entry, entry)
        if len(pair) != 2:
            raise ValueError(f"{what}: padding of an axis is a number or a pair of them, got {entry!r}")
        result.append(per_axis(list(pair), 2, f"{what}: padding", 0))
    return result


@record()
class Window:
    """A window along one axis.

    Attributes:
        size: of the axis.
        low: how many elements are put before the first.
        high: how many elements are put after.
        reach: how many elements a window spans.
        stride: from window to window.
    """

    size: TensorVariable | int
    low: TensorVariable | int
    high: TensorVariable | int
    reach: TensorVariable | int
    stride: int

    @property
    def count(self) -> TensorVariable:
        """Number of windows."""
        room = self.size + self.low + self.high - self.reach
        # Below 0 there is none, however far below.
        return folded(maximum(room // self.stride + 1, 0))


def window(
    x: TensorLike,
    axis: int,
    taps: Any,
    stride: int,
    padding: str | int | Sequence[int | Sequence[int]],
    dilation: int,
) -> Window:
    """The windows along an axis of x.

    Args:
        x: images.
        axis: one of its axes.
        taps: elements of the window, as a size.
        stride: from window to window.
        padding: as `parse_padding` returns it for an axis.
        dilation: distance of the elements.
    """
    size = size_of(x, axis)
    reach = (taps - 1) * dilation + 1
    low, high = sides(padding, size, reach, stride)
    return Window(size, low, high, reach, stride)


def sides(padding: Any, size: Any, reach: Any, stride: int) -> tuple[int, int]:
    """Elements before and after, by a rule or as given."""
    if padding == "valid":
        return 0, 0
    if padding == "full":
        return reach - 1, reach - 1
    if padding == "half":
        return reach // 2, reach // 2
    if padding == "same":
        if stride == 1:
            total = reach - 1
        else:
            results = (size + stride - 1) // stride
            total = maximum((results - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2
    return padding


def folded(size: Any) -> TensorVariable:
    """A size as a constant, where it is known: then results have it in their types."""
    number = known(size)
    return size if number is None else constant(np.asarray(number, np.int64))


def known(x: TensorLike) -> int | None:
    """A size as a number, where it is known."""
    return x if isinstance(x, int) else known_size(x)

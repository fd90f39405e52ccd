# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Axis arguments: what users may write, and the normal form that ops store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.exceptions import AxisError

from graphc.graph.basic import Constant

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.like import AxisLike


def normalize_axis(axis: Any, ndim: int, what: str) -> int:
    """One axis in range(ndim).

    Args:
        axis: an integer, or an integer constant; negative counts from the end.
        ndim: number of dimensions.
        what: name of the operation, for the message.

    Raises:
        TypeError: not an integer known now.
        AxisError: out of range; as NumPy's it is a ValueError and an IndexError.
    """
    if isinstance(axis, Constant):
        axis = axis.data
    try:
        number = axis.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"the axis of {what} must be an integer known when the graph is built, got {axis!r}"
        ) from None
    if not -ndim <= number < ndim:
        few = f"; its axes are {-ndim} to {ndim - 1}" if ndim else ", which has no axes"
        raise AxisError(f"{what}: axis {number} is out of range for an array of {ndim} dimensions{few}")
    return int(number % ndim)


def normalize_axes(axis: AxisLike | Variable, ndim: int, what: str) -> tuple[int, ...]:
    """Ascending distinct axes; None stands for all of them. Errors as in `normalize_axis`."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, Constant) and axis.type.ndim == 1:
        axis = axis.data.tolist()
    if not isinstance(axis, Sequence):
        return (normalize_axis(axis, ndim, what),)
    axes = tuple(sorted(normalize_axis(a, ndim, what) for a in axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{what}: an axis is given twice in {tuple(axis)}")
    return axes


def attribute(name: str, axes: Sequence[int]) -> str:
    """Text of an ``array<i64>`` attribute."""
    values = ": " + ", ".join(map(str, axes)) if axes else ""
    return f"{name} = array<i64{values}>"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the array API standard that rearrange arrays."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

import graphc.tensor as pt
from graphc.array_api.types import as_array
from graphc.hooks import publish

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def concat(arrays: Sequence[TensorLike], /, *, axis: AxisLike = 0) -> TensorVariable:
    """Arrays joined along an axis; None flattens them first."""
    if axis is None:
        return pt.concatenate([pt.ravel(x) for x in arrays], axis=0)
    return pt.concatenate(list(arrays), axis=axis)


def expand_dims(x: TensorLike, /, axis: AxisLike) -> Variable:
    """A new axis of size 1."""
    return pt.expand_dims(x, axis)


def flip(x: TensorLike, /, *, axis: AxisLike = None) -> TensorVariable:
    """Elements in reverse order along axes, by default all."""
    return pt.flip(x, axis)


def moveaxis(
    x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int], /
) -> TensorVariable:
    """Axes moved to other places."""
    return pt.moveaxis(x, source, destination)


def permute_dims(x: TensorLike, /, axes: AxisLike) -> TensorVariable:
    """Axes in another order."""
    return pt.transpose(x, axes)


def repeat(x: TensorLike, repeats: TensorLike, /, *, axis: AxisLike = None) -> TensorVariable:
    """Each element, or each slice along an axis, several times."""
    return pt.repeat(x, repeats, axis)


def reshape(x: TensorLike, /, shape: Sequence[int], *, copy: bool | None = None) -> TensorVariable:
    """The elements in another shape."""
    return pt.reshape(x, shape)


def roll(x: TensorLike, /, shift: int | Sequence[int], *, axis: AxisLike = None) -> TensorVariable:
    """Elements shifted along axes; those shifted out come back at the other end."""
    return pt.roll(x, shift, axis)


def squeeze(x: TensorLike, /, axis: AxisLike) -> TensorVariable:
    """Without axes of size 1."""
    return pt.squeeze(x, axis)


def stack(arrays: Sequence[TensorLike], /, *, axis: int = 0) -> TensorVariable:
    """Arrays joined along a new axis."""
    return pt.stack(list(arrays), axis=axis)


def take(x: TensorLike, indices: TensorLike, /, *, axis: AxisLike = None) -> TensorVariable:
    """Elements at positions along an axis, which must be given unless there is just one."""
    x = as_array(x)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take needs an axis for an array of {x.ndim} dimensions")
    return pt.take(x, indices, axis=0 if axis is None else axis)


def take_along_axis(x: TensorLike, indices: TensorLike, /, *, axis: int = -1) -> TensorVariable:
    """Along an axis, the element that the index in its place names."""
    return pt.take_along_axis(x, indices, axis)


def tile(x: TensorLike, repetitions: TensorLike, /) -> TensorVariable:
    """The array repeated along its axes."""
    return pt.tile(x, repetitions)


def unstack(x: TensorLike, /, *, axis: int = 0) -> tuple[TensorVariable, ...]:
    """The slices along an axis of static size."""
    moved: TensorVariable = pt.moveaxis(as_array(x), axis, 0)
    return builtins.tuple(moved)


publish(globals())

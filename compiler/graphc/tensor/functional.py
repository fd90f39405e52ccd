# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that take functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.math import cast, second, switch
from graphc.ops.shaping import expand_dims, moveaxis
from graphc.tensor.vectorizing import vmap

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["apply_along_axis", "apply_over_axes", "piecewise"]


def apply_along_axis(
    func1d: Callable[..., TensorVariable], axis: int, arr: TensorLike, *args: TensorLike, **kwargs: object
) -> TensorVariable:
    """A function of vectors for each vector along an axis; axes of its result take the place of the axis.

    Examples:
        >>> pt.apply_along_axis(lambda row: row.max() - row.min(), 1, [[1, 5], [2, 4]]).eval()
        array([4, 2])
    """
    x = as_tensor_variable(arr)
    axis = normalize_axis(axis, x.type.ndim, "apply_along_axis")

    def function(v: TensorLike) -> TensorVariable:
        return func1d(v, *args, **kwargs)

    lead = moveaxis(x, axis, -1)
    for _ in range(x.type.ndim - 1):
        function = vmap(function)
    found = as_tensor_variable(function(lead))
    more = found.type.ndim - (x.type.ndim - 1)
    return moveaxis(found, list(range(-more, 0)), list(range(axis, axis + more))) if more else found


def apply_over_axes(
    func: Callable[..., TensorVariable], a: TensorLike, axes: int | Sequence[int]
) -> TensorVariable:
    """``func(a, axis)`` for one axis after the other; axes that are lost come back with size 1.

    Examples:
        >>> pt.apply_over_axes(pt.sum, [[1, 2], [3, 4]], [0, 1]).eval()
        array([[10]])
    """
    x = as_tensor_variable(a)
    ndim = x.type.ndim
    for given in [axes] if isinstance(axes, int | np.integer) else axes:
        axis = normalize_axis(given, ndim, "apply_over_axes")
        found = as_tensor_variable(func(x, axis))
        x = expand_dims(found, axis) if found.type.ndim == ndim - 1 else found
        if x.type.ndim != ndim:
            raise ValueError(f"the function must reduce an axis; it gave {found.type} for {ndim} dimensions")
    return x


def piecewise(
    x: TensorLike,
    condlist: Sequence[TensorLike],
    funclist: Sequence[TensorLike],
    *args: TensorLike,
    **kw: object,
) -> TensorVariable:
    """A function that is given by pieces; all of them are computed everywhere.

    Args:
        x: array-like.
        condlist: conditions of x's shape; the last one that holds counts.
        funclist: for each a function of x or a number; one more is for what is left, 0 by default.
        args, kw: further arguments of the functions.

    Examples:
        >>> pt.piecewise([-1.0, 2.0], [np.array([True, False])], [0.0, 1.0]).eval()
        array([0., 1.])
    """
    x = as_tensor_variable(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} conditions there are as many functions, or one more")
    pieces = [f(x, *args, **kw) if callable(f) and not isinstance(f, Variable) else f for f in funclist]
    rest = pieces[-1] if len(pieces) > len(conditions) else 0
    result: TensorVariable = second(x, cast(as_tensor_variable(rest), x.type.dtype))
    for condition, piece in zip(conditions, pieces, strict=False):
        result = switch(condition, cast(as_tensor_variable(piece), x.type.dtype), result)
    return result

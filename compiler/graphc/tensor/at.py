# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes at an index beyond setting and adding; ``x.at[index]`` has all of them as methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.variable import At
from graphc.ops.elementwise import expand_left
from graphc.ops.math import maximum, minimum, mul
from graphc.ops.scattering import Scatter
from graphc.ops.shaping import broadcast_to, dimshuffle, moveaxis, ravel, reshape
from graphc.ops.sizes import sizes_of
from graphc.ops.subtensor import fitting
from graphc.tensor.indexing import TakeLens, lenses_below, set_subtensor

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["At", "max_subtensor", "min_subtensor", "mul_subtensor"]

_COMBINE = {"mul": mul, "max": maximum, "min": minimum}


def _combine(target: Any, y: TensorLike, kind: str) -> TensorVariable:
    """The array of an indexed variable with the selected elements combined with others, one by one."""
    x, lenses = lenses_below(target)
    y = fitting(as_tensor_variable(y), target.type, f"{kind}_subtensor")
    if not lenses or not isinstance(lenses[-1], TakeLens):
        return set_subtensor(target, _COMBINE[kind](target, y))
    values = [x]
    for lens in lenses[:-1]:
        values.append(lens.get(values[-1]))
    result = _scattered(values[-1], lenses[-1], expand_left(y, target.type.ndim), target, kind)
    for lens, value in zip(reversed(lenses[:-1]), reversed(values[:-1]), strict=True):
        result = lens.put(value, result, False)
    return result


def _scattered(
    x: TensorVariable, lens: TakeLens, y: TensorVariable, target: TensorVariable, kind: str
) -> TensorVariable:
    """x with rows at positions combined with y, which broadcasts to the target."""
    rank, last = lens.indices.type.ndim, x.type.ndim - 1
    if None in y.type.shape or y.type.shape != target.type.shape:
        y = broadcast_to(y, sizes_of(target))
    chosen = range(lens.axis, lens.axis + rank)
    kept = [a for a in range(y.type.ndim) if a not in chosen]
    y = dimshuffle(y, (*kept, *chosen))
    y = reshape(y, [*(sizes_of(y)[: len(kept)]), -1])
    changed = Scatter(kind)(moveaxis(x, lens.axis, last), y, ravel(lens.indices))
    return moveaxis(changed, last, lens.axis)


def mul_subtensor(x: TensorLike, y: TensorLike) -> TensorVariable:
    """A copy of an array in which an indexed part is multiplied; repeated positions multiply again.

    Args:
        x: an indexed variable, ``a[index]``.
        y: array-like that broadcasts to the part.

    Examples:
        >>> pt.mul_subtensor(pt.ones(3)[1:], [5.0, 2.0]).eval()
        array([1., 5., 2.])
    """
    return _combine(x, y, "mul")


def max_subtensor(x: TensorLike, y: TensorLike) -> TensorVariable:
    """A copy of an array in which an indexed part is the larger one of it and ``y``; of repeated positions
    the largest counts. Arguments as `mul_subtensor`.

    Examples:
        >>> pt.max_subtensor(pt.zeros(3)[1:], [-1.0, 2.0]).eval()
        array([0., 0., 2.])
    """
    return _combine(x, y, "max")


def min_subtensor(x: TensorLike, y: TensorLike) -> TensorVariable:
    """A copy of an array in which an indexed part is the smaller one of it and ``y``; of repeated positions
    the smallest counts. Arguments as `mul_subtensor`.

    Examples:
        >>> pt.min_subtensor(pt.zeros(3)[1:], [-1.0, 2.0]).eval()
        array([ 0., -1.,  0.])
    """
    return _combine(x, y, "min")

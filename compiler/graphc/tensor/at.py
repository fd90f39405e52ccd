# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes at an index beyond setting and adding, and ``x.at[index]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.elementwise import expand_left
from graphc.ops.math import maximum, minimum, mul
from graphc.ops.scattering import Scatter
from graphc.ops.shaping import broadcast_to, dimshuffle, moveaxis, ravel, reshape
from graphc.ops.sizes import sizes_of
from graphc.ops.subtensor import fitting
from graphc.tensor.indexing import TakeLens, inc_subtensor, lenses_below, set_subtensor

if TYPE_CHECKING:
    from graphc.graph.tensor.like import IndexLike, TensorLike
    from graphc.graph.tensor.variable import TensorOperators, TensorVariable

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


class At:
    """``x.at[index]``: changes of an array at an index, by JAX's names.

    Args:
        x: the array.
        index: once it is known.

    Examples:
        >>> pt.zeros(3).at[1].set(5.0).eval()
        array([0., 5., 0.])
    """

    def __init__(self, x: TensorOperators, index: IndexLike = None) -> None:
        self._x = x
        self._index = index

    def __getitem__(self, index: IndexLike) -> At:
        return At(self._x, index)

    def _part(self) -> TensorVariable:
        return self._x[self._index]

    def get(self) -> TensorVariable:
        """The part itself."""
        return self._part()

    def set(self, y: TensorLike) -> TensorVariable:
        """`set_subtensor`."""
        return set_subtensor(self._part(), y)

    def add(self, y: TensorLike) -> TensorVariable:
        """`inc_subtensor`."""
        return inc_subtensor(self._part(), y)

    def multiply(self, y: TensorLike) -> TensorVariable:
        """`mul_subtensor`."""
        return mul_subtensor(self._part(), y)

    mul = multiply

    def max(self, y: TensorLike) -> TensorVariable:
        """`max_subtensor`."""
        return max_subtensor(self._part(), y)

    def min(self, y: TensorLike) -> TensorVariable:
        """`min_subtensor`."""
        return min_subtensor(self._part(), y)

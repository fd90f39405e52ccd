# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing: ``x[index]``, and new arrays in which what an index selects is set or increased.

An index is read once into a list of *lenses*; each reads from one array and can put a changed result back
into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.location import describe
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.advanced import Put, Take
from graphc.ops.axes import normalize_axis
from graphc.ops.bounds import Entry
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import expand_left
from graphc.ops.math import bitwise_and, cast, clip, ge, lt, mod, second, switch
from graphc.ops.reshape import FitIndex, Reshape
from graphc.ops.shape import MakeVector, Shape
from graphc.ops.shaping import dimshuffle, ravel, specify_shape
from graphc.ops.sizes import known_size, product_of, size_of, sizes_of, vector_entries
from graphc.ops.subtensor import IncSubtensor, Subtensor, fitting
from graphc.tensor.masks import masked, true_positions
from graphc.tensor.parse_index import ParsedIndex, mask_of, parse_index, with_mask_axes
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "getitem",
    "inc_subtensor",
    "set_subtensor",
    "take",
]


@record(frozen=True)
class SliceLens:
    """A slice of every dimension."""

    entries: tuple[Entry, ...]
    bounds: tuple[TensorVariable, ...]
    selects: ClassVar[bool] = True

    def get(self, x: TensorLike) -> TensorVariable:
        return Subtensor(self.entries)(x, *self.bounds)

    def put(self, x: TensorLike, y: TensorLike, accumulate: bool) -> TensorVariable:
        return IncSubtensor(self.entries, not accumulate)(x, y, *self.bounds)


@record(frozen=True)
class FitLens:
    """The array, whose sizes are checked; None stands for any size."""

    sizes: tuple[TensorVariable | None, ...]
    selects: ClassVar[bool] = False

    def get(self, x: TensorLike) -> Any:
        return _fitting(x, self.sizes)

    def put(self, x: TensorVariable, y: TensorVariable, accumulate: bool) -> TensorVariable:
        return y


@record(frozen=True)
class ShuffleLens:
    """Axes dropped, inserted and permuted."""

    order: tuple[int | str, ...]
    selects: ClassVar[bool] = False

    def get(self, x: TensorLike) -> TensorVariable:
        return dimshuffle(x, self.order)

    def put(self, x: Variable, y: Variable, accumulate: bool) -> TensorVariable:
        return dimshuffle(y, DimShuffle(self.order).inverse(x.type.ndim))


@record(frozen=True)
class FlattenLens:
    """Neighbouring axes joined into one."""

    axis: int
    count: int
    selects: ClassVar[bool] = False

    def get(self, x: TensorLike) -> TensorVariable:
        sizes = sizes_of(x)
        stop = self.axis + self.count
        return Reshape()(x, *sizes[: self.axis], product_of(sizes[self.axis : stop]), *sizes[stop:])

    def put(self, x: TensorLike, y: TensorLike, accumulate: bool) -> TensorVariable:
        return Reshape()(y, *sizes_of(x))


@record(frozen=True)
class TakeLens:
    """Positions along one axis."""

    axis: int
    indices: TensorVariable
    selects: ClassVar[bool] = True

    def get(self, x: TensorLike) -> TensorVariable:
        return Take(self.axis)(x, self.indices)

    def put(self, x: TensorLike, y: TensorLike, accumulate: bool) -> TensorVariable:
        return Put(self.axis, not accumulate)(x, y, self.indices)


@record(frozen=True)
class MaskLens:
    """The rows where a vector of booleans is true."""

    mask: TensorVariable
    selects: ClassVar[bool] = True

    def get(self, x: TensorLike) -> TensorVariable:
        return masked(x, self.mask)

    def put(self, x: Variable, y: Variable, accumulate: bool) -> TensorVariable:
        if y.type.shape[0] == 1:
            # One value for all rows needs no positions.
            mask = dimshuffle(self.mask, (0, *["x"] * (x.type.ndim - 1)))
            return switch(mask, x + y if accumulate else y, x)
        return Put(0, not accumulate)(x, y, true_positions(self.mask))


Lens = FitLens | SliceLens | ShuffleLens | FlattenLens | TakeLens | MaskLens


def lenses_of(x: Variable, index: ParsedIndex) -> list[Lens]:
    """The lenses of a parsed index, in the order in which they read."""
    lenses: list[Lens] = []
    if index.sizes:
        lenses.append(FitLens(index.sizes))
    if index.entries:
        lenses.append(SliceLens(index.entries, index.bounds))
    axes = [axis for axis, _ in index.arrays]
    order = list(index.layout)
    if axes:
        order = [axis for axis in order if axis not in axes]
        order[index.place : index.place] = axes
    if tuple(order) != tuple(range(x.type.ndim)):
        lenses.append(ShuffleLens(tuple(order)))
    if not axes:
        return lenses
    arrays = [array for _, array in index.arrays]
    if len(axes) > 1:
        lenses.append(FlattenLens(index.place, len(axes)))
    lenses.append(TakeLens(index.place, arrays[0] if len(axes) == 1 else _flat_indices(x, axes, arrays)))
    return lenses


def _mask_lenses(x: TensorVariable, mask: TensorVariable) -> list[Lens]:
    """The lenses of a mask over the first axes."""
    rank = mask.type.ndim
    sizes = sizes_of(x)[:rank]
    mask = (
        mask
        if mask.type.shape == x.type.shape[:rank] and None not in mask.type.shape
        else _fitting(mask, sizes)
    )
    flat: list[Lens] = [FlattenLens(0, rank)] if rank > 1 else []
    return [*flat, MaskLens(ravel(mask))]


def _fitting(x: TensorLike, sizes: Sequence[TensorLike | None]) -> TensorVariable:
    """An array that has the sizes that an index needs; None stands for any size."""
    return FitIndex()(x, *(size_of(x, i) if size is None else size for i, size in enumerate(sizes)))


def _aligned(arrays: Sequence[TensorVariable]) -> list[TensorVariable]:
    """Index arrays, of which those that do not broadcast are checked to have the sizes of the first."""
    first: dict[int, TensorVariable] = {}
    for array in sorted(arrays, key=lambda array: None in array.type.shape):
        for axis, static in enumerate(array.type.shape, -array.type.ndim):
            if static != 1:
                first.setdefault(axis, array)
    found = []
    for array in arrays:
        sizes: list[Any] = [None] * array.type.ndim
        for axis, static in enumerate(array.type.shape, -array.type.ndim):
            other = first.get(axis, array)
            if static != 1 and other is not array and (static is None or other.type.shape[axis] is None):
                sizes[axis] = size_of(other, axis + other.type.ndim)
        found.append(array if all(size is None for size in sizes) else _fitting(array, sizes))
    return found


def _flat_indices(x: Variable, axes: Sequence[int], arrays: Sequence[TensorVariable]) -> TensorVariable:
    """Positions in the joined axes; those out of bounds in any axis are out of bounds there too."""
    try:
        np.broadcast_shapes(*(tuple(1 if n is None else n for n in array.type.shape) for array in arrays))
    except ValueError:
        shapes = ", ".join(str(array.type.shape) for array in arrays)
        raise IndexError(
            f"the index arrays of {x}{describe(x.location)} have shapes {shapes}, which do not broadcast"
        ) from None
    flat: TensorVariable | None = None
    inside: TensorVariable | None = None
    for axis, array in zip(axes, _aligned(arrays), strict=True):
        size = sizes_of(x)[axis]
        wrapped = switch(lt(array, 0), array + size, array)
        flat = wrapped if flat is None else flat * size + wrapped
        valid = bitwise_and(ge(wrapped, 0), lt(wrapped, size))
        inside = valid if inside is None else bitwise_and(inside, valid)
    assert inside is not None and flat is not None  # there is an axis
    return switch(inside, flat, product_of([sizes_of(x)[axis] for axis in axes]))


def _size_entries(x: Variable, index: Any) -> TensorVariable | None:
    """Elements of a vector of sizes, without building the vector; None when it is not one."""
    node = x.owner
    if node is None or not isinstance(node.op, Shape | MakeVector) or isinstance(index, tuple):
        return None
    entries = vector_entries(x) or []
    if isinstance(index, slice):
        numbers = [
            None if b is None else known_size(as_tensor_variable(b))
            for b in (index.start, index.stop, index.step)
        ]
        if any(
            n is None and b is not None
            for n, b in zip(numbers, (index.start, index.stop, index.step), strict=True)
        ):
            return None
        return MakeVector(x.type.dtype)(*entries[slice(*numbers)])
    if isinstance(index, bool) or not hasattr(index, "__index__") or isinstance(index, Variable):
        return None
    if getattr(index, "ndim", 0):
        return None
    position = index.__index__()
    if not -len(entries) <= position < len(entries):
        raise IndexError(f"index {position} is out of bounds for {x}, which has {len(entries)} elements")
    return entries[position]


def getitem(x: TensorLike, index: TensorLike) -> TensorVariable:
    """``x[index]`` with NumPy's meaning of integers, slices, newaxis, ellipsis, integer arrays and masks.

    Args:
        x: array-like.
        index: as in NumPy; integers, slice bounds and arrays may be symbolic.

    Raises:
        IndexError: too many indices, or a known index out of bounds.

    Examples:
        >>> pt.getitem(pt.as_tensor_variable([10, 20, 30]), slice(1, None)).eval()
        array([20, 30])
    """
    x = as_tensor_variable(x)
    entry = _size_entries(x, index)
    if entry is not None:
        return entry
    result = x
    order, index = with_mask_axes(x, index)
    lenses: list[Lens] = [ShuffleLens(order)] if order else []
    for lens in lenses:
        result = lens.get(result)
    mask = mask_of(result, index)
    after = lenses_of(result, parse_index(result, index)) if mask is None else _mask_lenses(result, mask)
    for lens in after:
        result = lens.get(result)
    lenses += after
    if lenses:
        result.tag.indexing = (x, lenses)
    return result


def lenses_below(target: Variable) -> tuple[TensorVariable, list[Lens]]:
    """The array and the lenses of an indexed variable."""
    indexing = getattr(target.tag, "indexing", None) if isinstance(target, Variable) else None
    if indexing is None:
        raise TypeError(
            f"set_subtensor and its like take an indexed variable such as x[1:], got {target}"
            f"{describe(target.location) if isinstance(target, Variable) else ''}"
        )
    x, lenses = indexing
    return x, lenses


def _replace(target: Any, y: TensorLike, accumulate: bool) -> TensorVariable:
    x, lenses = lenses_below(target)
    values = [x]
    for lens in lenses:
        values.append(lens.get(values[-1]))
    result = fitting(
        as_tensor_variable(y), target.type, "set_subtensor" if not accumulate else "inc_subtensor"
    )
    if result.type.ndim < target.type.ndim:
        result = expand_left(result, target.type.ndim)
    ones = [
        1 if want == 1 and have is None else None
        for have, want in zip(result.type.shape, target.type.shape, strict=True)
    ]
    if any(ones):  # as in PyTensor a wrong size is then an error of the shape
        result = specify_shape(result, ones)
    if not any(lens.selects for lens in lenses):
        result = target + result if accumulate else second(target, result)
    for lens, value in zip(reversed(lenses), reversed(values[:-1]), strict=True):
        result = lens.put(value, result, accumulate)
        # The selected part now holds the sums; it replaces what it was taken from.
        accumulate = accumulate and not lens.selects
    return result


def set_subtensor(
    x: TensorLike, y: TensorLike, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
    """A copy of an array in which an indexed part is set.

    Args:
        x: an indexed variable, ``a[index]``.
        y: array-like that broadcasts to the part.
        inplace: accepted for compatibility; the compiler decides what is done in place.
        tolerate_inplace_aliasing: as ``inplace``.

    Returns:
        A variable like ``a``. Of repeated positions the last one counts.

    Raises:
        TypeError: x is not indexed, or y has a dtype that does not fit.

    Examples:
        >>> pt.set_subtensor(pt.zeros(3)[1:], [5.0, 2.0]).eval()
        array([0., 5., 2.])
    """
    return _replace(x, y, accumulate=False)


def inc_subtensor(
    x: TensorVariable,
    y: TensorLike,
    inplace: bool = False,
    set_instead_of_inc: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> TensorVariable:
    """A copy of an array in which an indexed part is increased; repeated positions add up. Arguments as
    `set_subtensor`.

    Examples:
        >>> pt.inc_subtensor(pt.ones(3)[1:], [5.0, 2.0]).eval()
        array([1., 6., 3.])
    """
    if ignore_duplicates:
        return set_subtensor(x, x + y)
    return _replace(x, y, accumulate=not set_instead_of_inc)


def take(a: Any, indices: Any, axis: Any = None, mode: str | None = "raise") -> TensorVariable:
    """Elements at integer positions along an axis, or, without one, of the flattened array.

    Args:
        a: array-like.
        indices: integers of any shape; negative ones count from the end.
        axis: the axis.
        mode: ``raise``, ``wrap`` or ``clip``: what out of bounds means.

    Examples:
        >>> pt.take([10, 20, 30], [2, 0]).eval()
        array([30, 10])
    """
    a, indices = as_tensor_variable(a), as_tensor_variable(indices)
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis(axis, a.type.ndim, "take")
    size = sizes_of(a)[axis]
    mode = "raise" if mode is None else mode
    if mode == "wrap":
        indices = mod(cast(indices, "int64"), size)
    elif mode == "clip":
        indices = clip(cast(indices, "int64"), 0, size - 1)
    elif mode != "raise":
        raise ValueError(f"mode must be raise, wrap or clip, got {mode!r}")
    return a[(slice(None),) * axis + (indices,)]

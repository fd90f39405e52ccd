# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing: ``x[index]``, and new arrays in which what an index selects is set or increased.

An index is read once into a list of *lenses*; each reads from one array and can put a changed result back
into it.

``x.at[index]`` has all changes at an index as methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from graphc.errors import IndexTypeError
from graphc.graph.basic import Constant, Variable, describe
from graphc.graph.tensor.convert import as_tensor_variable, has_variable, operand
from graphc.graph.tensor.variable import At
from graphc.ops.advanced import Put, Take
from graphc.ops.counting import Scatter
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import cast_to, expand_left
from graphc.ops.math import (
    bitwise_and,
    cast,
    ge,
    lt,
    maximum,
    minimum,
    mul,
    second,
    switch,
    tensor_copy,
)
from graphc.ops.shape import (
    MakeVector,
    Shape,
    as_size,
    known_size,
    product_of,
    reads_sizes,
    size_of,
    sizes_of,
    vector_entries,
)
from graphc.ops.shaping import (
    FitIndex,
    Reshape,
    broadcast_to,
    dimshuffle,
    expand_dims,
    moveaxis,
    on_axis,
    ravel,
    reshape,
    specify_shape,
)
from graphc.ops.subtensor import FULL, SYMBOLIC, Bound, Entry, IncSubtensor, Subtensor, fitting
from graphc.tensor.masks import by_mode, masked, nonzero, true_positions
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor import IndexLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


class ParsedIndex(NamedTuple):
    """An index in normal form.

    Attributes:
        entries: one `Entry` for each dimension; empty when there is nothing to slice.
        bounds: symbolic bounds of the entries, 0-d int64.
        layout: axes that remain after slicing, and ``"x"`` for new ones, in order; axes of integers are
            missing.
        arrays: axis and integer array of each integer-array index.
        place: position of the arrays' dimensions in the layout without their axes.
        sizes: what the sizes must be where a mask stands, None elsewhere; empty when that is certain.
    """

    entries: tuple[Entry, ...]
    bounds: tuple[TensorVariable, ...]
    layout: tuple[int | str, ...]
    arrays: tuple[tuple[int, TensorVariable], ...]
    place: int
    sizes: tuple[TensorVariable | None, ...]


def _is_truth_value(item: Any) -> bool:
    """True if an item is a mask without dimensions."""
    if isinstance(item, bool | np.bool_):
        return True
    if isinstance(item, np.ndarray):
        return item.ndim == 0 and item.dtype == np.bool_
    return _is_mask(item) and item.type.ndim == 0


def with_mask_axes(x: Variable, index: IndexLike) -> tuple[tuple[int | str, ...], Any]:
    """Give each truth value in an index an axis of size 1 to select from.

    Args:
        x: what is indexed.
        index: the index.

    Returns:
        The order of the axes with new ones (``"x"``), and the index with truth values as vectors. Without
        truth values these are ``()`` and the index.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not any(map(_is_truth_value, items)):
        return (), index
    given = [_plain(item) for item in items]
    widths = list(map(_width, given))
    order: list[int | str] = []
    axis = 0
    for i, (item, width) in enumerate(zip(given, widths, strict=True)):
        if _is_truth_value(item):
            order.append("x")
            given[i] = expand_dims(item, 0)
            continue
        # The ellipsis stands for what the other items leave.
        taken = max(x.type.ndim - sum(widths), 0) if item is Ellipsis else width
        order.extend(range(axis, axis + taken))
        axis += taken
    return (*order, *range(axis, x.type.ndim)), tuple(given)


def _items(x: Variable, index: IndexLike) -> tuple[list[Any], list[TensorVariable | None]]:
    """The index with masks replaced by arrays, and full slices for the ellipsis and missing dimensions; and
    the sizes that masks demand.
    """
    given = [_plain(item) for item in (index if isinstance(index, tuple) else (index,))]
    widths = [_width(item) for item in given]
    used, ndim = sum(widths), x.type.ndim
    if used > ndim:
        raise IndexError(f"{used} indices for {x}{describe(x.location)}, which has {ndim} dimensions")
    if sum(item is Ellipsis for item in given) > 1:
        raise IndexError("an index can hold only one ellipsis")
    if not any(item is Ellipsis for item in given):
        given.append(Ellipsis)
        widths.append(0)
    items: list[object] = []
    sizes: list[TensorVariable | None] = [None] * ndim
    axis = 0
    for item, width in zip(given, widths, strict=True):
        if item is Ellipsis:
            items += [slice(None)] * (ndim - used)
            axis += ndim - used
        elif _is_mask(item):
            _check_mask(x, item, axis)
            for i in range(width):
                if x.type.shape[axis + i] is None or item.type.shape[i] is None:
                    sizes[axis + i] = size_of(item, i)
            items += _positions(item)
        else:
            items.append(item)
        axis += width
    return items, sizes


def _is_mask(item: TensorLike) -> bool:
    return isinstance(item, Variable) and getattr(item.type, "dtype", "") == "bool"


def _width(item: Any) -> int:
    """Number of dimensions that an item of an index is for."""
    if item is None or item is Ellipsis:
        return 0
    return item.type.ndim if _is_mask(item) else 1


def _plain(item: Any) -> Any:
    """An item of an index as a variable, unless it is a slice, an ellipsis or None."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, list | tuple) and not has_variable(item) and np.size(item) == 0:
        item = np.zeros(np.shape(item), np.int64)
    variable = None if isinstance(item, str) else as_tensor_variable(item)
    if isinstance(variable, Constant) and _is_mask(variable) and variable.type.shape == (0,):
        return as_tensor_variable(np.zeros(0, np.int64))  # As in NumPy, such a mask fits any size.
    if variable is None or variable.type.kind not in "biu":
        raise IndexTypeError(
            f"an index must be an integer, slice, newaxis, ellipsis or integer array, got {item!r}"
        )
    return variable


def _positions(mask: TensorVariable) -> list[TensorVariable]:
    """A mask as positions of its true elements."""
    if isinstance(mask, Constant):
        return [as_tensor_variable(positions) for positions in np.nonzero(mask.data)]
    return list(nonzero(mask))


def _check_mask(x: Variable, mask: Variable, axis: int) -> None:
    """Raises for a mask whose known sizes are not those of the array."""
    wanted = x.type.shape[axis : axis + mask.type.ndim]
    if len(wanted) < mask.type.ndim or any(
        a is not None and b is not None and a != b for a, b in zip(mask.type.shape, wanted, strict=False)
    ):
        raise IndexError(
            f"the boolean index {mask}{describe(mask.location)} of shape {mask.type.shape} does not fit "
            f"{x}{describe(x.location)} of type {x.type} from axis {axis} on"
        )


def mask_of(x: Variable, index: TensorLike) -> TensorVariable | None:
    """The boolean variable that is the whole index, with `x` having its shape there; else None."""
    items = index if isinstance(index, tuple) else (index,)
    while len(items) > 1 and (
        items[-1] is Ellipsis or (isinstance(items[-1], slice) and items[-1] == slice(None))
    ):
        items = items[:-1]
    if len(items) != 1 or not isinstance(items[0], Variable):
        return None
    mask: Any = items[0]
    if isinstance(mask, Constant) or getattr(mask.type, "dtype", "") != "bool" or mask.type.ndim == 0:
        return None
    _check_mask(x, mask, 0)
    return mask


def _bound(bound: TensorVariable | int | None, bounds: list[TensorVariable]) -> Bound:
    """A bound as a number, None, or `SYMBOLIC` with its variable appended to ``bounds``."""
    if bound is None:
        return None
    variable = operand(bound, "an index or bound of a slice must be a 0-d integer", 0, 0, "iu", TypeError)
    known = known_size(variable)
    if known is not None and not reads_sizes(variable):
        return known
    # A number that was a size of something else would not notice when that is replaced.
    bounds.append(as_size(variable, "an index"))
    return SYMBOLIC


def _is_single(item: Any) -> bool:
    return isinstance(item, Variable) and item.type.ndim == 0


def _arrays_place(items: list[TensorVariable | slice | None]) -> int:
    """Position of the arrays' dimensions: in place when integers and arrays are neighbours, else first."""
    advanced = [i for i, item in enumerate(items) if isinstance(item, Variable)]
    if not any(not _is_single(items[i]) for i in advanced):
        return 0
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return 0
    return sum(not isinstance(item, Variable) for item in items[: advanced[0]])


def parse_index(x: Variable, index: IndexLike) -> ParsedIndex:
    """Read an index of x.

    Raises:
        IndexError: too many indices, or something that cannot be one.
        TypeError: a bound that is no integer.
    """
    items, sizes = _items(x, index)
    entries: list[Entry] = []
    bounds: list[Any] = []
    layout: list[Any] = []
    arrays: list[tuple[int, Any]] = []
    for item in items:
        axis = len(entries)
        if item is None:
            layout.append("x")
        elif isinstance(item, slice):
            start, stop, step = (_bound(b, bounds) for b in (item.start, item.stop, item.step))
            entries.append(Entry(start, stop, step))
            layout.append(axis)
        elif _is_single(item):
            entries.append(Entry(_bound(item, bounds), single=True))
        else:
            entries.append(FULL)
            layout.append(axis)
            arrays.append((axis, cast_to(item, "int64")))
    sliced = any(entry != FULL for entry in entries)
    written = sliced or (entries and not arrays and "x" not in layout)
    return ParsedIndex(
        tuple(entries) if written else (),
        tuple(bounds),
        tuple(layout),
        tuple(arrays),
        _arrays_place(items),
        tuple(sizes) if any(size is not None for size in sizes) else (),
    )


__all__ = [
    "At", "getitem", "inc_subtensor", "max_subtensor", "min_subtensor", "mul_subtensor", "set_subtensor",
    "take",
]  # fmt: skip


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
    if mask.type.shape != x.type.shape[:rank] or None in mask.type.shape:
        mask = _fitting(mask, sizes)
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
    if node is None or not isinstance(node.op, Shape) or isinstance(index, tuple):
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
        part = MakeVector(x.type.dtype)(*entries[slice(*numbers)])
        part.tag.indexing = (x, lenses_of(x, parse_index(x, index)))
        return part
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
    if result is x:  # `x[...]` of a number is a part of its own, also where x is one of something else
        result = tensor_copy(x)
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
    indices = as_tensor_variable(indices)
    if indices.type.kind == "b":
        raise TypeError(
            f"take takes integers, got {indices} of dtype bool; x[mask] has the elements of a mask"
        )
    a, axis = on_axis(a, axis, "take")
    size = sizes_of(a)[axis]
    if mode not in (None, "raise"):
        indices = by_mode(cast(indices, "int64"), size, mode)
    return a[(slice(None),) * axis + (indices,)]


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

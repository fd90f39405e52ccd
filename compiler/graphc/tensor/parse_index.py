# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading what stands between brackets, by NumPy's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.errors import IndexTypeError
from graphc.graph.basic import Constant, Variable
from graphc.graph.location import describe
from graphc.graph.tensor.convert import as_tensor_variable, has_variable
from graphc.ops.bounds import FULL, SYMBOLIC, Bound, Entry
from graphc.ops.elementwise import cast_to
from graphc.ops.shaping import expand_dims
from graphc.ops.sizes import as_size, known_size, reads_sizes, size_of
from graphc.tensor.masks import nonzero

if TYPE_CHECKING:
    from graphc.graph.tensor.like import IndexLike, TensorLike
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
    """Whether an item is a mask without dimensions."""
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
    """How many dimensions an item of an index is for."""
    if item is None or item is Ellipsis:
        return 0
    return item.type.ndim if _is_mask(item) else 1


def _plain(item: Any) -> Any:
    """An item of an index as a variable, unless it is a slice, an ellipsis or None."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, list | tuple) and not has_variable(item) and np.size(item) == 0:
        item = np.zeros(np.shape(item), np.int64)
    variable = as_tensor_variable(item)
    if variable.type.numpy_dtype.kind not in "biu":
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
    variable = as_tensor_variable(bound)
    if variable.type.ndim or variable.type.numpy_dtype.kind not in "iu":
        raise TypeError(
            f"an index or bound of a slice must be a 0-d integer, got {variable} of {variable.type}"
        )
    known = known_size(variable)
    if known is not None and not reads_sizes(variable):
        return known
    # A number that was a size of something else would not notice when that is replaced.
    bounds.append(as_size(variable, "an index"))
    return SYMBOLIC


def _is_single(item: Any) -> bool:
    return isinstance(item, Variable) and item.type.ndim == 0


def _arrays_place(items: list[TensorVariable | slice | None]) -> int:
    """Where the arrays' dimensions go: in place when integers and arrays are neighbours, else first."""
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of NumPy and PyTensor that cut arrays in pieces and put pieces together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.errors import IndexTypeError
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.checks import CheckAndRaise, as_count, required
from graphc.ops.create import arange, ones, zeros, zeros_like
from graphc.ops.dimshuffle import normalize_axes, normalize_axis
from graphc.ops.elementwise import broadcast_static
from graphc.ops.join import concatenate, stack
from graphc.ops.math import cast, eq, gt, logical_not, lt, maximum, minimum, ne, switch
from graphc.ops.reduce import any as any_
from graphc.ops.shape import known_size, product_of, size_of
from graphc.ops.shaping import broadcast_to, expand_dims, moveaxis, on_axis, ravel, reshape, specify_shape
from graphc.tensor.dims import slice_at_axis
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.masks import compress, flatnonzero
from graphc.tensor.sorting import argsort

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, IndexLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def array_split(ary: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[TensorVariable]:
    """Pieces along an axis, as ``numpy.array_split``.

    Args:
        ary: array-like.
        indices_or_sections: the number of pieces, of which the first ones are longer by one where the size is
            no multiple; or the positions of the cuts.
        axis: the axis.

    Examples:
        >>> [v.eval().tolist() for v in pt.array_split([1, 2, 3], 2)]
        [[1, 2], [3]]
    """
    x = as_tensor_variable(ary)
    axis = normalize_axis(axis, x.type.ndim, "array_split")
    if np.ndim(indices_or_sections) or not isinstance(indices_or_sections, int | np.integer):
        cuts = list(indices_or_sections)
    else:
        count = int(indices_or_sections)
        if count < 1:
            raise ValueError(f"the number of pieces must be at least 1, got {count}")
        size = size_of(x, axis)
        whole, rest = size // count, size % count
        cuts = [whole * i + minimum(rest, i) for i in range(1, count)]
        known = x.type.shape[axis]
        if known is not None:
            cuts = [known // count * i + min(known % count, i) for i in range(1, count)]
    return [x[slice_at_axis(slice(a, b), axis)] for a, b in pairwise([None, *cuts, None])]


def _even(ary: TensorLike, indices_or_sections: TensorLike, axis: int, what: str) -> list[TensorVariable]:
    """`array_split`, but a number of pieces must divide the size."""
    x = as_tensor_variable(ary)
    axis = normalize_axis(axis, x.type.ndim, what)
    if not isinstance(indices_or_sections, int | np.integer):
        return array_split(x, indices_or_sections, axis)
    count, known = int(indices_or_sections), x.type.shape[axis]
    message = f"{what}: axis {axis} has no {count} parts of one size; array_split makes some longer"
    if known is None and count > 0:
        x = CheckAndRaise(ValueError, message)(x, eq(size_of(x, axis) % count, 0))
    elif known is not None and count > 0 and known % count:
        raise ValueError(f"{message}, got size {known}")
    return array_split(x, count, axis)


def hsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[TensorVariable]:
    """Pieces along the second axis, of vectors along the first; a number of them must divide its size.

    Examples:
        >>> [v.eval().tolist() for v in pt.hsplit([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
    """
    x = as_tensor_variable(ary)
    return _even(x, indices_or_sections, 1 if x.type.ndim > 1 else 0, "hsplit")


def vsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[TensorVariable]:
    """Pieces along the first axis; a number of them must divide its size.

    Examples:
        >>> [v.eval().tolist() for v in pt.vsplit([[1, 2], [3, 4]], 2)]
        [[[1, 2]], [[3, 4]]]
    """
    return _even(ary, indices_or_sections, 0, "vsplit")


def dsplit(ary: TensorLike, indices_or_sections: TensorLike) -> list[TensorVariable]:
    """Pieces along the third axis; a number of them must divide its size.

    Examples:
        >>> [v.eval().shape for v in pt.dsplit(np.ones((1, 1, 4)), 2)]
        [(1, 1, 2), (1, 1, 2)]
    """
    return _even(ary, indices_or_sections, 2, "dsplit")


def unstack(x: TensorLike, axis: int = 0) -> tuple[TensorVariable, ...]:
    """The arrays along an axis of known size.

    Raises:
        ValueError: the size is not known before the graph runs.

    Examples:
        >>> [v.eval().tolist() for v in pt.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    x = as_tensor_variable(x)
    axis = normalize_axis(axis, x.type.ndim, "unstack")
    size = x.type.shape[axis]
    if size is None:
        raise ValueError(
            f"unstack needs an axis of known size, got axis {axis} of {x.type}; use specify_shape, or x[i]"
        )
    return tuple(x[slice_at_axis(i, axis)] for i in range(size))


def append(arr: TensorLike, values: TensorLike, axis: int | None = None) -> TensorVariable:
    """Arrays one after the other along an axis; by default flattened ones.

    Examples:
        >>> pt.append([1, 2], [3]).eval()
        array([1, 2, 3])
    """
    parts = [as_tensor_variable(v) for v in (arr, values)]
    if axis is None:
        return concatenate([ravel(v) for v in parts], axis=0)
    return concatenate(parts, axis=axis)


def _position(place: TensorVariable, size: TensorVariable, end: int, what: str) -> TensorVariable:
    """Positions along an axis, counted from its start; ``end`` is 1 if the position after the last is one."""
    known = known_size(size)
    n, signed = size if known is None else known, place.type.kind == "i"
    operand(place, f"{what}: an index must be an integer", kinds="iu", error=IndexTypeError)
    message = f"{what}: an index is out of bounds for the axis"
    place = required(
        place, lambda at: (at < n + end) & (at >= -n) if signed else at < n + end, message, IndexError
    )
    place = cast(place, "int64")
    return switch(lt(place, 0), place + size, place)


def delete(arr: TensorLike, obj: IndexLike, axis: int | None = None) -> TensorVariable:
    """The array without some of its parts, as ``numpy.delete``.

    Args:
        arr: array-like.
        obj: what goes: an integer, a slice, integers, or a mask of the axis.
        axis: the axis; by default the array is flattened.

    Raises:
        IndexError: an index out of bounds, here or when run.
        ValueError: a mask of another length than the axis.

    Examples:
        >>> pt.delete([1, 2, 3], 1).eval()
        array([1, 3])
    """
    x, axis = on_axis(arr, axis, "delete")
    size = size_of(x, axis)
    if not isinstance(obj, slice):
        place = as_tensor_variable(obj)
        if place.type.ndim == 0 and place.type.kind != "b":
            place = _position(place, size, 0, "delete")
            first, rest = (
                x[slice_at_axis(slice(None, place), axis)],
                x[slice_at_axis(slice(place + 1, None), axis)],
            )
            return concatenate([first, rest], axis=axis)
        obj = place
        if place.type.kind == "b":
            return compress(logical_not(specify_shape(place, [size])), x, axis)
    keep = set_subtensor(ones((size,), dtype="bool")[obj], False)
    return compress(keep, x, axis)


def insert(arr: TensorLike, obj: TensorLike, values: TensorLike, axis: int | None = None) -> TensorVariable:
    """The array with values before some of its parts, as ``numpy.insert``.

    Args:
        arr: array-like.
        obj: an integer, or a vector of integers: positions in ``arr``.
        values: what goes there; of the dtype of ``arr`` afterwards. It broadcasts to the parts of ``arr``,
            and for a vector of positions to as many of them.
        axis: the axis; by default the array is flattened.

    Raises:
        IndexError: an index out of bounds, here or when run.

    Examples:
        >>> pt.insert([1, 3], 1, 2).eval()
        array([1, 2, 3])
    """
    x, axis = on_axis(arr, axis, "insert")
    place = operand(obj, "insert takes an integer or a vector of integers", 0, 1, "iu", TypeError)
    new = cast(as_tensor_variable(values), x.type.dtype)
    size = size_of(x, axis)
    rest = [size_of(x, i) for i in range(x.type.ndim) if i != axis]
    place = _position(place, size, 1, "insert")
    if place.type.ndim == 0:
        # One position: values have the rank of a part, or a leading axis of parts to insert there.
        if new.type.ndim == x.type.ndim:
            new = new if axis == 0 else moveaxis(new, 0, axis)
        else:
            new = expand_dims(broadcast_to(new, rest), axis)
        return concatenate(
            [x[slice_at_axis(slice(None, place), axis)], new, x[slice_at_axis(slice(place, None), axis)]],
            axis=axis,
        )
    count = size_of(place, 0)
    order = argsort(place)
    target = set_subtensor(zeros_like(order)[order], place[order] + arange(count))
    lead = moveaxis(x, axis, 0)
    if new.type.ndim == x.type.ndim and axis != 0:
        new = moveaxis(new, axis, 0)
    old = flatnonzero(set_subtensor(ones((size + count,), dtype="bool")[target], False))
    whole = set_subtensor(zeros((size + count, *rest), dtype=x.type.dtype)[old], lead)
    return moveaxis(set_subtensor(whole[target], broadcast_to(new, (count, *rest))), 0, axis)


def resize(a: TensorLike, new_shape: SizeLike) -> TensorVariable:
    """The elements in another shape, repeated as often as necessary; zeros where there are none.

    Examples:
        >>> pt.resize([1, 2], (3,)).eval()
        array([1, 2, 1])
    """
    flat = ravel(as_tensor_variable(a))
    given = list(new_shape) if isinstance(new_shape, Sequence) else [new_shape]
    sizes = [as_count(size, "resize") for size in given]
    size = size_of(flat, 0)
    if not known_size(size):
        flat = concatenate([flat, zeros((switch(eq(size, 0), 1, 0),), flat.type.dtype)])
    return reshape(flat[arange(product_of(sizes)) % maximum(size, 1)], sizes)


def rollaxis(a: TensorLike, axis: int, start: int = 0) -> TensorVariable:
    """The axis moved before the axis ``start``, as ``numpy.rollaxis``.

    Examples:
        >>> pt.rollaxis(np.ones((2, 3, 4)), 2).shape.eval()
        array([4, 2, 3])
    """
    x = as_tensor_variable(a)
    ndim = x.type.ndim
    axis = normalize_axis(axis, ndim, "rollaxis")
    start = start + ndim if start < 0 else start
    if not 0 <= start <= ndim:
        raise ValueError(f"start must be between {-ndim} and {ndim}, got {start}")
    return moveaxis(x, axis, start - 1 if axis < start else start)


def trim_zeros(filt: TensorLike, trim: str = "fb", axis: AxisLike = None) -> TensorVariable:
    """An array without the zeros at its front ("f"), back ("b") or both, along one axis or all.

    Examples:
        >>> pt.trim_zeros([0, 1, 2, 0]).eval()
        array([1, 2])
    """
    x = as_tensor_variable(filt)
    if sorted(trim.lower()) not in (["f"], ["b"], ["b", "f"]):
        raise ValueError(f'trim_zeros takes "f", "b" or "fb", got {trim!r}')
    axes = normalize_axes(axis, x.type.ndim, "trim_zeros")
    return x[
        tuple(_without_zeros(x, a, trim.lower()) if a in axes else slice(None) for a in range(x.type.ndim))
    ]


def _without_zeros(x: TensorVariable, axis: int, trim: str) -> slice:
    """Positions along an axis without those at its ends where all elements are 0."""
    size = size_of(x, axis)
    found = flatnonzero(any_(ne(x, 0), axis=[a for a in range(x.type.ndim) if a != axis]))
    some = gt(size_of(found, 0), 0)
    # The ends of an empty vector do not exist: one more position stands for them.
    padded = concatenate([found, stack([size - 1])])
    first = switch(some, padded[0], size)
    last = padded[maximum(size_of(found, 0) - 1, 0)]
    start = first if "f" in trim else 0
    stop = switch(some, last + 1, first if "f" in trim else 0) if "b" in trim else size
    return slice(start, stop)


def stacklists(arg: TensorLike) -> TensorVariable:
    """Nested lists of arrays of one shape as one array, with an axis for each level.

    Examples:
        >>> pt.stacklists([[1, 2], [3, 4]]).eval()
        array([[1, 2],
               [3, 4]])
    """
    if isinstance(arg, list | tuple):
        return stack([stacklists(each) for each in arg])
    return as_tensor_variable(arg)


def horizontal_stack(*args: TensorLike) -> TensorVariable:
    """Matrices beside each other.

    Examples:
        >>> pt.horizontal_stack(np.ones((1, 2)), np.zeros((1, 1))).eval()
        array([[1., 1., 0.]])
    """
    return _matrices(args, 1, "horizontal_stack")


def vertical_stack(*args: TensorLike) -> TensorVariable:
    """Matrices below each other.

    Examples:
        >>> pt.vertical_stack(np.ones((1, 2)), np.zeros((1, 2))).eval()
        array([[1., 1.],
               [0., 0.]])
    """
    return _matrices(args, 0, "vertical_stack")


def _matrices(args: Sequence[TensorLike], axis: int, what: str) -> TensorVariable:
    xs = [as_tensor_variable(x) for x in args]
    if len(xs) < 2 or any(x.type.ndim != 2 for x in xs):
        raise ValueError(f"{what} takes at least two matrices, got {', '.join(str(x.type) for x in xs)}")
    return concatenate(xs, axis=axis)


def concat_with_broadcast(tensor_list: Sequence[TensorLike], axis: int = 0) -> TensorVariable:
    """`concatenate` of arrays of one rank whose other axes broadcast.

    Examples:
        >>> pt.concat_with_broadcast([np.zeros((2, 1)), np.ones((1, 1))], axis=1).eval()
        array([[0., 1.],
               [0., 1.]])
    """
    xs = [as_tensor_variable(x) for x in tensor_list]
    if not xs:
        raise ValueError("concat_with_broadcast takes at least one array")
    ndim = xs[0].type.ndim
    if any(x.type.ndim != ndim for x in xs):
        raise TypeError(f"only arrays of one rank can be joined, got {', '.join(str(x.type) for x in xs)}")
    axis = normalize_axis(axis, ndim, "concat_with_broadcast")
    without = [tuple(1 if i == axis else size for i, size in enumerate(x.type.shape)) for x in xs]
    joint = broadcast_static(without, "concat_with_broadcast", xs)
    sizes: list[Any] = []
    for i in range(ndim):
        model = next((x for x, shape in zip(xs, without, strict=True) if shape[i] != 1), xs[0])
        sizes.append(size_of(model, i) if joint[i] is None else joint[i])
    spread = []
    for x in xs:
        mine = [size_of(x, i) if i == axis else size for i, size in enumerate(sizes)]
        same = all(
            i == axis or (size == 1) == (known_size(want) == 1)
            for i, (size, want) in enumerate(zip(x.type.shape, map(as_tensor_variable, mine), strict=True))
        )
        spread.append(x if same else broadcast_to(x, mine))
    return concatenate(spread, axis=axis)


publish(globals())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's functions about dimensions: joining and splitting them, packing arrays, broadcast shapes."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import (
    NotScalarConstantError,
    as_tensor_variable,
    constant,
    get_underlying_scalar_constant_value,
    operand,
)
from graphc.graph.tensor.variable import TensorVariable
from graphc.hooks import publish
from graphc.ops.checks import Assert
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.join import concatenate, stack
from graphc.ops.math import bitwise_or, eq, switch
from graphc.ops.shape import as_size, known_size, product_of, size_of, sizes_of, vector_entries
from graphc.ops.shaping import reshape, shape_padleft, shape_padright

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike


def atleast_Nd(arry: TensorLike, *, n: int = 1, left: bool = True) -> TensorVariable:
    """The array with leading axes of size 1 (or trailing ones), so that it has at least ``n``.

    Examples:
        >>> pt.atleast_Nd([1, 2], n=2).eval()
        array([[1, 2]])
    """
    x = as_tensor_variable(arry)
    more = max(n - x.type.ndim, 0)
    return (shape_padleft if left else shape_padright)(x, more) if more else x


def join_dims(x: TensorLike, start_axis: int = 0, n_axes: int | None = None) -> TensorVariable:
    """Neighbouring axes as one.

    Args:
        x: array-like.
        start_axis: the first of them.
        n_axes: how many; by default all that follow; 0 inserts an axis of size 1.

    Examples:
        >>> pt.join_dims(np.ones((2, 3, 4)), 1, 2).shape.eval()
        array([ 2, 12])
    """
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    start = normalize_axis(start_axis, ndim + (n_axes == 0 or ndim == 0), "join_dims")
    count = ndim - start if n_axes is None else int(n_axes)
    if count < 0 or start + count > ndim:
        raise ValueError(f"join_dims cannot join {count} axes from {start} on; {x} has {ndim}")
    if count == 1:
        return x
    sizes = sizes_of(x)
    return reshape(x, [*sizes[:start], product_of(sizes[start : start + count]), *sizes[start + count :]])


def split_dims(x: TensorLike, shape: Any, axis: int = 0) -> TensorVariable:
    """One axis as several.

    Args:
        x: array-like.
        shape: their sizes, of which one may be -1; without any, the axis must have size 1 and goes.
        axis: the axis.

    Examples:
        >>> pt.split_dims([1, 2, 3, 4], (2, 2)).eval()
        array([[1, 2],
               [3, 4]])
    """
    x = as_tensor_variable(x)
    axis = normalize_axis(axis, x.type.ndim, "split_dims")
    if isinstance(shape, Variable) and shape.type.ndim == 1:
        parts = vector_entries(shape) or [shape[i] for i in range(get_vector_length(shape))]
    else:
        parts = list(shape) if isinstance(shape, Sequence | np.ndarray) else [shape]
    sizes = sizes_of(x)
    given = [as_size(part, "split_dims") for part in parts]
    unknown = [i for i, part in enumerate(given) if known_size(part) == -1]
    if len(unknown) > 1:
        raise ValueError("split_dims can work out one size only")
    if unknown:
        others = product_of([part for i, part in enumerate(given) if i != unknown[0]])
        given[unknown[0]] = as_size(sizes[axis] // others, "split_dims")
    return reshape(x, [*sizes[:axis], *given, *sizes[axis + 1 :]])


def _kept(keep_axes: int | list[int] | None, ndim: int) -> tuple[int, int]:
    """Number of axes that are kept at the start and at the end."""
    if keep_axes is None:
        return 0, 0
    axes = [keep_axes] if isinstance(keep_axes, int | np.integer) else list(keep_axes)
    if len(axes) == 1 and axes[0] not in (0, -1):
        raise ValueError(f"axes that are kept must begin with 0 or end with -1, got {keep_axes}")
    front = sorted(a for a in axes if a >= 0)
    back = sorted(a for a in axes if a < 0)
    if front != list(range(len(front))) or back != list(range(-len(back), 0)):
        raise ValueError(f"axes that are kept must be neighbours at the ends, got {keep_axes}")
    if len(axes) > ndim:
        raise ValueError(f"there are {len(axes)} axes to keep, but an array of {ndim} dimensions")
    return len(front), len(back)


def pack(*tensors: TensorLike, keep_axes: Any = None) -> tuple[TensorVariable, list[TensorVariable]]:
    """Arrays as one: the axes that are kept stay, the others of each array become one, which are joined.

    Args:
        tensors: array-like, of equal sizes along the axes that are kept.
        keep_axes: None, or axes from 0 on, up to -1, or both.

    Returns:
        The array, and for each array the vector of sizes that were joined (see `unpack`).

    Examples:
        >>> pt.pack(pt.zeros(2), pt.ones((2, 2)))[0].eval()
        array([0., 0., 1., 1., 1., 1.])
    """
    if not tensors:
        raise ValueError("pack takes at least one array")
    flat, shapes, front = [], [], 0
    for given in tensors:
        x = as_tensor_variable(given)
        front, back = _kept(keep_axes, x.type.ndim)
        sizes = sizes_of(x)
        stop = x.type.ndim - back
        middle = sizes[front:stop]
        flat.append(reshape(x, [*sizes[:front], product_of(middle), *sizes[stop:]]))
        shapes.append(stack(middle) if middle else constant(np.zeros(0, np.int64)))
    return concatenate(flat, axis=front), shapes


def unpack(
    packed_input: TensorLike, packed_shapes: Sequence[TensorLike], keep_axes: Any = None
) -> list[TensorVariable]:
    """The arrays that `pack` joined.

    Args:
        packed_input: the array.
        packed_shapes: for each of them the sizes that were joined: vectors of known length, or tuples.
        keep_axes: as given to `pack`.

    Examples:
        >>> packed, shapes = pt.pack(pt.zeros(2), pt.ones((2, 2)))
        >>> [v.eval().shape for v in pt.unpack(packed, shapes)]
        [(2,), (2, 2)]
    """
    x = as_tensor_variable(packed_input)
    front, _ = _kept(keep_axes, x.type.ndim)
    result: list[TensorVariable] = []
    start: TensorVariable = constant(np.int64(0))
    for shape in packed_shapes:
        if isinstance(shape, TensorVariable) and shape.type.ndim == 1:
            sizes = [shape[i] for i in range(get_vector_length(shape))]
        else:
            given = np.atleast_1d(shape) if isinstance(shape, np.ndarray) else shape
            sizes = [
                as_size(s, "unpack") for s in (given if isinstance(given, Sequence | np.ndarray) else [given])
            ]
        stop = start + product_of(sizes)
        part = x[(slice(None),) * front + (slice(start, stop),)]
        outer = sizes_of(x)
        result.append(reshape(part, [*outer[:front], *sizes, *outer[front + 1 :]]))
        start = stop
    return result


def broadcast_shape(
    *arrays: Any, arrays_are_shapes: bool = False, allow_runtime_broadcast: bool = False
) -> tuple[TensorVariable, ...]:
    """The sizes of what arrays broadcast to. Only sizes that are known to be 1 broadcast.

    Args:
        arrays: array-like, or sequences of sizes.
        arrays_are_shapes: whether they are sizes.
        allow_runtime_broadcast: sizes that are 1 when run broadcast, too.

    Raises:
        ValueError: known sizes differ.
        AssertionError: when run, sizes differ.

    Examples:
        >>> pt.broadcast_shape(pt.zeros((2, 1)), pt.zeros((1, 3)))
        (2, 3)
    """
    if arrays_are_shapes:
        shapes = [[as_size(size, "broadcast_shape") for size in shape] for shape in arrays]
    else:
        shapes = [sizes_of(as_tensor_variable(x)) for x in arrays]
    rank = max((len(shape) for shape in shapes), default=0)
    one = constant(np.int64(1))
    columns = zip(*([one] * (rank - len(shape)) + shape for shape in shapes), strict=True)
    result = []
    for column in columns:
        wide = [size for size in column if known_size(size) != 1]
        known = {n for n in map(known_size, wide) if n is not None}
        if len(known) > 1:
            raise ValueError(f"sizes {sorted(known)} do not broadcast")
        best = next((size for size in wide if known_size(size) is not None), wide[0] if wide else one)
        result.append(_joint_size(best, wide, allow_runtime_broadcast))
    return tuple(result)


def _joint_size(
    best: TensorVariable, sizes: Sequence[TensorVariable], allow_runtime_broadcast: bool
) -> TensorVariable:
    """The size that sizes broadcast to, checked when run where they are not known."""
    others = [size for size in sizes if size is not best and known_size(size) is None]
    if allow_runtime_broadcast:
        for size in others:
            best = switch(eq(best, 1), size, best)
        fits = [bitwise_or(eq(size, 1), eq(size, best)) for size in sizes if others]
    else:
        fits = [eq(size, best) for size in others]
    return Assert("sizes do not broadcast")(best, *fits) if fits else best


def slice_at_axis(sl: slice | int, axis: int) -> tuple[slice | int | EllipsisType, ...]:
    """The index that applies a slice, or a position, to one axis, counted from the front or the end.

    Examples:
        >>> pt.slice_at_axis(slice(1, 2), 1)
        (slice(None, None, None), slice(1, 2, None))
    """
    if axis < 0:
        return (Ellipsis, sl, *(slice(None),) * (-axis - 1))
    return (slice(None),) * axis + (sl,)


def is_flat(var: TensorLike, ndim: int = 1) -> bool:
    """True if a variable has ``ndim`` dimensions.

    Examples:
        >>> pt.is_flat(pt.vector("x")), pt.is_flat(pt.matrix("x"))
        (True, False)
    """
    return bool(as_tensor_variable(var).type.ndim == ndim)


def get_vector_length(v: TensorLike) -> int:
    """The length of a vector, as far as it is known before the graph runs.

    Raises:
        ValueError: it is not known.
        TypeError: v is no vector.

    Examples:
        >>> pt.get_vector_length(pt.constant([1, 2, 3]))
        3
    """
    v = operand(v, "get_vector_length takes a vector", 1, 1, error=TypeError)
    length = known_size(size_of(v, 0))
    if length is None:
        raise ValueError(f"the length of {v} is not known before the graph is run; use specify_shape")
    return length


def get_scalar_constant_value(v: Any, *args: object, **options: object) -> np.ndarray:
    """The value of a 0-d constant; see `get_underlying_scalar_constant_value`.

    Examples:
        >>> int(pt.get_scalar_constant_value(pt.constant(3)))
        3
    """
    if np.ndim(v) if not isinstance(v, Variable) else v.type.ndim:
        raise NotScalarConstantError(f"{v} is not 0-d")
    return get_underlying_scalar_constant_value(v)


def scalar_from_tensor(x: TensorLike) -> TensorVariable:
    """x, which must be 0-d: there are no scalars besides 0-d tensors.

    Examples:
        >>> int(pt.scalar_from_tensor(pt.constant(3)).eval())
        3
    """
    return operand(x, "scalar_from_tensor takes a 0-d tensor", 0, 0, error=TypeError)


tensor_from_scalar = scalar_from_tensor


publish(globals())

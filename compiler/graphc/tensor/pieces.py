# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further functions of NumPy and PyTensor that are put together from others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axes, normalize_axis
from graphc.ops.sizes import product_of, size_of, sizes_of
from graphc.public import pt

__all__ = [
    "alloc_diag",
    "apply_along_axis",
    "apply_over_axes",
    "array_equal",
    "array_equiv",
    "batched_dot",
    "batched_tensordot",
    "dense_dot",
    "diag_indices_from",
    "diagflat",
    "extract_diag",
    "fill_diagonal_offset",
    "inverse_permutation",
    "ix_",
    "packbits",
    "permute_row_elements",
    "shape_tuple",
    "to_one_hot",
    "tril_indices_from",
    "triu_indices_from",
    "unpackbits",
]


# Indices and diagonals --------------------------------------------------------------------------------------


def tril_indices_from(a: Any, k: int = 0) -> tuple[Variable, Variable]:
    """Row and column indices of the lower triangle of a matrix; `tril_indices` if the sizes are known."""
    return _triangle_of(a, k, pt.le)


def triu_indices_from(a: Any, k: int = 0) -> tuple[Variable, Variable]:
    """Row and column indices of the upper triangle of a matrix; `triu_indices` if the sizes are known."""
    return _triangle_of(a, k, pt.ge)


def _triangle_of(a: Any, k: int, compare: Callable[[Any, Any], Any]) -> tuple[Variable, Variable]:
    a = as_tensor_variable(a)
    if a.type.ndim != 2:
        raise ValueError(f"the triangle of a matrix is meant, got {a} of type {a.type}")
    rows, columns = (pt.arange(size) for size in sizes_of(a))
    first, second = pt.nonzero(compare(pt.expand_dims(columns - k, 0), pt.expand_dims(rows, 1)))
    return first, second


def diag_indices_from(arr: Any) -> tuple[Variable, ...]:
    """Indices of the main diagonal of an array with equal sizes."""
    arr = as_tensor_variable(arr)
    if arr.type.ndim < 2 or len({size for size in arr.type.shape if size is not None}) > 1:
        raise ValueError(f"the array must have at least two axes, of equal sizes; got {arr.type}")
    return pt.diag_indices(size_of(arr, 0), arr.type.ndim)


def diagflat(v: Any, k: int = 0) -> Variable:
    """The elements as a diagonal of a matrix of zeros."""
    return pt.diag(pt.ravel(as_tensor_variable(v)), k)


def extract_diag(x: Any) -> Variable:
    """The main diagonal of a matrix."""
    return pt.diagonal(x)


def alloc_diag(diag: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """Zeros with the last axis of ``diag`` on a diagonal of two new axes: `diagonal` takes it back."""
    v = as_tensor_variable(diag)
    rank = v.type.ndim + 1
    first, second = sorted(normalize_axes((axis1, axis2), rank, "alloc_diag"))
    n = size_of(v, v.type.ndim - 1) + abs(int(offset))  # type: ignore[operator]
    rows = pt.arange(size_of(v, v.type.ndim - 1)) + max(-int(offset), 0)
    zeros = pt.zeros((*sizes_of(v)[:-1], n, n), dtype=v.type.dtype)
    placed = pt.set_subtensor(zeros[..., rows, rows + int(offset)], v)
    return pt.moveaxis(placed, (-2, -1), (first, second))


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Variable:
    """A matrix with a row for each class number: 1 in its column, 0 elsewhere (config.floatX by default)."""
    return pt.nn.one_hot(y, nb_class, dtype=dtype)


def shape_tuple(x: Any) -> tuple[Variable, ...]:
    """The sizes of an array as 0-d variables, constants where they are known."""
    return tuple(as_tensor_variable(size) for size in sizes_of(as_tensor_variable(x)))


def fill_diagonal_offset(a: Any, val: Any, offset: int) -> Variable:
    """The matrix with a number on a diagonal; positive offsets are above the main one."""
    a = as_tensor_variable(a)
    if a.type.ndim != 2:
        raise ValueError(f"fill_diagonal_offset takes a matrix, got {a} of type {a.type}")
    rows, columns = (pt.arange(size) for size in sizes_of(a))
    on = pt.eq(pt.expand_dims(rows + offset, 1), pt.expand_dims(columns, 0))
    return pt.switch(on, pt.cast(as_tensor_variable(val), a.type.dtype), a)


def inverse_permutation(perm: Any) -> Variable:
    """The inverses of permutations of the first integers, along the last axis, in their dtype."""
    x = as_tensor_variable(perm)
    return pt.cast(pt.argsort(x, axis=-1), x.type.dtype)


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> Variable:
    """The last axis of x in the order of integers y, or in the inverse of it; leading axes broadcast."""
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if inverse:
        y = inverse_permutation(y)
    if y.type.ndim == 1:
        return pt.take(x, y, axis=-1)
    rank = max(x.type.ndim, y.type.ndim)
    x, y = pt.atleast_Nd(x, n=rank), pt.atleast_Nd(y, n=rank)
    shape = pt.broadcast_shape([*sizes_of(x)[:-1]], [*sizes_of(y)[:-1]], arrays_are_shapes=True)
    x, y = (pt.broadcast_to(v, [*shape, size_of(v, rank - 1)]) for v in (x, y))
    return pt.take_along_axis(x, y, axis=-1)


def ix_(*args: Any) -> tuple[Variable, ...]:
    """Vectors as open grids: each along an axis of its own. Of masks, the positions of true elements."""
    result = []
    for i, given in enumerate(args):
        v = as_tensor_variable(given)
        if v.type.ndim != 1:
            raise ValueError(f"ix_ takes vectors, got {v} of type {v.type}")
        v = pt.flatnonzero(v) if v.type.numpy_dtype.kind == "b" else v
        result.append(pt.expand_dims(v, tuple(j for j in range(len(args)) if j != i)))
    return tuple(result)


# Products ---------------------------------------------------------------------------------------------------


def batched_dot(a: Any, b: Any) -> Variable:
    """``dot(a[i], b[i])`` for each i; operands have two or three dimensions, or more in front of them."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if a.type.ndim == 0 or b.type.ndim == 0:
        raise TypeError("batched_dot takes arrays with a first axis for the batch")
    if a.type.ndim == 1 or b.type.ndim == 1:
        thin, other = (a, b) if a.type.ndim == 1 else (b, a)
        return pt.shape_padright(thin, other.type.ndim - 1) * other if other.type.ndim > 1 else thin * other
    if a.type.ndim > 3 or b.type.ndim > 3:
        return batched_tensordot(a, b, [[a.type.ndim - 1], [max(b.type.ndim - 2, 1)]])
    left = pt.expand_dims(a, 1) if a.type.ndim == 2 else a
    right = pt.expand_dims(b, 2) if b.type.ndim == 2 else b
    product = pt.matmul(left, right)
    drop = tuple(axis for axis, x in ((1, a), (2, b)) if x.type.ndim == 2)
    return pt.squeeze(product, drop) if drop else product


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> Variable:
    """``tensordot(x[i], y[i], ...)`` for each i.

    Args:
        x, y: array-like.
        axes: how many axes are summed over: the last ones of x, the first ones of y behind the batch; or the
            axes of x and those of y.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if isinstance(axes, int | np.integer):
        axes = [list(range(x.type.ndim - int(axes), x.type.ndim)), list(range(1, int(axes) + 1))]
    left, right = (
        [normalize_axis(axis, v.type.ndim, "batched_tensordot") for axis in np.atleast_1d(given)]
        for v, given in zip((x, y), axes, strict=True)
    )
    if len(left) != len(right) or 0 in (*left, *right):
        raise ValueError(f"axes must be as many for x and y, and not the first one; got {axes}")
    free_x = [i for i in range(1, x.type.ndim) if i not in left]
    free_y = [i for i in range(1, y.type.ndim) if i not in right]
    nx, ny = sizes_of(x), sizes_of(y)
    summed = product_of([nx[i] for i in left])
    a = pt.reshape(
        pt.dimshuffle(x, (0, *free_x, *left)), (nx[0], product_of([nx[i] for i in free_x]), summed)
    )
    b = pt.reshape(
        pt.dimshuffle(y, (0, *right, *free_y)), (ny[0], summed, product_of([ny[i] for i in free_y]))
    )
    return pt.reshape(pt.matmul(a, b), [nx[0], *(nx[i] for i in free_x), *(ny[i] for i in free_y)])


def dense_dot(a: Any, b: Any) -> Variable:
    """`dot` of dense arrays."""
    return pt.dot(a, b)


# Comparison -------------------------------------------------------------------------------------------------


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Variable:
    """Whether shapes and elements agree; arrays of other shapes are not compared."""
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    if a.type.ndim != b.type.ndim:
        return as_tensor_variable(False)
    pairs = zip(a.type.shape, b.type.shape, strict=True)
    if any(m is not None and n is not None and m != n for m, n in pairs):
        return as_tensor_variable(False)
    same = pt.eq(a, b)
    if equal_nan:
        same = same | (pt.isnan(a) & pt.isnan(b))
    if a.type.ndim == 0:
        return same
    equal = [pt.eq(m, n) for m, n in zip(sizes_of(a), sizes_of(b), strict=True)]
    return pt.ifelse(pt.all(pt.stack(equal)), pt.all(same), as_tensor_variable(False))


def array_equiv(a1: Any, a2: Any) -> Variable:
    """Whether elements agree after broadcasting, of sizes that are known to be 1."""
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    rank = max(a.type.ndim, b.type.ndim)
    pairs = zip(pt.atleast_Nd(a, n=rank).type.shape, pt.atleast_Nd(b, n=rank).type.shape, strict=True)
    if any(m is not None and n is not None and m != n and 1 not in (m, n) for m, n in pairs):
        return as_tensor_variable(False)
    return pt.all(pt.eq(a, b))


# Bits -------------------------------------------------------------------------------------------------------


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Variable:
    """Eight booleans as one uint8 each; the last ones are filled up with 0.

    Args:
        a: booleans or integers, of which those that are not 0 count as true.
        axis: the axis; by default the array is flattened.
        bitorder: "big": the first one is the highest bit; or "little".
    """
    x, axis = _on_axis(a, axis, "packbits")
    values = pt.moveaxis(pt.cast(pt.neq(x, 0), "uint8"), axis, -1)
    *batch, n = sizes_of(values)
    groups = (n + 7) // 8
    padded = pt.concatenate([values, pt.zeros((*batch, groups * 8 - n), dtype="uint8")], axis=-1)
    bits = pt.reshape(padded, (*batch, groups, 8)) * pt.constant(_weights(bitorder))
    return pt.moveaxis(pt.sum(bits, axis=-1, dtype="uint8"), -1, axis)


def unpackbits(a: Any, axis: int | None = None, count: Any = None, bitorder: str = "big") -> Variable:
    """The bits of uint8 as eight elements each; arguments as of `packbits`.

    ``count`` limits the result to so many along the axis; negative numbers leave out the last ones.
    """
    x, axis = _on_axis(a, axis, "unpackbits")
    if x.type.dtype != "uint8":
        raise TypeError(f"unpackbits takes uint8, got {x} of type {x.type}")
    values = pt.expand_dims(pt.moveaxis(x, axis, -1), -1)
    *batch, n, _ = sizes_of(values)
    bits = pt.cast(pt.neq(pt.bitwise_and(values, pt.constant(_weights(bitorder))), 0), "uint8")
    flat = pt.reshape(bits, (*batch, n * 8))
    if count is not None:
        number = count if isinstance(count, Variable) else int(count)
        if isinstance(number, Variable) or number < 0:
            flat = flat[..., :number]
        else:
            flat = pt.concatenate([flat, pt.zeros((*batch, number), dtype="uint8")], axis=-1)[..., :number]
    return pt.moveaxis(flat, -1, axis)


def _on_axis(a: Any, axis: int | None, what: str) -> tuple[Any, int]:
    x = as_tensor_variable(a)
    if axis is None:
        return pt.ravel(x), 0
    return x, normalize_axis(axis, x.type.ndim, what)


def _weights(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f'bitorder must be "big" or "little", got {bitorder!r}')
    powers = 1 << np.arange(8)
    return (powers if bitorder == "little" else powers[::-1]).astype(np.uint8)


# Functions along axes ---------------------------------------------------------------------------------------


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Variable:
    """A function of vectors for each vector along an axis; axes of its result take the place of the axis."""
    x = as_tensor_variable(arr)
    axis = normalize_axis(axis, x.type.ndim, "apply_along_axis")

    def function(v: Any) -> Any:
        return func1d(v, *args, **kwargs)

    lead = pt.moveaxis(x, axis, -1)
    for _ in range(x.type.ndim - 1):
        function = pt.vmap(function)
    found = as_tensor_variable(function(lead))
    more = found.type.ndim - (x.type.ndim - 1)
    return pt.moveaxis(found, list(range(-more, 0)), list(range(axis, axis + more))) if more else found


def apply_over_axes(func: Callable[..., Any], a: Any, axes: int | Sequence[int]) -> Variable:
    """``func(a, axis)`` for one axis after the other; axes that are lost come back with size 1."""
    x = as_tensor_variable(a)
    ndim = x.type.ndim
    for given in [axes] if isinstance(axes, int | np.integer) else axes:
        axis = normalize_axis(given, ndim, "apply_over_axes")
        found = as_tensor_variable(func(x, axis))
        x = pt.expand_dims(found, axis) if found.type.ndim == ndim - 1 else found
        if x.type.ndim != ndim:
            raise ValueError(f"the function must reduce an axis; it gave {found.type} for {ndim} dimensions")
    return x

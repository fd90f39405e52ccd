# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays repeated to a shape, and shapes that are known or checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axes
from graphc.ops.math import second
from graphc.ops.reshape import BroadcastTo, SpecifyShape
from graphc.ops.sizes import as_size, as_sizes, known_size, size_of, sizes_of

if TYPE_CHECKING:
    from graphc.graph.tensor.like import SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "shape_tuple",
    "specify_broadcastable",
    "specify_shape",
    "unbroadcast",
]


def specify_shape(x: TensorLike, shape: Any) -> TensorVariable:
    """x with a shape that is checked at run time and known from here on.

    Args:
        x: array-like.
        shape: one size for each dimension; None leaves a dimension as it is, and an ellipsis those that are
            not named.

    Raises:
        ValueError: the shape contradicts the static one, or, at run time, the actual one; there it is an
            AssertionError, too.

    Examples:
        >>> pt.specify_shape([1, 2], (2,)).eval()
        array([1, 2])
    """
    x = as_tensor_variable(x)
    if isinstance(shape, Variable):
        shape = as_sizes(shape, "specify_shape", x.type.ndim)
    shape = list(shape) if isinstance(shape, list | tuple) else [shape]
    dots = [i for i, each in enumerate(shape) if each is Ellipsis]
    if len(dots) > 1:
        raise ValueError(f"the shape of specify_shape can hold only one ellipsis, got {shape}")
    for place in dots:
        shape[place : place + 1] = [None] * (x.type.ndim - len(shape) + 1)
    if len(shape) != x.type.ndim:
        raise ValueError(f"specify_shape needs {x.type.ndim} sizes for {x} of {x.type}, got {len(shape)}")
    numbers = [None if each is None else known_size(as_size(each, "specify_shape")) for each in shape]
    news = zip(shape, numbers, x.type.shape, strict=True)
    if all(each is None or (number is not None and number == have) for each, number, have in news):
        return x
    sizes = [size_of(x, axis) if each is None else each for axis, each in enumerate(shape)]
    return SpecifyShape()(x, *sizes)


def specify_broadcastable(x: TensorLike, *axes: int) -> TensorVariable:
    """x, whose given axes have size 1, checked at run time.

    Examples:
        >>> x = pt.matrix("x")
        >>> pt.specify_broadcastable(x, 0).type
        TensorType(float64, (1, ?))
    """
    x = as_tensor_variable(x)
    ones = normalize_axes(axes, x.type.ndim, "specify_broadcastable")
    return specify_shape(x, [1 if axis in ones else None for axis in range(x.type.ndim)])


def unbroadcast(x: TensorLike, *axes: int) -> TensorVariable:
    """x; sizes that are statically 1 broadcast in any case.

    Examples:
        >>> pt.unbroadcast([[1, 2]], 0).eval()
        array([[1, 2]])
    """
    return as_tensor_variable(x)


def broadcast_to(x: TensorLike, shape: SizeLike) -> TensorVariable:
    """x repeated to a shape: missing leading dimensions, and those of static size 1.

    Raises:
        ValueError: a size that is not statically 1 differs, here or at run time.

    Examples:
        >>> pt.broadcast_to([1, 2], (2, 2)).eval()
        array([[1, 2],
               [1, 2]])
    """
    x = as_tensor_variable(x)
    sizes = as_sizes(shape, "broadcast_to")
    if None not in x.type.shape and tuple(map(known_size, sizes)) == x.type.shape:
        return x
    return BroadcastTo()(x, *sizes)


def broadcast_arrays(*args: TensorLike) -> list[TensorVariable]:
    """Operands repeated to their common shape.

    Examples:
        >>> a, b = pt.broadcast_arrays([1, 2], [[3], [4]])
        >>> b.eval()
        array([[3, 3],
               [4, 4]])
    """
    xs = [as_tensor_variable(x) for x in args]
    results: list[TensorVariable] = []
    for i, x in enumerate(xs):
        for other in (*xs[:i], *xs[i + 1 :]):
            x = second(other, x)
        results.append(x)
    return results


def shape_tuple(x: TensorLike) -> tuple[TensorVariable, ...]:
    """The sizes of an array as 0-d variables, constants where they are known.

    Examples:
        >>> x = pt.tensor("x", dtype="float64", shape=(None, 3))
        >>> rows, columns = pt.shape_tuple(x)
        >>> int(columns.data), int(rows.eval({x: np.zeros((2, 3))}))
        (3, 2)
    """
    return tuple(as_tensor_variable(size) for size in sizes_of(as_tensor_variable(x)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders that read, check or change shapes: `reshape`, `dimshuffle`, `broadcast_to`, `specify_shape` and
what is made of them. ``graphc.tensor`` has them as they are.

``Reshape``, ``SpecifyShape`` and ``BroadcastTo``: ops whose result shape is given by size operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

import numpy as np

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe, only
from graphc.graph.op import Op, multilinear
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.dimshuffle import DimShuffle, normalize_axes, normalize_axis
from graphc.ops.elementwise import Cast, Elementwise
from graphc.ops.math import eq, second, switch
from graphc.ops.shape import (
    Shape,
    Shape_i,
    as_size,
    checked_size,
    known_as,
    known_size,
    made_as,
    product_of,
    size_of,
    sizes_of,
    vector_entries,
)
from graphc_runtime.errors import ShapeError

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import AxisLike, Size, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


class Sized(Op):
    """Base: the operands are x and one size for each dimension of the result; derivatives pass through x."""

    __props__ = ()
    selects = 1
    depends_on = (0,)

    def _emit_as(
        self, name: str, node: Apply, operands: Sequence[str], e: Emitter, attributes: str = ""
    ) -> list[str]:
        sizes = [e.index(v, operand) for v, operand in zip(node.inputs[1:], operands[1:], strict=True)]
        types = [e.type_of(node.inputs[0])] + ["index"] * len(sizes)
        return [e.op(name, [operands[0], *sizes], types, e.type_of(node.outputs[0]), attributes)]

    pushforward = multilinear

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [self._back(inputs[0], only(cotangents)), *[None] * (len(inputs) - 1)]

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        if any(batched[1:]):
            raise VectorizeError(f"{self} cannot take a batch of sizes or indices")
        return [self(inputs[0], size, *inputs[1:])]

    def _back(self, x: Variable, g: Variable) -> Variable:
        raise NotImplementedError


def _shape_of(values: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(int(size) for size in values)


class Reshape(Sized):
    """The elements of x, in row-major order, in another shape."""

    view_map = {0: [0]}

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        sizes = tuple(as_size(size, "reshape") for size in sizes)
        shape: list[Any] = [checked_size(size) for size in sizes]
        if any(size is not None and size < 0 for size in shape):
            raise ValueError(
                f"Reshape takes sizes of at least 0, got {shape}; the function reshape() resolves -1"
            )
        given: tuple[Any, ...] = x.type.shape
        if None not in given and None not in shape and prod(given) != prod(shape):
            raise ValueError(f"cannot reshape {x}{describe(x.location)} of shape {given} to {tuple(shape)}")
        unknown = [axis for axis, size in enumerate(shape) if size is None]
        if None not in given and len(unknown) == 1:
            others = prod(size for size in shape if size is not None)
            if others and prod(given) % others == 0:
                shape[unknown[0]] = prod(given) // others
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        if any(size < 0 for size in shape) or prod(shape) != x.size:
            raise ValueError(
                f"cannot reshape an array of shape {x.shape} and {x.size} elements to "
                f"{shape}{describe(node.location)}"
            )
        output_storage[0][0] = x.reshape(shape)

    def _back(self, x: Variable, g: Variable) -> Variable:
        return self(g, *sizes_of(x))

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.reshape", node, operands, e)


class SpecifyShape(Sized):
    """x, whose shape is checked at run time and known from here on."""

    view_map = {0: [0]}
    error: type[Exception] = ShapeError

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        if len(sizes) != x.type.ndim:
            raise ValueError(f"specify_shape needs {x.type.ndim} sizes for {x} of {x.type}, got {len(sizes)}")
        sizes = tuple(as_size(size, "specify_shape") for size in sizes)
        shape = []
        for axis, (given, size) in enumerate(zip(x.type.shape, map(checked_size, sizes), strict=True)):
            if given is not None and size is not None and given != size:
                raise ValueError(
                    f"{x}{describe(x.location)} has the static shape {x.type.shape}, but its size in "
                    f"dimension {axis} must be {size}"
                )
            shape.append(given if size is None else size)
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        if x.shape != shape:
            raise self.error(
                f"expected shape {shape}, got {x.shape} for {node.inputs[0]}{describe(node.location)}"
            )
        output_storage[0][0] = x

    def _back(self, x: Variable, g: Variable) -> Variable:
        return g

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.specify_shape", node, operands, e)


def emit_as_row(e: Emitter, state: str, value: str, variable: Variable, shape: Sequence[int | None]) -> str:
    """A row of a loop's state, whose name is a literal, with the static sizes of the first rows: checked."""
    given, row = e.type_of(variable), e.tensor_type(variable.type.dtype, shape)
    known = variable.type.shape
    if all(size is None or size == have for size, have in zip(shape, known, strict=True)):
        return e.cast_type(value, given, row)
    sizes = [
        e.dim_of(variable, value, axis) if size is None else e.const_index(size)
        for axis, size in enumerate(shape)
    ]
    types = [given] + ["index"] * len(sizes)
    return e.op("graphc.specify_shape", [value, *sizes], types, row, f"state = {state}")


class FitIndex(SpecifyShape):
    """x, whose shape has to be the given one because x is an index (a mask, one of several arrays) or is
    indexed by a mask: IndexError, as in NumPy.
    """

    error = IndexError

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.specify_shape", node, operands, e, "index = true")


class BroadcastTo(Sized):
    """x repeated along missing leading dimensions and those of static size 1."""

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        sizes = tuple(as_size(size, "broadcast_to") for size in sizes)
        shape = [checked_size(size) for size in sizes]
        missing = len(shape) - x.type.ndim
        if missing < 0:
            raise ValueError(f"cannot broadcast {x} of {x.type} to {len(shape)} dimensions")
        for axis, have in enumerate(x.type.shape, missing):
            if have not in (None, 1):
                if shape[axis] not in (None, have):
                    raise ValueError(
                        f"cannot broadcast dimension {axis - missing} of {x}{describe(x.location)}, of size "
                        f"{have}, to {shape[axis]}"
                    )
                shape[axis] = have
        if any(size is not None and size < 0 for size in shape):
            raise ValueError(f"sizes must be at least 0, got {tuple(shape)}")
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        static = node.inputs[0].type.shape
        missing = len(shape) - x.ndim
        for axis, have in enumerate(x.shape):
            if static[axis] != 1 and have != shape[axis + missing]:
                note = "; a size that is 1 only at run time does not broadcast" if have == 1 else ""
                raise ValueError(
                    f"cannot broadcast an array of shape {x.shape} to {shape}{describe(node.location)}{note}"
                )
        output_storage[0][0] = np.broadcast_to(x, shape).copy()

    def _back(self, x: Variable, g: Variable) -> Variable:
        missing = g.type.ndim - x.type.ndim
        g = g.sum(axis=tuple(range(missing))) if missing else g
        ones = tuple(
            axis
            for axis, (mine, theirs) in enumerate(zip(x.type.shape, g.type.shape, strict=True))
            if mine == 1 and theirs != 1
        )
        return g.sum(axis=ones, keepdims=True) if ones else g

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        x, *sizes = inputs
        missing = len(sizes) - (x.type.ndim - 1)
        x = dimshuffle(x, (0, *("x",) * missing, *range(1, x.type.ndim)))
        return super().batch(node, [x, *sizes], batched, size)

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.broadcast_to", node, operands, e)


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "dimshuffle", "expand_dims",
    "flatten", "matrix_transpose", "moveaxis", "ravel", "reshape", "shape", "shape_padaxis", "shape_padleft",
    "shape_padright", "shape_tuple", "size", "specify_broadcastable", "specify_shape", "squeeze", "swapaxes",
    "transpose", "unbroadcast",
]  # fmt: skip


def as_sizes(shape: Any, what: str, ndim: int | None = None) -> list[TensorVariable]:
    """A shape argument as 0-d int64 variables.

    Args:
        shape: one size, a sequence of sizes, or an integer vector; each may be symbolic.
        what: name of the function, for messages.
        ndim: number of sizes, needed for a vector whose length is not static.

    Raises:
        TypeError: not integers.
        ValueError: a vector of unknown length, without ``ndim``.
    """
    if isinstance(shape, Variable | np.ndarray):
        shape = as_tensor_variable(shape)
        if shape.type.ndim == 0:
            return [as_size(shape, what)]
        if shape.type.ndim != 1:
            raise TypeError(f"the shape of {what} must be a vector, got {shape} of {shape.type}")
        entries = vector_entries(shape)
        if entries is None and ndim is not None:
            shape = specify_shape(shape, [ndim])
            entries = [shape[i] for i in range(ndim)]
        if entries is None:
            raise ValueError(
                f"the shape of {what} is the vector {shape}, whose length is not known; the number "
                "of dimensions of a result must be: give ndim=, or the sizes as a list"
            )
        return [as_size(entry, what) for entry in entries]
    if isinstance(shape, list | tuple):
        return [as_size(entry, what) for entry in shape]
    return [as_size(shape, what)]


def shape(x: TensorLike) -> TensorVariable:
    """The sizes of x as an int64 vector, computed without the elements.

    Examples:
        >>> pt.shape(np.ones((2, 3))).eval()
        array([2, 3])
    """
    return Shape()(as_tensor_variable(x))


def size(x: TensorLike) -> TensorVariable:
    """Number of elements, a 0-d int64.

    Examples:
        >>> pt.size(np.ones((2, 3))).eval()
        array(6)
    """
    x = as_tensor_variable(x)
    return product_of(sizes_of(x)) if x.type.ndim else known_as(1, x)


def _without(
    sizes: list[TensorVariable], given: list[TensorVariable]
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Both lists without the sizes that they have in common."""

    def key(v: TensorVariable) -> Any:
        if isinstance(v, Constant):
            return int(v.data)
        made = made_as(v).owner
        return v if made is None or not isinstance(made.op, Shape_i) else (made.op, made.inputs[0])

    left, right = list(sizes), []
    for each in given:
        match = next((i for i, other in enumerate(left) if key(other) == key(each) and key(each) != 0), None)
        if match is None:
            right.append(each)
        else:
            del left[match]
    return left, right


def _is_given(size: Variable) -> bool:
    """True if a size is data, so that it may be the -1 of NumPy's users when the graph is run."""
    size = made_as(size)
    while size.owner is not None and isinstance(size.owner.op, Cast):
        size = made_as(size.owner.inputs[0])
    if isinstance(size, Constant) or size.type.kind == "u":
        return False
    return size.owner is None or not isinstance(size.owner.op, Elementwise | Shape_i)


def reshape(x: TensorLike, newshape: SizeLike, ndim: int | None = None) -> TensorVariable:
    """The elements of x, in row-major order, in another shape.

    Args:
        x: array-like.
        newshape: sizes; one of them may be -1, which stands for what remains, also when the graph is run (of
            sizes that are data: variables and elements of vectors, not what is computed of sizes).
        ndim: number of sizes, for a vector of unknown length.

    Raises:
        ValueError: the numbers of elements differ, here or at run time.

    Examples:
        >>> pt.reshape([1, 2, 3, 4], (2, -1)).eval()
        array([[1, 2],
               [3, 4]])
    """
    x = as_tensor_variable(x)
    sizes = as_sizes(newshape, "reshape", ndim)
    numbers = [known_size(each) for each in sizes]
    unknown = [i for i, number in enumerate(numbers) if number == -1]
    if len(unknown) > 1:
        raise ValueError(f"reshape can work out one size only, got {numbers}")
    if any(number is not None and number < -1 for number in numbers):
        raise ValueError(f"sizes must be at least 0, or -1 for one to work out, got {numbers}")
    if unknown:
        have, others = _without(sizes_of(x), [each for i, each in enumerate(sizes) if i != unknown[0]])
        rest = product_of(have)
        sizes[unknown[0]] = as_size(rest // product_of(others) if others else rest, "reshape")
    elif any(map(_is_given, sizes)):
        rest = size(x) // -product_of(sizes)
        sizes = [switch(eq(each, -1), rest, each) if _is_given(each) else each for each in sizes]
    if None not in x.type.shape and tuple(map(known_size, sizes)) == x.type.shape:
        return x
    return Reshape()(x, *sizes)


def ravel(x: TensorLike) -> TensorVariable:
    """The elements in row-major order, as a vector.

    Examples:
        >>> pt.ravel([[1, 2], [3, 4]]).eval()
        array([1, 2, 3, 4])
    """
    return flatten(x, 1)


def on_axis(x: TensorLike, axis: AxisLike, what: str) -> tuple[TensorVariable, int]:
    """x and an axis of it, counted from 0; where none is given, the elements as a vector."""
    x = as_tensor_variable(x)
    return (ravel(x), 0) if axis is None else (x, normalize_axis(axis, x.type.ndim, what))


def flatten(x: TensorLike, ndim: int = 1) -> TensorVariable:
    """x with its last axes joined into one, so that ``ndim`` remain.

    Raises:
        ValueError: ``ndim`` is less than 1 or more than x has (a 0-d x becomes a vector).

    Examples:
        >>> pt.flatten([[1, 2], [3, 4]]).eval()
        array([1, 2, 3, 4])
    """
    x = as_tensor_variable(x)
    have = x.type.ndim
    if not 1 <= ndim <= (have or 1):
        raise ValueError(f"flatten: ndim must be between 1 and {have or 1}, got {ndim}")
    if have == ndim:
        return x
    if have == 0:
        return dimshuffle(x, ("x",))
    sizes = sizes_of(x)
    return Reshape()(x, *sizes[: ndim - 1], as_size(product_of(sizes[ndim - 1 :]), "flatten"))


def dimshuffle(x: TensorLike, *pattern: int | str | Sequence[int | str]) -> TensorVariable:
    """Permute, insert and drop axes.

    Args:
        x: array-like.
        pattern: for each axis of the result, the axis of x that goes there, or ``"x"`` for a new one. Axes
            that are not
            named must have size 1, which is checked at run time where it is not known.

    Examples:
        >>> pt.dimshuffle([1, 2], 0, "x").shape.eval()
        array([2, 1])
    """
    x = as_tensor_variable(x)
    if len(pattern) == 1 and isinstance(pattern[0], list | tuple):
        pattern = tuple(pattern[0])
    ndim = x.type.ndim
    order = tuple(axis if axis == "x" else normalize_axis(axis, ndim, "dimshuffle") for axis in pattern)
    if order == tuple(range(ndim)):
        return x
    ones = [axis for axis in range(ndim) if axis not in order and x.type.shape[axis] is None]
    if ones:
        x = specify_shape(x, [1 if axis in ones else None for axis in range(ndim)])
    return DimShuffle(order)(x)


def transpose(x: TensorLike, axes: Any = None) -> TensorVariable:
    """Permute axes; without ``axes``, reverse them. The name of the result is then ``x.T``.

    Examples:
        >>> pt.transpose([[1, 2], [3, 4]]).eval()
        array([[1, 3],
               [2, 4]])
    """
    x = as_tensor_variable(x)
    if axes is None:
        result = dimshuffle(x, tuple(range(x.type.ndim))[::-1])
        if x.name is not None and result is not x:
            result.name = f"{x.name}.T"
        return result
    if len(axes) != x.type.ndim:
        raise ValueError(f"transpose needs {x.type.ndim} axes for {x} of {x.type}, got {axes}")
    return dimshuffle(x, tuple(axes))


def matrix_transpose(x: TensorLike) -> TensorVariable:
    """Exchange the last two axes.

    Examples:
        >>> pt.matrix_transpose([[1, 2], [3, 4]]).eval()
        array([[1, 3],
               [2, 4]])
    """
    return swapaxes(x, -1, -2)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> TensorVariable:
    """Exchange two axes.

    Examples:
        >>> pt.swapaxes([[1, 2]], 0, 1).eval()
        array([[1],
               [2]])
    """
    x = as_tensor_variable(x)
    order = list(range(x.type.ndim))
    a, b = (normalize_axis(axis, x.type.ndim, "swapaxes") for axis in (axis1, axis2))
    order[a], order[b] = b, a
    return dimshuffle(x, tuple(order))


def moveaxis(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> TensorVariable:
    """Move axes to other positions, as ``numpy.moveaxis``.

    Examples:
        >>> pt.moveaxis(np.ones((2, 3, 4)), 0, -1).shape.eval()
        array([3, 4, 2])
    """
    x = as_tensor_variable(x)
    ends = [
        [normalize_axis(a, x.type.ndim, "moveaxis") for a in np.atleast_1d(each)]
        for each in (source, destination)
    ]
    if len(ends[0]) != len(ends[1]):
        raise ValueError(f"moveaxis needs as many destinations as sources, got {source} and {destination}")
    order = [axis for axis in range(x.type.ndim) if axis not in ends[0]]
    for to, axis in sorted(zip(ends[1], ends[0], strict=True)):
        order.insert(to, axis)
    return dimshuffle(x, tuple(order))


def squeeze(x: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """Drop axes of size 1: those given, else all that have the static size 1.

    Examples:
        >>> pt.squeeze([[1, 2]]).eval()
        array([1, 2])
    """
    x = as_tensor_variable(x)
    if axis is None:
        drop = tuple(i for i, one in enumerate(x.type.broadcastable) if one)
    else:
        # NumPy takes axis 0 of a scalar, too.
        drop = normalize_axes(axis, max(x.type.ndim, 1), "squeeze")[: x.type.ndim]
        wrong = [i for i in drop if x.type.shape[i] not in (None, 1)]
        if wrong:
            raise ValueError(f"squeeze: axis {wrong[0]} of {x} has size {x.type.shape[wrong[0]]}, not 1")
    return dimshuffle(x, tuple(i for i in range(x.type.ndim) if i not in drop))


def expand_dims(a: TensorLike, axis: AxisLike) -> TensorVariable:
    """Insert axes of size 1 at positions of the result.

    Examples:
        >>> pt.expand_dims([1, 2], 1).eval()
        array([[1],
               [2]])
    """
    a = as_tensor_variable(a)
    count = len(axis) if isinstance(axis, list | tuple) else 1
    ndim = a.type.ndim + count
    new = normalize_axes(axis, ndim, "expand_dims")
    old = iter(range(a.type.ndim))
    return dimshuffle(a, tuple("x" if i in new else next(old) for i in range(ndim)))


def shape_padleft(t: TensorLike, n_ones: int = 1) -> TensorVariable:
    """Add leading axes of size 1.

    Examples:
        >>> pt.shape_padleft([1, 2]).shape.eval()
        array([1, 2])
    """
    t = as_tensor_variable(t)
    return dimshuffle(t, ("x",) * n_ones + tuple(range(t.type.ndim)))


def shape_padright(t: TensorLike, n_ones: int = 1) -> TensorVariable:
    """Put axes of size 1 at the end.

    Examples:
        >>> pt.shape_padright([1, 2]).shape.eval()
        array([2, 1])
    """
    t = as_tensor_variable(t)
    return dimshuffle(t, tuple(range(t.type.ndim)) + ("x",) * n_ones)


shape_padaxis = expand_dims


class _AtLeast(Protocol):
    @overload
    def __call__(self, array: TensorLike, /) -> TensorVariable: ...
    @overload
    def __call__(
        self, array: TensorLike, other: TensorLike, /, *more: TensorLike
    ) -> list[TensorVariable]: ...


def _atleast(n: int) -> _AtLeast:
    def function(*arrays: TensorLike) -> TensorVariable | list[TensorVariable]:
        results = [as_tensor_variable(x) for x in arrays]
        results = [shape_padleft(x, n - x.type.ndim) if x.type.ndim < n else x for x in results]
        return results[0] if len(results) == 1 else results

    function.__name__ = function.__qualname__ = f"atleast_{n}d"
    function.__doc__ = f"""Operands with axes of size 1 before their own, so that they have at least {n}.

    Args:
        arrays: array-likes of any dtype.

    Returns:
        One variable for one operand, a list for several.

    Examples:
        >>> pt.atleast_{n}d(7).eval()
        array({"[" * n}7{"]" * n})
    """
    return cast("_AtLeast", function)


atleast_1d, atleast_2d, atleast_3d = _atleast(1), _atleast(2), _atleast(3)


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


def repeat(x: Variable, size: Size) -> Variable:
    """``x`` repeated along a new leading axis."""
    return broadcast_to(x, (size, *sizes_of(x)))


def all_batched(inputs: Sequence[Variable], batched: Sequence[bool], size: Size) -> list[Variable]:
    """The inputs, with those that lack the axis of a batch repeated along it."""
    return [x if b else repeat(x, size) for x, b in zip(inputs, batched, strict=True)]


def batch_in_front(
    op: Op, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Size
) -> list[Variable]:
    """`Op.batch` of an op whose inputs may have any leading axes."""
    return list(op(*all_batched(inputs, batched, size), return_list=True))

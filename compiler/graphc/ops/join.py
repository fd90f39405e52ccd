# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Join``, concatenation, and the builders that join arrays and cut them apart."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from graphc.emit.emitter import ELEMENTS
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, describe, only
from graphc.graph.op import FieldOp, linear
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import TensorType
from graphc.ops.checks import CheckAndRaise, as_count
from graphc.ops.dimshuffle import element_of, normalize_axis
from graphc.ops.elementwise import cast_to
from graphc.ops.ifelse import ifelse
from graphc.ops.math import eq
from graphc.ops.shape import MakeVector, as_size, known_size, size_of
from graphc.ops.shaping import (
    all_batched,
    as_sizes,
    atleast_2d,
    expand_dims,
    reshape,
    shape_padleft,
    specify_shape,
)
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import AxisLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

__all__ = ["block", "column_stack", "concatenate", "dstack", "hstack", "join", "split", "stack", "vstack"]


class Join(FieldOp):
    """Concatenate along an axis; operands are cast to one dtype.

    Args:
        axis: the axis, at least 0.
    """

    axis: int
    selects = sys.maxsize

    def make_node(self, *inputs: TensorLike) -> Apply:
        if not inputs:
            raise ValueError("join needs at least one operand")
        xs = [as_tensor_variable(x) for x in inputs]
        ndim = xs[0].type.ndim
        if any(x.type.ndim != ndim for x in xs):
            raise TypeError(
                "the operands of join must have equal numbers of dimensions, got "
                f"{', '.join(f'{x} of type {x.type}' for x in xs)}; x[None] adds a dimension"
            )
        normalize_axis(self.axis, ndim, "join")
        dtype = promote(*(x.type.numpy_dtype for x in xs)).name
        xs = [cast_to(x, dtype) for x in xs]
        return Apply(self, xs, [TensorType(dtype, self._static(xs)).make_variable()])

    def _static(self, xs: Sequence[Variable]) -> list[int | None]:
        shape: list[int | None] = []
        for axis, sizes in enumerate(zip(*(x.type.shape for x in xs), strict=True)):
            if axis == self.axis:
                shape.append(None if None in sizes else sum(sizes))
                continue
            known = {size for size in sizes if size is not None}
            if len(known) > 1:
                shapes = ", ".join(f"{x} of shape {x.type.shape}" for x in xs)
                raise ValueError(
                    f"join along axis {self.axis}: sizes must agree in all other dimensions, but differ in "
                    f"dimension {axis}: {shapes}"
                )
            shape.append(known.pop() if known else None)
        return shape

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        try:
            output_storage[0][0] = np.concatenate(inputs, axis=self.axis)
        except ValueError:
            shapes = ", ".join(str(x.shape) for x in inputs)
            raise ValueError(
                f"join along axis {self.axis}{describe(node.location)}: all other sizes must agree; shapes "
                f"are {shapes}"
            ) from None

    def element(self, node: Apply, position: int) -> Variable | None:
        for x in node.inputs:
            length = x.type.shape[0]
            if length is None or position < length:
                return None if length is None else element_of(x, position)
            position -= length
        return None

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g = only(cotangents)
        terms: list[Variable | None] = []
        start: TensorVariable = constant(np.zeros((), np.int64))
        for x in inputs:
            stop = start + size_of(x, self.axis)
            # The last sizes of the other dimensions may be known from x alone.
            part = g[(slice(None),) * self.axis + (slice(start, stop),)]
            terms.append(specify_shape(part, x.type.shape))
            start = stop
        return terms

    pushforward = linear

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        return [Join(self.axis + 1)(*all_batched(inputs, batched, size))]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        out = node.outputs[0]
        shape = list(out.type.shape)
        shape[self.axis] = None
        sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
        common = f"tensor<{sizes}{ELEMENTS[out.type.dtype]}>"
        parts = []
        for position, (x, operand) in enumerate(zip(node.inputs, operands, strict=True)):
            self._check(e, node, position, operand)
            parts.append(e.cast_type(operand, e.type_of(x), common))
        attrs = f"axis = {self.axis} : i64"
        return [e.op("graphc.join", parts, [common] * len(parts), e.type_of(out), attrs)]

    def _check(self, e: Emitter, node: Apply, position: int, operand: str) -> None:
        """Sizes that become static in the common type are checked before the cast, which checks nothing."""
        out = node.outputs[0].type.shape
        for axis, size in enumerate(node.inputs[position].type.shape):
            if axis != self.axis and size is None and out[axis] is not None:
                given, expected = e.dim_of(node.inputs[position], operand, axis), e.const_index(out[axis])
                message = (
                    f"join along axis {self.axis}: operand {position} has size {{given}} in dimension "
                    f"{axis}, the others have {{expected}}"
                )
                e.check(e.compare("eq", given, expected), given, expected, message)


def join(axis: AxisLike | Variable, *tensors_list: TensorLike) -> TensorVariable:
    """Concatenate along an axis.

    Args:
        axis: the axis. One that is known only when the graph is run costs a conditional for each dimension.
        tensors_list: operands with the same number of dimensions; their dtypes are promoted.

    Examples:
        >>> pt.join(0, [1, 2], [3]).eval()
        array([1, 2, 3])
    """
    if len(tensors_list) == 1 and isinstance(tensors_list[0], list | tuple):
        tensors_list = tuple(tensors_list[0])
    if not tensors_list:
        raise ValueError("join needs at least one operand")
    xs = [as_tensor_variable(x) for x in tensors_list]
    if xs[0].type.ndim == 0:
        raise TypeError("0-d operands cannot be joined; use stack")
    if isinstance(axis, Variable) and known_size(axis) is None:
        return _join_along(axis, xs)
    axis = normalize_axis(axis, xs[0].type.ndim, "join")
    return xs[0] if len(xs) == 1 else Join(axis)(*xs)


def _join_along(axis: Variable, xs: list[TensorVariable]) -> TensorVariable:
    """`join` along an axis that is known when the graph is run."""
    if axis.type.ndim or axis.type.kind not in "iu":
        raise TypeError(f"the axis of join must be a 0-d integer, got {axis} of type {axis.type}")
    shapes = [x.type.shape for x in xs]
    ranks = range(xs[0].type.ndim)
    # Along other axes, static sizes contradict each other.
    possible = [each for each in ranks if len({tuple(np.delete(s, each)) for s in _known(shapes)}) == 1]
    if not possible:
        raise ValueError(f"arrays of the shapes {shapes} cannot be joined along any axis")
    numbers = [possible.index(each) if each in possible else len(possible) for each in ranks]
    # Reading at the axis, and at its number, checks them.
    place = constant(np.arange(len(possible)))[constant(np.array(numbers))[axis]]
    result: TensorVariable = Join(possible[-1])(*xs)
    if len(possible) == 1:
        return CheckAndRaise(IndexError, "join: sizes differ along the axis")(result, eq(place, 0))
    for number, each in reversed(list(enumerate(possible[:-1]))):
        result = ifelse(eq(place, number), Join(each)(*xs), result)
    return result


def _known(shapes: list[tuple[int | None, ...]]) -> list[list[int]]:
    """Shapes in which sizes that are not known are those of another, or 0."""
    joint = [next((size for size in column if size is not None), 0) for column in zip(*shapes, strict=True)]
    return [[j if n is None else n for n, j in zip(shape, joint, strict=True)] for shape in shapes]


def concatenate(tensor_list: Sequence[TensorLike], axis: AxisLike = 0) -> TensorVariable:
    """Concatenate operands, which are given in a list, along an axis.

    Examples:
        >>> pt.concatenate([[1, 2], [3]]).eval()
        array([1, 2, 3])
    """
    if not isinstance(tensor_list, list | tuple):
        raise TypeError(f"concatenate takes a list or tuple of operands, got {tensor_list!r}")
    return join(axis, *tensor_list)


def stack(tensors: Sequence[TensorLike], axis: AxisLike = 0) -> TensorVariable:
    """Operands of one shape along a new axis.

    Examples:
        >>> pt.stack([[1, 2], [3, 4]], axis=1).eval()
        array([[1, 3],
               [2, 4]])
    """
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"stack takes a list or tuple of operands, got {tensors!r}")
    if not tensors:
        raise ValueError("stack needs at least one operand")
    xs = [as_tensor_variable(x) for x in tensors]
    ndim = xs[0].type.ndim
    sizes = zip(*(x.type.shape for x in xs), strict=False)
    if any(x.type.ndim != ndim for x in xs) or any(len({*each} - {None}) > 1 for each in sizes):
        given = ", ".join(f"{x} of type {x.type}" for x in xs)
        raise ValueError(f"stack takes operands of one shape, got {given}")
    axis = normalize_axis(axis, ndim + 1, "stack")
    if ndim == 0:
        return MakeVector(promote(*(x.type.numpy_dtype for x in xs)).name)(*xs)
    return join(axis, *(expand_dims(x, axis) for x in xs))


def hstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Concatenate along the second axis, vectors along the first.

    Examples:
        >>> pt.hstack([[1, 2], [3]]).eval()
        array([1, 2, 3])
    """
    given = [as_tensor_variable(x) for x in tup]
    xs = [expand_dims(x, 0) if x.type.ndim == 0 else x for x in given]
    return join(0 if xs[0].type.ndim == 1 else 1, *xs)


def vstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Concatenate along the first axis, after making operands at least 2-d.

    Examples:
        >>> pt.vstack([[1, 2], [3, 4]]).eval()
        array([[1, 2],
               [3, 4]])
    """
    return join(0, *(atleast_2d(x) for x in tup))


def split(
    x: TensorLike, splits_size: SizeLike, n_splits: int | None = None, axis: AxisLike = 0
) -> list[TensorVariable]:
    """Cut x into parts along an axis.

    Args:
        x: array-like.
        splits_size: sizes of the parts: a list, or an integer vector.
        n_splits: number of parts; needed when ``splits_size`` is a vector of unknown length.
        axis: the axis.

    Raises:
        TypeError: ``splits_size`` is a single number.
        ValueError: the sizes do not add up to that of the axis, or one is negative, here or at run time.

    Examples:
        >>> [v.eval().tolist() for v in pt.split([1, 2, 3], [1, 2], n_splits=2)]
        [[1], [2, 3]]
    """
    x = as_tensor_variable(x)
    axis = normalize_axis(axis, x.type.ndim, "split")
    if isinstance(splits_size, int) or getattr(splits_size, "ndim", 1) == 0:
        raise TypeError(
            f"split takes the sizes of the parts as a list or vector, got {splits_size}; for n parts there "
            "is array_split(x, n, axis)"
        )
    # Sizes of which some are negative may add up, too.
    sizes = [as_count(size, "split") for size in as_sizes(splits_size, "split", n_splits)]
    if n_splits is not None and len(sizes) != n_splits:
        raise ValueError(f"split: n_splits is {n_splits}, but there are {len(sizes)} sizes")
    total = sizes[0]
    bounds = [constant(np.asarray(0, np.int64)), sizes[0]]
    for each in sizes[1:]:
        total = as_size(total + each, "split")
        bounds.append(total)
    x = specify_shape(x, [total if i == axis else None for i in range(x.type.ndim)])
    before = (slice(None),) * axis
    parts = []
    for (a, b), size in zip(pairwise(bounds), sizes, strict=True):
        part, known = x[(*before, slice(a, b))], known_size(size)
        fits = known is not None and part.type.shape[axis] == known
        parts.append(
            part if fits else specify_shape(part, [size if i == axis else None for i in range(x.type.ndim)])
        )
    return parts


def dstack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Arrays one after the other along the third axis.

    Examples:
        >>> pt.dstack([[1, 2], [3, 4]]).eval()
        array([[[1, 3],
                [2, 4]]])
    """
    xs = [atleast_2d(x) for x in tup]
    return concatenate([x[:, :, None] if x.type.ndim == 2 else x for x in xs], axis=2)


def column_stack(tup: Sequence[TensorLike]) -> TensorVariable:
    """Vectors, and matrices, as columns of one matrix.

    Examples:
        >>> pt.column_stack([[1, 2], [3, 4]]).eval()
        array([[1, 3],
               [2, 4]])
    """
    xs = [as_tensor_variable(x) for x in tup]
    return concatenate([x if x.type.ndim > 1 else reshape(x, [-1, 1]) for x in xs], axis=1)


def block(arrays: TensorLike) -> TensorVariable:
    """An array from nested lists of blocks: the innermost lists are joined along the last axis, and so on.

    Examples:
        >>> pt.block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]]).eval()
        array([[1., 0., 0.],
               [0., 1., 0.],
               [1., 1., 1.]])
    """
    depth, rank = _depth(arrays), _rank(arrays)
    return _block(arrays, depth, max(depth, rank), 0)


def _depth(arrays: TensorLike) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(x) for x in arrays}
    if not arrays or len(depths) != 1:
        raise ValueError("block takes lists that are nested equally deep, and none that is empty")
    return 1 + depths.pop()


def _rank(arrays: TensorLike) -> int:
    return max(map(_rank, arrays)) if isinstance(arrays, list) else as_tensor_variable(arrays).type.ndim


def _block(arrays: TensorLike, depth: int, rank: int, level: int) -> TensorVariable:
    if not isinstance(arrays, list):
        x = as_tensor_variable(arrays)
        return shape_padleft(x, rank - x.type.ndim) if x.type.ndim < rank else x
    return concatenate([_block(x, depth, rank, level + 1) for x in arrays], axis=rank - depth + level)

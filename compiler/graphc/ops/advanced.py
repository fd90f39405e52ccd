# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer-array indexing on one axis: ``Take`` reads, ``Put`` sets or increases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphc.graph.basic import Apply, Constant, Maybe, Variable, Variables, describe, only
from graphc.graph.op import FieldOp, Op, linear, multilinear
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import arange, zeros, zeros_like
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.elementwise import cast_to, expand_left, unbroadcast
from graphc.ops.math import eq, switch
from graphc.ops.shaping import dimshuffle
from graphc.ops.shaping import size as size_
from graphc.ops.subtensor import fitting

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


_Size = TypeVar("_Size")


def _as_indices(indices: TensorLike) -> TensorVariable:
    return cast_to(operand(indices, "indices must be integers", kinds="iu", error=TypeError), "int64")


def _taken(shape: Sequence[_Size], indices: Sequence[_Size], axis: int) -> list[_Size]:
    return [*shape[:axis], *indices, *shape[axis + 1 :]]


def _check(node: Apply, indices: np.ndarray, size: int, axis: int) -> None:
    bad = (indices < -size) | (indices >= size)
    if bad.any():
        raise IndexError(
            f"index {indices[bad].flat[0]} is out of bounds for axis {axis} of size "
            f"{size}{describe(node.location)}"
        )


class _Indexed(Op):
    """Acts on the elements of the first input along an axis at the positions that the last one holds."""

    axis: int

    def known(self, node: Apply) -> str:
        """In range, and none is negative; of elements that are those of as many rows as there are positions,
        each may lie in a row of its own.
        """
        size, indices = node.inputs[0].type.shape[self.axis], node.inputs[-1]
        found = indices.data if isinstance(indices, Constant) else None
        if found is None or size is None or found.size == 0 or found.min() < 0 or found.max() >= size:
            return ""
        columns, rest = divmod(size, found.size)
        in_rows = not rest and np.array_equal(found.ravel() // columns, np.arange(found.size))
        return f", in_range, columns = {columns} : i64" if in_rows else ", in_range"


class Take(_Indexed, FieldOp):
    """Elements of x at integer positions along an axis; the axis is replaced by the dimensions of the
    indices.

    Args:
        axis: the axis, at least 0. Negative positions count from the end.
    """

    axis: int
    selects = 1
    depends_on = (0,)

    def make_node(self, x: TensorLike, indices: TensorLike) -> Apply:
        x, indices = as_tensor_variable(x), _as_indices(indices)
        normalize_axis(self.axis, x.type.ndim, "take")
        shape = _taken(x.type.shape, indices.type.shape, self.axis)
        return Apply(self, [x, indices], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, indices = inputs
        _check(node, indices, x.shape[self.axis], self.axis)
        output_storage[0][0] = np.asarray(np.take(x, indices, axis=self.axis))

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, indices) = only(cotangents), inputs
        return [Put(self.axis)(zeros_like(x), g, indices), None]

    pushforward = multilinear

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types, attrs = [e.type_of(x) for x in node.inputs], f"axis = {self.axis} : i64{self.known(node)}"
        return [e.op("graphc.take", operands, types, e.type_of(node.outputs[0]), attrs)]


class Put(_Indexed):
    """x with the elements that `Take` would read increased by y, or set to it; repeated positions act in
    order.

    Args:
        axis: as for `Take`.
        set_instead_of_inc: set instead of increase.
    """

    takes_as_stored = False
    is_update = True

    __props__ = ("axis", "set_instead_of_inc")
    depends_on = (0, 1)

    def __init__(self, axis: int, set_instead_of_inc: bool = False) -> None:
        self.axis = axis
        self.set_instead_of_inc = set_instead_of_inc
        self.selects = 2 if set_instead_of_inc else 0

    def make_node(self, x: TensorLike, y: TensorLike, indices: TensorLike) -> Apply:
        x, y, indices = as_tensor_variable(x), as_tensor_variable(y), _as_indices(indices)
        normalize_axis(self.axis, x.type.ndim, "put")
        shape = _taken(x.type.shape, indices.type.shape, self.axis)
        y = fitting(y, TensorType(x.type.dtype, shape), str(self))
        y = expand_left(y, len(shape)) if y.type.ndim < len(shape) else y
        for axis, (have, want) in enumerate(zip(y.type.shape, shape, strict=True)):
            if have not in (None, 1) and want is not None and have != want:
                raise ValueError(
                    f"cannot put {y} of shape {y.type.shape} where {x} has shape {tuple(shape)}: "
                    f"sizes differ in dimension {axis}"
                )
        return Apply(self, [x, y, indices], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, y, indices = inputs
        _check(node, indices, x.shape[self.axis], self.axis)
        static = node.inputs[1].type.shape
        shape = _taken(x.shape, indices.shape, self.axis)
        if any(s != 1 and have != want for s, have, want in zip(static, y.shape, shape, strict=True)):
            raise ValueError(
                f"cannot put an array of shape {y.shape} where {tuple(shape)} is{describe(node.location)}"
            )
        out = np.array(x, copy=True)
        where: Any = (slice(None),) * self.axis + (indices,)
        if self.set_instead_of_inc:
            out[where] = y
        elif out.dtype == np.bool_:
            np.logical_or.at(out, where, y)
        else:
            np.add.at(out, where, y)
        output_storage[0][0] = out

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, y, indices) = only(cotangents), inputs
        g_y = Take(self.axis)(g, indices)
        if not self.set_instead_of_inc:
            return [g, unbroadcast(g_y, y), None]
        zero = np.zeros((1,) * y.type.ndim, x.type.dtype)
        return [self(g, zero, indices), unbroadcast(self._last_writes(x, g_y, indices), y), None]

    def _last_writes(self, x: Variable, g_y: Variable, indices: Variable) -> TensorVariable:
        """``g_y`` with zeros where a later duplicate position overwrote the value."""
        # Writing 0, 1, 2, ... to the positions and reading them back tells which write came last.
        count = size_(indices)
        order = arange(count, dtype="int64").reshape(indices.shape, ndim=indices.type.ndim)
        length = x.shape[self.axis]
        written = Put(0, True)(zeros((length,), dtype="int64"), order, indices)
        last = eq(Take(0)(written, indices), order)
        after = x.type.ndim - self.axis - 1
        last = dimshuffle(last, (*range(indices.type.ndim), *("x",) * after))
        return switch(last, g_y, 0)

    pushforward = linear

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        (x, y, indices), out = node.inputs, node.outputs[0]
        shape = _taken(x.type.shape, indices.type.shape, self.axis)
        region = e.tensor_type(out.type.dtype, shape)
        of_x = [e.dim_of(x, operands[0], axis) for axis in range(x.type.ndim)]
        of_indices = [e.dim_of(indices, operands[2], axis) for axis in range(indices.type.ndim)]
        update = e.broadcast(operands[1], e.type_of(y), _taken(of_x, of_indices, self.axis), region)
        attrs = f"axis = {self.axis} : i64, accumulate = {'false' if self.set_instead_of_inc else 'true'}"
        attrs += self.known(node)
        types = [e.type_of(x), region, e.type_of(indices)]
        return [e.op("graphc.put", [operands[0], update, operands[2]], types, e.type_of(out), attrs)]

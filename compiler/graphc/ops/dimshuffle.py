# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``DimShuffle``: permute, insert and drop axes.

Axes are normalised here: from the forms that users may write to the one that ops store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.exceptions import AxisError

from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, describe, only
from graphc.graph.op import Op, multilinear
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import TensorType

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc_runtime.thunk import Register


def normalize_axis(axis: Any, ndim: int, what: str) -> int:
    """One axis in range(ndim).

    Args:
        axis: an integer, or an integer constant; negative counts from the end.
        ndim: number of dimensions.
        what: name of the operation, for the message.

    Raises:
        TypeError: not an integer known now.
        AxisError: out of range; as NumPy's it is a ValueError and an IndexError.
    """
    if isinstance(axis, Constant):
        axis = axis.data
    try:
        number = axis.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"the axis of {what} must be an integer known when the graph is built, got {axis!r}"
        ) from None
    if not -ndim <= number < ndim:
        few = f"; its axes are {-ndim} to {ndim - 1}" if ndim else ", which has no axes"
        raise AxisError(f"{what}: axis {number} is out of range for an array of {ndim} dimensions{few}")
    return int(number % ndim)


def normalize_axes(axis: AxisLike | Variable, ndim: int, what: str) -> tuple[int, ...]:
    """Ascending distinct axes; None stands for all of them. Errors as in `normalize_axis`."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, Constant) and axis.type.ndim == 1:
        axis = axis.data.tolist()
    if not isinstance(axis, Sequence):
        return (normalize_axis(axis, ndim, what),)
    axes = tuple(sorted(normalize_axis(a, ndim, what) for a in axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{what}: an axis is given twice in {tuple(axis)}")
    return axes


def attribute(name: str, axes: Sequence[int]) -> str:
    """Text of an ``array<i64>`` attribute."""
    values = ": " + ", ".join(map(str, axes)) if axes else ""
    return f"{name} = array<i64{values}>"


def emit_dimshuffle(e: Emitter, x: str, type_: str, order: Sequence[int], result: str) -> str:
    """A value with moved axes.

    Args:
        e: the emitter. x: the value. type_: its type.
        order: for each axis of the result, the operand's, or -1 for a new one. result: its type.
    """
    return e.op("graphc.dimshuffle", [x], [type_], result, attribute("order", order))


def element_of(x: Variable, position: int) -> Variable | None:
    """The variable that an element of a vector is known to be (`graphc.Op.element`)."""
    if x.type.ndim != 1:
        return None
    if isinstance(x, Constant):
        return constant(x.data[position])
    return None if x.owner is None else x.owner.op.element(x.owner, position)


class DimShuffle(Op):
    """Rearrange axes.

    Args:
        new_order: for each axis of the result, the operand's axis that goes there, or ``"x"`` for a new one
            of size 1. An
            axis that is not named is dropped; it must have the static size 1.
    """

    __props__ = ("new_order",)
    selects = 1
    view_map = {0: [0]}

    def __init__(self, new_order: Sequence[int | str]) -> None:
        self.new_order = tuple(new_order)

    def __str__(self) -> str:
        return f"DimShuffle{{{','.join(map(str, self.new_order))}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        shape = x.type.shape
        used = [axis for axis in self.new_order if axis != "x"]
        if len(set(used)) != len(used) or any(
            not isinstance(a, int) or not 0 <= a < len(shape) for a in used
        ):
            raise ValueError(
                f"dimshuffle {self.new_order} must name each of the {len(shape)} axes at most once, or 'x'; "
                f"got {x.type}"
            )
        for axis, size in enumerate(shape):
            if axis not in used and size != 1:
                raise ValueError(
                    f"dimshuffle {self.new_order} drops axis {axis} of {x}{describe(x.location)}, whose "
                    f"static size is {'unknown' if size is None else size}, not 1"
                )
        out = [shape[axis] if isinstance(axis, int) else 1 for axis in self.new_order]
        return Apply(self, [x], [TensorType(x.type.dtype, out).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (x,) = inputs
        used = [axis for axis in self.new_order if axis != "x"]
        dropped = [axis for axis in range(x.ndim) if axis not in used]
        x = np.transpose(x, (*used, *dropped))[(..., *(0,) * len(dropped))]  # type: ignore[arg-type]
        new = tuple(None if axis == "x" else slice(None) for axis in self.new_order)
        output_storage[0][0] = np.asarray(x[new])

    def inverse(self, ndim: int) -> tuple[int | str, ...]:
        """The order that undoes this one for operands of ``ndim`` dimensions."""
        return tuple(self.new_order.index(axis) if axis in self.new_order else "x" for axis in range(ndim))

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [only(cotangents).dimshuffle(self.inverse(inputs[0].type.ndim))]

    pushforward = multilinear

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        order = [axis if axis == "x" else int(axis) + 1 for axis in self.new_order]
        return [DimShuffle([0, *order])(inputs[0])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        made = None if self.new_order else element_of(node.inputs[0], 0)
        if made in e.values or isinstance(made, Constant):
            return [e.operand(made)]
        source = None if made is None else made.owner
        if source is not None and source.op.emit is not None and all(x in e.values for x in source.inputs):
            return source.op.emit(source, [e.values[x] for x in source.inputs], e)  # a size
        order = [-1 if axis == "x" else int(axis) for axis in self.new_order]
        type_, result = e.type_of(node.inputs[0]), e.type_of(node.outputs[0])
        return [emit_dimshuffle(e, operands[0], type_, order, result)]

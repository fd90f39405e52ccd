# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of shapes: sizes, reshaping, allocation, joins, parts of tensors that are read or written, and
ops that hand values through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.subtensor import indices_from_subtensor

import graphc.gradient as gradient
import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, Values, calls, converts, known_int
from graphc.interop.pytensor.types import is_tensor
from graphc.ops.shape import MakeVector, made_as

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.interop.pytensor.convert import Result


def _index(op: Op, node: Apply, skipped: int, c: Converter) -> tuple[object, ...]:
    """The index of an op: integers, slices, masks and arrays of positions.

    Args:
        op: its ``idx_list`` says how the inputs make an index, in a form that differs between versions;
            without one they are the index.
        node: of the op.
        skipped: how many inputs come before those of the index.
        c: knows what stands for them.
    """
    variables = node.inputs[skipped:]
    form = getattr(op, "idx_list", None)
    entries = variables if form is None else indices_from_subtensor(variables, form)
    return tuple(_entry(entry, c) for entry in entries) or (Ellipsis,)


def _entry(entry: object, c: Converter) -> Any:
    if isinstance(entry, slice):
        return slice(_entry(entry.start, c), _entry(entry.stop, c), _entry(entry.step, c))
    if not isinstance(entry, Variable):
        return entry
    if isinstance(entry, Constant) and getattr(entry.type, "ndim", None) == 0:
        value = np.asarray(entry.data)
        return bool(value) if value.dtype == bool else int(value)
    return c[entry]


@converts("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    index = _index(op, node, 1, c)
    # An element of a vector of single values is that value, as after PyTensor's rewrites: it does not ask for
    # the others, nor for their checks.
    return made_as(inputs[0][index[0] if len(index) == 1 else index])


@converts("IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    x, y = inputs[:2]
    part = x[_index(op, node, 2, c)]
    y = pt.cast(y, x.type.dtype)
    if op.set_instead_of_inc:
        return pt.second(x, y) if part is x else pt.set_subtensor(part, y)
    if part is x:
        return x + y
    return pt.inc_subtensor(part, y, ignore_duplicates=getattr(op, "ignore_duplicates", False))


@converts("PermuteRowElements")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    inverse = getattr(op, "inverse", None)
    if inverse is None:
        what = "whether to invert the permutation"
        inverse = known_int(node.inputs[2], what) if len(node.inputs) > 2 else 0
    return pt.permute_row_elements(inputs[0], inputs[1], inverse=bool(inverse))


@converts("SplitDims")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    x, parts = inputs
    count = node.outputs[0].type.ndim - x.type.ndim + 1
    return pt.split_dims(x, [parts[i] for i in range(count)], op.axis)


@converts("Alloc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Its operand, where no axis is broadcast by its type: PyTensor's default mode checks no sizes there.

    PyMC relies on it: the density of a minibatch is allocated to the size of its dims, that of all data.
    """
    given, made = node.inputs[0].type, node.outputs[0].type
    if given.broadcastable != made.broadcastable:
        return pt.alloc(*inputs)
    return inputs[0] if given.shape == made.shape else pt.specify_shape(inputs[0], made.shape)


@converts("Join")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    if hasattr(op, "axis"):  # from PyTensor 3.1 on
        return pt.join(op.axis, *inputs)
    return pt.join(known_int(node.inputs[0], "the axis"), *inputs[1:])


@converts("Split")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    x, *rest = inputs
    axis = op.axis if hasattr(op, "axis") else known_int(node.inputs[1], "the axis")
    known = [output.type.shape[axis] for output in node.outputs]
    parts = rest[-1] if None in known else known
    return pt.split(x, parts, n_splits=op.len_splits, axis=axis)


@converts("TensorFromScalar")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """A copy of an input, since a scalar that is given is a number of NumPy's, not an array."""
    (variable,) = node.inputs
    given = variable.owner is None and not isinstance(variable, Constant)
    return pt.tensor_copy(inputs[0]) if given else inputs[0]


@converts("DeepCopyOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """A node, so that functions that hand an input through are compiled as others are."""
    return pt.tensor_copy(inputs[0]) if is_tensor(node.outputs[0].type) else inputs[0]


def _passed(op: Op, x: object, *_: object) -> object:
    """The operand: these change PyTensor's own matters alone, a type, a copy, a derivative that it took."""
    return x


calls(
    {
        "ScalarFromTensor TypeCastingOp ViewOp OutputGuard CpuContiguous SpecifyAssumptions": _passed,
        "DisconnectedGrad GradScale ZeroGrad": _passed,
        "MakeSlice": lambda op, *ends: slice(*ends),
        "JoinDims": "join_dims start_axis n_axes",
        "AllocEmpty": lambda op, *shape: pt.empty(shape, dtype=op.dtype),
        "Shape_i": lambda op, x: x.shape[op.i],
        "SpecifyShape": lambda op, x, *shape: pt.specify_shape(x, shape),
        "MakeVector": lambda op, *entries: MakeVector(op.dtype)(*entries),
        "ExtractDiag": lambda op, x: pt.diagonal(x, op.offset, op.axis1, op.axis2),
        "GradClip": lambda op, x: gradient.grad_clip(x, op.clip_lower_bound, op.clip_upper_bound),
        "Nonzero": "nonzero",
        "Choose": "choose mode",
        "Reshape": "reshape ndim",
        "Shape": "shape",
        "ARange": "arange dtype",
        "Eye": "eye dtype",
        "AllocDiag": "alloc_diag offset axis1 axis2",
        "FillDiagonal": "fill_diagonal",
        "FillDiagonalOffset": "fill_diagonal_offset",
    }
)
calls({"Default": lambda op, x, default: default if x is None else x}, "pytensor.tensor")
calls(
    {
        "MinibatchRandomVariable DiracDelta": _passed,
        "BatchedDiag": lambda op, x: pt.alloc_diag(x, axis1=-2, axis2=-1),  # of each row
    },
    "pymc",
)

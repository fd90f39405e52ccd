# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common value of the elements of a batch, where all are known to be equal.

PyTensor's batches of ops that take sizes have a row of sizes for each element, all of them equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import graphc.tensor as pt
from graphc.graph.basic import Apply, Constant
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.shape import MakeVector, Shape, Shape_i
from graphc.ops.shaping import BroadcastTo, SpecifyShape
from graphc.ops.subtensor import FULL, Subtensor

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc_runtime.thunk import Register

# Deeper expressions are not looked into.
_DEPTH = 16
# How many operations the conversion of one makes, about.
_STEPS = 4
# What sizes are computed with, and how many elements of a result are literals.
_OF_SIZES, _LITERAL = (Elementwise, Subtensor, DimShuffle, BroadcastTo, MakeVector), 16


def element(x: Variable, batch: int) -> Variable:
    """One element of a batch with this many axes, if all are equal; else the batch."""
    found = x
    for _ in range(batch):
        row = equal_row(found)
        if row is None:
            return x
        found = row
    return found


def equal_row(x: Variable, depth: int = _DEPTH) -> Variable | None:
    """One row of a variable whose rows, along its first axis, all are equal; None if that is not known.

    Rows of constants are constants, so that sizes which are computed from them are known.
    """
    if isinstance(x, Constant):
        return pt.constant(x.data[0]) if x.data.size and (x.data == x.data[:1]).all() else None
    found = _computed(x, x.owner, depth) if x.owner is not None and depth else None
    if found is None and x.type.shape[0] == 1:
        found = pt.dimshuffle(x, list(range(1, x.type.ndim)))
    return None if found is None else settled(found)


def _computed(x: Variable, node: Apply, depth: int) -> Variable | None:
    """The row by what computes the variable."""
    found: Variable | None = None
    if isinstance(node.op, BroadcastTo):
        found = _of_broadcast(node, depth - 1)
    elif isinstance(node.op, Subtensor) and node.op.idx_list[0] == FULL:
        row = equal_row(node.inputs[0], depth - 1)
        found = None if row is None else Subtensor(node.op.idx_list[1:])(row, *node.inputs[1:])
    elif isinstance(node.op, DimShuffle) and node.op.new_order[0] == 0:
        row = equal_row(node.inputs[0], depth - 1)
        order = [axis if axis == "x" else int(axis) - 1 for axis in node.op.new_order[1:]]
        found = None if row is None else pt.dimshuffle(row, order)
    elif isinstance(node.op, Elementwise):
        rows = [row for v in node.inputs if (row := equal_row(v, depth - 1)) is not None]
        if len(rows) == len(node.inputs):
            found = node.op.apply(rows, x.type.numpy_dtype).outputs[0]
    elif isinstance(node.op, SpecifyShape):
        found = equal_row(node.inputs[0], depth - 1)
    return found


def _of_broadcast(node: Apply, depth: int) -> Variable | None:
    x, sizes = node.inputs[0], node.inputs[2:]
    row = equal_row(x, depth) if x.type.ndim > len(sizes) else x
    return None if row is None else BroadcastTo()(row, *sizes)


def settled(x: Variable, depth: int = _STEPS) -> Variable:
    """A variable that is computed from constants and static sizes as a constant; others as they are."""
    node = x.owner
    if node is None or not depth:
        return x
    if isinstance(node.op, (Shape, Shape_i)):
        shape = node.inputs[0].type.shape
        sizes = shape if isinstance(node.op, Shape) else shape[node.op.i : node.op.i + 1]
        data = None if None in sizes else np.asarray(sizes, np.int64).reshape(x.type.shape)
        return x if data is None else pt.constant(data)
    if not isinstance(node.op, _OF_SIZES) or None in x.type.shape or math.prod(x.type.shape) > _LITERAL:
        return x
    inputs = [settled(v, depth - 1) for v in node.inputs]
    values = [v.data for v in inputs if isinstance(v, Constant)]
    if len(values) < len(inputs):
        return x
    cell: Register = [None]
    node.op.perform(node, values, [cell])
    return pt.constant(np.asarray(cell[0], x.type.numpy_dtype))

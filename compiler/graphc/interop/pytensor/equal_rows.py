# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each element of a batch is, where all are known to be equal.

PyTensor's batches of ops that take sizes have a row of sizes for each element, all of them equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.graph.basic import Apply, Constant
from graphc.ops.bounds import FULL
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.reshape import BroadcastTo, SpecifyShape
from graphc.ops.shape import MakeVector, Shape, Shape_i
from graphc.ops.subtensor import Subtensor

if TYPE_CHECKING:
    from graphc.graph.basic import Variable

# Deeper expressions are not looked into.
_DEPTH = 16
# How many operations the conversion of one makes, about.
_STEPS = 4
# What sizes are computed with, and how many elements of a result are literals.
_OF_SIZES, _LITERAL = (Elementwise, Subtensor, DimShuffle, BroadcastTo, MakeVector), 16


def element(x: object, batch: int) -> Any:
    """One element of a batch with this many axes, if all are equal; else the batch."""
    found = x
    for _ in range(batch):
        found = equal_row(found)
        if found is None:
            return x
    return found


def equal_row(x: Any, depth: int = _DEPTH) -> Any:
    """One row of a variable whose rows, along its first axis, all are equal; None if that is not known.

    Rows of constants are constants, so that sizes which are computed from them are known.
    """
    if isinstance(x, Constant):
        return pt.constant(x.data[0]) if x.data.size and (x.data == x.data[:1]).all() else None
    found = _computed(x, depth) if x.owner is not None and depth else None
    if found is None and x.type.shape[0] == 1:
        found = pt.dimshuffle(x, list(range(1, x.type.ndim)))
    return None if found is None else _known(found)


def _computed(x: Any, depth: int) -> Any:
    """The row by what computes the variable."""
    node, found = x.owner, None
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
        rows = [equal_row(v, depth - 1) for v in node.inputs]
        if all(row is not None for row in rows):
            found = node.op.apply(rows, x.type.numpy_dtype).outputs[0]
    elif isinstance(node.op, SpecifyShape):
        found = equal_row(node.inputs[0], depth - 1)
    return found


def _of_broadcast(node: Apply, depth: int) -> Any:
    x: Any = node.inputs[0]
    sizes = node.inputs[2:]
    row = equal_row(x, depth) if x.type.ndim > len(sizes) else x
    return None if row is None else BroadcastTo()(row, *sizes)


def _known(x: Any) -> Any:
    return settled(x)


def settled(x: Variable, depth: int = _STEPS) -> Any:
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
    if not all(isinstance(v, Constant) for v in inputs):
        return x
    cell: list[Variable | None] = [None]
    node.op.perform(node, [v.data for v in inputs], [cell])
    return pt.constant(np.asarray(cell[0], x.type.numpy_dtype))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each op gets one more leading axis (see `graphc.transforms.vectorize`).

A rule is a function of ``(op, node, inputs, batched, size)``: the node without the batch, its inputs with it,
which of them have the axis, and its size. It returns the outputs with the axis, or without it where they are
the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Variable
from graphc.graph.op import Op
from graphc.ops.advanced import Put, Take
from graphc.ops.batching_indices import (
    batch_inc_subtensor,
    batch_put,
    batch_subtensor,
    batch_take,
    with_axis,
)
from graphc.ops.create import Iota
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Elementwise
from graphc.ops.join import Join
from graphc.ops.linalg import Matmul
from graphc.ops.reduce import ArgReduce, Reduce
from graphc.ops.reshape import BroadcastTo, Reshape, SpecifyShape
from graphc.ops.shape import MakeVector, Shape, Shape_i
from graphc.ops.shaping import dimshuffle, repeat, reshape
from graphc.ops.sizes import size_of, sizes_of
from graphc.ops.softmax import LogSoftmax, Softmax
from graphc.ops.subtensor import IncSubtensor, Subtensor

Rule = Callable[[Any, Apply, Sequence[Variable], Sequence[bool], "Variable | int"], list[Variable]]


@singledispatch
def _rule(
    op: Op, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    raise VectorizeError(f"{op} has no batching rule")


def rule_of(op: Op) -> Rule | None:
    """The rule for an op: its own ``batch`` method, one of this module, or None."""
    if op.batch is not None:
        return lambda op, *arguments: op.batch(*arguments)
    found = _rule.dispatch(type(op))
    return None if found is _rule.dispatch(Op) else found


def all_batched(inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int) -> list[Variable]:
    """The inputs, with those that lack the axis repeated along it."""
    return [x if b else repeat(x, size) for x, b in zip(inputs, batched, strict=True)]


def _only_first(op: Op, batched: Sequence[bool]) -> None:
    """Refuse batches of anything but the first input."""
    if any(batched[1:]):
        raise VectorizeError(f"{op} cannot take a batch of sizes or indices")


@_rule.register
def _(
    op: Elementwise, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    # Operands without the axis are of equal rank and get a leading 1.
    return op.apply(inputs, node.outputs[0].type.numpy_dtype).outputs


@_rule.register
def _(
    op: DimShuffle, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    order = [axis if axis == "x" else int(axis) + 1 for axis in op.new_order]
    return [DimShuffle([0, *order])(inputs[0])]


@_rule.register
def _(
    op: Reduce, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [Reduce(op.kind, [axis + 1 for axis in op.axes])(inputs[0])]


@_rule.register
def _(
    op: ArgReduce, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [ArgReduce(op.kind, op.axis + 1)(inputs[0])]


@_rule.register(Reshape)
@_rule.register(SpecifyShape)
def _(
    op: Op, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    _only_first(op, batched)
    return [op(inputs[0], size, *inputs[1:])]


@_rule.register
def _(
    op: BroadcastTo, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    _only_first(op, batched)
    x, *sizes = inputs
    missing = len(sizes) - (x.type.ndim - 1)
    return [op(dimshuffle(x, (0, *("x",) * missing, *range(1, x.type.ndim))), size, *sizes)]


@_rule.register
def _(
    op: Join, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [Join(op.axis + 1)(*all_batched(inputs, batched, size))]


@_rule.register
def _(
    op: Shape, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [op(inputs[0])[1:]]


@_rule.register
def _(
    op: Shape_i, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [Shape_i(op.i + 1)(inputs[0])]


@_rule.register
def _(
    op: MakeVector, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    columns = [dimshuffle(x, (0, "x")) for x in all_batched(inputs, batched, size)]
    return [Join(1)(*columns)]


@_rule.register
def _(
    op: Iota, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    if batched[2]:
        raise VectorizeError(f"{op} cannot take a batch of lengths")
    start, step, length = inputs
    columns = [dimshuffle(x, (0, "x")) if b else x for x, b in zip((start, step), batched[:2], strict=True)]
    return [columns[0] + columns[1] * op(0, 1, length)]


@_rule.register(Softmax)
@_rule.register(LogSoftmax)
def _(
    op: Softmax, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    options: dict[str, Any] = {**op._props_dict(), "axes": [axis + 1 for axis in op.axes]}
    return [type(op)(**options)(inputs[0])]


@_rule.register
def _(
    op: Subtensor, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [batch_subtensor(op, inputs, batched)]


@_rule.register
def _(
    op: IncSubtensor, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [batch_inc_subtensor(op, inputs, batched, size)]


@_rule.register
def _(
    op: Take, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    return [batch_take(op.axis, inputs[0], inputs[1], batched[0], batched[1])]


@_rule.register
def _(
    op: Put, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    x, y, indices = inputs
    x = x if batched[0] else repeat(x, size)
    return [batch_put(op, x, with_axis(y, batched[1]), indices, batched[2])]


@_rule.register
def _(
    op: Matmul, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
) -> list[Variable]:
    a, b = inputs
    if all(batched) or node.inputs[0].type.ndim > 2:
        return [op(*all_batched(inputs, batched, size))]
    # One product of a tall (or wide) matrix instead of a batch of products.
    if batched[0]:
        n, m, k = sizes_of(a)
        rows = op(reshape(a, (n * m, k)), b)
        return [reshape(rows, (n, m, size_of(b, 1)))]
    n, k, p = sizes_of(b)
    columns = op(a, reshape(dimshuffle(b, (1, 0, 2)), (k, n * p)))
    return [dimshuffle(reshape(columns, (size_of(a, 0), n, p)), (1, 0, 2))]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each operation of a body is done on stacks of rows.

A rule gets the batcher, the operation of the body and what stands for its tensor operands, of which at least
one is a stack; it returns the stack of its result, of type `batcher.stack_type(<type of a row>)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir.constants import CONSTANTS, constant_attribute, element_dtype, read_constant
from graphc.ir.rewrite import tensor_type
from graphc.passes.loops._batch import Batch, Batcher, Rule, attributes_of
from graphc.passes.loops._batch_matmul import matmul
from graphc.passes.loops._index import CannotBatch
from graphc_dialects._base import const_index, constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

_RULES: dict[str, Rule] = {"graphc.matmul": matmul}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        _RULES.update({name if "." in name else f"graphc.{name}": function for name in names})
        return function

    return register


def rule_of(name: str) -> Rule | None:
    """The rule of an operation, None if it has none."""
    known = _RULES.get(name)
    if known is None and name.startswith("graphc."):
        if name[7:] in ELEMENTWISE:
            return elementwise
        if name[7:] in SIGNATURES:
            return kernel
    return known


def kernel(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    """One more dimension in front is one more batch dimension."""
    if len(op.results) != 1:
        raise CannotBatch("an operation with several results")
    signature = SIGNATURES[op.name[7:]]
    stacks = [b.repeated(x) for x in xs]
    sizes: dict[Any, Any] = {}
    for i, core in enumerate(signature.operands):
        rank = len(stacks[i].type.shape)
        for axis, dim in enumerate([*range(1, rank - len(core)), *core], 1):
            if dim in sizes:
                stacks[i] = b.fit(stacks[i], axis, sizes[dim])
            else:
                sizes[dim] = dim_of(stacks[i], axis)
    given = [b.size(x) for x in list(op.operands)[len(signature.operands) :]]
    return b.create(op.name, [*stacks, *given], b.stack_type(op.results[0].type), **attributes_of(op))


def elementwise(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    return b.create(op.name, b.agreeing(xs), b.stack_type(op.results[0].type), **attributes_of(op))


@_rule("tensor.cast")
def _cast(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    return b.cast(xs[0].value, b.stack_type(op.results[0].type))


@_rule("dimshuffle")
def _dimshuffle(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    order = [0, *(axis + 1 if axis >= 0 else -1 for axis in op.attributes["order"])]
    return b.cast(b.dimshuffle(xs[0].value, order), b.stack_type(op.results[0].type))


@_rule("reshape")
def _reshape(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    sizes = [b.rows, *(b.size(x) for x in list(op.operands)[1:])]
    return b.create("graphc.reshape", [xs[0].value, *sizes], b.stack_type(op.results[0].type))


@_rule("broadcast_to")
def _broadcast_to(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    sizes = [b.size(x) for x in list(op.operands)[1:]]
    _require_known(b, op, sizes)
    rank = len(xs[0].value.type.shape) - 1
    missing = len(sizes) - rank
    stack = xs[0].value
    for axis in range(rank):
        if stack.type.shape[1 + axis] != 1:
            stack = b.fit(stack, 1 + axis, sizes[missing + axis])
    stack = b.dimshuffle(stack, [0, *[-1] * missing, *range(1, rank + 1)])
    return b.create("graphc.broadcast_to", [stack, b.rows, *sizes], b.stack_type(op.results[0].type))


@_rule("specify_shape")
def _specify_shape(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    sizes = [b.size(x) for x in list(op.operands)[1:]]
    _require_known(b, op, sizes)
    stack = xs[0].value
    for axis, size in enumerate(sizes, 1):
        stack = b.fit(stack, axis, size)
    return b.create("graphc.specify_shape", [stack, b.rows, *sizes], b.stack_type(op.results[0].type))


def _require_known(b: Batcher, op: Any, sizes: list[Any]) -> None:
    """Sizes that the result type knows are known to be those: otherwise that is checked, and may fail."""
    for known, size in zip(op.results[0].type.shape, sizes, strict=True):
        if known >= 0 and b.dims.size(size) != known:
            raise CannotBatch("a size that is asked for may not be the result's")


@_rule("reduce_sum", "reduce_prod", "reduce_and", "reduce_or", "softmax", "log_softmax")
def _along_axes(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    return _reduced(b, op, xs[0].value)


@_rule("reduce_max", "reduce_min", "argmax", "argmin")
def _extremum(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    stack = xs[0].value
    if "allow_empty" not in op.attributes:
        for axis in _axes(op):
            if stack.type.shape[axis + 1] <= 0:
                stack = b.fit(stack, axis + 1, const_index(1))
    return _reduced(b, op, stack)


def _axes(op: Any) -> list[int]:
    if "axes" in op.attributes:
        return list(ir.DenseI64ArrayAttr(op.attributes["axes"]))
    return [ir.IntegerAttr(op.attributes["axis"]).value]


def _reduced(b: Batcher, op: Any, stack: Any) -> Any:
    attributes = attributes_of(op)
    axes = [axis + 1 for axis in _axes(op)]
    if "axes" in attributes:
        attributes["axes"] = ir.DenseI64ArrayAttr.get(axes)
    else:
        attributes["axis"] = _integer(axes[0])
    return b.create(op.name, [stack], b.stack_type(op.results[0].type), **attributes)


def _integer(number: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


@_rule("iota")
def _iota(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    """`start + step * i` of columns."""
    result = op.results[0].type
    length = b.size(op.operands[2])
    scalar = tensor_type([], result.element_type)
    zero, one = (_literal(b, number, scalar) for number in (0, 1))
    positions = b.create("graphc.iota", [zero, one, length], tensor_type(result.shape, result.element_type))
    start, step = (b.dimshuffle(x.value, [0, -1] if x.stacked else [-1, -1]) for x in xs)
    row = b.dimshuffle(positions, [-1, 0])
    rows = step.type.shape[0]
    moved = b.create("graphc.mul", [step, row], tensor_type([rows, *result.shape], result.element_type))
    return b.create("graphc.add", [start, moved], b.stack_type(result))


def _literal(b: Batcher, number: int, type_: Any) -> Any:
    array = np.asarray(number, element_dtype(type_.element_type))
    name, attribute = constant_attribute(array, type_)
    return b.create(name, [], type_, value=attribute)


@_rule("join")
def _join(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    rank = len(op.results[0].type.shape)
    stacks = [Batch(b.repeated(x), True) for x in xs]
    values = b.agreeing(stacks, [i + 1 for i in range(rank) if i != axis])
    common = values[0].type
    for value in values[1:]:
        shape = [x if x == y else -1 for x, y in zip(common.shape, value.type.shape, strict=True)]
        common = tensor_type(shape, common.element_type)
    values = [b.cast(value, common) for value in values]
    return b.create("graphc.join", values, b.stack_type(op.results[0].type), axis=_integer(axis + 1))


@_rule("slice")
def _slice(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    _require_safe_bounds(b, op, op.operands[0], list(op.operands)[1:])
    bounds = _bounds(b, list(op.operands)[1:])
    return b.create("graphc.slice", [xs[0].value, *bounds], b.stack_type(op.results[0].type))


@_rule("update_slice")
def _update_slice(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    _require_safe_bounds(b, op, op.operands[0], list(op.operands)[2:])
    bounds = _bounds(b, list(op.operands)[2:])
    x, y = (b.repeated(batch) for batch in xs)
    rank = len(y.type.shape)
    for axis in range(1, rank):
        y = b.fit(y, axis, bounds[rank + axis])
    return b.create(
        op.name, [x, y, *bounds], b.stack_type(op.results[0].type), accumulate=op.attributes["accumulate"]
    )


def _bounds(b: Batcher, bounds: list[Any]) -> list[Any]:
    """Offsets, sizes and strides with those of the rows in front."""
    rank = len(bounds) // 3
    offsets, sizes, strides = bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]
    return [
        const_index(0),
        *(b.index(x) for x in offsets),
        b.rows,
        *(b.size(x) for x in sizes),
        const_index(1),
        *(b.index(x) for x in strides),
    ]


def _require_safe_bounds(b: Batcher, op: Any, x: Any, bounds: list[Any]) -> None:
    """Bounds are inside the array by construction, or literals that are: a check in the body would come too
    late for what is done before the loop.
    """
    if not b.checked_in_body:
        return
    rank = len(bounds) // 3
    for axis, size in enumerate(x.type.shape):
        offset, count, stride = (constant_value(bounds[axis + i * rank]) for i in range(3))
        if size < 0 or offset is None or count is None or stride is None:
            raise CannotBatch("a slice may rely on a check in the body")
        last = offset + stride * (count - 1)
        if count and not (0 <= offset < size and 0 <= last < size):
            raise CannotBatch("a slice may rely on a check in the body")


@_rule("take")
def _take(b: Batcher, op: Any, xs: list[Batch]) -> Any:
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    x, indices = xs
    type_ = b.stack_type(op.results[0].type)
    if not indices.stacked:
        if not _in_range(op.operands[1], op.operands[0].type.shape[axis]):
            raise CannotBatch("an index may be out of range")
        return b.create(op.name, [x.value, indices.value], type_, axis=_integer(axis + 1))
    if x.stacked:
        raise CannotBatch("rows are gathered from rows")
    shape = list(x.value.type.shape)
    taken = [*shape[:axis], *indices.value.type.shape, *shape[axis + 1 :]]
    result = b.create(
        op.name, [x.value, indices.value], tensor_type(taken, type_.element_type), axis=_integer(axis)
    )
    order = [axis, *(i for i in range(len(taken)) if i != axis)]
    return b.cast(b.dimshuffle(result, order), type_)


def _in_range(indices: Any, size: int) -> bool:
    owner = indices.owner
    if isinstance(owner, ir.Block) or owner.name not in CONSTANTS or size < 0:
        return False
    known = read_constant(owner.operation)
    return bool(known.size == 0 or (-size <= known.min() and known.max() < size))

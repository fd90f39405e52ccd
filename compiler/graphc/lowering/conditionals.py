# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `scf.if`: to one without tensor results, so that bufferization has nothing to copy.

Results of one element are scalars of the new operation. Other results have memory that is chosen before
it, and each region computes its value there: `place_results` writes this down as `graphc.write_buffer`, a
`graphc.write` in each region and a `graphc.write_join`, so that graphc.lowering.destinations does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.ir.views import INLINED
from graphc.ir.walk import walk
from graphc.lowering.scalar import Scalar, ScalarBuilder
from graphc.lowering.scalar_work import ScalarWork, is_one_element
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import blocks_of, conditional_size
from graphc_dialects.write import new_buffer, read_buffer, write_to

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


def place_results(function: ir.Operation) -> int:
    """Gives the results of a function's conditionals memory of their own; returns how many got some.

    Inner conditionals come first, so that the results of outer ones can be what was computed in place.

    Args:
        function: a graph-stage `func.func`.
    """
    placed = 0
    for op in reversed(walk(function)):
        if op.name == "arith.select" and _is_stored(op.results[0]):
            op = _as_regions(op)
        if op.name == "scf.if":
            placed += _place(op)
    return placed


def _is_stored(value: ir.Value) -> bool:
    """Whether a result needs memory."""
    return isinstance(value.type, ir.RankedTensorType) and not is_one_element(value)


def _as_regions(select: Any) -> Any:
    """The `scf.if` that an `arith.select` of tensors stands for; upstream makes these of trivial ones."""
    condition, *values = select.operands
    with ir.InsertionPoint(select), select.location:
        op = ir.Operation.create("scf.if", [select.results[0].type], [condition], regions=2)
        for region, value in zip(op.regions, values, strict=True):
            with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
                build.create("scf.yield", [], [_view_again(value)])
    select.results[0].replace_all_uses_with(op.results[0])
    select.erase()
    return op


def _view_again(value: ir.Value) -> Any:
    """A copy of the view that defines a value: in a region it is only computed if the region is chosen."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in INLINED:
        return value
    return owner.operation.clone(ip=ir.InsertionPoint.current).operation.results[0]


def _place(op: ir.Operation) -> int:
    stored = [number for number, result in enumerate(op.results) if _is_stored(result)]
    if not stored:
        return 0
    token = ir.Type.parse("!graphc.token")
    buffers = {}
    with ir.InsertionPoint(op), op.location:
        for number in stored:
            result = op.results[number]
            sizes = [conditional_size(result, axis) for axis in range(len(result.type.shape))]
            buffers[number] = new_buffer(result.type, sizes)
        types = [token if number in buffers else result.type for number, result in enumerate(op.results)]
        new = ir.Operation.create("scf.if", types, [op.operands[0]], regions=2)
        for block, region in zip(blocks_of(op), new.regions, strict=True):
            _write_results(block, buffers)
            block.append_to(region)
        for number, result in enumerate(op.results):
            value: ir.Value = new.results[number]
            if number in buffers:
                value = read_buffer(buffers[number], [value], result.type)
            result.replace_all_uses_with(value)
    op.erase()
    return len(stored)


def _write_results(block: ir.Block, buffers: dict[int, Any]) -> None:
    """Makes a region write what it yielded."""
    end = block.operations[-1].operation
    for number, buffer in buffers.items():
        value = end.operands[number]
        with ir.InsertionPoint(end), _location_of(value, end):
            end.operands[number] = write_to(value, buffer)


def _location_of(value: ir.Value, otherwise: ir.Operation) -> ir.Location:
    owner = value.owner
    return otherwise.location if isinstance(owner, ir.Block) else owner.location


def lower_conditional(context: FunctionConverter, op: ir.Operation) -> None:
    """Lowers an `scf.if` whose larger results are written to buffers; defines its other results."""
    numbers = [n for n, result in enumerate(op.results) if not _is_token(result)]
    types = [_register_type(op.results[n]) for n in numbers]
    new = ir.Operation.create("scf.if", types, [context.index_of(op.operands[0])], regions=2)
    for old, region in zip(blocks_of(op), new.regions, strict=False):
        block = ir.Block.create_at_start(region, [])
        with ir.InsertionPoint(block):
            context.convert_block(old, block)
            end = old.operations[-1]
            build.create("scf.yield", [], [_yielded(context, end.operands[n]) for n in numbers])
    for n, value in zip(numbers, new.results, strict=True):
        result = op.results[n]
        if isinstance(result.type, ir.RankedTensorType):
            context.define_scalar(result, Scalar(value, dtype_of(result.type.element_type)))
        else:
            context.define(result, value)


def lower_select(context: FunctionConverter, op: ir.Operation) -> None:
    """Lowers an `arith.select`, of elements instead of tensors of one element."""
    condition, *values = op.operands
    result = op.results[0]
    a, b = (_yielded(context, value) for value in values)
    value = build.select(context.index_of(condition), a, b)
    if isinstance(result.type, ir.RankedTensorType):
        context.define_scalar(result, Scalar(value, dtype_of(result.type.element_type)))
    else:
        context.define(result, value)


def _is_token(value: ir.Value) -> bool:
    return str(value.type) == "!graphc.token"


def _register_type(value: ir.Value) -> ir.Type:
    """The type of a result outside of memory."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value.type
    return ScalarBuilder(ir).type(dtype_of(value.type.element_type))


def _yielded(context: FunctionConverter, value: ir.Value) -> ir.Value:
    """An index, a number, or the element of a tensor."""
    if not isinstance(value.type, ir.RankedTensorType):
        return context.index_of(value)
    owner, dtype = value.owner, dtype_of(value.type.element_type)
    if not isinstance(owner, ir.Block) and owner.name == "tensor.empty":
        # Nobody reads it.
        return ScalarBuilder(ir).const(0, dtype).value
    return ScalarWork(context, []).element(value).value

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `scf.if`: to one without tensor results, so that bufferization has nothing to copy.

Results of one element are scalars of the new operation. Other results have memory that is chosen before it,
and each region computes its value there: `place_results` writes this down as `graphc.write_buffer`, a
`graphc.write` in each region and a `graphc.write_join`, so that graphc.lowering.memory.destinations does the
rest.

An iteration that updates an array in one region, or in both, and leaves it as it is otherwise, would copy the
array. These updates are made after the conditional, of no rows where their region was not chosen; regions
compute what is put there, and where. What was read of the array in a region is read before any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.scan_view import is_scan
from graphc.ir.views import INLINED, UPDATES, UPDATES_PART, axis_of, part_of
from graphc.ir.walk import ancestors, definition, is_defined_in, is_used_once, location_of, walk
from graphc.lowering.generic import ScalarWork, is_one_element
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc_dialects._base import dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.conditional_shapes import blocks_of, conditional_size, is_unread
from graphc_dialects.write import new_buffer, read_buffer, write_to

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


# The array that updates start from, and those of each region.
_Updates: TypeAlias = "tuple[ir.Value, list[list[ir.Operation]]]"


def place_results(function: ir.Operation, *, updates: bool = True) -> int:
    """Gives the results of a function's conditionals memory of their own; returns how many got some.

    Inner conditionals come first, so that the results of outer ones can be what was computed in place.

    Args:
        function: a graph-stage `func.func`.
        updates: make updates in loops after conditionals.
    """
    placed = 0
    for op in reversed(walk(function)):
        if op.name == "arith.select" and _is_stored(op.results[0]):
            op = _as_regions(op)
        if op.name == "scf.if":
            placed += _place(_without_updates(op) if updates and any(map(is_scan, ancestors(op))) else op)
    return placed


def _is_stored(value: ir.Value) -> bool:
    """True if a result needs memory."""
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
    op = definition(value, *INLINED)
    return value if op is None else op.clone(ip=ir.InsertionPoint.current).operation.results[0]


def _without_updates(op: ir.Operation) -> ir.Operation:
    """The conditional without the updates that can be made after it, which are made there."""
    blocks = blocks_of(op)
    moved = {}
    for number in range(len(op.results)):
        found = _updates(op, blocks, number)
        if found is not None:
            moved[number] = found
    if not moved:
        return op
    kept = [number for number in range(len(op.results)) if number not in moved]
    sides = [[x for _, updates in moved.values() for x in updates[side]] for side in (0, 1)]
    # What the updates need of each region, as results.
    inside = [
        list(dict.fromkeys(x for update in updates for x in update.operands[1:] if is_defined_in(x, block)))
        for updates, block in zip(sides, blocks, strict=True)
    ]
    with ir.InsertionPoint(op), op.location:
        types = [op.results[number].type for number in kept] + [x.type for values in inside for x in values]
        new = ir.Operation.create("scf.if", types, [op.operands[0]], regions=2)
        for side, (block, region) in enumerate(zip(blocks, new.regions, strict=True)):
            end = block.operations[-1].operation
            with ir.InsertionPoint(end):
                values = [end.operands[number] for number in kept]
                for other, needed in enumerate(inside):
                    values += needed if other == side else map(_unread, needed)
                build.create("scf.yield", [], values)
            end.erase()
            block.append_to(region)
        results = list(new.results)[len(kept) :]
        outside = [dict(zip(inside[0], results, strict=False))]
        outside.append(dict(zip(inside[1], results[len(inside[0]) :], strict=True)))
        for number, (value, by_side) in moved.items():
            for side, updates in enumerate(by_side):
                for update in updates:
                    operands = [outside[side].get(x, x) for x in update.operands[1:]]
                    value = _update_if(update, value, operands, op.operands[0], side)
            op.results[number].replace_all_uses_with(value)
    for updates in sides:
        for update in reversed(updates):
            update.erase()
    for position, number in enumerate(kept):
        op.results[number].replace_all_uses_with(new.results[position])
    op.erase()
    return new


def _updates(op: ir.Operation, blocks: list[ir.Block], number: int) -> _Updates | None:
    """The array that both regions make a result of by updates, or as it is, and the updates of each.

    Nobody else reads what is between the updates, so that all else in the regions may come before them.
    """
    if len(blocks) != 2 or not _is_stored(op.results[number]):
        return None
    bases, found = [], []
    for block in blocks:
        value, updates = block.operations[-1].operands[number], list[ir.Operation]()
        while is_defined_in(value, block) and value.owner.name in UPDATES and is_used_once(value):
            updates.insert(0, value.owner.operation)
            value = value.owner.operands[0]
        bases.append(value)
        found.append(updates)
    is_outside = not any(is_defined_in(bases[0], block) for block in blocks)
    if bases[0] != bases[1] or not is_outside or bases[0].type != op.results[number].type or not any(found):
        return None
    return bases[0], found


def _unread(value: ir.Value) -> ir.Value:
    """Stand-in that a region yields for a value of the other one."""
    if not isinstance(value.type, ir.RankedTensorType):
        return build.const_index(0)
    return build.empty(value.type, [build.const_index(0) for _ in value.type.shape])


def _update_if(
    update: ir.Operation, value: ir.Value, operands: list[ir.Value], condition: ir.Value, side: int
) -> ir.Value:
    """An update, of as many rows as in its region, or none. Of a part, the lowering takes the first rows of
    what is put there; of gathered rows, both operands are cut.
    """

    def rows(size: ir.Value) -> ir.Value:
        none = build.const_index(0)
        return build.select(condition, *((size, none) if side == 0 else (none, size)))

    with update.location:
        if update.name in UPDATES_PART:
            rank = len(value.type.shape)
            operands[1 + rank] = rows(operands[1 + rank])
        else:
            y, positions = operands
            count = rows(dim_of(positions, 0))
            operands = [_first(y, axis_of(update), count), _first(positions, 0, count)]
        attributes = {name: update.attributes[name] for name in update.attributes}
        return build.create(update.name, [value.type], [value, *operands], **attributes).result


def _first(x: ir.Value, axis: int, count: ir.Value) -> ir.Value:
    """The first elements of a tensor along an axis."""
    zero, one = build.const_index(0), build.const_index(1)
    shape = list(x.type.shape)
    shape[axis] = ir.ShapedType.get_dynamic_size()
    sizes = [count if k == axis else dim_of(x, k) for k in range(len(shape))]
    kind = ir.RankedTensorType.get(shape, x.type.element_type)
    return part_of(x, [(zero, size, one) for size in sizes], kind)


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
        with ir.InsertionPoint(end), location_of(value, end):
            end.operands[number] = write_to(value, buffer)


def lower_conditional(context: Conversion, op: ir.Operation) -> None:
    """Lowers an `scf.if` whose larger results are written to buffers; defines its other results."""
    numbers = [n for n, result in enumerate(op.results) if str(result.type) != "!graphc.token"]
    types = [_register_type(op.results[n]) for n in numbers]
    new = ir.Operation.create("scf.if", types, [context.index_of(op.operands[0])], regions=2)
    for old, region in zip(blocks_of(op), new.regions, strict=False):
        block = ir.Block.create_at_start(region, [])
        with ir.InsertionPoint(block):
            context.convert_block(old, block)
            end = old.operations[-1]
            build.create("scf.yield", [], [_yielded(context, end.operands[n]) for n in numbers])
    for n, value in zip(numbers, new.results, strict=True):
        _define(context, op.results[n], value)


def _define(context: Conversion, result: ir.Value, value: ir.Value) -> None:
    """Says what an index is, or a tensor of one element."""
    if isinstance(result.type, ir.RankedTensorType):
        context.define_scalar(result, Scalar(value, dtype_of(result.type.element_type)))
    else:
        context.define(result, value)


def lower_select(context: Conversion, op: ir.Operation) -> None:
    """Lowers an `arith.select`, of elements instead of tensors of one element."""
    condition, *values = op.operands
    a, b = (_yielded(context, value) for value in values)
    _define(context, op.results[0], build.select(context.index_of(condition), a, b))


def _register_type(value: ir.Value) -> ir.Type:
    """The type of a result outside of memory."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value.type
    return ScalarBuilder(ir).type(dtype_of(value.type.element_type))


def _yielded(context: Conversion, value: ir.Value) -> ir.Value:
    """An index, a number, or the element of a tensor."""
    if not isinstance(value.type, ir.RankedTensorType):
        return context.index_of(value)
    dtype = dtype_of(value.type.element_type)
    if is_unread(value):
        return ScalarBuilder(ir).const(0, dtype).value
    return ScalarWork(context, []).element(value).value

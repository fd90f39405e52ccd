# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops in which rows of a batch have nothing to do with each other, such as recurrent networks."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS
from graphc.ir.walk import is_inside, walk
from graphc.passes.gpu._loops import is_poll
from graphc.passes.gpu._nest import Nest
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_VIEWS = ("memref.cast", "memref.subview")
_HARMLESS = VIEWS | {"memref.alloc", "memref.dim"}
# A buffer that is no view of another, and the axis of it that a batch lies along.
Place = tuple[ir.Value, int]


@record()
class Segment:
    """Nests that a thread does one after the other for an element.

    Attributes:
        nests: the first one may be a reduction; the others are elementwise work on its result's elements.
        fill: what writes a number to the result of the first one before.
    """

    nests: list[Nest]
    fill: Nest | None = None


@record()
class BatchLoop:
    """A loop that blocks of threads can run for their own rows of a batch.

    Attributes:
        op: the `scf.for`.
        segments: what an iteration does, in order; threads wait for each other after each.
        allocations: arrays that live for one iteration.
    """

    op: ir.Operation
    segments: list[Segment] = field(default_factory=list)
    allocations: list[ir.Operation] = field(default_factory=list)

    @cached_property
    def carried(self) -> dict[ir.Value, tuple[ir.Value, ir.Value]]:
        """Values carried into an iteration: the initial ones, or those that an iteration hands on."""
        block = self.op.regions[0].blocks[0]
        *_, end = block.operations
        first = list(self.op.operands)[3:]
        yields = list(end.operation.operands)
        return dict(zip(list(block.arguments)[1:], zip(first, yields, strict=True), strict=True))


def as_batch_loop(op: ir.Operation, polls: frozenset[str]) -> BatchLoop | None:
    """The loop as work on rows of a batch; None if it is something else."""
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations][:-1]
    body = [inner for inner in body if not is_poll(inner, polls)]
    if not all(isinstance(value.type, ir.MemRefType) for value in list(block.arguments)[1:]):
        return None
    loop = BatchLoop(op)
    for inner in body:
        if inner.name == "linalg.generic":
            if not _take(loop, Nest(inner)):
                return None
        elif inner.name not in _HARMLESS and not inner.name.startswith("arith."):
            return None
        if inner.name == "memref.alloc":
            loop.allocations.append(inner)
    if not any(any(segment.nests[0].reduction) for segment in loop.segments) or not _keeps_apart(loop):
        return None
    if not all(_is_sized_outside(loop, alloc) for alloc in loop.allocations):
        return None
    nests = [nest for segment in loop.segments for nest in segment.nests]
    return loop if all(knows_size(loop, nest.outputs[0].buffer, 0) for nest in nests) else None


def _take(loop: BatchLoop, nest: Nest) -> bool:
    """Adds a nest to the last segment, or begins another one."""
    if nest.rank < 1 or nest.reduction[0]:
        return False
    reduced = any(nest.reduction)
    kept = [axis for axis in range(nest.rank) if not nest.reduction[axis]]
    if any(operand.axes != kept for operand in nest.outputs) or (reduced and len(nest.outputs) != 1):
        return False
    last = loop.segments[-1] if loop.segments else None
    if reduced:
        begun = Segment([nest])
        buffer = nest.outputs[0].buffer
        if last is not None and len(last.nests) == 1 and _is_fill(last.nests[0], buffer):
            loop.segments.pop()
            begun.fill = last.nests[0]
        loop.segments.append(begun)
    elif last is not None and _goes_on(last, nest):
        last.nests.append(nest)
    else:
        loop.segments.append(Segment([nest]))
    return True


def _is_fill(nest: Nest, buffer: ir.Value) -> bool:
    """True if a nest writes one number, from outside, to all of a buffer."""
    if nest.inputs or nest.body or len(nest.outputs) != 1 or nest.outputs[0].buffer != buffer:
        return False
    return nest.yields[0] != nest.outputs[0].argument


def _goes_on(segment: Segment, nest: Nest) -> bool:
    """True if a nest is work on the same elements, each of which needs no others that the segment writes."""
    written = {operand.buffer for each in segment.nests for operand in each.outputs}
    whole = list(range(nest.rank))
    own = [operand for operand in nest.operands if operand.axes == whole]
    if not any(operand.buffer in written for operand in own):
        return False
    others = [operand.buffer for operand in nest.inputs if operand.axes != whole]
    return not {_root(buffer) for buffer in [*others, *nest.gathered]} & {_root(buffer) for buffer in written}


def _root(buffer: ir.Value) -> ir.Value:
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _HARMLESS - {"memref.alloc"}:
        buffer = buffer.owner.operands[0]
    return buffer


def _keeps_apart(loop: BatchLoop) -> bool:
    """True if memory that the loop writes is read and written at the rows of a block only."""
    nests = [nest for segment in loop.segments for nest in segment.nests]
    places: dict[ir.Value, int] = {}
    for nest in nests:
        for operand in nest.outputs:
            found = _places(loop, operand.buffer, 0, set())
            if found is None or any(places.setdefault(root, axis) != axis for root, axis in found):
                return False
    # What is handed on may be any of the memory that the loop was given.
    for argument, ends in loop.carried.items():
        found = _places(loop, argument, 0, set())
        if found is None or any(_places(loop, end, 0, set()) is None for end in ends):
            return False
        if any(places.setdefault(root, axis) != axis for root, axis in found):
            return False
    if len({_root(view) for view in places}) < len(places):
        return False
    return all(_reads_own(loop, nest, places) for nest in nests)


def _reads_own(loop: BatchLoop, nest: Nest, places: dict[ir.Value, int]) -> bool:
    """True if what a nest reads of written memory is of its own row."""
    written = {_root(view) for view in places}
    for operand in nest.inputs:
        if not _memory(loop, operand.buffer, set()) & written:
            continue
        if operand.axes.count(0) != 1:
            return False
        found = _places(loop, operand.buffer, operand.axes.index(0), set())
        if found is None or any(places.get(root) != axis for root, axis in found):
            return False
    for load in [op for outer in nest.body for op in [outer, *walk(outer)] if op.name == "memref.load"]:
        buffer, *indices = load.operands
        if not _memory(loop, buffer, set()) & written:
            continue
        rows = [axis for axis, index in enumerate(indices) if _is_row(index)]
        found = _places(loop, buffer, rows[0], set()) if len(rows) == 1 else None
        if found is None or any(places.get(root) != axis for root, axis in found):
            return False
    return True


def _is_row(index: ir.Value) -> bool:
    owner = index.owner
    if isinstance(owner, ir.Block) or owner.name != "linalg.index":
        return False
    return ir.IntegerAttr(owner.attributes["dim"]).value == 0


def _memory(loop: BatchLoop, buffer: ir.Value, seen: set[ir.Value]) -> set[ir.Value]:
    """The values that a buffer may be a view of."""
    root = _root(buffer)
    if root not in loop.carried or root in seen:
        return {root}
    seen.add(root)
    return {found for end in loop.carried[root] for found in _memory(loop, end, seen)}


def _places(loop: BatchLoop, buffer: ir.Value, axis: int, seen: set[ir.Value]) -> set[Place] | None:
    """Strides of an axis of a buffer, from its beginning on, in all memory that it may be; None: unknown.

    What is made before the loop of other memory, and is no part of it, stands for that.
    """
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _VIEWS:
        inner = axis if buffer.owner.name == "memref.cast" else _axis_before(buffer.owner.operation, axis)
        if inner is None:
            return None
        buffer, axis = buffer.owner.operands[0], inner
    if buffer not in loop.carried:
        return {(buffer, axis)} if buffer == _root(buffer) or not is_inside(buffer, loop.op) else None
    if buffer in seen:
        return set()
    seen.add(buffer)
    found: set[Place] = set()
    for end in loop.carried[buffer]:
        more = _places(loop, end, axis, seen)
        if more is None:
            return None
        found |= more
    return found


def _axis_before(view: ir.Operation, axis: int) -> int | None:
    """The axis of a subview's source that is one of its result, if it begins at 0 and goes in steps of 1."""
    sizes, offsets, strides = (
        list(ir.DenseI64ArrayAttr(view.attributes[f"static_{name}"]))
        for name in ("sizes", "offsets", "strides")
    )
    rank = ir.MemRefType(view.results[0].type).rank
    kept = [i for i, size in enumerate(sizes) if size != 1] if len(sizes) > rank else list(range(rank))
    if len(kept) != rank or offsets[kept[axis]] != 0 or strides[kept[axis]] != 1:
        return None
    return kept[axis]


# -- sizes that the host has to know -----------------------------------------------------------------------


def _is_sized_outside(loop: BatchLoop, alloc: ir.Operation) -> bool:
    return all(_can_move(loop, size) for size in alloc.operands)


def _can_move(loop: BatchLoop, value: ir.Value) -> bool:
    """True if an index can be computed before the loop."""
    if not is_inside(value, loop.op):
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "memref.dim":
        axis = build.constant_value(owner.operands[1])
        return axis is not None and knows_size(loop, owner.operands[0], axis)
    return owner.name.startswith("arith.") and all(_can_move(loop, operand) for operand in owner.operands)


def knows_size(loop: BatchLoop, buffer: ir.Value, axis: int) -> bool:
    """True if a size of a buffer can be computed before the loop."""
    found = _size(loop, buffer, axis)
    return isinstance(found, tuple | int) or (found is not None and _can_move(loop, found))


def size_before(loop: BatchLoop, buffer: ir.Value, axis: int) -> ir.Value:
    """A size of a buffer, computed at the insertion point, which is before the loop."""
    found = _size(loop, buffer, axis)
    assert found is not None, "it was asked whether it is known"
    if isinstance(found, int):
        return build.const_index(found)
    return build.dim(*found) if isinstance(found, tuple) else moved(loop, found)


def _size(loop: BatchLoop, buffer: ir.Value, axis: int) -> int | ir.Value | tuple[ir.Value, int] | None:
    """A number, an index, or an axis of a buffer from outside of the loop."""
    known = ir.MemRefType(buffer.type).shape[axis]
    if known >= 0:
        return int(known)
    if buffer in loop.carried:
        return _size(loop, loop.carried[buffer][0], axis)
    if not is_inside(buffer, loop.op):
        return buffer, axis
    owner = buffer.owner.operation
    if owner.name == "memref.cast":
        return _size(loop, owner.operands[0], axis)
    if owner.name == "memref.alloc":
        shape = list(ir.MemRefType(buffer.type).shape)
        return owner.operands[sum(size < 0 for size in shape[:axis])]
    return _size_of_view(owner, axis) if owner.name == "memref.subview" else None


def _size_of_view(view: ir.Operation, axis: int) -> ir.Value | None:
    """The operand of a subview that is a size of its result."""
    counts = list(ir.DenseI32ArrayAttr(view.attributes["operandSegmentSizes"]))
    sizes = list(ir.DenseI64ArrayAttr(view.attributes["static_sizes"]))
    given = iter(list(view.operands)[sum(counts[:2]) : sum(counts[:3])])
    dynamic = [next(given) if size == build.DYNAMIC else None for size in sizes]
    rank = ir.MemRefType(view.results[0].type).rank
    if len(sizes) > rank:
        dynamic = [x for x, size in zip(dynamic, sizes, strict=True) if size != 1]
    return dynamic[axis] if len(dynamic) == rank else None


def moved(loop: BatchLoop, value: ir.Value) -> ir.Value:
    """An index, computed at the insertion point, which is before the loop."""
    if not is_inside(value, loop.op):
        return value
    operands = list(value.owner.operands)
    if value.owner.name == "memref.dim":
        axis = build.constant_value(operands[1])
        assert axis is not None, "it was asked whether it is known"
        return size_before(loop, operands[0], axis)
    copy = value.owner.clone()
    for place, operand in enumerate(operands):
        copy.operands[place] = moved(loop, operand)
    return copy.results[0]


def is_outside(loop: BatchLoop, buffer: ir.Value) -> bool:
    """True if a buffer is made before the loop, which does not write it."""
    nests = [nest for segment in loop.segments for nest in segment.nests]
    written = {root for nest in nests for o in nest.outputs for root in _memory(loop, o.buffer, set())}
    return not is_inside(buffer, loop.op) and _root(buffer) not in written

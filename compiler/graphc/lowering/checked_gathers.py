# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads at indices are done while these are checked, so that long indices are read once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphc.ir import build
from graphc.ir.value import all_of, literal
from graphc.ir.walk import definition, is_used_once
from graphc.lowering.carried import either
from graphc.lowering.partial_reductions import generic
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_runtime.record import record

# What may be done before the check although it stands after it.
_MOVABLE = ("arith.", "complex.constant", "memref.alloc", "memref.cast", "memref.dim")


def merge_checked_gathers(function: ir.Operation) -> int:
    """Merges the smallest and largest element of an index with what is read there after the check of them.

    The generic of both does not read what lies outside: an element that the check will find is a zero. What
    it writes must be new memory, as it does so before the check fails.

    Args:
        function: a `func.func` on buffers.

    Returns:
        How many were merged.
    """
    count = 0
    for block in function.regions[0].blocks:
        operations = [op.operation for op in block.operations]
        at = 0
        while at < len(operations):
            extremes = _Extremes.of(operations[at])
            found = None if extremes is None else _find(extremes, block)
            at += 1
            if found is not None:
                _merge(*found)
                count += 1
                # Two of the operations are gone, and those that moved stand before.
                operations = [op.operation for op in block.operations]
                at += len(found[2])
    return count


@record()
class _Extremes:
    """The generic that finds the smallest and largest element of a vector."""

    op: Any
    index: Any
    results: tuple[Any, Any]
    names: tuple[str, str]

    @classmethod
    def of(cls, op: ir.Operation) -> _Extremes | None:
        if op.name != "linalg.generic" or len(op.operands) != 3 or _iterators(op) != ["reduction"]:
            return None
        if list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])) != [1, 2]:
            return None
        *body, end = (inner.operation for inner in op.regions[0].blocks[0].operations)
        names = [inner.name for inner in body]
        if sorted(names) != ["arith.maxsi", "arith.minsi"] or [x.owner for x in end.operands] != body:
            return None
        index, *results = op.operands
        return cls(op, index, (results[0], results[1]), (names[0], names[1]))


def _find(extremes: _Extremes, block: ir.Block) -> tuple[_Extremes, ir.Operation, list[ir.Operation]] | None:
    """The generic that reads at the indices after the checks, and what it needs that stands between."""
    operations = [op.operation for op in block.operations]
    late: set[object] = set()
    early: list[Any] = []
    for op in operations[operations.index(extremes.op) + 1 :]:
        if op.name == "linalg.generic":
            return (extremes, op, early) if _is_gather(op, extremes) else None
        is_result = op.name == "memref.load" and op.operands[0] in extremes.results
        if is_result or any(x in late for x in op.operands):
            if not is_result and not (op.name.startswith("arith.") or raises(op)):
                return None
            late.update(op.results)
        elif op.name.startswith(_MOVABLE):
            early.append(op)
        else:
            return None
    return None


def _is_gather(op: ir.Operation, extremes: _Extremes) -> bool:
    """True if a generic reads at the indices, and writes vectors that nobody else knows yet."""
    inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    operands, results = operands[:inputs], operands[inputs:]
    if _iterators(op) != ["parallel"] or extremes.index not in operands:
        return False
    if not all(ir.MemRefType(x.type).rank == 1 and _is_new(x) and x not in operands for x in results):
        return False
    loads = list(_loads(op))
    index = op.regions[0].blocks[0].arguments[operands.index(extremes.index)]
    return bool(loads) and all(load.operands[0] not in results and _depends(load, index) for load in loads)


def _is_new(buffer: ir.Value) -> bool:
    """True if memory has no contents that are lost if an error stops the function."""
    op = definition(buffer)
    return is_used_once(buffer) if op is None else op.name == "memref.alloc"


def _loads(generic: ir.Operation) -> Iterator[ir.Operation]:
    for op in generic.regions[0].blocks[0].operations:
        if op.operation.name == "memref.load":
            yield op.operation


def _depends(op: ir.Operation, argument: ir.Value) -> bool:
    """True if some position of a load is computed from a block argument."""
    pending = list(op.operands)[1:]
    while pending:
        value = pending.pop()
        if value == argument:
            return True
        made = definition(value)
        if made is not None and made.name.startswith("arith."):
            pending += made.operands
    return False


def _merge(extremes: _Extremes, gather: ir.Operation, early: list[ir.Operation]) -> None:
    for op in early:
        op.move_before(extremes.op)
    inputs, _ = ir.DenseI32ArrayAttr(gather.attributes["operandSegmentSizes"])
    operands = [*gather.operands, *extremes.results]
    listed = [*gather.attributes["indexing_maps"], *list(extremes.op.attributes["indexing_maps"])[1:]]
    maps = [ir.AffineMapAttr(each).value for each in listed]
    with ir.InsertionPoint(extremes.op), gather.location:
        merged = generic(operands[:inputs], operands[inputs:], maps, [True])
    old = gather.regions[0].blocks[0]
    element = ir.MemRefType(extremes.index.type).element_type
    types = [*(x.type for x in old.arguments), element, element]
    block = ir.Block.create_at_start(merged.regions[0], types, [gather.location] * len(types))
    for before, after in zip(old.arguments, list(block.arguments)[:-2], strict=True):
        before.replace_all_uses_with(after)
    index = block.arguments[list(gather.operands).index(extremes.index)]
    with ir.InsertionPoint(block), gather.location:
        found = [
            build.create(name, [element], [argument, index]).result
            for name, argument in zip(extremes.names, list(block.arguments)[-2:], strict=True)
        ]
        *_, end = (op.operation for op in old.operations)
        yielded = build.create("linalg.yield", [], [*end.operands, *found])
    end.erase()
    for op in [op.operation for op in old.operations]:
        op.move_before(yielded)
    for load in list(_loads(merged)):
        _guard(load, merged)
    extremes.op.erase()
    gather.erase()


def _guard(load: ir.Operation, generic: ir.Operation) -> None:
    """Makes a load one of what exists, and zero otherwise."""
    buffer, *positions = load.operands
    with ir.InsertionPoint(generic), load.location:
        sizes = [build.dim(buffer, axis) for axis in range(len(positions))]
    kind = load.results[0].type
    with ir.InsertionPoint(load), load.location:
        inside = all_of([position.below(size) for position, size in zip(positions, sizes, strict=True)])
        (found,) = either(inside, [kind], lambda: [buffer[positions]], lambda: [literal(0, kind)])
    load.results[0].replace_all_uses_with(found)
    load.erase()


def _iterators(op: ir.Operation) -> list[str]:
    names = ("reduction", "parallel")
    return [next(name for name in names if name in str(kind)) for kind in op.attributes["iterator_types"]]

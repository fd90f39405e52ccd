# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds loops and operations that only copy, and says why they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.lifetimes import VIEWS, root_of
from graphc.passes.buffer.memory._buffer_sizes import item_size, size_of
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    pass

_MOST_OPERATIONS = 24
_AROUND = ("scf.for", "scf.yield", "memref.load", "memref.store", "memref.subview", "memref.dim")
_COORDINATES = ("arith.constant", "arith.addi", "arith.subi", "arith.muli")


@record(frozen=True)
class Copy:
    """A copy.

    Attributes:
        source, target: what kind of memory: "input", "result", or "buffer".
        sizes: index values or numbers whose product is the number of elements.
        item: bytes of an element.
        why: the reason, as far as it is known.
    """

    source: str
    target: str
    sizes: list[ir.Value]
    item: int
    why: str


def find_copy(op: ir.Operation) -> Copy | None:
    """The copy that an operation is, or None."""
    if op.name == "memref.copy":
        source, target = op.operands
        return _copy(source, target, _shape(source))
    if op.name != "scf.for":
        return None
    inside = _parts(op)
    if inside is None:
        return None
    loads = [inner for inner in inside if inner.name == "memref.load"]
    stores = [inner for inner in inside if inner.name == "memref.store"]
    if len(loads) != 1 or len(stores) != 1 or stores[0].operands[0] != loads[0].results[0]:
        return None
    source, target = loads[0].operands[0], stores[0].operands[1]
    if source == target:
        return None
    loops = [op, *(inner for inner in inside if inner.name == "scf.for")]
    return _copy(source, target, [_trips(loop) for loop in loops])


def _parts(loop: ir.Operation) -> list[ir.Operation] | None:
    """The operations in a loop; None if there are many, or others than those of a copy."""
    found: list[Any] = []
    fits = True

    def visit(op: ir.Operation) -> ir.Operation:
        nonlocal fits
        fits = len(found) <= _MOST_OPERATIONS and (op.name in _AROUND or op.name in _COORDINATES)
        found.append(op)
        return ir.WalkResult.ADVANCE if fits else ir.WalkResult.INTERRUPT

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:] if fits else None


def _trips(loop: ir.Operation) -> ir.Value | None:
    low, high, step = loop.operands[:3]
    return high if constant_value(low) == 0 and constant_value(step) == 1 else None


def _shape(memref: ir.Value) -> list[object]:
    return [size_of(memref, axis) for axis in range(memref.type.rank)]


def _copy(source: ir.Value, target: ir.Value, sizes: list[Any]) -> Copy:
    origin, place = root_of(source), root_of(target)
    kinds = _kind(origin), _kind(place)
    why = _why(kinds, target == place, _reads(origin) > 1)
    return Copy(*kinds, sizes, item_size(source.type.element_type) or 0, why)


def _why(kinds: tuple[str, str], whole: bool, shared: bool) -> str:
    if kinds[0] == "input" and not whole:
        return "an input becomes part of a larger array"
    if kinds[0] == "input":
        return (
            "a result must not share memory with an input" if kinds[1] == "result" else "an input is changed"
        )
    if kinds == ("result", "result") and whole:
        return "two results must not share memory"
    part = "the value was not computed in its place" + ("" if whole else " in the larger array")
    return part + ("; it is read elsewhere too" if shared else "")


def _reads(memref: ir.Value) -> int:
    """The number of loads and copies from a memref and its views."""
    count = 0
    for use in memref.uses:
        op = use.owner.operation
        if op.name == "memref.load" or (op.name == "memref.copy" and use.operand_number == 0):
            count += 1
        elif op.name in VIEWS:
            count += _reads(op.results[0])
    return count


def _kind(memref: ir.Value) -> str:
    if not isinstance(memref.owner, ir.Block) or memref.owner.owner.operation.name != "func.func":
        return "buffer"
    return "result" if _is_written(memref, set()) else "input"


def _is_written(memref: ir.Value, seen: set[ir.Operation]) -> bool:
    """Whether a store or a copy writes to a memref or a view of it."""
    for use in memref.uses:
        op = use.owner.operation
        if (op.name, use.operand_number) in (("memref.store", 1), ("memref.copy", 1)):
            return True
        if op.name in VIEWS and op not in seen:
            seen.add(op)
            if _is_written(op.results[0], seen):
                return True
    return False

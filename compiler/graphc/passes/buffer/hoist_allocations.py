# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes allocations out of loops."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.helpers import declare_helper
from graphc.ir.walk import ancestors, blocks_of, definition, walk_for
from graphc.library.helpers import Arena
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_dialects.walk import is_inside

_LOOPS = ("scf.for", "scf.while", "scf.parallel")
_ALIASES = (
    "memref.subview",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.view",
    "arith.select",
)
# What a size is computed with.
_MOVABLE = (
    "arith.",
    "memref.dim",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.subview",
)
# A division by zero that the loop would not reach must not be brought forward.
_FIXED = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")


class HoistAllocations(Pass):
    """Moves a `memref.alloc` out of every loop in which its size does not change.

    One buffer then serves all iterations. That is right because a buffer is always written before it is read
    (`tensor.empty` has no contents) and because only buffers are moved that no iteration hands to the next:
    those that reach the loop's `scf.yield`, directly or through a view or an inner loop, stay. What sizes are
    computed with moves along, as far as it is the same in all iterations.

    Of an allocation in a region of a conditional, the size must be a literal or that of an array: a condition
    may be there to refuse a size.

    Where the size does change, the iteration gives the memory back at its end: `graphc_mark` and
    `graphc_release_to` surround its body, unless a buffer from it is handed on.

    Upstream's `buffer-loop-hoisting` needs the sizes outside already, and upstream's promotion to the stack
    would leave an `alloca` in a loop, which takes stack in each iteration.
    """

    stage = "buffer"
    acts_on = frozenset({"memref.alloc"})

    def run(self, module: ir.Module) -> None:
        loops: dict[Any, list[Any]] = {}
        for op in walk_for(module.operation, self.acts_on):
            loop = _outermost(op)
            if loop is not None:
                _move(op, loop)
                self.count("hoisted allocations")
            loop = _enclosing_loop(op)
            if loop is not None:
                loops.setdefault(loop, []).append(op)
        for loop, buffers in loops.items():
            if not any(_escapes(op.results[0], loop, set()) for op in buffers):
                _give_back(module, loop)
                self.count("loops that give memory back")


def _outermost(op: ir.Operation) -> ir.Operation | None:
    """The outermost loop that the allocation can leave, or None."""
    found, inner = None, op
    while True:
        loop = _enclosing_loop(inner)
        if loop is None or _escapes(op.results[0], loop, set()):
            return found
        if not all(_is_invariant(size, loop) for size in op.operands):
            return found
        if _is_guarded(op, loop) and not _are_sizes_of_array(op.operands):
            return found
        found = inner = loop


def _enclosing_loop(op: ir.Operation) -> ir.Operation | None:
    return next((around for around in ancestors(op.parent) if around.name in _LOOPS), None)


def _escapes(value: ir.Value, loop: ir.Operation, seen: set[ir.Value]) -> bool:
    """True if a buffer may be handed to the loop's next iteration, or out of it."""
    if value in seen:
        return False
    seen.add(value)
    for use in value.uses:
        user = use.owner.operation
        if user.name in _ALIASES:
            aliases = list(user.results)
        elif user.name in ("scf.yield", "scf.condition"):
            parent = user.parent.operation
            if parent == loop:
                return True
            aliases = list(parent.results) + _arguments(parent)
        elif user.name in _LOOPS:
            aliases = list(user.results) + _arguments(user)
        else:
            continue
        if any(_escapes(alias, loop, seen) for alias in aliases if "memref" in str(alias.type)):
            return True
    return False


def _arguments(op: ir.Operation) -> list[Any]:
    return [a for block in blocks_of(op) for a in block.arguments]


def _is_invariant(value: ir.Value, loop: ir.Operation) -> bool:
    """True if a size can be computed before the loop."""
    if not is_inside(value, loop):
        return True
    op = definition(value)
    if op is None or op.name.startswith(_FIXED) or not op.name.startswith(_MOVABLE):
        return False
    return all(_is_invariant(x, loop) for x in op.operands)


def _give_back(module: ir.Module, loop: ir.Operation) -> None:
    """Frees at the end of each iteration what it allocated."""
    i64 = ir.IntegerType.get_signless(64)
    # arena-allocation gives the two functions the context.
    marking, giving = Arena("mark"), Arena("release_to")
    declare_helper(module, marking, [], [i64])
    declare_helper(module, giving, [i64], [])
    body = loop.regions[len(loop.regions) - 1].blocks[0]
    operations = [op.operation for op in body.operations]
    with ir.InsertionPoint(operations[0]), loop.location:
        mark = build.call(marking.symbol, [i64], []).result
    with ir.InsertionPoint(operations[-1]), loop.location:
        build.call(giving.symbol, [], [mark])


def _is_guarded(op: ir.Operation, loop: ir.Operation) -> bool:
    """True if a condition in the loop decides about an allocation."""
    return bool(next(x for x in ancestors(op.parent) if x == loop or x.name == "scf.if") != loop)


def _are_sizes_of_array(sizes: Any) -> bool:
    """True if at most one size is unknown, which is that of an array: it does no harm unless it is needed."""
    return len(sizes) <= 1 and all(definition(size, "memref.dim") is not None for size in sizes)


def _move(op: ir.Operation, loop: ir.Operation) -> None:
    """Moves an operation, and what its operands are computed with, before the loop."""
    for value in op.operands:
        if is_inside(value, loop):
            _move(value.owner.operation, loop)
    op.move_before(loop)

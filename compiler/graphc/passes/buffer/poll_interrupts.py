# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Polls for interrupts in loops."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.donations import donated, offered
from graphc.ir.helpers import callee_of, helper_of
from graphc.ir.value import smaller
from graphc.ir.walk import blocks_of, functions, static_steps, symbol_of, walk, walk_for, within
from graphc.library.helpers import Poll
from graphc.lowering import carried
from graphc.lowering.scans.scan import FEW
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_LOOPS = ("scf.for", "scf.while", "scf.parallel", "scf.forall")
# Operations whose time depends on sizes, or is not known.
_LONG = (*_LOOPS, "func.call", "llvm.call", "memref.copy", "linalg.generic", "linalg.fill")
_READS = ("memref.load", "memref.dim", "vector.load", "vector.transfer_read")


@record()
class PollInterrupts(Pass):
    """Decides which loops notice Ctrl-C, and how often they look.

    `convert-to-linalg` puts a call of `graphc_tick` (or of `graphc_progress_<name>`) at the end of each
    iteration of a loop made from a scan. A tick costs about a nanosecond and hinders LLVM in loops of scalars
    only, so:

    * a loop whose iterations contain no other loop, call or copy becomes a loop over blocks of `block`
      iterations, and the tick moves to the end of a block, the last one excepted. With at most `block`
      iterations it loses the tick;
    * a loop of at most `few` iterations loses its tick: loops in it have their own. Reports of progress stay;
    * a kernel that overwrites the value of a shared variable in place (`graphc.donated`) must not end once it
      has begun to: what comes then has no tick.

    Loops over the elements of arrays have none either; arrays end.

    Options:
        block: iterations of scalar loops between two ticks.
        few: loops with no more iterations have no tick.
    """

    stage = "buffer"
    block: int = 16384
    few: int = FEW

    def run(self, module: ir.Module) -> None:
        polls = _declarations(module)
        if not polls:
            return
        for function in functions(module):
            calls = [op for op in walk_for(function, ("func.call",)) if callee_of(op) in polls]
            protected = _first_write(module, function) if calls else None
            for call in calls:
                if protected is not None and _position(function, call) >= protected:
                    call.erase()
                    self.count("removed before what must not be interrupted")
                elif call.parent.name in _LOOPS:
                    self._place(call, call.parent.operation)
        self._forget_unused(module, polls)

    def _forget_unused(self, module: ir.Module, polls: dict[str, ir.Operation]) -> None:
        """Drops declarations of what nothing calls."""
        used = {callee_of(op) for op in walk_for(module.operation, ("func.call",))}
        for name, op in polls.items():
            if name not in used:
                op.erase()

    def _place(self, call: ir.Operation, loop: ir.Operation) -> None:
        steps = static_steps(loop) if loop.name == "scf.for" else None
        scalar = not any(op.name in _LONG and op != call for op in walk(loop))
        few = self.block if scalar else self.few
        if steps is not None and steps <= few and not len(call.operands):
            call.erase()
            self.count("removed from short loops")
        elif scalar and loop.name == "scf.for":
            _in_blocks(loop, call, self.block)
            self.count("loops in blocks")
        else:
            self.count("loops that tick")


def _declarations(module: ir.Module) -> dict[str, ir.Operation]:
    """By name, the declarations of what is called in loops."""
    operations = [op.operation for op in module.body.operations]
    return {symbol_of(op): op for op in operations if isinstance(helper_of(op), Poll)}


def _in_blocks(loop: ir.Operation, call: ir.Operation, size: int) -> None:
    """Makes a loop the inner one of a loop over blocks of iterations, at whose end the call stands."""
    low, high, step, *initial = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        stride = step * size
        outer, body = carried.loop(high, initial, start=low, step=stride)
    for old, new in zip(loop.results, outer.results, strict=True):
        old.replace_all_uses_with(new)
    with ir.InsertionPoint(body), loop.location:
        start, *states = body.arguments
        following = start + stride
        end, more = smaller(following, high), following < high
        loop.move_after(more.owner)
        with carried.when(more):
            call.detach_from_parent()
            ir.InsertionPoint.current.insert(call)
        build.create("scf.yield", [], list(loop.results))
    if len(call.operands):
        call.operands[0] = following
    loop.operands[0], loop.operands[1] = start, end
    for position, value in enumerate(states, 3):
        loop.operands[position] = value


# -- what must not be interrupted ---------------------------------------------------------------------------


def _first_write(module: ir.Module, function: ir.Operation) -> int | None:
    """The position in the function's block of what may first write to the array of a cell; None if nothing
    does.
    """
    if symbol_of(function) != "main":
        return None
    arguments = list(function.regions[0].blocks[0].arguments)
    try:
        cells = {donation.argument for donation in offered(module) if donation.keeps_on_failure}
        written = [arguments[argument] for argument, _ in donated(module).pairs if argument in cells]
    except (ValueError, IndexError):
        fail(module.operation, "'graphc.donate' and 'graphc.donated' must be those of convert-to-linalg")
    found = [_position(function, op) for argument in written for op in _writers(argument, set())]
    return min(found, default=None)


def _writers(value: ir.Value, seen: set[object]) -> list[ir.Operation]:
    """The operations that may write to a buffer: all that use it or a view of it, but for reads."""
    found: list[ir.Operation] = []
    if value in seen:
        return found
    seen.add(value)
    for use in value.uses:
        op = use.owner.operation
        if op.name in _READS:
            continue
        if op.name in _LOOPS:
            inner = [a for block in blocks_of(op) for a in block.arguments]
            aliases = [*op.results, *inner]
        elif op.name == "scf.yield":
            parent = op.parent.operation
            inner = [a for block in blocks_of(parent) for a in block.arguments]
            aliases = [*parent.results, *inner]
        elif len(op.results):
            aliases = list(op.results)
        else:
            found.append(op)
            continue
        if op.name in ("func.call", "llvm.call"):
            found.append(op)
        for alias in aliases:
            if _may_alias(alias):
                found += _writers(alias, seen)
    return found


def _may_alias(value: ir.Value) -> bool:
    text = str(value.type)
    return text.startswith(("memref", "!llvm.ptr", "index", "i64"))


def _position(function: ir.Operation, op: ir.Operation) -> int:
    """The position in the function's block of an operation, or of the one that contains it."""
    block = function.regions[0].blocks[0]
    return [other.operation for other in block.operations].index(within(op, block))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Known facts about recurrences: how long they change, and that their steps run one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.ir import build
from graphc.ir.lifetimes import root_of
from graphc.ir.value import smaller
from graphc.ir.walk import copy_with, is_parameter, static_steps, walk_for
from graphc.lowering.carried import loop as count
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_PURE = ("arith.", "math.")
# Copies of a step only make more code of a recurrence, each step of which waits for the one before it.
_SERIAL = "#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>>"
_ORDERED = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.fma")
# What stores the same in each step waits for nothing: a second vector at a time does not help.
_FILL = "#llvm.loop_annotation<interleave = <count = 1 : i32>>"


@record()
class SettleRecurrences(Pass):
    """Recurrences that do not change any more are not computed further.

    The next state of a loop that carries floating-point numbers may depend on nothing but the state and on
    values from before the loop: `g = 0.9 * g`, the derivative of a decaying recurrence, or a simulation
    without inputs. Once a step leaves all bits of the state as they were, all later steps do, and store the
    same. So such a loop computes `block` steps at a time as long as the last of them has changed a bit. What
    is left is a second loop, which stores the values of the last state. Results have the bits that they had.

    Many processors take a hundred cycles for a product that is denormal. A state that decays by a tenth a
    step is denormal for 350 steps, and then the same denormal number for ever.

    Any loop with a floating-point state that follows from the state before it, by operations whose order
    counts, is marked: LLVM neither tries to vectorise it nor unrolls it, which made eight copies of a step,
    each of which waits for the one before it.

    Loops that contain other loops or calls, that read memory they may write, or another place in each step,
    and those whose states or stored values depend on the number of the step are left alone, and so are those
    of at most four blocks.

    Options:
        block: steps between two comparisons.

    Source: the fixed points of an autonomous recurrence; Agner Fog, "The microarchitecture of Intel, AMD and
    VIA CPUs", on denormal numbers.
    """

    stage = "buffer"
    block: int = 64

    def run(self, module: ir.Module) -> None:
        for loop in walk_for(module.operation, ("scf.for",)):
            steps = static_steps(loop)
            if steps is not None and steps <= 4 * self.block:
                continue
            if _is_serial(loop):
                loop.attributes["loop_annotation"] = ir.Attribute.parse(_SERIAL)
                self.count("serial loops")
            if _is_autonomous(loop):
                _settle(loop, self.block)
                self.count("loops")


def _is_serial(loop: ir.Operation) -> bool:
    """True if a step waits for the one before it: a floating-point state follows from states, and not by a
    sum or product that may be computed in any order. Loops around others are not asked.
    """
    block = loop.regions[0].blocks[0]
    _, *states = block.arguments
    if not any(isinstance(state.type, ir.FloatType) for state in states):
        return False
    moving: set[ir.Value] = set(states)
    ordered: set[ir.Value] = set()
    for op in (op.operation for op in block.operations):
        if op.name == "scf.yield":
            return any(value in ordered for value in op.operands)
        if len(op.regions):
            return False
        if op.name.startswith(_PURE) and not moving.isdisjoint(op.operands):
            moving.update(op.results)
            if op.name in _ORDERED and "reassoc" not in str(op.attributes["fastmath"]):
                ordered.update(op.results)
    return False


def _is_autonomous(loop: ir.Operation) -> bool:
    """True if states and what is stored depend on states and on values from before the loop alone."""
    step, *states = loop.regions[0].blocks[0].arguments
    if not states or not all(isinstance(state.type, ir.FloatType) for state in states):
        return False
    operations = [op.operation for op in loop.regions[0].blocks[0].operations]
    written = {root_of(op.operands[1]) for op in operations if op.name == "memref.store"}
    moving: set[ir.Value] = {step}
    for op in operations:
        moves = not moving.isdisjoint(op.operands)
        if op.name == "memref.store":
            if op.operands[0] in moving:
                return False
        elif op.name == "memref.load":
            if moves or not _stays(op.operands[0], written):
                return False
        elif op.name == "scf.yield":
            return not moves
        elif len(op.regions) or not op.name.startswith(_PURE):
            return False
        elif moves:
            moving.update(op.results)
    return False


def _stays(buffer: ir.Value, written: set[ir.Value]) -> bool:
    """True if a buffer is an argument of the function, none of which overlap, and is not written."""
    root = root_of(buffer)
    return is_parameter(root) and root not in written


def _settle(loop: ir.Operation, size: int) -> None:
    low, high, step, *initial = loop.operands
    types = [low.type, ir.IntegerType.get_signless(1), *(value.type for value in initial)]
    with ir.InsertionPoint(loop), loop.location:
        true = build.create("arith.constant", [types[1]], [], value=ir.BoolAttr.get(True)).result
        stride = step * size
        blocks = ir.Operation.create("scf.while", results=types, operands=[low, true, *initial], regions=2)
        before, after = (ir.Block.create_at_start(region, types) for region in blocks.regions)
        with ir.InsertionPoint(before):
            start, moves, *_ = before.arguments
            more = build.compare_index(2, start, high)
            goes_on = build.create("arith.andi", [types[1]], [more, moves]).result
            build.create("scf.condition", [], [goes_on, *before.arguments])
        with ir.InsertionPoint(after):
            start, _, *states = after.arguments
            end = smaller(start + stride, high)
            last, previous = _steps(loop, start, end, step, states)
            build.create("scf.yield", [], [end, _differ(last, previous), *last])
        position, _, *results = blocks.results
        fill, rest = count(high, [], start=position, step=step)
        fill.attributes["loop_annotation"] = ir.Attribute.parse(_FILL)
        with ir.InsertionPoint(rest):
            _copy_body(loop, [rest.arguments[0], *results])
            build.create("scf.yield", [], [])
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _steps(
    loop: ir.Operation, start: ir.Value, end: ir.Value, step: ir.Value, states: Sequence[ir.Value]
) -> tuple[list[ir.Value], list[ir.Value]]:
    """Some steps; returns the states after the last one and before it."""
    made, block = count(end, [*states, *states], start=start, step=step)
    if "loop_annotation" in loop.attributes:
        made.attributes["loop_annotation"] = loop.attributes["loop_annotation"]
    position, *arguments = block.arguments
    current = arguments[: len(states)]
    with ir.InsertionPoint(block):
        following = _copy_body(loop, [position, *current])
        build.create("scf.yield", [], [*following, *current])
    results = list(made.results)
    return results[: len(states)], results[len(states) :]


def _copy_body(loop: ir.Operation, arguments: Iterable[ir.Value]) -> list[ir.Value]:
    """Copies the operations of a loop's body to the insertion point; returns what it yields."""
    block = loop.regions[0].blocks[0]
    new: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *operations, end = [op.operation for op in block.operations]
    for op in operations:
        copy_with(op, new)
    return [new.get(value, value) for value in end.operands]


def _differ(states: list[ir.Value], others: list[ir.Value]) -> ir.Value:
    """True if a bit of these numbers differs: 0 from -0, and NaN not from itself."""
    differ = None
    for state, other in zip(states, others, strict=True):
        bits = ir.IntegerType.get_signless(ir.FloatType(state.type).width)
        pair = [build.create("arith.bitcast", [bits], [value]).result for value in (state, other)]
        one = build.compare_index(1, *pair)
        differ = one if differ is None else build.create("arith.ori", [one.type], [differ, one]).result
    assert differ is not None
    return differ

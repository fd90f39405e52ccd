# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.scan`: an `scf.for` (or `scf.while`) over explicit rows.

What a state needs from one iteration to the next are scalars in registers or pointers to rows (see
graphc.lowering.scans.rows); no tensor is carried, so that bufferization has nothing to copy.

Long loops call what notices Ctrl-C and shows progress (see graphc.library.interrupts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.helpers import declare_helper
from graphc.ir.scan_view import ScanView, scan_name
from graphc.library.helpers import Poll, Progress
from graphc.lowering.carried import loop
from graphc.lowering.generic import is_one_element
from graphc.lowering.scans.rows import Bounds, BufferRows, EmptyRows, Rows, ScalarRows, have_no_elements
from graphc.lowering.scans.updated_states import UpdatedRows
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import outside_size

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


class Polls:
    """The calls of one scan; `graphc-poll-interrupts` later decides which of them stay.

    What is for a device has none: kernels run to their end.

    Args:
        context: of the lowering.
        scan: the `graphc.scan` operation; with the attribute `progress` its loop reports how far it is.
        bound: the number of iterations, or the most there can be.
    """

    def __init__(self, context: Conversion, scan: ir.Operation, bound: ir.Value) -> None:
        self._bound, self._are_wanted = bound, not context.device
        self._progress = "progress" in scan.attributes
        helper = Progress(scan_name(scan)) if self._progress else Poll()
        self._callee = helper.symbol
        # arena-allocation gives the function the context.
        types = [build.index_type()] * 2 if self._progress else []
        if self._are_wanted:
            declare_helper(scan, helper, types, [_status()])

    def in_iteration(self, step: ir.Value) -> None:
        """At the insertion point, the end of an iteration."""
        self._call([step, self._bound] if self._progress else [])

    def after(self) -> None:
        """At the insertion point, after the loop."""
        if self._progress:
            self._call([self._bound, self._bound])

    def _call(self, operands: list[Any]) -> None:
        if self._are_wanted:
            build.call(self._callee, [_status()], operands)


# Loops of no more iterations do not look whether they are to end.
FEW = 16


def _status() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def lower_scan(context: Conversion, op: ir.Operation) -> None:
    """Lowers one scan; defines the results of its `scan_trace` and `scan_steps` operations."""
    _Lowering(context, ScanView(op)).run()


class _Lowering:
    def __init__(self, context: Conversion, view: ScanView) -> None:
        self._context = context
        self._view = view
        self._bound = context.index_of(view.steps)
        self._polls = Polls(context, view.op, self._bound)

    def run(self) -> None:
        bounds = Bounds(self._bound, self._view.reverse, self._view.stop is not None)
        rows = [self._rows(name, op, bounds) for name, op in self._view.declarations().items()]
        initial = [value for item in rows for value in item.before()]
        if build.constant_value(self._bound) == 0:
            # Rows that do not exist must not be pointed at, not even in code that never runs.
            results, taken = initial, self._bound
        elif self._view.stop is None:
            results, taken = self._for(rows, initial), self._bound
        else:
            results, taken = self._while(rows, initial, self._view.stop)
        self._polls.after()
        bounds.taken = taken
        for item in rows:
            item.after([results.pop(0) for _ in range(item.width)])
        for op in self._view.step_counts():
            self._context.define(op.results[0], taken)

    def _rows(self, name: str, declaration: ir.Operation, bounds: Bounds) -> Rows:
        value = list(declaration.operands)[-1]
        kind: type[Rows] = ScalarRows if is_one_element(value) else BufferRows
        if have_no_elements(self._context, declaration):
            kind = EmptyRows
        elif (self._view.op.results[0], name) in self._context.states:
            kind = UpdatedRows
        return kind(self._context, self._view, name, declaration, bounds)

    def _for(self, rows: list[Rows], initial: list[ir.Value]) -> list[ir.Value]:
        op, block = loop(self._bound, initial)
        with ir.InsertionPoint(block):
            step, *carried = block.arguments
            values = self._body(block, rows, step, list(carried))
            self._polls.in_iteration(step)
            build.create("scf.yield", [], values)
        return list(op.results)

    def _while(self, rows: list[Rows], initial: list[ir.Value], until: ir.Value) -> tuple[list[Any], Any]:
        """`scf.while` over (iterations run, whether to go on, what is carried)."""
        i1 = ir.IntegerType.get_signless(1)
        yes = build.create("arith.constant", [i1], [], value=ir.BoolAttr.get(True)).result
        operands = [build.const_index(0), yes, *initial]
        types = [value.type for value in operands]
        op = ir.Operation.create("scf.while", results=types, operands=operands, regions=2)
        before = ir.Block.create_at_start(op.regions[0], types)
        with ir.InsertionPoint(before):
            step, go_on, *_ = before.arguments
            more = build.compare_index(2, step, self._bound)
            condition = build.create("arith.andi", [i1], [more, go_on]).result
            build.create("scf.condition", [], [condition, *before.arguments])
        body = ir.Block.create_at_start(op.regions[1], types)
        with ir.InsertionPoint(body):
            step, _, *carried = body.arguments
            values = self._body(body, rows, step, list(carried))
            stop = self._context.index_of(until)
            go_on = build.create("arith.xori", [i1], [stop, _true(i1)]).result
            following = step + 1
            self._polls.in_iteration(step)
            build.create("scf.yield", [], [following, go_on, *values])
        taken, _, *results = op.results
        return results, taken

    def _body(
        self, block: ir.Block, rows: list[Rows], step: ir.Value, carried: list[ir.Value]
    ) -> list[ir.Value]:
        """Converts the body at the insertion point; returns what goes to the next iteration."""
        t = step
        if self._view.reverse:
            last = self._bound - 1
            t = last - step
        self._context.define(self._view.index, t)
        self._context.enter_block(self._view.block, block)
        for item in rows:
            item.begin([carried.pop(0) for _ in range(item.width)], step, t)
        self._context.convert_block(self._view.block, block)
        return [value for item in rows for value in item.end()]


def _true(i1: ir.Type) -> ir.Value:
    return build.create("arith.constant", [i1], [], value=ir.BoolAttr.get(True)).result


def declared_sizes(op: ir.Operation) -> dict[str, list[ir.Value]]:
    """Index values, before a scan that is not lowered yet, with the sizes of the rows of its outputs.

    Raises:
        UnknownSize: the shape of a row depends on the iteration.
    """
    view = ScanView(op)
    found = {}
    for name, collect in view.collects().items():
        value = collect.operands[0]
        if not view.traces(name):
            continue
        with ir.InsertionPoint(view.op), collect.location:
            found[name] = [outside_size(view.op, value, axis) for axis in range(len(value.type.shape))]
    return found

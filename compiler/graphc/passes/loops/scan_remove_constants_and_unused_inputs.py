# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes from scans what is not needed, and what is the same in every iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir.build import cast
from graphc.ir.constants import read_constant
from graphc.ir.known_rows import (
    Known,
    Lazy,
    is_free_row,
    known_result,
    known_row,
    known_value,
    literal,
    row_of,
)
from graphc.ir.rewrite import is_removable, tensor_type
from graphc.ir.scan_view import (
    ScanView,
    collect,
    counts_steps,
    is_read,
    is_scan,
    is_state,
    is_trace,
    name_of,
    new_rows_of,
    redeclared,
    retention,
    scans,
    tap_of,
    taps_of,
    window_of,
    writes_of,
)
from graphc.ir.views import COUNTS, TAKES_ROW, create_here, repeated, row_at, take_rows
from graphc.ir.walk import definition, functions, seen_through, walk
from graphc.passes import Pass
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, trace_size
from graphc_dialects.scan_verify import DECLARATIONS, declarations
from graphc_runtime.record import record


def replace_uniform_reads(operations: list[ir.Operation]) -> int:
    """Replaces reads of sequences whose rows are all equal by the row; returns how many."""
    found = 0
    for op in operations:
        if op.name not in TAKES_ROW:
            continue
        stack, position = op.operands
        source = definition(stack)
        if source is None:
            continue
        if is_free_row(stack):
            with ir.InsertionPoint(source), op.location:
                row = row_of(stack, op.results[0].type)
        else:
            source = definition(seen_through(stack, ("tensor.cast",))) or source
            with ir.InsertionPoint(op), op.location:
                row = _row_of_formula(source, position, op.results[0].type)
        if row is not None:
            op.results[0].replace_all_uses_with(row)
            op.erase()
            found += 1
    return found


def _row_of_formula(source: ir.Operation, position: ir.Value, row_type: ir.Type) -> Any:
    """A row of `iota`, or a row of a literal at a literal position; else None."""
    if source.name in COUNTS:
        start, step, _ = source.operands
        i64 = ir.IntegerType.get_signless(64)
        number = create_here("arith.index_cast", [position], i64)
        count = create_here("tensor.from_elements", [number], tensor_type([], i64))
        if count.type != row_type:
            count = create_here("graphc.cast", [count], row_type)
        return create_here(
            "graphc.add", [start, create_here("graphc.mul", [step, count], row_type)], row_type
        )
    at = definition(position)
    if source.name != "arith.constant" or at is None or at.name != "arith.constant":
        return None
    rows, number = read_constant(source), at.attributes["value"].value
    if rows is None or not 0 <= number < len(rows) or not row_type.has_static_shape:
        return None
    return literal(rows[number], row_type)


class UniformScan:
    """Finds what does not change in one scan, and takes it out.

    States are assumed to keep their first row, then the assumption is tested on the body: where the next rows
    are something else, the state is given up, until the rest holds together.

    Args:
        view: the scan.
    """

    def __init__(self, view: ScanView) -> None:
        self._view = view
        self._operations = view.operations()
        self._declared = view.declarations()
        self._rows: dict[str, Known] = {}
        for name, carry in view.carries().items():
            row = known_row(carry.operands[0])
            if row is not None:
                self._rows[name] = row
        self._known: dict[ir.Value, Known] = {}
        while True:
            self._known = self._evaluate()
            wrong = [name for name, row in self._rows.items() if any(k != row for k in self._next(name))]
            if not wrong:
                break
            for name in wrong:
                del self._rows[name]

    def _evaluate(self) -> dict[ir.Value, Known]:
        known: dict[ir.Value, Known] = Lazy(
            lambda value: None if self._view.is_inside(value) else known_value(value)
        )
        for op in self._operations:
            if is_read(op):
                known[op.results[0]] = self._rows.get(name_of(op))
            elif op.name in TAKES_ROW:
                stack = op.operands[0]
                known[op.results[0]] = None if self._view.is_inside(stack) else known_row(stack)
            elif len(op.results) == 1:
                known[op.results[0]] = known_result(op, known)
        return known

    def _next(self, name: str) -> list[Known]:
        return [self._known[value] for value in list(self._declared[name].operands)[1:]]

    def replace(self) -> dict[str, int]:
        """Replaces reads and traces; returns numbers of states, traces and reads by kind."""
        counts: dict[str, int] = {}
        for name, row in self._rows.items():
            for read in self._view.reads(name):
                self._replace_read(read, 0)
            for trace in self._view.traces(name):
                _add(counts, "constant states", self._replace_trace(trace, row))
        for read in self._view.reads():
            if self._is_kept(read):
                self._replace_read(read, -1)
                _add(counts, "constant states", 1)
        for name, declaration in self._declared.items():
            row = self._repeated(name, declaration)
            if name not in self._rows and row is not None:
                for trace in self._view.traces(name):
                    _add(counts, "constant outputs", self._replace_trace(trace, row))
        return counts

    def _replace_read(self, read: ir.Operation, position: int) -> None:
        """Uses a row of the initial ones, counted from the oldest or (if negative) from the newest."""
        carry = self._declared[name_of(read)]
        initial, type_ = carry.operands[0], read.results[0].type
        with ir.InsertionPoint(self._view.op), read.location:
            if position == 0:
                row = row_of(initial, type_)
            else:
                row = cast(row_at(initial, const_index(window_of(carry) - 1)), type_)
        read.results[0].replace_all_uses_with(row)
        read.erase()

    def _is_kept(self, read: ir.Operation) -> bool:
        """True if a read gives the newest initial row for ever, because the state copies its last row."""
        name = name_of(read)
        carry = self._declared[name]
        if name in self._rows or writes_of(carry) != [0] or tap_of(read) != -1:
            return False
        source = definition(carry.operands[1])
        while source is not None and source.name == "tensor.cast":
            source = definition(source.operands[0])
        return source is not None and self._view.reads_state(source, name) and tap_of(source) == -1

    def _repeated(self, name: str, declaration: ir.Operation) -> Known:
        """The row that a trace consists of only, or None."""
        if is_state(declaration) and (retention(declaration)[0] != "steps" or writes_of(declaration) != [0]):
            return None
        return self._known[new_rows_of(declaration)[0]]

    def _replace_trace(self, trace: ir.Operation, row: Known) -> bool:
        """Makes a trace a broadcast of its row; says whether its sizes are known outside."""
        assert row is not None
        type_ = trace.results[0].type
        with ir.InsertionPoint(trace), trace.location:
            try:
                sizes = [trace_size(trace, axis) for axis in range(len(type_.shape))]
            except UnknownSize:
                return False
            if row[0] == "splat":
                scalar = tensor_type([], type_.element_type)
                source = literal(np.frombuffer(row[2], row[1])[0], scalar)
            elif row[0] == "value":
                source = row[1]
            else:
                stack = row[1]
                natural = tensor_type(list(stack.type.shape)[1:], stack.type.element_type)
                source = row_of(stack, natural)
            new = repeated(source, sizes, type_)
        trace.results[0].replace_all_uses_with(new)
        trace.erase()
        return True


class Liveness:
    """Marks what a function needs, from its results and checks backwards.

    A declaration is needed if one of its traces or reads is: a state that only feeds itself is not. All
    levels of nesting are treated in one sweep, as an inner scan may be what keeps an outer state alive.

    Args:
        function: a `func.func`.
    """

    def __init__(self, function: ir.Operation) -> None:
        self._operations = walk(function)
        self._declared: dict[ir.Operation, dict[str, ir.Operation]] = {}
        self._effects: dict[ir.Operation, list[ir.Operation]] = {}
        self._live: set[ir.Operation] = set()
        self._pending: list[ir.Operation] = []
        self._find_effects(function.operation)
        while self._pending:
            self._visit(self._pending.pop())

    def _find_effects(self, function: ir.Operation) -> None:
        """Sorts the operations that are needed for what they do by the operation around them: checks, and
        what has checks in it.
        """
        for op in self._operations:
            if is_scan(op):
                self._declared[op] = declarations(op)
            if not is_removable(op) and op.name not in DECLARATIONS:
                self._effects.setdefault(op.parent.operation, []).append(op)
        for op in self._effects.get(function, ()):
            self._mark(op)

    def _mark(self, op: ir.Operation) -> None:
        if op not in self._live:
            self._live.add(op)
            self._pending.append(op)

    def _visit(self, op: ir.Operation) -> None:
        for operand in op.operands:
            owner = operand.owner
            if hasattr(owner, "operation"):
                self._mark(owner.operation)
        if is_scan(op) or op.name == "scf.if":
            for effect in self._effects.get(op, ()):
                self._mark(effect)
        elif is_trace(op):
            self._mark(self._declared[op.operands[0].owner.operation][name_of(op)])
        elif is_read(op):
            self._mark(self._declared[op.operands[0].owner.owner.operation][name_of(op)])

    def sweep(self) -> dict[str, int]:
        """Erases what is not needed; returns numbers by kind."""
        counts: dict[str, int] = {}
        for op in reversed(self._operations):
            if op in self._live:
                continue
            if (kind := _kind(op)) is not None:
                _add(counts, kind, 1)
            op.erase()
        return counts


def _kind(op: ir.Operation) -> str | None:
    """Name that the statistics give to the removal of an operation, if they count it."""
    if is_scan(op):
        return "scans removed"
    if op.name in DECLARATIONS:
        return "states removed" if is_state(op) else "outputs removed"
    if op.name in TAKES_ROW or is_read(op):
        return "reads removed"
    if is_trace(op) or counts_steps(op):
        return "traces removed"
    return "operations removed" if len(op.results) and is_scan(op.parent) else None


def shrink(view: ScanView) -> dict[str, int]:
    """Drops rows of the windows that nothing reads, and rows that are written for nobody.

    Returns:
        Numbers of taps and writes that were dropped, and of states that became outputs.
    """
    counts: dict[str, int] = {}
    for name, carry in view.carries().items():
        read = {tap_of(op) for op in view.reads(name)}
        traced = bool(view.traces(name))
        carry, dropped = _drop_writes(carry, read, traced)
        _add(counts, "writes removed", dropped)
        if traced and not read and _as_output(carry):
            _add(counts, "states turned into outputs", 1)
            continue
        _add(counts, "taps removed", _drop_taps(view, carry, read, traced))
    return counts


def _add(counts: dict[str, int], kind: str, number: int) -> None:
    if number:
        counts[kind] = counts.get(kind, 0) + number


def _drop_writes(carry: ir.Operation, read: set[int], traced: bool) -> tuple[ir.Operation, int]:
    """Drops writes of older rows that no later iteration reads and no trace keeps."""
    writes = writes_of(carry)
    keep, rows = retention(carry)
    visible = 0 if not traced else rows if keep == "last" else None
    if visible is None:
        return carry, 0
    oldest = min(read, default=0)
    kept = [write for write in writes if write == 0 or oldest < write or -write < visible]
    if kept == writes:
        return carry, 0
    initial, *values = carry.operands
    values = [value for write, value in zip(writes, values, strict=True) if write in kept]
    return redeclared(carry, [initial, *values], writes=kept), len(writes) - len(kept)


def _as_output(carry: ir.Operation) -> bool:
    """Makes a state that nothing reads an output."""
    if writes_of(carry) != [0] or retention(carry)[0] != "steps":
        return False
    value = carry.operands[1]
    if not value.type.has_static_shape:
        return False  # the size of a row is known from the initial ones only
    with ir.InsertionPoint(carry), carry.location:
        collect(value, name_of(carry))
    carry.erase()
    return True


def _drop_taps(view: ScanView, carry: ir.Operation, read: set[int], traced: bool) -> int:
    taps, writes = taps_of(carry), writes_of(carry)
    oldest = min(*read, writes[0] - 1, -1) if read else min(writes[0] - 1, -1)
    keep, rows = retention(carry)
    if traced and (keep == "all" or (rows is not None and rows > -oldest)):
        oldest = taps[0]
    wanted = sorted(read | {oldest})
    if wanted == taps:
        return 0
    initial, *values = carry.operands
    if oldest != taps[0]:
        with ir.InsertionPoint(view.op), carry.location:
            initial = newest_rows(initial, -taps[0], -oldest)
    redeclared(carry, [initial, *values], taps=wanted)
    return len(taps) - len(wanted) + (oldest not in taps)


def newest_rows(stack: ir.Value, have: int, count: int) -> ir.Value:
    """The last `count` of `have` rows, at the current insertion point."""
    return take_rows(stack, count, (const_index(have - count), const_index(count), const_index(1)))


def simplify_conditions(view: ScanView) -> dict[str, int]:
    """Drops constant stop conditions, and asks no plain loop for its steps; returns numbers by kind."""
    counts: dict[str, int] = {}
    stop = view.stop
    if stop is not None:
        always = _literal(stop)
        # Downwards, the bound says where a loop starts.
        if always is False or (always is True and not view.reverse):
            if always:
                with ir.InsertionPoint(view.op), view.op.location:
                    bound = create_here("arith.minsi", [view.steps, const_index(1)], ir.IndexType.get())
                view.op.operands[0] = bound
            end = view.end
            ir.Operation.create(end.name, [], [], loc=end.location, ip=ir.InsertionPoint(end))
            end.erase()
            counts["conditions removed"] = 1
    if view.stop is None:
        _add(counts, "step counts replaced", view.count_steps_as(view.steps))
    return counts


def _literal(condition: ir.Value) -> bool | None:
    """The value of an i1 that is a literal, or the element of a literal tensor."""
    op = definition(condition)
    if op is not None and op.name == "tensor.extract":
        op = definition(op.operands[0])
    if op is None or op.name != "arith.constant":
        return None
    value = read_constant(op)
    if isinstance(value, (bool, int)):
        return bool(value)
    return bool(value.flat[0]) if value is not None and value.size == 1 else None


@record()
class ScanRemoveConstantsAndUnusedInputs(Pass):
    """Drops states, outputs and reads nobody needs; replaces those that never change by their value.

    * What is needed is found backwards from the function's results, checks and stop conditions, through
      traces, states and inner loops together. A state that only feeds itself is not needed; upstream's
      canonicalize keeps it, because a declaration has no results.
    * The window of a state shrinks to the rows that are read; writes of older rows that nobody sees are
      dropped; a state that is not read and keeps its new rows only becomes an output.
    * A row of a sequence that repeats one row (`broadcast_to` along the first axis, a splat) is that row; a
      row of `iota` is computed.
    * A state that keeps its first row is that row: all states are assumed to, and those for which the body
      disproves it are given up until no assumption is wrong. A trace of such a state, and an output that is
      defined outside of the loop, is a broadcast.
    * A stop condition that is false is dropped; one that is true leaves at most one iteration. A plain loop's
      `scan_steps` is its bound.

    Options:
        rounds: how often the rules are repeated at most; each removal may allow another.

    Source: PyTensor's `remove_constants_and_unused_inputs_scan`; the optimistic assumption is that of sparse
    conditional constant propagation (Wegman and Zadeck, 1991).
    """

    stage = "graph"
    rounds: int = 8

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for _ in range(self.rounds):
                found = scans(function)
                if not found or not self._round(function, found):
                    break

    def _round(self, function: ir.Operation, found: list[ir.Operation]) -> bool:
        """Applies every rule once to the scans of a function; says whether any did something."""
        before = sum(self.statistics.values())
        for op in found:
            self.count_all(simplify_conditions(ScanView(op)))
        self.count("sequences replaced", replace_uniform_reads(walk(function)))
        for op in found:
            self.count_all(UniformScan(ScanView(op)).replace())
        self.count_all(Liveness(function).sweep())
        for op in scans(function):
            self.count_all(shrink(ScanView(op)))
        return sum(self.statistics.values()) > before

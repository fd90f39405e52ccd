# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States, outputs and sequences of a scan that are the same in every iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir.build import cast
from graphc.ir.constants import read_constant
from graphc.ir.known_rows import (
    Known,
    definition,
    is_free_row,
    known_result,
    known_row,
    known_value,
    literal,
    row_of,
)
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_read,
    is_state,
    name_of,
    new_rows_of,
    retention,
    tap_of,
    window_of,
    writes_of,
)
from graphc.ir.views import COUNTS, TAKES_ROW, create_here, repeated, row_at
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, trace_size


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
            with ir.InsertionPoint(op), op.location:
                row = _row_of_formula(_below_casts(source), position, op.results[0].type)
        if row is not None:
            op.results[0].replace_all_uses_with(row)
            op.erase()
            found += 1
    return found


def _below_casts(op: ir.Operation) -> ir.Operation:
    while op.name == "tensor.cast":
        inner = definition(op.operands[0])
        if inner is None:
            break
        op = inner
    return op


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
        known: dict[ir.Value, Known] = _Lazy(self._view)
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

        def count(kind: str) -> None:
            counts[kind] = counts.get(kind, 0) + 1

        for name, row in self._rows.items():
            self._replace_reads(name)
            for trace in self._view.traces(name):
                if self._replace_trace(trace, row, self._declared[name].operands[0]):
                    count("constant states")
        for read in self._view.reads():
            if self._is_kept(read):
                self._replace_read(read, -1)
                count("constant states")
        for name, declaration in self._declared.items():
            row = self._repeated(name, declaration)
            if name not in self._rows and row is not None:
                for trace in self._view.traces(name):
                    if self._replace_trace(trace, row, None):
                        count("constant outputs")
        return counts

    def _replace_reads(self, name: str) -> None:
        for read in self._view.reads(name):
            self._replace_read(read, 0)

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
        """Whether a read gives the newest initial row for ever, because the state copies its last row."""
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

    def _replace_trace(self, trace: ir.Operation, row: Known, stack: ir.Value | None) -> bool:
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


class _Lazy(dict[ir.Value, Known]):
    """Knowledge of values; that of values outside of a scan is found when it is asked for."""

    def __init__(self, view: ScanView) -> None:
        super().__init__()
        self._view = view

    def __missing__(self, value: ir.Value) -> Known:
        known = self[value] = None if self._view.is_inside(value) else known_value(value)
        return known

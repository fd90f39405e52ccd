# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks of a body's values that exist without computation: rows of sequences and of what a scan keeps."""

from __future__ import annotations

from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_state,
    name_of,
    retention,
    row_shape,
    take_trace,
    tap_of,
    window_of,
    writes_of,
)
from graphc.ir.views import TAKES_ROW, take_rows
from graphc.passes.loops._batch import Batcher
from graphc.passes.loops._index import coefficient, copy_index
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir


def is_sequence_row(view: ScanView, value: ir.Value) -> bool:
    """True if a value of the body is a row of an outside tensor, at an index that moves with `t`."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in TAKES_ROW:
        return False
    x, index = owner.operands
    return not view.is_inside(x) and coefficient(view, index) in (1, -1)


def sequence_stack(b: Batcher, value: ir.Value, first: ir.Value) -> ir.Value:
    """The rows of a sequence from iteration `first` on; the sequence itself if these are all of its rows."""
    x, index = value.owner.operands
    step = coefficient(b.view, index)
    offset = copy_index(b.view, index, first)
    whole = step == 1 and constant_value(offset) == 0
    return rows_of(b, x, offset, step or 1, whole)


def rows_of(b: Batcher, x: ir.Value, offset: ir.Value, step: int = 1, from_start: bool = True) -> ir.Value:
    """`b.rows` rows of a tensor."""
    if from_start and b.dims.same(b.dims.shape(x)[0], b.dims.size(b.rows)):
        return x
    return take_rows(x, b.static_rows, (offset, b.rows, const_index(step)), b.create)


class SequenceRows:
    """Rows of sequences only: what there is before the loop."""

    def __call__(self, b: Batcher, value: ir.Value) -> ir.Value | None:
        if not is_sequence_row(b.view, value):
            return None
        with value.owner.location:
            return sequence_stack(b, value, const_index(0))


class KeptRows:
    """Rows of sequences, states and outputs: what there is after the loop.

    Args:
        view: the scan.
        first: index value: the smallest `t` that was run.
    """

    def __init__(self, view: ScanView, first: ir.Value) -> None:
        self._view = view
        self._first = first
        self._traces: dict[str, ir.Value] = {}
        self._kept: dict[ir.Value, ir.Operation] = {}
        self._carries = view.carries()
        for carry in self._carries.values():
            if writes_of(carry) == [0] and retention(carry)[0] != "last":
                self._kept.setdefault(carry.operands[1], carry)
        for collect in view.collects().values():
            if retention(collect)[0] != "last":
                self._kept.setdefault(collect.operands[0], collect)

    def declaration(self, value: ir.Value) -> ir.Operation | None:
        """The `scan_carry` or `scan_collect` whose kept rows are the rows of a value, or None."""
        known = self._kept.get(value)
        if known is not None:
            return known
        owner = value.owner
        if isinstance(owner, ir.Block) or not self._view.reads_state(owner):
            return None
        carry = self._carries[name_of(owner)]
        return carry if writes_of(carry) == [0] and retention(carry)[0] == "all" else None

    def add(self, collect: ir.Operation) -> None:
        """Makes the rows of a new `scan_collect` known."""
        self._kept[collect.operands[0]] = collect

    def forget(self, collect: ir.Operation) -> None:
        """Makes no more use of a `scan_collect`."""
        known = self._kept.get(collect.operands[0])
        if known is not None and known == collect:
            del self._kept[collect.operands[0]]

    def __call__(self, b: Batcher, value: ir.Value) -> ir.Value | None:
        if is_sequence_row(self._view, value):
            with value.owner.location:
                return sequence_stack(b, value, self._first)
        declaration = self.declaration(value)
        return None if declaration is None else self._rows(b, value, declaration)

    def _rows(self, b: Batcher, value: ir.Value, declaration: ir.Operation) -> ir.Value:
        keep, _ = retention(declaration)
        trace = self._trace(b, declaration)
        if not is_state(declaration) or keep == "steps":
            return trace
        window = window_of(declaration)
        tap = 0 if value in self._kept else tap_of(value.owner)
        offset = -tap if self._view.reverse else window + tap
        return rows_of(b, trace, const_index(offset), 1, False)

    def _trace(self, b: Batcher, declaration: ir.Operation) -> ir.Value:
        name = name_of(declaration)
        if name not in self._traces:
            with declaration.location:
                self._traces[name] = self._new_trace(b, declaration)
        return self._traces[name]

    def _new_trace(self, b: Batcher, declaration: ir.Operation) -> ir.Value:
        source = declaration.operands[0]
        row = row_shape(declaration)
        extra = window_of(declaration) if retention(declaration)[0] == "all" else 0
        rows = b.static_rows + extra if b.static_rows >= 0 else -1
        kept = tensor_type([rows, *row], source.type.element_type)
        trace = take_trace(self._view, name_of(declaration), kept, b.create)
        if not extra:
            self._assume(b, b.dims.shape(trace)[0], b.dims.size(b.rows))
        if is_state(declaration):
            for axis in range(1, len(row) + 1):
                self._assume(b, b.dims.shape(trace)[axis], b.dims.shape(source)[axis])
        return trace

    def _assume(self, b: Batcher, a: int, c: int) -> None:
        if not (isinstance(a, int) and isinstance(c, int)):
            b.dims.assume_equal(a, c)


def first_iteration(view: ScanView, steps: ir.Value) -> ir.Value:
    """The smallest `t` that was run: a reverse scan that was ended early leaves out the first ones."""
    if view.stop is None or not view.reverse:
        return const_index(0)
    return view.steps - steps

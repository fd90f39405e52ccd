# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of which only the last row is used, also through slices of slices."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.affine import Evaluator, Range, Region, X, at, exactly, key_of, over
from graphc.ir.scan_view import ScanView, counts_steps, retention, window_of
from graphc.ir.size import Size
from graphc.ir.views import TAKES_PART, TAKES_ROW, Bound, bounds_of, part_of, stack_of_one
from graphc.passes.loops._consumers import takes_whole
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import trace_size

# Without iterations, the only row a state with one initial row has is the last one.
_ITERATED = Region(1, None)


class LastRowUses:
    """The uses of a state's or output's traces, if they ask for nothing but its last row (and for sizes).

    Args:
        view: the scan.
        name: the state.

    Attributes:
        only: whether that is so, and there is a use.
    """

    def __init__(self, view: ScanView, name: str) -> None:
        self._view = view
        self._declaration = view.declarations()[name]
        self._traces = view.traces(name)
        self._reads: list[ir.Operation] = []
        self._dims: list[tuple[ir.Operation, ir.Value]] = []
        self._slices: list[ir.Operation] = []
        self._sizes: dict[ir.Value, ir.Value | None] = {trace.results[0]: None for trace in self._traces}
        self._bound = None if view.stop is not None else key_of(view.steps)
        self._rows = self._kept_rows()
        self._last = Size(0) if view.reverse else self._rows - 1
        # A trace of one row is that row, whatever uses it.
        whole = self._rows == 1
        self.only = bool(self._traces) and (whole or all(self._visit(t.results[0], []) for t in self._traces))

    def _kept_rows(self) -> Size:
        """Number of rows of the trace, by the number of iterations."""
        keep, rows = retention(self._declaration)
        if rows is not None:
            return Size(rows)
        extra = window_of(self._declaration) if keep == "all" else 0
        return Size(self._bound + extra) if isinstance(self._bound, int) else X + extra

    def _known(self, evaluator: Evaluator, key: ir.Value | tuple[ir.Value, int]) -> Range | None:
        """Sizes that follow from the number of iterations."""
        if self._bound is not None and key == self._bound:
            return exactly(X)
        if isinstance(key, tuple):
            if key[1] != 0 or key[0] not in self._sizes:
                return None
            size = self._sizes[key[0]]
            return exactly(self._rows) if size is None else evaluator.range(size)
        owner = key.owner
        counts = not isinstance(owner, ir.Block) and counts_steps(owner)
        if counts and owner.operands[0] == self._view.op.results[0]:
            return exactly(X)
        return None

    def _is_always(self, values: list[ir.Value], wanted: Size) -> bool:
        """True if the sum of index values is a function of the number of iterations, if there are any."""

        def ask(region: Region) -> bool:
            evaluator = Evaluator(region, self._known)
            total = Size()
            for value in values:
                found = evaluator.range(value).exact
                if found is None:
                    return False
                total += found
            # At a single point functions that differ may agree.
            point = region.start if region.start is not None and region.start == region.stop else None
            return total == wanted if point is None else at(total, point) == at(wanted, point)

        answers = over(_ITERATED, ask)
        return answers is not None and all(found for _, found in answers)

    def _visit(self, value: ir.Value, offsets: list[ir.Value]) -> bool:
        """True if all users of the rows that start at the sum of the offsets are fine."""
        for use in list(value.uses):
            op = use.owner.operation
            if op.name == "tensor.dim":
                if constant_value(op.operands[1]) is None:
                    return False
                self._dims.append((op, value))
            elif (op.name in TAKES_PART or op.name in TAKES_ROW) and use.operand_number == 0:
                if not self._visit_rows(op, offsets):
                    return False
            else:
                return False
        return True

    def _visit_rows(self, op: ir.Operation, offsets: list[Any]) -> bool:
        offsets = [*offsets, op.operands[1]]
        is_one = op.name in TAKES_ROW or op.results[0].type.shape[0] == 1
        bounds = [] if is_one else bounds_of(op)
        if is_one or self._is_always([bounds[0].size], Size(1)):
            self._reads.append(op)
            return self._is_always(offsets, self._last)
        if not self._keeps_rows_whole(op, bounds):
            return False
        self._sizes[op.results[0]] = bounds[0].size
        self._slices.append(op)
        return self._visit(op.results[0], offsets)

    def _keeps_rows_whole(self, op: ir.Operation, bounds: list[Bound]) -> bool:
        """True if a slice selects whole rows, one after the other."""
        if constant_value(bounds[0].stride) != 1:
            return False
        return all(
            (op.operands[0].type.shape[axis] < 0 and self._is_size_of_rows(bound, axis))
            or takes_whole(op, self._traces[0], axis, bound)
            for axis, bound in enumerate(bounds[1:], 1)
        )

    def _is_size_of_rows(self, bound: Bound, axis: int) -> bool:
        """True if a slice takes all along an axis, by the size of rows that are looked at."""
        size = bound.size.owner
        if isinstance(size, ir.Block) or size.name != "tensor.dim" or size.operands[0] not in self._sizes:
            return False
        whole = constant_value(size.operands[1]) == axis
        return whole and constant_value(bound.offset) == 0 and constant_value(bound.stride) == 1

    def replace(self, row: ir.Value) -> None:
        """Gives all uses the last row, and sizes without the trace; the current insertion point is before
        all of them.
        """
        for op, value in self._dims:
            op.results[0].replace_all_uses_with(self._size(value, constant_value(op.operands[1]) or 0))
            op.erase()
        stack = stack_of_one(row)
        for op in self._reads:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(self._read(op, stack, row))
            op.erase()
        for op in reversed(self._slices):
            op.erase()
        for trace in self._traces:
            if next(trace.results[0].uses, None) is not None:
                trace.results[0].replace_all_uses_with(build.cast(stack, trace.results[0].type))
            trace.erase()

    def _size(self, value: ir.Value, axis: int) -> ir.Value:
        size = self._sizes[value]
        if axis == 0 and size is not None:
            return size
        return trace_size(self._traces[0], axis)

    def _read(self, op: ir.Operation, stack: ir.Value, row: ir.Value) -> ir.Value:
        if op.name in TAKES_ROW:
            return build.cast(row, op.results[0].type)
        (_, size, _), *others = bounds_of(op)
        # The size stays: it is 1, or 0 where there is no iteration.
        return part_of(stack, [(const_index(0), size, const_index(1)), *others], op.results[0].type)

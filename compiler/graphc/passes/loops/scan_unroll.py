# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns short scans into straight-line code."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir import build
from graphc.ir.affine import key_of, same_size
from graphc.ir.constants import constant_attribute, element_dtype
from graphc.ir.diagnostics import fail
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    is_state,
    name_of,
    new_rows_of,
    retention,
    scans,
    tap_of,
    window_of,
    writes_of,
)
from graphc.ir.views import joined, order_of, repeated, row_at, stack_of_one, stacked_order, with_sizes
from graphc.ir.walk import copy_with, definition, walk
from graphc.passes import Pass
from graphc_dialects._base import const_index, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, outside_size
from graphc_runtime.record import record

_EQUAL = 0


def unroll(view: ScanView, steps: int) -> bool:
    """Replaces a scan by straight-line operations before it.

    Args:
        view: the scan.
        steps: how many iterations it runs.

    Returns:
        False, with nothing changed, if the result would be empty and its sizes are not known outside, or if
        rows that there are none of are to be kept.
    """
    if any(is_padded(declaration) for declaration in view.declarations().values()):
        return False
    with ir.InsertionPoint(view.op), view.op.location:
        iterations = _Iterations(view, steps)
        if not iterations.find_empty_sizes():
            return False
        iterations.run()
        iterations.replace_results()
    view.op.erase()
    return True


class _Iterations:
    """Rows of states and outputs while the body is copied."""

    def __init__(self, view: ScanView, steps: int) -> None:
        self._view, self._steps = view, steps
        self._declared = view.declarations()
        self._rows: dict[str, list[Any]] = {}
        self._window: dict[str, int] = {}
        self._empty: dict[str, list[ir.Value]] = {}
        for name, op in self._declared.items():
            self._window[name] = window_of(op)
            # None stands for an initial row that nothing has read or replaced.
            self._rows[name] = [None] * self._window[name]

    def find_empty_sizes(self) -> bool:
        """Finds the sizes of the rows of outputs that have none, while the body is there to ask."""
        for trace in self._view.traces() if not self._steps else ():
            declaration = self._declared[name_of(trace)]
            if is_state(declaration):
                continue
            try:
                self._empty[name_of(trace)] = [
                    outside_size(self._view.op, declaration.operands[0], axis)
                    for axis in range(len(declaration.operands[0].type.shape))
                ]
            except UnknownSize:
                return False
        return True

    # -- iterations ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Copies the body for each iteration."""
        work = self._view.work()
        for step in range(self._steps):
            t = self._steps - 1 - step if self._view.reverse else step
            values: dict[Any, Any] = {self._view.index: const_index(t)}
            for op in work:
                if self._view.reads_state(op):
                    values[op.results[0]] = self._previous(op, step)
                else:
                    copy_with(op, values)
            for name, declaration in self._declared.items():
                self._store(name, declaration, step, values)

    def _previous(self, op: ir.Operation, step: int) -> ir.Value:
        name = name_of(op)
        position = self._window[name] + step + tap_of(op)
        with op.location:
            return build.cast(self._row(name, position), op.results[0].type)

    def _row(self, name: str, position: int) -> Any:
        rows = self._rows[name]
        if rows[position] is None:
            initial = self._declared[name].operands[0]
            row = _expanded_row(initial)
            if row is None:
                row = row_at(initial, const_index(position))
            rows[position] = row
        return rows[position]

    def _store(
        self, name: str, declaration: ir.Operation, step: int, values: dict[ir.Value, ir.Value]
    ) -> None:
        self._rows[name].append(None)
        for write, operand in zip(writes_of(declaration), new_rows_of(declaration), strict=True):
            row = values.get(operand, operand)
            if is_state(declaration):
                with declaration.location:
                    row = self._checked(name, declaration.operands[0], row, step)
            self._rows[name][self._window[name] + step + write] = row

    def _checked(self, name: str, initial: ir.Value, row: ir.Value, step: int) -> ir.Value:
        """A row that is known to have the shape that its state starts with, as in a loop."""
        sizes = {}
        for axis, size in enumerate(row.type.shape):
            if size >= 0 and initial.type.shape[axis + 1] >= 0:
                continue
            given, expected = dim_of(row, axis), dim_of(initial, axis + 1)
            if same_size(given, expected):
                continue
            sizes[axis] = expected
            equal = build.compare_index(_EQUAL, given, expected)
            message = (
                f"state '{name}' starts with rows of size {{expected}} in dimension {axis}, "
                f"but iteration {step} computes {{given}}"
            )
            build.check(equal, given, expected, message)
        if not sizes:
            return row
        whole = [sizes[axis] if axis in sizes else dim_of(row, axis) for axis in range(len(row.type.shape))]
        return with_sizes(row, whole, row.type)

    # -- results ---------------------------------------------------------------------------------------------

    def replace_results(self) -> None:
        """Gives the traces' users the joined rows, and those of the number of steps a constant."""
        for trace in self._view.traces():
            if next(trace.results[0].uses, None) is not None:
                with trace.location:
                    trace.results[0].replace_all_uses_with(
                        self._joined(name_of(trace), trace.results[0].type)
                    )
            trace.erase()
        self._view.count_steps_as(const_index(self._steps))

    def _joined(self, name: str, type_: ir.Type) -> ir.Value:
        keep, count = retention(self._declared[name])
        total = len(self._rows[name])
        start = 0
        if keep == "steps":
            start = self._window[name]
        elif keep == "last":
            start = total - (count or 0)
        parts = self._parts(name, start, total)
        if not parts:
            return self._nothing(name, type_)
        if self._view.reverse:
            parts.reverse()
        if len(parts) == 1:
            return build.cast(parts[0], type_)
        common = tensor_type([-1, *list(type_.shape)[1:]], type_.element_type)
        operands = [build.cast(part, common) for part in parts]
        return build.cast(joined(operands, 0, common), type_)

    def _parts(self, name: str, start: int, stop: int) -> list[ir.Value]:
        """Stacks of rows, in order of time."""
        window = self._window[name]
        untouched = window and start == 0 and writes_of(self._declared[name]) == [0]
        if untouched and (window == 1 or not self._view.reverse):
            return [self._declared[name].operands[0], *self._parts(name, window, stop)]
        return [stack_of_one(self._row(name, position)) for position in range(start, stop)]

    def _nothing(self, name: str, type_: ir.Type) -> Any:
        """A result without rows."""
        declaration = self._declared[name]
        if is_state(declaration):
            sizes = [dim_of(declaration.operands[0], axis) for axis in range(1, len(type_.shape))]
        elif self._steps:
            row = self._rows[name][0]
            sizes = [dim_of(row, axis) for axis in range(len(row.type.shape))]
        else:
            sizes = self._empty[name]
        scalar = tensor_type([], type_.element_type)
        constant, value = constant_attribute(np.zeros((), element_dtype(type_.element_type)), scalar)
        zero = ir.Operation.create(constant, [scalar], attributes={"value": value}).result
        return repeated(zero, [const_index(0), *sizes], type_)


def _expanded_row(initial: ir.Value) -> Any:
    """The row that `initial` is a stack of one of, if that is how it was made."""
    op = definition(initial)
    order = None if op is None else order_of(op)
    row = None if op is None or order is None else op.operands[0]
    return row if row is not None and order == stacked_order(len(row.type.shape)) else None


@record()
class ScanUnroll(Pass):
    """Replaces a scan whose number of steps is a small constant by its iterations, one after the other.

    Without the loop, each iteration is simplified and fused with its neighbours and with what is around it;
    rows of sequences and states are at known positions. Results become a `join` of the rows that are kept;
    with 0 steps they are the initial rows, or empty. Checks in the body are kept in each iteration.

    * A scan is unrolled if it has at most `max-steps` steps and its iterations together at most
      `max-operations` operations: up to there the code is about as long as that of a loop with its buffers
      and tests, and compiling it does not take longer.
    * The attribute `unroll = u : i64` asks for more: with at most u steps the scan is unrolled, however
      large. With more steps the attribute stays, as a hint for the lowering.
    * A scan with a stop condition is unrolled if its bound is 0 or 1, as it then runs that many steps.
    * Inner scans come first; those that stay are copied into each iteration.
    * Where the sizes of a row do not follow from its type, a check per iteration sees to it that a state
      keeps the shape it starts with.

    Source: `unroll` of `jax.lax.scan`, and Theano's special case of scans of one step.

    Attributes:
        max-steps: unroll up to this number of steps.
        max-operations: unroll if there are no more operations than this in all iterations.
    """

    stage = "graph"
    max_steps: int = 4
    max_operations: int = 64

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            steps = self._wanted(ScanView(op))
            if steps is not None and unroll(ScanView(op), steps):
                self.count("scans unrolled")
                self.count("iterations", steps)

    def _wanted(self, view: ScanView) -> int | None:
        """The number of steps, if the scan is to be unrolled."""
        asked = view.op.attributes.get("unroll")
        if asked is not None and not isinstance(asked, ir.IntegerAttr):
            fail(view.op, f"'unroll' must be a number of steps such as 4 : i64, but is {asked}")
        steps = key_of(view.steps)
        if not isinstance(steps, int) or steps < 0 or (view.stop is not None and steps > 1):
            return None
        if asked is not None and steps <= asked.value:
            return steps
        if steps > self.max_steps or steps * len(walk(view.op)) > self.max_operations:
            return None
        return steps

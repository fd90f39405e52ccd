# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a scan computes, iteration by iteration, for the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir.constants import element_dtype
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    is_read,
    is_state,
    name_of,
    new_rows_of,
    retention,
    tap_of,
    window_of,
    writes_of,
)
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import outside_size

# What stands in bodies, and is part of what a scan does.
BODY = frozenset(f"graphc.scan_{name}" for name in ("seq", "prev", "carry", "collect", "end"))


class ScanRun:
    """One execution of a `graphc.scan`.

    Args:
        scan: the operation.
        values: values of everything that is visible to its body; gains those of the body.
        execute: runs one operation of the body.
        set_value: stores a result, checked against its type.
    """

    def __init__(
        self,
        scan: ir.Operation,
        values: dict[ir.Value, Any],
        execute: Callable[[Any], None],
        set_value: Callable[[Any, Any], None],
    ) -> None:
        self.scan = scan
        self._values = values
        self._execute = execute
        self._set = set_value
        self._view = ScanView(scan)
        self._declared = self._view.declarations()
        self._rows: dict[str, list[Any]] = {}
        self.steps = 0
        self.run()

    def run(self) -> None:
        """Runs all iterations."""
        for name, op in self._declared.items():
            self._rows[name] = list(self._values[op.operands[0]]) if is_state(op) else []
        view, body, stop = self._view, self._view.work(), self._view.stop
        n = self._values[view.steps]
        for step in range(n):
            self._values[view.index] = n - 1 - step if view.reverse else step
            for op in body:
                if is_read(op):
                    self._read(op, step)
                else:
                    self._execute(op)
            for name, op in self._declared.items():
                self._write(name, op, step)
            self.steps = step + 1
            if stop is not None and self._values[stop]:
                break

    def _read(self, op: ir.Operation, step: int) -> None:
        name = name_of(op)
        self._set(op.results[0], self._rows[name][window_of(self._declared[name]) + step + tap_of(op)])

    def _write(self, name: str, op: ir.Operation, step: int) -> None:
        rows = self._rows[name]
        if not is_state(op):
            rows.append(self._values[op.operands[0]])
            return
        rows.append(None)
        for write, value in zip(writes_of(op), new_rows_of(op), strict=True):
            row = self._values[value]
            if row.shape != self._values[op.operands[0]].shape[1:]:
                raise ValueError(
                    f"state '{name}' starts with rows of shape {self._values[op.operands[0]].shape[1:]}, "
                    f"but iteration {step} computes {row.shape}"
                )
            rows[window_of(op) + step + write] = row

    def trace(self, op: ir.Operation) -> None:
        """Sets the result of a `scan_trace`."""
        name = name_of(op)
        declared = self._declared[name]
        rows = self._rows[name]
        keep, count = retention(declared)
        if keep == "steps":
            rows = rows[window_of(declared) :]
        if count is not None:
            missing = max(count - len(rows), 0) if is_padded(declared) else 0
            rows = [self._nothing(declared)] * missing + rows[len(rows) + missing - count :]
        if self._view.reverse:
            rows = rows[::-1]
        type_ = op.results[0].type
        shape = self._row_shape(declared, type_)
        data = np.stack(rows) if rows else np.empty((0, *shape), element_dtype(type_.element_type))
        self._set(op.results[0], data)

    def _nothing(self, declared: Any) -> Any:
        """A row that stands for one that there is none of."""
        type_ = declared.operands[0].type
        if is_state(declared):
            return np.zeros_like(self._values[declared.operands[0]][0])
        shape = [
            size if size >= 0 else self._size(declared.operands[0], axis)
            for axis, size in enumerate(type_.shape)
        ]
        return np.zeros(shape, element_dtype(type_.element_type))

    def _row_shape(self, declared: Any, type_: ir.Type) -> tuple[int, ...]:
        """The shape of a row when there are none."""
        if is_state(declared):
            return tuple(self._values[declared.operands[0]].shape[1:])
        shape = []
        for axis, size in enumerate(list(type_.shape)[1:]):
            shape.append(size if size >= 0 else self._size(declared.operands[0], axis))
        return tuple(shape)

    def _size(self, value: ir.Value, axis: int) -> int:
        """The size of a row of an output, evaluated outside of the body by the dialect's own rule."""
        before = {op.operation for op in self.scan.block.operations}
        with ir.InsertionPoint(self.scan), self.scan.location:
            size = outside_size(self.scan, value, axis)
        created = [op.operation for op in self.scan.block.operations if op.operation not in before]
        for op in created:
            self._execute(op)
        result = self._values[size]
        for op in reversed(created):
            op.erase()
        return int(result)

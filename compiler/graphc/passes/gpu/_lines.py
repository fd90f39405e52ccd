# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of running operations and recurrences: lines, of whose elements each is made from the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.library.arrays.running import KINDS as ALONG_ROWS
from graphc.lowering.device_code.recurrences import LINEAR, RECURRENCE
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._memory import splat_of
from graphc.passes.gpu._prefix import Running
from graphc.passes.gpu._rows import product, split
from graphc_dialects._mlir import ir
from graphc_dialects.recurrence import KINDS

RUNNING = "running"
CALLS = (RUNNING, RECURRENCE)


class Lines:
    """The lines of a call; sizes are made at the insertion point.

    Attributes:
        running: how a number is made from the one before.
        count: how many lines there are.
        steps: how many numbers are made of each.
        itemsize: of a number, in bytes.
    """

    def __init__(self, call: LibraryCall) -> None:
        is_recurrence = call.kernel.name == RECURRENCE
        kind, dtype = call.attribute("kind"), call.dtypes[-1]
        names = (*KINDS, "linear") if is_recurrence else ALONG_ROWS
        count = len(call.buffers) - 1 - is_recurrence
        if not 0 <= kind < len(names) or count != (2 if is_recurrence and kind == LINEAR else 1):
            fail(call.op, f"'{call.kernel.name}' has no kind {kind} of {max(count, 0)} arrays")
        self.running = Running(names[kind], dtype)
        self.itemsize = int(np.dtype(dtype).itemsize)
        self._reverse = bool(call.attribute("reverse"))
        self._keeps = bool(call.attribute("keep_initial")) if is_recurrence else False
        *operands, self._result = call.buffers
        self._initial = operands.pop() if is_recurrence else None
        self._operands = operands
        sizes = build.dims(self._result)
        self._sizes = sizes[1:] if is_recurrence else sizes[:-1]
        self.steps = call.numbers[0] if is_recurrence else sizes[-1]
        self.count = product(self._sizes)
        self._first_axis = is_recurrence

    def split(self, line: ir.Value) -> list[ir.Value]:
        """The indices that the number of a line stands for."""
        return split(line, self._sizes)

    def first(self, line: Sequence[ir.Value]) -> ir.Value:
        """The number before the first step."""
        if self._initial is None:
            return self.running.neutral()[0]
        known = splat_of(self._initial)
        if known is not None:
            return known
        return self._load(self._initial, build.const_index(0), line)

    def step(self, number: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Operands of a step."""
        row = self._row(number)
        return [self._load(buffer, row, line) for buffer in self._operands]

    def store(self, value: ir.Value, number: ir.Value, line: Sequence[ir.Value]) -> None:
        """Writes what a step has made."""
        row = self._row(number)
        if self._keeps and not self._reverse:
            row = row + 1
        self._store(value, row, line)

    def store_first(self, line: Sequence[ir.Value]) -> None:
        """Writes the number before the first step, if the result has it."""
        if self._keeps:
            self._store(self.first(line), self.steps if self._reverse else build.const_index(0), line)

    @property
    def keeps_first(self) -> bool:
        """True if the result has the number before the first step."""
        return self._keeps

    def _row(self, number: ir.Value) -> ir.Value:
        if not self._reverse:
            return number
        return self.steps - 1 - number

    def _place(self, buffer: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Indices in a buffer; sizes of 1 serve all."""
        indices = [row, *line] if self._first_axis else [*line, row]
        shape = list(ir.MemRefType(buffer.type).shape)
        return [build.const_index(0) if size == 1 else x for size, x in zip(shape, indices, strict=True)]

    def _load(self, buffer: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> ir.Value:
        return buffer[self._place(buffer, row, line)]

    def _store(self, value: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> None:
        self._result[self._place(self._result, row, line)] = value


def lies_along_rows(call: LibraryCall) -> bool:
    """True if elements of a line lie side by side, and not elements of different lines."""
    shape = list(ir.MemRefType(call.buffers[-1].type).shape)
    return call.kernel.name == RUNNING or all(size == 1 for size in shape[1:])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Carried and kept rows of one state or output of a scan.

A window of the most recent rows goes from iteration to iteration: scalars in registers for rows of one
element, otherwise pointers to rows. Pointers rotate, so that shifting the window copies nothing. With a kept
trace a new row is computed in its place there; without one in a spare row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of, fill_buffer
from graphc.ir.scan_view import ScanView, is_state, new_rows_of, retention, tap_of, window_of, writes_of
from graphc.lowering.generic import ScalarWork
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.lowering.scans.buffers import Stack, copy, initial_row, read, row_pointer_type, write, write_apart
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


@record()
class Bounds:
    """The extent of a scan.

    Attributes:
        limit: index value, the most iterations.
        reverse: whether rows are stored from the end.
        is_while: whether a condition may end it earlier.
        taken: index value after the loop, the iterations that were run.
    """

    limit: Any
    reverse: bool
    is_while: bool
    taken: Any = None


class Rows:
    """One state or output of a scan that is being lowered.

    Args:
        context: the function conversion. view: the scan. name: of the state or output.
        declaration: its `scan_carry` or `scan_collect`. bounds: how far the scan runs.

    Attributes:
        width: number of values carried from iteration to iteration.
    """

    width: int

    def __init__(
        self, context: Conversion, view: ScanView, name: str, declaration: ir.Operation, bounds: Bounds
    ) -> None:
        self.context, self.view, self.name = context, view, name
        self.bounds = bounds
        self.traces = view.traces(name)
        self.reads = view.reads(name)
        self.is_state = is_state(declaration)
        self.initial: Any = declaration.operands[0] if self.is_state else None
        self.values = new_rows_of(declaration)
        self.writes = writes_of(declaration)
        self.known = window_of(declaration)
        keep, rows = retention(declaration)
        self.last = rows if keep == "last" and self.traces else None
        self.keeps_trace = keep != "last" and bool(self.traces)
        # Rows that may still be written are stored when they leave the window.
        self.in_order = len(self.writes) > 1
        self.keeps_initial = self.is_state and (keep == "all" or self.in_order)
        self.drops_initial = self.in_order and keep == "steps"
        self.window = max(self.known, self.last or 0)
        old = self.values[0].type
        storage = build.storage_type(old)
        self.dtype: np.dtype = dtype_of(old.element_type)
        if self.initial is not None:
            shape = [
                a if a >= 0 else b
                for a, b in zip(storage.shape, list(self.initial.type.shape)[1:], strict=True)
            ]
            storage = ir.RankedTensorType.get(shape, storage.element_type)
            self.sizes = context.sizes_of(self.initial)[1:]
        else:
            needed = self.traces and not all(size >= 0 for size in storage.shape)
            self.sizes = context.row_sizes(view.op, name) if needed else _static_sizes(storage)
        self.row_type = storage
        self.in_place = "inplace" in declaration.attributes
        self.is_empty = 0 in list(storage.shape) or isinstance(self, EmptyRows)
        # Whether rows are stored where those are that the iteration reads.
        self.apart = False
        self.trace = self._allocate_trace() if self.keeps_trace and not self.is_empty else None

    def _allocate_trace(self) -> Stack:
        for trace in self.traces:
            if not self.bounds.is_while and not self.drops_initial:
                buffer = self._claim(trace.results[0])
                if buffer is not None:
                    self.apart = trace.results[0] in self.context.apart
                    return Stack(buffer)
        rows = self.bounds.limit
        if self.keeps_initial:
            rows = rows + self.known
        return Stack.allocate(rows, self.row_type, self.sizes)

    def _claim(self, value: ir.Value) -> ir.Value | None:
        """Memory in which a trace is wanted: the caller's, or part of a join."""
        return self.context.destinations.claim_buffer(value)

    # -- positions -------------------------------------------------------------------------------------------

    def stored_index(self, row: Any) -> ir.Value:
        """Storage position of a logical row (initial rows first); an int or index value that is >= 0."""
        first = 0 if self.keeps_initial else self.known
        if isinstance(row, int):
            row = build.const_index(row)
        if not self.bounds.reverse:
            return row - first if first else row
        last = self.bounds.limit + (self.known - 1)
        return last - row

    def new_row(self, step: ir.Value) -> ir.Value:
        """The logical row that iteration `step` computes."""
        return step + self.known if self.known else step

    # -- results ---------------------------------------------------------------------------------------------

    def define_trace(self) -> None:
        """Defines the traces from the kept rows."""
        assert self.trace is not None
        rows = self.bounds.taken
        offset = None
        if self.keeps_initial and not self.drops_initial:
            rows = rows + self.known
        if self.bounds.is_while or self.drops_initial:
            offset = build.const_index(self.known if self.drops_initial and not self.bounds.reverse else 0)
            if self.bounds.reverse:
                offset = self.bounds.limit - self.bounds.taken
        for op in self.traces:
            kind = build.storage_type(op.results[0].type)
            tensor = self.trace.tensor(kind, offset, rows if offset is not None else None)
            self.context.define(op.results[0], tensor)
            self.context.define_sizes(op.results[0], [rows, *self.sizes])

    def define_last(self, stack: Stack) -> None:
        """Defines the traces from a stack of the last rows."""
        for op in self.traces:
            self.context.define(op.results[0], stack.tensor(build.storage_type(op.results[0].type)))
            rows = build.const_index(self.last or 0)
            self.context.define_sizes(op.results[0], [rows, *self.sizes])

    def last_stack(self) -> Stack:
        """Memory for the last rows, the caller's if possible."""
        for op in self.traces:
            buffer = self._claim(op.results[0])
            if buffer is not None:
                return Stack(buffer)
        return Stack.allocate(self.last or 0, self.row_type, self.sizes)

    def last_positions(self) -> list[int]:
        """Positions in the stack of last rows of the window's last rows, oldest first."""
        order = list(range(self.last or 0))
        return order[::-1] if self.bounds.reverse else order

    # -- what subclasses do ----------------------------------------------------------------------------------

    def before(self) -> list[Any]:
        """Initial values of what is carried."""
        raise NotImplementedError

    def begin(self, carried: list[Any], step: Any, t: Any) -> None:
        """At the start of an iteration: defines what is read."""
        raise NotImplementedError

    def end(self) -> list[Any]:
        """At the end of an iteration: keeps what was computed, returns what is carried on."""
        raise NotImplementedError

    def after(self, carried: list[Any]) -> None:
        """After the loop: defines the results."""
        raise NotImplementedError

    def _shifted(self, window: list[ir.Value], new: dict[int, ir.Value]) -> list[Any]:
        """The window of the next iteration; `new` has the written rows by offset."""
        rows = [*window[1:], None] if window else []
        for offset, row in new.items():
            if rows:
                rows[len(rows) - 1 + offset] = row
        return rows


def _static_sizes(storage: ir.Type) -> list[Any]:
    return [build.const_index(size) if size >= 0 else None for size in storage.shape]


def have_no_elements(context: Any, declaration: Any) -> bool:
    """True if the rows of a state or output are known to be empty.

    Sizes that are constants here are static after upstream's simplifications, and then it refuses pointers to
    such rows.
    """
    *initial, value = list(declaration.operands)
    known = list(value.type.shape)
    if is_state(declaration):
        known += [build.constant_value(size) for size in context.sizes_of(initial[0])[1:]]
    return 0 in known


class ScalarRows(Rows):
    """Rows of one element: the window is in registers."""

    def before(self) -> list[ir.Value]:
        self.width = self.window
        work = ScalarWork(self.context, [])
        missing = self.window - self.known
        values = [work.scalar.const(0, self.dtype)] * missing
        values += [work.element(self.initial, (build.const_index(k),)) for k in range(self.known)]
        if self.trace is not None and self.keeps_initial and not self.in_order:
            for k, value in enumerate(values[missing:]):
                self.trace.store(work.scalar.stored(value), self.stored_index(k))
        return [value.value for value in values]

    def begin(self, carried: list[ir.Value], step: ir.Value, t: ir.Value) -> None:
        self._window, self._step = carried, step
        for op in self.reads:
            tap = tap_of(op)
            self.context.define_scalar(op.results[0], Scalar(carried[self.window + tap], self.dtype))

    def end(self) -> list[ir.Value]:
        work = ScalarWork(self.context, [])
        new = [work.element(value) for value in self.values]
        if self.trace is not None and self.in_order:
            self._store(self._window[0], self.stored_index(self._step))
        elif self.trace is not None:
            self._store(new[-1].value, self.stored_index(self.new_row(self._step)))
        return self._shifted(
            self._window, {offset: x.value for offset, x in zip(self.writes, new, strict=True)}
        )

    def _store(self, value: ir.Value, index: ir.Value) -> None:
        assert self.trace is not None
        self.trace.store(ScalarBuilder(ir).stored(Scalar(value, self.dtype)), index)

    def after(self, carried: list[ir.Value]) -> None:
        if self.trace is not None:
            if self.in_order:
                for k, value in enumerate(carried):
                    row = self.bounds.taken + k
                    self._store(value, self.stored_index(row))
            self.define_trace()
        elif self.last is not None:
            self._define_last(carried[len(carried) - self.last :])

    def _define_last(self, values: list[ir.Value]) -> None:
        work = ScalarWork(self.context, [])
        stack = self.last_stack()
        for position, value in zip(self.last_positions(), values, strict=True):
            stack.store(work.scalar.stored(Scalar(value, self.dtype)), build.const_index(position))
        self.define_last(stack)


class BufferRows(Rows):
    """Rows in memory: the window consists of pointers, followed by pointers to spare rows."""

    def before(self) -> list[ir.Value]:
        self._pointer = row_pointer_type(self.row_type)
        self._direct = self.trace is not None and not self.in_order
        # Rows of a kept trace with its initial rows are found by their number; nothing has to be carried.
        self._numbered = self._direct and self.keeps_initial
        if not self.is_state and not self.last:
            self.width = 0
            return []
        if self._numbered:
            self.width = 0
            return self._fill_initial([self._slot(k) for k in range(self.known)], carried=False)
        spare = 0 if self._direct else len(self.writes)
        self.width = self.window + spare
        if not self.width:
            return []
        missing = self.window - self.known
        if self.in_place and not missing:
            return self._on_initial(spare)
        stack = Stack.allocate(self.width, self.row_type, self.sizes)
        pointers = [stack.row(k, self._pointer) for k in range(self.width)]
        for pointer in pointers[:missing]:
            # Not computed yet, and not seen before it is.
            work = ScalarWork(self.context, [])
            fill_buffer(work.scalar.stored(work.scalar.const(0, self.dtype)), pointer)
        self._fill_initial(pointers[missing : self.window], carried=True)
        return pointers

    def _on_initial(self, spare: int) -> list[Any]:
        """Uses the memory of the initial rows, which nobody else reads, as the first window."""
        tensor = self.context.tensor_of(self.initial)
        kind = ir.RankedTensorType(tensor.type)
        memref = ir.MemRefType.get(kind.shape, kind.element_type)
        window = Stack(build.create("bufferization.to_buffer", [memref], [tensor]).result)
        pointers = [window.row(k, self._pointer) for k in range(self.window)]
        if spare:
            rest = Stack.allocate(spare, self.row_type, self.sizes)
            pointers += [rest.row(k, self._pointer) for k in range(spare)]
        return pointers

    def _fill_initial(self, pointers: list[ir.Value], carried: bool) -> list[ir.Value]:
        for k, pointer in enumerate(pointers):
            write(initial_row(self.context, self.initial, k), pointer)
        return pointers if carried else []

    def _slot(self, row: ir.Value | int) -> ir.Value:
        assert self.trace is not None
        return self.trace.row(self.stored_index(row), self._pointer)

    def begin(self, carried: list[ir.Value], step: ir.Value, t: ir.Value) -> None:
        self._window, self._spare, self._step = carried[: self.window], carried[self.window :], step
        if not self.width:
            self._window = []
        self._targets = []
        if self._direct:
            self._targets = [self._slot(self.new_row(step))]
        elif self._spare:
            self._targets = self._spare[: len(self.writes)]
        for value, target in zip(self.values, self._targets, strict=False) if not self.apart else ():
            self.context.destinations.offer_row(value, target)
        for op in self.reads:
            tap = tap_of(op)
            pointer = self._window[self.window + tap] if self._window else self._earlier(tap)
            kind = build.storage_type(op.results[0].type)
            self.context.define(op.results[0], read(pointer, kind))
            self.context.define_sizes(op.results[0], self.sizes)

    def _earlier(self, tap: int) -> ir.Value:
        row = self._step + (self.known + tap)
        return self._slot(row)

    def end(self) -> list[ir.Value]:
        for value, target in zip(self.values, self._targets, strict=False):
            if not self.context.destinations.is_in_row(value, target):
                apart = self.apart or self.context.destinations.is_checked_late(value)
                (write_apart if apart else write)(self.context.tensor_of(value), target)
        if self.trace is not None and self.in_order:
            copy(self._window[0], self._slot(self._step))
        if not self.width:
            return []
        new = dict(zip(self.writes, self._targets, strict=True))
        shifted = self._shifted(self._window, new)
        if self._direct:
            return shifted
        rest = [pointer for pointer in self._window if pointer not in shifted]
        return [*shifted, *rest]

    def after(self, carried: list[ir.Value]) -> None:
        if self.trace is not None:
            if self.in_order:
                for k, pointer in enumerate(carried[: self.window]):
                    row = self.bounds.taken + k
                    copy(pointer, self._slot(row))
            self.define_trace()
        elif self.last is not None:
            stack = self.last_stack()
            window = carried[: self.window]
            for position, pointer in zip(
                self.last_positions(), window[len(window) - self.last :], strict=True
            ):
                copy(pointer, stack.row(position, self._pointer))
            self.define_last(stack)


class EmptyRows(Rows):
    """Rows without elements: nothing is carried or kept. (Upstream refuses pointers to such rows.)"""

    def before(self) -> list[Any]:
        self.width = 0
        return []

    def begin(self, carried: list[Any], step: Any, t: Any) -> None:
        for op in self.reads:
            kind = build.storage_type(op.results[0].type)
            self.context.define(op.results[0], build.empty(kind, self.sizes))
            self.context.define_sizes(op.results[0], self.sizes)

    def end(self) -> list[Any]:
        return []

    def after(self, carried: list[Any]) -> None:
        rows = self.bounds.taken if self.last is None else build.const_index(self.last)
        if self.last is None and self.keeps_initial and not self.drops_initial:
            rows = rows + self.known
        for op in self.traces:
            sizes = [rows, *self.sizes]
            self.context.define(op.results[0], build.empty(build.storage_type(op.results[0].type), sizes))
            self.context.define_sizes(op.results[0], sizes)

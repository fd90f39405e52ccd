# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of scans that an iteration changes in part: one buffer for the whole loop.

The new row of such a state is made from the old one by updates alone, each of the result of the one before.
These results are *versions* of one memory. The loop then costs what it writes, and not its steps times the
size of a row.

The invariant: when an update stores, everything that reads an older version has been read. Three things make
it true. Readers come before the update, by an order that the units of the block obey (`UpdatedStates.after`).
What cannot come before it is copied: what needs the update's result, what the update itself puts there, what
the iteration stores at its end. The smallest thing is copied that is known before the update: the part that
is read, or what it is part of. And what upstream may find to be an older version (a view, `x * 1`) is looked
through.

A loop in the body that starts from a version, and changes that in part, is one of the updates: its state has
the memory of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.scan_view import ScanView, is_trace, name_of, new_rows_of, retention, taps_of, writes_of
from graphc.ir.views import INLINED, RENAMES, TAKES_ROW, UPDATES, order_of, stacked_order
from graphc.ir.walk import definition, is_defined_in, within
from graphc.lowering.generic import is_one_element
from graphc.lowering.memory.destinations import Destination, is_fill
from graphc.lowering.memory.units import Unit, Units
from graphc.lowering.memory.vanishing import may_vanish
from graphc.lowering.rules import UpdatedState
from graphc.lowering.scans.buffers import (
    Stack,
    copy,
    extract_row,
    initial_row,
    read,
    row_pointer_type,
    write,
    write_apart,
)
from graphc.lowering.scans.rows import Rows
from graphc_dialects._base import dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.write import new_buffer, read_buffer, write_to

Pair = tuple[ir.Operation, ir.Operation]
Use = tuple[ir.Operation, int]
_ALIASES = frozenset({*INLINED, *RENAMES, *TAKES_ROW})


class UpdatedStates:
    """The states of this kind in one function; late readers of their versions are given copies.

    Args:
        row_sizes: for the result of each scan of a `func.func` whose clusters are final, index
            values for the rows of its outputs.

    Attributes:
        states, updates: see `Conversion`.
    """

    def __init__(self, row_sizes: dict[ir.Value, dict[str, list[ir.Value]]]) -> None:
        self._extra = {scan: [x for row in sizes.values() for x in row] for scan, sizes in row_sizes.items()}
        self.states: dict[tuple[ir.Value, str], UpdatedState] = {}
        self.updates: dict[ir.Value, UpdatedState] = {}
        self._after: dict[ir.Block, list[Pair]] = {}
        for scan in row_sizes:
            self._plan(ScanView(scan.owner.operation))

    def after(self, block: ir.Block) -> list[Pair]:
        """Pairs of operations of a body, of which the first must come after the second."""
        return self._after.get(block, [])

    # -- which states ----------------------------------------------------------------------------------------

    def _plan(self, view: ScanView) -> None:
        found = {name: self._find(view, name, carry) for name, carry in view.carries().items()}
        states = {name: state for name, state in found.items() if state is not None}
        if not states:
            return
        order = _Order(view.block, self._extra)
        for name, state in states.items():
            self.states[view.op.results[0], name] = state
            self.updates.update((x, state) for x in state.results)
            for update in state.updates:
                for inner in self._inner(update, state):
                    inner.around = state
            order.protect(state)
        self._after[view.block] = order.finish()

    def _find(self, view: ScanView, name: str, carry: ir.Operation) -> UpdatedState | None:
        """A state that is changed by updates only, and of which no older row is kept."""
        keep, rows = retention(carry)
        if taps_of(carry) != [-1] or writes_of(carry) != [0]:
            return None
        if view.traces(name) and (keep != "last" or rows != 1):
            return None
        (value,) = new_rows_of(carry)
        if is_one_element(value) or 0 in static_shape(value):
            return None
        reads = view.reads(name)
        if not reads or any(op.results[0].type != value.type for op in reads):
            return None
        updates: list[ir.Operation] = []
        results: list[ir.Value] = []
        while all(value != op.results[0] for op in reads):
            made = self._updated(view, value)
            if made is None:
                return None
            update, older = made
            if older.type != value.type:
                return None
            updates.insert(0, update)
            results.insert(0, value)
            value = older
        return UpdatedState(_one_read(view, name, reads), updates, results) if updates else None

    def _updated(self, view: ScanView, value: ir.Value) -> tuple[ir.Operation, ir.Value] | None:
        """The update that makes a value, and what it starts from; None if something else makes it."""
        op = value.owner
        if isinstance(op, ir.Block) or op.operation.block != view.block:
            return None
        if op.name in UPDATES:
            return op.operation, op.operands[0]
        rank = len(value.type.shape)
        if order_of(op) != list(range(1, rank + 1)) or not is_defined_in(op.operands[0], view.block):
            return None
        trace = op.operands[0].owner.operation
        # An order does not tell of further axes, of size 1, that it drops.
        if not is_trace(trace) or len(op.operands[0].type.shape) != rank + 1:
            return None
        loop = ScanView(trace.operands[0].owner)
        inner = self.states.get((loop.op.results[0], name_of(trace)))
        if inner is None or inner.around is not None:
            return None
        stack = loop.carries()[name_of(trace)].operands[0]
        row = _unstacked(stack)
        return (loop.op, row) if is_defined_in(stack, view.block) and row != stack else None

    def _inner(self, update: ir.Operation, state: UpdatedState) -> Iterator[UpdatedState]:
        """The states of a loop that is an update of a state, which has its memory."""
        if update.name in UPDATES:
            return
        result = state.results[state.updates.index(update)]
        yield self.states[update.results[0], name_of(result.owner.operands[0].owner)]


def _one_read(view: ScanView, name: str, reads: list[ir.Operation]) -> ir.Value:
    """One read of a state at the start of the body in the place of all."""
    with ir.InsertionPoint.at_block_begin(view.block), reads[0].location:
        value = view.read(name, -1, reads[0].results[0].type)
    for op in reads:
        op.results[0].replace_all_uses_with(value)
        op.erase()
    return value


class _Order:
    """Readers of versions before the updates that overwrite these.

    Args:
        block: the body.
        extra: see `Units`.
    """

    def __init__(self, block: ir.Block, extra: dict[ir.Value, list[ir.Value]]) -> None:
        self._block = block
        self._units = Units(block, extra)
        self._needs = self._units.needs()
        self._pairs: list[Pair] = []
        # Uses that read a value too late: the update, the value that is to be copied before it, and the uses.
        self._late: list[tuple[ir.Operation, ir.Value, list[Use]]] = []

    def protect(self, state: UpdatedState) -> None:
        """Orders the readers of all versions that are overwritten."""
        for older, update in zip([state.first, *state.results], state.updates, strict=False):
            unit = self._units.unit_of(update)
            late = self._that_need(unit)
            copies: dict[ir.Value, list[Use]] = {}
            for value, op, number in self._readers(older, update, state, late):
                top = within(op, self._block)
                if top == update or top.name in DECLARATIONS or self._units.unit_of(top) in late:
                    value, op, number = self._early(value, op, number, late)
                    copies.setdefault(value, []).append((op, number))
                else:
                    self._add(unit, update, top)
            for value, uses in copies.items():
                self._late.append((update, value, uses))
                if is_defined_in(value, self._block):
                    self._needs[unit].add(self._units.unit_of(value.owner.operation))

    def _add(self, unit: Unit, update: ir.Operation, earlier: ir.Operation) -> None:
        other = self._units.unit_of(earlier)
        if other != unit and other not in self._needs[unit]:
            self._needs[unit].add(other)
            self._pairs.append((update, earlier))

    def finish(self) -> list[Pair]:
        """Makes the copies; returns pairs of operations, of which the first must come after the second."""
        for update, value, uses in self._late:
            copied, written = _copy_after(value)
            for op, number in uses:
                op.operands[number] = copied
            self._pairs.append((update, written))
        return self._pairs

    def _that_need(self, unit: Unit) -> set[Unit]:
        """The units that cannot come before a unit."""
        users: dict[Unit, list[Unit]] = {}
        for user, wanted in self._needs.items():
            for other in wanted:
                users.setdefault(other, []).append(user)
        found, pending = {unit}, [unit]
        while pending:
            for user in users.get(pending.pop(), ()):
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return found

    def _early(
        self, value: ir.Value, op: ir.Operation, number: int, late: set[Unit]
    ) -> tuple[ir.Value, ir.Operation, int]:
        """The use of a view, or the use of what it is a view of that is known before the update."""
        while self._units.unit_of(value.owner.operation) in late:
            op, number = value.owner.operation, 0
            value = op.operands[0]
        return value, op, number

    def _readers(
        self, older: ir.Value, update: ir.Operation, state: UpdatedState, late: set[Unit]
    ) -> Iterator[tuple[ir.Value, ir.Operation, int]]:
        """Uses that read elements of a version: what they use, the operation, and the operand's number."""
        pending = [older]
        if older in state.results and older.owner.name not in UPDATES:
            # The result of a loop, whose trace is the same memory.
            pending = list({older.owner.operands[0], *_traces(older)})
        base = _base_of(update, state)
        while pending:
            value = pending.pop()
            for use in value.uses:
                op, number = use.owner.operation, use.operand_number
                if op.name == "tensor.dim" or (op == base[0] and number == base[1] and value == base[2]):
                    continue
                is_alias = op.block == self._block and op.name in _ALIASES
                if is_alias:
                    pending.append(op.results[0])
                    continue
                if op == update and op.name in UPDATES and number == 1 and is_one_element(value):
                    continue  # it is loaded before it is stored
                yield value, op, number
                if self._may_be(op, late):
                    pending.append(op.results[0])

    def _may_be(self, op: ir.Operation, late: set[Unit]) -> bool:
        """True if what a reader makes before the update may be a version itself."""
        if op.block != self._block or not may_vanish(op) or is_one_element(op.results[0]):
            return False
        return self._units.unit_of(op) not in late


def _traces(result: ir.Value) -> list[ir.Value]:
    trace = result.owner.operands[0].owner
    return [op.results[0] for op in ScanView(trace.operands[0].owner).traces(name_of(trace))]


def _base_of(update: ir.Operation, state: UpdatedState) -> tuple[ir.Operation, int, ir.Value]:
    """The use by which an update takes the memory over: the operation, the operand's number, the value."""
    if update.name in UPDATES:
        return update, 0, update.operands[0]
    trace = state.results[state.updates.index(update)].owner.operands[0].owner
    carry = ScanView(update).carries()[name_of(trace)]
    return carry, 0, carry.operands[0]


def _copy_after(value: ir.Value) -> tuple[ir.Value, ir.Operation]:
    """A copy of a value, right after what makes it; also the operation that writes it."""
    operations = list(value.owner.operation.block.operations)
    following = operations[[op.operation for op in operations].index(value.owner.operation) + 1]
    with ir.InsertionPoint(following), value.owner.location:
        sizes = [dim_of(value, axis) for axis in range(len(value.type.shape))]
        buffer = new_buffer(value.type, sizes)
        token = write_to(value, buffer)
        return read_buffer(buffer, [token], value.type), token.owner.operation


class UpdatedRows(Rows):
    """The row of an `UpdatedState`: nothing is carried, every iteration finds it where it is."""

    def before(self) -> list[ir.Value]:
        self.width = 0
        self._pointer = row_pointer_type(self.row_type)
        self._stack: Stack | None = None
        state = self.context.states[self.view.op.results[0], self.name]
        self._state, around = state, state.around
        row = self._choose() if around is None or around.memory is None else around.memory
        if row.type != self._pointer:
            row = build.create("memref.cast", [self._pointer], [row]).result
        self._row = state.memory = row
        return []

    def _choose(self) -> ir.Value:
        """Memory with the initial row: its own if nobody else reads it, else where the last row is wanted."""
        source = _unstacked(self.initial)
        if self.in_place and self.context.has_tensor(source) and source != self.initial:
            tensor = self.context.tensor_of(source)
            plain = ir.MemRefType.get(tensor.type.shape, tensor.type.element_type)
            return build.create("bufferization.to_buffer", [plain], [tensor]).result
        self._stack = self._claimed(lent=False) or Stack.allocate(1, self.row_type, self.sizes)
        row = self._stack.row(0, self._pointer)
        if is_fill(source) and not self.context.is_materialised(source):
            write(initial_row(self.context, self.initial, 0), row)
        else:
            # Others may read it: it must not be computed in memory that changes.
            write_apart(extract_row(self.context.tensor_of(self.initial), build.const_index(0)), row)
        return row

    def _claimed(self, *, lent: bool = True) -> Stack | None:
        found = (self.context.destinations.claim_buffer(op.results[0], lent=lent) for op in self.traces)
        return next((Stack(buffer) for buffer in found if buffer is not None), None)

    def begin(self, carried: list[ir.Value], step: ir.Value, t: ir.Value) -> None:
        for op in self.reads:
            self.context.define(op.results[0], read(self._row, build.storage_type(op.results[0].type)))
            self.context.define_sizes(op.results[0], self.sizes)

    def end(self) -> list[ir.Value]:
        return []

    def after(self, carried: list[ir.Value]) -> None:
        if not self.traces:
            return
        if self._stack is None and self._state.around is None:
            self._stack = self._claimed()
            if self._stack is not None:
                copy(self._row, self._stack.row(0, self._pointer))
        if self._stack is None:
            row = Destination.whole(self._row, self.sizes)
            shape = [1, *(None if size < 0 else size for size in self.row_type.shape)]
            self._stack = Stack(row.reshaped([1, *self.sizes]).memref(shape))
        self.define_last(self._stack)


def _unstacked(initial: ir.Value) -> ir.Value:
    """The row that a stack of one row was made of, or the stack."""
    owner, rank = definition(initial), len(initial.type.shape) - 1
    row = owner.operands[0] if owner is not None and order_of(owner) == stacked_order(rank) else initial
    return row if len(row.type.shape) == rank else initial

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work after a loop: on rows of sequences, of kept states and outputs, and of outputs added for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphc.ir.rewrite import erase_unused, erase_unused_between, is_tensor
from graphc.ir.scan_view import ScanView, collect, name_of
from graphc.ir.traits import CannotBatch
from graphc.ir.views import MOVES_AXES
from graphc.passes.loops._batch import Batcher, copy_size, is_total
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops._cost import is_expensive, loop_elements, needed_in_loop, row_elements
from graphc.passes.loops.scan_to_map import KeptRows, first_iteration, is_sequence_row, rule_of
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import steps_of

_VIEWS = frozenset({*MOVES_AXES, "graphc.neg", "tensor.cast"})
# Longer chains are cut: rules call each other along them.
_DEPTH = 64


class After:
    """Plans and builds work after one scan.

    Use it as a context manager: inside, the insertion point is right after the scan; at the end what the
    body and the work after it left unused is erased.

    Args:
        view: the scan.
        growth: rows of intermediate stacks have at most so many times the elements of an iteration's rows.
        movable: declarations whose own needs do not keep work in the loop.
    """

    def __init__(self, view: ScanView, growth: int, movable: Iterable[ir.Operation] = ()) -> None:
        self.view = view
        self._limit = growth * loop_elements(view)
        self.needed = needed_in_loop(view, frozenset(movable))
        self._planned: dict[ir.Value, frozenset[ir.Value]] = {}
        self._fixed: dict[ir.Value, bool] = {}
        self._positions: dict[ir.Value, int] = {}
        self._used: dict[str, bool] = {}

    def __enter__(self) -> After:
        self._location = self.view.op.location
        self._location.__enter__()
        # What follows the scan may be erased, so an operation of our own marks the place.
        with ir.InsertionPoint.after(self.view.op):
            self._anchor = const_index(0).owner.operation
        self._point = ir.InsertionPoint(self._anchor)
        self._point.__enter__()
        self.steps = steps_of(self.view.op)
        self.rows = KeptRows(self.view, first_iteration(self.view, self.steps))
        self.batcher = Batcher(self.view, self.steps, self.rows, rule_of)
        return self

    def __exit__(self, *error: Any) -> None:
        self._point.__exit__(*error)
        self._location.__exit__(*error)
        if error[0] is None:
            erase_unused_between(self.view.op, self._anchor)
            erase_unused(self.view.work())
        self._anchor.erase()

    # -- plans -----------------------------------------------------------------------------------------------

    def is_fixed(self, value: ir.Value, depth: int = _DEPTH) -> bool:
        """True if a value is the same in all iterations and can be had outside."""
        if value not in self._fixed:
            self._fixed[value] = self._find_fixed(value, depth)
        return self._fixed[value]

    def _find_fixed(self, value: ir.Value, depth: int) -> bool:
        if not self.view.is_inside(value):
            return True
        op = value.owner
        if isinstance(op, ir.Block) or not depth or not is_total(op.operation):
            return False
        return all(self.is_fixed(x, depth - 1) for x in op.operands if is_tensor(x))

    def is_kept(self, value: ir.Value) -> bool:
        """True if the rows of a value are in memory anyway."""
        if is_sequence_row(self.view, value):
            return True
        declaration = self.rows.declaration(value)
        return declaration is not None and self._is_used(declaration)

    def _is_used(self, declaration: ir.Operation) -> bool:
        """True if more than the last row of a trace is used."""
        name = name_of(declaration)
        if name not in self._used:
            traces = self.view.traces(name)
            uses = any(use.owner.name != "tensor.dim" for trace in traces for use in trace.results[0].uses)
            self._used[name] = uses and not LastRowUses(self.view, name).only
        return self._used[name]

    def new_rows(self, value: ir.Value, keep: bool = True) -> frozenset[ir.Value]:
        """The values whose rows have to be kept in addition, so that the stack of a value can be computed
        after the loop without repeating its expensive work.

        Args:
            value: a tensor of the body.
            keep: the rows of the value itself may be taken if they are in memory.
        """
        if not keep:
            return self._find_new_rows(value, _DEPTH, False)
        if value not in self._planned:
            self._planned[value] = self._find_new_rows(value, _DEPTH, True)
        return self._planned[value]

    def _find_new_rows(self, value: ir.Value, depth: int, keep: bool) -> frozenset[ir.Value]:
        if self.is_fixed(value) or (keep and self.is_kept(value)):
            return frozenset()
        op = value.owner
        itself = frozenset([value])
        if not self._can_move(value, depth):
            return itself
        found: set[Any] = set()
        for x in op.operands:
            if is_tensor(x):
                if x not in self._planned:
                    self._planned[x] = self._find_new_rows(x, depth - 1, True)
                found |= self._planned[x]
        stays = op.operation in self.needed and op.name not in _VIEWS
        # Where rows become smaller is the place to cut.
        cut = stays or self.elements(found) > row_elements(value.type)
        return itself if found and cut else frozenset(found)

    def elements(self, values: Iterable[ir.Value]) -> int:
        """Elements that an iteration adds to memory if the rows of values are kept."""
        sizes = {}
        for value in values:
            declaration = self.rows.declaration(value)
            key = value if declaration is None else name_of(declaration)
            sizes[key] = row_elements(value.type)
        return sum(sizes.values())

    def _can_move(self, value: ir.Value, depth: int) -> bool:
        op = value.owner
        if isinstance(op, ir.Block) or not depth or rule_of(op.name) is None:
            return False
        if op.operation in self.needed and is_expensive(op.operation):
            return False
        return row_elements(value.type) <= self._limit

    def work(self, value: ir.Value, stop: frozenset[ir.Value]) -> list[ir.Operation]:
        """The operations that computing a value's stack moves after the loop (not those that stay too)."""
        found: list[Any] = []
        seen: set[object] = set()
        pending = [value]
        while pending:
            x = pending.pop()
            if x in seen or x in stop or self.is_fixed(x) or (x != value and self.is_kept(x)):
                continue
            seen.add(x)
            op = x.owner.operation
            if op not in self.needed:
                found.append(op)
            pending += [operand for operand in op.operands if is_tensor(operand)]
        return found

    def can_keep(self, values: Iterable[ir.Value]) -> bool:
        """True if stacks of values have sizes that are known outside."""
        try:
            for value in values:
                for axis, size in enumerate(value.type.shape):
                    if size < 0:
                        copy_size(self.view, value, axis)
        except CannotBatch:
            return False
        return True

    # -- building --------------------------------------------------------------------------------------------

    def keep_rows(self, values: Iterable[ir.Value]) -> list[Any]:
        """Collects values in the body; returns the new operations."""
        added = []
        for value in sorted(values, key=self.position):
            if self.rows.declaration(value) is not None:
                continue
            end = self.view.end
            made_at = end if isinstance(value.owner, ir.Block) else value.owner
            with ir.InsertionPoint(end), made_at.location:
                declared = collect(value, self.view.with_unique(self._name(value)))
            self.rows.add(declared)
            added.append(declared)
        return added

    def _name(self, value: ir.Value) -> str:
        owner = value.owner
        return "rows" if isinstance(owner, ir.Block) else f"{owner.name.rpartition('.')[2]}_rows"

    def position(self, value: ir.Value) -> int:
        """The place of a value in the body, for a fixed order."""
        if not self._positions:
            for number, op in enumerate(self.view.operations()):
                self._positions.update(dict.fromkeys(op.results, number))
        return self._positions.get(value, -1)

    def drop_rows(self, collects: Iterable[Any]) -> None:
        """Undoes `keep_rows` for operations whose rows nothing uses."""
        for declared in collects:
            traces = self.view.traces(name_of(declared))
            if all(next(trace.results[0].uses, None) is None for trace in traces):
                for trace in traces:
                    trace.erase()
                self.rows.forget(declared)
                declared.erase()

    def replan(self) -> None:
        """Forgets plans that were made before rows were kept in addition."""
        self._planned.clear()
        self._used.clear()

    def stack(self, value: ir.Value) -> ir.Value:
        """The stack of a value (also of one that is the same in all iterations).

        Raises:
            CannotBatch: it cannot be computed here.
        """
        return self.batcher.repeated(self.batcher.get(value))

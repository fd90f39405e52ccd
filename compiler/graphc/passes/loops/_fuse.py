# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fuses two scans of a block into one loop."""

from __future__ import annotations

from typing import Any

from graphc.ir.affine import same_size
from graphc.ir.build import cast
from graphc.ir.dims import DimKeys
from graphc.ir.known_rows import definition
from graphc.ir.rewrite import is_removable, tensor_type
from graphc.ir.scan_view import ScanView, is_scan
from graphc.ir.views import TAKES_PART, TAKES_ROW, bounds_of
from graphc.ir.walk import inputs_of
from graphc.names import unique_name
from graphc.passes.loops._length import Length
from graphc.passes.loops._numbering import Numbering
from graphc.passes.loops._time import Row, row_of_trace
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises


class Fusion:
    """One attempt to run the iterations of two scans together.

    The first scan moves down to the second one: what stands between them and needs results of the first moves
    after, the rest (among it the checks of the second) stays before it.

    Args:
        first: a scan.
        second: a later scan of the same block.
        between: the operations between them.
        keys: known equalities of sizes.
        length: how often the first scan runs.
    """

    def __init__(
        self, first: ScanView, second: ScanView, between: list[ir.Operation], keys: DimKeys, length: Length
    ) -> None:
        self._first, self._second = first, second
        self._between = between
        self._keys = keys
        self._dependents: list[ir.Operation] = []
        self._late: set[ir.Value] = set()
        self._length = length
        self._rows: dict[ir.Operation, Row] = {}
        self._proved: list[Any] = []

    def is_possible(self) -> bool:
        """Whether iterations correspond, and the second loop needs only rows of the first that are there."""
        if not self._same_steps():
            return False
        self._find_dependents()
        return self._find_rows() and self._same_stop() and self._can_move()

    def _find_dependents(self) -> None:
        """Finds what needs results of the first scan before the second one starts."""
        self._late.update(self._first.op.results)
        for op in self._between:
            if any(value in self._late for value in inputs_of(op)):
                self._dependents.append(op)
                self._late.update(op.results)

    def _same_steps(self) -> bool:
        a, b = self._first.steps, self._second.steps
        if a == b or same_size(a, b):
            return True
        if self._first.stop is not None:
            return False
        answers = self._length.ask(lambda e, steps: e.range(b).exact == steps)
        return bool(answers) and all(same for _, same in answers or [])

    def _find_rows(self) -> bool:
        """Finds the rows of the first scan that the second reads; says whether it reads nothing else."""
        for op in self._second.operations():
            late = [value for value in inputs_of(op) if value in self._late]
            if not late:
                continue
            if op.name not in TAKES_ROW or self._first.stop is not None:
                return False
            row = row_of_trace(self._first, self._second, op, self._length, self._keys)
            if row is None:
                return False
            self._rows[op] = row
        return True

    def _same_stop(self) -> bool:
        a, b = self._first.stop, self._second.stop
        if a is None or b is None:
            return a is b
        numbering = Numbering([self._first, self._second])
        return numbering[a] == numbering[b]

    def _can_move(self) -> bool:
        """Whether all that has to move after the loop may; checks that cannot fail are left out."""
        for op in self._dependents:
            if is_removable(op) or is_scan(op):
                continue
            if not raises(op) or not self._holds(op.operands[0]):
                return False
            self._proved.append(op)
        return True

    @property
    def checks_removed(self) -> int:
        """How many checks are known to hold, and are left out."""
        return len(self._proved)

    def _holds(self, condition: Any) -> bool:
        if self._first.stop is not None:
            return False
        answers = self._length.ask(lambda e, steps: e.holds(condition) is True)
        return bool(answers) and all(holds for _, holds in answers or [])

    def apply(self) -> int:
        """Fuses the scans; returns how many reads of stored rows it saved."""
        first, second = self._first, self._second
        after = [op for op in self._dependents if op not in self._proved]
        for op in self._proved:
            op.erase()
        first.op.move_before(second.op)
        last = second.op
        for op in after:
            op.move_after(last)
            last = op
        for op, row in self._rows.items():
            self._replace(op, row)
        self._rename()
        second.index.replace_all_uses_with(first.index)
        end = first.end
        for op in second.operations():
            op.move_before(end)
        second.op.results[0].replace_all_uses_with(first.op.results[0])
        if "name" in first.op.attributes and "name" in second.op.attributes:
            first.op.attributes["name"] = ir.StringAttr.get(self._name())
        second.op.erase()
        return len(self._rows)

    def _replace(self, read: ir.Operation, row: Row) -> None:
        """Uses a row of the first body itself."""
        type_ = read.results[0].type
        with ir.InsertionPoint(read), read.location:
            value = cast(row.value(self._first) if row.value_is_there else self._previous(row), type_)
        read.results[0].replace_all_uses_with(value)
        read.erase()

    def _previous(self, row: Row) -> Any:
        carry = self._first.carries()[row.name]
        initial = carry.operands[0].type
        type_ = tensor_type(list(initial.shape)[1:], initial.element_type)
        taps = sorted({*carry.attributes["taps"], row.tap})
        carry.attributes["taps"] = ir.DenseI64ArrayAttr.get(taps)
        return self._first.read(row.name, row.tap, type_)

    def _rename(self) -> None:
        """Gives the second scan's states and outputs names that the first does not have."""
        taken = {*self._first.declarations(), *self._second.declarations()}
        clashes = set(self._first.declarations())
        for name, declaration in self._second.declarations().items():
            if name not in clashes:
                continue
            new = ir.StringAttr.get(unique_name(name, taken))
            taken.add(new.value)
            for op in (*self._second.reads(name), *self._second.traces(name), declaration):
                op.attributes["state"] = new

    def _name(self) -> str:
        names = [view.op.attributes["name"].value for view in (self._first, self._second)]
        return "+".join(dict.fromkeys(part for name in names for part in name.split("+")))


def resolve_sizes(operations: list[ir.Operation]) -> None:
    """Replaces the sizes of slices by what they were asked to be, which can be compared."""
    for op in operations:
        if op.name != "tensor.dim":
            continue
        source, axis = definition(op.operands[0]), definition(op.operands[1])
        if source is None or source.name not in TAKES_PART or axis is None or axis.name != "arith.constant":
            continue
        size = bounds_of(source)[axis.attributes["value"].value].size
        op.results[0].replace_all_uses_with(size)
        op.erase()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fuses scans that can run in one loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphc.ir.affine import Evaluator, key_of, same_size
from graphc.ir.build import cast
from graphc.ir.dims import DimKeys
from graphc.ir.rewrite import is_removable, tensor_type
from graphc.ir.scan_view import (
    MERGED,
    SCAN,
    ScanView,
    is_scan,
    is_state,
    is_trace,
    name_of,
    new_rows_of,
    retention,
    scans,
    window_of,
    writes_of,
)
from graphc.ir.size import Size
from graphc.ir.views import TAKES_PART, TAKES_ROW, bounds_of
from graphc.ir.walk import definition, functions, inputs_of, walk
from graphc.names import unique_name
from graphc.passes import Pass
from graphc.passes.loops._batch import INDEX, in_iteration
from graphc.passes.loops._consumers import Length
from graphc.passes.loops.scan_merge_inouts import Numbering
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_runtime.record import record


@record(frozen=True)
class Row:
    """A row of a state, `-tap` iterations ago, or (tap 0) what this iteration adds to it or to an output."""

    name: str
    tap: int

    def value(self, view: ScanView) -> Any:
        """The value with tap 0."""
        declaration = view.declarations()[self.name]
        return new_rows_of(declaration)[0]


def row_of_trace(
    producer: ScanView, consumer: ScanView, read: ir.Operation, length: Length, keys: DimKeys
) -> Row | None:
    """The row that a `scan_seq` of one scan reads of what another keeps, if both iterate together.

    Args:
        producer: the scan whose trace is read, possibly through a slice of consecutive rows.
        consumer: the scan that reads.
        read: the `scan_seq`.
        length: of the producer.
        keys: known equalities of sizes.

    Returns:
        The row, or None: another iteration computes it, or rows are overwritten later.
    """
    offset = _offset(consumer, read.operands[1])
    source = definition(read.operands[0])
    if offset is None or source is None:
        return None
    while source.name in TAKES_PART or source.name == "tensor.cast":
        if source.name in TAKES_PART:
            start = _first_row(source, length, keys)
            if start is None:
                return None
            offset += start
        source = definition(source.operands[0])
        if source is None:
            return None
    if not is_trace(source) or source.operands[0] != producer.op.results[0]:
        return None
    name = name_of(source)
    return _row(producer, name, offset)


def _row(producer: ScanView, name: str, offset: int) -> Row | None:
    """The row that is stored `offset` rows after that of the iteration's index."""
    declaration = producer.declarations()[name]
    keep = retention(declaration)[0]
    if keep == "last":
        return None
    if not is_state(declaration):
        return Row(name, 0) if offset == 0 else None
    if writes_of(declaration) != [0]:
        return None
    window = window_of(declaration)
    if keep == "steps":
        return Row(name, 0) if offset == 0 else None
    tap = -offset if producer.reverse else offset - window
    return Row(name, tap) if -window <= tap <= 0 else None


def _offset(view: ScanView, position: ir.Value) -> int | None:
    """`c` where an index is the iteration's index plus `c`."""
    found = in_iteration(view, position)
    return None if found is None else (found - Size.of(INDEX)).number


def _first_row(op: ir.Operation, length: Length, keys: DimKeys) -> int | None:
    """The first row of a slice of consecutive whole rows, if it is one for all numbers of steps but 0."""
    (start, _, stride), *others = bounds_of(op)
    if key_of(stride) != 1:
        return None
    shape = keys.shape(op.operands[0])
    for axis, (offset, size, step) in enumerate(others, 1):
        if key_of(offset) != 0 or key_of(step) != 1 or not keys.same(keys.size(size), shape[axis]):
            return None

    def question(e: Evaluator, steps: Size) -> tuple[Size | None] | None:
        if e.region.most(steps) == 0:
            return None
        return (e.range(start).exact,)

    found = {exact for _, (exact,) in length.ask(question) or []}
    exact = found.pop() if len(found) == 1 else None
    return exact.constant if exact is not None and exact.slope == 0 else None


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
        self.proved: list[Any] = []

    def is_possible(self) -> bool:
        """True if iterations correspond, and the second loop needs only rows of the first that are there."""
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
        """True if all that has to move after the loop may; checks that cannot fail are left out."""
        for op in self._dependents:
            if is_removable(op) or is_scan(op):
                continue
            if not raises(op) or not self._holds(op.operands[0]):
                return False
            self.proved.append(op)
        return True

    def _holds(self, condition: Any) -> bool:
        if self._first.stop is not None:
            return False
        answers = self._length.ask(lambda e, steps: e.holds(condition) is True)
        return bool(answers) and all(holds for _, holds in answers or [])

    def apply(self) -> int:
        """Fuses the scans; returns how many reads of stored rows it saved."""
        first, second = self._first, self._second
        after = [op for op in self._dependents if op not in self.proved]
        for op in self.proved:
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
            value = cast(row.value(self._first) if row.tap == 0 else self._previous(row), type_)
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


@record()
class ScanMerge(Pass):
    """Makes one loop of two scans of a block that run the same number of steps in the same direction.

    * Siblings do not depend on each other. Either none has a stop condition, or both have the same, computed
      from equal states (found as in scan-merge-inouts).
    * A consumer may read rows of a producer that the same iteration computes, or that are still in the window
      of the producer's state. It then takes them from the body instead of from the trace, which nobody may
      need to store any more.

    Numbers of steps are compared as functions of the producer's: a loop over `hs[1:]` runs as often as the
    one that made `hs`. Names that clash get a number. Work that both bodies have in common is left to cse and
    scan-merge-inouts, which finds the loop by its attribute `merged`.

    Options:
        max-operations: bodies that have more operations together are not fused: the loop would run out of
            registers, and take long to compile.

    Source: PyTensor's `ScanMerge`, which fuses siblings only; loop fusion (Kennedy and McKinley, 1993).
    """

    stage = "graph"
    max_operations: int = 300

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            while self._merge_once(function):
                pass

    def _merge_once(self, function: ir.Operation) -> bool:
        """Fuses the first pair that can be; says whether there was one."""
        found = list(reversed(scans(function)))
        blocks = {op.block for op in found}
        if len(blocks) == len(found):
            return False
        operations = walk(function)
        resolve_sizes(operations)
        keys = DimKeys({result: op for op in walk(function) for result in op.results})
        lengths: dict[ir.Operation, Length] = {}
        for block in dict.fromkeys(op.block for op in found):
            for first, second, between in self._pairs(block):
                length = lengths.get(first.op)
                if length is None:
                    length = lengths[first.op] = Length(first)
                fusion = Fusion(first, second, between, keys, length)
                if fusion.is_possible():
                    rows = fusion.apply()
                    first.op.attributes[MERGED] = ir.UnitAttr.get()
                    self.count("consumers merged" if rows else "siblings merged")
                    self.count("rows passed on", rows)
                    self.count("checks removed", len(fusion.proved))
                    return True
        return False

    def _pairs(self, block: ir.Block) -> Iterator[tuple[ScanView, ScanView, list[ir.Operation]]]:
        """Pairs of scans that run alike, with the operations between them; neighbours first."""
        operations = [op.operation for op in block.operations]
        places = [position for position, op in enumerate(operations) if op.name == SCAN]
        for later, place in enumerate(places):
            second = ScanView(operations[place])
            for other in reversed(places[:later]):
                first = ScanView(operations[other])
                if self._alike(first, second):
                    yield first, second, operations[other + 1 : place]

    def _alike(self, first: ScanView, second: ScanView) -> bool:
        """True if direction, kind and size do not rule a pair out."""
        attributes = [
            {name: view.op.attributes[name] for name in view.op.attributes if name not in ("name", MERGED)}
            for view in (first, second)
        ]
        if attributes[0] != attributes[1] or (first.stop is None) != (second.stop is None):
            return False
        return len(first.operations()) + len(second.operations()) <= self.max_operations

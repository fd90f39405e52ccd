# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merges what is equal within a scan: states, outputs and the work of the body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.ir.build import cast
from graphc.ir.constants import CONSTANTS, constant_identity
from graphc.ir.known_rows import Lazy
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    MERGED,
    ScanView,
    is_padded,
    is_state,
    name_of,
    retention,
    row_shape,
    scans,
    take_trace,
    tap_of,
    taps_of,
    writes_of,
)
from graphc.ir.views import take_rows
from graphc.ir.walk import definition
from graphc.passes import Pass
from graphc_dialects._base import const_index, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_runtime.record import record


class Numbering:
    """Numbers the values of bodies so that equal numbers mean equal values.

    States that start from the same rows are assumed to be equal; the bodies are numbered under that
    assumption, and states whose next rows differ are separated, until no group changes. With several scans
    their iterations are taken to run together: they must have equal numbers of steps and the same direction.

    Args:
        views: the scans.
    """

    def __init__(self, views: Sequence[ScanView]) -> None:
        self._views = views
        self._operations = [view.operations() for view in views]
        self._carries = [
            (number, name, op) for number, view in enumerate(views) for name, op in view.carries().items()
        ]
        self._numbers: dict[Any, int] = {}
        self._outside: dict[Any, int] = {}
        self._group: dict[tuple[int, str], int] = {}
        self._refine()

    def _refine(self) -> None:
        seen: dict[Any, int] = {}
        for number, name, carry in self._carries:
            initial = carry.operands[0]
            key: Any = (self._outer(initial), tuple(taps_of(carry)), tuple(writes_of(carry)))
            self._group[number, name] = seen.setdefault(key, len(seen))
        while True:
            self._assign()
            split: dict[Any, int] = {}
            refined = {}
            for number, name, carry in self._carries:
                following = tuple(self._numbers[value] for value in list(carry.operands)[1:])
                key = (self._group[number, name], following)
                refined[number, name] = split.setdefault(key, len(split))
            stable = len(split) == len(set(self._group.values()))
            self._group = refined
            if stable:
                return

    def _assign(self) -> None:
        """Numbers every value of the bodies for the current groups."""
        known: dict[Any, int] = {}
        self._numbers = Lazy(self._outer)
        for position, (view, operations) in enumerate(zip(self._views, self._operations, strict=True)):
            self._numbers[view.index] = known.setdefault("index", len(known))
            for op in operations:
                if op.name in DECLARATIONS:
                    continue
                key = self._key(position, op)
                for result_number, result in enumerate(op.results):
                    self._numbers[result] = known.setdefault((key, result_number), len(known))

    def _key(self, position: int, op: ir.Operation) -> Any:
        name = op.name
        types = tuple(result.type for result in op.results)
        if self._views[position].reads_state(op):
            return name, self._group[position, name_of(op)], op.attributes["tap"], types
        if len(op.regions):
            return op
        if name in CONSTANTS:
            return name, constant_identity(op), types
        attributes = tuple((key, op.attributes[key]) for key in sorted(op.attributes))
        return name, attributes, tuple(self._numbers[value] for value in op.operands), types

    def _outer(self, value: ir.Value) -> int:
        """A negative number for a value from outside; equal ones for literals that are equal."""
        op = definition(value, *CONSTANTS)
        key: Any = value if op is None else (op.name, constant_identity(op), value.type)
        return self._outside.setdefault(key, -1 - len(self._outside))

    def __getitem__(self, value: ir.Value) -> int:
        """The number of a value of a body, or of one from outside."""
        return self._numbers[value]

    def group(self, name: str, scan: int = 0) -> int:
        """The group of a state: states of one group are equal row by row."""
        return int(self._group[scan, name])


@record(frozen=True)
class Part:
    """Rows of a trace in the order of time: without some at the front and the back, or only the last.

    Attributes:
        front: number of oldest rows that are dropped.
        back: number of newest rows that are dropped.
        last: keep this many of the newest instead.
    """

    front: int = 0
    back: int = 0
    last: int | None = None


def kept_rows(declaration: ir.Operation) -> tuple[str, int]:
    """Kept rows (all rows of an output have one name here), and the number of rows for `last`."""
    keep, rows = retention(declaration)
    if keep == "all" and not is_state(declaration):
        keep = "steps"
    return keep, rows or 0


def part_of_same(have: ir.Operation, want: ir.Operation) -> Part | None:
    """Slice of what another declaration of the same rows keeps that equals this one, or None."""
    (keep, rows), (wanted, count) = kept_rows(have), kept_rows(want)
    if (keep, rows, is_padded(have)) == (wanted, count, is_padded(want)):
        return Part()
    if is_padded(have) or is_padded(want):
        return None
    if keep == "all":
        return Part(front=-taps_of(have)[0]) if wanted == "steps" else Part(last=count)
    if wanted == "last" and (rows >= count if keep == "last" else not is_state(have)):
        return Part(last=count)
    return None


def part_of_state(carry: ir.Operation, collect: ir.Operation, tap: int) -> Part | None:
    """Slice of a state's trace that equals an output's, if it collects its rows at a tap (0: the new)."""
    (keep, _), (wanted, count) = kept_rows(carry), kept_rows(collect)
    window = -taps_of(carry)[0]
    if keep == "last" or (keep == "steps" and tap) or is_padded(collect):
        return None
    front = window + tap if keep == "all" else 0
    if wanted == "steps":
        return Part(front=front, back=-tap)
    return Part(last=count) if tap == 0 else None


def take_part(view: ScanView, source: str, part: Part, type_: ir.Type) -> ir.Value:
    """A part of what is kept under a name, directly after the scan.

    Args:
        view: the scan.
        source: a state or output.
        part: its rows that are wanted.
        type_: type of the result.
    """
    with ir.InsertionPoint.after(view.op), view.op.location:
        declaration = view.declarations()[source]
        _, rows = retention(declaration)
        dynamic = ir.ShapedType.get_dynamic_size()
        element = type_.element_type
        whole = tensor_type([dynamic if rows is None else rows, *row_shape(declaration)], element)
        trace = take_trace(view, source, whole)
        if part == Part():
            return cast(trace, type_)
        return cast(_slice(trace, part, view.reverse), type_)


def _slice(trace: ir.Value, part: Part, reverse: bool) -> ir.Value:
    rows = dim_of(trace, 0)
    if part.last is not None:
        size, static = const_index(part.last), part.last
        first = const_index(0) if reverse else rows - size
    else:
        size, static = rows - (part.front + part.back), -1
        first = const_index(part.back if reverse else part.front)
    return take_rows(trace, static, (first, size, const_index(1)))


def replace_traces(view: ScanView, name: str, source: str, part: Part) -> int:
    """Takes the traces of a state or output from another one; returns how many there were."""
    traces = view.traces(name)
    for trace in traces:
        trace.results[0].replace_all_uses_with(take_part(view, source, part, trace.results[0].type))
        trace.erase()
    return len(traces)


def merge_equal_traces(view: ScanView) -> int:
    """Replaces traces that take the same rows by the first of them; returns how many were replaced."""
    first: dict[Any, Any] = {}
    merged = 0
    for trace in view.traces():
        key = (name_of(trace), trace.results[0].type)
        other = first.setdefault(key, trace)
        if other == trace or other.block != trace.block:
            continue
        if trace.is_before_in_block(other):
            first[key], trace, other = trace, other, trace
        trace.results[0].replace_all_uses_with(other.results[0])
        trace.erase()
        merged += 1
    return merged


@record()
class ScanMergeInouts(Pass):
    """Merges states, outputs, reads and operations of a body that are equal in every iteration.

    * States with the same initial rows, taps and writes are equal if they stay so under the assumption that
      they are. States are grouped that way, and groups are split until the body agrees (partition refinement,
      as in minimising an automaton).
    * Outputs that collect equal values are one. An output that collects the new or a previous row of a state
      that is kept is a part of what is kept of the state.
    * Equal operations, reads of sequences and states among them, are computed once.

    Where less is kept of one of two equal results, it becomes a slice of the other; nothing is kept only for
    this.

    Options:
        rounds: how often this is repeated at most; what is merged in one loop may make values of the loop
            around it, or inside it, equal.
        merged: only look at loops that scan-merge has made of two.

    Source: PyTensor's `scan_merge_inouts`; Hopcroft's partition refinement (1971), without its
    data structure, as bodies have few states.
    """

    stage = "graph"
    rounds: int = 8
    merged: bool = False

    def run(self, module: ir.Module) -> None:
        found = [op for op in scans(module.operation) if not self.merged or MERGED in op.attributes]
        for op in found if self.merged else ():
            del op.attributes[MERGED]
        for _ in range(self.rounds):
            before = sum(self.statistics.values())
            for op in found:
                self._merge(ScanView(op))
            if sum(self.statistics.values()) == before:
                break

    def _merge(self, view: ScanView) -> None:
        numbering = Numbering([view])
        self._merge_states(view, numbering)
        self._merge_outputs(view, numbering)
        self._merge_outputs_into_states(view, numbering)
        self._merge_operations(view, numbering)
        merged = merge_equal_traces(view)
        self.count("traces merged", merged)

    def _merge_states(self, view: Any, numbering: Numbering) -> None:
        groups: dict[int, list[object]] = {}
        for name, carry in view.carries().items():
            groups.setdefault(numbering.group(name), []).append(carry)
        for carries in groups.values():
            if len(carries) == 1:
                continue
            for carry, chosen in self._pairs(view, carries):
                for read in view.reads(name_of(carry)):
                    read.attributes["state"] = ir.StringAttr.get(name_of(chosen))
                carry.erase()
                self.count("states merged")

    def _merge_outputs(self, view: Any, numbering: Numbering) -> None:
        groups: dict[int, list[object]] = {}
        for collect in view.collects().values():
            groups.setdefault(numbering[collect.operands[0]], []).append(collect)
        for collects in groups.values():
            if len(collects) > 1:
                for collect, _ in self._pairs(view, collects):
                    collect.erase()
                    self.count("outputs merged")

    def _pairs(self, view: Any, equal: list[Any]) -> Any:
        """Yields (declaration, the one that takes its place), after the traces were replaced."""
        order = ("all", "steps", "last")

        def most_first(op: ir.Operation) -> tuple[bool, int, int]:
            keep, rows = kept_rows(op)
            return not view.traces(name_of(op)), order.index(keep), -rows

        chosen, *others = sorted(equal, key=most_first)
        for op in others:
            part = part_of_same(chosen, op)
            if part is None and view.traces(name_of(op)):
                continue
            if part is not None:
                replace_traces(view, name_of(op), name_of(chosen), part)
            yield op, chosen

    def _merge_outputs_into_states(self, view: ScanView, numbering: Numbering) -> None:
        rows: dict[int, list[tuple[Any, int]]] = {}
        kept = {
            name: carry
            for name, carry in view.carries().items()
            if writes_of(carry) == [0] and view.traces(name)
        }
        for carry in kept.values():
            rows.setdefault(numbering[carry.operands[1]], []).append((carry, 0))
        for read in view.reads():
            if read.block == view.block and name_of(read) in kept:
                tap = tap_of(read)
                rows.setdefault(numbering[read.results[0]], []).append((kept[name_of(read)], tap))
        for name, collect in view.collects().items():
            for carry, tap in rows.get(numbering[collect.operands[0]], ()):
                part = part_of_state(carry, collect, tap)
                if part is not None:
                    replace_traces(view, name, name_of(carry), part)
                    collect.erase()
                    self.count("outputs taken from states")
                    break

    def _merge_operations(self, view: ScanView, numbering: Numbering) -> None:
        first: dict[int, Any] = {}
        for op in view.work():
            if len(op.results) != 1 or raises(op):
                continue
            result = op.results[0]
            other = first.setdefault(numbering[result], result)
            if other != result:
                result.replace_all_uses_with(other)
                op.erase()
                self.count("operations merged")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which row of a state a read of its trace is, seen from the iteration that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.affine import Evaluator, key_of
from graphc.ir.dims import DimKeys
from graphc.ir.known_rows import definition
from graphc.ir.scan_view import (
    ScanView,
    is_state,
    is_trace,
    name_of,
    new_rows_of,
    retention,
    window_of,
    writes_of,
)
from graphc.ir.size import Size
from graphc.ir.views import TAKES_PART, bounds_of
from graphc.passes.loops._index import INDEX, in_iteration
from graphc.passes.loops._length import Length
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record(frozen=True)
class Row:
    """A row of a state, `-tap` iterations ago, or (tap 0) what this iteration adds to it or to an output."""

    name: str
    tap: int

    @property
    def value_is_there(self) -> bool:
        """Whether the iteration computes it."""
        return self.tap == 0

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

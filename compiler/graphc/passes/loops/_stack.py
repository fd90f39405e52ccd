# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks before a scan, built on trial: they are kept, or vanish without a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from graphc.ir.constants import CONSTANTS
from graphc.ir.kinds import REDUCTIONS, is_elementwise
from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import ScanView, is_read, name_of
from graphc.ir.traits.interfaces import Batch
from graphc.ir.views import INLINED, TAKES_ROW, counted, row_at
from graphc.ir.walk import inputs_of
from graphc.passes.loops._batch import Batcher
from graphc.passes.loops._batch_rules import rule_of
from graphc.passes.loops._cost import row_elements
from graphc.passes.loops._index import coefficient, copy_index
from graphc.passes.loops._sources import is_sequence_row, sequence_stack
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.check import has_checks

# Operations that become part of the loop that reads them.


def _is_view(name: str) -> bool:
    return name in INLINED or name == "tensor.cast"


class Trial(AbstractContextManager["Trial"]):
    """Operations before a scan that stay if `keep` is called, and are erased otherwise.

    Everything is built at the insertion point of the `with` block.
    """

    def __init__(self, scan: ir.Operation) -> None:
        self._scan = scan.operation
        self._kept = False
        self._operations: list[ir.Operation] = []

    def __enter__(self) -> Trial:
        self._scratch = ir.Operation.create(
            "scf.execute_region", [], [], regions=1, ip=ir.InsertionPoint(self._scan), loc=self._scan.location
        )
        self._block = ir.Block.create_at_start(self._scratch.regions[0], [])
        self._point = ir.InsertionPoint(self._block)
        self._point.__enter__()
        self._location = self._scan.location
        self._location.__enter__()
        return self

    def keep(self) -> None:
        """Makes what was built part of the function when the block ends."""
        self._kept = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._location.__exit__(kind, error, trace)
        self._point.__exit__(kind, error, trace)
        if self._kept and error is None:
            self._operations = [op.operation for op in self._block.operations]
            for op in self._operations:
                op.move_before(self._scan)
        self._scratch.erase()

    def tidy(self) -> None:
        """Erases what was kept, but is not used."""
        erase_unused(self._operations)


def batcher_of(
    view: ScanView,
    first: ir.Value | None = None,
    rows: ir.Value | None = None,
    known: dict[object, Callable[[], object]] | None = None,
) -> Batcher:
    """A batcher for the iterations `first .. first + rows - 1` (index values; by default all of them).

    Args:
        view: the scan.
        first: index value of the first iteration in stored order.
        rows: index value: how many.
        known: builders of stacks of further values of the body.
    """
    start = const_index(0) if first is None else first
    found = {} if known is None else known

    def source(b: Batcher, value: ir.Value) -> Any:
        if value in found:
            return found[value]()
        if is_sequence_row(view, value):
            return sequence_stack(b, value, start)
        return _iterations(b, value, start)

    return Batcher(view, view.steps if rows is None else rows, source, rule_of)


def _iterations(b: Batcher, value: Any, start: ir.Value) -> Any:
    """The index of the iteration as a tensor, or None if the value is not that."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.from_elements" or len(value.type.shape):
        return None
    number = owner.operands[0].owner
    if isinstance(number, ir.Block) or number.name != "arith.index_cast":
        return None
    slope = coefficient(b.view, number.operands[0])
    if slope not in (1, -1):
        return None
    element = value.type.element_type
    scalar = tensor_type([], element)
    begin = b.create("arith.index_cast", [copy_index(b.view, number.operands[0], start)], element)
    steps = ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(element, slope))
    step = b.create("arith.constant", [], scalar, value=steps)
    begin = b.create("tensor.from_elements", [begin], scalar)
    return counted(begin, step, b.rows, b.stack_type(value.type), b.create)


def build(batcher: Batcher, view: ScanView, value: ir.Value) -> Batch:
    """What stands for a value outside, after everything that it needs.

    Raises:
        CannotBatch: it cannot be computed for all iterations at once.
    """
    for op in needed(view, [value]):
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                batcher.get(result)
    return batcher.get(value)


def needed(view: ScanView, values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The operations of a body that tensors are computed from, in order; rows of sequences and states end the
    search.
    """
    found: set[ir.Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, ir.Block) or not view.is_inside(value) or owner.operation in found:
            continue
        found.add(owner.operation)
        if owner.name not in TAKES_ROW and not is_read(owner):
            pending.extend(x for x in owner.operands if isinstance(x.type, ir.RankedTensorType))
    return [op for op in view.work() if op in found]


def is_streamed(view: ScanView, values: Iterable[ir.Value]) -> bool:
    """Whether values come from sequences by elementwise work, views and reductions of them alone.

    For all iterations at once that needs no memory that is larger than the sequences: the operations become
    part of the loop that reads their result.
    """
    return all(
        _is_view(op.name)
        or op.name in REDUCTIONS
        or op.name in CONSTANTS
        or is_elementwise(op.name)
        or op.name == "tensor.from_elements"
        or is_read(op)
        for op in needed(view, values)
    )


def stored_elements(view: ScanView, value: ir.Value) -> int:
    """The most elements a row has that is stored on the way to a value, itself excluded."""
    return max(
        (
            row_elements(op.results[0].type)
            for op in needed(view, [value])
            if op.results[0] != value
            and not (_is_view(op.name) or op.name in CONSTANTS or is_elementwise(op.name))
        ),
        default=0,
    )


def state_dependences(view: ScanView) -> dict[ir.Value, frozenset[str]]:
    """For each value of a body, the states it depends on in an iteration; values without any are absent."""
    found: dict[ir.Value, frozenset[str]] = {}
    for op in view.work():
        states: frozenset[str] = frozenset()
        if view.reads_state(op):
            states = frozenset({name_of(op)})
        for operand in inputs_of(op):
            states |= found.get(operand, frozenset())
        if states:
            found.update((result, states) for result in op.results)
    return found


def last_rows(view: ScanView, rows: int) -> tuple[ir.Value, ir.Value]:
    """The iterations of the `rows` most recent rows in stored order: the first one, and how many."""
    count = const_index(rows)
    return (const_index(0) if view.reverse else view.steps - count), count


def replace_traces(view: ScanView, name: str, value: ir.Value) -> None:
    """Uses a tensor wherever what the scan keeps under a name was used."""
    for trace in view.traces(name):
        result, new = trace.results[0], value
        if result.type != value.type:
            new = ir.Operation.create(
                "tensor.cast", [result.type], [value], loc=trace.location, ip=ir.InsertionPoint(trace)
            ).result
        result.replace_all_uses_with(new)
        trace.erase()


def read_row(view: ScanView, value: ir.Value, stack: ir.Value) -> None:
    """Uses a row of a stack wherever the body used a value."""
    with ir.InsertionPoint(value.owner), value.owner.location:
        row = row_at(stack, view.index, value.type)
    value.replace_all_uses_with(row)


def drop_if_empty(view: ScanView) -> bool:
    """Erases a scan that declares nothing any more and checks nothing; returns whether it did."""
    if view.declarations() or has_checks(view.op):
        return False
    if view.stop is not None:
        return False
    for op in view.step_counts():
        op.results[0].replace_all_uses_with(view.steps)
        op.erase()
    view.op.erase()
    return True

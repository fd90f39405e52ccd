# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops without carried dependence.

Stacks before a scan are built on trial: they are kept, or vanish without a trace.

A rule gets the batcher, the operation of the body and what stands for its tensor operands, of which at least
one is a stack; it returns the stack of its result, of type `batcher.stack_type(<type of a row>)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from graphc.ir.build import cast
from graphc.ir.constants import CONSTANTS
from graphc.ir.kinds import PER_ELEMENT, REDUCTIONS
from graphc.ir.rewrite import erase_unused, tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    is_read,
    is_state,
    mark_reread,
    name_of,
    retention,
    row_shape,
    scans,
    take_trace,
    tap_of,
    window_of,
    writes_of,
)
from graphc.ir.traits import BATCH, Batch, CannotBatch
from graphc.ir.views import INLINED, TAKES_ROW, counted, row_at, take_rows
from graphc.ir.walk import definition, inputs_of, named_attributes
from graphc.passes import Pass
from graphc.passes.loops._batch import Batcher, Rule, coefficient, copy_index
from graphc.passes.loops._consumers import LastRowUses
from graphc.passes.loops._cost import loop_elements, row_elements
from graphc_dialects._base import const_index, constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import has_checks
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES
from graphc_runtime.record import record


def is_sequence_row(view: ScanView, value: ir.Value) -> bool:
    """True if a value of the body is a row of an outside tensor, at an index that moves with `t`."""
    take = definition(value, *TAKES_ROW)
    if take is None:
        return False
    x, index = take.operands
    return not view.is_inside(x) and coefficient(view, index) in (1, -1)


def sequence_stack(b: Batcher, value: ir.Value, first: ir.Value) -> ir.Value:
    """The rows of a sequence from iteration `first` on; the sequence itself if these are all of its rows."""
    x, index = value.owner.operands
    step = coefficient(b.view, index)
    offset = copy_index(b.view, index, first)
    whole = step == 1 and constant_value(offset) == 0
    return rows_of(b, x, offset, step or 1, whole)


def rows_of(b: Batcher, x: ir.Value, offset: ir.Value, step: int = 1, from_start: bool = True) -> ir.Value:
    """`b.rows` rows of a tensor."""
    if from_start and b.dims.same(b.dims.shape(x)[0], b.dims.size(b.rows)):
        return x
    return take_rows(x, b.static_rows, (offset, b.rows, const_index(step)), b.create)


def sequence_rows(b: Batcher, value: ir.Value) -> ir.Value | None:
    """Rows of sequences only: what there is before the loop."""
    if not is_sequence_row(b.view, value):
        return None
    with value.owner.location:
        return sequence_stack(b, value, const_index(0))


class KeptRows:
    """Rows of sequences, states and outputs: what there is after the loop.

    Args:
        view: the scan.
        first: index value: the smallest `t` that was run.
    """

    def __init__(self, view: ScanView, first: ir.Value) -> None:
        self._view = view
        self._first = first
        self._traces: dict[str, ir.Value] = {}
        self._kept: dict[ir.Value, ir.Operation] = {}
        self._carries = view.carries()
        for carry in self._carries.values():
            if writes_of(carry) == [0] and retention(carry)[0] != "last":
                self._kept.setdefault(carry.operands[1], carry)
        for collect in view.collects().values():
            if retention(collect)[0] != "last":
                self._kept.setdefault(collect.operands[0], collect)

    def declaration(self, value: ir.Value) -> ir.Operation | None:
        """The `scan_carry` or `scan_collect` whose kept rows are the rows of a value, or None."""
        known = self._kept.get(value)
        if known is not None:
            return known
        op = definition(value)
        if op is None or not self._view.reads_state(op):
            return None
        carry = self._carries[name_of(op)]
        return carry if writes_of(carry) == [0] and retention(carry)[0] == "all" else None

    def add(self, collect: ir.Operation) -> None:
        """Makes the rows of a new `scan_collect` known."""
        self._kept[collect.operands[0]] = collect

    def forget(self, collect: ir.Operation) -> None:
        """Makes no more use of a `scan_collect`."""
        known = self._kept.get(collect.operands[0])
        if known is not None and known == collect:
            del self._kept[collect.operands[0]]

    def __call__(self, b: Batcher, value: ir.Value) -> ir.Value | None:
        if is_sequence_row(self._view, value):
            with value.owner.location:
                return sequence_stack(b, value, self._first)
        declaration = self.declaration(value)
        return None if declaration is None else self._rows(b, value, declaration)

    def _rows(self, b: Batcher, value: ir.Value, declaration: ir.Operation) -> ir.Value:
        keep, _ = retention(declaration)
        trace = self._trace(b, declaration)
        if not is_state(declaration) or keep == "steps":
            return trace
        window = window_of(declaration)
        tap = 0 if value in self._kept else tap_of(value.owner)
        offset = -tap if self._view.reverse else window + tap
        return rows_of(b, trace, const_index(offset), 1, False)

    def _trace(self, b: Batcher, declaration: ir.Operation) -> ir.Value:
        name = name_of(declaration)
        if name not in self._traces:
            with declaration.location:
                self._traces[name] = self._new_trace(b, declaration)
        return self._traces[name]

    def _new_trace(self, b: Batcher, declaration: ir.Operation) -> ir.Value:
        source = declaration.operands[0]
        row = row_shape(declaration)
        extra = window_of(declaration) if retention(declaration)[0] == "all" else 0
        rows = b.static_rows + extra if b.static_rows >= 0 else -1
        kept = tensor_type([rows, *row], source.type.element_type)
        trace = take_trace(self._view, name_of(declaration), kept, b.create)
        if not extra:
            self._assume(b, b.dims.shape(trace)[0], b.dims.size(b.rows))
        if is_state(declaration):
            for axis in range(1, len(row) + 1):
                self._assume(b, b.dims.shape(trace)[axis], b.dims.shape(source)[axis])
        return trace

    def _assume(self, b: Batcher, a: int, c: int) -> None:
        if not (isinstance(a, int) and isinstance(c, int)):
            b.dims.assume_equal(a, c)


def first_iteration(view: ScanView, steps: ir.Value) -> ir.Value:
    """The smallest `t` that was run: a reverse scan that was ended early leaves out the first ones."""
    if view.stop is None or not view.reverse:
        return const_index(0)
    return view.steps - steps


def rule_of(name: str) -> Rule | None:
    """The rule of an operation, None if it has none."""
    known = BATCH.get(name)
    if known is None and name.startswith("graphc."):
        if name[7:] in ELEMENTWISE:
            return elementwise
        if name[7:] in SIGNATURES:
            return kernel
    return known


def kernel(b: Batcher, op: ir.Operation, xs: list[Batch]) -> Any:
    """One more leading dimension is one more batch dimension."""
    if len(op.results) != 1:
        raise CannotBatch("an operation with several results")
    signature = SIGNATURES[op.name[7:]]
    stacks = [b.repeated(x) for x in xs]
    sizes: dict[Any, Any] = {}
    for i, core in enumerate(signature.operands):
        rank = len(stacks[i].type.shape)
        for axis, dim in enumerate([*range(1, rank - len(core)), *core], 1):
            if dim in sizes:
                stacks[i] = b.fit(stacks[i], axis, sizes[dim])
            else:
                sizes[dim] = dim_of(stacks[i], axis)
    given = [b.size(x) for x in list(op.operands)[len(signature.operands) :]]
    return b.create(op.name, [*stacks, *given], b.stack_type(op.results[0].type), **named_attributes(op))


def elementwise(b: Batcher, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    return b.create(op.name, b.agreeing(xs), b.stack_type(op.results[0].type), **named_attributes(op))


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
    made = definition(value, "tensor.from_elements")
    number = None if made is None else definition(made.operands[0], "arith.index_cast")
    if number is None or len(value.type.shape):
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
    """Builds the substitute for a value outside, after everything that it needs.

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
        op = definition(value)
        if op is None or not view.is_inside(value) or op in found:
            continue
        found.add(op)
        if op.name not in TAKES_ROW and not is_read(op):
            pending.extend(x for x in op.operands if isinstance(x.type, ir.RankedTensorType))
    return [op for op in view.work() if op in found]


def is_streamed(view: ScanView, values: Iterable[ir.Value]) -> bool:
    """True if values come from sequences by elementwise work, views and reductions of them alone.

    For all iterations at once that needs no memory that is larger than the sequences: the operations become
    part of the loop that reads their result.
    """
    return all(
        _is_view(op.name)
        or op.name in REDUCTIONS
        or op.name in CONSTANTS
        or op.name in PER_ELEMENT
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
            and not (_is_view(op.name) or op.name in CONSTANTS or op.name in PER_ELEMENT)
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
        with ir.InsertionPoint(trace), trace.location:
            trace.results[0].replace_all_uses_with(cast(value, trace.results[0].type))
        trace.erase()


def read_row(view: ScanView, value: ir.Value, stack: ir.Value) -> None:
    """Uses a row of a stack wherever the body used a value."""
    with ir.InsertionPoint(value.owner), value.owner.location:
        row = row_at(stack, view.index, value.type)
    value.replace_all_uses_with(row)


def drop_if_empty(view: ScanView) -> bool:
    """Erases a scan that declares nothing any more and checks nothing; returns whether it did."""
    if view.declarations() or has_checks(view.op) or view.stop is not None:
        return False
    view.count_steps_as(view.steps)
    view.op.erase()
    return True


@record()
class ScanToMap(Pass):
    """Computes the outputs of a scan that depend on no state for all iterations at once.

    An output whose value depends on sequences, the iteration's index and what is outside alone becomes
    operations on whole stacks of rows (elementwise, reductions, matrix products, gathers ...: the rules of
    scan-push-out-seq), which fusion, vectorisation and BLAS then treat as any other code. The output
    disappears from the scan; a scan that has nothing left to do is erased. What else the body does with
    such a value reads its row.

    Only the rows that are kept are computed; an output of which only the last row is used waits for
    scan-save-mem to say so. What can fail where the loop would not have run, or has no
    batched form (an inner scan, a gather of rows from rows), stays in the loop. So does what would need
    much memory: of an intermediate result that has to be stored (one that is not elementwise and no view),
    a row must not have more than `max-row-growth` times the elements that an iteration reads from sequences
    and keeps; unknown sizes count as 64. Scans with a stop condition are left alone: how many rows there
    are is known at the end only.

    A scan that remains, but has no state and no stop condition, gets the attribute `parallel`: its
    iterations may be run in any order.

    Options:
        max-row-growth: limit on the memory of intermediate results, see above.

    Source: PyTensor's `scan_push_out_seq`, whose full case ("the whole inner graph was pushed out") this is.
    """

    stage = "graph"
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            view = ScanView(op)
            if view.stop is not None:
                continue
            moved = sum(self._move(view, name) for name in view.collects())
            if moved:
                self.count("outputs", moved)
                if drop_if_empty(view):
                    self.count("scans removed")
                    continue
            if not view.carries() and "parallel" not in view.op.attributes:
                view.op.attributes["parallel"] = ir.UnitAttr.get()
                self.count("parallel scans")

    def _move(self, view: ScanView, name: str) -> bool:
        """Moves one output out of a scan, if it can be."""
        collect = view.collects()[name]
        value = collect.operands[0]
        has_room = stored_elements(view, value) <= self.max_row_growth * loop_elements(view)
        if not has_room or value in state_dependences(view):
            return False
        rows = retention(collect)[1]
        if is_padded(collect) or not view.traces(name) or (rows is None and LastRowUses(view, name).only):
            return False
        with Trial(view.op) as trial:
            try:
                batcher = batcher_of(view) if rows is None else batcher_of(view, *last_rows(view, rows))
                stack = batcher.repeated(build(batcher, view, value))
            except CannotBatch:
                return False
            trial.keep()
        replace_traces(view, name, stack)
        collect.erase()
        if rows is None:
            _read_row(view, value, stack)
        else:
            for op in view.work():
                if op.name in TAKES_ROW:
                    mark_reread(op.operands[0])
        erase_unused(view.work())
        trial.tidy()
        return True


def _read_row(view: ScanView, value: ir.Value, stack: ir.Value) -> None:
    """Lets the rest of the body read a value that is stored now, instead of computing it again."""
    if not view.is_inside(value) or value.owner.name in TAKES_ROW or not list(value.uses):
        return
    read_row(view, value, stack)

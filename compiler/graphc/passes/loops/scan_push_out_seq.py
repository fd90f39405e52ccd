# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does work on sequences in one operation before the loop."""

from __future__ import annotations

from typing import Any

from graphc.ir.kinds import PRODUCTS
from graphc.ir.rewrite import erase_unused, erase_unused_between
from graphc.ir.scan_view import ScanView, scans
from graphc.ir.traits import CannotBatch
from graphc.ir.views import GATHERS
from graphc.passes import Pass
from graphc.passes.loops._batch import Batcher, is_total
from graphc.passes.loops._cost import is_expensive, loop_elements, row_elements, users_of
from graphc.passes.loops.scan_to_map import is_sequence_row, read_row, rule_of, sequence_rows
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class ScanPushOutSeq(Pass):
    """Computes what depends on sequences and non-sequences only before the loop, for all iterations at once.

    A product `x_t @ U` of each row becomes one product `X @ U` of matrices, `exp(x_t)` one vectorised sweep
    over X; the loop reads rows of the result instead. Rows of a product on one side of which all iterations
    have the same matrix are folded into one large product, other products become batched ones.

    What moves:

    * matrix products, elementary functions and reductions (and softmax, integer division), with the cheap
      operations they need;
    * cheap arithmetic after these, if it is the only one to use the moved value: the sequence that the loop
      reads is then the result of the arithmetic, and not larger;
    * never arithmetic alone: an iteration does it in the time it takes to load a stored result.

    What stays:

    * everything in a scan with a stop condition, which may end before most of the rows are needed;
    * values whose rows have more than `max-row-growth` times the elements of all rows that an iteration reads
      from sequences and computes for states and outputs: memory grows by no more than that factor. Unknown
      sizes count as 64;
    * what may fail for other reasons than sizes (`take` at positions that are not literals from rows), slices
      whose bounds a check in the body protects, and reads at indices other than `t + c` and `c - t`;
    * work of a loop of a literal 0 or 1 iterations.

    Only the rows of a sequence that the loop reads are used. Without iterations nothing can fail: operands
    whose sizes would not fit have no elements then, and take the sizes that fit.

    Options:
        max-row-growth: limit on the memory of stacks, see above.

    Source: PyTensor's `scan_push_out_seq`.
    """

    stage = "graph"
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for scan in scans(module.operation):
            view = ScanView(scan)
            steps = constant_value(view.steps)
            if view.stop is None and (steps is None or steps > 1):
                self._push(view)

    def _push(self, view: ScanView) -> None:
        plan = _Plan(view, self.max_row_growth)
        frontier = plan.frontier()
        if not frontier:
            return
        with ir.InsertionPoint(view.op), view.op.location:
            anchor = const_index(0).owner.operation
        pushed = _build(view, plan, frontier)
        erase_unused_between(anchor, view.op)
        anchor.erase()
        for op in view.work():
            if plan.is_moved(op) and next(op.results[0].uses, None) is None:
                self.count("products pushed" if op.name in PRODUCTS else "operations pushed")
        erase_unused(view.work())
        self.count("sequences added", pushed)


class _Plan:
    """Operations of a body that can be done on stacks, and those that should."""

    def __init__(self, view: ScanView, growth: int) -> None:
        self.view = view
        self.operations = view.work()
        self._limit = growth * loop_elements(view)
        self._fixed: set[ir.Value] = set()
        self._stackable: set[ir.Value] = set()
        self._heavy: set[ir.Value] = set()
        self._moved: set[ir.Value] = set()
        for op in self.operations:
            if len(op.results) == 1:
                self._visit(op)

    def _visit(self, op: ir.Operation) -> None:
        result = op.results[0]
        if is_sequence_row(self.view, result):
            self._stackable.add(result)
            return
        tensors = [x for x in op.operands if isinstance(x.type, ir.RankedTensorType)]
        is_tensor = isinstance(result.type, ir.RankedTensorType)
        if not is_tensor or not (is_total(op) or rule_of(op.name)) or len(op.regions):
            return
        if all(self._is_fixed(x) for x in tensors):
            if is_total(op):
                self._fixed.add(result)
            return
        if all(self._is_fixed(x) or x in self._stackable for x in tensors):
            self._decide(op, result, tensors)

    def _is_fixed(self, value: ir.Value) -> bool:
        return value in self._fixed or not self.view.is_inside(value)

    def _decide(self, op: ir.Operation, result: ir.Value, tensors: list[ir.Value]) -> None:
        size = row_elements(result.type)
        # A row that is gathered is read by the loop as well, so it does not count as growth.
        if size > self._limit and op.name not in GATHERS:
            return
        self._stackable.add(result)
        heavy = [x for x in tensors if x in self._heavy]
        if not is_expensive(op) and not heavy:
            return
        self._heavy.add(result)
        follows = all(
            x in self._moved and set(users_of(self.view, x)) == {op} for x in heavy
        ) and size <= max((row_elements(x.type) for x in heavy), default=0)
        if is_expensive(op) or follows:
            self._moved.add(result)

    def is_moved(self, op: ir.Operation) -> bool:
        """True if an operation should be done on stacks."""
        return len(op.results) == 1 and op.results[0] in self._moved

    def frontier(self) -> list[ir.Value]:
        """Moved values that the loop goes on to use."""
        return [
            op.results[0]
            for op in self.operations
            if self.is_moved(op) and not all(map(self.is_moved, users_of(self.view, op.results[0])))
        ]

    def closure(self, values: list[ir.Value]) -> list[Any]:
        """The values that some values are computed from, and these, operands first."""
        wanted = set(values)
        chosen = []
        for op in reversed(self.operations):
            if len(op.results) == 1 and op.results[0] in wanted:
                chosen.append(op.results[0])
                if op.results[0] in self._stackable or op.results[0] in self._fixed:
                    wanted.update(op.operands)
        return chosen[::-1]


def _build(view: ScanView, plan: _Plan, frontier: list[ir.Value]) -> int:
    """Builds the stacks before the loop and lets the body read rows of them; returns how many it reads."""
    stacks = {}
    with ir.InsertionPoint(view.op), view.op.location:
        batcher = Batcher(view, view.steps, sequence_rows, rule_of)
        for value in plan.closure(frontier):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            try:
                stacks[value] = batcher.get(value)
            except CannotBatch:
                continue
    pushed = 0
    for value in frontier:
        batch = stacks.get(value)
        if batch is not None:
            read_row(view, value, batch.value)
            pushed += 1
    return pushed

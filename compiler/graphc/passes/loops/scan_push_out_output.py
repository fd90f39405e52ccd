# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does work on results of iterations after the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.scan_view import ScanView, is_state, name_of, retention, scans
from graphc.ir.traits import CannotBatch
from graphc.passes import Pass
from graphc.passes.loops._after import After
from graphc.passes.loops._cost import is_expensive, row_elements, users_of
from graphc.passes.loops.scan_push_out_dot1 import accumulators, products
from graphc.passes.loops.scan_to_map import is_sequence_row
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ScanPushOutOutput(Pass):
    """Moves work that no iteration waits for after the loop, where it is done once, on stacks of rows.

    * An output `y_t = f(h_t, x_t, ...)` becomes `f` of the stacks: `tanh(h_t) @ V` is one product of the
      kept rows of h and V. An output that is a row of a sequence or a state itself is not stored again.
    * A state `s = s + f(...)` of which only the last row is used becomes its initial row plus a sum over
      time, provided that the rows that f needs are in memory: rows of sequences, and of states and outputs
      that are used elsewhere. A sum of matrix products or outer products becomes one product, with time
      folded into the summed dimension. The last row is recognised through slices of slices
      (`trace[1:][-1]`), and with `reverse` as the first stored one.

    What an output is computed from has to be in memory instead. Rows of sequences, and of states and outputs
    that are used, are there; other rows are kept in addition if together they have no more elements than a
    row of the output. So memory does not grow, and no work that an iteration needs is done twice, except for
    cheap arithmetic on rows that are there. Outputs move if that takes a product, an elementary function or a
    reduction out of the loop; arithmetic alone stays.

    Best run after scan-push-out-dot1: rows that it keeps for products are there for outputs as well.

    Sums are added up in another order. Scans with a stop condition take part: the rows of the iterations that
    were run are used.

    Options:
        max-row-growth: rows of intermediate results have at most so many times the elements of all rows that
            an iteration reads from sequences and computes for states and outputs (unknown sizes count as 64).

    Source: PyTensor's `scan_push_out_output`.
    """

    stage = "graph"
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for scan in scans(module.operation):
            view = ScanView(scan)
            # What is moved uses rows, which are then there for more to move.
            while view.traces() and self._move_outputs(view) + self._move_sums(view):
                pass

    def _move_outputs(self, view: ScanView) -> int:
        collects = [op for name, op in view.collects().items() if view.traces(name)]
        collects = [op for op in collects if retention(op)[0] != "last"]
        if not collects:
            return 0
        with After(view, self.max_row_growth) as after:
            moves = [move for move in (_Move.plan(after, op) for op in collects) if move is not None]
            moves = _without_repeated_work(view, moves)
            for move in moves:
                after.rows.forget(move.collect)
            moved = sum(move.apply(after) for move in moves)
        self.count("outputs moved", moved)
        return moved

    def _move_sums(self, view: ScanView) -> int:
        sums = accumulators(view)
        if not sums:
            return 0
        moved = 0
        with After(view, self.max_row_growth, [sum_.carry for sum_ in sums]) as after:
            for sum_ in sums:
                needed = [
                    x
                    for term in sum_.terms or ()
                    for x in _factors(products(after, term.value)) or [term.value]
                ]
                if not any(after.new_rows(x) for x in needed) and sum_.move(after):
                    moved += 1
        self.count("sums moved", moved)
        return moved


def _factors(products: list[Any]) -> list[Any]:
    return [x for product in products for x in product.operands]


@record()
class _Move:
    """A plan for one output."""

    collect: ir.Operation
    new_rows: frozenset[Any]
    work: list[ir.Operation]

    @classmethod
    def plan(cls, after: After, collect: ir.Operation) -> _Move | None:
        """A plan to compute an output after the loop, None if that does not pay."""
        value = collect.operands[0]
        declaration = after.rows.declaration(value)
        stored = declaration is not None and is_state(declaration)
        if stored or after.is_fixed(value) or is_sequence_row(after.view, value):
            return cls(collect, frozenset(), [])
        new_rows = after.new_rows(value, keep=False)
        too_many = after.elements(new_rows) > row_elements(value.type)
        if value in new_rows or too_many or not after.can_keep(new_rows):
            return None
        work = after.work(value, new_rows)
        return cls(collect, new_rows, work) if any(is_expensive(op) for op in work) else None

    def apply(self, after: After) -> bool:
        """Moves the work; whether that was possible."""
        added = after.keep_rows(self.new_rows)
        try:
            stack = after.stack(self.collect.operands[0])
        except CannotBatch:
            after.drop_rows(added)
            after.rows.add(self.collect)
            return False
        for trace in after.view.traces(name_of(self.collect)):
            trace.results[0].replace_all_uses_with(after.batcher.cast(stack, trace.results[0].type))
            trace.erase()
        self.collect.erase()
        return True


def _without_repeated_work(view: ScanView, moves: list[_Move]) -> list[_Move]:
    """The moves that leave none of the expensive work they move in the loop."""
    while True:
        gone = {op for move in moves for op in (move.collect, *move.work)}
        kept = [
            move
            for move in moves
            if all(
                user in gone for op in move.work if is_expensive(op) for user in users_of(view, op.results[0])
            )
        ]
        if len(kept) == len(moves):
            return kept
        moves = kept

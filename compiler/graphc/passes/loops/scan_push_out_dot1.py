# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces accumulated products by one product after the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.scan_view import ScanView, scans
from graphc.passes.loops._after import After
from graphc.passes.loops._sums import Accumulator, products
from graphc.passes.manager.base import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ScanPushOutDot1(Pass):
    """Turns the sums of products that gradients accumulate into one matrix product.

    A state `W = W + outer(h_t, d_t)` of which only the last row is used (the gradient of a recurrent network
    has one for each weight matrix) becomes `W_0 + H.T @ D` of stacks: one large product instead of a matrix
    that every iteration reads and writes. The same is done with matrix products (time and the summed
    dimension become one), also transposed and batched ones, outer products written as `mul` of a column and
    a row, and with sums, differences and views of them. Any slice that selects the last row counts as use of
    it; with `reverse` that row is stored first.

    Factors have to be in memory: rows of sequences, of states and outputs. A factor that is not is kept as an
    additional output, seen through views and through cheap arithmetic on what is there. This pays if an
    iteration's multiplications and additions in the products of a state are at least `collect-cost` times the
    elements of the rows that it then has to keep. Memory grows by these rows.

    Sums of other values (the gradient of a bias, the sum of `d_t`) move too where they need no additional
    rows, which is often so after a product has made them be kept.

    Options:
        collect-cost: how many multiplications and additions it must save to keep one element more.
        max-row-growth: rows of intermediate results have at most so many times the elements of all rows that
            an iteration reads from sequences and computes for states and outputs (unknown sizes count as 64).

    Source: PyTensor's `scan_push_out_dot1`.
    """

    stage = "graph"
    collect_cost: int = 4
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for scan in scans(module.operation):
            view = ScanView(scan)
            while view.traces() and self._move(view):
                pass

    def _move(self, view: ScanView) -> int:
        pending = [sum_ for sum_ in (Accumulator(view, name) for name in view.carries()) if sum_.is_movable()]
        if not pending:
            return 0
        total = len(pending)
        with After(view, self.max_row_growth, [sum_.carry for sum_ in pending]) as after:
            # Rows that are kept for one state are there for the next.
            moved = True
            while moved:
                moved = False
                for sum_ in list(pending):
                    if self._try_move(after, sum_):
                        pending.remove(sum_)
                        after.replan()
                        moved = True
        return total - len(pending)

    def _try_move(self, after: After, sum_: Any) -> bool:
        new_rows: set[Any] = set()
        work = 0
        for term in sum_.terms:
            found = products(after, term.value)
            if not found and after.new_rows(term.value):
                return False
            for product in found:
                work += product.work
                for factor in product.operands:
                    new_rows |= after.new_rows(factor)
        too_many = new_rows and self.collect_cost * after.elements(new_rows) > work
        if too_many or not after.can_keep(new_rows):
            return False
        added = after.keep_rows(new_rows)
        if not sum_.move(after):
            after.drop_rows(added)
            return False
        if added:
            self.count("rows kept in addition", len(added))
        self.count("sums of products moved" if work else "other sums moved")
        return True

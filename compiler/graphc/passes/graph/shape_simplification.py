# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes shapes from shapes instead of from values, and removes operations that change none.

Operations of which nothing but sizes is read are erased, but for their checks.

A size is computed from other sizes by what an operation says of its result, and that is true only where the
operation would not have failed: `specify_shape(x, (3,))` has 3 elements if x has, and the number of elements
of an outer product is the product of two sizes if there can be such an array. Conditions on elements (indices
in range, exponents) would cost the computation that nobody asked for, and are left out.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.checks import SizeChecks, size_of
from graphc.ir.kinds import REDUCTIONS
from graphc.ir.rewrite import Rewriter, apply_rules, is_tensor
from graphc.ir.views import RENAMES, TAKES_PART
from graphc.passes import Pass
from graphc.passes.graph._shapes import RULES
from graphc.passes.graph.insert_checks import rules
from graphc_dialects._mlir import ir
from graphc_dialects.check import checks_in

# They have the sizes of an operand, or fewer elements.
_NO_LARGER = (RENAMES, TAKES_PART, REDUCTIONS)


def _results_fit(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """There can be arrays as large as the results, so that products of their sizes are right."""
    if op.name.startswith("tensor.") or any(op.name in names for names in _NO_LARGER):
        return
    for result in op.results:
        if is_tensor(result) and len(result.type.shape) > 1 and min(result.type.shape) < 0:
            sizes = [size_of(rw, result, axis) for axis in range(len(result.type.shape))]
            checks.fits_memory(rw, sizes, op.name[7:])


def check_measured(rewriter: Rewriter) -> int:
    """Adds the checks of operations that a sweep measured and that nobody needs any more, and of those that
    only they need; returns how many. What is in loops and branches, which may not run, has none.

    Args:
        rewriter: after its sweep, with what it left unused.
    """
    wanted = _unused_after(rewriter)
    if not wanted:
        return 0
    checks, measured = SizeChecks(only_sizes=True), set(rewriter.measured)
    table = rules(checks)

    def visit(rw: Rewriter, op: ir.Operation) -> None:
        if op in wanted:
            for rule in table.get(op.name, ()):
                rule(rw, op)
            if op in measured:
                _results_fit(checks, rw, op)

    Rewriter(rewriter.function, {op.name: [visit] for op in wanted}).run(erase=False)
    return checks.inserted


def _unused_after(rewriter: Rewriter) -> set[ir.Operation]:
    """The unused operations that were measured, and those whose results these read."""
    if not rewriter.measured:
        return set()
    unused, block = set(rewriter.unused()), rewriter.function.regions[0].blocks[0]
    found: set[Any] = set()
    pending = list(rewriter.measured)
    while pending:
        op = pending.pop()
        if op in unused and op not in found and not len(op.regions) and op.block == block:
            found.add(op)
            pending += [rewriter.defs[x] for x in op.operands if x in rewriter.defs]
    return found


class ShapeSimplification(Pass):
    """Resolves `tensor.dim` and removes reshapes, broadcasts, views and casts without effect.

    * The size of a graphc operation's result becomes the size of an operand, an index value or a constant,
      as the operation's `reify` says, repeatedly up to the function's arguments. An operation whose shape
      alone was asked for then has no uses and disappears; of what it relies on in sizes, checks stay (but of
      operations in loops and branches).
    * `tensor.extract` of `tensor.from_elements`, and `index_cast` of `index_cast`, give back the index.
    * A `graphc.check` whose condition is the constant true is removed.
    * `reshape`, `broadcast_to`, `specify_shape`, `dimshuffle` and `slice` that return their operand are
      removed. Sizes count as equal only where that is certain, so no run-time check is lost.
    * `second(x, y)` becomes a broadcast of y, which needs only the sizes of x.

    Source: PyTensor's `ShapeFeature` and `local_useless_*` rewrites.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for rewriter in apply_rules(module, RULES, self.count, erase=False):
            checks = check_measured(rewriter)
            rewriter.erase_unused()
            self.count("checks of what was measured", checks)
            self._remove_true_checks(rewriter)

    def _remove_true_checks(self, rewriter: Rewriter) -> None:
        for op in checks_in(rewriter.function):
            if rewriter.constant(op.operands[0]) in (True, -1, 1):
                op.erase()
                self.count("checks removed")

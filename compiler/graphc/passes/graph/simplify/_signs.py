# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negations move to the end, where they cancel; the algebraic-simplification pass lists the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.patterns import kind, negated, registrar, rules
from graphc.ir.rewrite import Rewriter, RuleTable
from graphc.ir.views import MOVES_AXES, axes_order, dimshuffle
from graphc.passes.graph.simplify._lines import SIGNS

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = rules(SIGNS)
_rule = registrar(RULES)


@_rule(*MOVES_AXES)
def sign_of_view(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A view of -x, but of numbers: these are negated before they get axes."""
    x = rw.operand_of(op.operands[0], "graphc.neg")
    if x is None or not x.type.shape or kind(rw, x) != "f":
        return None
    return negated(rw, dimshuffle(x, axes_order(op), op.results[0].type, rw.create))

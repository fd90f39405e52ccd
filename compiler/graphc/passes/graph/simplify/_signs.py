# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negations move to the end, where they cancel; the algebraic-simplification pass lists the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.algebra import kind, negated, registrar
from graphc.ir.rewrite import Rewriter, RuleTable
from graphc.ir.views import MOVES_AXES, dimshuffle

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)


@_rule("mul", "true_div")
def sign_of_product(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """(-x) * y -> -(x * y); (-x) / y, x / (-y) -> -(x / y)."""
    if kind(rw, op.results[0]) != "f":
        return None
    x, y = op.operands
    inner_x, inner_y = rw.operand_of(x, "graphc.neg"), rw.operand_of(y, "graphc.neg")
    if (inner_x is None) == (inner_y is None):
        return None
    operands = [x if inner_x is None else inner_x, y if inner_y is None else inner_y]
    return negated(rw, rw.create(op.name, operands, op.results[0].type))


@_rule(*MOVES_AXES)
def sign_of_view(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A view of -x, but of numbers: these are negated before they get axes."""
    x = rw.operand_of(op.operands[0], "graphc.neg")
    if x is None or not x.type.shape or kind(rw, x) != "f":
        return None
    return negated(rw, dimshuffle(x, list(op.attributes["order"]), op.results[0].type, rw.create))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parts of its operands an operation needs for a part of its result; for lift-slices."""

from __future__ import annotations

from graphc.ir.checks import SizeChecks
from graphc.ir.parts import LiftRule, Parts, again
from graphc.ir.rewrite import Rewriter
from graphc.ir.traits.interfaces import CHECKS, PARTS
from graphc.passes.graph.shapes._check_rules import elementwise
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE


def rule_of(op: ir.Operation) -> LiftRule | None:
    """The rule of an operation, None if it has none."""
    name = op.name
    if name.startswith("graphc.") and name[7:] in ELEMENTWISE and len(op.results) == 1:
        return _ELEMENTWISE_RULE
    return PARTS.get(name)


def check_of(rw: Rewriter, op: ir.Operation) -> None:
    """Checks the sizes that an operation relies on: for a part of it, fewer would be checked."""
    rule = rule_of(op)
    check = elementwise if rule is _ELEMENTWISE_RULE else CHECKS.get(op.name)
    if rule is not None and rule.relies and check is not None:
        check(SizeChecks(op.location), rw, op)


def _of_elementwise(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    shapes = [list(x.type.shape) for x in op.operands]
    if any(all(shape[axis] == 1 for shape in shapes) for axis in parts):
        return None
    return [{axis: part for axis, part in parts.items() if shape[axis] != 1} for shape in shapes]


_ELEMENTWISE_RULE = LiftRule(_of_elementwise, again, relies=True)

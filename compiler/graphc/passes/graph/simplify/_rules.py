# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the algebraic-simplification pass, from the files that hold them."""

from __future__ import annotations

from graphc.ir.rewrite import RuleTable
from graphc.passes.graph.simplify import _arithmetic, _functions, _logic, _repeated, _signs, _structure

RULES: RuleTable = {}
for _module in (_repeated, _arithmetic, _functions, _logic, _structure, _signs):
    for _name, _rules in _module.RULES.items():
        RULES.setdefault(_name, []).extend(_rules)

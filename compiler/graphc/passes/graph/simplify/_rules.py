# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the algebraic-simplification pass, from the files that hold them."""

from __future__ import annotations

from graphc.ir.patterns import rules
from graphc.ir.rewrite import RuleTable
from graphc.passes.graph.simplify import _arithmetic, _functions, _logic, _repeated, _signs, _structure
from graphc.passes.graph.simplify._lines import ALGEBRA

RULES: RuleTable = {}
_MODULES = (_arithmetic, _functions, _logic, _structure, _signs)
for _table in (_repeated.RULES, rules(ALGEBRA), *(module.RULES for module in _MODULES)):
    for _name, _rules in _table.items():
        RULES.setdefault(_name, []).extend(_rules)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the algebraic-simplification pass, from the files that hold them."""

from __future__ import annotations

from graphc.ir.rewrite import RuleTable
from graphc.passes import _simplify_arithmetic, _simplify_functions, _simplify_logic, _simplify_structure

RULES: RuleTable = {}
for _module in (_simplify_arithmetic, _simplify_functions, _simplify_logic, _simplify_structure):
    for _name, _rules in _module.RULES.items():
        RULES.setdefault(_name, []).extend(_rules)

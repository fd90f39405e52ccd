# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output of `graphc-new pass NAME`: a pass and its three lit tests, all of which run.

The module is found by its name; nothing has to be registered, and it may move to a folder of the stage. What
it does is then yours to write: it counts the operations it visits.
"""

from __future__ import annotations

MODULE = '''"""{summary}"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphc.ir.diagnostics import fail
from graphc.ir.walk import functions, walk
from graphc.passes import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@dataclass
class {cls}(Pass):
    """{summary}

    What it looks for, what it leaves alone and why, in a few sentences.

    Options:
        max-operations: largest number of operations it accepts in a module.

    Source: the paper or the rewrite it follows.
    """

    stage = "{stage}"
    max_operations: int = 100000

    def run(self, module: ir.Module) -> None:
        found = [op for function in functions(module) for op in walk(function)]
        if len(found) > self.max_operations:
            fail(found[self.max_operations], f"more than {{self.max_operations}} operations")
        self.count("operations", len(found))
'''

BASIC = """// RUN: graphc-opt --{flag} --mlir-pass-statistics %s 2>&1 | filecheck %s

// CHECK: (S) {{{{ *}}}}1 operations
// CHECK-LABEL: func.func @f
func.func @f() {{
  return
}}
"""

INVALID = """// RUN: graphc-opt --{flag}=max-operations=0 --verify-diagnostics %s

func.func @f() {{
  // expected-error @below {{{{more than 0 operations}}}}
  return
}}
"""

DOCTEST = """// RUN: graphc-opt --{flag} %s | filecheck %s

// CHECK: func.func @f() {{
// CHECK-NEXT: return
func.func @f() {{
  return
}}
"""

FILES = {
    "compiler/graphc/passes/{stage}/{name}.py": MODULE,
    "tests/lit/passes/{flag_name}/basic.mlir": BASIC,
    "tests/lit/passes/{flag_name}/invalid.mlir": INVALID,
    "tests/lit/passes/{flag_name}/doctest.mlir": DOCTEST,
}

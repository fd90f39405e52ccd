# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the conditions that operations rely on explicit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.checks import SizeChecks
from graphc.ir.rewrite import Rewriter
from graphc.ir.walk import functions
from graphc.passes.graph.shapes._check_rules import rules
from graphc.passes.graph.shapes._hoist_checks import hoist_checks
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class InsertChecks(Pass):
    """Adds a `graphc.check` for each condition that an operation needs and the types do not guarantee.

    | operation | condition | error |
    |---|---|---|
    | elementwise | sizes that are not statically 1 agree (nothing broadcasts by chance) | ValueError |
    | `pow` of integers | no exponent is negative (unless there is no element) | ValueError |
    | `join` | sizes agree off the joined axis, and their sum is a number of 64 bits | ValueError |
    | `matmul` | summed and batch sizes agree | ValueError |
    | `reshape` | element counts agree, no size is negative | ValueError |
    | `broadcast_to` | sizes of the operand agree with the target, no size is negative | ValueError |
    | `broadcast_to`, `iota` | sizes that are no array's make no more elements than fit memory | ValueError |
    | `specify_shape` | sizes are the specified ones | ValueError, IndexError with `index` |
    | `update_slice`, `put` | the values have the shape of what they replace | ValueError |
    | `take`, `put` | the smallest and largest index are in range | IndexError |
    | `scan_carry` | the rows of a state keep their shape | ValueError |
    | `write` | the value has the sizes of the buffer it is written to | ValueError |
    | recurrences | each step (if any) has a row, shaped like initial | ValueError |
    | `reduce_max/min`, `argmax/argmin` | there is an element (unless `allow_empty`) | ValueError |

    A check in a scan that does not depend on the iteration is made once, before the scan, where it holds
    trivially if there is no iteration.

    Nothing is inserted where equality is certain: static sizes, the same index value, the same dimension of
    the same argument, or a check before. A check carries the location of its operation.

    Source: the run-time checks of PyTensor's C code; NumPy's errors.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            checks = SizeChecks()
            Rewriter(function, rules(checks)).run(erase=False)
            self.count("checks", checks.inserted)
            hoisted = hoist_checks(function)
            if hoisted:
                self.count("hoisted checks", hoisted)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves checks out of scans."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.scan_view import ScanView, scans
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.scan_shapes import Outside, UnknownSize


def hoist_checks(function: ir.Operation) -> int:
    """Puts the checks that do not depend on the iteration before their scans; returns how many."""
    moved = 0
    for op in scans(function):
        view = ScanView(op)
        checks = [op for op in view.operations() if raises(op)]
        if not checks:
            continue
        with ir.InsertionPoint(view.op):
            outside = Outside(view.op)
            never = None
            for check in checks:
                with check.location:
                    try:
                        operands = [outside.copy(x) for x in check.operands]
                    except UnknownSize:
                        continue
                    never = never or build.compare_index(0, view.steps, build.const_index(0))
                    condition = build.create("arith.ori", [operands[0].type], [operands[0], never]).result
                    build.check_again(check, [condition, *operands[1:]])
                check.erase()
                moved += 1
    return moved

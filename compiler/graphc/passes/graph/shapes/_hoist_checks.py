# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves checks out of scans."""

from __future__ import annotations

from graphc.ir.scan_view import ScanView, scans
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import Outside, UnknownSize

_EQUAL = 0


def hoist_checks(function: ir.Operation) -> int:
    """Puts the checks that do not depend on the iteration before their scans; returns how many."""
    moved = 0
    for op in scans(function):
        view = ScanView(op)
        checks = [check for check in view.operations() if check.name == "graphc.check"]
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
                    never = never or _is_zero(view.steps)
                    operands[0] = ir.Operation.create(
                        "arith.ori", [operands[0].type], [operands[0], never]
                    ).result
                    attributes = {name: check.attributes[name] for name in check.attributes}
                    ir.Operation.create("graphc.check", [], operands, attributes)
                check.erase()
                moved += 1
    return moved


def _is_zero(steps: ir.Value) -> ir.Value:
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    zero = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, 0)})
    return ir.Operation.create(
        "arith.cmpi",
        [ir.IntegerType.get_signless(1)],
        [steps, zero.result],
        {"predicate": ir.IntegerAttr.get(i64, _EQUAL)},
    ).result

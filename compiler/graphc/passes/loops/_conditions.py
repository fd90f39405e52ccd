# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stop conditions that are literals."""

from __future__ import annotations

from graphc.ir.constants import read_constant
from graphc.ir.known_rows import definition
from graphc.ir.scan_view import ScanView
from graphc.ir.views import create_here
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir


def simplify_conditions(view: ScanView) -> dict[str, int]:
    """Drops constant stop conditions, and asks no plain loop for its steps; returns numbers by kind."""
    counts: dict[str, int] = {}
    stop = view.stop
    if stop is not None:
        always = _literal(stop)
        # Downwards, the bound says where a loop starts.
        if always is False or (always is True and not view.reverse):
            if always:
                with ir.InsertionPoint(view.op), view.op.location:
                    bound = create_here("arith.minsi", [view.steps, const_index(1)], ir.IndexType.get())
                view.op.operands[0] = bound
            end = view.end
            ir.Operation.create(end.name, [], [], loc=end.location, ip=ir.InsertionPoint(end))
            end.erase()
            counts["conditions removed"] = 1
    if view.stop is None:
        for op in view.step_counts():
            op.results[0].replace_all_uses_with(view.steps)
            op.erase()
            counts["step counts replaced"] = counts.get("step counts replaced", 0) + 1
    return counts


def _literal(condition: ir.Value) -> bool | None:
    """The value of an i1 that is a literal, or the element of a literal tensor."""
    op = definition(condition)
    if op is not None and op.name == "tensor.extract":
        op = definition(op.operands[0])
    if op is None or op.name != "arith.constant":
        return None
    value = read_constant(op)
    if isinstance(value, (bool, int)):
        return bool(value)
    return bool(value.flat[0]) if value is not None and value.size == 1 else None

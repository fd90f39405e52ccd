# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cheap walk over operations."""

from __future__ import annotations

from typing import Any

from graphc_dialects._mlir import ir


def walk(root: Any) -> list[Any]:
    """All operations below `root`, in order, without the cost of wrapping each in its class."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return [op for op in found if op != root]

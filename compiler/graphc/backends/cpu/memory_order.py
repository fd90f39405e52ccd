# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a kernel takes memory, which can fail, only before it has written anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphc_dialects._mlir import ir

# Functions that take memory, by the beginning of their names.
_TAKES = ("graphc_alloc", "graphc_workspace_", "graphc_plan_")
_WRITES = frozenset(
    {
        *(
            "llvm.store",
            "llvm.atomicrmw",
            "llvm.cmpxchg",
            "llvm.call",
            "llvm.inline_asm",
            "llvm.call_intrinsic",
        ),
        *("llvm.intr.memcpy", "llvm.intr.memcpy.inline", "llvm.intr.memmove", "llvm.intr.memset"),
        *("llvm.intr.memset.inline", "llvm.intr.masked.store", "llvm.intr.masked.scatter"),
    }
)


def takes_memory_first(module: Any) -> bool:
    """Whether no way through `@main` writes, or calls what may write, and takes memory after that.

    Args:
        module: an `ir.Module` in the llvm dialect.
    """
    (main,) = (op for op in module.body.operations if _symbol(op) == "main")
    blocks = list(main.regions[0].blocks)
    taking = [block for block in blocks if any(_takes(op) for op in block.operations)]
    if not taking:
        return True
    writing = [block for block in blocks if any(_writes(op) for op in block.operations)]
    reached = set(_reached(writing))
    return not any(block in reached or _writes_then_takes(block) for block in taking)


def _reached(blocks: list[Any]) -> Iterator[Any]:
    """The blocks that control may pass to after one of these."""
    seen, pending = set(), [after for block in blocks for after in block.successors]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            yield block
            pending += block.successors


def _writes_then_takes(block: Any) -> bool:
    written = False
    for op in block.operations:
        if written and _takes(op):
            return True
        written = written or _writes(op)
    return False


def _takes(op: Any) -> bool:
    callee = op.operation.attributes.get("callee") if op.operation.name == "llvm.call" else None
    return callee is not None and ir.FlatSymbolRefAttr(callee).value.startswith(_TAKES)


def _writes(op: Any) -> bool:
    return op.operation.name in _WRITES and not _takes(op)


def _symbol(op: Any) -> str:
    name = op.operation.attributes.get("sym_name")
    return "" if name is None else str(ir.StringAttr(name).value)

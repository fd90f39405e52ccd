# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a kernel takes memory, which can fail, only before it has written anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphc.ir.helpers import callee_of, declared
from graphc_dialects._mlir import ir

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


def takes_memory_first(module: ir.Module) -> bool:
    """Whether no way through `@main` writes, or calls what may write, and takes memory after that.

    Args:
        module: an `ir.Module` in the llvm dialect.
    """
    takers = frozenset(name for name, helper in declared(module).items() if helper.takes_memory)
    (main,) = (op for op in module.body.operations if _symbol(op) == "main")
    return _Order(takers).is_safe(list(main.regions[0].blocks))


class _Order:
    """What the operations of a function do.

    Args:
        takers: the functions that take memory.
    """

    def __init__(self, takers: frozenset[str]) -> None:
        self._takers = takers

    def is_safe(self, blocks: list[ir.Block]) -> bool:
        """Whether nothing is taken after something was written."""
        taking = [block for block in blocks if any(self._takes(op) for op in block.operations)]
        if not taking:
            return True
        writing = [block for block in blocks if any(self._writes(op) for op in block.operations)]
        reached = set(_reached(writing))
        return not any(block in reached or self._writes_then_takes(block) for block in taking)

    def _writes_then_takes(self, block: ir.Block) -> bool:
        written = False
        for op in block.operations:
            if written and self._takes(op):
                return True
            written = written or self._writes(op)
        return False

    def _takes(self, op: ir.Operation) -> bool:
        return op.operation.name == "llvm.call" and callee_of(op.operation) in self._takers

    def _writes(self, op: ir.Operation) -> bool:
        return op.operation.name in _WRITES and not self._takes(op)


def _reached(blocks: list[ir.Block]) -> Iterator[Any]:
    """The blocks that control may pass to after one of these."""
    seen, pending = set(), [after for block in blocks for after in block.successors]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            yield block
            pending += block.successors


def _symbol(op: ir.Operation) -> str:
    name = op.operation.attributes.get("sym_name")
    return "" if name is None else str(ir.StringAttr(name).value)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""After which operation of a block an array of it is not needed any more."""

from __future__ import annotations

from graphc.ir.lifetimes import VIEWS
from graphc_dialects._mlir import ir

_VIEWS = VIEWS | {"memref.extract_strided_metadata"}
_PASS_ON = frozenset({"scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "func.return"})


def last_uses(block: ir.Block) -> dict[ir.Operation, list[ir.Value]]:
    """For each operation of a block, the arrays made in it that nothing after it uses.

    Arrays that loops or branches pass on are not among them; they live until the call ends.
    """
    operations = [op.operation for op in block.operations]
    position = {op: number for number, op in enumerate(operations)}
    found: dict[ir.Operation, list[ir.Value]] = {}
    for op in operations:
        # Functions of the host give new arrays.
        for result in op.results if op.name in ("memref.alloc", "func.call") else ():
            last = _last(result, position, position[op])
            if last is not None:
                found.setdefault(operations[last], []).append(result)
    return found


def _last(array: ir.Value, position: dict[ir.Operation, int], last: int) -> int | None:
    """Where in the block a value or a view of it is used last; None if it is passed on."""
    for use in array.uses:
        user = use.owner.operation
        if user.name in _PASS_ON:
            return None
        around = user
        while around not in position:
            around = around.parent.operation
        last = max(last, position[around])
        if user.name in _VIEWS or user.name == "arith.select":
            for result in user.results:
                if isinstance(result.type, ir.MemRefType):
                    inner = _last(result, position, last)
                    if inner is None:
                        return None
                    last = inner
    return last

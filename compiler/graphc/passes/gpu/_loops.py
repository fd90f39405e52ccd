# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops that the host would run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir.helpers import callee_of, declared
from graphc.ir.walk import functions
from graphc.library.helpers import Poll
from graphc_dialects._mlir import ir

_REGIONS = ("scf.for", "scf.while", "scf.if")


def replace_loops(
    module: ir.Module, replace: Callable[[ir.Operation], bool], names: Sequence[str] = ("scf.for",)
) -> int:
    """Offers the loops of the host to a function, outer ones first.

    Args:
        module: the module.
        replace: returns whether it has replaced the loop, and all that is inside.
        names: of the operations that are offered.

    Returns:
        How many it has replaced.
    """
    count = 0
    blocks = [block for function in functions(module) for block in function.regions[0].blocks]
    while blocks:
        for op in [op.operation for op in blocks.pop(0).operations]:
            if op.name in names and replace(op):
                count += 1
            elif op.name in _REGIONS:
                blocks += [block for region in op.regions for block in region.blocks]
    return count


def polls_of(module: ir.Module) -> frozenset[str]:
    """The functions that ask whether the user wants to stop."""
    return frozenset(name for name, helper in declared(module).items() if isinstance(helper, Poll))


def is_poll(op: ir.Operation, polls: frozenset[str]) -> bool:
    """True if an operation calls one of these."""
    return op.name == "func.call" and callee_of(op) in polls

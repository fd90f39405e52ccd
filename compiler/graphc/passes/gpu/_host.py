# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and arithmetic of the host between launches: integers of 64 bits, and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir.helpers import callee_of, declared
from graphc.ir.walk import functions
from graphc.library.helpers import Poll
from graphc_dialects._mlir import ir
from graphc_runtime.index_arithmetic import COMPARISONS

# Index arithmetic, whose names are those of `Compute`.
ARITHMETIC = frozenset(
    "addi subi muli divsi floordivsi ceildivsi remsi minsi maxsi andi ori xori select".split()
)
# What never differs for sizes, which are not negative.
UNSIGNED = {"divui": "divsi", "remui": "remsi", "minui": "minsi", "maxui": "maxsi", "ceildivui": "ceildivsi"}
PREDICATES = tuple(COMPARISONS)
# What changes nothing for numbers that the host has.
SAME = frozenset(("arith.index_cast", "arith.extsi", "arith.extui", "arith.index_castui"))

_PURE = ("arith.", "math.", "complex.")
# Their operands' bits are what decides, of whatever width.
_OF_ANY_WIDTH = ("andi", "ori", "xori", "select")


def is_arithmetic(op: ir.Operation) -> bool:
    """True if an operation gives numbers that depend on nothing but its operands."""
    return op.name.startswith(_PURE)


def is_of_host(op: ir.Operation) -> bool:
    """True if the host has the arithmetic of an operation on numbers, and so need not ask the device."""
    if op.name in ("arith.constant", "complex.constant"):
        return True
    dialect, _, name = op.name.partition(".")
    if dialect != "arith":
        return False
    if op.name in SAME:
        return name != "extui" or _width(op.operands[0].type) == 1
    if name == "cmpi" or name in _OF_ANY_WIDTH:
        return True
    return name in ARITHMETIC | UNSIGNED.keys() and _width(op.results[0].type) == 64


def _width(kind: ir.Type) -> int:
    """Bits of an integer; an index has 64."""
    return 64 if isinstance(kind, ir.IndexType) else ir.IntegerType(kind).width


_REGIONS = ("scf.for", "scf.while", "scf.if")


def host_blocks(function: ir.Operation) -> list[ir.Block]:
    """The blocks of a function of the host, in its loops and conditionals, too."""
    found = list(function.regions[0].blocks)
    for block in found:
        for op in block.operations:
            if op.operation.name in _REGIONS:
                found += [inner for region in op.operation.regions for inner in region.blocks]
    return found


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

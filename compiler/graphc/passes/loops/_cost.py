# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cost of the work in a body, and the results that need it."""

from __future__ import annotations

from math import prod

from graphc.ir.rewrite import is_removable
from graphc.ir.scan_view import ScanView, is_state, retention
from graphc.ir.traits import EXPENSIVE
from graphc.ir.views import TAKES_ROW
from graphc.ir.walk import inputs_of, within
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.signatures import SIGNATURES

# What a size that is not known counts as.
UNKNOWN = 64

_MATH = frozenset(
    f"graphc.{name}"
    for name in (
        "exp exp2 expm1 log log2 log10 log1p sigmoid softplus log1mexp cbrt sin cos tan arcsin arccos arctan"
        " sinh cosh tanh arcsinh arccosh arctanh erf erfc gamma gammaln digamma pow arctan2 hypot logaddexp"
        " floor_div mod"
    ).split()
)


def row_elements(type_: ir.Type) -> int:
    """Number of elements of a row; unknown sizes count as `UNKNOWN`."""
    return prod(size if size >= 0 else UNKNOWN for size in type_.shape)


def is_expensive(op: ir.Operation) -> bool:
    """True if an operation is worth a stack: elementary functions, kernels, and what its trait says."""
    rule = EXPENSIVE.get(op.name)
    if rule is not None:
        return rule(op)
    return op.name in _MATH or op.name.removeprefix("graphc.") in SIGNATURES


def loop_elements(view: ScanView) -> int:
    """Elements an iteration reads from sequences and computes for states and outputs."""
    reads = {
        (op.operands[0], op.operands[1]): row_elements(op.results[0].type)
        for op in view.work()
        if op.name in TAKES_ROW
    }
    total = sum(reads.values())
    for declaration in view.declarations().values():
        if retention(declaration)[0] != "last":
            total += row_elements(list(declaration.operands)[-1].type)
    return total


def users_of(view: ScanView, value: ir.Value) -> list[ir.Operation]:
    """The operations of the body itself that use a value, themselves or in a nested loop."""
    return [within(use.owner.operation, view.block) for use in value.uses]


def needed_in_loop(view: ScanView, without: frozenset[ir.Operation] = frozenset()) -> set[ir.Operation]:
    """The operations that states (without those of some `scan_carry`), the stop condition or checks need."""
    operations = [op.operation for op in view.block.operations]
    needed: set[ir.Operation] = set()
    wanted: set[object] = set()
    for op in reversed(operations):
        is_output = op.name in DECLARATIONS and not is_state(op)
        is_root = not (is_output or is_removable(op) or len(op.results)) and op not in without
        if is_root or any(result in wanted for result in op.results):
            needed.add(op)
            wanted.update(inputs_of(op))
    return needed

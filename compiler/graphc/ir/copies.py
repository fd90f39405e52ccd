# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of operations that use other values, and what has to be copied for a value."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from graphc.ir.walk import inputs_of, walk
from graphc_dialects._mlir import ir


def slice_of(
    ops: Sequence[ir.Operation], wanted: Iterable[ir.Value], known: Container[ir.Value] = ()
) -> list[ir.Operation]:
    """The operations that some values are computed by.

    Args:
        ops: in order.
        wanted: the values.
        known: what need not be computed.
    """
    needed = {value for value in wanted if value not in known}
    found = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            found.append(op)
            needed.update(value for value in inputs_of(op) if value not in known)
    return found[::-1]


def use_instead(op: ir.Operation, new: Mapping[ir.Value, ir.Value]) -> None:
    """Gives an operation, and those in its regions, other operands for some."""
    for inner in [op, *walk(op)] if len(op.regions) else [op]:
        for place, operand in enumerate(inner.operands):
            if operand in new:
                inner.operands[place] = new[operand]


def copy_with(op: ir.Operation, new: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Copies an operation to the insertion point.

    Args:
        op: the operation.
        new: values that the copy, and what is in its regions, uses instead of others; gains its results.

    Returns:
        The copy.
    """
    copy = op.clone()
    use_instead(copy, new)
    new.update(zip(op.results, copy.results, strict=True))
    return copy

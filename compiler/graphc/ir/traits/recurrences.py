# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences along the first axis: `graphc.cumulative`, `graphc.linear_recurrence`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks, size_of
from graphc.ir.rewrite import Rewriter
from graphc.ir.traits import REFERENCE, SIZES, Sizes, given_sizes, sizes_of
from graphc_dialects._mlir import ir

RUNNING, LINEAR = "graphc.cumulative", "graphc.linear_recurrence"
_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def recurrence(kind: str | None) -> tuple[str, dict[str, ir.Attribute]]:
    """Name and attributes of a running sum, product, ... of a kind, or (None) of a linear recurrence."""
    return (LINEAR, {}) if kind is None else (RUNNING, {"kind": ir.StringAttr.get(kind)})


@SIZES(RUNNING, LINEAR)
def _sizes(op: ir.Operation) -> Sizes:
    *_, initial, steps = op.operands
    rows: Sizes = [()] if op.attributes["keep_initial"].value else given_sizes([steps])
    return [*rows, *sizes_of(initial)[1:]]


@CHECKS(RUNNING, LINEAR)
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """A row for each step, of the shape the first one has; without steps nothing is required."""
    *stacks, initial, steps = op.operands
    name = op.name[7:]
    for position, stack in enumerate(stacks):
        for axis, known in enumerate(stack.type.shape):
            key = rw.dims.shape(stack)[axis]
            want = rw.dims.shape(initial)[axis] if axis else rw.dims.size(steps)
            if known == 1 or rw.dims.same(key, want):
                continue
            given = size_of(rw, stack, axis)
            expected = size_of(rw, initial, axis) if axis else steps
            none = checks.compare(rw, "eq", steps, rw.index(0))
            fits = checks.compare(rw, "eq", given, expected)
            fits = rw.create("arith.ori", [fits, none], fits.type)
            message = (
                f"{name}: operand {position} has size {{given}} in dimension {axis}, "
                "but {expected} is needed"
            )
            checks.check(rw, fits, given, expected, message, "ValueError")


def _rows(op: ir.Operation, operands: Sequence[Any], step: Callable[..., Any]) -> np.ndarray:
    """Rows made one from the other: `step(row before, *operands' rows)`."""
    *stacks, initial, n = operands
    flags = {name: bool(op.attributes[name].value) for name in ("reverse", "keep_initial")}
    for stack, type_ in zip(stacks, (x.type for x in op.operands), strict=False):
        sizes = zip(stack.shape, (n, *initial.shape[1:]), type_.shape, strict=True)
        if n and any(have != want and known != 1 for have, want, known in sizes):
            raise ValueError(f"{op.name}: {stack.shape} does not fit {n} rows of shape {initial.shape[1:]}")
    rows = [initial[0]]
    for t in reversed(range(n)) if flags["reverse"] else range(n):
        rows.append(step(rows[-1], *(stack[t if len(stack) != 1 else 0] for stack in stacks)))
    if not flags["keep_initial"]:
        del rows[0]
    if flags["reverse"]:
        rows.reverse()
    return np.stack(rows) if rows else np.empty((0, *initial.shape[1:]), initial.dtype)


@REFERENCE(RUNNING)
def _running(op: ir.Operation, *operands: int | np.ndarray) -> np.ndarray:
    return _rows(op, operands, _UFUNCS[op.attributes["kind"].value])


@REFERENCE(LINEAR)
def _linear(op: ir.Operation, *operands: np.ndarray) -> np.ndarray:
    return _rows(op, operands, lambda h, a, b: a * h + b)

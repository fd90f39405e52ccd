# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and declarations of scans."""

from __future__ import annotations

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks
from graphc.ir.rewrite import Rewriter
from graphc.ir.scan_view import SCAN, name_of, retention, traced
from graphc.ir.totality import TOTAL, Totality, never_fails
from graphc.ir.traits import POSITIONAL, REFERENCE, SIZES, Sizes, sizes_of
from graphc.ir.views import INLINED, TAKES_ROW
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import carry_of, is_state

TOTAL(*(f"graphc.scan_{name}" for name in ("prev", "trace", "steps", "collect", "end")))(never_fails)
POSITIONAL(SCAN, "graphc.scan_seq")
INLINED("graphc.scan_seq")
TAKES_ROW("graphc.scan_seq")


@SIZES("graphc.scan_seq")
def _row(op: ir.Operation) -> Sizes:
    return sizes_of(op.operands[0])[1:]


@SIZES("graphc.scan_prev")
def _previous(op: ir.Operation) -> Sizes:
    return sizes_of(carry_of(op).operands[0])[1:]


@SIZES("graphc.scan_trace")
def _trace(op: ir.Operation) -> Sizes:
    """As many rows as iterations, where that is known; the rows of a state are like its initial ones."""
    shape: Sizes = [() for _ in op.results[0].type.shape]
    view, declared = traced(op)
    keep, _ = retention(declared)
    if is_state(declared):
        shape[1:] = sizes_of(declared.operands[0])[1:]
    if keep == "steps" or (keep == "all" and not is_state(declared)):
        if view.stop is None:
            shape[0] = ((view.steps, -1),)
    return shape


@REFERENCE("graphc.scan_seq")
def _scan_seq(op: ir.Operation, x: np.ndarray, i: int) -> np.ndarray:
    if not 0 <= i < len(x):
        raise IndexError(f"scan_seq: row {i} of {len(x)}")
    return np.asarray(x[i])


@TOTAL("graphc.scan_seq")
def _row_exists(totality: Totality, op: ir.Operation) -> bool:
    """A literal row of a stack of static length."""
    number = constant_value(op.operands[1])
    return number is not None and 0 <= number < op.operands[0].type.shape[0]


@TOTAL("graphc.scan_carry")
def _rows_agree(totality: Totality, op: ir.Operation) -> bool:
    """Rows go on as they start."""
    initial, *rows = op.operands
    axes = range(len(initial.type.shape) - 1)
    return all(totality.same((row, axis), (initial, axis + 1)) for row in rows for axis in axes)


@TOTAL(SCAN)
def _body_is_total(totality: Totality, op: ir.Operation) -> bool:
    """Nothing in the body can fail. That rows of sequences exist is checked or known before it."""
    return all(
        inner.operation.name in TAKES_ROW or totality.is_total(inner.operation, guarded=False)
        for inner in op.regions[0].blocks[0].operations
    )


@CHECKS("graphc.scan_carry")
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """The rows of a state keep their shape."""
    initial, *rows = op.operands
    name = name_of(op)
    for row in rows:
        for axis in range(len(row.type.shape)):
            message = (
                f"scan: rows of the state '{name}' start with size {{expected}} in dimension "
                f"{axis}, but go on with {{given}}"
            )
            checks.equal(rw, (row, axis), (initial, axis + 1), message)

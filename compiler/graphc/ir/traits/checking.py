# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.check`."""

from __future__ import annotations

from graphc.ir.build import predicate_of
from graphc.ir.checks import CHECKS, PREDICATES, SizeChecks
from graphc.ir.rewrite import Rewriter
from graphc_dialects._mlir import ir


@CHECKS("graphc.check")
def _passed(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    """Facts about sizes that a check which is there already establishes."""
    made = rw.defining(op.operands[0], "arith.cmpi")
    if made is not None and predicate_of(made) == PREDICATES["eq"]:
        a, b = made.operands
        if isinstance(a.type, ir.IndexType):
            keys = rw.dims.size(a), rw.dims.size(b)
            if not all(isinstance(key, int) for key in keys):
                rw.dims.assume_equal(*keys)

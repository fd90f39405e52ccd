# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.random`."""

from __future__ import annotations

from graphc.ir.traits.interfaces import SEQUENTIAL, SIZES, Sizes, given_sizes
from graphc_dialects._mlir import ir

RANDOM = "graphc.random"
SEQUENTIAL(RANDOM)


@SIZES(RANDOM)
def _sizes(op: ir.Operation) -> Sizes:
    return given_sizes(list(op.operands)[1 + len(list(op.attributes["cores"])) :])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.random`."""

from __future__ import annotations

from graphc.ir.dims import DimKeys, Key
from graphc.ir.traits.interfaces import SIZES
from graphc_dialects._mlir import ir


@SIZES("graphc.random")
def _sizes(keys: DimKeys, op: ir.Operation, operands: list[ir.Value]) -> list[Key]:
    return [keys.size(size) for size in operands[1 + len(list(op.attributes["cores"])) :]]

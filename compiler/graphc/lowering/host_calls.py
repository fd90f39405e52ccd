# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of calls in the graph stage: of functions that the host runs for a device, on whole arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import callee_of
from graphc.lowering.rules import lowers
from graphc.lowering.scan_buffers import any_layout, read
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter

# The function that is called with buffers has a name of its own.
BUFFERS = ".buffers"


@lowers("func.call")
def host_call(context: FunctionConverter, op: ir.Operation) -> None:
    """Lowers one call; its results are new arrays, whose sizes show when they are there."""
    for result in op.results:
        if not isinstance(result.type, ir.RankedTensorType):
            fail(op, f"calls of functions of the host give tensors, not {result.type}")
    arguments = []
    for operand in op.operands:
        value = context.tensor_of(operand)
        arguments.append(any_layout(value) if isinstance(value.type, ir.RankedTensorType) else value)
    kinds = [build.storage_type(result.type) for result in op.results]
    buffers = [ir.MemRefType.get(kind.shape, kind.element_type) for kind in kinds]
    symbol = callee_of(op) + BUFFERS
    build.declare(op, symbol, [x.type for x in arguments], buffers)
    made = build.create("func.call", buffers, arguments, callee=ir.FlatSymbolRefAttr.get(symbol))
    for result, kind, buffer in zip(op.results, kinds, made.results, strict=True):
        context.define_sizes(result, [build.dim(buffer, axis) for axis in range(len(kind.shape))])
        context.define(result, read(buffer, kind))

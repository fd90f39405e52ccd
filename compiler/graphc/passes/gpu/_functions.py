# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls in kernels: of functions of numbers, which the gpu module declares for itself."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.walk import walk
from graphc_dialects._mlir import ir


def declare_callees(kernels: ir.Block, function: ir.Operation) -> None:
    """Declares in the gpu module what a kernel calls and the module around declares.

    Args:
        kernels: the block of the gpu module.
        function: the kernel.
    """
    calls = {callee_of(op) for op in walk(function) if op.name == "func.call"}
    missing = calls - {_name(op.operation) for op in kernels.operations}
    if not missing:
        return
    outer = kernels.owner.operation.parent.operation
    for op in [op.operation for op in outer.regions[0].blocks[0].operations]:
        if op.name == "func.func" and _name(op) in missing:
            with ir.InsertionPoint.at_block_begin(kernels):
                op.clone()


def declare(kernels: ir.Block, symbol: str, types: Sequence[ir.Type]) -> None:
    """Declares a function in the llvm dialect, once; its result is of the type of its first operand.

    Args:
        kernels: the block of the gpu module.
        symbol: the function's name.
        types: of the operands.
    """
    for op in [op.operation for op in kernels.operations]:
        if _name(op) == symbol:
            if op.name == "llvm.func":
                return
            op.erase()
    kinds = ", ".join(map(str, types))
    text = f'llvm.func @"{symbol}"({kinds}) -> {types[0]}'
    ir.InsertionPoint.at_block_begin(kernels).insert(ir.Operation.parse(text))


def call(symbol: str, operands: Sequence[ir.Value]) -> ir.Value:
    """Calls what `declare` has declared, at the insertion point."""
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(symbol),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return build.create("llvm.call", [operands[0].type], list(operands), **attributes).result


def _name(op: ir.Operation) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value) if "sym_name" in op.attributes else ""

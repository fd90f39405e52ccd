# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tells LLVM that the buffers which a function is given do not overlap."""

from __future__ import annotations

from graphc.ir.diagnostics import fail
from graphc.passes import Pass
from graphc_dialects._mlir import ir


class NoaliasBuffers(Pass):
    """Marks the arguments at the positions in `graphc.buffers` (see kernel-abi) as `llvm.noalias`.

    Without it the vectoriser compares the addresses of all buffers before each loop, and gives up where
    there are many.
    """

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        nothing = ir.DictAttr.get({})
        noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        for op in [op.operation for op in module.body.operations]:
            if op.name != "llvm.func" or "graphc.buffers" not in op.attributes:
                continue
            blocks = list(op.regions[0].blocks)
            attributes = [nothing] * (len(blocks[0].arguments) if blocks else 0)
            positions = op.attributes["graphc.buffers"]
            if not isinstance(positions, ir.DenseI32ArrayAttr) or not {*positions} <= {
                *range(len(attributes))
            }:
                fail(op, "'graphc.buffers' must be array<i32: ...> of positions of arguments")
            for position in positions:
                attributes[position] = noalias
                self.count("arguments")
            op.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            del op.attributes["graphc.buffers"]

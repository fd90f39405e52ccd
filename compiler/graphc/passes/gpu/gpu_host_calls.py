# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of functions of the host."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.walk import functions, walk
from graphc.lowering.random import BUFFERS
from graphc.lowering.scans.buffers import allocate, copy
from graphc.passes import Pass
from graphc.passes.buffer.kernel_pointers import is_proven_contiguous
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuHostCalls(Pass):
    """Copies parts of arrays, and transposes, before a function of the host is called with them.

    Transfers are of elements that lie side by side; the copies are kernels.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in walk(function):
                if op.name == "func.call" and callee_of(op).endswith(BUFFERS):
                    self._copy_operands(op)

    def _copy_operands(self, call: ir.Operation) -> None:
        for place, operand in enumerate(call.operands):
            if not isinstance(operand.type, ir.MemRefType) or is_proven_contiguous(operand):
                continue
            kind = ir.MemRefType(operand.type)
            with ir.InsertionPoint(call), call.location:
                made = allocate(ir.RankedTensorType.get(kind.shape, kind.element_type), build.dims(operand))
                copy(operand, made)
                call.operands[place] = build.create("memref.cast", [operand.type], [made]).result
            self.count("copies")

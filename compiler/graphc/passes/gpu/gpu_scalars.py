# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single numbers that the host would compute for an array."""

from __future__ import annotations

from graphc.ir.walk import copy_with, functions, walk
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_ARITHMETIC = ("arith", "math", "complex")


@record()
class GpuScalars(Pass):
    """Makes a kernel of one thread of each `memref.store` in host code, with the arithmetic before it.

    Sizes that become elements, such as the number that a mean divides by, are stored like that. Index
    arithmetic stays on the host, and so do loads; their values are arguments. The arithmetic is copied: what
    launches or checks use of it stays.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "memref.store"]:
                kernel = Kernel(op, "scalar")
                with kernel.body():
                    value = _copied(op.operands[0], {})
                    op.clone().operands[0] = value
                kernel.launch([], [])
                op.erase()
                self.count("kernels")


def _copied(value: ir.Value, copies: dict[ir.Value, ir.Value]) -> ir.Value:
    """A value computed at the insertion point, from indices and from what loads have given."""
    if value in copies:
        return copies[value]
    owner = value.owner
    if (
        isinstance(owner, ir.Block)
        or isinstance(value.type, ir.IndexType)
        or owner.name.partition(".")[0] not in _ARITHMETIC
        or not len(owner.operands)
    ):
        return value
    for operand in owner.operands:
        _copied(operand, copies)
    copy_with(owner, copies)
    return copies[value]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of numbers that are neither instructions nor have an expansion.

Calls in kernels: of functions of numbers, which the gpu module declares for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.value import converted
from graphc.ir.walk import symbol_of, walk
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


def declare_callees(kernels: ir.Block, function: ir.Operation) -> None:
    """Declares in the gpu module what a kernel calls and the module around declares.

    Args:
        kernels: the block of the gpu module.
        function: the kernel.
    """
    calls = {callee_of(op) for op in walk(function) if op.name == "func.call"}
    missing = calls - {symbol_of(op.operation) for op in kernels.operations}
    if not missing:
        return
    outer = kernels.owner.operation.parent.operation
    for op in [op.operation for op in outer.regions[0].blocks[0].operations]:
        if op.name == "func.func" and symbol_of(op) in missing:
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
        if symbol_of(op) == symbol:
            if op.name == "llvm.func":
                return
            op.erase()
    text = f'llvm.func @"{symbol}"({", ".join(map(str, types))}) -> {types[0]}'
    ir.InsertionPoint.at_block_begin(kernels).insert(ir.Operation.parse(text))


def call(symbol: str, operands: Sequence[ir.Value]) -> ir.Value:
    """Calls what `declare` has declared, at the insertion point."""
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(symbol),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return build.create("llvm.call", [operands[0].type], list(operands), **attributes).result


# Operations, and the scalar kernels that compute them for float64.
_KERNELS = {
    **{f"math.{name}": name for name in "acosh asinh atan2 atanh cbrt cos erfc sin tan".split()},
    "math.powf": "pow",
    "arith.remf": "fmod",
}


@record()
class GpuFunctions(Pass):
    """Replaces functions in kernels by calls of scalar kernels, which need no library on the device.

    `sin cos tan pow cbrt erfc atan2 asinh acosh atanh` and remainders of floats are computed in float64 by
    `graphc_scalar.<name>` (`graphc.library.scalars`), and rounded once for smaller types. A reciprocal square
    root is a root and a division, a power with an integer exponent one with a float.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for outer in [op.operation for op in module.body.operations]:
            if outer.name == "gpu.module":
                block = outer.regions[0].blocks[0]
                for op in walk(outer):
                    self._replace(op, block)

    def _replace(self, op: ir.Operation, kernels: ir.Block) -> None:
        if op.name not in _KERNELS and op.name not in ("func.call", "math.rsqrt", "math.fpowi"):
            return
        with ir.InsertionPoint(op), op.location:
            if op.name == "func.call":
                declare(kernels, callee_of(op), [x.type for x in op.operands])
                value = call(callee_of(op), list(op.operands))
            elif op.name == "math.rsqrt":
                value = 1.0 / build.math("sqrt", *op.operands)
            elif op.name == "math.fpowi":
                base, power = op.operands
                as_float = converted(power, ir.F64Type.get())
                value = _called("pow", [base, as_float], kernels)
            else:
                value = _called(_KERNELS[op.name], list(op.operands), kernels)
        op.results[0].replace_all_uses_with(value)
        op.erase()
        self.count("functions")


def _called(name: str, operands: Sequence[ir.Value], kernels: ir.Block) -> ir.Value:
    """A scalar kernel of numbers in float64; the result has the type of the first one."""
    kind, double = operands[0].type, ir.F64Type.get()
    symbol = f"graphc_scalar.{name}"
    declare(kernels, symbol, [double] * len(operands))
    wide = [converted(x, double) for x in operands]
    return converted(call(symbol, wide), kind)

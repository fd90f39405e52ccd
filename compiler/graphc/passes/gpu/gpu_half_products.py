# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of halves, without arrays of float32."""

from __future__ import annotations

from graphc.ir.kinds import PRODUCTS, flags_of, matrix_product
from graphc.ir.rewrite import Rewriter
from graphc.ir.views import order_of, transposed_order
from graphc.ir.walk import functions
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir


class GpuHalfProducts(Pass):
    """Makes `matmul(cast(a), cast(b))` of halves with sums in float32 one product, which tensor cores do.

    Products of halves are exact in float32. On CPUs both sides are converted to float32 first; on a device
    that would take more memory than the product, and its units for halves would have nothing to do. A side
    that is the transpose of an array becomes a flag of the product.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            rewriter = Rewriter(function, {name: [_of_halves] for name in PRODUCTS})
            rewriter.run()
            self.count("products", sum(rewriter.counts.values()))


def _of_halves(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    sides = [_side(rewriter, value) for value in op.operands]
    if None in sides:
        return None
    (a, across_a), (b, across_b) = (side for side in sides if side is not None)
    transpose_a, transpose_b = flags_of(op)
    flags = transpose_a ^ across_a, transpose_b ^ across_b
    return matrix_product(a, b, flags, op.results[0].type, rewriter.create)


def _side(rewriter: Rewriter, value: ir.Value) -> tuple[ir.Value, bool] | None:
    """The halves that a matrix of float32 is made of, and whether they are to be transposed."""
    cast = rewriter.defining(value, "graphc.cast")
    if cast is None or str(value.type.element_type) != "f32":
        return None
    source = cast.operands[0]
    if str(source.type.element_type) != "f16":
        return None
    moved = rewriter.defs.get(source)
    rank = len(source.type.shape)
    if moved is not None and order_of(moved) == transposed_order(rank):
        inner = moved.operands[0]
        if len(inner.type.shape) == rank:
            return inner, True
    return source, False

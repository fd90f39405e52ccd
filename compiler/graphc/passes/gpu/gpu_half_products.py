# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of halves, without arrays of float32."""

from __future__ import annotations

from graphc.ir.kinds import PRODUCTS, flags_of, matrix_product
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.views import MOVES_AXES, REPEATS, order_of, transposed_order
from graphc.ir.walk import functions
from graphc.passes import Pass
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
    if not all(_is_of_halves(rewriter, value) for value in op.operands):
        return None
    (a, across_a), (b, across_b) = (_side(rewriter, _halves(rewriter, value)) for value in op.operands)
    transpose_a, transpose_b = flags_of(op)
    flags = transpose_a ^ across_a, transpose_b ^ across_b
    return matrix_product(a, b, flags, op.results[0].type, rewriter.create)


def _is_of_halves(rewriter: Rewriter, value: ir.Value) -> bool:
    """True if a matrix of float32 is made of halves."""
    cast = rewriter.defining(value, "graphc.cast")
    if cast is not None:
        kinds = [str(x.type.element_type) for x in (cast.operands[0], value)]
        return kinds == ["f16", "f32"]
    op = rewriter.defs.get(value)
    return (
        op is not None
        and (op.name in MOVES_AXES or op.name in REPEATS)
        and _is_of_halves(rewriter, op.operands[0])
    )


def _halves(rewriter: Rewriter, value: ir.Value) -> ir.Value:
    """These halves, moved as the matrix is."""
    cast = rewriter.defining(value, "graphc.cast")
    if cast is not None:
        return cast.operands[0]
    op = rewriter.defs[value]
    source = _halves(rewriter, op.operands[0])
    kind = tensor_type(list(value.type.shape), source.type.element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    return rewriter.create(op.name, [source, *list(op.operands)[1:]], kind, **attributes)


def _side(rewriter: Rewriter, halves: ir.Value) -> tuple[ir.Value, bool]:
    """The array that halves are the transpose of, or they themselves, and which of the two."""
    moved = rewriter.defs.get(halves)
    rank = len(halves.type.shape)
    if moved is not None and order_of(moved) == transposed_order(rank):
        inner = moved.operands[0]
        if len(inner.type.shape) == rank:
            return inner, True
    return halves, False

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products become calls: of BLAS if they are large, of vector code otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from graphc.ir.walk import walk
from graphc.lowering.matmul import IS_PRODUCT, AlignedMatrices, Product, with_fills
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class MatmulToBlas(Pass):
    """Replaces matrix products on buffers by calls.

    Rules, in this order:

    * Integers, booleans, and layouts in which neither dimension of a matrix is contiguous stay loops, and so
      do outer products (k = 1) and dot products (m = n = 1), which LLVM vectorises.
    * Sizes that are all known, at most 16, with m * n * k at most `threshold`:
      `graphc_<s,d>block_<m>_<n>_<k>_<nt><nt>`, a function for just these sizes with the result in registers.
      Complex products of so few operations stay loops.
    * Everything else: `graphc_<s,d,c,z>gemm`. It decides at run time: up to 16384 multiplications (32768 if
      the second operand is transposed), or 262144 where the result is one row or one column or the second
      operand has at most 1024 elements, vector code is faster than a call of BLAS.

    A matrix of 2 KB to 2 MB that is an argument, and that a loop which carries values multiplies vectors
    with, is read from a copy if it or one of its rows does not begin with a line of the cache and the loop
    has 32 steps or more. Rows of the copy all begin with a line.

    Matrices may be parts of larger arrays, as in loops, whose bodies read one step of a sequence. A result
    that is filled with zeros for the product alone need not be. Batched products loop over the batch.

    Options:
        threshold: largest m * n * k of a product that is compiled for its sizes.

    Source: PyTensor's BLAS rewrites; the reference BLAS interface; Goto and van de Geijn, "Anatomy of
    high-performance matrix multiplication" (2008), for register tiles.
    """

    stage = "buffer"
    threshold: int = 4096

    def run(self, module: ir.Module) -> None:
        operations = walk(module.operation)
        for product in list(_products(operations, AlignedMatrices(operations))):
            kind = product.lower(self.threshold)
            if kind is not None:
                self.count(kind)


def _products(operations: list[ir.Operation], aligned: AlignedMatrices) -> Iterator[Product]:
    """The products among operations in order, each with the fill that serves it alone."""
    for op, fill in with_fills(operations):
        if IS_PRODUCT in op.attributes:
            yield Product(op, aligned, fill)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of compressed rows and dense matrices, on the arrays of a sparse matrix (see `graphc.sparse`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import multilinear
from graphc.library.products.sparse import COLUMNS, GROUP, GROUPS
from graphc.ops.kernel import KernelOp
from graphc.ops.shape import size_of
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter


def _index_dtype(*given: str) -> str:
    return "int32" if all(dtype == "int32" for dtype in given) else "int64"


class CsrProduct(KernelOp):
    """Product of a matrix of compressed rows, or of its transpose, and a dense matrix.

    Operands: values, columns and row starts of the sparse matrix, the dense matrix, and the number of rows of
    the result.

    Args:
        transpose: multiply by the transpose.
    """

    kernel = "csr_product"
    transpose: bool = False
    depends_on = (0, 3)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = promote(np.dtype(given[0]), np.dtype(given[3])).name
        index = _index_dtype(given[1], given[2])
        return [dtype, index, index, dtype], [dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (data, indices, indptr, b, _) = only(cotangents), inputs
        pair = (b, g) if self.transpose else (g, b)
        g_data: Variable = CsrSampledProduct()(indices, indptr, *pair)
        rows = size_of(b, b.type.ndim - 2)
        g_b: Variable = CsrProduct(not self.transpose)(data, indices, indptr, g, rows)
        return [g_data, None, None, g_b, None]

    pushforward = multilinear

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        """The transpose adds to rows of the result in any order. Where the dense matrix has enough columns,
        parts of it are multiplied for themselves; where it has not, groups of rows have results of their own,
        which are added up. How many groups depends on sizes only, so that results do too.
        """
        if not self.transpose:
            return super().emit(node, operands, e)
        types = [e.type_of(x) for x in node.inputs[:4]]
        rank = node.outputs[0].type.ndim - 2
        z, n = e.dim(operands[0], types[0], rank), e.dim(operands[3], types[3], rank + 1)
        m = e.index(node.inputs[4], operands[4])
        work = e.arith("divui", e.multiply(z, n), e.const_index(GROUP))
        filled = e.arith("divui", z, e.add(e.add(m, m), e.const_index(1)))
        few = e.arith("minui", e.arith("minui", work, filled), e.const_index(GROUPS - 1))
        one = e.const_index(1)
        most = e.arith("divui", n, e.const_index(COLUMNS))
        by_columns = e.arith("minui", e.arith("divui", most, e.add(few, one)), one)
        groups = e.add(e.multiply(few, e.subtract(one, by_columns)), one)
        out = e.type_of(node.outputs[0])
        sizes = out[len("tensor<") :].split("x")
        partial = "tensor<" + "x".join([*sizes[:rank], "?", *sizes[rank:]])
        found = e.op(
            "graphc.csr_partial_product", [*operands[:4], groups, m], [*types, "index", "index"], partial
        )
        return [e.op("graphc.reduce_sum", [found], [partial], out, f"axes = array<i64: {rank}>")]


class CsrPartialProduct(KernelOp):
    """Products of the transpose of q groups of compressed rows and a dense matrix, one after another.

    Operands as `CsrProduct`, with q before the number of rows. It is what the transposed product is made
    of, and only its sum has derivatives.
    """

    kernel = "csr_partial_product"
    absent = {
        "pullback": "the product of which it is a part has one",
        "pushforward": "the product of which it is a part has one",
    }

    dtypes = CsrProduct.dtypes


class CsrSampledProduct(KernelOp):
    """The elements of ``a @ b.T`` at the places of a matrix of compressed rows.

    Operands: columns and row starts, a of as many rows as the sparse matrix, b of as many as it has columns.
    """

    kernel = "csr_sampled_product"
    depends_on = (2, 3)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = promote(np.dtype(given[2]), np.dtype(given[3])).name
        index = _index_dtype(given[0], given[1])
        return [index, index, dtype, dtype], [dtype]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (indices, indptr, a, b) = only(cotangents), inputs
        ndim = a.type.ndim
        g_a: Variable = CsrProduct()(g, indices, indptr, b, size_of(a, ndim - 2))
        g_b: Variable = CsrProduct(True)(g, indices, indptr, a, size_of(b, ndim - 2))
        return [None, None, g_a, g_b]

    pushforward = multilinear

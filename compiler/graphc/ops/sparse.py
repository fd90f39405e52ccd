# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of compressed rows and dense matrices, on the arrays of a sparse matrix (see `graphc.sparse`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Apply, Variable
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import KernelOp
from graphc.ops.rows_arithmetic import promote
from graphc.ops.sizes import size_of

Variables = Sequence[Variable]
Maybe = Sequence[Variable | None]


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
    __props__ = ("transpose",)

    def __init__(self, transpose: bool = False) -> None:
        self.transpose = transpose

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = promote(np.dtype(given[0]), np.dtype(given[3])).name
        index = _index_dtype(given[1], given[2])
        return [dtype, index, index, dtype], [dtype]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (data, indices, indptr, b, _) = cotangents, inputs
        if g is None or is_discrete(outputs[0]):
            return [None] * 5
        pair = (b, g) if self.transpose else (g, b)
        g_data: Any = CsrSampledProduct()(indices, indptr, *pair)
        rows = size_of(b, b.type.ndim - 2)  # type: ignore[attr-defined]
        g_b: Any = CsrProduct(not self.transpose)(data, indices, indptr, g, rows)
        return [g_data, None, None, g_b, None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        data, indices, indptr, b, rows = inputs
        t_data, t_b = tangents[0], tangents[3]
        if is_discrete(outputs[0]) or (t_data is None and t_b is None):
            return [None]
        terms: list[Any] = [] if t_data is None else [self(t_data, indices, indptr, b, rows)]
        terms += [] if t_b is None else [self(data, indices, indptr, t_b, rows)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


class CsrSampledProduct(KernelOp):
    """The elements of ``a @ b.T`` at the places of a matrix of compressed rows.

    Operands: columns and row starts, a of as many rows as the sparse matrix, b of as many as it has columns.
    """

    kernel = "csr_sampled_product"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = promote(np.dtype(given[2]), np.dtype(given[3])).name
        index = _index_dtype(given[0], given[1])
        return [index, index, dtype, dtype], [dtype]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [True], [True]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (indices, indptr, a, b) = cotangents, inputs
        if g is None or is_discrete(outputs[0]):
            return [None] * 4
        ndim = a.type.ndim  # type: ignore[attr-defined]
        g_a: Any = CsrProduct()(g, indices, indptr, b, size_of(a, ndim - 2))
        g_b: Any = CsrProduct(True)(g, indices, indptr, a, size_of(b, ndim - 2))
        return [None, None, g_a, g_b]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        indices, indptr, a, b = inputs
        t_a, t_b = tangents[2:]
        if is_discrete(outputs[0]) or (t_a is None and t_b is None):
            return [None]
        terms: list[Any] = [] if t_a is None else [self(indices, indptr, t_a, b)]
        terms += [] if t_b is None else [self(indices, indptr, a, t_b)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices: SciPy's in and out, compiled products with dense ones. Names are PyTensor's."""

from __future__ import annotations

from typing import NoReturn

from graphc.sparse.arithmetic import (
    add,
    cast,
    dot,
    mul,
    neg,
    sampling_dot,
    structured_dot,
    sub,
    transpose,
    true_dot,
    usmm,
)
from graphc.sparse.basic import (
    CSM,
    as_sparse,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    csm_data,
    csm_indices,
    csm_indptr,
    csm_properties,
    shape,
)
from graphc.sparse.conversion import (
    csc_from_dense,
    csr_from_dense,
    dense_from_sparse,
    remove0,
    square_diagonal,
)
from graphc.sparse.elementwise import (
    FUNCTIONS,
    add_s_s_data,
    col_scale,
    eq,
    ge,
    gt,
    le,
    lt,
    neq,
    row_scale,
    sp_ones_like,
    sp_zeros_like,
    structured_add_s_v,
)
from graphc.sparse.structure import (
    block_diag,
    clean,
    ensure_sorted_indices,
    get_item,
    get_item_2d,
    get_item_2lists,
    get_item_list,
    get_item_scalar,
    hstack,
    vstack,
)
from graphc.sparse.sums import diag, sp_sum
from graphc.sparse.type import FORMATS, SparseConstant, SparseTensorType, SparseVariable
from graphc.sparse.variables import CSC, CSR, csc_matrix, csr_matrix, matrix
from graphc.sparse.variables import share_matrix as shared

# PyTensor's further names of the same functions: by what the operands are.
multiply, subtract, csm_shape = mul, sub, shape
add_s_s = add_s_d = add
mul_s_s = mul_s_d = mul_s_v = mul
sparse_formats = sorted(FORMATS)
csr_dmatrix, csc_dmatrix = (SparseTensorType(format, "float64") for format in FORMATS)
csr_fmatrix, csc_fmatrix = (SparseTensorType(format, "float32") for format in FORMATS)
globals().update(FUNCTIONS)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"graphc.sparse has no {name!r}")


SparseVariable.functions = globals()

__all__ = [
    "CSC",
    "CSM",
    "CSR",
    "SparseConstant",
    "SparseTensorType",
    "SparseVariable",
    "add",
    "add_s_d",
    "add_s_s",
    "add_s_s_data",
    "as_sparse",
    "as_sparse_or_tensor_variable",
    "as_sparse_variable",
    "block_diag",
    "cast",
    "clean",
    "col_scale",
    "csc_dmatrix",
    "csc_fmatrix",
    "csc_from_dense",
    "csc_matrix",
    "csm_data",
    "csm_indices",
    "csm_indptr",
    "csm_properties",
    "csm_shape",
    "csr_dmatrix",
    "csr_fmatrix",
    "csr_from_dense",
    "csr_matrix",
    "dense_from_sparse",
    "diag",
    "dot",
    "ensure_sorted_indices",
    "eq",
    "ge",
    "get_item",
    "get_item_2d",
    "get_item_2lists",
    "get_item_list",
    "get_item_scalar",
    "gt",
    "hstack",
    "le",
    "lt",
    "matrix",
    "mul",
    "mul_s_d",
    "mul_s_s",
    "mul_s_v",
    "multiply",
    "neg",
    "neq",
    "remove0",
    "row_scale",
    "sampling_dot",
    "shape",
    "shared",
    "sp_ones_like",
    "sp_sum",
    "sp_zeros_like",
    "sparse_formats",
    "square_diagonal",
    "structured_add_s_v",
    "structured_dot",
    "sub",
    "subtract",
    "transpose",
    "true_dot",
    "usmm",
    "vstack",
    *FUNCTIONS,
]

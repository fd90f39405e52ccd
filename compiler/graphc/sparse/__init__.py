# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices: SciPy's in and out, compiled products with dense ones. Names are PyTensor's."""

from __future__ import annotations

from typing import NoReturn as _NoReturn

from graphc.hooks import publish as _publish
from graphc.sparse.arithmetic import add as add
from graphc.sparse.arithmetic import cast as cast
from graphc.sparse.arithmetic import dot as dot
from graphc.sparse.arithmetic import mul as mul
from graphc.sparse.arithmetic import neg as neg
from graphc.sparse.arithmetic import sampling_dot as sampling_dot
from graphc.sparse.arithmetic import structured_dot as structured_dot
from graphc.sparse.arithmetic import sub as sub
from graphc.sparse.arithmetic import transpose as transpose
from graphc.sparse.arithmetic import true_dot as true_dot
from graphc.sparse.arithmetic import usmm as usmm
from graphc.sparse.basic import CSM as CSM
from graphc.sparse.basic import as_sparse as as_sparse
from graphc.sparse.basic import as_sparse_or_tensor_variable as as_sparse_or_tensor_variable
from graphc.sparse.basic import as_sparse_variable as as_sparse_variable
from graphc.sparse.basic import csm_data as csm_data
from graphc.sparse.basic import csm_indices as csm_indices
from graphc.sparse.basic import csm_indptr as csm_indptr
from graphc.sparse.basic import csm_properties as csm_properties
from graphc.sparse.basic import shape as shape
from graphc.sparse.conversion import csc_from_dense as csc_from_dense
from graphc.sparse.conversion import csr_from_dense as csr_from_dense
from graphc.sparse.conversion import dense_from_sparse as dense_from_sparse
from graphc.sparse.conversion import remove0 as remove0
from graphc.sparse.conversion import square_diagonal as square_diagonal
from graphc.sparse.elementwise import FUNCTIONS as _FUNCTIONS
from graphc.sparse.elementwise import add_s_s_data as add_s_s_data
from graphc.sparse.elementwise import col_scale as col_scale
from graphc.sparse.elementwise import eq as eq
from graphc.sparse.elementwise import ge as ge
from graphc.sparse.elementwise import gt as gt
from graphc.sparse.elementwise import le as le
from graphc.sparse.elementwise import lt as lt
from graphc.sparse.elementwise import neq as neq
from graphc.sparse.elementwise import row_scale as row_scale
from graphc.sparse.elementwise import sp_ones_like as sp_ones_like
from graphc.sparse.elementwise import sp_zeros_like as sp_zeros_like
from graphc.sparse.elementwise import structured_add_s_v as structured_add_s_v
from graphc.sparse.structure import block_diag as block_diag
from graphc.sparse.structure import clean as clean
from graphc.sparse.structure import ensure_sorted_indices as ensure_sorted_indices
from graphc.sparse.structure import get_item as get_item
from graphc.sparse.structure import get_item_2d as get_item_2d
from graphc.sparse.structure import get_item_2lists as get_item_2lists
from graphc.sparse.structure import get_item_list as get_item_list
from graphc.sparse.structure import get_item_scalar as get_item_scalar
from graphc.sparse.structure import hstack as hstack
from graphc.sparse.structure import vstack as vstack
from graphc.sparse.sums import diag as diag
from graphc.sparse.sums import sp_sum as sp_sum
from graphc.sparse.type import FORMATS as _FORMATS
from graphc.sparse.type import SparseConstant as SparseConstant
from graphc.sparse.type import SparseTensorType as SparseTensorType
from graphc.sparse.type import SparseVariable as SparseVariable
from graphc.sparse.variables import CSC as CSC
from graphc.sparse.variables import CSR as CSR
from graphc.sparse.variables import csc_matrix as csc_matrix
from graphc.sparse.variables import csr_matrix as csr_matrix
from graphc.sparse.variables import matrix as matrix
from graphc.sparse.variables import share_matrix as _share_matrix

# PyTensor's further names of the same functions: by what the operands are.
multiply, subtract, csm_shape = mul, sub, shape
shared = _share_matrix
add_s_s = add_s_d = add
mul_s_s = mul_s_d = mul_s_v = mul
sparse_formats = sorted(_FORMATS)
csr_dmatrix, csc_dmatrix = (SparseTensorType(format, "float64") for format in _FORMATS)
csr_fmatrix, csc_fmatrix = (SparseTensorType(format, "float32") for format in _FORMATS)
globals().update(_FUNCTIONS)


def __getattr__(name: str) -> _NoReturn:
    raise AttributeError(f"graphc.sparse has no {name!r}")


SparseVariable.functions = globals()

_publish(globals(), imported=True)

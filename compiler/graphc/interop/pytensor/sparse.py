# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices: graphc's functions have PyTensor's names, and compute on the arrays of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, Constant, Variable

import graphc.sparse as sparse
import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, calls, converts
from graphc.interop.pytensor.types import is_tensor
from graphc.ops.checks import CheckAndRaise
from graphc.ops.sparse import CsrSampledProduct
from graphc.sparse.basic import CSM, size_along, values_at

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.interop.pytensor.convert import Result

_MODULE = "pytensor.sparse"
# Classes whose inputs are the function's arguments, in order.
_SAME: dict[str, Callable[..., Any]] = {
    "AddSS": sparse.add, "AddSD": sparse.add, "AddSSData": sparse.add_s_s_data,
    "StructuredAddSV": sparse.structured_add_s_v, "SparseSparseMultiply": sparse.mul,
    "SparseDenseMultiply": sparse.mul, "SparseDenseVectorMultiply": sparse.mul, "TrueDot": sparse.true_dot,
    "StructuredDot": sparse.structured_dot, "Dot": sparse.dot, "SamplingDot": sparse.sampling_dot,
    "Usmm": sparse.usmm, "DenseFromSparse": sparse.dense_from_sparse, "Transpose": sparse.transpose,
    "ColScaleCSC": sparse.col_scale, "RowScaleCSC": sparse.row_scale,
    "EnsureSortedIndices": sparse.ensure_sorted_indices, "Remove0": sparse.remove0,
    "GetItemList": sparse.get_item_list, "GetItem2Lists": sparse.get_item_2lists,
    "CSMProperties": sparse.csm_properties,
}  # fmt: skip
# Their names from PyTensor 3.1 on.
_SAME |= {
    "AddSparseSparse": sparse.add, "AddSparseDense": sparse.add, "AddSparseSparseData": sparse.add_s_s_data,
    "StructuredAddSparseDenseVector": sparse.structured_add_s_v, "MultiplySparseSparse": sparse.mul,
    "MultiplySparseDense": sparse.mul, "MultiplySparseDenseVector": sparse.mul,
}  # fmt: skip
_COMPARISONS = {
    "Equal": sparse.eq, "NotEqual": sparse.neq, "LessThan": sparse.lt, "GreaterThan": sparse.gt,
    "LessEqual": sparse.le, "GreaterEqual": sparse.ge,
}  # fmt: skip
_KINDS = ("SS", "SD", "SparseSparse", "SparseDense")
_SAME |= {name + kind: function for name, function in _COMPARISONS.items() for kind in _KINDS}


def _typed(variable: Variable, result: Any) -> Any:
    """The result with the dtype that PyTensor says."""
    dtype = variable.type.dtype
    return result if result.type.dtype == dtype else sparse.cast(result, dtype)


@converts(*_SAME, module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Dense results get PyTensor's dtype from the converter."""
    result = _SAME[type(op).__name__](*inputs)
    if isinstance(result, tuple):
        return list(result)
    if not isinstance(result, sparse.SparseVariable):
        return result
    if is_tensor(node.outputs[0].type):  # "Dot" of two sparse matrices
        return sparse.dense_from_sparse(result)
    return _typed(node.outputs[0], result)


def _diag(op: Op, x: sparse.SparseVariable) -> Any:
    square = pt.eq(*(size_along(x, axis) for axis in (0, 1)))
    return CheckAndRaise(ValueError, "diag takes a square sparse matrix")(sparse.diag(x), square)


calls(
    {
        "Diag": _diag,
        "Cast": lambda op, x: sparse.cast(x, op.out_type),
        "SparseFromDense": lambda op, x: (
            sparse.csr_from_dense if op.format == "csr" else sparse.csc_from_dense
        )(x),
        "CSM": lambda op, *arrays: (sparse.CSR if op.format == "csr" else sparse.CSC)(*arrays),
        "SpSum": lambda op, x: sparse.sp_sum(x, axis=op.axis),
        "GetItemScalar": lambda op, x, *at: sparse.get_item_scalar(x, at),
    },
    _MODULE,
)


@converts("CSMGrad", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Elements of one matrix at the places of another. Which of the two compressed forms both have does not
    matter, as long as the number of the other axis is right.
    """
    data, indices, indptr, shape, other_data, other_indices, other_indptr, _ = inputs
    major = indptr.shape[0] - 1
    minor = pt.switch(pt.eq(major, shape[0]), shape[1], shape[0])
    pattern = sparse.CSR(data, indices, indptr, pt.stack([major, minor]))
    other = sparse.CSR(other_data, other_indices, other_indptr, pt.stack([major, minor]))
    return values_at(other, pattern)


@converts("StructuredDotGradCSC", "StructuredDotGradCSR", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """For each value of a matrix the product of the row of the one and the row of the other at its place."""
    indices, indptr, *factors = inputs
    dense, cotangent = (
        sparse.dense_from_sparse(x) if isinstance(x, sparse.SparseVariable) else x for x in factors
    )
    pair = (cotangent, dense) if type(op).__name__.endswith("CSR") else (dense, cotangent)
    dtype = node.outputs[0].type.dtype
    indices, indptr = (pt.cast(x, "int32") for x in (indices, indptr))
    return CsrSampledProduct()(indices, indptr, *(pt.cast(x, dtype) for x in pair))


@converts("GetItem2d", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Start, stop and step of both axes; constants go as numbers, so that sizes stay known."""
    ends = [
        None if value is None else int(variable.data) if isinstance(variable, Constant) else value
        for variable, value in zip(node.inputs[1:], inputs[1:], strict=True)
    ]
    return sparse.get_item_2d(inputs[0], (slice(*ends[:3]), slice(*ends[3:])))


@converts("HStack", "VStack", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    function = sparse.hstack if type(op).__name__ == "HStack" else sparse.vstack
    return _typed(node.outputs[0], function(inputs, format=op.format, dtype=op.dtype))


@converts("SparseBlockDiagonal", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return _typed(node.outputs[0], sparse.block_diag(*inputs, format=op.format))


@converts("ConstructSparseFromList", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """A matrix of some shape whose rows at given positions are given, all others empty."""
    shape, values, rows = inputs
    if values.type.ndim != 2:
        raise NoConversion("the rows are no matrix")
    count, columns = values.shape[0], values.shape[1]
    indices = pt.tile(pt.cast(rows, "int32"), columns)
    indptr = pt.cast(pt.arange(columns + 1) * count, "int32")
    return sparse.CSC(pt.reshape(pt.transpose(values), (-1,)), indices, indptr, shape)


@converts("GetItemListGrad", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Rows put at positions of an empty matrix, of equal positions the last: each row is taken from those
    given and an empty one after them.
    """
    x, index, rows = inputs
    if x.type.format != rows.type.format:
        raise NoConversion("the formats differ")
    data, indices, indptr, _ = sparse.csm_properties(rows)
    count, columns = size_along(rows, 0), size_along(rows, 1)
    if rows.type.format == "csr":
        indptr = pt.join(0, indptr, indptr[-1:])
    padded = CSM(rows.type.format)(data, indices, indptr, pt.stack([count + 1, columns]))
    from_row = pt.full([size_along(x, 0)], count)
    from_row = pt.set_subtensor(from_row[index], pt.arange(count, dtype="int64"))
    return _typed(node.outputs[0], sparse.get_item_list(padded, from_row))


@converts("GetItem2ListsGrad", module=_MODULE)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Elements put at positions of an empty matrix, of equal positions the last."""
    x, *at, values = inputs
    sizes = [size_along(x, axis) for axis in (0, 1)]
    # Reading a vector of all positions wraps negative indices and refuses those outside.
    rows, columns = (pt.arange(size, dtype="int64")[index] for size, index in zip(sizes, at, strict=True))
    order = (rows, columns) if x.type.format == "csr" else (columns, rows)
    major_size, minor_size = sizes if x.type.format == "csr" else sizes[::-1]
    places = order[0] * minor_size + order[1]
    sorting = pt.argsort(places, kind="stable")
    ordered = places[sorting]
    following = pt.set_subtensor(pt.full_like(ordered, -1)[:-1], ordered[1:])
    kept = pt.nonzero(pt.neq(ordered, following))[0]
    major, minor = (axis[sorting][kept] for axis in order)
    indptr = pt.searchsorted(major, pt.arange(major_size + 1, dtype="int64"))
    arrays = (pt.cast(minor, "int32"), pt.cast(indptr, "int32"), pt.stack(sizes))
    return _typed(node.outputs[0], CSM(x.type.format)(values[sorting][kept], *arrays))

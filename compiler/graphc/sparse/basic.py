# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse variables and the way between them and their arrays.

Compiled code works on the arrays of a sparse matrix, which are tensors: `CSMProperties` takes a matrix apart,
`CSM` puts one together. Both only pass pointers on, in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from typing import cast as typed

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, capture, only
from graphc.graph.op import FieldOp, Op, multilinear, same_tangent
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import arange, zeros
from graphc.ops.math import cast
from graphc.ops.shape import known_size, vector_entries
from graphc.ops.shaping import reshape
from graphc.sparse.type import FORMATS, SparseConstant, SparseTensorType, SparseVariable
from graphc.tensor.indexing import inc_subtensor
from graphc.tensor.sorting import searchsorted

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from graphc.graph.tensor import SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import Matrix, MatrixLike, SparseLike, SparseOrTensor
    from graphc.sparse.type import Parts
    from graphc_runtime.thunk import Register

# Cotangents of sparse matrices: of the value's cotangent, the matrices, and a parameter.
Rule = Callable[[Variable, Variables, Any], Maybe]


def is_matrix(x: object) -> TypeIs[Matrix]:
    """True if this is a matrix of SciPy."""
    return hasattr(x, "tocsr") and hasattr(x, "format")


def is_sparse(x: object) -> TypeIs[SparseVariable | Matrix]:
    """True if this is a sparse variable or a matrix of SciPy."""
    return isinstance(x, SparseVariable) or is_matrix(x)


def as_sparse_variable(x: object, name: str | None = None) -> SparseVariable:
    """A sparse variable from itself or from a matrix of SciPy.

    Raises:
        TypeError: it is neither.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.as_sparse_variable(scipy.sparse.csr_matrix([[0.0, 2.0]]))
        >>> x.type.format, graphc.sparse.dense_from_sparse(x).eval().tolist()
        ('csr', [[0.0, 2.0]])
    """
    if isinstance(x, SparseVariable):
        return x if x.type.format in FORMATS else ConvertFormat("csr")(x)
    if not is_matrix(x):
        raise TypeError(
            f"expected a sparse variable or a sparse matrix of SciPy, got {x!r:.80}; "
            "graphc.sparse.csr_from_dense(x) makes one of a matrix"
        )
    x = x if x.format in ("csr", "csc") else x.tocsr()
    result = SparseConstant(SparseTensorType(x.format, x.dtype, x.shape), x.copy(), name)
    result._location = capture()
    return result


as_sparse = as_sparse_variable


def as_sparse_or_tensor_variable(x: MatrixLike, name: str | None = None) -> SparseOrTensor:
    """A sparse variable where the value is sparse, else a tensor variable.

    Examples:
        >>> graphc.sparse.as_sparse_or_tensor_variable([1.0, 2.0]).type
        TensorType(float64, (2,))
    """
    return as_sparse_variable(x, name) if is_sparse(x) else as_tensor_variable(x, name)


def array_of(x: Matrix, which: int) -> np.ndarray:
    """Values, indices, indptr, or shape of a matrix of SciPy, itself where it has the form that they need.

    Raises:
        ValueError: an index does not fit into 32 bits.
    """
    if which == 3:
        return np.array(x.shape, np.int64)
    array: np.ndarray = x.data if which == 0 else x.indices if which == 1 else x.indptr
    if which < 2 and len(array) != (count := int(x.indptr[-1])):
        array = array[:count]
    if which > 0 and array.dtype != np.int32:
        if max(*x.shape, len(x.data)) > np.iinfo(np.int32).max:
            raise ValueError(f"indices of a sparse matrix of shape {x.shape} need more than 32 bits")
        array = array.astype(np.int32)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def put_together(
    format: str, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Sequence[int] | np.ndarray
) -> Matrix:
    """A matrix of SciPy of its arrays."""
    import scipy.sparse

    make = getattr(scipy.sparse, f"{format}_matrix")
    return make((data, indices, indptr), (int(shape[0]), int(shape[1])))


class ConvertFormat(FieldOp):
    """A sparse matrix in another of SciPy's formats.

    Args:
        format: of the result.
    """

    format: str

    def make_node(self, x: SparseVariable) -> Apply:
        return Apply(self, [x], [x.type.clone(format=self.format).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Matrix], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = node.outputs[0].type.filter(inputs[0])

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [ConvertFormat(inputs[0].type.format)(only(cotangents))]

    pushforward = multilinear


def in_format(x: Variable, format: str) -> Variable:
    """A sparse matrix in a format."""
    return x if x.type.format == format else ConvertFormat(format)(x)


class CSMProperties(Op):
    """Values, indices, indptr and shape (int64) of a sparse matrix."""

    __props__ = ()

    def make_node(self, x: SparseLike) -> Apply:
        x = as_sparse_variable(x)
        kinds = [(x.type.dtype, (None,)), ("int32", (None,)), ("int32", (None,)), ("int64", (2,))]
        sizes = dict(zip(("csr", "csc"), x.type.shape, strict=True))
        rows = sizes[x.type.format]
        kinds[2] = ("int32", (None if rows is None else rows + 1,))
        return Apply(self, [x], [TensorType(dtype, shape).make_variable() for dtype, shape in kinds])

    def perform(self, node: Apply, inputs: Sequence[Matrix], output_storage: Sequence[Register]) -> None:
        for which, cell in enumerate(output_storage):
            cell[0] = array_of(inputs[0], which)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [CSM(inputs[0].type.format)(only(cotangents), *outputs[1:])]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [csm_data(only(tangents)), None, None, None]


class CSM(FieldOp):
    """A sparse matrix of values, indices, indptr and shape.

    Args:
        format: ``"csr"`` or ``"csc"``.

    Examples:
        >>> op = graphc.sparse.CSM("csr")
        >>> op([2.0, 3.0], [1, 0], [0, 1, 2], [2, 2]).eval().toarray()
        array([[0., 2.],
               [3., 0.]])
    """

    format: str
    depends_on = (0,)

    def make_node(self, data: TensorLike, indices: TensorLike, indptr: TensorLike, shape: SizeLike) -> Apply:
        data = as_tensor_variable(data)
        parts = [cast(as_tensor_variable(x), "int32") for x in (indices, indptr)]
        sizes = cast(as_tensor_variable(shape), "int64")
        for what, x in zip(("data", "indices", "indptr", "shape"), (data, *parts, sizes), strict=True):
            if x.type.ndim != 1:
                raise TypeError(f"{what} of a sparse matrix must be a vector, got {x} of type {x.type}")
        known = static_shape(sizes)
        output = SparseTensorType(self.format, data.type.dtype, known).make_variable()
        return Apply(self, [data, *parts, sizes], [output])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = put_together(self.format, *inputs)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [values_at(only(cotangents), outputs[0]), None, None, None]

    pushforward = multilinear


class Regular(FieldOp):
    """A value that is known how to compute, with a rule for gradients at places that are not stored.

    Inputs are the value, a sparse matrix or a tensor, and the sparse matrices that it is made of. Of a sparse
    value, a cotangent with values at the same places goes the way of the arrays, which is compiled.

    Args:
        rule: a module's function ``(g, sources, parameter)`` to one cotangent, with values wherever it is not
            zero, for each of the matrices.
        parameter: of the rule.
    """

    rule: Rule
    parameter: object = None
    view_map = {0: [0]}

    def make_node(self, value: Variable, *sources: Variable) -> Apply:
        return Apply(self, [value, *sources], [value.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = inputs[0]

    def inline_on(self, inputs: Sequence[Variable]) -> list[Variable]:
        """The executed variable: the value."""
        return [inputs[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (value, *sources), g = inputs, only(cotangents)
        if is_sparse(g) and same_pattern(g, value):
            return [g, *[None] * len(sources)]
        return [None, *self.rule(g, sources, self.parameter)]

    pushforward = same_tangent

    def __str__(self) -> str:
        return f"Regular{{{self.rule.__name__}}}"


def static_shape(sizes: Variable) -> tuple[int | None, ...]:
    """Known elements of a vector of two sizes."""
    if sizes.owner is not None and isinstance(sizes.owner.op, CSMProperties):
        return tuple(sizes.owner.inputs[0].type.shape)
    entries = vector_entries(sizes)
    return (None, None) if entries is None else tuple(known_size(x) for x in entries)


def csm_properties(x: SparseLike) -> Parts:
    """Values, indices, indptr and shape of a sparse matrix, as tensors.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> data, indices, indptr, shape = graphc.sparse.csm_properties(x)
        >>> data.eval(), shape.eval().tolist()
        (array([2., 3.]), [2, 2])
    """
    x = as_sparse_variable(x)
    if x.owner is not None and isinstance(x.owner.op, Regular):
        return csm_properties(x.owner.inputs[0])
    if x.owner is not None and isinstance(x.owner.op, CSM):
        return typed("Parts", tuple(x.owner.inputs))
    if isinstance(x, SparseConstant):
        value = x.data
        return (
            constant(value.data),
            constant(value.indices.astype(np.int32)),
            constant(value.indptr.astype(np.int32)),
            constant(np.asarray(value.shape, np.int64)),
        )
    # One node for each variable: it runs in Python.
    if x.parts is None:
        x.parts = tuple(CSMProperties()(x, return_list=True))
    return x.parts


def csm_data(x: SparseLike) -> TensorVariable:
    """The values of a sparse matrix, a vector.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.csm_data(x).eval()
        array([2., 3.])
    """
    return csm_properties(x)[0]


def csm_indices(x: SparseLike) -> TensorVariable:
    """The columns of the values of a CSR matrix, the rows of those of a CSC matrix.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.csm_indices(x).eval().tolist()
        [1, 0]
    """
    return csm_properties(x)[1]


def csm_indptr(x: SparseLike) -> TensorVariable:
    """Positions in the values at which the rows of a CSR matrix, or the columns of a CSC matrix, begin.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.csm_indptr(x).eval().tolist()
        [0, 1, 2]
    """
    return csm_properties(x)[2]


def shape(x: SparseLike) -> TensorVariable:
    """The shape of a sparse matrix, a vector of two int64.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.shape(x).eval()
        array([2, 2])
    """
    return csm_properties(x)[3]


def size_along(x: Variable, axis: int) -> TensorVariable:
    """One size as a 0-d int64: a constant where it is static."""
    known = x.type.shape[axis]
    return shape(x)[axis] if known is None else constant(np.asarray(known, np.int64))


def majors(x: Variable) -> TensorVariable:
    """For each value of a CSR matrix its row, of a CSC matrix its column: a vector of int64."""
    data, _, indptr, _ = csm_properties(x)
    at = arange(data.shape[0], dtype="int64")
    return searchsorted(cast(indptr, "int64"), at, side="right") - 1


def positions(x: SparseLike) -> tuple[TensorVariable, TensorVariable]:
    """Row and column of each value, vectors of int64."""
    x = as_sparse_variable(x)
    minor = cast(csm_indices(x), "int64")
    return (majors(x), minor) if x.type.format == "csr" else (minor, majors(x))


def values_at(x: Variable, pattern: Variable) -> TensorVariable:
    """The elements of a sparse matrix, or of a dense one, at the places of another sparse matrix."""
    if is_sparse(x):
        if same_pattern(x, pattern):
            return csm_data(x)
        x = as_dense(x)
    rows, columns = positions(pattern)
    flat = reshape(x, (-1,))
    return flat[rows * size_along(pattern, 1) + columns]


def same_pattern(x: Variable, y: Variable) -> bool:
    """True if two variables have their values at the same places, as far as the graph tells."""
    a, b = csm_properties(x), csm_properties(y)
    return x.type.format == y.type.format and all(m is n for m, n in zip(a[1:3], b[1:3], strict=True))


def as_dense(x: SparseLike) -> TensorVariable:
    """A sparse matrix as a tensor, whose gradients have values where the matrix has them."""
    x = as_sparse_variable(x)
    rows, columns = positions(x)
    sizes = [size_along(x, 0), size_along(x, 1)]
    flat = zeros(sizes[0] * sizes[1], dtype=x.type.dtype)
    filled = inc_subtensor(flat[rows * sizes[1] + columns], csm_data(x))
    return reshape(filled, sizes)


def same_places(g: Variable, sources: Variables, parameter: object) -> list[Variable | None]:
    """Rule of functions that only rearrange the values of a matrix: the cotangent itself."""
    return [in_format(g, x.type.format) for x in sources]

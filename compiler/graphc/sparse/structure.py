# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices of parts of others: indexing and stacking.

Where the values of a result come from is decided by SciPy on matrices that hold the positions of values
instead of values (`Places`); the values are taken by compiled code, which is what is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Apply
from graphc.graph.op import FieldOp, Op
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import arange, ones_like, zeros
from graphc.ops.create import ones as ones_
from graphc.ops.join import concatenate, stack
from graphc.ops.math import cast, eq, lt, switch
from graphc.ops.shaping import flatten
from graphc.sparse.arithmetic import true_dot
from graphc.sparse.basic import (
    CSM,
    Regular,
    as_sparse_variable,
    csm_data,
    csm_properties,
    in_format,
    is_sparse,
    put_together,
    same_places,
    size_along,
)
from graphc.sparse.conversion import csr_from_dense, remove0
from graphc.sparse.type import FORMATS

if TYPE_CHECKING:
    from types import ModuleType

    from graphc.graph.basic import Maybe, Variable, Variables
    from graphc.graph.tensor import DTypeLike, IndexLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import Matrix, MatrixLike, SparseLike, SparseOrTensor
    from graphc.sparse.type import SparseVariable
    from graphc_runtime.thunk import Register


def _part(matrices: list[Matrix], index: list[np.ndarray], given: Iterable[tuple[bool, ...]]) -> Matrix:
    """A slice of rows and one of columns; ``given`` says which of start, stop and step there are."""
    left = iter(index)
    rows, columns = (slice(*[int(next(left)) if has else None for has in axis]) for axis in given)
    return matrices[0][rows, columns]


# What `Places` can do, on SciPy's matrices of positions: (matrices, index arrays, parameter) -> matrix.
_KINDS: dict[str, Callable[[list[Matrix], list[np.ndarray], Any], Matrix]] = {
    "rows": lambda matrices, index, _: matrices[0][index[0]],
    "part": _part,
    "hstack": lambda matrices, index, _: _scipy().hstack(matrices),
    "vstack": lambda matrices, index, _: _scipy().vstack(matrices),
    "block_diag": lambda matrices, index, _: _scipy().block_diag(matrices),
    "same": lambda matrices, index, _: matrices[0],
}


def _scipy() -> ModuleType:
    import scipy.sparse

    return scipy.sparse


def _of_positions(formats: Sequence[str], arrays: Sequence[np.ndarray]) -> list[Matrix]:
    """Matrices whose values count from 1 on; arrays are indices, indptr and shape of each."""
    matrices, count = [], 0
    for k, format in enumerate(formats):
        indices, indptr, sizes = arrays[3 * k : 3 * k + 3]
        numbers = np.arange(count + 1, count + 1 + len(indices), dtype=np.int64)
        matrices.append(put_together(format, numbers, indices, indptr, sizes))
        count += len(indices)
    return matrices


class Places(Op):
    """Positions of values in a matrix made of parts of others, and the values of theirs which these are.

    Inputs are indices, indptr and shape of each matrix, then index arrays. Outputs are positions (int64, in
    the values of all matrices, one after the other), indices, indptr (int32) and shape (int64).

    Args:
        kind: what is made.
        formats: of the matrices.
        format: of the result.
        parameter: of the kind.
    """

    __props__ = ("kind", "formats", "format", "parameter")
    depends_on = ()

    def __init__(self, kind: str, formats: tuple[str, ...], format: str, parameter: Hashable = None) -> None:
        self.kind, self.formats, self.format, self.parameter = kind, formats, format, parameter

    def make_node(self, *inputs: TensorLike) -> Apply:
        kinds = [("int64", (None,)), ("int32", (None,)), ("int32", (None,)), ("int64", (2,))]
        outputs = [TensorType(dtype, sizes).make_variable() for dtype, sizes in kinds]
        return Apply(self, [as_tensor_variable(x) for x in inputs], outputs)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        count = 3 * len(self.formats)
        matrices = _of_positions(self.formats, inputs[:count])
        found = _KINDS[self.kind](matrices, list(inputs[count:]), self.parameter).asformat(self.format)
        found.sort_indices()
        parts = (found.data - 1, found.indices, found.indptr, found.shape)
        for cell, part, output in zip(output_storage, parts, node.outputs, strict=True):
            cell[0] = np.asarray(part, output.type.dtype)


def gathered(
    kind: str,
    matrices: Sequence[SparseVariable],
    known: Sequence[int | None],
    index: Sequence[TensorVariable] = (),
    format: str | None = None,
    parameter: Hashable = None,
) -> SparseVariable:
    """A sparse variable that `Places` describes.

    Args:
        kind: what is made.
        matrices: sparse variables.
        known: static sizes of the result.
        index: arrays of indices.
        format: of the result, that of the first matrix by default.
        parameter: of the kind.
    """
    format = format or matrices[0].type.format
    if format not in FORMATS:
        raise ValueError(f"the format of a sparse matrix must be csr or csc, got {format!r}")
    properties = [csm_properties(m) for m in matrices]
    arrays = [x for parts in properties for x in parts[1:]]
    formats = tuple(m.type.format for m in matrices)
    places, indices, indptr, sizes = Places(kind, formats, format, parameter)(*arrays, *index)
    values = [parts[0] for parts in properties]
    data = (values[0] if len(values) == 1 else concatenate(values))[places]
    entries = [sizes[axis] if n is None else constant(np.int64(n)) for axis, n in enumerate(known)]
    return CSM(format)(data, indices, indptr, stack(entries))


# -- indexing ------------------------------------------------------------------------------------------------


def get_item_list(x: SparseLike, index: TensorLike) -> SparseVariable:
    """Rows of a sparse matrix by a vector of integers, as ``x[index]``.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.get_item_list(x, [1, 0]).eval().toarray()
        array([[3., 0.],
               [0., 2.]])
    """
    x = as_sparse_variable(x)
    index = operand(index, "rows of a sparse matrix are a vector of integers", 1, 1, "iu", IndexError)
    rows = cast(index, "int64")
    made = gathered("rows", [x], (index.type.shape[0], x.type.shape[1]), [rows])
    return Regular(_rows_added)(made, x, rows)


def _selection(format: str, values: Variable, at: Variable, size: Variable) -> SparseVariable:
    """A sparse matrix with one value in each row (csr) or column (csc), at given positions.

    Args:
        format: ``"csr"`` or ``"csc"``.
        values: vector of k values.
        at: vector of k positions, negative ones from the end; or one position for all.
        size: of the other axis.
    """
    count = values.shape[0]
    at = zeros(count, dtype="int64") + switch(lt(at, 0), at + size, at)
    sizes = stack([count, size] if format == "csr" else [size, count])
    return CSM(format)(values, at, arange(count + 1), sizes)


def _rows_added(g: Variable, sources: Variables, parameter: object) -> Maybe:
    x, rows = sources
    ones = ones_(rows.shape, dtype=g.type.dtype)
    return [in_format(true_dot(_selection("csc", ones, rows, size_along(x, 0)), g), x.type.format), None]


def _elements_added(g: Variable, sources: Variables, parameter: object) -> Maybe:
    x, *at = sources
    values = flatten(g)
    rows = _selection("csc", values, at[0], size_along(x, 0))
    columns = _selection("csr", ones_like(values), at[1], size_along(x, 1))
    return [in_format(true_dot(rows, columns), x.type.format), None, None]


def get_item_2d(x: SparseLike, index: IndexLike) -> SparseVariable:
    """A part of a sparse matrix by a slice (or integer, which keeps its axis) for one or both axes.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.get_item_2d(x, (slice(1, 2), slice(None))).eval().toarray()
        array([[3., 0.]])
    """
    x = as_sparse_variable(x)
    entries = list(index) if isinstance(index, tuple | list) else [index]
    if len(entries) > 2:
        raise IndexError(f"a sparse matrix has 2 axes, got {len(entries)} indices")
    bounds: list[TensorVariable] = []
    given: list[tuple[bool, ...]] = []
    known: list[int | None] = []
    for axis, entry in enumerate([*entries, *[slice(None)] * (2 - len(entries))]):
        if not isinstance(entry, slice):
            at = _scalar(entry)
            last = switch(eq(at, -1), np.iinfo(np.int32).max, at + 1)
            entry = slice(at, last)
        ends = (entry.start, entry.stop, entry.step)
        given.append(tuple(end is not None for end in ends))
        bounds += [_scalar(end) for end in ends if end is not None]
        known.append(_length(x.type.shape[axis], ends))
    return gathered("part", [x], known, bounds, parameter=tuple(given))


def _length(size: int | None, ends: Sequence[TensorLike | None]) -> int | None:
    """The static number of elements of a slice with integers as its ends."""
    if size is None or not all(end is None or isinstance(end, int | np.integer) for end in ends):
        return None
    return len(range(*slice(*ends).indices(size)))


def _scalar(x: IndexLike) -> TensorVariable:
    return cast(operand(x, "an index of a sparse matrix must be an integer", 0, 0, "iu", TypeError), "int64")


class Positions(FieldOp):
    """Positions of elements (row and column) in the values of a sparse matrix, from 1 on; 0 for none.

    Args:
        format: of the matrix, of which indices, indptr and shape are inputs.
    """

    format: str
    depends_on = ()

    def make_node(self, *inputs: TensorLike) -> Apply:
        variables = [as_tensor_variable(x) for x in inputs]
        return Apply(self, variables, [TensorType("int64", variables[-1].type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (matrix,) = _of_positions([self.format], inputs[:3])
        rows, columns = inputs[3:]
        if rows.shape != columns.shape:
            raise IndexError(f"elements of a sparse matrix: {rows.shape} rows and {columns.shape} columns")
        found = matrix[rows, columns] if rows.size else np.zeros(rows.shape, np.int64)
        output_storage[0][0] = np.asarray(found, np.int64).reshape(rows.shape)


def get_item_2lists(x: SparseLike, ind1: TensorLike, ind2: TensorLike) -> TensorVariable:
    """Elements of a sparse matrix by two vectors of integers, a dense vector: ``x[ind1, ind2]``.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.get_item_2lists(x, [0, 1], [1, 0]).eval()
        array([2., 3.])
    """
    x = as_sparse_variable(x)
    takes = "an index of a sparse matrix has at most one axis"
    at = [cast(operand(i, takes, 0, 1, error=IndexError), "int64") for i in (ind1, ind2)]
    places = Positions(x.type.format)(*csm_properties(x)[1:], *at)
    nothing = zeros(1, dtype=x.type.dtype)
    return Regular(_elements_added)(concatenate([nothing, csm_data(x)])[places], x, *at)


def get_item_scalar(x: SparseLike, index: tuple[TensorLike, TensorLike]) -> TensorVariable:
    """One element of a sparse matrix, a 0-d tensor: ``x[row, column]``.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 2.0]])
        >>> float(graphc.sparse.get_item_scalar(x, (0, 1)).eval())
        2.0
    """
    row, column = index
    return get_item_2lists(x, _scalar(row), _scalar(column))


def get_item(x: SparseLike, index: IndexLike) -> SparseOrTensor:
    """``x[index]``: an element, elements, rows, or a part of a sparse matrix.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 2.0]])
        >>> float(graphc.sparse.get_item(x, (0, 1)).eval())
        2.0
    """
    entries = index if isinstance(index, tuple) else (index,)
    given = [None if isinstance(entry, slice) else as_tensor_variable(entry) for entry in entries]
    ranks = [None if entry is None else entry.type.ndim for entry in given]
    at = [entry for entry in given if entry is not None]
    if ranks == [0, 0]:
        return get_item_scalar(x, (at[0], at[1]))
    if ranks == [1, 1]:
        return get_item_2lists(x, *at)
    if ranks == [1]:
        return get_item_list(x, at[0])
    return get_item_2d(x, entries)


# -- stacking ------------------------------------------------------------------------------------------------


def _stacked(
    blocks: Iterable[SparseLike], axis: int, format: str | None, dtype: DTypeLike | None, what: str
) -> SparseVariable:
    matrices = [as_sparse_variable(x) for x in blocks]
    if not matrices:
        raise ValueError(f"{what} takes at least one sparse matrix")
    matrices = [x.astype(dtype) for x in matrices] if dtype else matrices
    other = {n for x in matrices if (n := x.type.shape[1 - axis]) is not None}
    if len(other) > 1:
        raise ValueError(f"{what}: sizes {', '.join(map(str, sorted(other)))} of axis {1 - axis} differ")
    along = [n for x in matrices if (n := x.type.shape[axis]) is not None]
    known: list[int | None] = [None, None]
    known[axis] = sum(along) if len(along) == len(matrices) else None
    known[1 - axis] = next(iter(other), None)
    made = gathered(what, matrices, known, format=format or "csc")
    return Regular(_blocks, (axis,))(made, *matrices)


def _blocks(g: Variable, sources: Variables, axes: tuple[int, ...]) -> Maybe:
    """The part of a cotangent that belongs to each of some matrices, which follow each other along axes."""
    parts: list[Variable | None] = []
    start: list[TensorVariable] = [constant(np.int64(0))] * 2
    for x in sources:
        stop = [start[axis] + size_along(x, axis) for axis in (0, 1)]
        index = tuple(slice(start[axis], stop[axis]) if axis in axes else slice(None) for axis in (0, 1))
        parts.append(in_format(get_item_2d(g, index), x.type.format))
        start = stop
    return parts


def hstack(
    blocks: Iterable[SparseLike], format: str | None = None, dtype: DTypeLike | None = None
) -> SparseVariable:
    """Sparse matrices next to each other.

    Args:
        blocks: sparse matrices with equally many rows.
        format: of the result, ``"csc"`` by default.
        dtype: of the result; by default the one that all have in common.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0]])
        >>> graphc.sparse.hstack([x, x]).eval().toarray()
        array([[1., 1.]])
    """
    return _stacked(blocks, 1, format, dtype, "hstack")


def vstack(
    blocks: Iterable[SparseLike], format: str | None = None, dtype: DTypeLike | None = None
) -> SparseVariable:
    """Sparse matrices one below the other; arguments as `hstack`.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0]])
        >>> graphc.sparse.vstack([x, x]).eval().toarray()
        array([[1.],
               [1.]])
    """
    return _stacked(blocks, 0, format, dtype, "vstack")


def block_diag(*matrices: MatrixLike, format: str = "csc") -> SparseVariable:
    """A sparse matrix with matrices (sparse or dense) along its diagonal.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0]])
        >>> graphc.sparse.block_diag(x, x).eval().toarray()
        array([[1., 0.],
               [0., 1.]])
    """
    if not matrices:
        raise ValueError("block_diag takes at least one matrix")
    blocks = [as_sparse_variable(x if is_sparse(x) else csr_from_dense(x)) for x in matrices]
    columns = list(zip(*(x.type.shape for x in blocks), strict=True))
    known = [None if None in sizes else sum(sizes) for sizes in columns]
    return Regular(_blocks, (0, 1))(gathered("block_diag", blocks, known, format=format), *blocks)


def ensure_sorted_indices(x: SparseLike) -> SparseVariable:
    """A sparse matrix with sorted indices in each row (or column, if compressed by columns).

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 2.0]])
        >>> graphc.sparse.ensure_sorted_indices(x).eval().toarray()
        array([[1., 2.]])
    """
    x = as_sparse_variable(x)
    return Regular(same_places)(gathered("same", [x], x.type.shape), x)


def clean(x: SparseLike) -> SparseVariable:
    """A sparse matrix without zeros among its values, and with sorted indices.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.clean(x).eval().nnz
        1
    """
    return ensure_sorted_indices(remove0(x))

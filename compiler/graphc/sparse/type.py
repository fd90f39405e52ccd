# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``SparseTensorType``: SciPy's matrices of compressed rows or columns."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.graph.type import Type
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphc.graph.tensor import DTypeLike, IndexLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import Matrix, MatrixLike, SparseOrTensor

    # Values, indices, indptr and shape.
    Parts = tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]

FORMATS = ("csr", "csc")
# What inputs may have besides: operations convert them to compressed rows.
INPUT_FORMATS = (*FORMATS, "bsr")


def _binary(name: str, reflected: bool = False) -> Callable[[SparseVariable, MatrixLike], SparseOrTensor]:
    def method(self: SparseVariable, other: MatrixLike) -> SparseOrTensor:
        return self.functions[name](other, self) if reflected else self.functions[name](self, other)

    return method


class SparseVariable(Variable):
    """A symbolic sparse matrix. Operators with tensors follow `graphc.sparse`.

    Examples:
        >>> x = graphc.sparse.csr_matrix("x")
        >>> isinstance(x, graphc.sparse.SparseVariable), x.type.format, x.ndim
        (True, 'csr', 2)
    """

    if TYPE_CHECKING:
        type: SparseTensorType

    # Those of `graphc.sparse`, which says so when it loads: they are made of what is defined here.
    functions: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    # NumPy arrays leave operators to this class.
    __array_priority__ = 100
    __array_ufunc__ = None
    # Its arrays as tensors, once somebody asked for them.
    parts: Parts | None = None

    @property
    def dtype(self) -> str:
        return str(self.type.dtype)

    @property
    def format(self) -> str:
        return str(self.type.format)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def shape(self) -> TensorVariable:
        return self.functions["shape"](self)

    @property
    def T(self) -> SparseVariable:
        return self.functions["transpose"](self)

    @property
    def data(self) -> TensorVariable | Matrix:
        return self.functions["csm_data"](self)

    def transpose(self) -> SparseVariable:
        return self.T

    def toarray(self) -> TensorVariable:
        return self.functions["dense_from_sparse"](self)

    def sum(self, axis: int | None = None) -> TensorVariable:
        return self.functions["sp_sum"](self, axis)

    def zeros_like(self) -> SparseVariable:
        return self.functions["sp_zeros_like"](self)

    def ones_like(self) -> SparseVariable:
        return self.functions["sp_ones_like"](self)

    def astype(self, dtype: DTypeLike) -> SparseVariable:
        return self.functions["cast"](self, dtype)

    def copy(self, name: str | None = None) -> SparseVariable:
        copied: SparseVariable = self.functions["structured_add"](self, 0)
        copied.name = name
        return copied

    @property
    def size(self) -> TensorVariable:
        """Number of stored values, as of SciPy's matrices."""
        return self.functions["csm_data"](self).shape[0]

    def __getitem__(self, index: IndexLike) -> SparseOrTensor:
        return self.functions["get_item"](self, index)

    __lt__, __le__, __gt__, __ge__ = (_binary(name) for name in ("lt", "le", "gt", "ge"))
    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __matmul__, __rmatmul__ = _binary("dot"), _binary("dot", True)

    def __neg__(self) -> SparseVariable:
        return self.functions["neg"](self)

    def __mul__(self, other: MatrixLike) -> SparseVariable:
        return self.functions["mul"](self, other)

    def __rmul__(self, other: MatrixLike) -> SparseVariable:
        return self.functions["mul"](other, self)

    dot = __dot__ = __matmul__
    __rdot__ = __rmatmul__


# Methods on the values, by the function of `graphc.sparse`.
_ON_VALUES = {
    **{f"__{name}__": name for name in ("abs", "ceil", "floor", "trunc")},
    **{name: name for name in (
        "abs", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "conj", "deg2rad", "expm1", "floor", "log1p",
        "rad2deg", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )},
}  # fmt: skip
# Methods whose results are dense, so that they are those of the dense matrix.
_ON_DENSE = (
    "all any arccos arccosh argmax argmin argsort cos cosh cumprod cumsum diagonal dimshuffle exp exp2 "
    "flatten log log10 log2 max mean min nonzero nonzero_values prod ptp ravel repeat reshape round squeeze "
    "std trace var __and__ __divmod__ __floordiv__ __mod__ __or__ __pow__ __truediv__ __xor__"
).split()


def _on_values(function: str) -> Callable[[SparseVariable], SparseVariable]:
    def method(self: SparseVariable) -> SparseVariable:
        return self.functions[function](self)

    return method


def _on_dense(name: str) -> Callable[..., Variable | Sequence[Variable]]:
    def method(self: SparseVariable, *args: object, **kwargs: object) -> Variable | Sequence[Variable]:
        warnings.warn(
            f"{self} is converted to dense for {name.strip('_')}, which takes the memory of all elements; "
            "use toarray() to say so, or a function of graphc.sparse that works on the values",
            UserWarning,
            stacklevel=2,
        )
        args = tuple(x.toarray() if isinstance(x, SparseVariable) else x for x in args)
        return getattr(self.toarray(), name)(*args, **kwargs)

    method._is_dense_override = True  # type: ignore[attr-defined]
    return method


for _name, _function in _ON_VALUES.items():
    setattr(SparseVariable, _name, _on_values(_function))
for _name in _ON_DENSE:
    setattr(SparseVariable, _name, _on_dense(_name))


class SparseConstant(SparseVariable, Constant):
    """A sparse matrix that is known.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.as_sparse_variable(scipy.sparse.csr_matrix([[0.0, 2.0]]))
        >>> isinstance(x, graphc.sparse.SparseConstant), x.data.nnz
        (True, 1)
    """

    # `Constant` stores its value as `data`, of which the property of variables would take the place.
    data: Any = None


def _arrays(x: Any) -> list[np.ndarray]:
    return [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]


class SparseTensorType(Type):
    """Sparse matrices in one of SciPy's formats.

    Args:
        format: ``"csr"`` (compressed rows) or ``"csc"`` (compressed columns); of inputs also ``"bsr"``
            (blocks), of which operations make compressed rows.
        dtype: of the values.
        shape: two sizes, None where unknown.
        name: a name for people.

    Raises:
        ValueError: another format, or not two sizes.

    Examples:
        >>> graphc.sparse.SparseTensorType("csr", "float64")
        SparseCSR(float64, shape=(?, ?))
    """

    __props__ = ("format", "dtype", "shape")
    variable_type = SparseVariable
    constant_type = SparseConstant
    is_taken_apart = True
    ndim = 2

    if TYPE_CHECKING:

        def make_variable(self, name: str | None = None) -> SparseVariable: ...
        def __call__(self, name: str | None = None) -> SparseVariable: ...

    def __init__(
        self,
        format: str,
        dtype: DTypeLike,
        shape: Iterable[int | None] | None = None,
        name: str | None = None,
    ) -> None:
        if format not in INPUT_FORMATS:
            raise ValueError(
                f"the format of a sparse matrix must be {', '.join(INPUT_FORMATS)}, got {format!r}"
            )
        self.format = format
        self.dtype = parse_dtype(dtype)
        if self.dtype == "bfloat16":
            raise TypeError("sparse matrices are SciPy's, which have no bfloat16; take float32")
        self.numpy_dtype = np.dtype(self.dtype)
        self.kind = self.numpy_dtype.kind
        self.shape: tuple[int | None, ...] = (None, None) if shape is None else tuple(shape)
        self.name = name
        if len(self.shape) != 2:
            raise ValueError(f"a sparse matrix has two sizes, got {self.shape}")

    def clone(
        self,
        format: str | None = None,
        dtype: DTypeLike | None = None,
        shape: Iterable[int | None] | None = None,
        **kwargs: object,
    ) -> SparseTensorType:
        """The type with another format, dtype or shape."""
        return SparseTensorType(
            format or self.format, dtype or self.dtype, self.shape if shape is None else shape
        )

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Matrix:
        """A SciPy matrix of this format and dtype, with sorted columns and no duplicates.

        Args:
            value: a sparse matrix or array of SciPy; or a dense matrix of numbers.
            strict: accept this format and dtype only.
            allow_downcast: True allows conversions of the values that lose information.

        Raises:
            TypeError: it is none, or would have to be converted in a way that is not allowed.
        """
        if (
            getattr(value, "format", None) == self.format
            and value.dtype == self.numpy_dtype
            and (self.shape == (None, None) or value.shape == self.shape)
            and value.has_canonical_format
        ):
            return value
        if not strict and isinstance(value, np.ndarray | list | tuple):
            value = self._from_dense(value)
        if getattr(value, "format", None) is None or not hasattr(value, "tocsr"):
            raise TypeError(
                f"expected a sparse matrix of SciPy, got {type(value).__name__}; convert it with "
                f"scipy.sparse.{self.format}_matrix"
            )
        if any(want not in (None, have) for want, have in zip(self.shape, value.shape, strict=True)):
            raise TypeError(f"expected a sparse matrix of shape {self.shape}, got {value.shape}")
        if value.format != self.format:
            if strict:
                raise TypeError(f"expected a matrix in {self.format} format, got {value.format}")
            value = value.asformat(self.format)
        if value.dtype.name != self.dtype:
            if strict or not (allow_downcast or np.can_cast(value.dtype, self.dtype)):
                raise TypeError(f"expected a sparse matrix of {self.dtype}, got {value.dtype}")
            value = value.astype(self.dtype)
        if not value.has_canonical_format:
            value = value.copy()
            value.sum_duplicates()
        return value

    def _from_dense(self, value: npt.ArrayLike) -> Matrix:
        """The matrix of an array, which SciPy makes."""
        import scipy.sparse

        demand_numbers(value)
        array = np.asarray(value)
        if array.ndim != 2 or array.dtype.kind not in "biufc":
            raise TypeError(
                f"expected a sparse matrix of SciPy or a matrix of numbers, got an array of shape "
                f"{array.shape} and dtype {array.dtype}"
            )
        return getattr(scipy.sparse, f"{self.format}_matrix")(array)

    def convert_variable(self, var: Variable) -> Variable | None:
        """A tensor as a sparse variable of this format; None for whatever else."""
        if getattr(var.type, "dtype", None) != self.dtype or isinstance(var.type, SparseTensorType):
            return None
        made: Variable = SparseVariable.functions[f"{self.format}_from_dense"](var)
        return made if self == made.type or self.is_super(made.type) else None

    def values_eq(self, a: Matrix, b: Matrix) -> bool:
        """True if two matrices have the same values at the same places."""
        return self._same(a, b, np.array_equal)

    def values_eq_approx(self, a: Matrix, b: Matrix) -> bool:
        """True if two matrices have nearly the same values at the same places."""
        return self._same(a, b, lambda x, y: np.allclose(x, y, equal_nan=True))

    def _same(self, a: Matrix, b: Matrix, values: Callable[[np.ndarray, np.ndarray], bool]) -> bool:
        return (
            a.shape == b.shape
            and a.format == b.format
            and np.array_equal(a.indptr, b.indptr)
            and np.array_equal(a.indices, b.indices)
            and bool(values(a.data, b.data))
        )

    def is_super(self, otype: Type) -> bool:
        """True if the other type is the same but for sizes that are known in addition."""
        return (
            isinstance(otype, SparseTensorType)
            and (otype.format, otype.dtype) == (self.format, self.dtype)
            and all(m in (None, n) for m, n in zip(self.shape, otype.shape, strict=True))
        )

    @staticmethod
    def read_only(value: Any) -> Any:
        """A matrix over views of the arrays that refuse to be written."""
        made = copy.copy(value)
        for name in ("data", "indices", "indptr"):
            setattr(made, name, TensorType.read_only(getattr(value, name)))
        return made

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        """True if the arrays of two matrices may overlap; either may also be an array."""
        return any(np.may_share_memory(x, y) for x in _arrays(a) for y in _arrays(b))

    def __str__(self) -> str:
        sizes = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"Sparse{self.format.upper()}({self.dtype}, shape=({sizes}))"

    __repr__ = __str__

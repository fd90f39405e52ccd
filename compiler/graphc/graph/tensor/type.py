# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``TensorType``: NumPy arrays of one dtype and a partly known shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.config import config
from graphc.errors import ArgumentError
from graphc.graph.basic import Variable
from graphc.graph.tensor.compare import arrays_close, arrays_equal
from graphc.graph.tensor.filter import filter_array
from graphc.graph.tensor.variable import TensorConstant, TensorVariable
from graphc.graph.type import Type

if TYPE_CHECKING:
    from graphc.graph.tensor.like import DTypeLike

DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# By kind, under PyTensor's names.
int_dtypes, uint_dtypes = DTYPES[1:5], DTYPES[5:9]
float_dtypes, complex_dtypes = DTYPES[9:12], DTYPES[12:]
integer_dtypes = int_dtypes + uint_dtypes
discrete_dtypes = ("bool", *integer_dtypes)
continuous_dtypes = float_dtypes + complex_dtypes
all_dtypes = DTYPES

_MOST_BYTES = (1 << 63) - 1


def parse_dtype(dtype: DTypeLike) -> str:
    """The name of a supported dtype; ``"floatX"`` is the configured one.

    Raises:
        TypeError: the dtype is not supported.
    """
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    if isinstance(dtype, str) and dtype == "floatX":
        return config.floatX
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in DTYPES:
        raise TypeError(f"unsupported dtype {dtype!r}; tensors hold one of {', '.join(DTYPES)}")
    return name


def _parse_dim(dim: int | None) -> int | None:
    """A static size from what users write: None, -1 is refused, booleans are broadcast flags."""
    if dim is None:
        return None
    if isinstance(dim, bool | np.bool_):
        return 1 if dim else None
    try:
        size = dim.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(
            f"a static size must be an int or None, got {dim!r} of type {type(dim).__name__}"
        ) from None
    if size < 0:
        raise ValueError(f"a static size must be at least 0, or None if unknown, got {size}")
    return size


# NumPy's.
_MAXIMAL_RANK = 64


class TensorType(Type):
    """Arrays of a dtype with as many dimensions as ``shape`` has entries.

    Args:
        dtype: name or NumPy dtype, or ``"floatX"``.
        shape: one entry for each dimension, its size or None where unknown. None for a 0-d array.
        name: a name for people.
        broadcastable: instead of ``shape``: True for a dimension of size 1, False for an unknown one.

    Raises:
        TypeError: unsupported dtype or a size that is no integer.
        ValueError: a negative size, more dimensions than NumPy's arrays can have, or sizes of more bytes than
            a number of 64 bits counts, of which there is no array (those of 0 left out, as in NumPy).

    Examples:
        >>> pt.TensorType("float64", (None, 3))
        TensorType(float64, (?, 3))
    """

    variable_type = TensorVariable
    constant_type = TensorConstant
    # Whether a loop that hands values of this type on keeps only the last one.
    is_untraced = False

    def __init__(
        self,
        dtype: DTypeLike,
        shape: Iterable[int | bool | None] | None = None,
        name: str | None = None,
        broadcastable: Iterable[bool] | None = None,
    ) -> None:
        if shape is not None and broadcastable is not None:
            raise TypeError("give either shape or broadcastable, not both")
        if isinstance(shape, str):
            raise TypeError(f"the shape of a TensorType must be a tuple of sizes, got {shape!r}")
        dims = shape if shape is not None else broadcastable
        if dims is not None and not isinstance(dims, Iterable):
            raise TypeError(
                f"the shape of a TensorType has an entry for each dimension, got {dims!r}; "
                "write (None,) * ndim for unknown sizes"
            )
        self.dtype: str = parse_dtype(dtype)
        self.shape: tuple[int | None, ...] = tuple(map(_parse_dim, dims)) if dims is not None else ()
        self.name = name
        self.numpy_dtype = np.dtype(self.dtype)
        self.ndim = len(self.shape)
        if self.ndim > _MAXIMAL_RANK:
            raise ValueError(f"arrays have at most {_MAXIMAL_RANK} dimensions, got {self.ndim} sizes")
        if math.prod(filter(None, self.shape)) * self.numpy_dtype.itemsize > _MOST_BYTES:
            raise ValueError(f"there is no array of {self.dtype} of shape {self.shape}: it is too large")
        self._hash = hash((TensorType, self.dtype, self.shape))

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is statically 1."""
        return tuple(dim == 1 for dim in self.shape)

    def clone(
        self, dtype: str | None = None, shape: Iterable[int | None] | None = None, **kwargs: Any
    ) -> TensorType:
        """A type that differs in dtype, shape (or ``broadcastable``, instead of it) or name."""
        if shape is None and kwargs.get("broadcastable") is None:
            shape = self.shape
        kwargs.setdefault("name", self.name)
        return type(self)(self.dtype if dtype is None else dtype, shape=shape, **kwargs)

    def __call__(
        self, name: str | None = None, *, shape: Iterable[int | None] | None = None
    ) -> TensorVariable:
        """A new root variable; ``shape`` may narrow the type's own static shape.

        Raises:
            ValueError: ``shape`` has another length, or another size where the type's is known.
        """
        if shape is None:
            variable = super().__call__(name)
            assert isinstance(variable, TensorVariable)
            return variable
        narrower = self.clone(shape=shape)
        if not self.is_super(narrower):
            raise ValueError(f"the shape of a variable must match that of {self}, got {narrower.shape}")
        return narrower(name)

    # Values ------------------------------------------------------------------------------------------------

    def filter(self, value: object, strict: bool = False, allow_downcast: bool | None = None) -> np.ndarray:
        """``value`` as an array of this type.

        Args:
            value: array-like.
            strict: accept only arrays of exactly this dtype.
            allow_downcast: True casts any dtype; False only to a dtype that holds every value of the old one;
                None also casts a Python float to floatX, and Python numbers and lists whose values the cast
                keeps.

        Raises:
            TypeError: wrong dtype, number of dimensions, or size of a static dimension.
        """
        return filter_array(self, value, strict, allow_downcast)

    def filter_inplace(
        self, value: object, storage: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> np.ndarray:
        array = self.filter(value, strict=strict, allow_downcast=allow_downcast)
        fits = (
            isinstance(storage, np.ndarray) and storage.dtype == array.dtype and storage.shape == array.shape
        )
        if not fits or not storage.flags.writeable or storage is array:
            return array
        storage[...] = array
        return storage

    @staticmethod
    def values_eq(a: np.ndarray, b: np.ndarray, force_same_dtype: bool = True) -> bool:
        """Same shape, dtype and elements; NaN equals NaN."""
        return arrays_equal(a, b, force_same_dtype)

    @staticmethod
    def values_eq_approx(
        a: np.ndarray,
        b: np.ndarray,
        allow_remove_inf: bool = False,
        allow_remove_nan: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> bool:
        """Same shape and dtype, and elements equal within a tolerance that depends on the dtype."""
        return arrays_close(a, b, allow_remove_inf, allow_remove_nan, rtol, atol)

    @staticmethod
    def may_share_memory(a: object, b: object) -> bool:
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)

    @staticmethod
    def read_only(value: np.ndarray) -> np.ndarray:
        """A view of an array that refuses to be written."""
        view = value.view()
        view.setflags(write=False)
        return view

    def get_shape_info(self, obj: Any) -> tuple[int, ...]:
        return np.shape(obj)

    def get_size(self, shape_info: tuple[int, ...]) -> int:
        """Bytes of an array of the given shape."""
        return int(np.prod(shape_info, dtype=np.int64)) * self.numpy_dtype.itemsize

    # Relations ---------------------------------------------------------------------------------------------

    def in_same_class(self, otype: Type) -> bool:
        """Same dtype, number of dimensions and broadcastable dimensions."""
        return (
            isinstance(otype, TensorType)
            and otype.dtype == self.dtype
            and otype.broadcastable == self.broadcastable
        )

    def is_super(self, otype: Type) -> bool:
        """Same dtype and number of dimensions, and every size known here is the same there."""
        return (
            isinstance(otype, TensorType)
            and otype.dtype == self.dtype
            and otype.ndim == self.ndim
            and all(
                mine is None or mine == theirs for mine, theirs in zip(self.shape, otype.shape, strict=True)
            )
        )

    def filter_variable(self, other: object, allow_convert: bool = True) -> Variable:
        """A variable of this type or a narrower one that stands for ``other``.

        When ``other`` knows less about its shape, the result is a `specify_shape` of it that carries what
        either type knows. Dtypes are never converted.

        Raises:
            TypeError: different dtype or number of dimensions, or contradicting static sizes.
        """
        if not isinstance(other, Variable):
            array = self.filter(other)
            return TensorVariable._functions["as_tensor_variable"](array)
        return super().filter_variable(other, allow_convert)

    def convert_variable(self, var: Variable) -> Variable | None:
        otype = var.type
        if self.is_super(otype):
            return var
        if not isinstance(otype, TensorType) or otype.dtype != self.dtype or otype.ndim != self.ndim:
            return None
        merged = []
        for mine, theirs in zip(self.shape, otype.shape, strict=True):
            if mine is not None and theirs is not None and mine != theirs:
                return None
            merged.append(theirs if mine is None else mine)
        return TensorVariable._functions["specify_shape"](var, tuple(merged))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._hash == other._hash
            and self.dtype == other.dtype
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> tuple[object, ...]:
        return (self.dtype, self.shape, self.name)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        # Hashes of strings differ between processes, so everything derived is made anew.
        self.__init__(*state)  # type: ignore[misc]

    def __str__(self) -> str:
        sizes = ["?" if dim is None else str(dim) for dim in self.shape]
        shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
        return f"{self.name or 'TensorType'}({self.dtype}, {shape})"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show."""
        sizes = " × ".join("?" if size is None else str(size) for size in self.shape) or "a number"
        return f"<code>{self.dtype}</code>, {self.ndim} axes: {sizes}"


def exact_type(type_: Type) -> tuple[np.dtype | None, int]:
    """The dtype object and the rank that say all about arrays of a type; (None, -1) if they do not."""
    if type(type_) is TensorType and all(size is None for size in type_.shape):
        return type_.numpy_dtype, type_.ndim
    return None, -1

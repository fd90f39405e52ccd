# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``TensorType``: NumPy arrays of one dtype and a partly known shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphc.config import config
from graphc.errors import ArgumentError, IntegerRangeError
from graphc.graph.basic import Variable
from graphc.graph.tensor.variable import TensorConstant, TensorVariable
from graphc.graph.type import Type
from graphc_runtime.marshal import demand_numbers
from graphc_runtime.symbols import DESCRIPTORS, DTYPES, kind_letter

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike


# By keyword, which stubs ask for, a call takes three times as long.
_set_writable = cast("Callable[[np.ndarray, bool], None]", np.ndarray.setflags)
# Room for a few hundred roundings of the narrower type, which is what reordered reductions need.
_TOLERANCES = {
    np.dtype("float16"): (5e-3, 1e-3),
    np.dtype("float32"): (2e-5, 1e-6),
    np.dtype("complex64"): (2e-5, 1e-6),
}
_BFLOAT16 = (4e-2, 1e-2)


def tolerances(*dtypes: np.dtype) -> tuple[float, float]:
    """Relative and absolute tolerance for values of these dtypes, those of the least precise one."""
    given = [np.dtype(dtype) for dtype in dtypes]
    found = [
        _BFLOAT16 if dtype.name == "bfloat16" else _TOLERANCES.get(dtype, (1e-9, 1e-11)) for dtype in given
    ]
    return max(r for r, _ in found), max(a for _, a in found)


def arrays_equal(a: np.ndarray, b: np.ndarray, force_same_dtype: bool = True) -> bool:
    """True if shape, elements and (with ``force_same_dtype``) dtype agree; NaN equals NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or (force_same_dtype and a.dtype != b.dtype):
        return False
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def arrays_close(
    a: np.ndarray,
    b: np.ndarray,
    allow_remove_inf: bool = False,
    allow_remove_nan: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """True if shape and dtype agree and elements are within ``atol + rtol * |b|``; equal infinities and NaNs
    agree.

    Args:
        a, b: arrays.
        allow_remove_inf: ignore elements where exactly one of the arrays is infinite.
        allow_remove_nan: ignore elements where exactly one of the arrays is NaN.
        rtol, atol: tolerances; by default those of `tolerances`.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if kind_letter(a.dtype) not in "fc":
        return arrays_equal(a, b)
    default_rtol, default_atol = tolerances(a.dtype)
    close = np.isclose(
        a, b, default_rtol if rtol is None else rtol, default_atol if atol is None else atol, equal_nan=True
    )
    if allow_remove_inf:
        close = close | (np.isinf(a) ^ np.isinf(b))
    if allow_remove_nan:
        close = close | (np.isnan(a) ^ np.isnan(b))
    return bool(np.all(close))


def filter_array(type_: TensorType, value: object, strict: bool, allow_downcast: bool | None) -> np.ndarray:
    """Convert ``value`` to an aligned array of native byte order, or raise TypeError (NotImplementedError for
    masked arrays). An array that is one already is returned as it is, also of a class derived from
    ``ndarray``, as a map of a file.
    """
    if isinstance(value, Variable):
        raise TypeError(
            f"expected an array for {type_}, got the symbolic variable {value}; use givens= or eval() instead"
        )
    demand_numbers(value)
    if strict:
        array = _exact(type_, value)
    elif allow_downcast:
        array = _cast(type_, value, _as_array(type_, value, None))
    elif isinstance(value, np.ndarray):
        array = _widened(type_, value)
    else:
        array = _from_python(type_, value, allow_downcast)
    _check_shape(type_, array)
    if not array.flags.aligned:
        array = array.copy()
    return array


def _exact(type_: TensorType, value: object) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"expected an array of {type_} (strict), got {value!r:.80} of type {type(value).__name__}"
        )
    if value.dtype != type_.numpy_dtype:
        raise TypeError(f"expected dtype {type_.dtype} (strict), got an array of dtype {value.dtype}")
    return value


def _as_array(type_: TensorType, value: object, dtype: np.dtype | None) -> np.ndarray:
    try:
        return np.asarray(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"expected a value for {type_}, got {value!r:.80} of type {type(value).__name__}: {error}"
        ) from None


def _cast(type_: TensorType, value: object, array: np.ndarray) -> np.ndarray:
    """Cast without looking at the values, as ``astype`` does; ``array`` is what NumPy makes of ``value``."""
    if kind_letter(array.dtype) not in "biufc":
        return _as_array(type_, value, type_.numpy_dtype)
    if array.dtype.kind == "c" and type_.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(type_.numpy_dtype, copy=False)


def _widened(type_: TensorType, array: np.ndarray) -> np.ndarray:
    """Cast an array only to a dtype that holds all its values."""
    wanted = type_.numpy_dtype
    if array.dtype == wanted:
        return array if array.dtype.isnative else array.astype(wanted)
    # int64 to float64 may round, but NumPy, and every user, counts it as a safe cast.
    if kind_letter(array.dtype) not in "biufc" or not np.can_cast(array.dtype, wanted, "safe"):
        raise TypeError(
            f"expected dtype {type_.dtype}, got {array.dtype}, and a cast could lose information; "
            f"use astype({type_.dtype!r}), or allow_downcast=True (allow_input_downcast=True for a function)"
        )
    return array.astype(wanted)


def _from_python(type_: TensorType, value: object, allow_downcast: bool | None) -> np.ndarray:
    """Convert numbers and nested lists, whose dtype nobody chose, when the values survive: NumPy's scalars,
    too, which are what its functions return for Python numbers.
    """
    array = _as_array(type_, value, None)
    wanted = type_.numpy_dtype
    if array.dtype == wanted and array.dtype.isnative:
        return array
    if kind_letter(array.dtype) not in "biufc" and array.size:
        raise TypeError(f"expected a value for {type_}, got {value!r:.80} of type {type(value).__name__}")
    if allow_downcast is None and type(value) is float and type_.dtype == config.floatX:
        return _cast(type_, value, array)
    converted = _cast(type_, value, array)
    if np.can_cast(array.dtype, wanted, "safe"):
        return converted
    # A complex number differs from its real part unless the imaginary part is 0.
    if arrays_equal(converted, array, force_same_dtype=False):
        return converted
    is_range = array.dtype.kind in "iu" and wanted.kind in "iu"
    raise (IntegerRangeError if is_range else TypeError)(
        f"expected a value for {type_}, got {value!r:.80}, which changes when converted to {type_.dtype}; "
        "allow_downcast=True (allow_input_downcast=True for a function) accepts that"
    )


def _check_shape(type_: TensorType, array: np.ndarray) -> None:
    if array.ndim != type_.ndim:
        raise TypeError(
            f"wrong number of dimensions: expected {type_.ndim} for {type_}, "
            f"got {array.ndim} with shape {array.shape}"
        )
    for axis, (expected, given) in enumerate(zip(type_.shape, array.shape, strict=True)):
        if expected is not None and expected != given:
            raise TypeError(
                f"wrong size of dimension {axis}: expected {expected} for {type_}, "
                f"got {given} with shape {array.shape}"
            )


# By kind, under PyTensor's names, in which bfloat16 is not.
int_dtypes, uint_dtypes = DTYPES[1:5], DTYPES[5:9]
float_dtypes, complex_dtypes = DTYPES[9:12], DTYPES[12:14]
integer_dtypes = int_dtypes + uint_dtypes
discrete_dtypes = ("bool", *integer_dtypes)
continuous_dtypes = float_dtypes + complex_dtypes
all_dtypes = DTYPES[:14]

_MOST_BYTES = (1 << 63) - 1


def parse_dtype(dtype: DTypeLike) -> str:
    """The name of a supported dtype; ``"floatX"`` is the configured one.

    Raises:
        TypeError: the dtype is not supported.
    """
    if isinstance(dtype, str) and dtype in DTYPES:
        # Whether there is a bfloat16 shows here.
        return dtype if dtype in DESCRIPTORS else DESCRIPTORS[dtype].name
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
        self.numpy_dtype = DESCRIPTORS[self.dtype]
        # NumPy's letter of the kind, which for bfloat16 is not that of a float.
        self.kind = kind_letter(self.numpy_dtype)
        self.ndim = len(self.shape)
        if self.ndim > _MAXIMAL_RANK:
            raise ValueError(f"arrays have at most {_MAXIMAL_RANK} dimensions, got {self.ndim} sizes")
        if math.prod(filter(None, self.shape)) * self.numpy_dtype.itemsize > _MOST_BYTES:
            raise ValueError(f"there is no array of {self.dtype} of shape {self.shape}: it is too large")
        self._hash = hash((TensorType, self.dtype, self.shape))

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is statically 1."""
        return tuple([dim == 1 for dim in self.shape])

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

    def exact(self) -> tuple[np.dtype | None, int]:
        if type(self) is TensorType and all(size is None for size in self.shape):
            return self.numpy_dtype, self.ndim
        return None, -1

    def filter_output(self, value: object) -> Any:
        demand_numbers(value)
        # Ufuncs return scalars where 0-d arrays are meant.
        return self.filter(np.asarray(value), strict=True)

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
        _set_writable(view, False)
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
        """HTML for notebooks."""
        sizes = " × ".join("?" if size is None else str(size) for size in self.shape) or "a number"
        return f"<code>{self.dtype}</code>, {self.ndim} axes: {sizes}"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dtypes of the array API standard, questions about them, and tuples of several results."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

import graphc.tensor as pt
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.variable import check_device

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "astype", "bool", "broadcast_arrays", "broadcast_to", "can_cast", "complex64", "complex128", "finfo",
    "float32", "float64", "iinfo", "int8", "int16", "int32", "int64", "isdtype", "result_type", "uint8",
    "uint16", "uint32", "uint64",
]  # fmt: skip

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class DType:
    """A dtype: the name of one, which has the methods of strings, and NumPy's attributes of dtypes.

    It is equal to its name and has the hash of that, so that the dtypes of the standard, of tensors and of
    symbolic variables can be looked up by each other: ``{xp.float64: 1}[x.dtype]``. NumPy's dtypes equal
    their names, too, but have other hashes. It is no string, as libraries take a sequence of dtypes to be one
    for each array.

    Args:
        name: NumPy's name.

    Examples:
        >>> {graphc.array_api.float64: "real"}[pt.vector("x").dtype]
        'real'
    """

    __slots__ = ("dtype", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        # NumPy takes objects with this attribute as dtypes.
        self.dtype = np.dtype(name)

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return self.name == other
        return other is not None and builtins.bool(self.dtype == other)  # NumPy's None is float64

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return repr(self.name)

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)

    def __contains__(self, part: str) -> builtins.bool:
        return part in self.name

    def __add__(self, text: str) -> str:
        return self.name + text

    def __radd__(self, text: str) -> str:
        return text + self.name

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (self.name,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dtype if hasattr(np.dtype, name) else self.name, name)


def dtype_of(x: object) -> DType:
    """A dtype of any spelling, or that of a variable or array."""
    given = x if isinstance(x, str | type | np.dtype) else getattr(x, "dtype", x)
    return DType(np.dtype(cast("str", given)).name)


bool = DType("bool")
int8, int16, int32, int64 = (DType(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = DType("float32"), DType("float64")
complex64, complex128 = DType("complex64"), DType("complex128")

_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "integral": (int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
_KINDS["numeric"] = (*_KINDS["integral"], *_KINDS["real floating"], *_KINDS["complex floating"])


def check_version(api_version: str | None) -> None:
    """Refuse versions of the standard that are not followed.

    Raises:
        ValueError: another version.
    """
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"the array API versions are {', '.join(VERSIONS)}, got {api_version!r}")


def astype(
    x: TensorLike, dtype: DTypeLike, /, *, copy: object = True, device: str | None = None
) -> TensorVariable:
    """The elements converted to a dtype; variables do not change, so ``copy`` has no effect."""
    check_device(device)
    return pt.cast(x, np.dtype(dtype).name)


def broadcast_arrays(*arrays: TensorLike) -> list[TensorVariable]:
    """Arrays broadcast against each other."""
    return list(pt.broadcast_arrays(*arrays))


def broadcast_to(x: TensorLike, /, shape: SizeLike) -> TensorVariable:
    """An array broadcast to a shape."""
    return pt.broadcast_to(x, shape)


def can_cast(from_: object, to: DTypeLike, /) -> builtins.bool:
    """True if conversion follows the promotion rules."""
    return np.can_cast(np.dtype(dtype_of(from_)), np.dtype(to), "safe")


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that arrays, dtypes and Python numbers are promoted to."""
    given = (
        np.dtype(dtype_of(x)) if isinstance(x, str | type | np.dtype) or hasattr(x, "dtype") else x
        for x in arrays_and_dtypes
    )
    return dtype_of(np.result_type(*given))


class FloatInfo(NamedTuple):
    """Limits of a floating dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """Limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: object, /) -> FloatInfo:
    """Limits of a floating dtype; for a complex one those of its parts."""
    found = np.finfo(np.dtype(dtype_of(type)))
    return FloatInfo(
        found.bits,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        dtype_of(found.dtype),
    )


def iinfo(type: object, /) -> IntegerInfo:
    """Limits of an integer dtype."""
    found = np.iinfo(np.dtype(dtype_of(type)))
    return IntegerInfo(found.bits, int(found.max), int(found.min), dtype_of(found.dtype))


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """True if a dtype is of a kind: a name, a dtype, or a tuple of these.

    Raises:
        ValueError: a name that the standard does not know.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind not in _KINDS:
        raise ValueError(f"a kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    found = dtype_of(dtype)
    return found in _KINDS[kind] if isinstance(kind, str) else found == dtype_of(kind)


class _Info(NamedTuple):
    """The object that ``__array_namespace_info__`` returns."""

    def capabilities(self) -> dict[str, object]:
        """Optional features of the library: masks and sizes that depend on data are compiled, too, for any
        number of dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays that name none."""
        return "cpu"

    def devices(self) -> list[str]:
        """All devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, object]:
        """Dtypes of arrays that name none."""
        check_device(device)
        real = dtype_of(pt.constant(1.0))
        return {
            "real floating": real,
            "complex floating": result_type(real, complex64),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: str | None = None, kind: object = None) -> dict[str, object]:
        """All dtypes, or those of a kind, by name."""
        check_device(device)
        wanted = ("bool", "numeric") if kind is None else kind
        listed = (*_KINDS["bool"], *_KINDS["numeric"])
        return {each.name: each for each in listed if isdtype(each, wanted)}


def namespace_info() -> _Info:
    """Capabilities, devices and dtypes of the namespace (``__array_namespace_info__``)."""
    return _Info()


def as_array(x: TensorLike) -> TensorVariable:
    """An argument as a variable."""
    return as_tensor_variable(x)


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Variable
    eigenvectors: Variable


class QRResult(NamedTuple):
    """The factors of ``x = Q @ R``."""

    Q: Variable
    R: Variable


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of a determinant."""

    sign: Variable
    logabsdet: Variable


class SVDResult(NamedTuple):
    """The factors of ``x = U @ diag(S) @ Vh``."""

    U: Variable
    S: Variable
    Vh: Variable


class UniqueAll(NamedTuple):
    """Distinct values, where each is first, where each element's value is, and how often each occurs."""

    values: Variable
    indices: Variable
    inverse_indices: Variable
    counts: Variable


class UniqueCounts(NamedTuple):
    """Distinct values and how often each occurs."""

    values: Variable
    counts: Variable


class UniqueInverse(NamedTuple):
    """Distinct values, and where each element's value is among them."""

    values: Variable
    inverse_indices: Variable

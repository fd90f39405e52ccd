# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dtypes of the array API standard, and questions about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import graphc.tensor as pt
from graphc.graph.tensor.convert import as_tensor_variable

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.like import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "astype",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

# They equal the names that variables have as their ``dtype``.
bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = np.dtype("float32"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

_KINDS: dict[str, tuple[np.dtype[Any], ...]] = {
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


def check_device(device: str | None) -> None:
    """Refuse devices other than the one there is.

    Raises:
        ValueError: another device.
    """
    if device not in (None, "cpu"):
        raise ValueError(
            f"graphs are placed on a device when they are compiled; device= must be 'cpu', got {device!r}"
        )


def astype(x: TensorLike, dtype: DTypeLike, /, *, copy: object = True, device: Any = None) -> Any:
    """The elements converted to a dtype; variables do not change, so ``copy`` has no effect."""
    check_device(device)
    return pt.cast(x, np.dtype(dtype).name)


def broadcast_arrays(*arrays: TensorLike) -> list[TensorVariable]:
    """Arrays broadcast against each other."""
    return list(pt.broadcast_arrays(*arrays))


def broadcast_to(x: TensorLike, /, shape: SizeLike) -> TensorVariable:
    """An array broadcast to a shape."""
    return pt.broadcast_to(x, shape)


def _dtype(x: Variable) -> Any:
    """The dtype of a variable or an array; dtypes and Python numbers stay."""
    return x if isinstance(x, np.dtype | type) or not hasattr(x, "dtype") else np.dtype(x.dtype)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether conversion follows the promotion rules."""
    return np.can_cast(np.dtype(_dtype(from_)), np.dtype(to), "safe")


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers are promoted to."""
    return np.result_type(*map(_dtype, arrays_and_dtypes))


class FloatInfo(NamedTuple):
    """Limits of a floating dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatInfo:
    """Limits of a floating dtype; for a complex one those of its parts."""
    found = np.finfo(np.dtype(_dtype(type)))
    return FloatInfo(
        found.bits,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        found.dtype,
    )


def iinfo(type: Any, /) -> Any:
    """Limits of an integer dtype."""
    return np.iinfo(np.dtype(_dtype(type)))


def isdtype(dtype: DTypeLike, kind: Any) -> Any:
    """Whether a dtype is of a kind: a name, a dtype, or a tuple of these.

    Raises:
        ValueError: a name that the standard does not know.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind not in _KINDS:
        raise ValueError(f"a kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    return np.dtype(dtype) in _KINDS[kind] if isinstance(kind, str) else np.dtype(dtype) == np.dtype(kind)


class _Info(NamedTuple):
    """What ``__array_namespace_info__`` returns."""

    def capabilities(self) -> dict[str, object]:
        """What depends on the library: masks and sizes that depend on data are compiled, too, for any number
        of dimensions.
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
        real = np.dtype(pt.constant(1.0).dtype)
        return {
            "real floating": real,
            "complex floating": np.result_type(real, np.complex64),
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
    """What the namespace offers (``__array_namespace_info__``)."""
    return _Info()


def as_array(x: TensorLike) -> TensorVariable:
    """An argument as a variable."""
    return as_tensor_variable(x)

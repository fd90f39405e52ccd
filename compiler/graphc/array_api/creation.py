# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the array API standard that create arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.array_api.types import as_array, check_device
from graphc.config import config

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _name(dtype: Any) -> str | None:
    return None if dtype is None else np.dtype(dtype).name


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Equally spaced numbers from ``start`` (0 if it is the only argument) up to ``stop``."""
    check_device(device)
    return pt.arange(start, stop, step, dtype=_name(dtype))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """A variable, or a constant of array-likes."""
    check_device(device)
    x = as_array(obj)
    return x if dtype is None else pt.cast(x, _name(dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """A constant with the elements of another library's array."""
    check_device(device)
    return pt.constant(np.from_dlpack(x))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array whose elements do not matter."""
    check_device(device)
    return pt.empty(shape, _name(dtype))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros."""
    check_device(device)
    return pt.zeros(shape, _name(dtype))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones."""
    check_device(device)
    return pt.ones(shape, _name(dtype))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array filled with a value."""
    check_device(device)
    return pt.full(shape, fill_value, _name(dtype))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the same shape whose elements do not matter."""
    check_device(device)
    return pt.empty_like(x, _name(dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of the same shape."""
    check_device(device)
    return pt.zeros_like(x, _name(dtype))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones of the same shape."""
    check_device(device)
    return pt.ones_like(x, _name(dtype))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of the same shape filled with a value."""
    check_device(device)
    return pt.full_like(x, fill_value, _name(dtype))


def eye(n_rows: Any, n_cols: Any = None, /, *, k: Any = 0, dtype: Any = None, device: Any = None) -> Any:
    """A matrix with ones on a diagonal."""
    check_device(device)
    return pt.eye(n_rows, n_cols, k, _name(dtype))


def linspace(
    start: Any, stop: Any, /, num: Any, *, dtype: Any = None, device: Any = None, endpoint: Any = True
) -> Any:
    """Equally spaced numbers, both ends included."""
    check_device(device)
    return pt.linspace(start, stop, num, endpoint=endpoint, dtype=_name(dtype) or config.floatX)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """Coordinates of the points of a grid."""
    return list(pt.meshgrid(*arrays, indexing=indexing))


def tril(x: TensorLike, /, *, k: TensorLike = 0) -> Any:
    """Matrices with zeros above a diagonal."""
    return pt.tril(x, k)


def triu(x: TensorLike, /, *, k: TensorLike = 0) -> Any:
    """Matrices with zeros below a diagonal."""
    return pt.triu(x, k)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the array API standard that create arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import graphc.tensor as pt
from graphc.array_api.types import as_array
from graphc.config import config
from graphc.graph.tensor.variable import check_device
from graphc.hooks import publish

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _name(dtype: DTypeLike | None) -> str | None:
    return None if dtype is None else np.dtype(dtype).name


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> TensorVariable:
    """Equally spaced numbers from ``start`` (0 if it is the only argument) up to ``stop``."""
    check_device(device)
    return pt.arange(start, stop, step, dtype=_name(dtype))


def asarray(
    obj: TensorLike, /, *, dtype: DTypeLike | None = None, device: str | None = None, copy: object = None
) -> TensorVariable:
    """A variable, or a constant of array-likes."""
    check_device(device)
    x = as_array(obj)
    name = _name(dtype)
    return x if name is None else pt.cast(x, name)


def from_dlpack(x: np.ndarray, /, *, device: str | None = None, copy: bool | None = None) -> TensorVariable:
    """A constant with the elements of another library's array."""
    check_device(device)
    return pt.constant(np.from_dlpack(x))


def empty(shape: SizeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> TensorVariable:
    """An array whose elements do not matter."""
    check_device(device)
    return pt.empty(shape, _name(dtype))


def zeros(shape: SizeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> TensorVariable:
    """Zeros."""
    check_device(device)
    return pt.zeros(shape, _name(dtype))


def ones(shape: SizeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> TensorVariable:
    """Ones."""
    check_device(device)
    return pt.ones(shape, _name(dtype))


def full(
    shape: SizeLike, fill_value: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """An array filled with a value."""
    check_device(device)
    return pt.full(shape, fill_value, _name(dtype))


def empty_like(
    x: TensorLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """An array of the same shape whose elements do not matter."""
    check_device(device)
    return pt.empty_like(x, _name(dtype))


def zeros_like(
    x: TensorLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """Zeros of the same shape."""
    check_device(device)
    return pt.zeros_like(x, _name(dtype))


def ones_like(
    x: TensorLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """Ones of the same shape."""
    check_device(device)
    return pt.ones_like(x, _name(dtype))


def full_like(
    x: Variable, /, fill_value: TensorLike, *, dtype: str | None = None, device: str | None = None
) -> TensorVariable:
    """An array of the same shape filled with a value."""
    check_device(device)
    return pt.full_like(x, fill_value, _name(dtype))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> TensorVariable:
    """A matrix with ones on a diagonal."""
    check_device(device)
    return pt.eye(n_rows, n_cols, k, _name(dtype))


def linspace(
    start: TensorLike,
    stop: TensorLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> TensorVariable:
    """Equally spaced numbers, both ends included."""
    check_device(device)
    return pt.linspace(start, stop, num, endpoint=endpoint, dtype=_name(dtype) or config.floatX)


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[TensorVariable]:
    """Coordinates of the points of a grid."""
    return list(pt.meshgrid(*arrays, indexing=indexing))


def tril(x: TensorLike, /, *, k: TensorLike = 0) -> TensorVariable:
    """Matrices with zeros above a diagonal."""
    return pt.tril(x, k)


def triu(x: TensorLike, /, *, k: TensorLike = 0) -> TensorVariable:
    """Matrices with zeros below a diagonal."""
    return pt.triu(x, k)


publish(globals())

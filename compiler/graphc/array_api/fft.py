# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Fourier transform extension of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import graphc.tensor as pt
from graphc.graph.tensor.type import parse_dtype
from graphc.graph.tensor.variable import check_device
from graphc.hooks import named, publish
from graphc.tensor import fft as transforms

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _along_axis(name: str) -> Callable[..., TensorVariable]:
    def transform(
        x: TensorLike, /, *, n: object = None, axis: int = -1, norm: str = "backward"
    ) -> TensorVariable:
        return getattr(transforms, name)(x, n, axis, norm)

    return named(transform, name, f"``graphc.tensor.fft.{name}`` along one axis.")


def _along_axes(name: str) -> Callable[..., TensorVariable]:
    def transform(
        x: TensorLike, /, *, s: TensorLike | None = None, axes: AxisLike = None, norm: str = "backward"
    ) -> TensorVariable:
        return getattr(transforms, name)(x, s, axes, norm)

    return named(transform, name, f"``graphc.tensor.fft.{name}`` along several axes.")


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_along_axes, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(
    n: TensorLike, /, *, d: TensorLike = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """Frequencies of the elements of `fft`."""
    check_device(device)
    return pt.cast(transforms.fftfreq(n, d), parse_dtype(dtype or "floatX"))


def rfftfreq(
    n: TensorLike, /, *, d: TensorLike = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> TensorVariable:
    """Frequencies of the elements of `rfft`."""
    check_device(device)
    return pt.cast(transforms.rfftfreq(n, d), parse_dtype(dtype or "floatX"))


def fftshift(x: TensorLike, /, *, axes: AxisLike = None) -> TensorVariable:
    """The frequency zero in the middle."""
    return transforms.fftshift(x, axes)


def ifftshift(x: TensorLike, /, *, axes: AxisLike = None) -> TensorVariable:
    """The inverse of `fftshift`."""
    return transforms.ifftshift(x, axes)


publish(globals())

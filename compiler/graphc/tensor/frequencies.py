# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frequencies of Fourier transforms, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axis
from graphc.ops.checks import required
from graphc.ops.create import arange
from graphc.ops.math import lt, switch
from graphc.ops.sizes import as_size, known_size, size_of
from graphc.tensor.rearranging import roll

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _positive(n: TensorLike, what: str) -> TensorVariable:
    return required(as_size(n, what), lambda n: n >= 1, f"{what}: n must be at least 1")


def fftfreq(n: TensorLike, d: TensorLike = 1.0) -> TensorVariable:
    """Frequencies of `fft` in cycles per unit of the sample spacing d: 0, 1, ..., -2, -1 over d * n.

    Examples:
        >>> pt.fft.fftfreq(4, 0.5).eval()
        array([ 0. ,  0.5, -1. , -0.5])
    """
    size = _positive(n, "fftfreq")
    at = arange(size)
    return switch(lt(at, (size + 1) // 2), at, at - size) / (size * as_tensor_variable(d))


def rfftfreq(n: TensorLike, d: TensorLike = 1.0) -> TensorVariable:
    """Frequencies of `rfft` in cycles per unit of the sample spacing d.

    Examples:
        >>> pt.fft.rfftfreq(4, 0.5).eval()
        array([0. , 0.5, 1. ])
    """
    size = _positive(n, "rfftfreq")
    return arange(size // 2 + 1) / (size * as_tensor_variable(d))


def _shifted(x: TensorLike, axes: int | Sequence[int] | None, what: str, sign: int) -> TensorVariable:
    moved = as_tensor_variable(x)
    if axes is None:
        axes = range(moved.type.ndim)
    chosen = [axes] if isinstance(axes, int) else list(axes)
    for axis in (normalize_axis(a, moved.type.ndim, what) for a in chosen):
        size = size_of(moved, axis)
        known = known_size(size)
        half = size // 2 if known is None else known // 2
        moved = roll(moved, half * sign, axis)
    return moved


def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> TensorVariable:
    """The frequency 0 in the middle of the axes, all of them by default.

    Examples:
        >>> pt.fft.fftshift([0, 1, -2, -1]).eval()
        array([-2, -1,  0,  1])
    """
    return _shifted(x, axes, "fftshift", 1)


def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None) -> TensorVariable:
    """Inverse of `fftshift`.

    Examples:
        >>> pt.fft.ifftshift([-2, -1, 0, 1]).eval()
        array([ 0,  1, -2, -1])
    """
    return _shifted(x, axes, "ifftshift", -1)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms in the form that PyTensor gives them: a first axis of batches, which is not
transformed, and a last axis of real and imaginary parts. ``graphc.tensor.fft`` has them in NumPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import operand
from graphc.ops.join import stack
from graphc.ops.math import complex as complex_
from graphc.ops.math import imag, real
from graphc.tensor import fft as numpys
from graphc.tensor.sorting import along_axis

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["fft", "irfft", "rfft"]

_NORMS = (None, "ortho", "no_norm")


def fft(a: TensorLike, n: TensorLike | None = None, axis: AxisLike = None) -> TensorVariable:
    """`graphc.tensor.fft.fft`, by default along the last axis; the axis may be symbolic.

    Examples:
        >>> pt.fourier.fft(np.array([1.0, 0.0])).eval()
        array([1.+0.j, 1.+0.j])
    """
    return along_axis(lambda x: numpys.fft(x, n), a, -1 if axis is None else axis, "fft")


def _operand(inp: TensorLike, what: str, least: int) -> TensorVariable:
    takes = f"{what} takes at least {least} dimensions, of which the first is of batches"
    return operand(inp, takes, least, error=TypeError)


def _check_norm(norm: str | None, what: str) -> None:
    if norm not in _NORMS:
        raise ValueError(f'{what}: norm must be None, "ortho" or "no_norm", got {norm!r}')


def rfft(inp: TensorLike, norm: str | None = None) -> TensorVariable:
    """Transform of real numbers along all axes but the first.

    Args:
        inp: shape (m, ..., n).
        norm: ``"ortho"`` divides by the root of the number of elements of a batch, None and ``"no_norm"`` by
            nothing.

    Returns:
        Shape (m, ..., n // 2 + 1, 2), of the input's dtype: real and imaginary parts.

    Raises:
        TypeError: fewer than two dimensions.
        ValueError: an unknown norm.

    Examples:
        >>> pt.fourier.rfft(np.array([[1.0, 0.0]])).eval()
        array([[[1., 0.],
                [1., 0.]]])
    """
    _check_norm(norm, "rfft")
    x = _operand(inp, "rfft", 2)
    found = numpys.rfftn(x, axes=range(1, x.type.ndim), norm="ortho" if norm == "ortho" else "backward")
    return stack([real(found), imag(found)], axis=-1)


def irfft(inp: TensorLike, norm: str | None = None, is_odd: bool = False) -> TensorVariable:
    """Inverse of `rfft`.

    Args:
        inp: shape (m, ..., k, 2), real and imaginary parts.
        norm: None divides by the number n of elements of a batch, ``"ortho"`` by its root, ``"no_norm"`` by
            nothing.
        is_odd: whether the last axis of the result has 2 * k - 1 elements, not 2 * k - 2.

    Returns:
        Real numbers of shape (m, ..., n).

    Raises:
        TypeError: fewer than three dimensions.
        ValueError: an unknown norm, or an ``is_odd`` that is no bool.

    Examples:
        >>> pt.fourier.irfft(np.array([[[1.0, 0.0], [1.0, 0.0]]])).eval()
        array([[1., 0.]])
    """
    _check_norm(norm, "irfft")
    if is_odd not in (True, False):
        raise ValueError(f"irfft: is_odd must be True or False, got {is_odd!r}")
    x = _operand(inp, "irfft", 3)
    axes = range(1, x.type.ndim - 1)
    sizes = [x.shape[axis] for axis in axes]
    sizes[-1] = 2 * sizes[-1] - (1 if is_odd else 2)
    numpys_norm = {None: "backward", "ortho": "ortho", "no_norm": "forward"}[norm]
    return numpys.irfftn(complex_(x[..., 0], x[..., 1]), sizes, axes, numpys_norm)

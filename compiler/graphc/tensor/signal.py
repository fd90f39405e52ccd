# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of signals: ``graphc.tensor.signal``, by the names of PyTensor and the modes of SciPy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import operand
from graphc.ops.elementwise import cast_to
from graphc.ops.math import maximum
from graphc.ops.math import round as round_
from graphc.ops.shape import product_of, sizes_of
from graphc.ops.shaping import dimshuffle, expand_dims, reshape, squeeze
from graphc.ops.table.arithmetic import promote
from graphc.tensor.fft import fft2, ifft2, irfft2, rfft2
from graphc.tensor.nn.convolution import correlated
from graphc.tensor.nn.windows import Window, folded, known
from graphc.tensor.padding import pad
from graphc.tensor.rearranging import flip
from graphc.tensor.vectorizing import vectorize

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["convolve1d", "convolve2d"]

_MODES = ("full", "valid", "same")
_METHODS = ("auto", "direct", "fft")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _one_of(what: str, name: str, given: str, known: Collection[str]) -> None:
    if given not in known:
        raise ValueError(f"{what}: {name} must be one of {', '.join(known)}, got {given!r}")


def _operands(
    what: str, in1: TensorLike, in2: TensorLike, ndim: int
) -> tuple[TensorVariable, TensorVariable, str]:
    takes = f"{what} takes a signal and a filter of at least {ndim} dimensions"
    x, f = (operand(v, takes, ndim) for v in (in1, in2))
    return x, f, promote(x.type.numpy_dtype, f.type.numpy_dtype).name


def _window(size: TensorVariable, taps: TensorVariable, mode: str) -> Window:
    """The places of a filter along an axis that a mode asks for."""
    if mode == "full":
        low = high = taps - 1
    elif mode == "same":
        low, high = taps // 2, (taps - 1) // 2
    else:
        # Where the filter is the longer one, the signal moves within it.
        low = high = folded(maximum(taps - size, 0))
    return Window(size, low, high, taps, 1)


def _padded(x: TensorVariable, windows: list[Window], boundary: str, fillvalue: TensorLike) -> TensorVariable:
    """The signal with the elements that a boundary rule puts around it; the windows take no others then."""
    widths: list[tuple[int | TensorVariable, int | TensorVariable]] = [(0, 0)] * (x.type.ndim - len(windows))
    widths += [(w.low, w.high) for w in windows]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    for w in windows:
        w.size, w.low, w.high = w.size + w.low + w.high, 0, 0
    return pad(x, widths, mode=_BOUNDARIES[boundary], **options)


def _direct(x: TensorVariable, f: TensorVariable, windows: list[Window], dtype: str) -> TensorVariable:
    *lead, h, w = sizes_of(x)
    images = reshape(x, [product_of(lead), 1, h, w])
    filters = dimshuffle(flip(f, (0, 1)), ("x", "x", 0, 1))
    out = correlated(images, filters, windows)
    out = reshape(out, [*lead, *sizes_of(out)[2:]])
    # Integers are computed as floats.
    return cast_to(out if dtype.startswith(("float", "complex")) else round_(out), dtype)


def _by_transforms(x: TensorVariable, f: TensorVariable, windows: list[Window], dtype: str) -> TensorVariable:
    """By the convolution theorem, from transforms as long as the full result."""
    sizes = [w.size + w.reach - 1 for w in windows]
    if dtype.startswith("complex"):
        full = ifft2(fft2(x, s=sizes) * fft2(f, s=sizes))
    else:
        full = irfft2(rfft2(x, s=sizes) * rfft2(f, s=sizes), s=sizes)
    index: list[slice] = [slice(None)] * (x.type.ndim - 2)
    for w in windows:
        begin = folded(w.reach - 1 - w.low)
        index.append(slice(begin, folded(begin + w.count)))
    out = full[tuple(index)]
    return cast_to(out if dtype.startswith(("float", "complex")) else round_(out), dtype)


def _prefers_transforms(windows: list[Window], dtype: str) -> bool:
    """True if transforms are the faster way, which takes sizes that are known.

    A result costs as many products as the filter has elements, or some flops for each level of a transform;
    measured on images of 64 to 512 pixels squared, the two are equal at 6 products a level.
    """
    sizes = [(known(w.size), known(w.reach)) for w in windows]
    if not dtype.startswith(("float32", "float64", "complex")) or any(None in pair for pair in sizes):
        return False
    (h, p), (w, q) = sizes
    area: int = (h + p - 1) * (w + q - 1)  # type: ignore[operator]
    return p * q > 6 * area.bit_length()  # type: ignore[operator]


def convolve2d(
    in1: TensorLike,
    in2: TensorLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: TensorLike = 0,
    method: str = "auto",
) -> TensorVariable:
    """Convolution of images (..., h, w) with filters (..., p, q), as ``scipy.signal.convolve2d``.

    Args:
        in1: images.
        in2: filters; the axes before the last two broadcast with those of the images.
        mode: ``"full"``: every place where they overlap; ``"same"``: the middle of that, of the images'
            size; ``"valid"``: where one lies within the other.
        boundary: what lies around the images: ``"fill"``: ``fillvalue``; ``"wrap"``: the image again;
            ``"symm"``: its mirror image.
        fillvalue: a number, for ``"fill"``.
        method: ``"direct"``: by sums of products; ``"fft"``: by Fourier transforms, whose errors are of the
            size of rounding errors of the largest results; ``"auto"``: the second for floats and large
            filters of known sizes, else the first.

    Returns:
        A tensor (..., r, s) of the dtype that the operands have in common; integers are exact up to 2**53.

    Raises:
        ValueError: an unknown mode, boundary or method, or less than two dimensions.

    Source: PyTensor's ``convolve2d``.

    Examples:
        >>> pt.signal.convolve2d(np.ones((2, 2)), np.ones((2, 2))).eval()
        array([[1., 2., 1.],
               [2., 4., 2.],
               [1., 2., 1.]])
    """
    _one_of("convolve2d", "mode", mode, _MODES)
    _one_of("convolve2d", "boundary", boundary, _BOUNDARIES)
    _one_of("convolve2d", "method", method, _METHODS)
    x, f, dtype = _operands("convolve2d", in1, in2, 2)
    zeros = boundary == "fill" and isinstance(fillvalue, int | float | complex) and fillvalue == 0

    def core(x: TensorVariable, f: TensorVariable) -> TensorVariable:
        windows = [
            _window(size, taps, mode) for size, taps in zip(sizes_of(x)[-2:], sizes_of(f), strict=True)
        ]
        by_transforms = method == "fft" or (method == "auto" and _prefers_transforms(windows, dtype))
        if mode != "valid" and not zeros:
            x = _padded(x, windows, boundary, fillvalue)
        return (_by_transforms if by_transforms else _direct)(x, f, windows, dtype)

    return _batched(core, x, f, "(h,w),(p,q)->(r,s)", 2)


def _batched(
    core: Callable[[TensorVariable, TensorVariable], TensorVariable],
    x: TensorVariable,
    f: TensorVariable,
    signature: str,
    ndim: int,
) -> TensorVariable:
    """Filters of several signals; one filter for all of them takes no broadcasting."""
    return core(x, f) if f.type.ndim == ndim else vectorize(core, signature)(x, f)


def convolve1d(in1: TensorLike, in2: TensorLike, mode: str = "full") -> TensorVariable:
    """Convolution of signals (..., n) with filters (..., k), as ``numpy.convolve``; but for ``"same"`` the
    result has the signals' size, as in SciPy.

    Args:
        in1: signals.
        in2: filters; the axes before the last broadcast with those of the signals.
        mode: as in `convolve2d`.

    Returns:
        A tensor (..., m) of the dtype that the operands have in common; integers are exact up to 2**53.

    Raises:
        ValueError: an unknown mode, or no dimension.

    Source: PyTensor's ``convolve1d``.

    Examples:
        >>> pt.signal.convolve1d([1.0, 2.0, 3.0], [1.0, 1.0]).eval()
        array([1., 3., 5., 3.])
    """
    _one_of("convolve1d", "mode", mode, _MODES)
    x, f, _ = _operands("convolve1d", in1, in2, 1)
    out = convolve2d(expand_dims(x, -2), expand_dims(f, -2), mode, method="direct")
    return squeeze(out, -2)

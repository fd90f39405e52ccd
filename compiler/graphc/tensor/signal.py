# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of signals: ``graphc.tensor.signal``, by the names of PyTensor and the modes of SciPy."""

from __future__ import annotations

from typing import Any

from graphc.graph.basic import Variable
from graphc.ops._pt import pt
from graphc.ops.elementwise import cast_to
from graphc.ops.rows_arithmetic import promote
from graphc.ops.sizes import known_size, size_of, sizes_of
from graphc.tensor.basic import as_tensor_variable
from graphc.tensor.nn.convolution import conv2d
from graphc.tensor.shaping import product_of

__all__ = ["convolve1d", "convolve2d"]

_MODES = ("full", "valid", "same")


def _operands(what: str, in1: Any, in2: Any, mode: str, ndim: int) -> tuple[Any, Any, str]:
    if mode not in _MODES:
        raise ValueError(f"{what}: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    x, f = as_tensor_variable(in1), as_tensor_variable(in2)
    if x.type.ndim < ndim or f.type.ndim != ndim:
        raise ValueError(
            f"{what} takes a signal of at least {ndim} dimensions and a filter of {ndim}, got {x} of type "
            f"{x.type} and {f} of type {f.type}"
        )
    return x, f, promote(x.type.numpy_dtype, f.type.numpy_dtype).name


def _cut(out: Any, axis: int, n: Any, k: Any, mode: str) -> Any:
    """The part of a full convolution of sizes n and k that a mode wants."""
    if mode == "full":
        return out
    if mode == "same":
        begin, count = (k - 1) // 2, n
    else:
        begin, count = pt.minimum(n, k) - 1, pt.maximum(n, k) - pt.minimum(n, k) + 1
    known = known_size(begin), known_size(count)
    if None not in known:
        begin, count = known  # type: ignore[assignment]
    return out[(*[slice(None)] * axis, slice(begin, begin + count))]


def convolve2d(in1: Any, in2: Any, mode: str = "full") -> Variable:
    """Convolution of images (..., h, w) with a filter (p, q), as ``scipy.signal.convolve2d``; zeros outside.

    Args:
        in1: images.
        in2: filter.
        mode: ``"full"``: every place where they overlap; ``"same"``: the middle of that, of the images'
            size; ``"valid"``: where one lies within the other.

    Returns:
        A tensor of the dtype that the operands have in common; integers are exact up to 2**53.

    Raises:
        ValueError: an unknown mode, or other numbers of dimensions.
    """
    x, f, dtype = _operands("convolve2d", in1, in2, mode, 2)
    *lead, h, w = sizes_of(x)
    images = pt.reshape(x, [product_of(lead), 1, h, w])
    out: Any = conv2d(images, pt.dimshuffle(f, ("x", "x", 0, 1)), padding="full", flip=True)
    for axis, n in ((2, h), (3, w)):
        out = _cut(out, axis, n, size_of(f, axis - 2), mode)
    sizes = sizes_of(out)
    return cast_to(pt.reshape(_rounded(out, dtype), [*lead, *sizes[2:]]), dtype)


def _rounded(out: Any, dtype: str) -> Any:
    """Integers are computed as floats."""
    return out if dtype.startswith(("float", "complex")) else pt.round(out)


def convolve1d(in1: Any, in2: Any, mode: str = "full") -> Variable:
    """Convolution of signals (..., n) with a filter (k), as ``numpy.convolve``; but for ``"same"`` the result
    has the signals' size, as in SciPy. Arguments and errors as `convolve2d`.
    """
    x, f, _ = _operands("convolve1d", in1, in2, mode, 1)
    out = convolve2d(pt.expand_dims(x, -2), pt.dimshuffle(f, ("x", 0)), mode)
    return pt.squeeze(out, x.type.ndim - 1)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, searching, cumulative ops, softmax, windows, convolutions and Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.basic import Apply
from scipy.interpolate import PPoly

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, static_int

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.interop.pytensor.convert import Result


@converts("Argmax")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    (x,) = inputs
    ndim = x.type.ndim
    axes = tuple(range(ndim)) if op.axis is None else tuple(int(axis) % ndim for axis in op.axis)
    if not axes:
        return pt.zeros_like(x, dtype="int64")
    kept = [axis for axis in range(ndim) if axis not in axes]
    last = pt.flatten(pt.dimshuffle(x, *kept, *axes), ndim=len(kept) + 1)
    return pt.argmax(last, axis=-1)


@converts("Softmax")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.special.softmax(inputs[0], axis=op.axis)


@converts("LogSoftmax")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.special.log_softmax(inputs[0], axis=op.axis)


@converts("SoftmaxGrad")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    cotangent, result = inputs
    weighted = cotangent * result
    return weighted - pt.sum(weighted, axis=op.axis, keepdims=True) * result


@converts("CumOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return (pt.cumsum if op.mode == "add" else pt.cumprod)(inputs[0], axis=op.axis)


def _axis(op: Op, node: Apply) -> int:
    """The axis of a sort: an input, which has to be known, or from PyTensor 3.1 on a parameter."""
    axis = op.axis if hasattr(op, "axis") else static_int(node.inputs[1])
    if axis is None:
        raise NoConversion("the axis is computed")
    return int(axis)


@converts("SortOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.sort(inputs[0], axis=_axis(op, node))


@converts("ArgSortOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.argsort(inputs[0], axis=_axis(op, node), kind=op.kind)


@converts("SearchsortedOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.searchsorted(inputs[0], inputs[1], side=op.side, sorter=inputs[2] if len(inputs) > 2 else None)


@converts("Repeat")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.repeat(inputs[0], inputs[1], axis=op.axis)


@converts("Unique")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The inverse has the shape of the input, where PyTensor says a vector."""
    found = pt.unique(inputs[0], op.return_index, op.return_inverse, op.return_counts, axis=op.axis)
    results = found if isinstance(found, (list, tuple)) else [found]
    return [
        pt.flatten(result) if result.type.ndim > output.type.ndim == 1 else result
        for output, result in zip(node.outputs, results, strict=True)
    ]


@converts("UnravelIndex")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return list(pt.unravel_index(inputs[0], inputs[1], order=op.order))


@converts("RavelMultiIndex")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.ravel_multi_index(inputs[:-1], inputs[-1], mode=op.mode, order=op.order)


@converts("Bartlett")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.bartlett(inputs[0])


@converts("Convolve1d")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The third input says whether the result is "full" or "valid"."""
    full = static_int(node.inputs[2])
    if full is None:
        raise NoConversion("the mode is computed")
    return pt.signal.convolve1d(inputs[0], inputs[1], mode="full" if full else "valid")


@converts("Convolve2d")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    if len(inputs) > 2:
        full = static_int(node.inputs[2])
        if full is None:
            raise NoConversion("the mode is computed")
        mode = "full" if full else "valid"
    else:
        mode = op.mode
    options = {name: getattr(op, name) for name in ("boundary", "fillvalue", "method") if hasattr(op, name)}
    return pt.signal.convolve2d(inputs[0], inputs[1], mode=mode, **options)


@converts("Fourier", module="pytensor.tensor")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    axis = static_int(node.inputs[2])
    if axis is None:
        raise NoConversion("the axis is computed")
    return pt.fft.fft(inputs[0], n=inputs[1], axis=axis)


@converts("RFFTOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """All axes but the first; real and imaginary parts become a last axis."""
    x, shape = inputs
    transformed = pt.fft.rfftn(
        x, s=[shape[i] for i in range(x.type.ndim - 1)], axes=list(range(1, x.type.ndim))
    )
    return pt.stack([pt.real(transformed), pt.imag(transformed)], axis=-1)


@converts("IRFFTOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The inverse without the division by the number of elements."""
    x, shape = inputs
    axes = list(range(1, x.type.ndim - 1))
    transformed = pt.fft.irfftn(
        pt.complex(x[..., 0], x[..., 1]), s=[shape[i] for i in range(len(axes))], axes=axes
    )
    return transformed * pt.cast(pt.prod(shape), transformed.type.dtype)


@converts("SplineWrapper", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """A spline of SciPy by its polynomials, one for each interval between knots."""
    (x,) = inputs
    spline = op.spline
    knots, _, degree = spline._eval_args
    pieces = PPoly.from_spline(spline._eval_args)
    low, high = knots[degree], knots[-degree - 1]
    if spline.ext == 2:
        raise NoConversion("it raises outside of its knots")
    inside = pt.clip(x, low, high) if spline.ext == 3 else x
    at = pt.searchsorted(pt.constant(pieces.x), inside, side="right") - 1
    at = pt.clip(at, degree, len(pieces.x) - degree - 2)
    offset = inside - pt.constant(pieces.x)[at]
    value = pt.zeros_like(offset)
    for coefficients in pieces.c:
        value = value * offset + pt.constant(coefficients)[at]
    return pt.switch((x < low) | (x > high), 0.0, value) if spline.ext == 1 else value

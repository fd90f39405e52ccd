# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of single ops: sorting, searching, cumulative ops, softmax, windows, convolutions, transforms;
minima and roots, which SciPy searches while graphc compiles what it evaluates; conditionals, checks, prints
and ops that are graphs of their own.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Apply
from scipy.interpolate import PPoly

import graphc
import graphc.tensor as pt
from graphc import printing, raise_op
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, calls, converts, known_int
from graphc.tensor import optimize

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.tensor.variable import TensorVariable
    from graphc.interop.pytensor.convert import Result


@converts("IfElse")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    condition, *sides = inputs
    results = graphc.ifelse(condition, sides[: op.n_outs], sides[op.n_outs :])
    return list(results) if isinstance(results, (list, tuple)) else [results]


@converts("LazyIfElse")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The form of `ifelse` from PyTensor 3.2 on, with a graph for each side."""
    condition, *values = inputs
    graphs = [side.fgraph for side in (op.true_branch, op.false_branch)]
    yes, no = (c.inner(graph.inputs, graph.outputs, values) for graph in graphs)
    results = graphc.ifelse(condition, yes, no)
    return list(results) if isinstance(results, (list, tuple)) else [results]


@converts("CheckParameterValue", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """As the caller asked for by the names of PyMC's rewrites, see `Converter`."""
    value, *conditions = inputs
    if c.checks == "remove":
        return value
    if c.checks == "raise" or not getattr(op, "can_be_replaced_by_ninf", False):
        return raise_op.CheckAndRaise(op.exc_type, op.msg)(*inputs)
    true: TensorVariable = pt.constant(np.True_)
    met = reduce(pt.bitwise_and, (pt.all(pt.cast(x, "bool")) for x in conditions), true)
    return pt.switch(met, value, pt.constant(np.asarray(-np.inf, dtype=value.type.dtype)))


@converts("OpFromGraph", "SymbolicOp", "TensorSymbolicOp", "SymbolicRandomVariable")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    inner = op.fgraph
    if inner is None:
        raise NoConversion("the op has no graph of its own")
    return c.inner(inner.inputs, inner.outputs, inputs)


@converts("Print")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    if op.global_fn.__name__ != "_print_fn":
        raise NoConversion("it prints with a function of the user's")
    return printing.Print(op.message, op.attrs)(inputs[0])


@converts("MinimizeScalarOp", "MinimizeOp", "RootScalarOp", "RootOp", module="pytensor.tensor.optimize")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """By graphc's op of the same search: the role of the inner graph's value, and attributes of both ops."""
    solver: type[optimize.Solver] = getattr(optimize, type(op).__name__)
    if getattr(op, "bound_kwargs", ()):
        raise NoConversion("bounds that are computed")
    if getattr(op, "hessp", False):
        raise NoConversion("products of the Hessian with vectors")
    converter = Converter(c)
    inner = [converter.new_input(variable) for variable in op.fgraph.inputs]
    (value,) = converter.convert(op.fgraph.outputs[:1])
    names = ("method", "optimizer_kwargs", "jac", "hess", "use_vectorized_jac")
    given = {name: getattr(op, name) for name in names if hasattr(op, name)}
    return list(solver(inner[0], inner[1:], value, **given).make_node(*inputs).outputs)


def _softmax_pullback(op: Op, cotangent: TensorVariable, result: TensorVariable) -> Result:
    weighted = cotangent * result
    return weighted - pt.sum(weighted, axis=op.axis, keepdims=True) * result


def _axis(op: Op, node: Apply) -> int:
    """The axis of a sort: an input, which has to be known, or from PyTensor 3.1 on a parameter."""
    return int(op.axis if hasattr(op, "axis") else known_int(node.inputs[1], "the axis"))


@converts("SortOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.sort(inputs[0], axis=_axis(op, node))


@converts("ArgSortOp")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.argsort(inputs[0], axis=_axis(op, node), kind=op.kind)


@converts("Unique")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The inverse has the shape of the input, where PyTensor says a vector."""
    found = pt.unique(inputs[0], op.return_index, op.return_inverse, op.return_counts, axis=op.axis)
    results = found if isinstance(found, (list, tuple)) else [found]
    return [
        pt.flatten(result) if result.type.ndim > output.type.ndim == 1 else result
        for output, result in zip(node.outputs, results, strict=True)
    ]


def _mode(node: Apply) -> str:
    """The third input says whether the result is "full" or "valid"."""
    return "full" if known_int(node.inputs[2], "the mode") else "valid"


@converts("Convolve1d")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.signal.convolve1d(inputs[0], inputs[1], mode=_mode(node))


@converts("Convolve2d")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    mode = _mode(node) if len(inputs) > 2 else op.mode
    options = {name: getattr(op, name) for name in ("boundary", "fillvalue", "method") if hasattr(op, name)}
    return pt.signal.convolve2d(inputs[0], inputs[1], mode=mode, **options)


@converts("Fourier", module="pytensor.tensor")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.fft.fft(inputs[0], n=inputs[1], axis=known_int(node.inputs[2], "the axis"))


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


calls(
    {
        "CheckAndRaise": lambda op, *inputs: raise_op.CheckAndRaise(op.exc_type, op.msg)(*inputs),
        "Argmax": "argmax axis",
        "Softmax": "special.softmax axis",
        "SoftmaxGrad": _softmax_pullback,
        "LogSoftmax": "special.log_softmax axis",
        "CumOp": lambda op, x: (pt.cumsum if op.mode == "add" else pt.cumprod)(x, axis=op.axis),
        "SearchsortedOp": lambda op, x, v, *sorter: pt.searchsorted(x, v, op.side, *sorter),
        "Repeat": "repeat axis",
        "RavelMultiIndex": lambda op, *x: pt.ravel_multi_index(x[:-1], x[-1], mode=op.mode, order=op.order),
        "UnravelIndex": "unravel_index order",
        "Bartlett": "bartlett",
    }
)

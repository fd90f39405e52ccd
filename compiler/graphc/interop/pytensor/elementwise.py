# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops: PyTensor's scalar ops, and what applies them to tensors and reduces with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import Composite
from pytensor.scalar.loop import ScalarLoop

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, real_cast
from graphc.interop.pytensor.loops import run_elements
from graphc.interop.pytensor.stable import negative, product, quotient, summed, total

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.basic import Variable
    from graphc.interop.pytensor.convert import Result

# Scalar ops of PyTensor and the functions of the same meaning.
FUNCTIONS = {
    "LT": "lt", "GT": "gt", "LE": "le", "GE": "ge", "EQ": "eq", "NEQ": "neq", "IsNan": "isnan", "IsInf": "isinf",
    "OR": "bitwise_or", "XOR": "bitwise_xor", "AND": "bitwise_and", "Invert": "invert", "Maximum": "maximum",
    "Minimum": "minimum", "IntDiv": "int_div", "Mod": "mod", "Pow": "pow",
    "Second": "second", "Identity": "tensor_copy", "Abs": "abs", "Sign": "sign", "Ceil": "ceil", "Floor": "floor",
    "Trunc": "trunc", "RoundHalfToEven": "round", "RoundHalfAwayFromZero": "round_half_away_from_zero",
    "Reciprocal": "reciprocal", "Log": "log", "Log2": "log2", "Log10": "log10", "Log1p": "log1p",
    "Exp": "exp", "Exp2": "exp2", "Expm1": "expm1", "Sqr": "sqr", "Sqrt": "sqrt", "Deg2Rad": "deg2rad",
    "Rad2Deg": "rad2deg", "Cos": "cos", "ArcCos": "arccos", "Sin": "sin", "ArcSin": "arcsin", "Tan": "tan",
    "ArcTan": "arctan", "ArcTan2": "arctan2", "Cosh": "cosh", "ArcCosh": "arccosh", "Sinh": "sinh",
    "ArcSinh": "arcsinh", "Tanh": "tanh", "ArcTanh": "arctanh", "Real": "real", "Imag": "imag", "Angle": "angle",
    "Complex": "complex", "Conj": "conj", "ComplexFromPolar": "complex_from_polar", "Erf": "erf", "Erfc": "erfc",
    "Erfcx": "erfcx", "Erfinv": "erfinv", "Erfcinv": "erfcinv", "Owens_t": "owens_t", "Gamma": "gamma",
    "GammaLn": "gammaln", "Psi": "digamma", "TriGamma": "trigamma", "PolyGamma": "polygamma",
    "GammaInc": "gammainc", "GammaIncC": "gammaincc", "GammaIncInv": "gammaincinv", "GammaIncCInv": "gammainccinv",
    "GammaU": "gammau", "GammaL": "gammal", "Jv": "jv", "J1": "j1", "J0": "j0", "Iv": "iv", "I1": "i1", "I0": "i0",
    "Ive": "ive", "Kve": "kve", "Sigmoid": "sigmoid", "Softplus": "softplus", "Log1mexp": "log1mexp",
    "BetaInc": "betainc", "BetaIncInv": "betaincinv", "Hyp2F1": "hyp2f1", "XlogY0": "xlogy", "XLogY": "xlogy",
    "XLog1PY": "xlog1py", "I0e": "i0e", "I1e": "i1e", "NdtriExp": "ndtri_exp",
}  # fmt: skip
# Ops whose operands keep their dtypes: the result's says nothing about how to compute.
_OWN_DTYPES = frozenset(
    (
        "LT",
        "GT",
        "LE",
        "GE",
        "EQ",
        "NEQ",
        "IsNan",
        "IsInf",
        "Second",
        "Identity",
        "Abs",
        "Real",
        "Imag",
        "Angle",
    )
)
_REDUCTIONS = {"Maximum": "max", "Minimum": "min", "AND": "all", "OR": "any"}


def apply_scalar(op: Op, inputs: Values, dtypes: list[str], c: Converter) -> Values:
    """The results of a scalar op for each element.

    Args:
        op: PyTensor's scalar op.
        inputs: tensors that broadcast.
        dtypes: of the results.
        c: for inner graphs.

    Raises:
        NoConversion: graphc has no such function.
    """
    name = type(op).__name__
    if isinstance(op, Composite):
        return c.inner(op.fgraph.inputs, op.fgraph.outputs, inputs)
    if isinstance(op, ScalarLoop):
        return run_elements(op, inputs, c)
    if name == "Cast":
        return [real_cast(inputs[0], op.o_type.dtype)]
    if name in SPECIAL:
        return [SPECIAL[name](inputs, dtypes[0])]
    function = getattr(pt, FUNCTIONS.get(name, ""), None)
    if function is None:
        raise NoConversion(f"graphc has no function for the scalar op {type(op).__module__}.{name}")
    given = _promoted(name, inputs, dtypes[0])
    try:
        return [function(*given)]
    except TypeError as error:  # SciPy, and so PyTensor in Python, has more functions of complex numbers
        if any(x.type.dtype.startswith("complex") for x in given):
            raise NoConversion(str(error)) from error
        raise


def _promoted(name: str, inputs: Values, dtype: str) -> Values:
    """PyTensor computes functions of integers in the dtype of their result; the order of polygamma stays."""
    if name in _OWN_DTYPES or np.dtype(dtype).kind not in "fc":
        return inputs
    return [
        pt.cast(x, dtype) if x.type.numpy_dtype.kind in "iub" and not (name == "PolyGamma" and i == 0) else x
        for i, x in enumerate(inputs)
    ]


def _clip(inputs: Values, dtype: str) -> Variable:
    """NaN bounds let values through, and the lower bound wins, as in PyTensor's code."""
    x, low, high = (pt.cast(value, dtype) for value in inputs)
    return pt.switch(pt.lt(x, low), low, pt.switch(pt.gt(x, high), high, x))


def _times_but_zeros(inputs: Values, dtype: str) -> Variable:
    x, y = (pt.cast(value, dtype) for value in inputs)
    return pt.switch(pt.eq(x, 0), y, pt.switch(pt.eq(y, 0), x, x * y))


def _difference(inputs: Values, dtype: str) -> Variable:
    x, y = (pt.cast(value, dtype) for value in inputs)
    return total([(x, 1), (y, -1)])


SPECIAL = {
    "Add": lambda inputs, dtype: total([(pt.cast(x, dtype), 1) for x in inputs]),
    "Mul": lambda inputs, dtype: product([pt.cast(x, dtype) for x in inputs]),
    "TrueDiv": lambda inputs, dtype: quotient(*(pt.cast(x, dtype) for x in inputs)),
    "Switch": lambda inputs, dtype: pt.switch(
        inputs[0], pt.cast(inputs[1], dtype), pt.cast(inputs[2], dtype)
    ),
    "Clip": _clip,
    "Sub": _difference,
    "Neg": lambda inputs, dtype: negative(pt.cast(inputs[0], dtype)),
    "MulWithoutZeros": _times_but_zeros,
    "XlogX": lambda inputs, dtype: pt.xlogy(pt.cast(inputs[0], dtype), pt.cast(inputs[0], dtype)),
}


@converts("Elemwise")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return apply_scalar(op.scalar_op, inputs, [output.type.dtype for output in node.outputs], c)


@converts("ScalarOp", module="pytensor.scalar")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return apply_scalar(op, inputs, [output.type.dtype for output in node.outputs], c)


@converts("CAReduce")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    (x,) = inputs
    # NumPy reduces a scalar along an axis, too.
    axis = tuple(range(x.type.ndim)) if op.axis is None or x.type.ndim == 0 else tuple(op.axis)
    dtype = node.outputs[0].type.dtype
    accumulated = getattr(op, "acc_dtype", None) or dtype
    name = type(op.scalar_op).__name__
    if type(op).__name__ == "ProdWithoutZeros":
        x, name = pt.switch(pt.eq(x, 0), pt.cast(1, x.type.dtype), x), "Mul"
    if name in ("Add", "Mul"):
        kept = accumulated if accumulated.startswith("complex") else dtype

        def reduced(v: Variable) -> Variable:
            return (pt.sum if name == "Add" else pt.prod)(v, axis=axis, dtype=kept, acc_dtype=accumulated)

        axes = tuple(i % x.type.ndim for i in axis) if x.type.ndim else ()
        return real_cast(summed(x, axes, reduced) if name == "Add" else reduced(x), dtype)
    if name in ("AND", "OR") and x.type.dtype != "bool":
        raise NoConversion(f"a reduction by the bitwise {name} of {x.type.dtype}")
    if name not in _REDUCTIONS:
        raise NoConversion(f"a reduction by {name}")
    return getattr(pt, _REDUCTIONS[name])(x, axis=axis)


@converts("DimShuffle")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.dimshuffle(inputs[0], *op.new_order)

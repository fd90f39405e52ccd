# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: arithmetic, extremes and selection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Constant
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.variable import TensorConstant
from graphc.ops.elementwise import OperandType, cast_to, register, ufunc_rule
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    bitwise_and,
    cast,
    clip,
    conj,
    copysign,
    eq,
    floor_div,
    ge,
    gt,
    imag,
    le,
    log,
    lt,
    maximum,
    ne,
    neg,
    sign,
    signbit,
    sqr,
    sqrt,
    switch,
)
from graphc.ops.math import pow as pow_

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def promote(*types: OperandType) -> np.dtype:
    """The dtype in which operands of any dtype meet."""
    result = types[0]
    if len(types) == 1:
        return np.add.resolve_dtypes((result, result, None))[-1]
    for other in types[1:]:
        result = np.add.resolve_dtypes((result, other, None))[-1]
    return np.dtype(result)


def _chosen(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return switch(eq(out, x), g, 0)


def _pow_x(x: TensorVariable, y: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    # At y = 0 the derivative is 0 for x = 0, too; 0 times a power of -1 would be NaN there.
    if isinstance(y, TensorConstant):
        if y.unique_value == 2:
            return g * x * y
        return g * y * pow_(x, constant(y.data - (y.data != 0).astype(y.data.dtype)))
    # Elsewhere that power stays: the derivative by y of what is 0 at y = 0 is 1 / x.
    return g * y * pow_(x, y - cast(ne(y, 0) | ne(x, 0), y.type.dtype))


def _pow_y(x: TensorVariable, y: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    # At x = 0 the derivative is 0 for y > 0; log would make it NaN.
    zero = eq(x, 0)
    return switch(zero, 0, g * out * log(switch(zero, 1, x)))


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's power, but for an exponent of 1/2 always that of C: NumPy takes the square root, which is
    another number at -inf and -0, for what it thinks is a scalar.
    """
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    exponents = np.ascontiguousarray(np.broadcast_to(y, shape))
    return np.power(np.atleast_1d(np.broadcast_to(x, shape)), np.atleast_1d(exponents)).reshape(shape)


def _floor_divide(x: np.ndarray, y: np.ndarray) -> np.generic | np.ndarray:
    """NumPy's floor division, but for infinite numbers what the quotient rounds down to."""
    quotient = np.floor_divide(x, y)
    if quotient.dtype.kind != "f":
        return quotient
    infinite = np.isinf(x) | np.isinf(y)
    return np.where(infinite, np.floor(np.true_divide(x, y)), quotient) if infinite.any() else quotient


def _square_root(x: TensorVariable | float, y: TensorLike) -> TensorVariable | None:
    """An exponent that is known to be 1/2 means the square root, as in NumPy, in each mode."""
    y = y.data if isinstance(y, Constant) else y
    if not isinstance(y, float | np.floating | np.ndarray) or np.size(y) != 1 or y != 0.5:
        return None
    x = as_tensor_variable(x)
    if x.type.kind == "c" or np.ndim(y) > x.type.ndim:
        return None
    exponent = float if type(y) is float else np.asarray(y).dtype
    return sqrt(cast_to(x, np.power.resolve_dtypes((x.type.numpy_dtype, exponent, None))[-1].name))


def _sign(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable | None:
    if x.type.kind != "c":
        return None
    # Only the angle of x changes the sign: d sign = i sign(x) d angle, and angle's own rule does the rest.
    along = neg(imag(g * out))
    return _angle(x, None, along)


def _angle(x: Variable, out: Variable | None, g: Variable) -> TensorVariable | None:
    if x.type.kind != "c":
        return None
    return constant(np.asarray(-1j, x.type.dtype)) * g * conj(x) / sqr(abs_(x))


def _copysign(x: TensorVariable, y: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return switch(signbit(x), -g, g) * copysign(constant(np.ones((), x.type.dtype)), y)


register(
    "add",
    np.add,
    "Sum; of booleans, logical or.",
    grad=(lambda x, y, out, g: g, lambda x, y, out, g: g),
    folds=True,
    cheap=True,
)
register(
    "sub", np.subtract, "Difference.", grad=(lambda x, y, out, g: g, lambda x, y, out, g: -g), cheap=True
)
register(
    "mul",
    np.multiply,
    "Product; of booleans, logical and.",
    grad=(lambda x, y, out, g: g * y, lambda x, y, out, g: g * x),
    folds=True,
    cheap=True,
)
register(
    "true_div",
    np.true_divide,
    "Quotient; of integers, a float64.",
    lambda b, x, y: b.truediv(x, y),
    grad=(lambda x, y, out, g: g / y, lambda x, y, out, g: -(g * out) / y),
)
register(
    "floor_div",
    _floor_divide,
    "Largest integer not above the quotient, also for infinite numbers; integers divided by 0 give 0.",
    lambda b, x, y: b.floordiv(x, y),
    grad=(None, None),
    dtypes=ufunc_rule(np.floor_divide),
)
register(
    "mod",
    np.mod,
    "Remainder with the sign of the divisor; integers modulo 0 give 0.",
    grad=(lambda x, y, out, g: g, lambda x, y, out, g: -g * floor_div(x, y)),
)
register(
    "pow",
    _power,
    "x to the power y.",
    grad=(_pow_x, _pow_y),
    special=_square_root,
    dtypes=ufunc_rule(np.power),
)
register("neg", np.negative, "Negation.", grad=(lambda x, out, g: -g,), cheap=True)
register(
    "abs",
    np.absolute,
    "Magnitude; real also for complex numbers.",
    grad=(lambda x, out, g: g * conj(sign(x)),),
    holomorphic=False,
    cheap=True,
)
register(
    "sign",
    np.sign,
    "-1, 0 or 1; x / abs(x) for complex numbers.",
    grad=(_sign,),
    holomorphic=False,
    cheap=True,
)
for _name, _ufunc, _text in (("maximum", np.maximum, "Larger"), ("minimum", np.minimum, "Smaller")):
    register(
        _name,
        _ufunc,
        f"{_text} operand; NaN wins.",
        grad=(lambda x, y, out, g: _chosen(x, out, g), lambda x, y, out, g: switch(eq(out, x), 0, g)),
        folds=True,
        cheap=True,
    )
register(
    "sqr", np.square, "Square.", lambda b, x: b.mul(x, x), grad=(lambda x, out, g: 2 * g * x,), cheap=True
)
register(
    "reciprocal",
    np.reciprocal,
    "1 / x; of integers, in floating point.",
    grad=(lambda x, out, g: -g * sqr(out),),
    # NumPy's loops of integers round to 0, which helps nobody.
    dtypes=ufunc_rule(np.sqrt),
)
register("copysign", np.copysign, "Magnitude of x with the sign of y.", grad=(_copysign, None))
register(
    "angle",
    np.angle,
    "Angle of a complex number in radians.",
    lambda b, x: b.angle(x) if x.dtype.kind == "c" else b.math("atan2", b.const(0, x.dtype), x),
    grad=(_angle,),
    holomorphic=False,
    dtypes=lambda types: (
        (t := promote(types[0], np.dtype("float64" if getattr(types[0], "kind", "") == "b" else "float16"))),
        np.dtype(f"f{t.itemsize // 2}") if t.kind == "c" else t,
    ),
)


def _clip(
    x: TensorLike, low: TensorLike | None = None, high: TensorLike | None = None
) -> TensorVariable | None:
    """One limit with the end of the dtype for the other; without any, x itself."""
    limit = high if low is None else low
    if limit is None:
        return as_tensor_variable(x)
    if low is not None and high is not None:
        return None
    dtype = maximum(x, limit).type.numpy_dtype
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    ends = (limits.min, limits.max) if limits else (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
    least, most = (constant(np.asarray(end, dtype)) for end in ends)
    return clip(x, least if low is None else low, most if high is None else high)


register(
    "clip",
    lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "x limited to the interval [low, high]; a limit that is None is none.",
    lambda b, x, low, high: b.minimum(b.maximum(x, low), high),
    special=_clip,
    dtypes=lambda types: (promote(*types),) * 4,
    grad=(
        lambda x, low, high, out, g: switch(bitwise_and(ge(x, low), le(x, high)), g, 0),
        lambda x, low, high, out, g: switch(bitwise_and(lt(x, low), le(low, high)), g, 0),
        lambda x, low, high, out, g: switch(gt(maximum(x, low), high), g, 0),
    ),
)
register(
    "switch",
    np.where,
    "x where the condition holds, y elsewhere.",
    lambda b, c, x, y: b.select(c, x, y),
    grad=(None, lambda c, x, y, out, g: switch(c, g, 0), lambda c, x, y, out, g: switch(c, 0, g)),
    dtypes=lambda types: (np.dtype("bool"), *(promote(*types[1:]),) * 3),
    cheap=True,
)
register(
    "identity",
    np.array,
    "A copy.",
    lambda b, x: x,
    grad=(lambda x, out, g: g,),
    dtypes=lambda types: (types[0], types[0]),
    cheap=True,
)
register(
    "second",
    lambda x, y: np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape)).copy(),
    "y in the shape of x.",
    lambda b, x, y: y,
    grad=(None, lambda x, y, out, g: g),
    dtypes=lambda types: (types[0], np.dtype(types[1]), np.dtype(types[1])),
    cheap=True,
)

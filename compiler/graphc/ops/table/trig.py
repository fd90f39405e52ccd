# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import is_complex, register, ufunc_rule
from graphc.ops.math import abs as abs_
from graphc.ops.math import complex as complex_
from graphc.ops.math import cos, cosh, hypot, lt, sin, sinh, sqr, sqrt, switch
from graphc.ops.table import forms

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


def _zero_at_infinity(
    out: np.generic | np.ndarray, x: np.ndarray, infinite: str, zero: str
) -> np.generic | np.ndarray:
    """A complex result; where one part of x is infinite, its other part is the 0 with the sign of x's."""
    if out.dtype.kind != "c":
        return out
    out, x = np.array(out), np.asarray(x)
    part = getattr(out, zero)
    signed = np.copysign(np.zeros_like(part), getattr(x, zero))
    setattr(out, zero, np.where(np.isinf(getattr(x, infinite)), signed, part))
    return out


def _tanh(x: np.ndarray) -> np.generic | np.ndarray:
    """NumPy's; of an infinite real part the imaginary part is 0 with its own sign, as in the array API."""
    return _zero_at_infinity(np.tanh(x), x, "real", "imag")


def _tan(x: np.ndarray) -> np.ndarray | np.generic:
    """NumPy's, or tanh(i x) / i where that has another 0."""
    return _zero_at_infinity(np.tan(x), x, "imag", "real")


# Roots in derivatives. Of complex numbers they are products whose factors have the sign of each zero of x, which
# says on which side of a branch cut it is; that of 1 - x**2 has lost it.


def _one_minus_square(x: TensorVariable) -> TensorVariable:
    """As a product where the square is near 1 and rounded; as it stands near 0, where the slopes of the
    factors cancel.
    """
    if is_complex(x):
        return 1 - sqr(x)
    return switch(lt(abs_(x), 0.5), 1 - sqr(x), (1 - x) * (1 + x))


def _arcsin_root(x: TensorVariable) -> TensorVariable:
    if not is_complex(x):
        return sqrt(_one_minus_square(x))
    return sqrt(complex_(1 - x.real, -x.imag)) * sqrt(complex_(1 + x.real, x.imag))


def _arcsinh_root(x: TensorVariable) -> TensorVariable:
    if not is_complex(x):
        return hypot(x, 1)
    return sqrt(complex_(1 - x.imag, x.real)) * sqrt(complex_(1 + x.imag, -x.real))


def _arccosh_root(x: TensorVariable) -> TensorVariable:
    if not is_complex(x):
        return sqrt(x - 1) * sqrt(x + 1)
    return sqrt(complex_(x.real - 1, x.imag)) * sqrt(complex_(x.real + 1, x.imag))


def _over_square(x: TensorVariable, length: TensorVariable) -> TensorVariable:
    return x / length / length


_DEGREE = float(np.pi / 180)

forms.register_libm("sin", "Sine.", lambda x, out, g: g * cos(x))
forms.register_libm("cos", "Cosine.", lambda x, out, g: -g * sin(x))
forms.register_libm("tan", "Tangent.", lambda x, out, g: g * (1 + sqr(out)), reference=_tan)
forms.register_libm("arcsin", "Inverse sine.", lambda x, out, g: g / _arcsin_root(x))
forms.register_libm("arccos", "Inverse cosine.", lambda x, out, g: -g / _arcsin_root(x))
forms.register_libm("arctan", "Inverse tangent.", lambda x, out, g: g / (1 + sqr(x)))
forms.register_libm("sinh", "Hyperbolic sine.", lambda x, out, g: g * cosh(x))
forms.register_libm("cosh", "Hyperbolic cosine.", lambda x, out, g: g * sinh(x))
register(
    "tanh",
    _tanh,
    "Hyperbolic tangent.",
    forms.libm("tanh"),
    dtypes=ufunc_rule(np.tanh),
    # Of the result, which is kept for what reads it: of the operand, far out, another array would be.
    grad=(lambda x, out, g: g * (1 - sqr(out)),),
)
forms.register_libm("arcsinh", "Inverse hyperbolic sine.", lambda x, out, g: g / _arcsinh_root(x))
forms.register_libm("arccosh", "Inverse hyperbolic cosine.", lambda x, out, g: g / _arccosh_root(x))
forms.register_libm("arctanh", "Inverse hyperbolic tangent.", lambda x, out, g: g / _one_minus_square(x))
forms.register_libm(
    "arctan2",
    "Angle of the point (y, x), in the right quadrant.",
    lambda y, x, out, g: g * _over_square(x, hypot(x, y)),
    lambda y, x, out, g: -g * _over_square(y, hypot(x, y)),
)
register(
    "hypot",
    np.hypot,
    "sqrt(x**2 + y**2) without overflow.",
    forms.wide(forms.hypot),
    grad=(lambda x, y, out, g: g * (x / out), lambda x, y, out, g: g * (y / out)),
)
register(
    "deg2rad",
    np.deg2rad,
    "Degrees to radians.",
    forms.wide(lambda b, x: forms.scaled(b, x, _DEGREE)),
    grad=(lambda x, out, g: g * _DEGREE,),
)
register(
    "rad2deg",
    np.rad2deg,
    "Radians to degrees.",
    forms.wide(lambda b, x: forms.scaled(b, x, 1 / _DEGREE)),
    grad=(lambda x, out, g: g / _DEGREE,),
)

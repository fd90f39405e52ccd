# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings of special functions that need no loop and no library but libm.

erfcx(x) = P((x - 3) / (x + 3)) / (x + 3/4) for x >= 0; P interpolates in Chebyshev points, in 60 digits.

The largest relative error of P is 1.3e-17.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.table import forms
from graphc.ops.table.forms_gamma import polynomial, sine_of_pi_times

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import ScalarBuilder


# The constant first.
ERFCX = (
    0.6712543169302123,
    -0.14936894307304988,
    0.03761980325135728,
    0.02729359522618392,
    -0.04172037240815849,
    0.028055888842386148,
    -0.01081797337612875,
    0.0014416325168238498,
    0.0007950796926950531,
    -0.0003786023037721183,
    -3.656576324137151e-05,
    5.933451339599842e-05,
    4.802206489025045e-07,
    -9.520157549874292e-06,
    -5.266493322699301e-08,
    1.6624668164764015e-06,
    1.1982039176614192e-07,
    -3.0087605947263107e-07,
    -5.9154822193971225e-08,
    5.0958596854979615e-08,
    1.8741993633350167e-08,
    -6.865781395525288e-09,
    -3.933129441182784e-09,
    5.25887633641304e-10,
    4.1699267142285666e-10,
)


Scalar = Any
_F64 = np.dtype("float64")


def _zero(b: ScalarBuilder, x: Scalar) -> Scalar:
    return b.const(0, x.dtype)


def _square(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """x**2 as a sum of two numbers."""
    high = b.mul(x, x)
    return high, b.fma(x, x, b.neg(high))


@forms.in_double
def erfcx(b: ScalarBuilder, x: Scalar) -> Scalar:
    """One rational function for positive x, 2 exp(x^2) - erfcx(-x) for negative x, with the rounding error
    of x^2. It has no branch, so that loops of it are vectors.
    """
    positive = _erfcx_positive(b, b.abs(x))
    high, low = _square(b, x)
    power = b.math("exp", high)
    power = b.select(b.isinf(power), power, b.fma(power, low, power))
    reflected = b.sub(b.add(power, power), positive)
    return b.select(b.lt(x, _zero(b, x)), reflected, positive)


def _erfcx_positive(b: ScalarBuilder, x: Scalar) -> Scalar:
    # Infinity has no quotient.
    near = b.minimum(x, b.const(1e300, _F64))
    three = b.const(3, _F64)
    t = b.truediv(b.sub(near, three), b.add(near, three))
    return b.truediv(polynomial(b, t, ERFCX), b.add(x, b.const(0.75, _F64)))


def _odd_series(b: ScalarBuilder, x: Scalar, coefficients: list[float]) -> Scalar:
    """x times a polynomial in x^2."""
    square = b.mul(x, x)
    total = b.const(coefficients[-1], _F64)
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, square, b.const(coefficient, _F64))
    return b.mul(x, total)


@forms.in_double
def dawsn(b: ScalarBuilder, x: Scalar) -> Scalar:
    """SciPy's, but near 0, where that is only absolutely accurate, sum of (-2)^k x^(2k + 1) / (2k + 1)!!."""
    coefficients = [1.0]
    for k in range(1, 15):
        coefficients.append(coefficients[-1] * -2 / (2 * k + 1))
    small = b.lt(b.abs(x), b.const(0.5, _F64))
    return b.select(small, _odd_series(b, x, coefficients), b.call("special_d_dawsn", x))


@forms.in_double
def erfi(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The series of x^(2k + 1) / (k! (2k + 1)) up to a half, exp(x^2) times Dawson's integral above.

    The exponential is the square of one, which overflows later.
    """
    factor = float(2 / np.sqrt(np.pi))
    coefficients = [factor / (math.factorial(k) * (2 * k + 1)) for k in range(13)]
    high, low = _square(b, x)
    root = b.math("exp", forms.scaled(b, high, 0.5))
    rest = b.select(b.lt(b.abs(x), b.const(30, _F64)), b.add(low, b.const(1, _F64)), b.const(1, _F64))
    dawson = b.mul(forms.scaled(b, b.call("special_d_dawsn", x), factor), rest)
    value = b.mul(root, b.mul(root, dawson))
    value = b.select(b.isinf(root), b.copysign(root, x), value)
    small = b.lt(b.abs(x), b.const(0.5, _F64))
    return b.select(small, _odd_series(b, x, coefficients), value)


def ndtr(b: ScalarBuilder, x: Scalar) -> Scalar:
    """erfc(-x / sqrt(2)) / 2, with the rounding error of the argument: erfc falls fast."""
    root = np.sqrt(np.longdouble(0.5))
    high = x.dtype.type(root)
    low = float(root - np.longdouble(high))
    minus = b.const(-float(high), x.dtype)
    z = b.mul(x, minus)
    rest = b.fma(x, b.const(-low, x.dtype), b.fma(x, minus, b.neg(z)))
    slope = forms.scaled(b, b.math("exp", b.neg(b.mul(z, z))), float(2 / np.sqrt(np.pi)))
    value = b.math("erfc", z)
    # Where erfc is 0 or 2 nothing is to be corrected, and rest may be NaN.
    tail = b.lt(b.abs(x), b.const(40, x.dtype))
    value = b.select(tail, b.sub(value, b.mul(slope, rest)), value)
    return forms.scaled(b, value, 0.5)


@forms.in_double
def log_ndtr(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(erfcx(-x / sqrt(2)) / 2) - x^2 / 2 below -1, log1p(-ndtr(-x)) above."""
    above = b.math("log1p", b.neg(ndtr(b, b.neg(x))))
    scaled = forms.scaled(b, _erfcx_positive(b, forms.scaled(b, x, -math.sqrt(0.5))), 0.5)
    below = b.sub(b.math("log", scaled), b.mul(forms.scaled(b, x, 0.5), x))
    return b.select(b.lt(x, b.const(-1, _F64)), below, above)


@forms.wide
def logit(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(x / (1 - x)); between a quarter and three quarters 2 atanh(2 x - 1), where 2 x - 1 is exact."""
    one, half = b.const(1, x.dtype), b.const(0.5, x.dtype)
    offset = b.sub(x, half)
    middle = b.le(b.abs(offset), b.const(0.25, x.dtype))
    inside = b.math("atanh", b.select(middle, b.add(offset, offset), half))
    outside = b.math("log", b.truediv(x, b.sub(one, x)))
    return b.select(middle, b.add(inside, inside), outside)


def _guarded_product(b: ScalarBuilder, x: Scalar, logarithm: Scalar, y: Scalar) -> Scalar:
    """x * logarithm, but 0 for x = 0 unless y is NaN."""
    nothing = b.logical_and(b.eq(x, _zero(b, x)), b.eq(y, y))
    return b.select(nothing, _zero(b, x), b.mul(x, logarithm))


@forms.wide
def xlogy(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log", y), y)


@forms.wide
def xlog1py(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log1p", y), y)


@forms.wide
def entr(b: ScalarBuilder, x: Scalar) -> Scalar:
    """-x log(x), 0 at 0, minus infinity below."""
    zero = _zero(b, x)
    value = b.neg(b.mul(x, b.math("log", x)))
    value = b.select(b.eq(x, zero), zero, value)
    return b.select(b.lt(x, zero), b.const(-np.inf, x.dtype), value)


def log_ratio(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """log(x / y) of positive numbers: log1p of the exact difference where they are close, and no overflow."""
    ratio = b.truediv(x, y)
    near = b.math("log1p", b.truediv(b.sub(x, y), y))
    far = b.math("log", ratio)
    close = b.logical_and(b.gt(ratio, b.const(0.5, x.dtype)), b.lt(ratio, b.const(2, x.dtype)))
    info = np.finfo(x.dtype)
    safe = b.logical_and(b.ge(ratio, b.const(info.tiny, x.dtype)), b.le(ratio, b.const(info.max, x.dtype)))
    apart = b.sub(b.math("log", x), b.math("log", y))
    return b.select(close, near, b.select(safe, far, apart))


@forms.wide
def rel_entr(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) for positive operands, 0 for x = 0 <= y, infinite otherwise."""
    zero, infinity = _zero(b, x), b.const(np.inf, x.dtype)
    value = b.mul(x, log_ratio(b, x, y))
    return _on_quadrants(b, x, y, value, zero, infinity)


def _far_divergence(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) - x + y, where x and y are not close, with the errors of quotient and product."""
    ratio = b.truediv(x, y)
    rest = b.truediv(b.fma(b.neg(ratio), y, x), x)
    near = b.logical_and(b.gt(ratio, b.const(0.05, _F64)), b.lt(ratio, b.const(20, _F64)))
    logarithm = log_ratio(b, x, y)
    product = b.mul(x, logarithm)
    lost = b.fma(x, rest, b.fma(x, logarithm, b.neg(product)))
    value = b.add(b.sub(product, x), y)
    larger = b.gt(y, x)
    value = b.select(larger, b.add(product, b.sub(y, x)), value)
    return b.select(near, b.add(value, lost), value)


@forms.in_double
def kl_div(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) - x + y for positive operands, y for x = 0 <= y, infinite otherwise.

    With s = (x - y) / (x + y) it is (x - y) s (1 + s (1 + s) (1/3 + s^2/5 + ...)), where the terms above
    would cancel.
    """
    one = b.const(1, _F64)
    far = _far_divergence(b, x, y)
    close = b.logical_and(b.gt(x, forms.scaled(b, y, 1 / 3)), b.lt(forms.scaled(b, x, 1 / 3), y))
    # Half of a large sum does not overflow.
    half = b.select(b.gt(y, b.const(1e300, _F64)), b.const(0.5, _F64), one)
    difference = b.sub(x, y)
    s = b.truediv(b.mul(difference, half), b.add(b.mul(x, half), b.mul(y, half)))
    s = b.select(close, s, _zero(b, x))
    square = b.mul(s, s)
    series = b.const(1 / 57, _F64)
    for k in range(55, 1, -2):
        series = b.fma(series, square, b.const(1 / k, _F64))
    factor = b.fma(b.mul(s, b.add(one, s)), series, one)
    near = b.mul(b.mul(difference, s), factor)
    return _on_quadrants(b, x, y, b.select(close, near, far), y, b.const(np.inf, _F64))


def _on_quadrants(
    b: ScalarBuilder, x: Scalar, y: Scalar, inside: Scalar, edge: Scalar, outside: Scalar
) -> Scalar:
    """`inside` for positive operands, `edge` for x = 0 <= y, NaN for NaN, `outside` elsewhere."""
    zero = _zero(b, x)
    on_edge = b.logical_and(b.eq(x, zero), b.ge(y, zero))
    positive = b.logical_and(b.gt(x, zero), b.gt(y, zero))
    value = b.select(positive, inside, b.select(on_edge, edge, outside))
    unknown = b.logical_or(b.isnan(x), b.isnan(y))
    return b.select(unknown, b.const(np.nan, x.dtype), value)


@forms.in_double
def logaddexp2(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """log2(2^x + 2^y); equal operands, infinities among them, would give inf - inf."""
    equal = b.add(x, b.const(1, x.dtype))
    tail = b.math("log1p", b.math("exp2", b.neg(b.abs(b.sub(x, y)))))
    tail = forms.scaled(b, tail, float(1 / np.log(2.0)))
    return b.select(b.eq(x, y), equal, b.add(b.maximum(x, y), tail))


@forms.wide
def sinc(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin(pi x) / (pi x), of the distance from the nearest integer, which is exact."""
    one, half = b.const(1, x.dtype), b.const(0.5, x.dtype)
    nearest = b.rint(x)
    sine = sine_of_pi_times(b, b.sub(x, nearest))
    halved = b.mul(nearest, half)
    sine = b.select(b.eq(halved, b.floor(halved)), sine, b.neg(sine))
    none = b.eq(x, _zero(b, x))
    value = b.truediv(sine, b.select(none, one, x))
    return b.select(none, one, value)


@forms.wide
def exprel(b: ScalarBuilder, x: Scalar) -> Scalar:
    """expm1(x) / x; where that overflows early, exp(x / 2) (exp(x / 2) / x)."""
    zero, one = _zero(b, x), b.const(1, x.dtype)
    none = b.eq(x, zero)
    small = b.truediv(b.math("expm1", x), b.select(none, one, x))
    root = b.math("exp", forms.scaled(b, x, 0.5))
    large = b.mul(root, b.truediv(root, x))
    value = b.select(b.gt(x, b.const(80 if x.dtype == np.float32 else 700, x.dtype)), large, small)
    value = b.select(b.eq(x, b.const(np.inf, x.dtype)), x, value)
    return b.select(none, one, value)


def with_small(name: str, small: Callable[[Any, Scalar], Scalar]) -> Callable[..., Scalar]:
    """SciPy's function, but `small` below 1e-300, where it overflows within."""

    @forms.in_double
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        tiny = b.logical_and(b.gt(x, _zero(b, x)), b.lt(x, b.const(1e-300, _F64)))
        return b.select(tiny, small(b, x), b.call(f"special_d_{name}", x))

    return scalar


def log_of_two_over(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(2 / x) - gamma, with Euler's constant: the modified Bessel function k0 of a tiny number."""
    return b.sub(b.const(float(np.log(2.0) - np.euler_gamma), x.dtype), b.math("log", x))


def reciprocal(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / x: the modified Bessel function k1 of a tiny number."""
    return b.truediv(b.const(1, x.dtype), x)

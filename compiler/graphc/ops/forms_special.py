# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings of special functions that need no loop and no library but libm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops import forms
from graphc.ops.digamma_polynomial import DIGAMMA, DIGAMMA_ROOT

Scalar = Any
_F64 = np.dtype("float64")


def _zero(b: Any, x: Scalar) -> Scalar:
    return b.const(0, x.dtype)


def _square(b: Any, x: Scalar) -> tuple[Scalar, Scalar]:
    """x**2 as a sum of two numbers."""
    high = b.mul(x, x)
    return high, b.fma(x, x, b.neg(high))


@forms.in_double
def erfcx(b: Any, x: Scalar) -> Scalar:
    """SciPy's for positive x, 2 exp(x^2) - erfcx(-x) for negative x, with the rounding error of x^2."""
    positive = b.call("special_d_erfcx", b.abs(x))
    high, low = _square(b, x)
    power = b.math("exp", high)
    power = b.select(b.isinf(power), power, b.fma(power, low, power))
    reflected = b.sub(b.add(power, power), positive)
    return b.select(b.lt(x, _zero(b, x)), reflected, positive)


def _odd_series(b: Any, x: Scalar, coefficients: list[float]) -> Scalar:
    """x times a polynomial in x^2."""
    square = b.mul(x, x)
    total = b.const(coefficients[-1], _F64)
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, square, b.const(coefficient, _F64))
    return b.mul(x, total)


@forms.in_double
def dawsn(b: Any, x: Scalar) -> Scalar:
    """SciPy's, but near 0, where that is only absolutely accurate, sum of (-2)^k x^(2k + 1) / (2k + 1)!!."""
    coefficients = [1.0]
    for k in range(1, 15):
        coefficients.append(coefficients[-1] * -2 / (2 * k + 1))
    small = b.lt(b.abs(x), b.const(0.5, _F64))
    return b.select(small, _odd_series(b, x, coefficients), b.call("special_d_dawsn", x))


@forms.in_double
def erfi(b: Any, x: Scalar) -> Scalar:
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


def ndtr(b: Any, x: Scalar) -> Scalar:
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
def log_ndtr(b: Any, x: Scalar) -> Scalar:
    """SciPy's below -1, log1p(-ndtr(-x)) above."""
    above = b.math("log1p", b.neg(ndtr(b, b.neg(x))))
    return b.select(b.lt(x, b.const(-1, _F64)), b.call("special_d_log_ndtr", x), above)


@forms.in_double
def gamma(b: Any, x: Scalar) -> Scalar:
    """tgamma of the C library, but NaN for minus infinity and the negative integers, as in SciPy."""
    pole = b.logical_and(b.lt(x, _zero(b, x)), b.eq(x, b.floor(x)))
    return b.select(pole, b.const(np.nan, x.dtype), b.math("tgamma", x))


@forms.in_double
def gammaln(b: Any, x: Scalar) -> Scalar:
    """lgamma of the C library, but minus infinity for minus infinity, as in SciPy."""
    lowest = b.eq(x, b.const(-np.inf, _F64))
    return b.select(lowest, x, b.math("lgamma", x))


def sine_of_pi_times(b: Any, x: Scalar) -> Scalar:
    """sin(pi x) / pi for |x| <= 1/2: x less a series that is smaller."""
    coefficients = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 12)]
    square = b.mul(x, x)
    total = b.const(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, square, b.const(coefficient, x.dtype))
    return b.fma(b.mul(x, square), total, x)


def _digamma_positive(b: Any, x: Scalar) -> Scalar:
    """Digamma for x > 0: (x - root) P(x) on [1, 2], recurrence up to 10, the asymptotic series above.

    Source of the series: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.5 and 6.3.18.
    """
    one = b.const(1, _F64)
    tiny = b.lt(x, one)
    # The argument moved to [1, 2): up by one step, or down by whole steps, which are exact.
    steps = b.minimum(b.maximum(b.sub(b.floor(x), one), _zero(b, x)), b.const(8, _F64))
    y = b.select(tiny, b.add(x, one), b.sub(x, steps))
    total = b.neg(b.truediv(one, x))
    total = b.select(tiny, total, _zero(b, x))
    up = _zero(b, x)
    for k in range(8):
        offset = b.const(k, _F64)
        term = b.truediv(one, b.add(y, offset))
        up = b.add(up, b.select(b.gt(steps, offset), term, _zero(b, x)))
    centred = b.sub(y, b.const(DIGAMMA_ROOT[0], _F64))
    centred = b.sub(centred, b.const(DIGAMMA_ROOT[1], _F64))
    t = b.sub(y, b.const(1.5, _F64))
    value = b.const(DIGAMMA[-1], _F64)
    for coefficient in reversed(DIGAMMA[:-1]):
        value = b.fma(value, t, b.const(coefficient, _F64))
    near = b.add(b.add(b.mul(centred, value), up), total)
    inverse = b.truediv(one, x)
    square = b.mul(inverse, inverse)
    series = _zero(b, x)
    for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = b.mul(square, b.add(series, b.const(coefficient, _F64)))
    far = b.sub(b.math("log", x), b.add(b.mul(inverse, b.const(0.5, _F64)), series))
    return b.select(b.lt(x, b.const(10, _F64)), near, far)


@forms.in_double
def digamma(b: Any, x: Scalar) -> Scalar:
    """Logarithmic derivative of gamma; psi(1 - x) - pi / tan(pi x) for negative x; see `digamma_at_zero`."""
    zero, one = b.const(0, _F64), b.const(1, _F64)
    low = b.le(x, zero)
    value = _digamma_positive(b, b.select(low, b.sub(one, x), x))
    # Only the fraction enters the reflection, whose cotangent is that of a small angle.
    part = b.sub(x, b.rint(x))
    cosine = sine_of_pi_times(b, b.sub(b.const(0.5, _F64), b.abs(part)))
    sine, pi = sine_of_pi_times(b, part), b.const(np.pi, _F64)
    scaled = b.mul(cosine, pi)
    cotangent = b.truediv(scaled, sine)
    rest = b.add(b.fma(cosine, pi, b.neg(scaled)), b.fma(b.neg(cotangent), sine, scaled))
    ordinary = b.gt(b.abs(part), b.const(1e-280, _F64))
    reflected = b.sub(b.sub(value, cotangent), b.select(ordinary, b.truediv(rest, sine), zero))
    small = b.lt(b.abs(reflected), b.fma(value, b.const(0.45, _F64), b.const(0.6, _F64)))
    needed = b.select(b.logical_and(low, small), one, zero)
    reflected = b.call("graphc_scalar.digamma_at_zero", reflected, needed, x)
    pole = b.logical_and(low, b.eq(x, b.floor(x)))
    reflected = b.select(pole, b.const(np.nan, _F64), reflected)
    infinity = b.neg(b.copysign(b.const(np.inf, _F64), x))
    return b.select(low, b.select(b.eq(x, zero), infinity, reflected), value)


@forms.in_double
def trigamma(b: Any, x: Scalar) -> Scalar:
    """Derivative of digamma: reflection, recurrence up to 10, then the asymptotic series.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4.6, 6.4.7 and 6.4.12.
    """
    zero, one = b.const(0, _F64), b.const(1, _F64)
    low = b.le(x, zero)
    z = b.select(low, b.sub(one, x), x)
    terms = []
    for _ in range(10):
        inverse = b.truediv(one, z)
        below = b.lt(z, b.const(10, _F64))
        terms.append(b.select(below, b.mul(inverse, inverse), zero))
        z = b.select(below, b.add(z, one), z)
    inverse = b.truediv(one, z)
    square = b.mul(inverse, inverse)
    series = zero
    for coefficient in (-3617 / 510, 7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = b.add(b.mul(square, series), b.const(coefficient, _F64))
    value = b.mul(inverse, b.add(one, b.mul(inverse, b.add(b.const(0.5, _F64), b.mul(inverse, series)))))
    # The first term is the largest.
    for term in reversed(terms):
        value = b.add(value, term)
    sine = sine_of_pi_times(b, b.sub(x, b.rint(x)))
    reflected = b.sub(b.truediv(one, b.mul(sine, sine)), value)
    pole = b.eq(x, b.floor(x))
    reflected = b.select(pole, b.const(np.inf, _F64), reflected)
    return b.select(low, reflected, value)


@forms.in_double
def polygamma(b: Any, n: Scalar, x: Scalar) -> Scalar:
    """(-1)^(n + 1) n! zeta(n + 1, x), digamma for n = 0."""
    zero, one = b.const(0, _F64), b.const(1, _F64)
    order = b.add(n, one)
    magnitude = b.mul(b.math("tgamma", order), b.call("graphc_scalar.zeta", order, x))
    half = b.mul(b.const(0.5, _F64), n)
    value = b.select(b.eq(half, b.floor(half)), b.neg(magnitude), magnitude)
    value = b.select(b.eq(n, zero), digamma(b, x), value)
    whole = b.logical_and(b.ge(n, zero), b.eq(n, b.floor(n)))
    return b.select(whole, value, b.const(np.nan, _F64))


@forms.wide
def logit(b: Any, x: Scalar) -> Scalar:
    """log(x / (1 - x)); between a quarter and three quarters 2 atanh(2 x - 1), where 2 x - 1 is exact."""
    one, half = b.const(1, x.dtype), b.const(0.5, x.dtype)
    offset = b.sub(x, half)
    middle = b.le(b.abs(offset), b.const(0.25, x.dtype))
    inside = b.math("atanh", b.select(middle, b.add(offset, offset), half))
    outside = b.math("log", b.truediv(x, b.sub(one, x)))
    return b.select(middle, b.add(inside, inside), outside)


def _guarded_product(b: Any, x: Scalar, logarithm: Scalar, y: Scalar) -> Scalar:
    """x * logarithm, but 0 for x = 0 unless y is NaN."""
    nothing = b.logical_and(b.eq(x, _zero(b, x)), b.eq(y, y))
    return b.select(nothing, _zero(b, x), b.mul(x, logarithm))


@forms.wide
def xlogy(b: Any, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log", y), y)


@forms.wide
def xlog1py(b: Any, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log1p", y), y)


@forms.wide
def entr(b: Any, x: Scalar) -> Scalar:
    """-x log(x), 0 at 0, minus infinity below."""
    zero = _zero(b, x)
    value = b.neg(b.mul(x, b.math("log", x)))
    value = b.select(b.eq(x, zero), zero, value)
    return b.select(b.lt(x, zero), b.const(-np.inf, x.dtype), value)


def log_ratio(b: Any, x: Scalar, y: Scalar) -> Scalar:
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
def rel_entr(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) for positive operands, 0 for x = 0 <= y, infinite otherwise."""
    zero, infinity = _zero(b, x), b.const(np.inf, x.dtype)
    value = b.mul(x, log_ratio(b, x, y))
    return _on_quadrants(b, x, y, value, zero, infinity)


def _far_divergence(b: Any, x: Scalar, y: Scalar) -> Scalar:
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
def kl_div(b: Any, x: Scalar, y: Scalar) -> Scalar:
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


def _on_quadrants(b: Any, x: Scalar, y: Scalar, inside: Scalar, edge: Scalar, outside: Scalar) -> Scalar:
    """`inside` for positive operands, `edge` for x = 0 <= y, NaN for NaN, `outside` elsewhere."""
    zero = _zero(b, x)
    on_edge = b.logical_and(b.eq(x, zero), b.ge(y, zero))
    positive = b.logical_and(b.gt(x, zero), b.gt(y, zero))
    value = b.select(positive, inside, b.select(on_edge, edge, outside))
    unknown = b.logical_or(b.isnan(x), b.isnan(y))
    return b.select(unknown, b.const(np.nan, x.dtype), value)


@forms.in_double
def logaddexp2(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """log2(2^x + 2^y); equal operands, infinities among them, would give inf - inf."""
    equal = b.add(x, b.const(1, x.dtype))
    tail = b.math("log1p", b.math("exp2", b.neg(b.abs(b.sub(x, y)))))
    tail = forms.scaled(b, tail, float(1 / np.log(2.0)))
    return b.select(b.eq(x, y), equal, b.add(b.maximum(x, y), tail))


@forms.wide
def sinc(b: Any, x: Scalar) -> Scalar:
    """sin(pi x) / (pi x), of the distance from the nearest integer, which is exact."""
    one, half = b.const(1, x.dtype), b.const(0.5, x.dtype)
    nearest = b.rint(x)
    sine = sine_of_pi_times(b, b.sub(x, nearest))
    halved = b.mul(nearest, half)
    sine = b.select(b.eq(halved, b.floor(halved)), sine, b.neg(sine))
    none = b.eq(x, _zero(b, x))
    value = b.truediv(sine, b.select(none, one, x))
    return b.select(none, one, value)


@forms.in_double
def rgamma(b: Any, x: Scalar) -> Scalar:
    """1 / tgamma(x); where that is subnormal or overflows, of x moved by a few steps, times a product."""
    one = b.const(1, _F64)
    high, low = b.gt(x, b.const(171.5, _F64)), b.lt(x, b.const(-169, _F64))
    # x (x + 1) / gamma(x + 2), and 1 / ((x - 1) ... (x - 8) gamma(x - 8))
    above = b.mul(x, b.add(x, one))
    below = b.sub(x, one)
    for k in range(2, 9):
        below = b.mul(below, b.sub(x, b.const(k, _F64)))
    moved = b.select(low, b.add(x, b.const(2, _F64)), b.sub(x, b.const(8, _F64)))
    value = b.truediv(one, b.math("tgamma", b.select(b.logical_or(high, low), moved, x)))
    value = b.select(high, b.truediv(value, below), b.select(low, b.mul(value, above), value))
    pole = b.logical_and(b.lt(x, _zero(b, x)), b.eq(x, b.floor(x)))
    return b.select(b.logical_or(pole, b.eq(x, b.const(np.inf, _F64))), _zero(b, x), value)


@forms.wide
def exprel(b: Any, x: Scalar) -> Scalar:
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
    def scalar(b: Any, x: Scalar) -> Scalar:
        tiny = b.logical_and(b.gt(x, _zero(b, x)), b.lt(x, b.const(1e-300, _F64)))
        return b.select(tiny, small(b, x), b.call(f"special_d_{name}", x))

    return scalar


def log_of_two_over(b: Any, x: Scalar) -> Scalar:
    """log(2 / x) - gamma, with Euler's constant: the modified Bessel function k0 of a tiny number."""
    return b.sub(b.const(float(np.log(2.0) - np.euler_gamma), x.dtype), b.math("log", x))


def reciprocal(b: Any, x: Scalar) -> Scalar:
    """1 / x: the modified Bessel function k1 of a tiny number."""
    return b.truediv(b.const(1, x.dtype), x)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings of the gamma function, its logarithm and the derivatives of that.

digamma(1.5 + t) = (1.5 + t - root) P(t) for |t| <= 1/2; a weighted least squares fit in 60 digits.

The largest relative error of P is 4.5e-17.

gammaln(y) = (y - 1) (y - 2) P(y - centre) on [1/2, 3]; P interpolates in Chebyshev points, in 60 digits.

The largest relative error of P is 1.0e-17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.table import forms

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import ScalarBuilder


# Centre 1, up to 1.5.
GAMMALN_LOW = (
    0.5772156649015329,
    -0.24525136852258037,
    0.1554342658639556,
    -0.11514654256383787,
    0.09223900846366932,
    -0.07731816853143067,
    0.06673172835553974,
    -0.05877794140424497,
    0.05255631826261005,
    -0.04754312679769891,
    0.043411084045754875,
    -0.039943150324446376,
    0.03698548306742434,
    -0.03443942843923471,
    0.03228147253279034,
    -0.03033014421461396,
    0.028013319311536597,
    -0.026488089711827638,
    0.02917794270102698,
    -0.027825057395512564,
    0.0069437273107903555,
    -0.006392049327941565,
    0.07123157860759115,
    -0.06888571735061609,
    -0.07533096837257305,
    0.07324164062349006,
    0.11052782198365534,
    -0.10710035441656564,
)
# Centre 2.25, from 1.5 on.
GAMMALN_HIGH = (
    0.3995894876556691,
    -0.08588084755126091,
    0.02526835495928879,
    -0.008464024993587392,
    0.0030411186578955082,
    -0.0011409865895391027,
    0.00044065673229095925,
    -0.0001737093259015565,
    6.952279213896026e-05,
    -2.814920962210331e-05,
    1.1501973382621834e-05,
    -4.73501071184683e-06,
    1.96094946984462e-06,
    -8.145833645111841e-07,
    3.40534452497632e-07,
    -1.4674169557260334e-07,
    6.180374605463611e-08,
    -2.0675243797329778e-08,
    8.733363328897912e-09,
    -7.988385116151317e-09,
    3.4036501244683263e-09,
)


# The positive root, as a sum of two numbers.
DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)
DIGAMMA = (
    0.9510558760318328,
    -0.42362742128146047,
    0.24054248424080257,
    -0.1484049230539282,
    0.0949887244512385,
    -0.061922133270489815,
    0.04076083402139815,
    -0.02697579690220865,
    0.017907246139933334,
    -0.011908213593611636,
    0.007927057688549205,
    -0.005280043948124863,
    0.0035177271847911316,
    -0.0023443734990198843,
    0.0015659949395148446,
    -0.0010441759478593802,
    0.0006790931352890383,
    -0.00045133856535807,
    0.0003574160892346243,
    -0.00024223026660345615,
    4.2653333844373586e-05,
    -2.196484669517091e-05,
    0.0001565197980393198,
    -0.00010893022856498073,
)


Scalar = Any
_F64 = np.dtype("float64")
# Polynomials of more coefficients are evaluated as two chains, which wait for each other less.
_LONG = 16


def _zero(b: ScalarBuilder, x: Scalar) -> Scalar:
    return b.const(0, x.dtype)


@forms.in_double
def gamma(b: ScalarBuilder, x: Scalar) -> Scalar:
    """tgamma of the C library, but NaN for minus infinity and the negative integers, as in SciPy."""
    pole = b.logical_and(b.lt(x, _zero(b, x)), b.eq(x, b.floor(x)))
    return b.select(pole, b.const(np.nan, x.dtype), b.math("tgamma", x))


def polynomial(b: ScalarBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """The sum of coefficients times powers of x, the constant first; a long one as two chains in the square.

    The last step of two chains is that of one, as it rounds what counts most.
    """
    if len(coefficients) > _LONG:
        square, (first, *rest) = b.mul(x, x), coefficients
        even, odd = (polynomial(b, square, rest[start::2]) for start in (0, 1))
        return b.fma(b.fma(odd, x, even), x, b.const(first, x.dtype))
    total = b.const(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, x, b.const(coefficient, x.dtype))
    return total


@forms.in_double
def gammaln(b: ScalarBuilder, x: Scalar) -> Scalar:
    """(x - 1) (x - 2) P(x) from a half to 3, recurrence from 0 up to 10, the asymptotic series above.

    Negative numbers are the C library's, but minus infinity for minus infinity, as in SciPy.
    Source of the series: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.41.
    """
    zero, one, half = b.const(0, _F64), b.const(1, _F64), b.const(0.5, _F64)
    tiny, low, far = b.lt(x, half), b.lt(x, b.const(1.5, _F64)), b.ge(x, b.const(10, _F64))
    # The argument moved to [1/2, 3): down by whole steps, which is exact, or up by one. Its distance from 1
    # is exact, too.
    steps = b.minimum(b.maximum(b.sub(b.floor(x), b.const(2, _F64)), zero), b.const(7, _F64))
    y = b.sub(x, steps)
    from_1 = b.select(tiny, x, b.sub(y, one))
    from_2 = b.select(tiny, b.sub(x, one), b.sub(y, b.const(2, _F64)))
    below = polynomial(b, from_1, GAMMALN_LOW)
    above = polynomial(b, b.sub(y, b.const(2.25, _F64)), GAMMALN_HIGH)
    product = one
    for k in range(7):
        offset = b.const(k, _F64)
        product = b.mul(product, b.select(b.gt(steps, offset), b.add(y, offset), one))
    # Not of a negative number: vector logarithms do these one by one.
    logarithm = b.math("log", b.select(b.logical_or(tiny, far), b.abs(x), product))
    part = b.mul(b.mul(from_1, from_2), b.select(low, below, above))
    near = b.add(part, b.select(tiny, b.neg(logarithm), logarithm))
    inverse = b.truediv(one, x)
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
    series = b.mul(inverse, polynomial(b, b.mul(inverse, inverse), terms))
    rest = b.add(series, b.const(0.5 * math.log(2 * math.pi) - 0.5, _F64))
    value = b.select(far, b.fma(b.sub(x, half), b.sub(logarithm, one), rest), near)
    needed = b.select(b.lt(x, zero), one, zero)
    value = b.call("graphc_scalar.gammaln_below", value, needed, x)
    return b.select(b.eq(x, b.const(-np.inf, _F64)), x, value)


def sine_of_pi_times(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin(pi x) / pi for |x| <= 1/2: x less a series that is smaller."""
    coefficients = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 12)]
    square = b.mul(x, x)
    return b.fma(b.mul(x, square), polynomial(b, square, coefficients), x)


def _reciprocals(b: ScalarBuilder, x: Scalar, steps: Scalar, first: int, count: int) -> tuple[Scalar, Scalar]:
    """Numerator and denominator of the sum of 1 / (x - k) over so many k, those up to ``steps``.

    A division takes as long as a dozen multiplications. For x above ``steps`` each x - k is exact, and so is
    the numerator of two; their quotient is rounded no more often than two quotients and their sum.
    """
    if count == 1:
        one, offset = b.const(1, _F64), b.const(first, _F64)
        used = b.ge(steps, offset)
        return b.select(used, one, _zero(b, x)), b.select(used, b.sub(x, offset), one)
    half = count // 2
    top, bottom = _reciprocals(b, x, steps, first, half)
    other, factor = _reciprocals(b, x, steps, first + half, half)
    return b.fma(top, factor, b.mul(other, bottom)), b.mul(bottom, factor)


def _digamma_positive(b: ScalarBuilder, x: Scalar) -> Scalar:
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
    up = b.add(*(b.truediv(*_reciprocals(b, x, steps, first, 4)) for first in (1, 5)))
    centred = b.sub(y, b.const(DIGAMMA_ROOT[0], _F64))
    centred = b.sub(centred, b.const(DIGAMMA_ROOT[1], _F64))
    t = b.sub(y, b.const(1.5, _F64))
    value = polynomial(b, t, DIGAMMA)
    near = b.add(b.add(b.mul(centred, value), up), total)
    inverse = b.truediv(one, x)
    square = b.mul(inverse, inverse)
    terms = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
    series = b.mul(square, polynomial(b, square, terms))
    far = b.sub(b.math("log", x), b.add(b.mul(inverse, b.const(0.5, _F64)), series))
    return b.select(b.lt(x, b.const(10, _F64)), near, far)


@forms.in_double
def digamma(b: ScalarBuilder, x: Scalar) -> Scalar:
    """Logarithmic derivative of gamma; of numbers up to 0, see `digamma_below`."""
    zero, one = b.const(0, _F64), b.const(1, _F64)
    low = b.le(x, zero)
    value = _digamma_positive(b, b.select(low, b.sub(one, x), x))
    return b.call("graphc_scalar.digamma_below", value, b.select(low, one, zero), x)


@forms.in_double
def trigamma(b: ScalarBuilder, x: Scalar) -> Scalar:
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
def polygamma(b: ScalarBuilder, n: Scalar, x: Scalar) -> Scalar:
    """(-1)^(n + 1) n! zeta(n + 1, x), digamma for n = 0."""
    zero, one = b.const(0, _F64), b.const(1, _F64)
    order = b.add(n, one)
    magnitude = b.mul(b.math("tgamma", order), b.call("graphc_scalar.zeta", order, x))
    half = b.mul(b.const(0.5, _F64), n)
    value = b.select(b.eq(half, b.floor(half)), b.neg(magnitude), magnitude)
    value = b.select(b.eq(n, zero), digamma(b, x), value)
    whole = b.logical_and(b.ge(n, zero), b.eq(n, b.floor(n)))
    return b.select(whole, value, b.const(np.nan, _F64))


@forms.in_double
def rgamma(b: ScalarBuilder, x: Scalar) -> Scalar:
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: the Hurwitz zeta function, and the digamma function for positive arguments.

Routines for kernels that need 31 digits: a number is a sum t[0] + t[1], changed in place.

Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
"""

# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from graphc.library.scalars import scalar
from graphc.native.builtins import call, floor, fma, isnan, log, unrolled


def table(numbers: Iterable[Fraction]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Numbers as two tuples, whose sums they are to 31 digits."""
    exact = list(numbers)
    highs = tuple(map(float, exact))
    return highs, tuple(float(x - Fraction(high)) for x, high in zip(exact, highs, strict=True))


def assign(t, high, low):
    """t = high + low"""
    t[0] = high + low
    t[1] = low - (t[0] - high)


def add(t, high, low):
    """t += high + low"""
    total = t[0] + high
    rest = total - t[0]
    error = ((t[0] - (total - rest)) + (high - rest)) + (t[1] + low)
    assign(t, total, error)


def multiply(t, high, low):
    """t *= high + low"""
    product = t[0] * high
    assign(t, product, fma(t[0], high, -product) + (t[0] * low + t[1] * high))


def divide(t, high, low):
    """t /= high + low"""
    quotient = t[0] / high
    rest = fma(-quotient, high, t[0]) + (t[1] - quotient * low)
    assign(t, quotient, rest / high)


INF, NAN = math.inf, math.nan
# B(2j) / (2j)!, the coefficients of the Euler-Maclaurin formula.
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)


def zeta_positive(s, q):
    """Sum of (q + k)^-s for s > 1, q > 0: terms, then the Euler-Maclaurin formula for the rest.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 23.1.30.
    """
    total = 0.0
    lost = 0.0
    w = q
    limit = s + 10.0
    while w < limit:
        term = call("pow", w, -s, returns="double")
        if term == INF:
            return INF
        # Kahan's sum: the first terms of small q are large.
        y = term - lost
        following = total + y
        lost = (following - total) - y
        total = following
        if term <= 1e-19 * total:
            return total
        w += 1.0
    if s > 1e150:
        return total  # the rest is 0, and s * s overflows
    power = call("pow", w, -s, returns="double")
    leading = power * (w / (s - 1.0))
    if power < 1e-290:
        # The terms underflow before their sum does.
        leading = call("pow", w, 1.0 - s, returns="double") / (s - 1.0)
    rest = 0.5 * power
    factor = s * power / w
    step = s
    square = w * w
    for j in unrolled(len(_BERNOULLI)):
        rest += _BERNOULLI[j] * factor
        factor = factor * ((step + (2.0 * j + 1.0)) * (step + (2.0 * j + 2.0)) / square)
    return total + (leading + (rest - lost))


@scalar
def zeta(s, q):
    """Hurwitz zeta function; for negative q of whole s, by its reflection."""
    if isnan(s) or isnan(q) or s < 1.0:
        return NAN
    if s == 1.0:
        return INF
    if q > 0.0:
        if q == INF:
            return 0.0
        if s == INF:
            return 1.0 if q == 1.0 else (0.0 if q > 1.0 else INF)
        return zeta_positive(s, q)
    if q == floor(q):
        return INF
    if s != floor(s):
        return NAN
    # The sum over all whole numbers has the period 1; d is the distance from the nearest one.
    d = q - floor(q + 0.5)
    sign = 1.0 if s == 2.0 * floor(0.5 * s) else -1.0
    below = zeta_positive(s, 1.0 - d)
    above = zeta_positive(s, 1.0 + d)
    left = zeta_positive(s, 1.0 - q)
    return call("pow", d, -s, returns="double") + (above + sign * (below - left))


def digamma_positive(x):
    """Digamma function for x > 0: recurrence, then the asymptotic series."""
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)
    series = z * (
        1 / 12
        - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132 - z * (691 / 32760 - z * (1 / 12))))))
    )
    return total + (log(x) - 0.5 / x - series)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: derivatives of the incomplete gamma and beta functions with respect to their parameters.

The continued fractions are those of the NIST Digital Library of Mathematical Functions, 8.9.2 and 8.17.22,
evaluated by the modified Lentz method with the derivative carried along.
"""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.library.scalars.zeta import digamma_positive
from graphc.native.builtins import call, exp, isnan, log

NAN = math.nan
INF = math.inf
_ROUNDING = 2.0**-53
_TINY = 1e-300
_MOST_TERMS = 200_000


@scalar
def gammainc_da(a, x):
    """Derivative of the regularized lower incomplete gamma function with respect to a."""
    if isnan(a) or isnan(x) or a <= 0.0 or x < 0.0:
        return NAN
    if x == 0.0 or x == INF or a == INF:
        return 0.0
    if x <= max(a, 1.5):
        return lower_series(a, x)
    return -upper_fraction(a, x)


def lower_series(a, x):
    """P = x^a e^-x / gamma(a + 1) * (1 + x/(a + 1) + x^2/((a + 1)(a + 2)) + ...), differentiated."""
    term = 1.0
    total = 1.0
    slope = 0.0
    harmonic = 0.0
    for n in range(1, _MOST_TERMS):
        term = term * x / (a + n)
        harmonic += 1.0 / (a + n)
        total += term
        slope -= term * harmonic
        if term * (1.0 + harmonic) < _ROUNDING * (total - slope) and a + n > x:
            break
    factor = exp(a * log(x) - x - call("lgamma", a + 1.0, returns="double"))
    return factor * ((log(x) - digamma_positive(a + 1.0)) * total + slope)


def upper_fraction(a, x):
    """Q = x^a e^-x / gamma(a) * 1/(x + 1 - a - (1 - a)/(x + 3 - a - ...)), differentiated."""
    b = x + 1.0 - a
    c = 1.0 / _TINY
    dc = 0.0
    d = 1.0 / b
    dd = d * d
    h = d
    dh = dd
    for n in range(1, _MOST_TERMS):
        numerator = n * (a - n)
        b += 2.0
        inverse = numerator * d + b
        d_inverse = n * d + numerator * dd - 1.0
        if abs(inverse) < _TINY:
            inverse = _TINY
        d = 1.0 / inverse
        dd = -d * d * d_inverse
        dc = (n - numerator * dc / c) / c - 1.0
        c = b + numerator / c
        if abs(c) < _TINY:
            c = _TINY
        ratio = c * d
        d_ratio = dc * d + c * dd
        dh = dh * ratio + h * d_ratio
        h = h * ratio
        if abs(ratio - 1.0) < 4.0 * _ROUNDING and abs(h * d_ratio) < 4.0 * _ROUNDING * abs(dh):
            break
    factor = exp(a * log(x) - x - call("lgamma", a, returns="double"))
    return factor * ((log(x) - digamma_positive(a)) * h + dh)


@scalar
def betainc_da(a, b, x):
    """Derivative of the regularized incomplete beta function I_x(a, b) with respect to a."""
    return beta_slope(a, b, x, 1.0)


@scalar
def betainc_db(a, b, x):
    """Derivative of the regularized incomplete beta function I_x(a, b) with respect to b."""
    return beta_slope(a, b, x, 0.0)


def beta_slope(a, b, x, of_a):
    """Derivative of I_x(a, b) with respect to a if of_a = 1, to b if it is 0."""
    if isnan(a) or isnan(b) or isnan(x) or a <= 0.0 or b <= 0.0 or x < 0.0 or x > 1.0:
        return NAN
    if x == 0.0 or x == 1.0:
        return 0.0
    if x * (a + b + 2.0) < a + 1.0:
        return beta_fraction(a, b, log(x), call("log1p", -x, returns="double"), x, of_a)
    return -beta_fraction(b, a, call("log1p", -x, returns="double"), log(x), 1.0 - x, 1.0 - of_a)


def beta_fraction(a, b, log_x, log_rest, x, of_a):
    """I = x^a (1 - x)^b / (a B(a, b)) * 1/(1 + d1/(1 + d2/(1 + ...))), differentiated.

    With of_a = 1 with respect to a, with of_a = 0 with respect to b.
    """
    of_b = 1.0 - of_a
    total = a + b
    d_total = 1.0
    c = 1.0
    dc = 0.0
    inverse = 1.0 - total * x / (a + 1.0)
    d_inverse = -x * (d_total * (a + 1.0) - of_a * total) / ((a + 1.0) * (a + 1.0))
    if abs(inverse) < _TINY:
        inverse = _TINY
    d = 1.0 / inverse
    dd = -d * d * d_inverse
    h = d
    dh = dd
    for m in range(1, _MOST_TERMS):
        # The even coefficient m (b - m) x / ((a + 2m - 1)(a + 2m)), then the odd one.
        first = a + 2.0 * m - 1.0
        second = first + 1.0
        value = m * (b - m) * x / (first * second)
        slope = m * x / (first * second) * of_b - value * of_a * (1.0 / first + 1.0 / second)
        inverse = 1.0 + value * d
        d_inverse = slope * d + value * dd
        d = 1.0 / inverse
        dd = -d * d * d_inverse
        dc = (slope - value * dc / c) / c
        c = 1.0 + value / c
        d_ratio = dc * d + c * dd
        dh = dh * (c * d) + h * d_ratio
        h = h * (c * d)
        third = second + 1.0
        value = -(a + m) * (total + m) * x / (second * third)
        slope = -((a + m) * d_total + of_a * (total + m)) * x / (second * third)
        slope = slope - value * of_a * (1.0 / second + 1.0 / third)
        inverse = 1.0 + value * d
        d_inverse = slope * d + value * dd
        d = 1.0 / inverse
        dd = -d * d * d_inverse
        dc = (slope - value * dc / c) / c
        c = 1.0 + value / c
        ratio = c * d
        d_ratio = dc * d + c * dd
        dh = dh * ratio + h * d_ratio
        h = h * ratio
        if abs(ratio - 1.0) < 4.0 * _ROUNDING and abs(h * d_ratio) < 4.0 * _ROUNDING * (abs(dh) + _TINY):
            break
    log_beta = log_beta_function(a, b)
    factor = exp(a * log_x + b * log_rest - log_beta) / a
    digamma_total = digamma_positive(total)
    of_a_term = log_x - 1.0 / a - digamma_positive(a) + digamma_total
    of_b_term = log_rest - digamma_positive(b) + digamma_total
    return factor * ((of_a * of_a_term + of_b * of_b_term) * h + dh)


def log_beta_function(a, b):
    """Logarithm of the beta function of positive numbers."""
    return (
        call("lgamma", a, returns="double")
        + call("lgamma", b, returns="double")
        - call("lgamma", a + b, returns="double")
    )

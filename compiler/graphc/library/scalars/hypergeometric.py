# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: derivatives of the Gauss hypergeometric function with respect to its parameters, z <= 1."""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.native.builtins import call, exp, floor, isnan

NAN = math.nan
_ROUNDING = 2.0**-53
_MOST_TERMS = 1_000_000


@scalar
def hyp2f1_da(a, b, c, z):
    """Derivative of F(a, b; c; z) with respect to a."""
    if isnan(a + b + c) or not z <= 1.0:
        return NAN
    if z == 1.0 and not is_pole(b):
        return of_a_at_one(a, b, c, c - a - b)
    if z >= 0.0:
        return series(a, b, c, z, 1.0, 0.0, 0.0)
    # F(a, b; c; z) = (1 - z)^-a F(a, c - b; c; z/(z - 1))
    log_factor = call("log1p", -z, returns="double")
    w = z / (z - 1.0)
    slope = series(a, c - b, c, w, 1.0, 0.0, 0.0)
    return exp(-a * log_factor) * (slope - log_factor * series(a, c - b, c, w, 0.0, 0.0, 0.0))


@scalar
def hyp2f1_dc(a, b, c, z):
    """Derivative of F(a, b; c; z) with respect to c."""
    if isnan(a + b + c) or not z <= 1.0:
        return NAN
    if z == 1.0 and not is_pole(a) and not is_pole(b):
        return of_c_at_one(a, b, c, c - a - b)
    if z >= 0.0:
        return series(a, b, c, z, 0.0, 0.0, 1.0)
    log_factor = call("log1p", -z, returns="double")
    w = z / (z - 1.0)
    return exp(-a * log_factor) * series(a, c - b, c, w, 0.0, 1.0, 1.0)


def is_pole(x):
    """True if the gamma function has a pole: a numerator at one ends the series."""
    return x <= 0.0 and x == floor(x)


def psi(x):
    return call("special_d_psi", x, returns="double")


def gamma(x):
    return call("special_d_gamma", x, returns="double")


def slope_of_rgamma(x):
    """psi(x) / gamma(x), the derivative of -1 / gamma(x), at a pole x = -k: (-1)^(k + 1) k!."""
    half = 0.5 * x
    is_even = half == floor(half)
    return -gamma(1.0 - x) if is_even else gamma(1.0 - x)


def of_a_at_one(a, b, c, s):
    """F(a, b; c; 1) = gamma(c) gamma(s) / (gamma(c - a) gamma(c - b)) with s = c - a - b > 0 (Gauss)."""
    if not s > 0.0 or is_pole(c):
        return NAN
    if is_pole(c - a):
        return 0.0 if is_pole(c - b) else gamma(c) * gamma(s) / gamma(c - b) * slope_of_rgamma(c - a)
    return call("special_dddd_hyp2f1", a, b, c, 1.0, returns="double") * (psi(c - a) - psi(s))


def of_c_at_one(a, b, c, s):
    """As `of_a_at_one`."""
    if not s > 0.0 or is_pole(c):
        return NAN
    if is_pole(c - a):
        return 0.0 if is_pole(c - b) else -gamma(c) * gamma(s) / gamma(c - b) * slope_of_rgamma(c - a)
    if is_pole(c - b):
        return -gamma(c) * gamma(s) / gamma(c - a) * slope_of_rgamma(c - b)
    slope = psi(c) + psi(s) - psi(c - a) - psi(c - b)
    return call("special_dddd_hyp2f1", a, b, c, 1.0, returns="double") * slope


def series(a, b, c, z, of_a, of_b, of_c):
    """Sum of (a)_n (b)_n / ((c)_n n!) z^n, or its derivative in the direction (of_a, of_b, of_c)."""
    term = 1.0
    slope = 0.0
    total = 1.0
    d_total = 0.0
    wanted = of_a + of_b + of_c
    for n in range(_MOST_TERMS):
        if c + n == 0.0:
            return NAN
        ratio = (a + n) * (b + n) / ((c + n) * (n + 1.0)) * z
        d_ratio = (of_a * (b + n) + of_b * (a + n)) / ((c + n) * (n + 1.0)) * z - of_c * ratio / (c + n)
        slope = slope * ratio + term * d_ratio
        term = term * ratio
        total += term
        d_total += slope
        if n > 1.0 + abs(a) + abs(b) + abs(c):
            if abs(term) <= _ROUNDING * abs(total) and abs(slope) <= _ROUNDING * abs(d_total):
                return total if wanted == 0.0 else d_total
    return NAN

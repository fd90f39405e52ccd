# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: the parts of the inverse sine, cosine and hyperbolic tangent of complex numbers.

Source: T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, "Implementing the complex arcsine and arccosine
functions using exception handling", ACM Transactions on Mathematical Software 23, 1997. The imaginary part is
not negative, and but for the inverse cosine neither is the real part; signs are the caller's business.
"""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.native.builtins import call, isnan, log, sqrt

INF, NAN = math.inf, math.nan
_HALF_PI = math.pi / 2
_LN2 = math.log(2.0)
_ROUNDING = 2.0**-53
# Beyond the first number squares overflow; below the second they are lost beside 1, and underflow.
_LARGE = 1e150
_SMALL = 1e-30
# Quotients above which an inverse sine is inaccurate, and sums above which a logarithm needs no log1p.
_CROSSOVER = 0.6417
_FAR = 1.5


@scalar
def arcsin_real(x, y):
    """Real part of arcsin(x + i y)."""
    if isnan(x) or isnan(y):
        return x if x == 0.0 else NAN
    if max(x, y) > _LARGE:
        return call("atan2", x, y, returns="double")
    if y <= _ROUNDING * abs(x - 1.0):
        return call("asin", min(x, 1.0), returns="double")
    if x == 1.0 and y < _SMALL:
        return _HALF_PI - sqrt(y)
    r = sqrt((x + 1.0) * (x + 1.0) + y * y)
    s = sqrt((x - 1.0) * (x - 1.0) + y * y)
    a = 0.5 * (r + s)
    if x <= _CROSSOVER * a:
        return call("asin", x / a, returns="double")
    return call("atan2", x, beside(x, y, r, s, a), returns="double")


@scalar
def arccos_real(x, y):
    """Real part of arccos(x + i y), for x of any sign."""
    if isnan(x) or isnan(y):
        return _HALF_PI if x == 0.0 else NAN
    w = abs(x)
    if max(w, y) > _LARGE:
        return call("atan2", y, x, returns="double")
    if y <= _ROUNDING * abs(w - 1.0):
        if w < 1.0:
            return call("acos", x, returns="double")
        near = y / (sqrt(w - 1.0) * sqrt(w + 1.0)) if w > 1.0 else 0.0
        return near if x > 0.0 else math.pi - near
    if w == 1.0 and y < _SMALL:
        return sqrt(y) if x > 0.0 else math.pi - sqrt(y)
    r = sqrt((w + 1.0) * (w + 1.0) + y * y)
    s = sqrt((w - 1.0) * (w - 1.0) + y * y)
    a = 0.5 * (r + s)
    if w <= _CROSSOVER * a:
        return call("acos", x / a, returns="double")
    return call("atan2", beside(w, y, r, s, a), x, returns="double")


def beside(x, y, r, s, a):
    """sqrt(a^2 - x^2) without cancellation, of the half sum a of the distances r and s from -1 and 1."""
    total = a + x
    if x <= 1.0:
        return sqrt(0.5 * total * (y * y / (r + (x + 1.0)) + (s + (1.0 - x))))
    return y * sqrt(0.5 * (total / (r + (x + 1.0)) + total / (s + (x - 1.0))))


@scalar
def arcsin_imag(x, y):
    """Imaginary part of arcsin(x + i y), the real part of arccosh."""
    big = max(x, y)
    if isnan(x) or isnan(y):
        return INF if x == INF or y == INF else NAN
    if big == INF:
        return INF
    if big > _LARGE:
        ratio = min(x, y) / big
        return _LN2 + log(big) + 0.5 * call("log1p", ratio * ratio, returns="double")
    if y <= _ROUNDING * abs(x - 1.0):
        if x < 1.0:
            return y / sqrt((1.0 - x) * (1.0 + x))
        above = x - 1.0
        return call("log1p", above + sqrt(above * (x + 1.0)), returns="double")
    if x == 1.0 and y < _SMALL:
        return sqrt(y)
    r = sqrt((x + 1.0) * (x + 1.0) + y * y)
    s = sqrt((x - 1.0) * (x - 1.0) + y * y)
    a = 0.5 * (r + s)
    if a > _FAR:
        return log(a + sqrt((a - 1.0) * (a + 1.0)))
    right = y * y / (s + (1.0 - x)) if x < 1.0 else s + (x - 1.0)
    above = 0.5 * (y * y / (r + (x + 1.0)) + right)
    return call("log1p", above + sqrt(above * (a + 1.0)), returns="double")


@scalar
def arctanh_real(x, y):
    """Real part of arctanh(x + i y): log1p(4 x / ((1 - x)^2 + y^2)) / 4."""
    if x == INF or y == INF:
        return 0.0
    if isnan(x) or isnan(y):
        return x if x == 0.0 else NAN
    if max(x, y) > _LARGE:
        # x / (x^2 + y^2)
        if x >= y:
            return 1.0 / (x + y * (y / x))
        return (x / y) / (y + x * (x / y))
    if x == 1.0 and y < 1e-8:
        return 0.5 * (_LN2 - log(y)) if y > 0.0 else INF
    rest = 1.0 - x
    return 0.25 * call("log1p", 4.0 * x / (rest * rest + y * y), returns="double")


@scalar
def arctanh_imag(x, y):
    """Imaginary part of arctanh(x + i y): half the angle of (1 - x)(1 + x) - y^2 + 2 i y."""
    if y == INF or (x == INF and not isnan(y)):
        return _HALF_PI
    if isnan(x) or isnan(y):
        return NAN
    if max(x, y) > _LARGE:
        return _HALF_PI
    if x == 1.0:
        return 0.5 * call("atan2", 2.0, -y, returns="double") if y > 0.0 else y
    return 0.5 * call("atan2", y + y, (1.0 - x) * (1.0 + x) - y * y, returns="double")

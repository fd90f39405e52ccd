# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: inverse functions, the error function's complement and remainders without a C library."""
# mypy: ignore-errors

from __future__ import annotations

import math

from graphc.library.scalars import scalar
from graphc.library.scalars.long_powers import INF, LN2, NAN, bits_of, number_of
from graphc.native.builtins import call, cast, copysign, exp, fma, isnan, log, sqrt, unrolled

_HALF_PI, _HALF_PI_LOW = math.pi / 2, 6.123233995736766e-17
_TINY = 2.0**-28
_HUGE = 2.0**28
_ONE, _FRACTION = 1 << 52, (1 << 52) - 1
# Of (1 + 2 x) exp(x^2) erfc(x) in polynomials of P. L. Chebyshev of (x - 3.75) / (x + 3.75).
_CENTRE = 3.75
_COMPLEMENT = (
    *(1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189),
    *(-0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086),
    *(-6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07),
    *(1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11),
    *(2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14),
    *(3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17),
    *(5.068148904796111e-17, -2.2370566594359995e-18, -2.187342944303018e-18),
)
_TERMS = len(_COMPLEMENT)


@scalar
def asinh(x):
    """Inverse hyperbolic sine."""
    a = abs(x)
    if a < _TINY or isnan(x) or a == INF:
        return x
    if a > _HUGE:
        return copysign(log(a) + LN2, x)
    square = a * a
    return copysign(call("log1p", a + square / (1.0 + sqrt(square + 1.0)), returns="double"), x)


@scalar
def acosh(x):
    """Inverse hyperbolic cosine."""
    if not x >= 1.0:
        return NAN
    if x > _HUGE:
        return log(x) + LN2
    above = x - 1.0
    return call("log1p", above + sqrt(above * (above + 2.0)), returns="double")


@scalar
def atanh(x):
    """Inverse hyperbolic tangent."""
    a = abs(x)
    if a < _TINY:
        return x
    if not a <= 1.0:
        return NAN
    if a == 1.0:
        return copysign(INF, x)
    return copysign(0.5 * call("log1p", 2.0 * a / (1.0 - a), returns="double"), x)


@scalar
def atan2(y, x):
    """The angle of the point (x, y)."""
    if isnan(x) or isnan(y):
        return NAN
    a, b = abs(x), abs(y)
    if b == 0.0:
        angle, rest = 0.0, 0.0
    elif a == b:
        angle, rest = 0.5 * _HALF_PI, 0.5 * _HALF_PI_LOW
    elif b < a:
        angle, rest = slope(b, a), 0.0
    else:
        below = slope(a, b)
        angle = _HALF_PI - below
        rest = ((_HALF_PI - angle) - below) + _HALF_PI_LOW
    if copysign(1.0, x) < 0.0:
        whole = 2.0 * _HALF_PI
        turned = whole - angle
        rest = ((whole - turned) - angle) + (2.0 * _HALF_PI_LOW - rest)
        angle = turned
    return copysign(angle + rest, y)


def slope(b, a):
    """The inverse tangent of b / a, for b below a."""
    if a == INF:
        return 0.0
    return call("atan", b / a, returns="double")


def scaled_complement(x):
    """exp(x^2) erfc(x) for x that are not negative."""
    if x == INF:
        return 0.0
    z = (x - _CENTRE) / (x + _CENTRE)
    # C. W. Clenshaw's recurrence.
    last = 0.0
    now = 0.0
    for i in unrolled(_TERMS - 1):
        following = fma(2.0 * z, now, _COMPLEMENT[_TERMS - 1 - i] - last)
        last = now
        now = following
    value = fma(z, now, _COMPLEMENT[0] - last)
    return value / (1.0 + 2.0 * x)


@scalar
def erfc(x):
    """1 - erf(x), without cancellation."""
    if isnan(x):
        return x
    a = abs(x)
    if a < 0.5:
        return 1.0 - call("erf", x, returns="double")
    if a > 28.0:
        return 0.0 if x > 0.0 else 2.0
    square = a * a
    # In two steps, as the first one does not underflow.
    power = exp(-0.5 * square)
    value = power * (scaled_complement(a) * (1.0 - fma(a, a, -square))) * power
    return value if x > 0.0 else 2.0 - value


@scalar
def fmod(x, y):
    """The remainder of a division that is cut off, exactly: long division, eleven binary digits a step."""
    if isnan(x) or isnan(y) or abs(x) == INF or y == 0.0:
        return NAN
    a, b = abs(x), abs(y)
    if a < b:
        return x
    first, second = bits_of(a), bits_of(b)
    divisor, least = digits(second), exponent_of(second)
    rest = digits(first) % divisor
    left = exponent_of(first) - least
    while left > 0 and rest != 0:
        step = min(left, 11)
        rest = (rest << cast(step, "u64")) % divisor
        left = left - step
    return copysign(cast(rest, "f8") * unit(least), x)


def digits(bits):
    """The digits of an encoding as an integer."""
    return (bits & _FRACTION) | _ONE if bits >> 52 != 0 else bits


def exponent_of(bits):
    """The exponent of an encoding; subnormal numbers have that of the smallest normal one."""
    return max(cast(bits >> 52, "i64"), 1)


def unit(exponent):
    """2 ** (exponent - 1075), which may be subnormal."""
    if exponent > 52:
        return number_of(cast(exponent - 52, "u64") << 52)
    return number_of(cast(1, "u64") << cast(exponent - 1, "u64"))

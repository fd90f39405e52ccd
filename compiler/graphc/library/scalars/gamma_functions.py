# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: the gamma function and its logarithm, for code without a C library.

Arguments are moved above 20 by recurrence, whose product has 31 digits, and J. Stirling's series does the
rest (Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.40).
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from fractions import Fraction

from graphc.library.scalars import scalar
from graphc.library.scalars.circular import sine
from graphc.library.scalars.long_powers import INF, NAN, exponential, logarithm
from graphc.library.scalars.zeta import add, assign, divide, multiply, table
from graphc.native.builtins import apart, copysign, floor, fma, isnan, local, log, unrolled

_FAR = 20.0
_PI, _PI_LOW = math.pi, 1.2246467991473532e-16
_HALF_LOG_2PI, _HALF_LOG_2PI_LOW = 0.9189385332046728, -3.8782941580672414e-17
_LOG_PI, _LOG_PI_LOW = 1.1447298858494002, 1.0265951162707826e-17
(_TWELFTH,), (_TWELFTH_LOW,) = table([Fraction(1, 12)])
_STIRLING = (-1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_TERMS = len(_STIRLING)


@apart
def stirling(t, high, low):
    """t = log(gamma(high + low)) for numbers from 20 on."""
    add_half = local(2, "f8")
    logarithm(t, high)
    # A step of low adds as much as low times the logarithm; in its factor, low / high.
    assign(add_half, high, low)
    add(add_half, -0.5, 0.0)
    add(t, low / high, 0.0)
    multiply(t, add_half[0], add_half[1])
    add(t, -high, -low)
    add(t, _HALF_LOG_2PI, _HALF_LOG_2PI_LOW)
    inverse = 1.0 / high
    square = inverse * inverse
    rest = 0.0
    for i in unrolled(_TERMS):
        rest = fma(rest, square, _STIRLING[_TERMS - 1 - i])
    first = local(2, "f8")
    assign(first, _TWELFTH, _TWELFTH_LOW)
    divide(first, high, low)
    add(t, first[0], first[1])
    add(t, rest * inverse * square, 0.0)


@apart
def moved(z, product, x):
    """z = x + n from 20 on, and the product of x, x + 1, ..., x + n - 1."""
    assign(z, x, 0.0)
    assign(product, 1.0, 0.0)
    while z[0] < _FAR:
        multiply(product, z[0], z[1])
        add(z, 1.0, 0.0)


def sine_of_pi_times(part):
    """The sine of pi times a number up to a half."""
    size = abs(part)
    t = local(2, "f8")
    if size <= 0.25:
        assign(t, size, 0.0)
        multiply(t, _PI, _PI_LOW)
        return copysign(sine(t[0], t[1]), part)
    # cos(a) = 1 - 2 sin(a / 2)^2
    assign(t, 0.25 - 0.5 * size, 0.0)
    multiply(t, _PI, _PI_LOW)
    half = sine(t[0], t[1])
    return copysign(1.0 - 2.0 * half * half, part)


@scalar
def tgamma(x):
    """The gamma function."""
    if x == 0.0:
        return copysign(INF, x)
    if isnan(x) or x == INF:
        return x
    if x < 0.0 and floor(x) == x:
        return NAN
    if x > 172.0:
        return INF
    t = local(2, "f8")
    if x < -_FAR:
        # pi / (sin(pi x) gamma(1 - x)), whose sine is that of a small angle.
        if x < -190.0:
            return 0.0 if floor(0.5 * floor(x)) * 2.0 == floor(x) else -0.0
        whole = floor(x + 0.5)
        value = sine_of_pi_times(x - whole)
        if floor(0.5 * whole) * 2.0 != whole:
            value = -value
        z = local(2, "f8")
        assign(z, 1.0, 0.0)
        add(z, -x, 0.0)
        stirling(t, z[0], z[1])
        return exponential(-t[0], -t[1]) / value * _PI
    if abs(x) < 2.0**-60:
        return 1.0 / x
    z = local(2, "f8")
    product = local(2, "f8")
    moved(z, product, x)
    stirling(t, z[0], z[1])
    below = product[0]
    value = exponential(t[0], t[1]) / below
    return value - value * (product[1] / below)


@scalar
def lgamma(x):
    """The logarithm of the size of the gamma function; absolute errors next to its zeros are 1e-19."""
    if isnan(x) or abs(x) == INF:
        return abs(x)
    if x <= 0.0 and floor(x) == x:
        return INF
    if x == 1.0 or x == 2.0:
        return 0.0
    if abs(x) < 2.0**-60:
        return -log(abs(x))
    t = local(2, "f8")
    other = local(2, "f8")
    z = local(2, "f8")
    if x > 1e17:
        logarithm(t, x)
        add(t, -1.0, 0.0)
        return t[0] * x
    if x < -_FAR:
        # log(pi / |sin(pi x)|) - log(gamma(1 - x))
        assign(z, 1.0, 0.0)
        add(z, -x, 0.0)
        stirling(t, z[0], z[1])
        logarithm(other, abs(sine_of_pi_times(x - floor(x + 0.5))))
        add(other, -_LOG_PI, -_LOG_PI_LOW)
        add(t, other[0], other[1])
        return -t[0]
    product = local(2, "f8")
    moved(z, product, x)
    stirling(t, z[0], z[1])
    logarithm(other, abs(product[0]))
    add(other, product[1] / product[0], 0.0)
    add(t, -other[0], -other[1])
    return t[0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logarithms with 20 digits and exponentials of such numbers, for functions that no library computes.

Numbers are sums t[0] + t[1] as in `graphc.library.scalars.zeta`.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from fractions import Fraction

from graphc.library.scalars import scalar
from graphc.library.scalars.zeta import add, assign, divide, multiply, table
from graphc.native.builtins import apart, cast, copysign, floor, fma, isnan, local, unrolled, view

INF, NAN = math.inf, math.nan
LN2, LN2_LOW = math.log(2.0), 2.3190468138462996e-17
_LOG2_E = 1.0 / LN2
# The bits of 1.0 and of the fraction; the exponent of the smallest normal number, negated.
_ONE, _FRACTION, _BIAS = 1023 << 52, (1 << 52) - 1, 1022
_SQRT_2 = math.sqrt(2.0)
_SCALE, _SCALE_BITS = 2.0**54, 54
_SMALLEST = 2.0**-1022
# Coefficients of log((1 + s) / (1 - s)) / (2 s), and of the exponential, the last one first.
_FIRST, _FIRST_LOW = table(Fraction(1, n) for n in (5, 3))
_TAIL = tuple(1.0 / (2 * k + 1) for k in range(14, 2, -1))
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(14, 1, -1))
_TAIL_TERMS, _EXPONENTIAL_TERMS = len(_TAIL), len(_EXPONENTIAL)


def bits_of(x):
    """The encoding of a number, as u64."""
    memory = local(1, "f8")
    memory[0] = x
    return view(memory, "u64")[0]


def number_of(bits):
    """The number of an encoding."""
    memory = local(1, "u64")
    memory[0] = bits
    return view(memory, "f8")[0]


def power_of_2(n):
    """2.0 ** n for -1022 <= n <= 1023."""
    return number_of(cast(n + (_BIAS + 1), "u64") << 52)


def times_power_of_2(x, n):
    """x 2^n for |n| below 2200, rounded once."""
    first = min(max(n, -700), 700)
    second = min(max(n - first, -700), 700)
    return x * power_of_2(first) * power_of_2(second) * power_of_2(n - first - second)


@apart
def logarithm(t, x):
    """t = log(x), with 20 digits, for finite x > 0: the series of the inverse hyperbolic tangent."""
    scaled = x * _SCALE if x < _SMALLEST else x
    bits = bits_of(scaled)
    exponent = cast(bits >> 52, "i64") - (_BIAS + 1)
    if x < _SMALLEST:
        exponent = exponent - _SCALE_BITS
    m = number_of((bits & _FRACTION) | _ONE)
    if m > _SQRT_2:
        m = 0.5 * m
        exponent = exponent + 1
    f = m - 1.0
    s = local(2, "f8")
    below = local(2, "f8")
    assign(s, f, 0.0)
    assign(below, 2.0, f)
    divide(s, below[0], below[1])
    square = local(2, "f8")
    assign(square, s[0], s[1])
    multiply(square, s[0], s[1])
    tail = 0.0
    for i in unrolled(_TAIL_TERMS):
        tail = fma(tail, square[0], _TAIL[i])
    total = local(2, "f8")
    assign(total, square[0] * tail, 0.0)
    add(total, _FIRST[0], _FIRST_LOW[0])
    multiply(total, square[0], square[1])
    add(total, _FIRST[1], _FIRST_LOW[1])
    multiply(total, square[0], square[1])
    multiply(total, s[0], s[1])
    add(total, s[0], s[1])
    power = cast(exponent, "f8")
    assign(t, power, 0.0)
    multiply(t, LN2, LN2_LOW)
    add(t, 2.0 * total[0], 2.0 * total[1])


@apart
def exponential(high, low):
    """exp(high + low), rounded to a double."""
    if high > 720.0:
        return INF
    if high < -760.0:
        return 0.0
    n = floor(high * _LOG2_E + 0.5)
    t = local(2, "f8")
    step = local(2, "f8")
    assign(t, high, low)
    assign(step, -n, 0.0)
    multiply(step, LN2, LN2_LOW)
    add(t, step[0], step[1])
    r = t[0]
    total = 0.0
    for i in unrolled(_EXPONENTIAL_TERMS):
        total = fma(total, r, _EXPONENTIAL[i])
    value = 1.0 + (r + (t[1] + r * r * total))
    return times_power_of_2(value, cast(n, "i64"))


def is_odd(y):
    """True if a number is an odd integer."""
    half = 0.5 * y
    return floor(y) == y and floor(half) != half


@scalar
def pow(x, y):
    """x to the power of y, as Annex F of the C standard has it."""
    if x == 1.0 or y == 0.0:
        return 1.0
    if isnan(x) or isnan(y):
        return NAN
    size = abs(x)
    if abs(y) == INF:
        if size == 1.0:
            return 1.0
        return INF if (size > 1.0) == (y > 0.0) else 0.0
    sign = -1.0 if is_odd(y) and copysign(1.0, x) < 0.0 else 1.0
    if size == 0.0 or size == INF:
        return sign * (INF if (size > 1.0) == (y > 0.0) else 0.0)
    if x < 0.0 and floor(y) != y:
        return NAN
    # Powers of numbers that differ from 1 by more than the rounding error overflow or vanish from here on.
    y = min(max(y, -1e20), 1e20)
    t = local(2, "f8")
    logarithm(t, size)
    multiply(t, y, 0.0)
    return sign * exponential(t[0], t[1])


@scalar
def cbrt(x):
    """Cube root: a third of the exponent, and Newton's steps."""
    size = abs(x)
    if size == 0.0 or isnan(x) or size == INF:
        return x
    scale = 1.0
    if size < _SMALLEST:
        size = size * _SCALE
        scale = 2.0**-18
    third = (bits_of(size) // 3) + (682 << 52)
    root = number_of(third)
    for _i in unrolled(5):
        root = root - (root * root * root - size) / (3.0 * root * root)
    square = root * root
    rest = fma(root, root, -square)
    error = fma(square, root, -size) + rest * root
    root = root - error / (3.0 * square)
    return copysign(root * scale, x)

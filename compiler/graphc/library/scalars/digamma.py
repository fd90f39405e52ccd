# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernel: the digamma function of negative arguments, next to its zeros with 31 digits within."""
# mypy: ignore-errors

from __future__ import annotations

import math
from fractions import Fraction

from graphc.library.scalars import correction
from graphc.library.scalars.zeta import INF, NAN, add, assign, divide, multiply, table
from graphc.native.builtins import copysign, floor, fma, local, unrolled

_PI, _PI_LOW = math.pi, 1.2246467991473532e-16
_LN2, _LN2_LOW = math.log(2.0), 2.3190468138462996e-17
_SQRT2 = math.sqrt(2.0)
# Coefficients of the sine, the last one first.
_SINE = tuple((-1) ** k * _PI ** (2 * k) / math.factorial(2 * k + 1) for k in range(11, 0, -1))
# Numbers so close to a zero that 31 digits within are not enough, and the values there.
_ZERO_0, _VALUE_0 = -0.5040830082644554, 7.289763902976895e-17
_ZERO_1, _VALUE_1 = -1.5734984731623904, 1.5649788481838454e-16
_ZERO_5, _VALUE_5 = -5.6671624415568855, 4.1867794464524804e-17
# From here on the terms of the asymptotic series have 32 digits.
_ASYMPTOTIC = 24.0
_TERMS = 19


def _bernoulli(count):
    """B(0), B(1), ... by their recurrence."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        numbers.append(-sum(math.comb(n + 1, k) * numbers[k] for k in range(n)) / (n + 1))
    return numbers


# Coefficients of power series, the last one first: cosine and sine, term by term; psi; the logarithm.
_CIRCULAR, _CIRCULAR_LOW = table(
    Fraction((-1) ** (k // 2), math.factorial(k))
    for k in (2 * i + part for i in reversed(range(_TERMS)) for part in (0, 1))
)
_SERIES, _SERIES_LOW = table(x / (2 * k) for k, x in reversed([*enumerate(_bernoulli(34)[::2])][1:]))
_ODD, _ODD_LOW = table(Fraction(2, 2 * k + 1) for k in reversed(range(21)))
_SERIES_TERMS, _ODD_TERMS = len(_SERIES), len(_ODD)


@correction
def digamma_below(value, needed, x):
    """psi(1 - x) - pi cot(pi x) for x <= 0, of psi(1 - x) = value; again where it is small beside these."""
    if needed == 0.0:
        return value
    if x == 0.0:
        return copysign(INF, -x)
    if x == floor(x):
        return NAN
    if x == _ZERO_0:
        return _VALUE_0
    if x == _ZERO_1:
        return _VALUE_1
    if x == _ZERO_5:
        return _VALUE_5
    # Only the fraction enters, whose cotangent is that of a small angle.
    distance = x - floor(x + 0.5)
    cosine = sine(0.5 - abs(distance))
    divisor = sine(distance)
    scaled = cosine * _PI
    quotient = scaled / divisor
    reflected = value - quotient
    if abs(distance) > 1e-280:
        reflected -= (fma(cosine, _PI, -scaled) + fma(-quotient, divisor, scaled)) / divisor
    if abs(reflected) >= 0.45 * value + 0.6:
        return reflected
    t = local(2, "f8")
    s = local(2, "f8")
    cotangent(t, s, distance)
    total = local(2, "f8")
    assign(total, -t[0], -t[1])
    digamma_of_one_minus(x, total, t, s)
    return total[0]


def sine(x):
    """sin(pi x) / pi for |x| <= 1/2: x less a series that is smaller."""
    square = x * x
    series = 0.0
    for i in unrolled(len(_SINE)):
        series = fma(series, square, _SINE[i])
    return fma(x * square, series, x)


def cotangent(t, s, distance):
    """t = pi cos(pi distance) / sin(pi distance), by the power series of both; s is overwritten."""
    square = local(2, "f8")
    assign(s, _PI, _PI_LOW)
    multiply(s, distance, 0.0)
    angle, angle_low = s[0], s[1]
    assign(square, angle, angle_low)
    multiply(square, angle, angle_low)
    assign(t, 0.0, 0.0)
    assign(s, 0.0, 0.0)
    for i in range(0, 2 * _TERMS, 2):
        multiply(t, square[0], square[1])
        add(t, _CIRCULAR[i], _CIRCULAR_LOW[i])
        multiply(s, square[0], square[1])
        add(s, _CIRCULAR[i + 1], _CIRCULAR_LOW[i + 1])
    multiply(s, angle, angle_low)
    multiply(t, _PI, _PI_LOW)
    divide(t, s[0], s[1])


def digamma_of_one_minus(x, total, t, z):
    """total += psi(1 - x): recurrence, then the asymptotic series; t and z are overwritten."""
    assign(z, 1.0, 0.0)
    add(z, -x, 0.0)
    # The sum of 1 / z is numerator / denominator.
    denominator = local(2, "f8")
    assign(denominator, 1.0, 0.0)
    assign(t, 0.0, 0.0)
    while z[0] < _ASYMPTOTIC:
        multiply(t, z[0], z[1])
        add(t, denominator[0], denominator[1])
        multiply(denominator, z[0], z[1])
        add(z, 1.0, 0.0)
    divide(t, denominator[0], denominator[1])
    add(total, -t[0], -t[1])
    inverse = local(2, "f8")
    assign(inverse, 1.0, 0.0)
    divide(inverse, z[0], z[1])
    add(total, -0.5 * inverse[0], -0.5 * inverse[1])
    multiply(inverse, inverse[0], inverse[1])
    assign(t, 0.0, 0.0)
    for i in range(_SERIES_TERMS):
        add(t, _SERIES[i], _SERIES_LOW[i])
        multiply(t, inverse[0], inverse[1])
    add(total, -t[0], -t[1])
    logarithm(t, inverse, z)
    add(total, t[0], t[1])


def logarithm(t, s, z):
    """t = log(z) for z >= 1: 2 atanh(s) with s = (m - 1) / (m + 1), for z = 2^e m. Overwrites s and z."""
    exponent = 0.0
    scale = 1.0
    while z[0] * scale > _SQRT2:
        scale *= 0.5
        exponent += 1.0
    m, m_low = z[0] * scale, z[1] * scale
    assign(z, m, m_low)
    add(z, 1.0, 0.0)
    assign(s, m, m_low)
    add(s, -1.0, 0.0)
    divide(s, z[0], z[1])
    assign(z, s[0], s[1])
    multiply(z, s[0], s[1])
    assign(t, 0.0, 0.0)
    for i in range(_ODD_TERMS):
        multiply(t, z[0], z[1])
        add(t, _ODD[i], _ODD_LOW[i])
    multiply(t, s[0], s[1])
    assign(s, _LN2, _LN2_LOW)
    multiply(s, exponent, 0.0)
    add(t, s[0], s[1])

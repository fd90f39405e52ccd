# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels: sine, cosine and tangent of arguments of any size, for code without a C library.

The argument is reduced by multiples of half of pi: where it is small, by pi in three parts; else by as many
digits of 2 / pi as it has (M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", ACM
SIGNUM Newsletter 18, 1983).
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from fractions import Fraction

from graphc.library.scalars import scalar
from graphc.library.scalars.long_powers import bits_of
from graphc.library.scalars.zeta import add, assign, multiply
from graphc.native.builtins import apart, cast, floor, fma, local, unrolled

_WORDS, _WORD = 40, (1 << 32) - 1
_TWO_OVER_PI = 2.0 / math.pi
# Above this number of halves of pi, the products of the three parts are not accurate enough.
_NEAR = 1e5


def _pi():
    """pi with 1400 bits, by J. Machin's formula."""
    bits = 1420

    def arctangent(n):
        total, term, k = 0, (1 << bits) // n, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term //= n * n
            k += 1
        return total

    return Fraction(4 * (4 * arctangent(5) - arctangent(239)), 1 << bits)


_PI = _pi()


def _parts(x, count):
    found = []
    for _ in range(count):
        found.append(float(x))
        x -= Fraction(found[-1])
    return found


_HALF_1, _HALF_2, _HALF_3 = _parts(_PI / 2, 3)
# The digits of 2 / pi to the base 2^32.
_DIGITS = tuple(
    float((int((2 << (32 * _WORDS)) / _PI) >> (32 * (_WORDS - 1 - i))) & _WORD) for i in unrolled(_WORDS)
)
_SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(9, 0, -1))
_COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9, 1, -1))
_SINE_TERMS, _COSINE_TERMS = len(_SINE), len(_COSINE)


@apart
def reduced(t, x):
    """t = x less a multiple of half of pi, at most a quarter of pi; returns the multiple modulo 4."""
    k = floor(x * _TWO_OVER_PI + 0.5)
    if abs(k) > _NEAR:
        return reduced_far(t, x)
    product = k * _HALF_1
    assign(t, x - product, 0.0)
    add(t, -fma(k, _HALF_1, -product), 0.0)
    second = k * _HALF_2
    add(t, -second, -fma(k, _HALF_2, -second))
    add(t, -k * _HALF_3, 0.0)
    return cast(k, "i64") & 3


def digits_at(place):
    """32 binary digits of 2 / pi, from one on."""
    word, shift = place >> 5, cast(place & 31, "u64")
    first, second = cast(_DIGITS[word], "u64"), cast(_DIGITS[word + 1], "u64")
    return (((first << 32) | second) >> (32 - shift)) & _WORD


@apart
def reduced_far(t, x):
    """As `reduced`, by the product of the digits of x with those digits of 2 / pi that matter."""
    bits = bits_of(abs(x))
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    # x = mantissa 2^exponent; digits above the last two before the point are multiples of 4.
    exponent = cast(bits >> 52, "i64") - 1075
    low, high = mantissa & _WORD, mantissa >> 32
    place = exponent - 2
    words = local(6, "u64")
    # Digits at places before the point are 0.
    for i in unrolled(6):
        at = place + 32 * (5 - i)
        words[i] = cast(0, "u64")
        if at >= 0:
            words[i] = digits_at(at)
        elif at > -32:
            words[i] = digits_at(0) >> cast(-at, "u64")
    carry = cast(0, "u64")
    for i in unrolled(6):
        digits = words[i] * low + carry
        carry = digits >> 32
        lower = digits & _WORD
        words[i] = (words[i] << 32) | lower
    carry = cast(0, "u64")
    before = cast(0, "u64")
    for i in unrolled(6):
        digits = before * high + (words[i] & _WORD) + carry
        before = words[i] >> 32
        carry = digits >> 32
        words[i] = digits & _WORD
    quadrant = cast(words[5] >> 30, "i64")
    first = (words[5] << 34) | (words[4] << 2) | (words[3] >> 30)
    second = (words[3] << 34) | (words[2] << 2) | (words[1] >> 30)
    # A fraction of a half or more is that less 1, of the next quadrant.
    signed = cast(first, "i64")
    if signed < 0:
        quadrant = quadrant + 1
    assign(t, cast(signed >> 32, "f8") * 2.0**-32, 0.0)
    add(t, cast(first & _WORD, "f8") * 2.0**-64, 0.0)
    add(t, cast(second >> 32, "f8") * 2.0**-96, 0.0)
    add(t, cast(second & _WORD, "f8") * 2.0**-128, 0.0)
    multiply(t, _HALF_1, _HALF_2)
    if x < 0.0:
        assign(t, -t[0], -t[1])
        quadrant = -quadrant
    return quadrant & 3


def sine(high, low):
    """The sine of a number up to a quarter of pi."""
    square = high * high
    total = 0.0
    for i in unrolled(_SINE_TERMS):
        total = fma(total, square, _SINE[i])
    return high + (high * square * total + low * (1.0 - 0.5 * square))


def cosine(high, low):
    """The cosine of a number up to a quarter of pi."""
    square = high * high
    total = 0.0
    for i in unrolled(_COSINE_TERMS):
        total = fma(total, square, _COSINE[i])
    half = 0.5 * square
    rest = 1.0 - half
    return rest + (((1.0 - rest) - half) + (square * square * total - high * low))


def turned(x, more):
    """The sine of x + more pi / 2."""
    if not abs(x) < math.inf:
        return math.nan
    t = local(2, "f8")
    quadrant = (reduced(t, x) + more) & 3
    value = cosine(t[0], t[1]) if quadrant & 1 == 1 else sine(t[0], t[1])
    return -value if quadrant > 1 else value


@scalar
def sin(x):
    """Sine."""
    return x if x == 0.0 else turned(x, 0)


@scalar
def cos(x):
    """Cosine."""
    return turned(x, 1)


@scalar
def tan(x):
    """Tangent."""
    if x == 0.0:
        return x
    if not abs(x) < math.inf:
        return math.nan
    t = local(2, "f8")
    quadrant = reduced(t, x)
    below, above = cosine(t[0], t[1]), sine(t[0], t[1])
    return -below / above if quadrant & 1 == 1 else above / below

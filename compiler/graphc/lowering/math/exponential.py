# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, exp2, expm1, tanh, sinh and cosh without branches.

All reduce to `x = k ln2 + r` with an integer `k` and `|r| <= ln2 / 2` (Cody and Waite, Software Manual for
the Elementary Functions, 1980). `k` is found by adding 1.5 * 2^mantissa plus an exponent offset: the low
bits of the sum then are the exponent field of a power of two, and one shift makes it a float. No conversion
instruction is needed.

erf without branches.
"""

from __future__ import annotations

from fractions import Fraction

from graphc.lowering.math.builder import LN2, LOG2_E, Builder, Number
from graphc.lowering.math.coefficients import COSH, ERF, EXP, EXPM1, SINH

# Beyond these the result is 0, -1, 1 or infinity in every rounding; the arguments are clamped to keep
# exponents in range.
_EXP_RANGE = {"f64": (-746.0, 710.0), "f32": (-104.5, 89.0)}
_EXP2_RANGE = {"f64": (-1076.0, 1025.0), "f32": (-151.0, 129.0)}
_EXPM1_RANGE = {"f64": (-40.0, 710.0), "f32": (-20.0, 89.0)}
_TANH_LARGEST = {"f64": 20.0, "f32": 10.0}
_SINH_LARGEST = {"f64": 710.5, "f32": 89.5}
_TINY = {"f64": 2.0**-54, "f32": 2.0**-25}


def exp(b: Builder, x: Number) -> Number:
    bits, r, _ = reduce(b, _clamp(b, x, _EXP_RANGE[b.format.name]), 2 * b.format.bias)
    square = r * r
    return _scale(b, b.fma(square, b.polynomial(r, EXP[b.format.name], square), r) + 1.0, bits)


def exp2(b: Builder, x: Number) -> Number:
    shifter = b.format.magic + 2 * b.format.bias
    x = _clamp(b, x, _EXP2_RANGE[b.format.name])
    shifted = x + shifter
    fraction = x - (shifted - shifter)
    ln2, ln2_rest = b.format.split(LN2)
    r = fraction * ln2
    rest = b.fma(fraction, ln2_rest, b.fma(fraction, ln2, -r))
    square = r * r
    p = r + b.fma(square, b.polynomial(r, EXP[b.format.name], square), rest)
    return _scale(b, p + 1.0, b.bits(shifted))


def expm1(b: Builder, x: Number) -> Number:
    name = b.format.name
    bits, r, r_low = reduce(b, _clamp(b, x, _EXPM1_RANGE[name]), b.format.bias - 1)
    half = b.from_bits(bits << b.format.mantissa)  # 2^(k-1), so that k = 1024 does not overflow
    y = b.fma(half, expm1_tail(b, r, r_low), b.fma(half, r, half - 0.5)) * 2.0
    return b.select(b.less(abs(x), _TINY[name]), x, y)  # keeps -0.0 and subnormal numbers


def tanh(b: Builder, x: Number) -> Number:
    """-m / (m + 2) with m = expm1(-2|x|) = 2^k p + 2^k - 1."""
    magnitude = b.at_most(abs(x), _TANH_LARGEST[b.format.name])
    bits, r, r_low = reduce(b, magnitude * -2.0, b.format.bias)
    power = b.from_bits(bits << b.format.mantissa)
    p = r + expm1_tail(b, r, r_low)
    return b.copysign(b.fma(-power, p, 1.0 - power) / b.fma(power, p, power + 1.0), x)


def sinh(b: Builder, x: Number) -> Number:
    y = _hyperbolic(b, abs(x), odd=True)
    return b.select(b.less(abs(x), _TINY[b.format.name]), x, b.copysign(y, x))


def cosh(b: Builder, x: Number) -> Number:
    return _hyperbolic(b, abs(x), odd=False)


def _clamp(b: Builder, x: Number, limits: tuple[float, float]) -> Number:
    return b.at_most(b.at_least(x, limits[0]), limits[1])


def reduce(b: Builder, x: Number, offset: int) -> tuple[Number, Number, Number]:
    """Bits whose low part is `k + offset`, then `r` and its rounding error.

    `k ln2_high` is exact because of its trailing zeros. What the caller does not use is dropped by LLVM.
    """
    shifter = b.format.magic + offset
    shifted = b.fma(x, b.const(LOG2_E), shifter)
    k = shifted - shifter
    ln2_high, ln2_low = b.format.split(LN2, low_zeros=12 if b.format.width == 64 else 9)
    high = b.fma(k, -ln2_high, x)
    r = b.fma(k, -ln2_low, high)
    return b.bits(shifted), r, b.fma(k, -ln2_low, high - r)


def expm1_tail(b: Builder, r: Number, r_low: Number) -> Number:
    """expm1(r + r_low) - r."""
    square = r * r
    return b.fma(square, b.polynomial(r, EXPM1[b.format.name], square), r_low)


def _scale(b: Builder, y: Number, bits: Number) -> Number:
    """`y * 2^k` for bits with offset `2 * bias`: two factors, so that overflow and underflow round once."""
    half = bits >> 1
    first = b.from_bits(half << b.format.mantissa)
    second = b.from_bits((bits - half) << b.format.mantissa)
    return y * first * second


def _hyperbolic(b: Builder, magnitude: Number, odd: bool) -> Number:
    """sinh or cosh of a non-negative number by the addition theorems, which need no division.

    With e = 2^k, sinh(x) = (e + 1/e)/2 sinh(r) + (e - 1/e)/2 cosh(r), and cosh(x) with the factors
    exchanged. A quarter of the factors keeps 2^1025 in range; the terms beyond `r` and 1 are added last.
    """
    fmt = b.format
    bits, r, r_low = reduce(b, b.at_most(magnitude, _SINH_LARGEST[fmt.name]), fmt.bias - 2)
    grow_bits = bits << fmt.mantissa
    grow = b.from_bits(grow_bits)
    mirror = b.integer((2 * fmt.bias - 4) << fmt.mantissa)
    decay = b.select(b.less(grow, 2.0 ** (fmt.mantissa + 8)), b.from_bits(mirror - grow_bits), 0.0)
    signed = -decay if odd else decay
    of_sinh, of_cosh = grow - signed, grow + signed
    rounding = (grow - of_cosh) + signed
    z = r * r
    sinh_tail = b.fma(r * z, b.polynomial(z, SINH[fmt.name]), r_low)
    cosh_tail = z * b.polynomial(z, COSH[fmt.name])
    rest = b.fma(of_sinh, sinh_tail, of_cosh * cosh_tail)
    return (b.fma(of_sinh, r, of_cosh) + (rest + rounding)) * 2.0


# Above these erf is 1 to working precision.
_LARGEST = {"f64": 5.95, "f32": 4.0}
_TWO_OVER_SQRT_PI = Fraction("1.128379167095512573896158903121545171688101258657997713688171443421284936882")


def erf(b: Builder, x: Number) -> Number:
    """1 - exp(-y) with y = -log(erfc(a)) = a (2/sqrt(pi) + a P(a)), one polynomial for all arguments.

    The polynomial needs less and less accuracy as erfc falls off, so that its high degree does no harm. `y`
    is carried as a sum of two numbers and the exponential keeps `exp(r) - 1`, so that small arguments lose
    nothing.
    """
    fmt = b.format
    a = b.at_most(abs(x), _LARGEST[fmt.name])
    high, low = fmt.split(_TWO_OVER_SQRT_PI)
    product = a * high
    rest = b.fma(a, low, b.fma(a, high, -product))
    square = a * a
    rest = b.fma(square, b.polynomial(a, ERF[fmt.name], square), rest)
    y = product + rest
    y_low = (product - y) + rest
    bits, r, r_low = reduce(b, -y, fmt.bias)
    power = b.from_bits(bits << fmt.mantissa)
    tail = expm1_tail(b, r, r_low - y_low)
    return b.copysign(b.fma(-power, tail, b.fma(-power, r, 1.0 - power)), x)

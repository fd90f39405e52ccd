# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""log, log2, log10 and log1p without branches.

`x = 2^e (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2), and with `s = f / (2 + f)`

    log(1 + f) = f - (h - s (h + z P(z))),  h = f^2 / 2,  z = s^2,

the form P. T. P. Tang and the fdlibm authors use: the leading term `f` is exact, and everything rounded is
small beside it.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from graphc.lowering.math.builder import LN2, LN10, LOG2_E, Builder, Number
from graphc.lowering.math.coefficients import LOG

_SQRT_HALF = 0.70710678118654752


def log(b: Builder, x: Number) -> Number:
    e, fraction = _decompose(b, x)
    half_square, tail = _tail(b, fraction)
    return _special(b, x, _sum(b, e, fraction, half_square, tail, None))


def log2(b: Builder, x: Number) -> Number:
    e, fraction = _decompose(b, x)
    return _special(b, x, _scaled(b, fraction, LOG2_E, e, None))


def log10(b: Builder, x: Number) -> Number:
    e, fraction = _decompose(b, x)
    two_high, two_low = b.format.split(LN2 / LN10, low_zeros=_zeros(b))
    return _special(b, x, _scaled(b, fraction, 1 / LN10, e * two_high, e * two_low))


def log1p(b: Builder, x: Number) -> Number:
    """The logarithm of the rounded `1 + x`, with the rounding error carried into the fraction."""
    big, small = b.at_least(x, 1.0), b.at_most(x, 1.0)
    u = big + small
    error = small - (u - big)
    fmt = b.format
    exponent, mantissa, e = _exponent(b, u, float(2**fmt.mantissa + fmt.bias))
    double = b.from_bits(
        b.integer((2 * fmt.bias + 1) << fmt.mantissa) - (exponent << fmt.mantissa)
    )  # 2^(1-e)
    plain = mantissa - 1.0
    error = error * (double * 0.5)
    fraction = plain + error
    rest = (plain - fraction) + error
    half_square, tail = _tail(b, fraction)
    return b.copysign(_special(b, u, _sum(b, e, fraction, half_square, tail, rest)), x)


def _zeros(b: Builder) -> int:
    """Trailing zeros that make a constant times an exponent exact."""
    return 12 if b.format.width == 64 else 9


def _decompose(b: Builder, x: Number) -> tuple[Number, Number]:
    """`e` and `f`, also for subnormal `x`."""
    fmt = b.format
    subnormal = b.less(x, fmt.smallest_normal)
    shift = fmt.mantissa + 2
    magic = float(2**fmt.mantissa + fmt.bias)
    bias = b.select(subnormal, magic + shift, magic)
    _, mantissa, e = _exponent(b, b.select(subnormal, x * 2.0**shift, x), bias)
    return e, mantissa - 1.0


def _exponent(b: Builder, x: Number, bias: Number | float) -> tuple[Number, Number, Number]:
    """Biased exponent as integer, `1 + f`, and the exponent as a float.

    Or-ing a small integer into the encoding of 2^mantissa and subtracting that converts it to float.
    """
    fmt = b.format
    edge = fmt.bits(fmt.round(_SQRT_HALF))
    moved = b.bits(x) + (fmt.bits(1.0) - edge)
    exponent = moved >> fmt.mantissa
    mantissa = b.from_bits((moved & ((1 << fmt.mantissa) - 1)) + edge)
    e = b.from_bits(exponent | fmt.bits(2.0**fmt.mantissa)) - bias
    return exponent, mantissa, e


def _tail(b: Builder, fraction: Number) -> tuple[Number, Number]:
    """`h` and `s (h + z P(z))`."""
    s = fraction / (fraction + 2.0)
    z = s * s
    half_square = fraction * 0.5 * fraction
    return half_square, s * b.fma(z, b.polynomial(z, LOG[b.format.name]), half_square)


def _sum(
    b: Builder, e: Number, fraction: Number, half_square: Number, tail: Number, rest: Number | None
) -> Number:
    """`e ln2 + fraction - half_square + tail + rest`, smallest first."""
    high, low = b.format.split(LN2, low_zeros=_zeros(b))
    small = b.fma(e, low, tail if rest is None else tail + rest)
    return b.fma(e, high, fraction - (half_square - small))


def _scaled(b: Builder, fraction: Number, factor: Fraction, large: Number, small: Number | None) -> Number:
    """`large + small + log(1 + f) * factor`; the logarithm is a sum, so that the product loses nothing."""
    half_square, tail = _tail(b, fraction)
    high = fraction - half_square
    low = ((fraction - high) - half_square) + tail
    factor_high, factor_low = b.format.split(factor)
    rest = high * factor_low if small is None else b.fma(high, factor_low, small)
    return b.fma(high, factor_high, large) + b.fma(low, factor_high, rest)


def _special(b: Builder, x: Number, y: Number) -> Number:
    """`y`, but x for infinite and NaN x, -inf for 0 and NaN for negative x."""
    y = b.select(b.less(x, inf), y, x)
    return b.select(b.greater_or_nan(x, 0.0), y, b.select(b.equal(x, 0.0), -inf, nan))

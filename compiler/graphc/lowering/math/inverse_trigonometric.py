# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""atan, asin and acos without branches: selects choose a reduced argument and the constant to add."""

from __future__ import annotations

from fractions import Fraction

from graphc.lowering.math.builder import PI, Builder, Number
from graphc.lowering.math.coefficients import ASIN, ATAN

_TAN_PI_8 = 0.41421356237309503
_TAN_3PI_8 = 2.414213562373095


def atan(b: Builder, x: Number) -> Number:
    """pi/2 - atan(1/a) above tan(3 pi/8), pi/4 + atan((a - 1)/(a + 1)) above tan(pi/8), with one division."""
    a = abs(x)
    large = b.greater(a, _TAN_3PI_8)
    middle = b.greater(a, _TAN_PI_8)
    numerator = b.select(large, -1.0, b.select(middle, a - 1.0, a))
    t = numerator / b.select(large, a, b.select(middle, a + 1.0, 1.0))
    half_high, half_low = b.format.split(PI / 2)
    quarter_high, quarter_low = b.format.split(PI / 4)
    base = b.select(large, half_high, b.select(middle, quarter_high, 0.0))
    base_low = b.select(large, half_low, b.select(middle, quarter_low, 0.0))
    z = t * t
    rest = b.fma(t * z, b.polynomial(z, ATAN[b.format.name]), base_low)
    return b.copysign(base + (t + rest), x)


def asin(b: Builder, x: Number) -> Number:
    """pi/2 - 2 asin(sqrt((1 - a)/2)) above a half."""
    a = abs(x)
    large = b.greater(a, 0.5)
    root, series = _series(b, a, large)
    base = _choose(b, large, PI / 2, Fraction(0))
    return b.copysign(_subtract(b, base, b.select(large, root + root, -a), series), x)


def acos(b: Builder, x: Number) -> Number:
    """2 asin(sqrt((1 - x)/2)) above a half, pi minus that below minus a half, pi/2 - asin(x) between."""
    a = abs(x)
    large = b.greater(a, 0.5)
    root, series = _series(b, a, large)
    negative = b.less(x, 0.0)
    outer = _choose(b, negative, PI, Fraction(0))
    high, low = b.format.split(PI / 2)
    base = (b.select(large, outer[0], high), b.select(large, outer[1], low))
    double = root + root
    value = b.select(large, b.select(negative, double, -double), x)
    return _subtract(b, base, value, series)


def _series(b: Builder, a: Number, large: Number) -> tuple[Number, Number]:
    """sqrt((1 - a)/2), NaN for a > 1, and `z P(z)` of the reduced argument."""
    reduced = b.fma(a, -0.5, 0.5)
    z = b.select(large, reduced, a * a)
    return b.sqrt(reduced), z * b.polynomial(z, ASIN[b.format.name])


def _choose(b: Builder, flag: Number, yes: Fraction, no: Fraction) -> tuple[Number, Number]:
    (yes_high, yes_low), (no_high, no_low) = (
        b.format.split(value) if value else (0.0, 0.0) for value in (yes, no)
    )
    return b.select(flag, yes_high, no_high), b.select(flag, yes_low, no_low)


def _subtract(b: Builder, base: tuple[Number, Number], value: Number, series: Number) -> Number:
    """`base - value (1 + series)`, with the rounding error of the first difference kept."""
    high = base[0] - value
    error = (base[0] - high) - value
    return high + (error + b.fma(-value, series, base[1]))

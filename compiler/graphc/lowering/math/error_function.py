# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""erf without branches."""

from __future__ import annotations

from fractions import Fraction

from graphc.lowering.math.builder import Builder, Number
from graphc.lowering.math.coefficients import ERF
from graphc.lowering.math.exponential import expm1_tail, reduce

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

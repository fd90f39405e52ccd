# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Polynomial coefficients, lowest order first; printed by `python -m graphc_tools.minimax`.

The name of a table says which function it completes; `z` is the square of the reduced argument.
EXP, EXPM1: exp(r) = 1 + r + r^2 P(r). COSH: 1 + z P(z). SINH: r + r z P(z). ATAN, ASIN: t + t z P(z).
LOG: log((1 + s) / (1 - s)) = 2 s + s z P(z).

atan, asin and acos without branches: selects choose a reduced argument and the constant to add.

log, log2, log10 and log1p without branches.

`x = 2^e (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2), and with `s = f / (2 + f)`

    log(1 + f) = f - (h - s (h + z P(z))),  h = f^2 / 2,  z = s^2,

the form P. T. P. Tang and the fdlibm authors use: the leading term `f` is exact, and everything rounded is
small beside it.

exp, exp2, expm1, tanh, sinh and cosh without branches.

All reduce to `x = k ln2 + r` with an integer `k` and `|r| <= ln2 / 2` (Cody and Waite, Software Manual for
the Elementary Functions, 1980). `k` is found by adding 1.5 * 2^mantissa plus an exponent offset: the low
bits of the sum then are the exponent field of a power of two, and one shift makes it a float. No conversion
instruction is needed.

erf without branches.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from graphc.lowering.math.builder import LN2, LN10, LOG2_E, PI, Builder, Number

EXP = {
    # largest relative error 2^-55.6
    "f64": (
        *(0.5000000000000006, 0.16666666666666677, 0.04166666666657366, 0.008333333333321454),
        *(0.0013888888932360355, 0.0001984126988651509, 2.480150447200803e-05, 2.755724386141825e-06),
        *(2.762631517755081e-07, 2.51091463498888e-08),
    ),
    # largest relative error 2^-26.1
    "f32": (0.5, 0.16666540503501892, 0.04166647791862488, 0.008366819471120834, 0.0013933690497651696),
}

EXPM1 = {
    # largest relative error 2^-61.8
    "f64": (
        *(0.5, 0.16666666666666677, 0.04166666666666668, 0.008333333333321454),
        *(0.0013888888888877455, 0.0001984126988651509, 2.4801587340572237e-05, 2.755724386141825e-06),
        *(2.7557259264122925e-07, 2.51091463498888e-08, 2.091947705032294e-09),
    ),
    # largest relative error 2^-31.1
    "f32": (
        *(0.5, 0.1666666716337204, 0.04166647791862488, 0.008333191275596619),
        *(0.0013933690497651696, 0.00019959326891694218),
    ),
}

COSH = {
    # largest relative error 2^-70.0
    "f64": (
        *(0.5, 0.041666666666666685, 0.001388888888887332, 2.4801587349060818e-05),
        *(2.7557251991817784e-07, 2.09217026260813e-09),
    ),
    # largest relative error 2^-33.2
    "f32": (0.5, 0.04166645556688309, 0.001393575919792056),
}

SINH = {
    # largest relative error 2^-64.8
    "f64": (
        *(0.16666666666666666, 0.008333333333334214, 0.00019841269838330165, 2.755732368877807e-06),
        *(2.504894112659538e-08, 1.6920752254449258e-10),
    ),
    # largest relative error 2^-34.2
    "f32": (0.1666666716337204, 0.008333191275596619, 0.00019959326891694218),
}

LOG = {
    # largest relative error 2^-58.5
    "f64": (
        *(0.6666666666666737, 0.399999999993983, 0.28571428745674854, 0.2222219825674776),
        *(0.18183580119733053, 0.15313656543132065, 0.14799833729500075),
    ),
    # largest relative error 2^-29.2
    "f32": (0.6666677594184875, 0.3997757136821747, 0.2987138032913208),
}

ATAN = {
    # largest relative error 2^-59.5
    "f64": (
        *(-0.33333333333333187, 0.1999999999995117, -0.14285714279987932, 0.1111111077422854),
        *(-0.09090897518013775, 0.07692056310190222, -0.06663062978124867, 0.05847610509218483),
        *(-0.05038125117270123, 0.038036270356360605, -0.017877836682949982),
    ),
    # largest relative error 2^-30.3
    "f32": (
        *(-0.3333331346511841, 0.1999838948249817, -0.1424223780632019, 0.10585466027259827),
        *(-0.060592904686927795,),
    ),
}

ERF = {
    # largest relative error 2^-57.4
    "f64": (
        *(0.6366197723675829, 0.10277260330181162, -0.019128447005415685, -0.0002091946920666124),
        *(0.001696206373118996, -0.0005901255232655132, 2.5878602182851274e-05, 6.449162681519249e-05),
        *(-2.9723152403466942e-05, 3.405289796028779e-06, 2.8381964944004996e-06, -1.7450770070472085e-06),
        *(3.3950364930108166e-07, 1.3499581634193732e-07, -1.4055896033497604e-07, 6.520896996161209e-08),
        *(-2.0781780105726116e-08, 4.948722530314303e-09, -8.979425052605415e-10, 1.23204903017e-10),
        *(-1.242039408810605e-11, 8.692430867292351e-13, -3.7747642911041606e-14, 7.660419540564024e-16),
    ),
    # largest relative error 2^-31.0
    "f32": (
        *(0.6366198062896729, 0.10277154296636581, -0.019118623808026314, -0.0002515857049729675),
        *(0.0017983155557885766, -0.0007405577343888581, 0.00016770664660725743, -2.1470634237630293e-05),
        *(1.210227651426976e-06,),
    ),
}

ASIN = {
    # largest relative error 2^-55.8
    "f64": (
        *(0.16666666666665406, 0.07500000000335101, 0.04464285683105815, 0.03038195899692208),
        *(0.0223717618113127, 0.01735964424884176, 0.013885856581683516, 0.01216504090053214),
        *(0.006546235643823274, 0.019478022070293, -0.016145358394133603, 0.03185833708891584),
    ),
    # largest relative error 2^-27.6
    "f32": (
        *(0.16666753590106964, 0.07495276629924774, 0.04547145217657089, 0.024178795516490936),
        *(0.04216250032186508,),
    ),
}


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
    bits, r, r_low = reduce(b, magnitude, b.format.bias, factor=-2.0)
    power = b.from_bits(bits << b.format.mantissa)
    p = r + expm1_tail(b, r, r_low)
    return b.copysign(b.fma(-power, p, 1.0 - power) / b.fma(power, p, power + 1.0), x)


# Numerator and denominator of tanh(x) / x in x^2, up to where a half of it is 1.
_TANH_OF_HALF = (
    (1.0, 0.12596216797828674, 0.0025574946776032448, 5.494087872648379e-06),
    (1.0, 0.4592953324317932, 0.022322993725538254, 0.00017504159768577665),
)
_TANH_OF_HALF_LARGEST = 4.5351152420043945


def tanh_of_half(b: Builder, x: Number) -> Number:
    """Of a float16, in float32: rounded to float16 it is the nearest to tanh(x), for all 65,536 of them.

    A quotient with an error of one unit more or less does not change that, so that devices need not divide
    exactly.
    """
    x = _clamp(b, x, (-_TANH_OF_HALF_LARGEST, _TANH_OF_HALF_LARGEST))
    square = x * x
    above, below = (b.polynomial(square, part) for part in _TANH_OF_HALF)
    return b.quotient(x * above, below)


def sinh(b: Builder, x: Number) -> Number:
    y = _hyperbolic(b, abs(x), odd=True)
    return b.select(b.less(abs(x), _TINY[b.format.name]), x, b.copysign(y, x))


def cosh(b: Builder, x: Number) -> Number:
    return _hyperbolic(b, abs(x), odd=False)


def _clamp(b: Builder, x: Number, limits: tuple[float, float]) -> Number:
    return b.at_most(b.at_least(x, limits[0]), limits[1])


def reduce(b: Builder, x: Number, offset: int, factor: float | None = None) -> tuple[Number, Number, Number]:
    """Bits whose low part is `k + offset`, then `r` and its rounding error.

    A factor, a power of 2, is for x: k does not wait for their product.
    `k ln2_high` is exact because of its trailing zeros. What the caller does not use is dropped by LLVM.
    """
    shifter = b.format.magic + offset
    shifted = b.fma(x, b.const(LOG2_E if factor is None else LOG2_E * factor), shifter)
    x = x if factor is None else x * factor
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings around SciPy's functions, where those are inaccurate: Bessel functions and integrals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.table.forms import in_double
from graphc.ops.table.forms_gamma import polynomial

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import ScalarBuilder

Scalar = Any
_F64 = np.dtype("float64")
# The zero of Ei as a sum of two numbers, and the Taylor coefficients there.
_EI_ZERO = (0.3725074107813666, 1.3140183414386028e-17)


# sqrt(x) exp(-x) of i0 and i1 from 8 on, as polynomials in 16 / x - 1: interpolations with 50 digits at 23
# Chebyshev nodes, 5e-17 off.
_FAR = (
    (
        0.4021765094450081, 0.0033605519836677235, 0.000136216074391872, 1.1143033802584e-05,
        1.48384758631e-06, 2.97359565815e-07, 8.8721546189e-08, 3.9329265711e-08, 2.155681111e-08,
        7.532386418e-09, -6.805980075e-09, -1.3319798592e-08, -5.162517881e-09, 7.323310735e-09,
        6.789790404e-09, -3.118514561e-09, -4.848250922e-09, 1.092452725e-09, 2.398192723e-09,
        -2.74811164e-10, -7.47384462e-10, 3.525321e-11, 1.08819948e-10,
    ),
    (
        0.38939845902587233, -0.009749577193235609, -0.000219235763833829, -1.5038547211274e-05,
        -1.834910153966e-06, -3.48385307137e-07, -1.00012206388e-07, -4.3132315624e-08, -2.3382691354e-08,
        -8.40732684e-09, 6.79507349e-09, 1.3952625102e-08, 5.722677527e-09, -7.432535336e-09,
        -7.222524179e-09, 3.071739565e-09, 5.094016302e-09, -1.047612779e-09, -2.506216241e-09,
        2.58216944e-10, 7.79067218e-10, -3.2677656e-11, -1.13288885e-10,
    ),
)  # fmt: skip


def modified_bessel(order: int, scaled: bool) -> Callable[..., Scalar]:
    """i0 or i1, or these times exp(-|x|): the power series up to 8, a polynomial in 1 / x above.

    Args:
        order: 0 or 1.
        scaled: whether with the exponential.
    """
    coefficients = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(28)]

    @in_double
    def scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
        size = b.abs(x)
        half = b.mul(x, b.const(0.5, _F64))
        small = b.le(size, b.const(8, _F64))
        square = b.select(small, b.mul(half, half), b.const(0, _F64))
        near = polynomial(b, square, coefficients)
        # SciPy's i1(-0.0) is 0.0.
        near = b.fma(near, half, b.const(0, _F64)) if order else near
        large = b.maximum(size, b.const(8, _F64))
        inverse = b.sub(b.truediv(b.const(16, _F64), large), b.const(1, _F64))
        far = b.truediv(polynomial(b, inverse, _FAR[order]), b.math("sqrt", large))
        far = b.copysign(far, x) if order else far
        if scaled:
            return b.select(small, b.mul(near, b.math("exp", b.neg(size))), far)
        # The exponential overflows before the product does.
        first = b.minimum(size, b.const(700, _F64))
        far = b.mul(b.mul(far, b.math("exp", first)), b.math("exp", b.sub(size, first)))
        return b.select(small, near, far)

    return scalar


def _dilogarithm_coefficients() -> list[float]:
    """B(2k) / (2k + 1)! for k >= 1, by the recurrence of Bernoulli's numbers."""
    from fractions import Fraction  # 4 ms, which only code generation needs

    numbers = [Fraction(1)]
    for n in range(1, 34):
        total = sum((math.comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return [float(numbers[n] / math.factorial(n + 1)) for n in range(2, 34, 2)]


@in_double
def spence(b: ScalarBuilder, x: Scalar) -> Scalar:
    """With u = -log(x), u - u^2 / 4 + B(2) u^3 / 3! + B(4) u^5 / 5! + ...

    Below a fifth pi^2 / 6 - log(x) log(1 - x) - spence(1 - x), above five -spence(1 / x) - log(x)^2 / 2.
    Source: L. Lewin, Polylogarithms and Associated Functions, 1981.
    """
    one, zero = b.const(1, _F64), b.const(0, _F64)
    large = b.gt(x, b.const(5, _F64))
    y = b.select(large, b.truediv(one, x), x)
    small = b.lt(y, b.const(0.2, _F64))
    logarithm = b.math("log", y)
    u = b.sub(zero, b.select(small, b.math("log1p", b.neg(y)), logarithm))
    square = b.mul(u, u)
    tail = b.fma(polynomial(b, square, _dilogarithm_coefficients()), u, b.const(-0.25, _F64))
    value = b.fma(square, tail, u)
    whole = b.const(math.pi**2 / 6, _F64)
    product = b.select(b.eq(y, zero), zero, b.mul(logarithm, u))
    value = b.select(small, b.add(whole, b.sub(product, value)), value)
    inverted = b.neg(b.fma(b.mul(logarithm, b.const(0.5, _F64)), logarithm, value))
    # SciPy has no value there.
    inverted = b.select(b.isinf(x), b.const(np.nan, _F64), inverted)
    return b.select(large, inverted, value)


def _ei_coefficients() -> list[float]:
    """Taylor coefficients of Ei at its zero: f' = exp(x) / x, whose coefficients follow a recurrence."""
    zero = np.longdouble(_EI_ZERO[0]) + np.longdouble(_EI_ZERO[1])
    # g = exp(x) / x obeys x g = exp(x): zero g_n + g_(n-1) = exp(zero) / n!.
    derivative, power = [], np.exp(zero)
    before = np.longdouble(0)
    for n in range(24):
        before = (power / math.factorial(n) - before) / zero
        derivative.append(before)
    return [float(g / (n + 1)) for n, g in enumerate(derivative)]


@in_double
def expi(b: ScalarBuilder, x: Scalar) -> Scalar:
    """SciPy's, but next to its zero, where that is only absolutely accurate, the Taylor series there."""
    t = b.sub(b.sub(x, b.const(_EI_ZERO[0], _F64)), b.const(_EI_ZERO[1], _F64))
    near = b.lt(b.abs(t), b.const(0.05, _F64))
    t = b.select(near, t, b.const(0, _F64))
    return b.select(near, b.mul(t, polynomial(b, t, _ei_coefficients())), b.call("special_d_expi", x))


@in_double
def beta(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """gamma(x) / gamma(x + y) * gamma(y) where none of these overflows, SciPy's elsewhere.

    The rounding error of x + y enters with the derivative of gamma, for which few digits do.
    """
    low, high = b.minimum(x, y), b.maximum(x, y)
    total = b.add(high, low)
    safe = b.logical_and(b.gt(low, b.const(1e-280, _F64)), b.lt(total, b.const(170, _F64)))
    one = b.const(1, _F64)
    low, high, total = (b.select(safe, z, one) for z in (low, high, total))
    rest = b.sub(low, b.sub(total, high))
    slope = b.sub(b.math("log", b.add(total, b.const(0.5, _F64))), b.truediv(one, total))
    ratio = b.truediv(b.math("tgamma", high), b.math("tgamma", total))
    ratio = b.fma(b.neg(ratio), b.mul(slope, rest), ratio)
    return b.select(safe, b.mul(ratio, b.math("tgamma", low)), b.call("special_dd_beta", x, y))

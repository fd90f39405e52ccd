# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the accuracy sweep compares with: elementwise functions in mpmath, and where to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf

Interval = tuple[float, float]
_LN2 = float(np.log(2.0))


@dataclass(frozen=True)
class Case:
    """One function.

    Attributes:
        exact: in mpmath; a complex result stands for NaN.
        near: places next to which errors are likely (zeros, poles, changes of method).
        intervals: of each operand, where the exact value is not too slow or too trivial to compute; None for
            all encodings.
        cost: how many times fewer points than usual are taken.
        whole: positions of operands that are whole numbers.
        zero: the second operand for which the result is 0, given the first one between -0.7 and 0.
    """

    exact: Callable[..., Any]
    near: tuple[float, ...] = ()
    intervals: tuple[Interval, ...] | None = None
    cost: int = 1
    whole: tuple[int, ...] = ()
    zero: Callable[[Any], Any] | None = None


def _cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def _erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _dawsn(x: Any) -> Any:
    if abs(x) > 1e8:
        return 1 / (2 * x) * (1 + 1 / (2 * x * x))
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    return mp.log1p(-_ndtr(-x)) if x > 0 else mp.log(_ndtr(x))


def inverse(name: str, function: Any, slope: Any, low: float, high: float) -> Callable[..., Any]:
    """Newton's method from SciPy's value."""

    def exact(y: Any) -> Any:
        import scipy.special

        if not low < y < high:
            return mpf("nan")
        x = mpf(float(getattr(scipy.special, name)(float(y))))
        for _ in range(3):
            x -= (function(x) - y) / slope(x)
        return x

    return exact


def _erf_slope(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def _density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _gammaln(x: Any) -> Any:
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


def _lambertw1(x: Any) -> Any:
    return mp.lambertw(x, -1) if x < 0 else mpf("-inf") if x == 0 else mpf("nan")


def _trigamma(x: Any) -> Any:
    return mp.zeta(2, x) if x > 0 else (mp.pi / mp.sinpi(x)) ** 2 - mp.zeta(2, 1 - x)


def _zeta(s: Any, q: Any) -> Any:
    """By the Euler-Maclaurin formula: mpmath's is wrong in the twelfth digit for some fractional s."""
    count = 150
    w = q + count
    total = mp.fsum((q + k) ** -s for k in range(count)) + w ** (1 - s) / (s - 1) + w**-s / 2
    for j in range(1, 20):
        total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * mp.rf(s, 2 * j - 1) * w ** (1 - s - 2 * j)
    return total


def _guarded(function: Any) -> Callable[..., Any]:
    """NaN for operands that are not positive."""
    return lambda *xs: function(*xs) if min(xs) > 0 else mpf("nan")


def _log_ratio(x: Any, y: Any) -> Any:
    return mp.log(x / y)


def _power(x: Any, y: Any) -> Any:
    return mp.power(x, y) if x > 0 or y == mp.floor(y) else mpf("nan")


def _logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


def _logaddexp2(x: Any, y: Any) -> Any:
    return max(x, y) + mp.log1p(mpf(2) ** -abs(x - y)) / mp.log(2)


def _log1mexp(x: Any) -> Any:
    if x >= 0:
        return mpf("nan")
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def _airy_scale(x: Any) -> Any:
    return mp.exp(2 * x * mp.sqrt(max(x, 0)) / 3)


UNARY: dict[str, Case] = {
    "exp": Case(mp.exp, near=(-708.4, -745.1, 709.78, 88.72, -87.3, -103.9)),
    "exp2": Case(lambda x: mpf(2) ** x, near=(-1022, 1024, -126, 128)),
    "expm1": Case(mp.expm1, near=(709.78, 88.72, -37)),
    "log": Case(mp.log, near=(1,)),
    "log2": Case(lambda x: mp.log(x) / mp.log(2), near=(1,)),
    "log10": Case(mp.log10, near=(1,)),
    "log1p": Case(mp.log1p, near=(-1,)),
    "sqrt": Case(mp.sqrt),
    "cbrt": Case(_cbrt),
    "reciprocal": Case(lambda x: 1 / x),
    "sqr": Case(lambda x: x * x),
    "sigmoid": Case(lambda x: 1 / (1 + mp.exp(-x)), near=(-709.8, -745.1, -88.7, -103.9, 37)),
    "softplus": Case(lambda x: mp.log1p(mp.exp(x)) if x < 100 else x, near=(-745, 37, -104)),
    "log1mexp": Case(_log1mexp, near=(-0.6931471805599453, -19.408, -37)),
    "logit": Case(lambda x: mp.log(x) - mp.log1p(-x) if 0 < x < 1 else mpf("nan"), near=(0.25, 0.5, 0.75, 1)),
    "entr": Case(_guarded(lambda x: -x * mp.log(x)), near=(1,)),
    "sinc": Case(mp.sincpi, near=(1, 2, 3, -5)),
    "deg2rad": Case(lambda x: x * mp.pi / 180),
    "rad2deg": Case(lambda x: x * 180 / mp.pi),
    "sin": Case(mp.sin, near=(3.141592653589793, 1e5, 1e22)),
    "cos": Case(mp.cos, near=(1.5707963267948966, 1e5, 1e22)),
    "tan": Case(mp.tan, near=(1.5707963267948966, 3.141592653589793, 1e22)),
    "arcsin": Case(mp.asin, near=(1, -1, 0.5)),
    "arccos": Case(mp.acos, near=(1, -1, 0.5)),
    "arctan": Case(mp.atan, near=(0.4142135623730951, 2.414213562373095)),
    "sinh": Case(mp.sinh, near=(710.47, 89.41)),
    "cosh": Case(mp.cosh, near=(710.47, 89.41)),
    "tanh": Case(mp.tanh, near=(20, 10)),
    "arcsinh": Case(mp.asinh),
    "arccosh": Case(mp.acosh, near=(1,)),
    "arctanh": Case(mp.atanh, near=(1, -1)),
    "erf": Case(mp.erf, near=(6, 4)),
    "erfc": Case(mp.erfc, near=(26.5, 27.2, 10, -6), cost=2),
    "erfcx": Case(_erfcx, near=(-26.6, 50), intervals=((-30, 1e9),), cost=4),
    "erfi": Case(mp.erfi, intervals=((-27, 27),), cost=4),
    "erfinv": Case(inverse("erfinv", mp.erf, _erf_slope, -1, 1), near=(1, -1), intervals=((-1, 1),), cost=20),
    "erfcinv": Case(
        inverse("erfcinv", mp.erfc, lambda x: -_erf_slope(x), 0, 2),
        near=(1, 2),
        intervals=((0, 2),),
        cost=20,
    ),
    "dawsn": Case(_dawsn, cost=4, intervals=((-1e9, 1e9),)),
    "ndtr": Case(_ndtr, near=(-37.5, -38.4), cost=4),
    "ndtri": Case(inverse("ndtri", _ndtr, _density, 0, 1), near=(0.5, 1), intervals=((0, 1),), cost=20),
    "ndtri_exp": Case(
        inverse("ndtri_exp", _log_ndtr, lambda x: _density(x) / _ndtr(x), -mp.inf, 0),
        near=(-0.01, -2),
        intervals=((-1e4, 0),),
        cost=20,
    ),
    "log_ndtr": Case(_log_ndtr, near=(-1, 37), intervals=((-1e9, 38),), cost=4),
    "gamma": Case(mp.gamma, near=(-1, -2, -150.5, 171.62, 35.04), cost=2),
    "gammaln": Case(_gammaln, near=(1, 2, -2.4570247382208, -2.7476826467274), cost=2),
    "digamma": Case(
        mp.digamma,
        near=(1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -22.75024298430606),
        cost=2,
    ),
    "lambertw0": Case(lambda x: mp.lambertw(x), near=(-0.36787944117144233, 0), cost=4),
    "lambertw1": Case(_lambertw1, near=(-0.36787944117144233,), intervals=((-1, 0),), cost=4),
    "trigamma": Case(_trigamma, near=(-1, 10), intervals=((-200, 1e6),), cost=4),
    "rgamma": Case(mp.rgamma, near=(-1, 171), intervals=((-200, 200),), cost=4),
    "i0": Case(lambda x: mp.besseli(0, x), near=(8,), intervals=((-713, 713),), cost=20),
    "i1": Case(lambda x: mp.besseli(1, x), near=(8,), intervals=((-713, 713),), cost=20),
    "i0e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), near=(8,), intervals=((-1e4, 1e4),), cost=20),
    "i1e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), near=(8,), intervals=((-1e4, 1e4),), cost=20),
    "k0": Case(_guarded(lambda x: mp.besselk(0, x)), near=(2,), intervals=((0, 740),), cost=20),
    "k1": Case(_guarded(lambda x: mp.besselk(1, x)), near=(2,), intervals=((0, 740),), cost=20),
    "k0e": Case(_guarded(lambda x: mp.exp(x) * mp.besselk(0, x)), near=(2,), intervals=((0, 1e4),), cost=20),
    "k1e": Case(_guarded(lambda x: mp.exp(x) * mp.besselk(1, x)), near=(2,), intervals=((0, 1e4),), cost=20),
    "j0": Case(lambda x: mp.besselj(0, x), near=(2.404825557695773, 5), intervals=((-1e4, 1e4),), cost=20),
    "j1": Case(lambda x: mp.besselj(1, x), near=(3.8317059702075125, 5), intervals=((-1e4, 1e4),), cost=20),
    "y0": Case(
        _guarded(lambda x: mp.bessely(0, x)), near=(0.8935769662791675,), intervals=((0, 1e4),), cost=20
    ),
    "y1": Case(
        _guarded(lambda x: mp.bessely(1, x)), near=(2.197141326031017,), intervals=((0, 1e4),), cost=20
    ),
    "exprel": Case(lambda x: mp.expm1(x) / x, near=(709.7,)),
    "expi": Case(mp.ei, near=(0.37250741078136663,), intervals=((-700, 700),), cost=10),
    "exp1": Case(_guarded(mp.e1), near=(1,), intervals=((0, 700),), cost=10),
    "spence": Case(
        _guarded(lambda x: mp.re(mp.polylog(2, 1 - x))), near=(1, 2, 0.2, 5), intervals=((0, 50),), cost=20
    ),
    "ellipk": Case(mp.ellipk, near=(1,), intervals=((-1e3, 1),), cost=4),
    "ellipkm1": Case(_guarded(lambda p: mp.ellipk(1 - p)), near=(1,), intervals=((0, 1e3),), cost=4),
    "sici_si": Case(mp.si, intervals=((-1e4, 1e4),), cost=10),
    "sici_ci": Case(_guarded(mp.ci), near=(0.6165054856207162,), intervals=((0, 1e4),), cost=10),
    "shichi_shi": Case(mp.shi, intervals=((-700, 700),), cost=10),
    "shichi_chi": Case(_guarded(mp.chi), near=(0.5238225713898644,), intervals=((0, 700),), cost=10),
    "fresnel_s": Case(mp.fresnels, intervals=((-50, 50),), cost=10),
    "fresnel_c": Case(mp.fresnelc, intervals=((-50, 50),), cost=10),
    "airy_ai": Case(mp.airyai, near=(-2.338107410459767,), intervals=((-100, 100),), cost=20),
    "airy_aip": Case(lambda x: mp.airyai(x, 1), intervals=((-100, 100),), cost=20),
    "airy_bi": Case(mp.airybi, intervals=((-100, 100),), cost=20),
    "airy_bip": Case(lambda x: mp.airybi(x, 1), intervals=((-100, 100),), cost=20),
    "airye_ai": Case(_guarded(lambda x: mp.airyai(x) * _airy_scale(x)), intervals=((0, 100),), cost=20),
    "airye_aip": Case(_guarded(lambda x: mp.airyai(x, 1) * _airy_scale(x)), intervals=((0, 100),), cost=20),
    "airye_bi": Case(lambda x: mp.airybi(x) / _airy_scale(x), intervals=((-100, 100),), cost=20),
    "airye_bip": Case(lambda x: mp.airybi(x, 1) / _airy_scale(x), intervals=((-100, 100),), cost=20),
    "ellipe": Case(mp.ellipe, near=(1,), intervals=((-1e3, 1),), cost=4),
}

BINARY: dict[str, Case] = {
    "true_div": Case(lambda x, y: x / y),
    "pow": Case(_power),
    "arctan2": Case(mp.atan2),
    "hypot": Case(mp.hypot),
    "logaddexp": Case(_logaddexp, intervals=((-800, 800), (-800, 800)), zero=lambda x: np.log(-np.expm1(x))),
    "logaddexp2": Case(
        _logaddexp2, intervals=((-1000, 1000), (-1000, 1000)), zero=lambda x: np.log2(-np.expm1(x * _LN2))
    ),
    "xlogy": Case(lambda x, y: x * mp.log(y) if y > 0 else mpf("nan")),
    "xlog1py": Case(lambda x, y: x * mp.log1p(y) if y > -1 else mpf("nan")),
    "rel_entr": Case(_guarded(lambda x, y: x * _log_ratio(x, y))),
    "kl_div": Case(_guarded(lambda x, y: x * _log_ratio(x, y) - x + y)),
    "beta": Case(mp.beta, intervals=((0.1, 50), (0.1, 50)), cost=10),
    "betaln": Case(lambda a, b: mp.log(mp.beta(a, b)), intervals=((0.1, 1e3), (0.1, 1e3)), cost=10),
    "poch": Case(mp.rf, intervals=((0.1, 50), (0.1, 50)), cost=10),
    "binom": Case(mp.binomial, intervals=((0.1, 50), (0.1, 50)), cost=10),
    "zeta": Case(_zeta, intervals=((1.01, 100), (0.1, 100)), cost=20),
    "gammainc": Case(lambda a, x: mp.gammainc(a, 0, x, regularized=True), (), ((0.1, 50), (0, 100)), 20),
    "gammaincc": Case(lambda a, x: mp.gammainc(a, x, regularized=True), (), ((0.1, 50), (0, 100)), 20),
    "jv": Case(mp.besselj, intervals=((0, 20), (0.1, 100)), cost=40),
    "yv": Case(mp.bessely, intervals=((0, 20), (0.1, 100)), cost=40),
    "iv": Case(mp.besseli, intervals=((0, 20), (0.1, 100)), cost=40),
    "kv": Case(mp.besselk, intervals=((0, 20), (0.1, 100)), cost=40),
}

# Not here: operations that are exact or rounded once by IEEE 754 arithmetic (add, sub, mul, neg, abs, floor,
# switch, ...), which other tests compare with NumPy bit for bit. Functions of parameters are in
# `ulp_parameters`, those of complex numbers in `ulp_complex`.
EXACT = frozenset(
    """bfloat16_bits bfloat16_value
    add sub mul floor_div mod neg abs sign maximum minimum copysign switch identity second eq ne lt le gt
    ge logical_and logical_or logical_xor logical_not and or xor invert left_shift right_shift isnan isinf
    isfinite signbit ldexp frexp_mantissa frexp_exponent rough_log nextafter spacing gcd lcm floor ceil trunc
    round round_half_away real imag conj complex""".split()
)

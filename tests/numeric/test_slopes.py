# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""First and second derivatives of elementwise functions against mpmath, far out and near their limits.

A slope that is computed from the result (`out + 1` for `expm1`) has lost what the result has lost. Each row
with a reference in mpmath is here or says why not, so that a new one is held to it.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf
from ulp_references import BINARY, UNARY, Case

import graphc
import graphc.tensor as pt

SIZES = (1e-20, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.9, 0.999, 1 - 1e-8, 1 - 1e-13, 1 + 1e-8, 1.5, 3.3, 7, 12.4)
LARGE = (19.5, 26, 36, 40, 100, 350, 500, 700, 1e4, 1e8, 1e200)
POINTS = np.array(sorted([*SIZES, *LARGE, *(-x for x in (*SIZES, *LARGE))]))
NUMBERS = (1e-200, 1e-8, 0.3, 1 - 1e-9, 1.0, 1 + 1e-9, 3.0, 40.0, 800.0, 1e200)

DIGITS, STEP = 700, -100
# Values from SciPy whose differences cancel at large arguments, as its own do; too slow to differentiate with
# so many digits.
SPECIAL = frozenset(
    """i0 i1 i0e i1e k0 k1 k0e k1e j0 j1 y0 y1 ellipk ellipe spence exprel expi exp1 erfinv erfcinv ndtri
    ndtri_exp gamma gammaln digamma trigamma rgamma lambertw0 lambertw1 beta betaln poch binom zeta gammainc
    gammaincc jv yv iv kv ellipkm1 sici_si sici_ci shichi_shi shichi_chi fresnel_s fresnel_c airy_ai airy_aip
    airy_bi airy_bip airye_ai airye_aip airye_bi airye_bip""".split()
)
# Arguments beyond which the function is sampled, not smooth, in floating-point numbers, or mpmath gives up.
LIMITS = {"sin": 1e3, "cos": 1e3, "tan": 1e3, "sinc": 300.0}
LIMITS["tanh"] = 1.5  # beyond, its slope is as exact as 1
LIMITS |= dict.fromkeys(("erfc", "erfcx", "ndtr", "log_ndtr", "dawsn"), 1e4)
EXACT = {**UNARY, **BINARY, "softplus": Case(lambda x: mp.log1p(mp.exp(x)))}


def _exact(case, point, position):
    """The first and the second derivative by one operand; None where there is none."""
    point = [mpf(float(x)) for x in point]
    step = abs(point[position]) * mpf(10) ** STEP

    def along(x):
        return case.exact(*point[:position], x, *point[position + 1 :])

    values = [along(point[position] + k * step) for k in (-1, 0, 1)]
    if any(isinstance(y, mp.mpc) or not mp.isfinite(y) for y in values):
        return None, None
    low, middle, high = values
    return (high - low) / (2 * step), (high - 2 * middle + low) / step**2


def _check(name, point, found, exact, before, dtype, order):
    """Relative to the derivative; near a zero of the second one, to the first."""
    tiny, largest = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    if exact is None or abs(exact) > largest / 1e4 or (before is not None and abs(before) > largest / 1e4):
        return
    relative = {"float64": 2e-11, "float32": 3e-3 if order == 2 else 1e-4}[dtype]
    bound = relative * abs(exact) + 1e6 * tiny + mpf(10) ** (2 * STEP + 10)
    if before is not None:
        bound += float(np.finfo(dtype).eps) * min(abs(before), 1 / abs(mpf(float(point[0]))))
    assert np.isfinite(found), (name, order, point, found, mp.nstr(exact, 10))
    assert abs(mpf(float(found)) - exact) <= bound, (name, order, point, found, mp.nstr(exact, 17))


@pytest.mark.parametrize("name", sorted(UNARY.keys() - SPECIAL))
def test_of_one_operand(name):
    v = pt.vector("v")
    slope = graphc.grad(getattr(pt, name)(v).sum(), v)
    second = graphc.grad(slope.sum(), v)
    # Without rewrites the slope of a sigmoid is as exact as 1.
    modes = ("fast_run",) if name in ("sigmoid", "softplus") else ("fast_run", "reference")
    with np.errstate(all="ignore"), mp.workdps(DIGITS):
        limit = LIMITS.get(name, np.inf)
        points = POINTS[np.abs(POINTS) <= limit]
        found = [graphc.function([v], [slope, second], mode=mode)(points) for mode in modes]
        for i, x in enumerate(points):
            exact = _exact(EXACT[name], (x,), 0)
            for first, then in found:
                _check(name, (x,), first[i], exact[0], None, "float64", 1)
                _check(name, (x,), then[i], exact[1], exact[0], "float64", 2)


@pytest.mark.parametrize("name", ["expm1", "sigmoid", "log1mexp", "softplus", "erfcx", "log_ndtr", "arctanh"])
def test_of_float32(name):
    v = pt.vector("v", dtype="float32")
    slope = graphc.grad(getattr(pt, name)(v).sum(), v)
    points = POINTS[(np.abs(POINTS) < 1e9) & (np.abs(POINTS) > 1e-10)].astype("float32")
    with mp.workdps(DIGITS):
        found = graphc.function([v], slope)(points)
        for x, slope_there in zip(points, found, strict=True):
            _check(name, (x,), slope_there, _exact(EXACT[name], (x,), 0)[0], None, "float32", 1)


@pytest.mark.parametrize("name", sorted(BINARY.keys() - SPECIAL - {"pow", "true_div"}))
def test_of_two_operands(name):
    v, w = pt.vector("v"), pt.vector("w")
    slopes = graphc.grad(getattr(pt, name)(v, w).sum(), [v, w])
    pairs = np.array([(x, y) for x in NUMBERS for y in NUMBERS])
    with np.errstate(all="ignore"), mp.workdps(DIGITS):
        found = graphc.function([v, w], slopes)(*pairs.T)
        for i, pair in enumerate(pairs):
            for position in (0, 1):
                exact, _ = _exact(EXACT[name], pair, position)
                _check(name, pair, found[position][i], exact, None, "float64", 1)


def test_of_the_reciprocal_of_gamma():
    """At its zeros digamma is infinite."""
    v = pt.vector("v")
    found = graphc.function([v], graphc.grad(pt.rgamma(v).sum(), v))([-3.0, -2.0, 0.0, 1.0, -2.5])
    np.testing.assert_allclose(found, [-6, 2, 1, np.euler_gamma, float(mp.diff(mp.rgamma, -2.5))], rtol=1e-13)


@pytest.mark.parametrize("name", ["beta", "betaln", "poch", "binom"])
def test_of_quotients_of_gamma_functions(name):
    """Digamma is nearly the same for large numbers that are near to each other."""
    v, w = pt.vector("v"), pt.vector("w")
    slopes = graphc.grad(getattr(pt, name)(v, w).sum(), [v, w])
    points = np.array(
        [(2.5, 0.75), (64, 0.25), (65, 3), (1e3, 0.7), (1e5, 3), (7e7, 3), (1e15, 0.5), (5, 1e9)]
    )
    points = points[points.sum(1) < 1e9] if name in ("poch", "binom") else points
    found = graphc.function([v, w], slopes)(*points.T)
    exact = {
        "beta": lambda a, b: (mp.beta(a, b), (a, -a - b), (b, -a - b)),
        "betaln": lambda a, b: (mpf(1), (a, -a - b), (b, -a - b)),
        "poch": lambda x, m: (mp.exp(mp.loggamma(x + m) - mp.loggamma(x)), (x + m, -x), (x + m,)),
        "binom": lambda n, k: (
            1 / (n + 1) / mp.beta(n - k + 1, k + 1),
            (n + 1, k - n - 1),
            (n - k + 1, -k - 1),
        ),
    }[name]

    def slope(pair, position):
        value, *parts = exact(*pair)
        return value * sum(mp.sign(x) * mp.digamma(abs(x)) for x in parts[position])

    value_error = 4e-13 if name == "betaln" else 1e-10
    with mp.workdps(60):
        for i, (x, y) in enumerate(points):
            pair = mpf(float(x)), mpf(float(y))
            for position in (0, 1):
                error = mpf(float(found[position][i])) / slope(pair, position) - 1
                assert abs(error) < value_error, (x, y)

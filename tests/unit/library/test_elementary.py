# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels that stand in for the C library, against numbers with hundreds of digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from graphc_tools.gpu.device_functions import device_function

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN, 1e300, -1e300, 5e-324]


def _random(kind: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "middle":
        return rng.normal(size=count) * 5
    if kind == "near":  # multiples of half of pi
        return np.rint(rng.uniform(0, 1e6, count)) * (np.pi / 2)
    if kind == "all":
        values = rng.integers(0, 2**63, count, dtype=np.uint64).view(np.float64)
        return values[np.isfinite(values)]
    return rng.choice([-1.0, 1.0], count) * np.exp(rng.uniform(-40, 40, count))


def _gammaln(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.log(abs(mpmath.gamma(x)))


def _units(found: float, exact: mpmath.mpf) -> float:
    """The error in units of the last place."""
    nearest = float(exact)
    if math.isinf(nearest) or math.isnan(nearest):
        return 0.0 if found == nearest or (math.isnan(found) and math.isnan(nearest)) else INF
    return float(abs(mpmath.mpf(found) - exact) / np.spacing(abs(nearest)))


@pytest.mark.parametrize(
    ("name", "reference", "bound", "kinds"),
    [
        ("sin", mpmath.sin, 1, "middle near wide all"),
        ("cos", mpmath.cos, 1, "middle near wide all"),
        ("tan", mpmath.tan, 2, "middle near wide all"),
        ("cbrt", lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), 0.6, "wide all"),
        ("asinh", mpmath.asinh, 1.5, "middle wide"),
        ("acosh", lambda x: mpmath.acosh(x) if x >= 1 else mpmath.nan, 2, "middle wide"),
        ("atanh", lambda x: mpmath.atanh(x) if abs(x) < 1 else mpmath.nan, 2, "middle wide"),
        ("erfc", mpmath.erfc, 6, "middle"),
        ("tgamma", mpmath.gamma, 3, "middle"),
        ("lgamma", _gammaln, 1, "middle"),
    ],
)
def test_functions_of_a_number(
    name: str, reference: Callable[..., mpmath.mpf], bound: float, kinds: str
) -> None:
    function = device_function(f"graphc_scalar.{name}", "float64", 1)
    with mpmath.workprec(1300 if name in ("sin", "cos", "tan") else 250):
        for kind in kinds.split():
            values = _random(kind, 200)
            for x, found in zip(values.tolist(), function(values).tolist(), strict=True):
                assert _units(found, reference(mpmath.mpf(x))) < bound, (kind, x, found)


def test_the_worst_argument_of_a_cosine() -> None:
    """Of all numbers, the one next to a multiple of half of pi (J.-M. Muller, Elementary Functions)."""
    found = device_function("graphc_scalar.cos", "float64", 1)(np.array([6381956970095103.0 * 2.0**797]))
    assert found[0] == pytest.approx(-4.68716592425462761112e-19, rel=1e-15)


@pytest.mark.parametrize(("first", "second"), [("wide", "middle"), ("all", "middle")])
def test_powers(first: str, second: str) -> None:
    x, y = np.abs(_random(first, 300)), _random(second, 300)
    y = y[: len(x)] / (10 if first == "all" else 1)
    with mpmath.workprec(200):
        for a, b, found in zip(x, y, device_function("graphc_scalar.pow", "float64", 2)(x, y), strict=True):
            exact = mpmath.power(mpmath.mpf(a), mpmath.mpf(b))
            assert not 1e-300 < exact < 1e300 or _units(float(found), exact) < 1, (a, b)


def test_angles() -> None:
    y, x = _random("middle", 300), _random("wide", 300)
    with mpmath.workprec(200):
        for b, a, found in zip(y, x, device_function("graphc_scalar.atan2", "float64", 2)(y, x), strict=True):
            assert _units(float(found), mpmath.atan2(mpmath.mpf(b), mpmath.mpf(a))) < 2, (b, a)


def test_remainders_are_exact() -> None:
    x = np.concatenate([_random(kind, 300) for kind in ("middle", "wide", "all")] + [np.arange(50) * 5e-324])
    y = x[::-1].copy()
    y[y == 0] = 1.0
    found = device_function("graphc_scalar.fmod", "float64", 2)(x, y)
    np.testing.assert_array_equal(found, np.fmod(x, y))


@pytest.mark.parametrize(
    ("name", "reference"), [("atan2", math.atan2), ("fmod", math.fmod), ("pow", math.pow)]
)
def test_special_operands(name: str, reference: Callable[[float, float], float]) -> None:
    x, y = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    for a, b, found in zip(x, y, device_function(f"graphc_scalar.{name}", "float64", 2)(x, y), strict=True):
        try:
            expected = reference(a, b)
        except (ValueError, OverflowError):  # Python's functions raise where C's give NaN or infinity
            assert not math.isfinite(found), (a, b)
            continue
        assert found == pytest.approx(expected, rel=4e-16, abs=0, nan_ok=True), (a, b)
        assert math.isnan(found) or math.copysign(1, found) == math.copysign(1, expected), (a, b)

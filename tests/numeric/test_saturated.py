# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that go to a limit, of what overflows; inverse functions of it; lengths of large vectors.

Values and first and second derivatives against mpmath, from where nothing is lost to where all intermediate
results are 0 or infinite.
"""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

import graphc
import graphc.tensor as pt
from graphc.tensor.special import ndtr

FAR = (-800, -100, -5, -1, -0.3, 0.3, 1, 2, 5, 30, 300, 720, 1200, 1e8)
LARGE = (-1e160, -1e6, -3, -0.3, 1e-170, 0.3, 3, 1e6, 1e160)
SINGLE = (-1e25, -1e4, -3, -0.3, 0.3, 3, 1e4, 1e25)


def limited(f, most, limit):
    """A function where numbers of mpmath are not too long, and what it is beyond."""
    return lambda x: f(x) if x < most else mpf(limit)


def number(value, like):
    """A number that is not known when the graph is compiled."""
    return graphc.shared(np.array(value, like.type.dtype))


SATURATED = {
    "tanh": (lambda x: pt.tanh(pt.exp(x)), limited(lambda x: mp.tanh(mp.exp(x)), 6, 1)),
    "tanh of a square": (lambda x: pt.tanh(pt.exp(x) ** 2), limited(lambda x: mp.tanh(mp.exp(2 * x)), 3, 1)),
    "sigmoid": (lambda x: pt.sigmoid(pt.exp(x)), limited(lambda x: 1 / (1 + mp.exp(-mp.exp(x))), 6, 1)),
    "erf": (lambda x: pt.erf(pt.exp(x)), limited(lambda x: mp.erf(mp.exp(x)), 3, 1)),
    "erfc": (lambda x: pt.erfc(pt.exp(x)), limited(lambda x: mp.erfc(mp.exp(x)), 3, 0)),
    "ndtr": (lambda x: ndtr(pt.exp(x)), limited(lambda x: mp.ncdf(mp.exp(x)), 3, 1)),
    "arctan": (lambda x: pt.arctan(pt.exp(x)), lambda x: mp.pi / 2 - mp.atan(mp.exp(-x))),
    "exp": (lambda x: pt.exp(-pt.exp(x)), limited(lambda x: mp.exp(-mp.exp(x)), 6, 0)),
    "expm1": (lambda x: pt.expm1(-pt.exp(x)), limited(lambda x: mp.expm1(-mp.exp(x)), 6, -1)),
    "softsign": (lambda x: pt.exp(x) / (1 + abs(pt.exp(x))), lambda x: 1 / (1 + mp.exp(-x))),
    "softsign of a product": (
        lambda x: 3 * pt.exp(2 * x) / (1 + abs(pt.exp(2 * x))), lambda x: 3 / (1 + mp.exp(-2 * x))),
    "log of a tail and a number": (
        lambda x: pt.log(pt.sigmoid(x) + 1e-3), lambda x: mp.log(1 / (1 + mp.exp(-x)) + mpf(1e-3))),
    "log of a bell and a number": (
        lambda x: pt.log(pt.exp(-x * x / 8) + 0.25),
        limited(lambda x: mp.log(mp.exp(-x * x / 8) + 0.25), 1e3, mp.log(0.25))),
    "log of an exponential and a number": (
        lambda x: pt.log(pt.exp(x) + 0.5), lambda x: mp.log(mp.exp(x) + 0.5)),
    "softplus": (lambda x: pt.softplus(-pt.exp(x)), limited(lambda x: mp.log1p(mp.exp(-mp.exp(x))), 6, 0)),
    "density": (lambda x: pt.exp(x - pt.exp(x)), limited(lambda x: mp.exp(x - mp.exp(x)), 6, 0)),
    "reciprocal": (lambda x: 1 / (2 + pt.exp(x)), lambda x: 1 / (2 + mp.exp(x))),
    "arcsinh": (lambda x: pt.arcsinh(3 * pt.exp(x)), lambda x: mp.asinh(3 * mp.exp(x))),
    "arccosh": (lambda x: pt.arccosh(2 * pt.exp(x)), lambda x: mp.acosh(2 * mp.exp(x))),
    "arccosh of a sum": (lambda x: pt.arccosh(2 + pt.exp(x)), lambda x: mp.acosh(2 + mp.exp(x))),
}  # fmt: skip
POWERS = {
    "square below": (lambda x: 1 / pt.cosh(x) ** 2, lambda x: 1 / mp.cosh(x) ** 2),
    "square above": (lambda x: pt.cosh(x) ** -2, lambda x: 1 / mp.cosh(x) ** 2),
    "sum below": (lambda x: 4 * (pt.exp(x) + pt.exp(-x)) ** -2, lambda x: 1 / mp.cosh(x) ** 2),
    "fraction": (
        lambda x: pt.exp(x) * (1 + pt.exp(x)) ** -1.5, lambda x: mp.exp(x) * (1 + mp.exp(x)) ** mpf(-1.5)),
    "growth": (lambda x: (1 + 2 * pt.exp(-x)) ** -2.5, lambda x: (1 + 2 * mp.exp(-x)) ** mpf(-2.5)),
    "unknown": (
        lambda x: pt.exp(x) * (1 + pt.exp(x)) ** number(-1.5, x),
        lambda x: mp.exp(x) * (1 + mp.exp(x)) ** mpf(-1.5)),
    "unknown growth": (
        lambda x: (1 + 2 * pt.exp(-x)) ** (-1 / number(0.4, x)), lambda x: (1 + 2 * mp.exp(-x)) ** mpf(-2.5)),
    "unknown above 0": (
        lambda x: (1 + pt.exp(x)) ** number(1.5, x) * pt.exp(-2 * x),
        limited(lambda x: (1 + mp.exp(x)) ** mpf(1.5) * mp.exp(-2 * x), 1e7, 0)),
}  # fmt: skip
LENGTHS = {
    "length": (lambda x: pt.sqrt(x * x + (2 * x + 1) ** 2), lambda x: mp.sqrt(x * x + (2 * x + 1) ** 2)),
    "with a number": (lambda x: pt.sqrt(1 + x**2), lambda x: mp.sqrt(1 + x * x)),
    "of three": (
        lambda x: pt.sqrt(x * x + (2 * x) ** 2 + 4), lambda x: mp.sqrt(5 * x * x + 4)),
    "log1p": (lambda x: pt.log1p(x * x), lambda x: mp.log1p(x * x)),
    "log": (lambda x: pt.log(1 + x**2), lambda x: mp.log1p(x * x)),
    "log1p of a multiple": (lambda x: pt.log1p(3 * x**2 / 7), lambda x: mp.log1p(x * x * 3 / 7)),
}  # fmt: skip


def exact(f, point):
    """The value and two derivatives, where there are such."""
    with mp.workdps(600):
        x = mpf(float(point))
        step = max(abs(x), mpf(10) ** -20) * mpf(10) ** -100
        low, middle, high = (f(x + k * step) for k in (-1, 0, 1))
        if any(isinstance(y, mp.mpc) for y in (low, middle, high)):
            return None
        return middle, (high - low) / (2 * step), (high - 2 * middle + low) / step**2


def failures(cases, points, dtype, mode, orders):
    """Descriptions of results that differ. ``orders`` has, for each derivative, the largest point it has."""
    x = pt.vector("x", dtype=dtype)
    relative = {"float64": 3e-10, "float32": 2e-3}[dtype]
    tiny, largest = (float(getattr(np.finfo(dtype), name)) for name in ("tiny", "max"))
    points, found = np.array(points, dtype), []
    outputs = []
    for build, _ in cases.values():
        y = build(x)
        slope = graphc.grad(y.sum(), x)
        outputs += [y, slope, graphc.grad(slope.sum(), x)]
    with np.errstate(all="ignore"):
        results = iter(graphc.function([x], outputs, mode=mode)(points))
    for name, (_, f) in cases.items():
        values = [next(results) for _ in range(3)]
        for i, point in enumerate(points):
            wanted = exact(f, point)
            for order, most in enumerate(orders):
                if wanted is None or abs(point) > most or abs(wanted[order]) > largest / 100:
                    continue
                # Near its zero, a derivative is as exact as the value changes where the point is rounded.
                rounded = float(np.finfo(dtype).eps) * min(1, abs(float(point))) * (order > 0)
                bound = relative * abs(wanted[order]) + 1e4 * tiny + rounded
                value = values[order][i]
                if not (np.isfinite(value) and abs(mpf(float(value)) - wanted[order]) <= bound):
                    found.append(f"{name}, {order}. at {point}: {value}, not {mp.nstr(wanted[order], 12)}")
    return found


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_limits_of_what_overflows(dtype, mode):
    assert not failures(SATURATED, FAR, dtype, mode, (1e9, 1e9, 1e9))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_negative_powers_divide(dtype, mode):
    """A factor with an exponent below 0, or that may be, underflows where others overflow, as a divisor."""
    assert not failures(POWERS, FAR, dtype, mode, (1e9, 1e9, 1e9))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_lengths(mode):
    assert not failures(LENGTHS, LARGE, "float64", mode, (1e200, 1e200, 10))
    assert not failures(LENGTHS, SINGLE, "float32", mode, (1e30, 1e30, 10))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_of_logarithms_of_squares(dtype, mode):
    """They are 2 / x far out, also where x**2 overflows, and 2 k x near 0."""
    x = pt.vector("x", dtype=dtype)
    most = {"float64": 300, "float32": 37}[dtype]
    far = np.array([sign * 10.0 ** (most * k / 8) for k in range(2, 9) for sign in (1, -1)], dtype)
    for build, scale in ((pt.sqr, 1), (lambda x: x * x, 1), (lambda x: 3 * x**2 / 7, 3 / 7)):
        slope = graphc.grad(pt.log1p(build(x)).sum(), x)
        f = graphc.function([x], slope, mode=mode)
        np.testing.assert_allclose(f(far), 2 / far, 1e-6 if dtype == "float32" else 1e-14)
        near = (far / far[-2]).astype(dtype) ** 2
        wide = near.astype(np.longdouble)
        np.testing.assert_allclose(f(near), 2 * scale * wide / (1 + scale * wide**2), 1e-6)


def test_of_scalars_and_matrices():
    """Ranks and broadcasting do not matter."""
    cases = {"arcsinh": SATURATED["arcsinh"], "tanh": SATURATED["tanh"], "length": LENGTHS["length"]}
    points = np.array([[0.3, 5.0, 1000.0], [-3.0, 720.0, 7e7]])
    for build, f in cases.values():
        m, s, column = pt.matrix("m"), pt.scalar("s"), pt.col("column")
        whole, one = build(m), build(s)
        wide = build(column + pt.zeros((1, 3)))
        g = graphc.function([m], [whole, graphc.grad(whole.sum(), m)])(points)
        h = graphc.function([s], [one, graphc.grad(one, s)])
        spread = graphc.function([column], [wide, graphc.grad(wide.sum(), column)])(points[:, 1:2])
        for at in np.ndindex(2, 3):
            value, slope, _ = map(float, exact(f, points[at]))
            for found in ((x[at] for x in g), h(points[at])):
                np.testing.assert_allclose([*found], [value, slope], 1e-10, 1e-290)
        for row in range(2):
            value, slope, _ = map(float, exact(f, points[row, 1]))
            np.testing.assert_allclose(spread[0][row], [value] * 3, 1e-10)
            np.testing.assert_allclose(spread[1][row, 0], 3 * slope, 1e-10, 1e-290)

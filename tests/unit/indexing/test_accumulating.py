# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums and extremes, differences, interpolation; derivatives of these and of what moves elements."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_batches import verify_grads

import graphc
import graphc.tensor as pt

FUNCTIONS = [
    lambda p, x: p.cumsum(x),
    lambda p, x: p.cumsum(x, axis=1),
    lambda p, x: p.cumprod(x, axis=0),
    lambda p, x: p.cumprod(x, axis=1),
    lambda p, x: pt.cummax(x, 1) if p is pt else np.maximum.accumulate(x, 1),
    lambda p, x: pt.cummin(x, 0) if p is pt else np.minimum.accumulate(x, 0),
    lambda p, x: p.diff(x, n=2),
    lambda p, x: p.diff(x, axis=0, prepend=0.0, append=x[:1]),
    lambda p, x: p.ediff1d(x, to_end=[1.0], to_begin=[2.0, 3.0]),
    lambda p, x: p.trapezoid(x, axis=0),
    lambda p, x: p.trapezoid(x, x[0], axis=1),
    lambda p, x: p.interp(x, p.sort(x[0]), x[1], left=7.0),
    lambda p, x: p.interp(
        p.arange(0.0, 4.1, 0.25), p.arange(5.0), np.array([0, np.inf, -np.inf, -np.inf, 7])
    ),
    lambda p, x: p.interp(x, p.sort(x[0]), x[1], period=1.5),
    lambda p, x: p.unwrap(x * 7),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_against_numpy(rng):
    x = pt.dmatrix("x")
    f = graphc.function([x], [function(pt, x) for function in FUNCTIONS])
    for shape in ((3, 4), (2, 1), (5, 30)):
        a = rng.normal(size=shape)
        for number, (got, function) in enumerate(zip(f(a), FUNCTIONS, strict=True)):
            np.testing.assert_allclose(got, function(np, a), rtol=1e-11, atol=1e-13, err_msg=str(number))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex128", "float16"])
def test_dtypes(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [pt.cumsum(x, 0), pt.cumsum(x, 1), pt.cumprod(x, 1)]
    wanted = [lambda a: np.cumsum(a, 0), lambda a: np.cumsum(a, 1), lambda a: np.cumprod(a, 1)]
    if dtype[0] != "c":
        outputs += [pt.cummax(x, 0), pt.cummin(x, 1)]
        wanted += [lambda a: np.maximum.accumulate(a, 0), lambda a: np.minimum.accumulate(a, 1)]
    f = graphc.function([x], outputs)
    for a in ((rng.normal(size=(3, 21)) * 2).astype(dtype), np.zeros((0, 3), dtype), np.zeros((2, 0), dtype)):
        for got, want in zip(f(a), wanted, strict=True):
            tolerance = 2e-2 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(got, want(a), rtol=tolerance, atol=tolerance)
            assert got.dtype == want(a).dtype


def test_extremes_pass_nan_on():
    a = np.array([1.0, np.nan, 3.0, -np.inf])
    x = pt.dvector("x")
    high, low = graphc.function([x], [pt.cummax(x), pt.cummin(x)])(a)
    np.testing.assert_array_equal(high, np.maximum.accumulate(a))
    np.testing.assert_array_equal(low, np.minimum.accumulate(a))


POSITIONS = np.array([[0, 1, 0], [2, 2, 1]])
GRADIENTS = {
    "cumsum": (lambda x: pt.cumsum(x, 1), [(2, 4)]),
    "cumprod": (lambda x: pt.cumprod(x, axis=1), [(2, 4)]),
    "cummax": (lambda x: pt.cummax(x), [9]),
    "cummin": (lambda x: pt.cummin(x, axis=1), [(3, 4)]),
    "sort": (lambda x: pt.sort(x, axis=0), [(4, 3)]),
    "partition": (lambda x: pt.partition(x, 2) ** 2, [(3, 5)]),
    "topk": (lambda x: pt.topk(x, 2), [(3, 5)]),
    "median": (lambda x: pt.median(x, axis=1), [(3, 5)]),
    "quantile": (lambda x: pt.quantile(x, [0.2, 0.7], axis=1), [(3, 5)]),
    "mask": (lambda x: x[x > 0] ** 2, [6]),
    "mask_set": (lambda x: x[x > 0].set(x[x > 0] * 2), [6]),
    "interp": (lambda x, y: pt.interp(x * 0.3, pt.constant(np.arange(-2.0, 3.0)), y), [6, 5]),
    "repeat": (lambda x: pt.repeat(x, pt.constant(np.array([1, 0, 2]))), [3]),
    "bincount": (lambda x: pt.bincount(pt.constant(np.array([1, 0, 1])), x), [3]),
    "take_along_axis": (lambda x: pt.take_along_axis(x, pt.constant(POSITIONS), 1), [(2, 3)]),
    **{
        f"put_{mode}": (
            lambda x, y, mode=mode: pt.put_along_axis(x, pt.constant(POSITIONS), y, 1, mode), [(2, 3), (2, 3)]
        )
        for mode in ("set", "add", "mul", "max", "min")
    },
    "complex cumprod": (lambda x, y: pt.real((1 + 2j) * pt.cumprod(pt.complex(x, y))), [4, 4]),
    "complex put_mul": (
        lambda x, y: pt.real(1j * pt.put_along_axis(
            pt.complex(x, y), pt.constant(POSITIONS), pt.complex(y, 2 * x), 1, "mul")),
        [(2, 3), (2, 3)]),
}  # fmt: skip


def points(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


def test_gradients():
    cases = {name: (function, points(*shapes)) for name, (function, shapes) in GRADIENTS.items()}
    cases["cumprod with zeros"] = (pt.cumprod, [np.array([1.0, 2.0, 0.0, 3.0, 0.0, 1.0])])
    for name, part in {"": lambda x: x, " of complex numbers": lambda x: pt.complex(x, x[::-1])}.items():
        cases[f"second derivative{name}"] = (
            lambda x, part=part: graphc.grad(pt.real((1 + 2j) * pt.cumprod(part(x))).sum(), x),
            points(4),
        )
    verify_grads(cases)


def test_forward_mode(rng):
    x, t = pt.dmatrix("x"), pt.dmatrix("t")
    outputs = [pt.cumprod(x, 0), pt.cummax(x, 1), pt.sort(x), pt.topk(x, 2), pt.cumsum(x, 1)]
    forward = graphc.pushforward(outputs, x, t)
    weights = [pt.tensor(dtype="float64", shape=(None, None)) for _ in outputs]
    pulled = [graphc.grad((y * w).sum(), x) for y, w in zip(outputs, weights, strict=True)]
    sums = [(d * w).sum() - (g * t).sum() for d, w, g in zip(forward, weights, pulled, strict=True)]
    values = [rng.normal(size=(3, 2 if i == 3 else 5)) for i in range(5)]
    for difference in graphc.function([x, t, *weights], sums)(
        rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), *values
    ):
        assert abs(difference) < 1e-10


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_derivatives_at_ties_are_those_of_a_stable_sort(mode, rng):
    x, w, t = pt.dvector("x"), pt.dvector("w"), pt.dvector("t")
    few, several = pt.partition(x, [40]), pt.partition(x, [3, 90])
    values = [few, several, pt.quantile(x, 0.4), pt.median(x)]
    slopes = [graphc.grad((y * (w if y.ndim else 1)).sum(), x) for y in values]
    tangents = [graphc.pushforward(y, x, t) for y in values[:2]]
    f = graphc.function([x, w, t], [*values, *slopes, *tangents], mode=mode, on_unused_input="ignore")
    weights, direction = rng.normal(size=(2, 100))
    for number in (3, 30, 1000):
        a = rng.integers(0, number, 100).astype(float)
        order = np.argsort(a, kind="stable")
        *results, quantile, median = f(a, weights, direction)[:4]
        *found, at_quantile, at_median = f(a, weights, direction)[4:8]
        for y, slope, tangent in zip(results, found, f(a, weights, direction)[8:], strict=True):
            place = np.empty(100, int)
            place[np.argsort(y, kind="stable")] = order
            np.testing.assert_array_equal(a[place], y)
            np.testing.assert_array_equal(slope[place], weights)
            np.testing.assert_array_equal(tangent, direction[place])
        want = np.zeros(100)
        want[order[[49, 50]]] = 0.5
        np.testing.assert_array_equal(at_median, want)
        place = 0.4 * 99
        want = np.zeros(100)
        want[order[[39, 40]]] = [1 - place % 1, place % 1]
        np.testing.assert_allclose(at_quantile, want, rtol=1e-12)
        assert (quantile, median) == (np.quantile(a, 0.4), np.median(a))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_median_at_the_limits_of_numbers(mode):
    x = pt.dvector("x")
    f = graphc.function([x], [pt.median(x), graphc.grad(pt.median(x), x)], mode=mode)
    for a in ([np.inf, np.inf, 1], [np.inf, 1, np.inf, np.inf], [5e-324] * 2, [1.7e308] * 4, [-0.0, -0.0]):
        value, slope = f(a)
        assert value == a[0]
        assert np.isfinite(slope).all() and slope.sum() == 1


def test_batches(rng):
    x = pt.dvector("x")
    m = pt.dmatrix("m")
    outputs = [
        pt.sort(x),
        pt.argsort(x),
        pt.cumsum(x),
        pt.cummax(x),
        pt.topk(x, 2),
        pt.median(x),
        x[pt.argsort(x)],
    ]
    batched = graphc.vectorize_graph(outputs, {x: m})
    a = rng.normal(size=(3, 6))
    single = graphc.function([x], outputs)
    rows = [single(row) for row in a]
    for number, got in enumerate(graphc.function([m], batched)(a)):
        np.testing.assert_allclose(got, np.stack([row[number] for row in rows]))


def test_convolutions(rng):
    a, v = pt.dvector("a"), pt.dvector("v")
    calls = [(name, mode) for name in ("convolve", "correlate") for mode in ("full", "same", "valid")]
    f = graphc.function([a, v], [getattr(pt, name)(a, v, mode) for name, mode in calls])
    for m, n in ((1, 1), (5, 3), (3, 5), (4, 4), (6, 2), (2, 6), (50, 7)):
        x, y = rng.normal(size=m), rng.normal(size=n)
        for got, (name, mode) in zip(f(x, y), calls, strict=True):
            np.testing.assert_allclose(
                got, getattr(np, name)(x, y, mode), atol=1e-12, err_msg=f"{name} {mode}"
            )
    with pytest.raises(ValueError, match="mode must be"):
        pt.convolve(a, v, "half")

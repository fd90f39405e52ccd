# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Order statistics, reductions that pass over NaN, sets, counts and histograms, against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

METHODS = (
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "hazen",
    "weibull",
    "inverted_cdf",
    "closest_observation",
)
METHODS += ("averaged_inverted_cdf", "interpolated_inverted_cdf", "median_unbiased", "normal_unbiased")
STATISTICS = [
    lambda p, x: p.median(x),
    lambda p, x: p.median(x, axis=0),
    lambda p, x: p.median(x, axis=1, keepdims=True),
    lambda p, x: p.quantile(x, [0.1, 0.25, 0.77], axis=1),
    lambda p, x: p.quantile(x, np.linspace(0, 1, 7), axis=1, keepdims=True),
    lambda p, x: p.quantile(x, 0.3),
    lambda p, x: p.percentile(x, [0, 50, 100], axis=0),
    *(lambda p, x, m=m: p.quantile(x, [0, 0.1, 0.25, 0.5, 0.77, 1], axis=1, method=m) for m in METHODS),
    *(lambda p, x, m=m: p.nanquantile(x, 1 / 3, method=m) for m in METHODS),
    lambda p, x: p.quantile(x, [[0.1, 0.2, 0.3], [0.5, 1, 0]], axis=1),
    lambda p, x: p.nanpercentile(x, [[10, 20]], axis=0, keepdims=True),
    lambda p, x: p.nanmedian(x, axis=1),
    lambda p, x: p.nanquantile(x, [0.2, 0.6], axis=0),
    lambda p, x: p.nanpercentile(x, 30),
]
REDUCTIONS = [
    lambda p, x: p.nansum(x, axis=0),
    lambda p, x: p.nanprod(x, axis=0),
    lambda p, x: p.nanmean(x),
    lambda p, x: p.nanvar(x, axis=1, ddof=1),
    lambda p, x: p.nanstd(x),
    lambda p, x: p.nanmax(x, axis=1),
    lambda p, x: p.nanmin(x),
    lambda p, x: p.nanargmax(x[:1], axis=1),
    lambda p, x: p.cov(x),
    lambda p, x: p.corrcoef(x),
    lambda p, x: p.cov(x, rowvar=False, bias=True),
    lambda p, x: p.average(x, axis=1, weights=p.arange(x.shape[1]) + 1.0),
    lambda p, x: p.nancumsum(x, axis=1),
    lambda p, x: p.nancumprod(x, axis=0),
]


def compare(functions, variables, cases, rtol=1e-10):
    """All functions of a namespace and some arguments, ours compiled into one executable."""
    f = graphc.function(
        variables, [function(pt, *variables) for function in functions], on_unused_input="ignore"
    )
    for values in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [function(np, *values) for function in functions]
        for number, (got, want) in enumerate(zip(f(*values), expected, strict=True)):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-12, err_msg=str(number))
            assert got.dtype == np.asarray(want).dtype, number


def matrices():
    rng = np.random.default_rng(0)
    plain, holes = rng.normal(size=(5, 30)), rng.normal(size=(4, 9))
    holes[1, -1] = holes[2] = np.nan
    yield from ((rng.normal(size=shape),) for shape in ((3, 4), (2, 1)))
    yield from ((plain,), (holes,))


def test_order_statistics():
    compare(STATISTICS, [pt.dmatrix("x")], matrices())


@pytest.mark.parametrize(
    "x", [[-np.inf, np.inf, 5.0, 4.0], [np.inf, np.inf, 1.0], [1.7e308, -1.7e308]], ids=str
)
def test_between_infinities_and_large_numbers(x):
    """Part of the way to an infinity is that infinity, where NumPy has NaN; medians are quantiles."""
    x, fractions = np.array(x), np.linspace(0, 1, 13)
    place = fractions * (x.size - 1)
    part, low, high = (
        place % 1,
        np.sort(x)[np.floor(place).astype(int)],
        np.sort(x)[np.ceil(place).astype(int)],
    )
    with np.errstate(invalid="ignore"):
        expected = np.where(part, low * (1 - part) + high * part, low)
    found = [pt.quantile(x, fractions), pt.nanquantile(x, fractions), pt.quantile(x, fractions[:3])]
    for each in found:
        np.testing.assert_allclose(each.eval(), expected[: each.eval().size], 1e-12)
    for each in (pt.median(x), pt.nanmedian(x), pt.nanmedian(x[None], axis=1)[0]):
        np.testing.assert_array_equal(each.eval(), np.median(x))


def test_reductions_that_pass_over_nan():
    compare(REDUCTIONS, [pt.dmatrix("x")], matrices())


SETS = [
    lambda p, i, j: p.unique(i),
    lambda p, i, j: p.unique(i, return_counts=True)[1],
    *(lambda p, i, j, n=n: p.unique(i, True, True, True)[n] for n in range(4)),
    lambda p, i, j: p.isin(i, j),
    lambda p, i, j: p.isin(i, [1, 2, 3]),
    lambda p, i, j: p.isin(i, j, invert=True),
    lambda p, i, j: p.union1d(i, j),
    lambda p, i, j: p.intersect1d(i, j),
    lambda p, i, j: p.setdiff1d(i, j),
    lambda p, i, j: p.setxor1d(i, j),
]
COUNTS = [
    lambda p, i, j: p.bincount(i),
    lambda p, i, j: p.bincount(i, minlength=12),
    lambda p, i, j: p.bincount(i, weights=i * 0.5),
    lambda p, i, j: p.histogram(i, weights=i * 2.0)[0],
    lambda p, i, j: p.histogram(i, bins=[0, 2, 4, 9])[0],
]


def vectors(*sizes):
    rng = np.random.default_rng(1)
    for n, m in sizes:
        yield rng.integers(0, 9, n), rng.integers(0, 9, m)


def test_sets():
    compare(SETS, [pt.lvector("i"), pt.lvector("j")], vectors((20, 4), (1, 0), (0, 3), (50, 30)))


def test_unique_counts_nan_once():
    values = np.array([2.0, np.nan, -0.0, 0.0, np.nan, 2.0])
    compare([lambda p, x: p.unique(x)], [pt.dvector("x")], [(values,)])


def test_sets_with_nan_and_integers_of_two_kinds():
    """NaN is in no other array, and no integer is its neighbour."""
    values = np.array([2.0, np.nan, 0.0, np.nan, 2.0])
    compare(SETS[-4:], [pt.dvector("i"), pt.dvector("j")], [(values, values[:2]), (values[1:2], values[:0])])
    i, j = pt.vector("i", dtype="uint64"), pt.lvector("j")
    f = graphc.function([i, j], [pt.intersect1d(i, j), pt.setdiff1d(i, j), pt.setxor1d(i, j)])
    found = f(np.array([2**62 + 1, 5, 2**63 + 1], "uint64"), np.array([2**62, 5]))
    assert [each.tolist() for each in found] == [[5.0], [2**62 + 1, 2**63 + 1], [2.0**62, 2.0**62, 2.0**63]]


def test_unique_slices():
    m = pt.tensor("m", dtype="int64", shape=(None, 3))
    f = graphc.function([m], pt.unique(m, True, True, True, axis=0))
    a = np.random.default_rng(0).integers(0, 2, (30, 3))
    for got, want in zip(f(a), np.unique(a, True, True, True, axis=0), strict=True):
        np.testing.assert_array_equal(got, want)


def test_counts():
    compare(COUNTS, [pt.lvector("i"), pt.lvector("j")], vectors((20, 4), (1, 0), (50, 30)))
    with pytest.raises(ValueError, match="negative"):
        i = pt.lvector("i")
        graphc.function([i], pt.bincount(i))(np.array([1, -2]))


def test_histograms():
    functions = [
        lambda p, x: p.histogram(x)[0],
        lambda p, x: p.histogram(x, bins=7)[1],
        lambda p, x: p.histogram(x, bins=[-1.0, 0, 0.5, 2])[0],
        lambda p, x: p.histogram(x, bins=5, range=(-1, 1), density=True)[0],
        lambda p, x: p.histogram(x, weights=x * x)[0],
    ]
    rng = np.random.default_rng(0)
    cases = [(rng.normal(size=n),) for n in (1, 50, 1000)] + [(rng.integers(0, 5, 30) / 2,)]
    compare(functions, [pt.dvector("x")], cases)
    x = pt.dvector("x")
    for got, want in zip(graphc.function([x], pt.histogram(x))(np.zeros(0)), np.histogram([]), strict=True):
        np.testing.assert_array_equal(got, want)


AVERAGES = [
    lambda p, x, v, m: p.average(x, axis=(2, 0), weights=m),
    lambda p, x, v, m: p.average(x, axis=(-3, 2), weights=m.T),
    lambda p, x, v, m: p.average(x, axis=1, weights=v, keepdims=True),
    lambda p, x, v, m: p.average(x, axis=1, weights=x**2),
    lambda p, x, v, m: p.average(v, axis=0, weights=v + 1),
    lambda p, x, v, m: p.polyfit(v, v**2, 1, w=v + 1),
]


def test_weights_along_several_axes():
    rng = np.random.default_rng(7)
    values = rng.random((2, 3, 4)), rng.random(3), rng.random((4, 2))
    compare(AVERAGES, [pt.dtensor3("x"), pt.dvector("v"), pt.dmatrix("m")], [values])


@pytest.mark.parametrize(
    "weighted",
    [
        lambda x, w: pt.average(x, weights=w),
        lambda x, w: pt.average(x[:, None] * x, axis=1, weights=w),
        lambda x, w: pt.average(x[:, None] * x, weights=w * w[:, None]),
        lambda x, w: pt.polyfit(x, x, 1, w=w),
        lambda x, w: pt.histogram(x, weights=w)[0],
        lambda x, w: pt.bincount(pt.cast(x, "int64"), weights=w),
    ],
)
@pytest.mark.parametrize("static", [True, False])
def test_weights_do_not_broadcast(weighted, static):
    """One weight for several elements is no weight for each, whether the sizes are known or not."""
    for size in (1, 2):
        with pytest.raises(ValueError):
            x, w = (np.arange(3.0), np.ones(size)) if static else pt.vectors("x", "w")
            x, w = (pt.constant(x), pt.constant(w)) if static else (x, w)
            weighted(x, w).eval(None if static else {x: np.arange(3.0), w: np.ones(size)})

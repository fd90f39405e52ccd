# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding errors of compiled reductions, against exact sums; and reductions of nothing and of one number."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

MODES = ["fast_run", "fast_compile"]
EPS32 = float(np.finfo("float32").eps)


def reduced(value, build, mode="fast_run"):
    x = pt.tensor("x", dtype=value.dtype.name, shape=(None,) * value.ndim)
    return graphc.function([x], build(x), mode=mode)(value)


def exact(values) -> float:
    """The sum without rounding errors."""
    return math.fsum(np.asarray(values, "float64").ravel())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [7, 1000, 4097, 1_000_000])
def test_sum_of_floats(mode, count):
    """A running sum of 1e6 numbers near 1 is off by up to 1e6 eps / 2, and by about 200 eps in practice."""
    value = np.random.default_rng(count).uniform(0.5, 1.5, count).astype("float32")
    error = abs(float(reduced(value, lambda x: x.sum(), mode)) - exact(value)) / exact(value)
    assert error <= 20 * EPS32, f"relative error {error / EPS32:.0f} eps"


def test_sum_of_equal_numbers_does_not_drift():
    """Each partial sum rounds in the same direction: 0.1 a million times is 100958.34 when added in turn."""
    value = np.full(1_000_000, 0.1, "float32")
    got = float(reduced(value, lambda x: x.sum()))
    assert got == pytest.approx(exact(value), rel=50 * EPS32)


def test_sum_with_cancellation():
    """The error is relative to the sum of magnitudes."""
    rng = np.random.default_rng(1)
    value = rng.normal(size=200_000).astype("float32")
    got = float(reduced(value, lambda x: x.sum()))
    assert abs(got - exact(value)) <= 20 * EPS32 * exact(abs(value))
    value = rng.normal(size=200_000)
    got = float(reduced(value, lambda x: x.sum()))
    assert abs(got - exact(value)) <= 20 * np.finfo("float64").eps * exact(abs(value))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(3000, 7), (7, 3000), (1000, 1000)])
def test_row_and_column_sums(mode, axis, shape):
    value = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype("float32")
    got = reduced(value, lambda x: x.sum(axis=axis), mode)
    want = np.apply_along_axis(exact, axis, value)
    # Columns are summed row by row, so that memory is read in order: like NumPy's, their error grows.
    bound = 20 * EPS32 if axis == 1 else max(20, shape[0] / 4) * EPS32
    assert np.max(abs(got - want) / want) <= bound


def test_mean_and_variance_far_from_zero():
    """var subtracts the mean first: the textbook formula would lose all digits here."""
    value = (1e4 + np.random.default_rng(0).normal(size=300_000)).astype("float32")
    wide = value.astype("float64")
    assert float(reduced(value, lambda x: x.mean())) == pytest.approx(wide.mean(), rel=20 * EPS32)
    assert float(reduced(value, lambda x: x.var())) == pytest.approx(wide.var(), rel=2e-3)
    assert float(reduced(value, lambda x: x.std())) == pytest.approx(wide.std(), rel=2e-3)
    rows = wide.reshape(300, 1000)
    np.testing.assert_allclose(reduced(rows, lambda x: x.var(axis=0)), rows.var(axis=0), rtol=1e-10)
    np.testing.assert_allclose(reduced(rows, lambda x: x.var(axis=1)), rows.var(axis=1), rtol=1e-10)


def test_sum_of_halves():
    """NumPy sums float16 in float32; a sum above 2048 needs that to count ones."""
    value = np.ones(5000, "float16")
    got = reduced(value, lambda x: x.sum())
    assert got.dtype == np.sum(value).dtype and float(got) == float(np.sum(value))


def test_small_integers_do_not_wrap():
    value = np.full(1000, 100, "int8")
    got = reduced(value, lambda x: x.sum())
    assert got == 100_000 and got.dtype == np.sum(value).dtype
    truth = np.ones((4, 300), bool)
    np.testing.assert_array_equal(reduced(truth, lambda x: x.sum(axis=1)), [300] * 4)


def test_logsumexp_and_softmax_of_large_numbers():
    value = np.array([[1000.0, 1000.0, -1000.0], [-1000.0, -1000.5, -1001.0]])
    shifted = value - value.max(axis=1, keepdims=True)
    want = np.log(np.exp(shifted).sum(axis=1)) + value.max(axis=1)
    np.testing.assert_allclose(reduced(value, lambda x: pt.logsumexp(x, axis=1)), want, rtol=1e-14)
    np.testing.assert_allclose(reduced(value, lambda x: pt.softmax(x, axis=1)).sum(axis=1), 1.0, rtol=1e-14)


EMPTY = {"sum": 0.0, "prod": 1.0}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EMPTY)
def test_of_nothing(mode, name):
    def build(x):
        return [getattr(x, name)(), getattr(x, name)(axis=0), getattr(x, name)(axis=1)]

    for shape in ((0, 3), (3, 0), (0, 0)):
        whole, columns, rows = reduced(np.empty(shape), build, mode)
        assert whole == EMPTY[name] and whole.shape == ()
        np.testing.assert_array_equal(columns, np.full(shape[1], EMPTY[name]))
        np.testing.assert_array_equal(rows, np.full(shape[0], EMPTY[name]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_nothing_are_errors(mode, name):
    with pytest.raises(ValueError, match=r"empty|no element|zero-size"):
        reduced(np.empty(0), lambda x: getattr(pt, name)(x, axis=0), mode)
    # There is no row to reduce, so there is nothing wrong.
    assert reduced(np.empty((0, 3)), lambda x: getattr(pt, name)(x, axis=1), mode).shape == (0,)


def test_mean_of_nothing_is_nan():
    assert np.isnan(reduced(np.empty(0), lambda x: x.mean()))


@pytest.mark.parametrize("mode", MODES)
def test_of_one_number(mode):
    value = np.asarray(-2.5)
    results = reduced(
        value, lambda x: [x.sum(), x.prod(), x.max(), x.min(), x.mean(), x.var(), pt.any(x), pt.all(x)], mode
    )
    assert [r[()] for r in results] == [-2.5, -2.5, -2.5, -2.5, -2.5, 0.0, True, True]
    assert all(r.shape == () for r in results)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(mode, dtype):
    value = np.array([[1, np.nan, 3], [np.inf, 1, 2], [np.inf, -np.inf, 0], [-0.0, -0.0, -0.0]], dtype)
    with np.errstate(invalid="ignore"):
        for name in ("sum", "prod", "max", "min", "argmax", "argmin"):
            got = reduced(value, lambda x, name=name: getattr(pt, name)(x, axis=1), mode)
            np.testing.assert_array_equal(got, getattr(np, name)(value, axis=1), err_msg=name)

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


@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf, -0.0])
def test_extremes_of_long_rows(special):
    """Rows of more than 2048 doubles are compared 16 at a time, in runs of 512, and then one by one."""
    x = pt.vector("x")
    f = graphc.function([x], [x.argmax(), x.argmin()])
    rng = np.random.default_rng(17)
    for n in (2048, 2049, 2063, 2064, 2560, 4099):
        for place in (0, 1, 15, 16, 511, 512, n - 17, n - 16, n - 1):
            value = rng.standard_normal(n)
            value[place] = 9.0 if special is None else special
            for given in (value, -value, np.round(value), np.sort(value)):
                assert [int(r) for r in f(given)] == [given.argmax(), given.argmin()], (n, place)
    for value in (np.full(3000, special or 1.0), np.zeros(3000)):
        assert [int(r) for r in f(value)] == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_accumulators_are_wider_than_what_they_add_up(dtype):
    """As PyTensor's ``acc_dtype``; in every mode, also along other axes, of computed values and in loops."""
    big = 6e4 if dtype == "float16" else 1e8
    value = np.array([[big, 1, -big], [-big, 1, big], [3, 3, 3]], dtype)
    tiny = np.array([1e-30, 1e-30, 1e30, 1e30] if dtype != "float16" else [1e-4, 1e-4, 1e4, 1e4], dtype)
    x, y = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype)
    one = pt.constant(np.ones((), dtype))
    outputs = {
        "rows": (x.sum(axis=1), [1, 1, 9]),
        "means": (pt.mean(x[:2], axis=1), [np.float32(1 / 3)] * 2),
        "columns": (pt.concatenate([x, -x, one * x[2:]]).sum(axis=0), [3, 3, 3]),
        "computed": ((x[0] * one).sum(), 1),
        "product": (pt.prod(y), 1),
        "looped": (graphc.scan(lambda row: row.sum(), sequences=[x], return_updates=False), [1, 1, 9]),
        "expression": (pt.sum(pt.sum(x, axis=0)[:2] + one), 4 + 6),
    }
    for mode in (*MODES, "reference"):
        found = graphc.function([x, y], {k: v for k, (v, _) in outputs.items()}, mode=mode)(value, tiny)
        for name, (_, want) in outputs.items():
            assert found[name].dtype == dtype
            np.testing.assert_allclose(
                found[name], want, rtol=1e-3 if dtype == "float16" else 2e-7, err_msg=name
            )


def test_products_of_halves():
    """As NumPy's, they are added up in float32: of many numbers, and of large ones that cancel."""
    a, b = (
        pt.tensor("a", dtype="float16", shape=(None, None)),
        pt.tensor("b", dtype="float16", shape=(None, None)),
    )
    v = pt.tensor("v", dtype="float16", shape=(None,))
    outputs = [
        a @ b, a @ v, pt.dot(v, v * 0.5), pt.tensordot(a, b, 1), pt.einsum("ij,jk->k", a, b),
        pt.einsum("ij,j->i", a, v), pt.inner(a, a * 1), pt.vecdot(a, a),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for mode in (*MODES, "reference"):
        f = graphc.function([a, b, v], outputs, mode=mode)
        p, q = rng.uniform(size=(3, 4096)).astype("float16"), rng.uniform(size=(4096, 2)).astype("float16")
        r = rng.uniform(size=4096).astype("float16")
        wide = [x.astype("float64") for x in (p, q, r)]
        for got, want in zip(
            f(p, q, r),
            [
                wide[0] @ wide[1], wide[0] @ wide[2], wide[2] @ (r * np.float16(0.5)).astype("float64"),
                wide[0] @ wide[1], (wide[0] @ wide[1]).sum(0), wide[0] @ wide[2], wide[0] @ wide[0].T,
                (wide[0] ** 2).sum(1),
            ],
            strict=True,
        ):  # fmt: skip
            assert got.dtype == np.float16
            np.testing.assert_allclose(got, want, rtol=6e-4)
        large = f(np.float16([[65504, -65504]]), np.float16([[2, 2], [2, 2]]), np.float16([2, 2]))
        for got in (large[0], large[1], large[3], large[4], large[5]):
            assert (got == 0).all()

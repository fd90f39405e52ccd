# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks, and other results whose size depends on elements; advanced indexing by NumPy's rules."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.ops.counting import FlatNonzero


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def _changed(a, index, value):
    out = a.copy()
    out[index] = value
    return out


def test_masks_select_and_set(rng):
    x, m = pt.dvector("x"), pt.dmatrix("m")
    k = pt.tensor("k", dtype="bool", shape=(None, None))
    outputs = [
        x[x > 0], m[k], (m * 2)[k].sum(), m[m[:, 0] > 0], m[m[:, 0] > 0, 1], m[:, m[0] > 0],
        x[x > 0].set(3.0), x[x > 0].inc(x[x > 0] * 2), m[k].set(0.0),
        m[m[:, 0] > 0].set(pt.zeros(m.shape[1])), pt.flatnonzero(k), *pt.nonzero(m > 0), pt.argwhere(k),
        pt.nonzero_values(x), pt.count_nonzero(k, axis=0), pt.extract(k, m),
        pt.compress([True, False, True], m, 0),
    ]  # fmt: skip
    f = graphc.function([x, m, k], outputs)
    for n, shape in ((7, (4, 5)), (0, (3, 3)), (1, (3, 4)), (100, (20, 30))):
        a, b, c = rng.normal(size=n), rng.normal(size=shape), rng.random(shape) < 0.5
        first = b[:, 0] > 0
        expected = [
            a[a > 0], b[c], (b * 2)[c].sum(), b[first], b[first, 1], b[:, b[0] > 0],
            _changed(a, a > 0, 3.0), np.where(a > 0, 3 * a, a), _changed(b, c, 0.0), _changed(b, first, 0.0),
            np.flatnonzero(c), *np.nonzero(b > 0), np.argwhere(c), a[a != 0], np.count_nonzero(c, axis=0),
            np.extract(c, b), np.compress([True, False, True], b, axis=0),
        ]  # fmt: skip
        for got, want in zip(f(a, b, c), expected, strict=True):
            np.testing.assert_allclose(got, want)
            assert got.dtype == np.asarray(want).dtype


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_masks_of_every_dtype_and_length(rng, dtype):
    x, k = pt.tensor(dtype=dtype, shape=(None,)), pt.tensor(dtype="bool", shape=(None,))
    f = graphc.function([x, k], [x[k], pt.flatnonzero(k), pt.flatnonzero(x)])
    for n in (0, 1, 8, 9, 127, 128, 300):
        for density in (0.0, 0.01, 0.5, 1.0):
            a, c = (rng.normal(size=n + 3) * 3).astype(dtype)[3:], (rng.random(n + 3) < density)[3:]
            for got, want in zip(f(a, c), (a[c], np.flatnonzero(c), np.flatnonzero(a)), strict=True):
                np.testing.assert_array_equal(got, want)


def test_mask_errors():
    x, m = pt.tensor("x", dtype="float64", shape=(3,)), pt.dmatrix("m")
    k = pt.tensor("k", dtype="bool", shape=(None,))
    with pytest.raises(IndexError, match="does not fit"):
        x[np.array([True, False])]
    with pytest.raises(IndexError, match="dimension 0 has size 2, expected 3"):
        graphc.function([m, k], m[k])(np.zeros((3, 2)), np.array([True, False]))
    with pytest.raises(TypeError, match="takes vectors"):
        FlatNonzero()(m > 0, 1)


def test_truth_values_select_from_a_new_axis():
    """A mask without dimensions takes everything or nothing, as NumPy has it: known, and only when run."""
    cases = [
        lambda b: b,
        lambda b: (slice(1, None), b),
        lambda b: (..., b),
        lambda b: (b, np.array([1])),
        lambda b: (None, 1, b),
        lambda b: (np.array([True, False]), b),
        lambda b: (slice(None), [2], b),
    ]
    x, b = pt.dmatrix("x"), pt.scalar("b", dtype="bool")
    a = np.arange(6.0).reshape(2, 3)
    outputs = [x[index(c)] for index in cases for c in (b, True, np.False_)]
    f = graphc.function([x, b], [*outputs, *(pt.set_subtensor(y, -1.0) for y in outputs), b[b], b[...]])
    for value in (True, np.False_):
        wanted = [index(c) for index in cases for c in (value, True, np.False_)]
        changed = [a.copy() for _ in wanted]
        for each, index in zip(changed, wanted, strict=True):
            each[index] = -1.0
        expected = [*(a[index] for index in wanted), *changed, np.asarray(value)[value], value]
        for got, want in zip(f(a, value), expected, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.shape == np.shape(want)


INDICES = [
    lambda i, j, b, b2, b3: (i,),
    lambda i, j, b, b2, b3: (slice(None), i),
    lambda i, j, b, b2, b3: (i, i),
    lambda i, j, b, b2, b3: (i, slice(None), i),
    lambda i, j, b, b2, b3: (i, None, i),
    lambda i, j, b, b2, b3: (j, i),
    lambda i, j, b, b2, b3: (slice(1), j, i),
    lambda i, j, b, b2, b3: (Ellipsis, i),
    lambda i, j, b, b2, b3: (None, i, None, i),
    lambda i, j, b, b2, b3: (i, 0),
    lambda i, j, b, b2, b3: (0, slice(None), i),
    lambda i, j, b, b2, b3: (slice(None), 0, i),
    lambda i, j, b, b2, b3: (b, 1),
    lambda i, j, b, b2, b3: (b, slice(None), i),
    lambda i, j, b, b2, b3: (slice(None), b3),
    lambda i, j, b, b2, b3: (b2,),
    lambda i, j, b, b2, b3: (b2, 0),
    lambda i, j, b, b2, b3: (b2, Ellipsis),
    lambda i, j, b, b2, b3: (0, b3[:, 0]),
    lambda i, j, b, b2, b3: (None, b2),
    lambda i, j, b, b2, b3: (slice(1, 3), None, i, None),
    lambda i, j, b, b2, b3: (i, slice(None, None, -1), 1),
]


@pytest.mark.parametrize("symbolic", [False, True])
def test_advanced_indexing(rng, symbolic):
    x = pt.dtensor3("x")
    values = [
        np.array([0, -1, 2]), np.array([[1], [3]]), np.array([True, False, True, True]),
        rng.random((4, 5)) < 0.5, rng.random((5, 6)) < 0.5,
    ]  # fmt: skip
    items = list(values)
    if symbolic:
        items = [
            pt.tensor(dtype=v.dtype.name, shape=tuple(1 if n == 1 else None for n in v.shape)) for v in values
        ]
    outputs = []
    for index in INDICES:
        part = x[index(*items)]
        outputs += [part, pt.set_subtensor(part, 1.5)]
        outputs += [pt.inc_subtensor(part, part * 2)] if symbolic else []
    inputs, a = [x, *(items if symbolic else ())], rng.normal(size=(4, 5, 6))
    got = graphc.function(inputs, outputs, mode="fast_compile")(a, *(values if symbolic else ()))
    for number, index in enumerate(INDICES):
        where = index(*values)
        added = a.copy()
        np.add.at(added, where, a[where] * 2)
        expected = [a[where], _changed(a, where, 1.5), added]
        count = 3 if symbolic else 2
        for ours, want in zip(got[count * number : count * (number + 1)], expected, strict=False):
            np.testing.assert_allclose(ours, want, err_msg=str(where))


def test_updates_with_repeated_positions(rng):
    x, i, y, k = pt.dmatrix("x"), pt.lvector("i"), pt.dvector("y"), pt.lmatrix("k")
    outputs = [
        x.at[i].max(0.1), x.at[i, 0].min(y), x.at[:, k].multiply(2.0), x.at[1:3].max(0.0),
        x.at[i, i % 4].max(y),
        x.at[x > 0].max(0.5), x.at[i].add(1.0), x.at[0].set(3.0), x.at[::2, i % 4].min(y[:5]),
    ]  # fmt: skip
    f = graphc.function([x, i, y, k], outputs)
    a, at = rng.normal(size=(6, 4)), np.array([0, 2, 0, -1, 2])
    b, c = rng.normal(size=5), np.array([[0, 1], [1, 3]])

    def changed(ufunc, where, value):
        out = a.copy()
        ufunc.at(out, where, value)
        return out

    expected = [
        changed(np.maximum, at, 0.1), changed(np.minimum, (at, 0), b),
        changed(np.multiply, (slice(None), c), 2.0),
        changed(np.maximum, slice(1, 3), 0.0), changed(np.maximum, (at, at % 4), b),
        np.where(a > 0, np.maximum(a, 0.5), a), changed(np.add, at, 1.0), _changed(a, 0, 3.0),
        changed(np.minimum, (slice(None, None, 2), at % 4), b),
    ]  # fmt: skip
    for got, want in zip(f(a, at, b, c), expected, strict=True):
        np.testing.assert_allclose(got, want)


def test_repeat(rng):
    x, m, r = pt.dvector("x"), pt.dmatrix("m"), pt.lvector("r")
    f = graphc.function(
        [x, m, r], [pt.repeat(x, r), pt.repeat(m, 2, axis=1), pt.repeat(m, [2, 0, 1], axis=0)]
    )
    a, b, n = rng.normal(size=4), rng.normal(size=(3, 2)), np.array([0, 3, 1, 2])
    expected = [np.repeat(a, n), np.repeat(b, 2, axis=1), np.repeat(b, [2, 0, 1], axis=0)]
    for got, want in zip(f(a, b, n), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="at least 0"):
        pt.repeat(x, -1)


def test_take_and_put_along_axis(rng):
    x, i = pt.dmatrix("x"), pt.lmatrix("i")
    modes = ("set", "add", "mul", "max", "min")
    f = graphc.function(
        [x, i], [pt.take_along_axis(x, i, 1), *(pt.put_along_axis(x, i, x * 2, 1, mode) for mode in modes)]
    )
    a, at = rng.normal(size=(3, 4)), rng.integers(-4, 4, (3, 4))
    rows = np.arange(3)[:, None]
    taken, *put = f(a, at)
    np.testing.assert_array_equal(taken, np.take_along_axis(a, at, 1))
    for got, ufunc in zip(put[1:], (np.add, np.multiply, np.maximum, np.minimum), strict=True):
        want = a.copy()
        ufunc.at(want, (rows, at), a * 2)
        np.testing.assert_allclose(got, want)
    with pytest.raises(IndexError, match="out of bounds"):
        f(a, at + 9)


def test_choose_and_select(rng):
    x, i = pt.dmatrix("x"), pt.lmatrix("i")
    f = graphc.function(
        [x, i],
        [
            pt.choose(i, [x, x * 2]),
            pt.choose(i, [x, -x], mode="clip"),
            pt.select([x > 1, x > 0], [x, -x], 5.0),
        ],
    )
    a = rng.normal(size=(3, 4))
    b = (a > 0).astype(np.int64)
    expected = [np.choose(b, [a, a * 2]), np.choose(b, [a, -a]), np.select([a > 1, a > 0], [a, -a], 5.0)]
    for got, want in zip(f(a, b), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError, match="out of bounds"):
        f(a, b - 1)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_each_kind_of_index_that_does_not_fit_is_an_index_error(mode):
    x, m, i, n = pt.dvector("x"), pt.dmatrix("m"), pt.lvector("i"), pt.lscalar("n")
    k, km = pt.tensor("k", dtype="bool", shape=(None,)), pt.tensor("km", dtype="bool", shape=(None, None))
    row, rows = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    loop = graphc.scan(lambda j: x[j], n + pt.arange(2), return_updates=False)
    cases = [
        ([x, n], [x[n], loop, pt.set_subtensor(x[n], 1.0), graphc.ifelse(n > 0, x[n], 0.0)], (row, 7)),
        ([x, i], [pt.exp(x[i]) * x[i], pt.inc_subtensor(x[i], 1.0), pt.take(x, i)], (row, [0, 9])),
        ([x, k], [x[k], pt.set_subtensor(x[k], 1.0), x[k].sum() * 2], (row, [True, False])),
        ([m, km], [m[km], pt.inc_subtensor(m[km], 1.0)], (rows, np.ones((3, 3), bool))),
        ([m, k], [m[:, k], pt.set_subtensor(m[:, k], 2.0)], (rows, [True, True])),
        ([m, i], [m[i, pt.constant([0, 1, 2])], m[i, pt.concatenate([i, i])]], (rows, [0, 1])),
        ([x, n], [x[n]], (row[:0], 0)),
    ]
    for inputs, outputs, values in cases:
        for output in outputs if mode == "fast_run" else outputs[:1]:
            with pytest.raises(IndexError):
                graphc.function(inputs, output, mode=mode)(*map(np.asarray, values))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
@pytest.mark.parametrize("shape", [(0, 1), (3, 2), (1, 0), (2, 0, 3), (2, 3, 4)])
def test_a_mask_of_no_elements_fits_as_in_numpy(shape, mode):
    """In graphs, in assignments and at once; sizes known or not."""
    empty, x = np.zeros(0, bool), np.ones(shape)
    now = graphc.immediate.Environment().as_tensor(x)
    for index in ((empty,), (slice(None), empty), (..., empty)):
        assert np.asarray(now[index]).shape == x[index].shape
        for static in (shape, (None,) * len(shape)):
            v = pt.tensor("v", shape=static)
            outputs = [v[index], pt.set_subtensor(v[index], 2.0), graphc.grad(v[index].sum(), v)]
            found = graphc.function([v], outputs, mode=mode)(x)
            for got, want in zip(found, (x[index], x, 0 * x), strict=True):
                np.testing.assert_array_equal(got, want, strict=True)


def test_an_index_that_does_not_fit_is_an_index_error_at_once():
    env = graphc.immediate.Environment()
    x, m = env.as_tensor(np.arange(3.0)), env.as_tensor(np.ones((2, 3)))
    for index in (7, -4, np.array([0, 9]), np.array([True, False])):
        with pytest.raises(IndexError):
            np.asarray(x[index])
        with pytest.raises(IndexError):
            np.asarray(x[index].set(1.0))
    with pytest.raises(IndexError):
        np.asarray(m[env.as_tensor([0, 1]), env.as_tensor([0, 1, 2])])

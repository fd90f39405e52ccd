# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, partial sorting, searching, extremes: against NumPy for every dtype, with NaN and signed zeros."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.library import define, sorting

DTYPES = (
    *("float64", "float32", "float16", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint8", "bool", "complex128", "complex64"),
)
REAL = tuple(d for d in DTYPES if d[0] != "c")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def numbers(rng, n, dtype):
    """Random numbers with ties, and with special ones where there are any."""
    x = rng.normal(size=n) * 100
    if dtype[0] == "c":
        x = x.round(-1) + 1j * rng.normal(size=n).round()
    x = x.astype(dtype)
    if n > 8 and dtype[0] in "fc":
        x[[3, n - 1]], x[4], x[5], x[6], x[7] = np.nan, 0.0, -0.0, -np.inf, np.inf
        x[8] = -np.nan
    return x


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_partition(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    ranks = pt.lvector("ranks")
    f = graphc.function(
        [x, ranks], [pt.sort(x), pt.argsort(x), pt.partition(x, ranks), pt.argpartition(x, ranks)]
    )
    for n in (4, 25, 100, 300, 3000):
        v = numbers(rng, n, dtype)
        for kth in ([3], [1, 2], [2, 2, -1], [3, 0]):
            ordered, order, part, places = f(v, np.array(kth))
            expected = np.sort(v)
            np.testing.assert_array_equal(ordered, expected)
            np.testing.assert_array_equal(order, np.argsort(v, kind="stable"))
            np.testing.assert_array_equal(part[kth], expected[kth])
            np.testing.assert_array_equal(v[places][kth], expected[kth])
            np.testing.assert_array_equal(np.sort(part), expected)
            np.testing.assert_array_equal(np.sort(places), np.arange(n))
            for k in kth:
                at = k % n
                np.testing.assert_array_equal(np.sort(part[:at]), expected[:at])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32", "int16"])
@pytest.mark.parametrize("quickest", [True, False])
def test_both_sorts_of_large_arrays(monkeypatch, rng, dtype, quickest):
    """NumPy's and the radix sort, of which a machine uses the faster one."""
    limit = 1 << 62 if quickest else sorting.FEW
    monkeypatch.setattr(sorting, "MANY", dict.fromkeys((8, 16, 32, 64), limit))
    monkeypatch.setattr(sorting, "PAIRS", limit)
    monkeypatch.setattr(sorting, "DIRECT", {bits: quickest and bits > 16 for bits in sorting.DIRECT})
    texts, definition = [], define._definition.__wrapped__
    monkeypatch.setattr(define, "_definition", lambda *args: texts.append(definition(*args)) or texts[-1])
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    with graphc.config.change_flags(cache_dir=""):
        f = graphc.function([x], [pt.sort(x), pt.argsort(x)])
    assert any(str(1 << 62) in text for text in texts) == quickest and texts
    if dtype in ("float64", "float32", "int64"):  # others have keys of that name, or no sort of their own
        assert any(f"numpy_sort_{dtype}" in text for text in texts) == quickest
    plain = np.nan_to_num(numbers(rng, 3000, dtype)) + np.ones((), dtype)
    for v in (*(numbers(rng, n, dtype) for n in (25, 3000, 100_000)), plain):
        ordered, order = f(v)
        np.testing.assert_array_equal(ordered, np.sort(v))
        np.testing.assert_array_equal(order, np.argsort(v, kind="stable"))
    zeros = np.array([-0.0, 0.0] * 40).astype(dtype)
    np.testing.assert_array_equal(np.signbit(f(zeros)[0]), np.sort(np.signbit(zeros))[::-1])


def test_positions_of_keys_that_do_not_fit_into_a_word(monkeypatch, rng):
    """Words of the first bits of a key and its position: what agrees in them is sorted by the other bits."""
    monkeypatch.setattr(sorting, "DIRECT", {8: False, 16: False, 32: True, 64: True})
    # Other tests get no code that was made with this threshold.
    monkeypatch.setattr(define, "_definition", define._definition.__wrapped__)
    x, i, u = pt.dvector("x"), pt.lvector("i"), pt.vector("u", dtype="uint64")
    with graphc.config.change_flags(cache_dir=""):
        of = {v.type.dtype: graphc.function([v], pt.argsort(v)) for v in (x, i, u)}
    near = 1 + rng.integers(0, 40, 5000) * 2.0**-52
    clusters = rng.integers(0, 50, 5000) + rng.integers(0, 30, 5000) * 2.0**-46
    ends = np.array([-(2**63), 2**63 - 1, 0, -1, 1])
    cases = [
        near,
        clusters,
        rng.integers(0, 7, 5000) + rng.integers(0, 900, 5000) * 2.0**-50,
        np.where(rng.random(5000) < 0.5, np.nan, rng.standard_normal(5000)),
        rng.choice([0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.7e308], 5000),
        np.zeros(5000),
        np.arange(5000.0)[::-1],
        rng.choice(ends, 5000),
        rng.integers(-(2**63), 2**63 - 1, 70_000),
        rng.integers(-3, 3, 70_000),
        ends[rng.integers(0, 2, 4096)] // 2 + rng.integers(0, 100, 4096),
        rng.integers(2**63, 2**64 - 1, 5000, dtype="uint64"),
        rng.choice(np.array([0, 2**64 - 1, 2**63], "uint64"), 257),
    ]
    for v in cases:
        np.testing.assert_array_equal(of[str(v.dtype)](v), np.argsort(v, kind="stable"))


def test_sort_of_every_layout_and_axis(rng):
    x, y = pt.dtensor3("x"), pt.dmatrix("y")
    f = graphc.function([x, y], [pt.sort(x, a) for a in (0, 1, 2, None)] + [pt.argsort(x, 1), pt.sort(y[0])])
    base = rng.normal(size=(8, 9, 10))
    for v in (base, base[::2, ::-1, 1:], base.T, base[:0], base[:, :0], base[:1, :1, :1]):
        v.flags.writeable = False
        *sorts, order, row = f(v, base[0])
        for got, axis in zip(sorts, (0, 1, 2, None), strict=True):
            np.testing.assert_array_equal(got, np.sort(v, axis))
        np.testing.assert_array_equal(order, np.argsort(v, 1, kind="stable"))
        np.testing.assert_array_equal(row, np.sort(base[0][0]))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_modes_agree(rng, mode):
    x = pt.dmatrix("x")
    f = graphc.function(
        [x], [pt.sort(x), pt.argsort(x, 0), pt.partition(x, 2), *pt.topk_and_argtopk(x, 2), pt.argmax(x, 1)],
        mode=mode,
    )  # fmt: skip
    v = rng.normal(size=(4, 30))
    got = f(v)
    np.testing.assert_array_equal(got[0], np.sort(v))
    np.testing.assert_array_equal(got[1], np.argsort(v, 0))
    np.testing.assert_array_equal(got[2][:, 2], np.sort(v)[:, 2])
    np.testing.assert_array_equal(got[4], np.argsort(-v)[:, :2])
    np.testing.assert_array_equal(got[5], v.argmax(1))


def test_rank_out_of_bounds():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="rank is out of bounds"):
        graphc.function([x], pt.partition(x, 7))(np.zeros(3))


@pytest.mark.parametrize("dtype", REAL)
def test_extremes_and_topk(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    outputs = [pt.argmax(x, axis=1), pt.argmin(x, axis=1)]
    for k in (3, -3, x.shape[1]):
        outputs += pt.topk_and_argtopk(x, k)
    f = graphc.function([x], outputs)
    for n in (3, 17, 100, 300):
        for case in range(4):
            v = (rng.normal(size=(4, n)) * 100).astype(dtype)
            if dtype[0] == "f" and case == 1:
                v[0, n // 2], v[1, n - 1] = np.nan, -np.nan
            if dtype[0] == "f" and case > 1:
                # The only numbers on one side of zero are zeros of both signs.
                sign = -1 if case == 2 else 1
                v = sign * np.abs(v)
                v[0, 1], v[0, n - 1], v[2, 1], v[2, n - 1] = -0.0, 0.0, 0.0, -0.0
            high, low, top, top_at, small, small_at, _, everything = f(v)
            np.testing.assert_array_equal(high, v.argmax(1))
            np.testing.assert_array_equal(low, v.argmin(1))
            descending = n - 1 - np.argsort(v[:, ::-1], axis=1, kind="stable")[:, ::-1]
            np.testing.assert_array_equal(top_at, descending[:, :3])
            np.testing.assert_array_equal(everything, descending)
            np.testing.assert_array_equal(top, np.take_along_axis(v, descending, 1)[:, :3])
            ascending = np.argsort(v, axis=1, kind="stable")[:, :3]
            np.testing.assert_array_equal(small_at, ascending)
            np.testing.assert_array_equal(small, np.take_along_axis(v, ascending, 1))


def test_topk_of_too_few():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="fewer elements"):
        graphc.function([x], pt.topk(x, 7))(np.zeros(3))


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex128", "float16"])
def test_searchsorted(rng, dtype):
    x, v = (pt.tensor(dtype=dtype, shape=(None,)) for _ in range(2))
    f = graphc.function([x, v], [pt.searchsorted(x, v), pt.searchsorted(x, v, side="right")])
    for n in (0, 1, 2, 50):
        a, values = np.sort(numbers(rng, n, dtype)), numbers(rng, 40, dtype)
        for wanted in (values, np.sort(values)):
            left, right = f(a, wanted)
            np.testing.assert_array_equal(left, np.searchsorted(a, wanted))
            np.testing.assert_array_equal(right, np.searchsorted(a, wanted, side="right"))


def test_searchsorted_promotes_and_digitizes(rng):
    x, v, e = pt.lvector("x"), pt.dmatrix("v"), pt.dvector("e")
    up, down = np.array([-1.0, 0.0, 1.0]), np.array([1.0, 0.0, -1.0])
    f = graphc.function(
        [x, v, e],
        [
            pt.digitize(v, e),
            pt.searchsorted(x, v, sorter=pt.argsort(x)),
            *(pt.digitize(v, bins, right=right) for bins in (up, down) for right in (False, True)),
        ],
    )
    a, values = rng.integers(0, 9, 20), rng.normal(size=(3, 4)).round(1) * 3
    for edges in (up, down):
        np.testing.assert_array_equal(f(a, values, edges)[0], np.digitize(values, edges))
    _, found, *bins = f(a, values, up)
    np.testing.assert_array_equal(found, np.searchsorted(a, values, sorter=np.argsort(a)))
    expected = [np.digitize(values, e, right=right) for e in (up, down) for right in (False, True)]
    for got, want in zip(bins, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("signed", ["int64", "int8"])
def test_integers_of_two_kinds_are_compared_as_integers(signed):
    """NumPy compares them as float64, which does not tell neighbours apart."""
    of = {dtype: np.iinfo(dtype) for dtype in (signed, "uint64")}
    places = sorted({-2, 0, 3, 100, 127, *(2**e + k for e in (62, 63, 64) for k in (-2, -1, 0, 1))})
    for a, v in ((signed, "uint64"), ("uint64", signed)):
        x, y = ([i for i in places if of[dtype].min <= i <= of[dtype].max] for dtype in (a, v))
        x = x[::2]
        s, values = pt.vector("s", dtype=a), pt.vector("v", dtype=v)
        outputs = [pt.searchsorted(s, values), pt.searchsorted(s, values, side="right"), pt.isin(values, s)]
        outputs += [pt.digitize(values, s), pt.isin(values, np.array(x[-5:], a))]
        left, right = ([bisect(x, i) for i in y] for bisect in (bisect_left, bisect_right))
        expected = [left, right, [i in x for i in y], right, [i in x[-5:] for i in y]]
        for mode in ("fast_run", "reference"):
            found = graphc.function([s, values], outputs, mode=mode)(np.array(x, a), np.array(y, v))
            assert [each.tolist() for each in found] == expected
    assert pt.searchsorted(np.arange(2**62, 2**62 + 9, dtype="uint64"), 2**62 + 5).eval() == 5


def test_errors():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="kind must be quicksort"):
        pt.sort(x, kind="bubble")
    with pytest.raises(ValueError, match="needs an axis"):
        pt.sort(pt.dscalar("s"))
    with pytest.raises(ValueError, match="side must be left or right"):
        pt.searchsorted(x, 1.0, side="middle")
    with pytest.raises(TypeError, match="vector of integers as kth"):
        pt.partition(x, 1.5)
    with pytest.raises(ValueError, match="other than 0"):
        pt.topk(x, 0)

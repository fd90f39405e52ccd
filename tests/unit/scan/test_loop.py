# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`loop`, `while_loop`, `fori_loop`, `associative_scan` and the helpers `map`, `reduce`, ...."""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.scan import cumulative, filter, foldl, foldr, map, reduce

rng = np.random.default_rng(11)
Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Moments:
    mean: Any
    count: Any


x = pt.vector("x")
X = pt.matrix("X")


def reference_loop(f, carry, xs, reverse):
    """What `loop` means: seven lines of Python."""
    ys = []
    for row in reversed(xs) if reverse else xs:
        carry, y = f(carry, row)
        ys.append(y)
    return carry, np.array(ys[::-1] if reverse else ys)


class TestLoop:
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("n", [0, 1, 5])
    @pytest.mark.parametrize("unroll", [1, 3])
    def test_against_python(self, compute, reverse, n, unroll):
        def f(c, row):
            return 0.5 * c + row, c * row

        found = compute(
            list(graphc.loop(f, 1.0, x, reverse=reverse, unroll=unroll)), {x: (v := rng.normal(size=n))}
        )
        for a, b in zip(found, reference_loop(f, 1.0, v, reverse), strict=True):
            np.testing.assert_allclose(a, b)

    def test_trees(self, compute):
        def f(carry, rows):
            m = carry["m"]
            new = Moments(m.mean + (rows.a - m.mean) / (m.count + 1), m.count + 1)
            return {"m": new, "seen": [carry["seen"][0] + rows.b.sum(), None]}, (new.mean, {"b": rows.b * 2})

        start = {"m": Moments(0.0, 0), "seen": [0.0, None]}
        carry, (means, ys) = graphc.loop(f, start, Pair(x, X))
        assert isinstance(carry["m"], Moments) and carry["seen"][1] is None
        a, b = rng.normal(size=4), rng.normal(size=(4, 2))
        mean, count, seen, ms, b2 = compute(
            [carry["m"].mean, carry["m"].count, carry["seen"][0], means, ys["b"]], {x: a, X: b}
        )
        np.testing.assert_allclose(mean, a.mean())
        assert count == 4
        np.testing.assert_allclose(seen, b.sum())
        np.testing.assert_allclose(ms, np.cumsum(a) / np.arange(1, 5))
        np.testing.assert_allclose(b2, b * 2)

    def test_length_alone(self, compute):
        n = pt.lscalar("n")
        carry, ys = graphc.loop(lambda c, _: (c * 2, c), 1, length=n)
        last, rows = compute([carry, ys], {n: 5})
        assert last == 32
        np.testing.assert_array_equal(rows, [1, 2, 4, 8, 16])

    def test_no_outputs(self, compute):
        carry, ys = graphc.loop(lambda c, row: (c + row, None), 0.0, x)
        assert ys is None
        np.testing.assert_allclose(compute(carry, {x: np.ones(3)}), 3)

    def test_full_unroll(self):
        carry, _ = graphc.loop(lambda c, _: (c * 2, None), 1, length=6, unroll=True)
        assert carry.owner.inputs[0].owner.inputs[0].owner.op.unroll == 6

    def test_nested(self, compute):
        def outer(c, row):
            inner, _ = graphc.loop(lambda d, v: (d + v * c, None), 0.0, row)
            return c + inner, inner

        carry, ys = graphc.loop(outer, 1.0, X)
        value = rng.normal(size=(3, 4))
        c, expected = 1.0, []
        for row in value:
            expected.append(row.sum() * c)
            c += expected[-1]
        last, rows = compute([carry, ys], {X: value})
        np.testing.assert_allclose(last, c)
        np.testing.assert_allclose(rows, expected)

    def test_messages(self):
        with pytest.raises(TypeError, match=r"carry starts as \(\*, \*\), but the function .* returns \*"):
            graphc.loop(lambda c, row: (row, None), (0.0, 1.0), x)
        with pytest.raises(
            TypeError, match=r"the state 's' \(carry\['a'\]\) starts as .*float32.* returns .*float64"
        ):
            graphc.loop(lambda c, row: ({"a": row}, None), {"a": pt.fscalar("s")}, x)
        with pytest.raises(TypeError, match=r"must return a tuple \(carry, outputs\)"):
            graphc.loop(lambda c, row: c, 0.0, x)
        with pytest.raises(ValueError, match=r"length of the loop over .* is unknown"):
            graphc.loop(lambda c, row: (c, None), 0.0)
        with pytest.raises(ValueError, match=r"lengths of the loop .* differ: xs\[0\]: 3, xs\[1\]: 2"):
            graphc.loop(lambda c, row: (c, None), 0.0, (np.ones(3), np.ones(2)))
        with pytest.raises(TypeError, match=r"xs\['k'\] .* is a scalar .* no rows"):
            graphc.loop(lambda c, row: (c, None), 0.0, {"k": pt.scalar()})

    def test_lengths_that_differ_at_run_time(self, compute):
        carry, _ = graphc.loop(lambda c, rows: (c + rows[0] * rows[1], None), 0.0, (x, X[0]))
        with pytest.raises(ValueError, match=r"has rows for 2 only|different|lengths"):
            compute(carry, {x: np.ones(3), X: np.ones((1, 2))})


class TestWhile:
    @pytest.mark.parametrize("start", [1.0, 50.0, 100.0, 1e9])
    def test_tests_before_each_step(self, compute, start):
        s = pt.scalar("s")
        value, count = graphc.while_loop(lambda v: v[0] < 100, lambda v: (v[0] * 2, v[1] + 1), (s, 0))
        expected, n = start, 0
        while expected < 100:
            expected, n = expected * 2, n + 1
        found = compute([value, count], {s: start})
        assert found[0] == expected and found[1] == n

    @pytest.mark.parametrize("bound", [0, 1, 3, 50])
    def test_bound(self, compute, bound):
        k = graphc.while_loop(lambda k: k < 10, lambda k: k + 1, 0, max_steps=bound)
        assert compute(k) == min(bound, 10)

    def test_captures(self, compute):
        s, limit = pt.scalar("s"), pt.scalar("limit")
        y = graphc.while_loop(lambda v: v["a"] < limit, lambda v: {"a": v["a"] + s}, {"a": s})["a"]
        assert compute(y, {s: 1.5, limit: 5.0}) == 6.0

    @pytest.mark.parametrize("bound", [None, 100])
    def test_constants_take_the_dtype_of_the_result(self, compute, bound):
        s = pt.scalar("s")
        y = graphc.while_loop(lambda v: v < 4, lambda v: v + s, 1, max_steps=bound)
        assert y.type.dtype == "float64"
        assert compute(y, {s: 0.75}) == 4.0

    @pytest.mark.parametrize("bound", [None, 100])
    def test_type_changes(self, bound):
        start = pt.fscalar("start")
        expected = r"the state 'start' \(carry\) starts as .*float32.* returns .*float64.* dtype float64"
        with pytest.raises(TypeError, match=expected):
            graphc.while_loop(lambda v: v < 4, lambda v: v + pt.scalar("s"), start, max_steps=bound)

    def test_messages(self):
        with pytest.raises(TypeError, match="carry starts as"):
            graphc.while_loop(lambda v: v < 1, lambda v: (v, v), 0.0)
        with pytest.raises(TypeError, match=r"condition of .* must be a scalar"):
            graphc.while_loop(lambda v: v < 1, lambda v: v, x)


class TestFor:
    @pytest.mark.parametrize(("lower", "upper"), [(0, 4), (2, 7), (3, 3), (5, 1), (-2, 2)])
    def test_against_python(self, compute, lower, upper):
        lo, up = pt.lscalar("lo"), pt.iscalar("up")
        expected = 1.0
        for i in range(lower, upper):
            expected = expected * 0.5 + i
        symbolic = graphc.fori_loop(lo, up, lambda i, v: v * 0.5 + i, 1.0)
        static = graphc.fori_loop(lower, upper, lambda i, v: v * 0.5 + i, 1.0)
        found = compute([symbolic, static], {lo: lower, up: upper})
        np.testing.assert_allclose(found, [expected, expected])

    def test_index_of_a_tensor(self, compute):
        y = graphc.fori_loop(0, x.shape[0], lambda i, v: v + i * x[i], 0.0)
        np.testing.assert_allclose(compute(y, {x: np.arange(4.0)}), 14)

    def test_bounds_are_integers(self):
        with pytest.raises(TypeError, match=r"upper of fori_loop .* integer scalar"):
            graphc.fori_loop(0, 2.5, lambda i, v: v, 0.0)


class TestAssociative:
    @pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 13])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_sums(self, compute, n, reverse):
        value = rng.normal(size=n)
        expected = np.cumsum(value[::-1])[::-1] if reverse else np.cumsum(value)
        static = pt.tensor("s", dtype="float64", shape=(n,))
        found = [graphc.associative_scan(lambda a, b: a + b, v, reverse=reverse) for v in (x, static)]
        for each in compute(found, {x: value, static: value}):
            np.testing.assert_allclose(each, expected)

    @pytest.mark.parametrize("shape", [(5,), (None,)])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_order_of_arguments(self, compute, shape, reverse):
        """Linear recurrences compose, but do not commute."""
        a, b = (pt.tensor(n, dtype="float64", shape=shape) for n in "ab")

        def compose(f, g):
            return (f[0] * g[0], g[0] * f[1] + g[1])

        u, v = rng.normal(size=(2, 5))
        slopes, offsets = compute(
            list(graphc.associative_scan(compose, (a, b), reverse=reverse)), {a: u, b: v}
        )
        h, expected = 0.0, []
        for p, q in zip(u[::-1] if reverse else u, v[::-1] if reverse else v, strict=True):
            h = p * h + q
            expected.append(h)
        np.testing.assert_allclose(offsets, expected[::-1] if reverse else expected)
        np.testing.assert_allclose(slopes, np.cumprod(u[::-1])[::-1] if reverse else np.cumprod(u))

    @pytest.mark.parametrize("shape", [(3, 4, 2), (None, None, None)])
    def test_axis(self, compute, shape):
        t = pt.tensor("t", dtype="float64", shape=shape)
        value = rng.normal(size=(3, 4, 2))
        for axis in (1, -1):
            y = graphc.associative_scan(pt.maximum, t, axis=axis)
            np.testing.assert_allclose(compute(y, {t: value}), np.maximum.accumulate(value, axis=axis))

    def test_messages(self):
        with pytest.raises(TypeError, match="at least one tensor"):
            graphc.associative_scan(lambda a, b: a, ())
        with pytest.raises(ValueError, match="different lengths"):
            graphc.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3)))
        with pytest.raises(TypeError, match="must return the structure of elems"):
            graphc.associative_scan(lambda a, b: (a, b), np.ones(3))


class TestHelpers:
    def test_map(self, compute):
        value = rng.normal(size=(3, 2))
        np.testing.assert_allclose(
            compute(map(lambda r, k: r.sum() * k, X, 2.0, return_updates=False), {X: value}), 2 * value.sum(1)
        )
        found = compute(map(lambda r: r.sum(), X, go_backwards=True, return_updates=False), {X: value})
        np.testing.assert_allclose(found, value.sum(1)[::-1])
        assert map(lambda r: r, X, return_updates=True)[1] == {}

    @pytest.mark.parametrize("n", [0, 1, 4])
    def test_folds(self, compute, n):
        value = np.arange(1.0, n + 1)

        def f(row, total):
            return row + 10 * total

        expected = [0.5, 0.5]
        for k in range(n):
            expected = [value[k] + 10 * expected[0], value[n - 1 - k] + 10 * expected[1]]
        found = compute(
            [
                foldl(f, x, 0.5, return_updates=False),
                foldr(f, x, 0.5, return_updates=False),
                reduce(f, x, 0.5, return_updates=False),
                reduce(f, x, 0.5, go_backwards=True, return_updates=False),
            ],
            {x: value},
        )
        np.testing.assert_allclose(found, [*expected, *expected])

    def test_reduce_with_other_outputs(self, compute):
        total, last = reduce(lambda row, t: (t + row, row * 2), x, [0.0, None], return_updates=False)
        assert compute([total, last], {x: np.arange(4.0)}) == [6.0, 6.0]

    @pytest.mark.parametrize("n", [0, 1, 5])
    def test_cumulative(self, compute, n):
        value = rng.normal(size=n)
        a = cumulative(lambda row, t: t * row, x)
        b = cumulative(lambda row, t: t + row, x, 1.0)
        c = cumulative(lambda row, t: t + row, x, go_backwards=True)
        a, b, c = compute([a, b, c], {x: value})
        np.testing.assert_allclose(a, np.cumprod(value))
        np.testing.assert_allclose(b, 1 + np.cumsum(value))
        np.testing.assert_allclose(c, np.cumsum(value[::-1]))

    def test_cumulative_needs_a_start(self):
        with pytest.raises(ValueError, match="give outputs_info"):
            cumulative(lambda a, b, t: t, [x, x])

    def test_filter(self, compute):
        value = rng.normal(size=(6, 2))
        for threshold in (-100.0, 0.0, 100.0):
            y = filter(lambda r, k: r.sum() > k, X, threshold)
            np.testing.assert_allclose(compute(y, {X: value}), value[value.sum(1) > threshold])
        both = filter(lambda a, r: a > r[0], [x, X])
        found = compute(both, {x: np.zeros(6), X: value})
        np.testing.assert_allclose(found[1], value[value[:, 0] < 0])
        assert compute(filter(lambda r: r > 0, x), {x: np.ones(0)}).shape == (0,)

    def test_filter_of_each_by_its_own(self, compute):
        """One scalar for each sequence, of unequal lengths, in gradients and with non-sequences."""
        value, short = rng.normal(size=(6, 2)), rng.normal(size=4)
        f, g = filter(lambda a, r, k: (a > k, r.sum() <= k), [x, X], 0.1)
        found = compute([f, g], {x: short, X: value})
        np.testing.assert_allclose(found[0], short[short > 0.1])
        np.testing.assert_allclose(found[1], value[:4][value[:4].sum(1) <= 0.1])
        slopes = compute(graphc.grad((f**2).sum() + (g**3).sum(), [x, X]), {x: short, X: value})
        np.testing.assert_allclose(slopes[0], 2 * short * (short > 0.1))
        kept = (value.sum(1) <= 0.1) & (np.arange(6) < 4)
        np.testing.assert_allclose(slopes[1], 3 * value**2 * kept[:, None])

    def test_filter_messages(self):
        with pytest.raises(TypeError, match="must return a scalar for each row"):
            filter(lambda r: r > 0, X)
        with pytest.raises(TypeError, match="must return one scalar"):
            filter(lambda r: (r, r), x)
        with pytest.raises(TypeError, match="must return one scalar, or 2, one for each sequence, got"):
            filter(lambda a, b: (a, b, a), [x, x])
        with pytest.raises(ValueError, match="no taps"):
            filter(lambda a, b: a > b, {"input": x, "taps": [0, 1]})

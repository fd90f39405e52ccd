# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.scan``: what loops compute, against loops in NumPy."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.scan import Scan, roles, until

rng = np.random.default_rng(7)


def scan_node(v):
    """The scan that computes a variable."""
    while not isinstance(v.owner.op, Scan):
        v = v.owner.inputs[0]
    return v.owner


class TestSequences:
    def test_map_over_rows(self, compute):
        X = pt.matrix("X")
        value = rng.normal(size=(4, 3))
        y = graphc.scan(lambda x: (x**2).sum(), sequences=X, return_updates=False)
        np.testing.assert_allclose(compute(y, {X: value}), (value**2).sum(axis=1))

    def test_shortest_sequence_decides(self, compute):
        a, b = pt.vectors("a", "b")
        y = graphc.scan(lambda a, b: a * b, sequences=[a, b], return_updates=False)
        np.testing.assert_allclose(compute(y, {a: np.arange(5.0), b: np.ones(3)}), [0, 1, 2])
        np.testing.assert_allclose(compute(y, {a: np.arange(2.0), b: np.ones(3)}), [0, 1])

    @pytest.mark.parametrize("taps", [[0], [1], [-1], [-1, 0, 1], [1, 2], [-2, -1], [2, -1]])
    @pytest.mark.parametrize("backwards", [False, True])
    @pytest.mark.parametrize("length", [0, 1, 2, 6])
    def test_taps(self, compute, taps, backwards, length):
        x = pt.vector("x")
        value = rng.normal(size=length)
        y = graphc.scan(
            lambda *rows: sum((k + 1) * row for k, row in enumerate(rows)),
            sequences={"input": x, "taps": taps},
            go_backwards=backwards,
            return_updates=False,
        )
        # Step s is at row t of x, the rows for which all taps (and tap 0) exist.
        rows = range(-min(*taps, 0), length - max(*taps, 0))
        expected = [sum((k + 1) * value[t + tap] for k, tap in enumerate(taps)) for t in rows]
        np.testing.assert_allclose(compute(y, {x: value}), expected[::-1] if backwards else expected)

    def test_n_steps_trims(self, compute):
        x = pt.vector("x")
        n = pt.iscalar("n")
        forward = graphc.scan(lambda x: 2 * x, x, n_steps=n, return_updates=False)
        backward = graphc.scan(lambda x: 2 * x, x, n_steps=n, go_backwards=True, return_updates=False)
        for steps in (0, 1, 3, 4):
            f, b = compute([forward, backward], {x: np.arange(4.0), n: steps})
            np.testing.assert_allclose(f, 2 * np.arange(4.0)[:steps])
            np.testing.assert_allclose(b, 2 * np.arange(4.0)[::-1][:steps])

    def test_static_sizes_reach_the_result(self):
        x = pt.tensor("x", dtype="float64", shape=(5, 2))
        assert graphc.scan(lambda x: x, x, return_updates=False).type.shape == (5, 2)
        assert graphc.scan(lambda a, b: a, {"input": x, "taps": [0, 2]}, return_updates=False).type.shape == (
            3,
            2,
        )
        assert graphc.scan(
            lambda h, x: h + x, x, pt.zeros(2), n_steps=4, return_updates=False
        ).type.shape == (4, 2)

    def test_values_that_are_no_variables(self, compute):
        y = graphc.scan(
            lambda x, k: x * k,
            sequences=[[1.0, 2.0, 3.0]],
            non_sequences=[np.float64(2.0)],
            return_updates=False,
        )
        np.testing.assert_allclose(compute(y), [2, 4, 6])

    def test_large_constant_sequence(self, compute):
        value = rng.normal(size=(30, 2))
        y = graphc.scan(lambda x: x.sum(), value, return_updates=False)
        np.testing.assert_allclose(compute(y), value.sum(axis=1))


class TestStates:
    def test_one_tap(self, compute):
        x = pt.vector("x")
        h = graphc.scan(lambda x, h: 0.9 * h + x, x, 1.0, return_updates=False)
        value = rng.normal(size=6)
        expected, state = [], 1.0
        for each in value:
            state = 0.9 * state + each
            expected.append(state)
        np.testing.assert_allclose(compute(h, {x: value}), expected)

    @pytest.mark.parametrize("taps", [[-1], [-2], [-2, -1], [-1, -2], [-3, -1], [-4, -2]])
    @pytest.mark.parametrize("n", [0, 1, 2, 7])
    def test_taps(self, compute, taps, n):
        start = pt.matrix("start") if taps != [-1] else pt.vector("start")
        steps = pt.lscalar("steps")
        y = graphc.scan(
            lambda *rows: sum((k + 1) * row for k, row in enumerate(rows)) / 3,
            outputs_info={"initial": start, "taps": taps},
            n_steps=steps,
            return_updates=False,
        )
        window = -min(taps)
        # A row more than needed: the first ones count.
        value = rng.normal(size=(window + (window > 1), 2))
        rows = list(value[:window])
        for _ in range(n):
            rows.append(sum((k + 1) * rows[len(rows) + tap] for k, tap in enumerate(taps)) / 3)
        given = value if taps != [-1] else value[0]
        expected = np.reshape(rows[window:], (n, 2))
        found = compute(y, {start: given, steps: n})
        assert found.shape == (n, 2)
        np.testing.assert_allclose(found, expected)

    def test_mixed_outputs(self, compute):
        x = pt.vector("x")

        def step(x, a1, b2, b1):
            return [a1 + x, a1 * 2, b1 - b2 + x]

        infos = [0.5, None, {"initial": pt.as_tensor([1.0, 2.0]), "taps": [-2, -1]}]
        found = compute(graphc.scan(step, x, infos, return_updates=False), {x: np.arange(4.0)})
        a, b, expected = 0.5, [1.0, 2.0], [[], [], []]
        for each in np.arange(4.0):
            expected[1].append(a * 2)
            a, new = a + each, b[-1] - b[-2] + each
            b.append(new)
            expected[0].append(a)
            expected[2].append(new)
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(f, e)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float32", "complex128"])
    def test_dtypes(self, compute, dtype):
        h0 = pt.tensor("h0", dtype=dtype, shape=(None,))
        value = np.array([1, 0, 1], dtype)
        y = graphc.scan(
            lambda h: pt.switch(h, 0, h).astype(dtype), outputs_info=h0, n_steps=2, return_updates=False
        )
        found = compute(y, {h0: value})
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.zeros((2, 3)))

    def test_matrix_state_and_weights(self, compute):
        X, W, U = pt.tensor3("X"), pt.matrix("W"), pt.matrix("U")
        h = graphc.scan(lambda x, h: pt.tanh(h @ W + x @ U), X, pt.zeros((2, 3)), return_updates=False)
        x, w, u = rng.normal(size=(5, 2, 4)), rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
        state, expected = np.zeros((2, 3)), []
        for each in x:
            state = np.tanh(state @ w + each @ u)
            expected.append(state)
        np.testing.assert_allclose(compute(h, {X: x, W: w, U: u}), expected)

    def test_constant_start_takes_the_dtype_of_the_result(self, compute):
        x = pt.fvector("x")
        y = graphc.scan(lambda x, h: h + x, x, pt.as_tensor(np.float32(0)), return_updates=False)
        assert y.type.dtype == "float32"
        z = graphc.scan(lambda x, h: h + x, x.astype("float64"), 0, return_updates=False)
        assert z.type.dtype == "float64"
        assert compute(z, {x: np.ones(3, "float32")}).dtype == "float64"
        np.testing.assert_allclose(compute(z, {x: np.ones(3, "float32")}), [1, 2, 3])

    def test_start_takes_the_static_size_of_the_result(self, compute):
        h0 = pt.vector("h0")
        W = pt.tensor("W", dtype="float64", shape=(3, 3))
        y = graphc.scan(
            lambda h: pt.specify_shape(h @ W, (3,)), outputs_info=h0, n_steps=2, return_updates=False
        )
        assert y.type.shape == (2, 3)
        np.testing.assert_allclose(compute(y, {h0: np.ones(3), W: np.eye(3)}), np.ones((2, 3)))
        with pytest.raises(ValueError):
            compute(y, {h0: np.ones(2), W: np.eye(3)})

    def test_shape_change_at_run_time(self, compute):
        h0, w = pt.vector("h0"), pt.matrix("w")
        y = graphc.scan(lambda h: h @ w, outputs_info=h0, n_steps=2, return_updates=False)
        with pytest.raises(ValueError, match=r"h0|shape"):
            compute(y, {h0: np.ones(3), w: np.ones((3, 2))})


class TestSteps:
    @pytest.mark.parametrize("n", [0, 1, 2, 5])
    def test_power(self, compute, n):
        A, k = pt.vector("A"), pt.iscalar("k")
        y = graphc.scan(
            lambda r, A: r * A, outputs_info=pt.ones_like(A), non_sequences=A, n_steps=k, return_updates=False
        )
        found = compute(y, {A: np.arange(3.0), k: n})
        assert found.shape == (n, 3)
        np.testing.assert_allclose(found, np.reshape([np.arange(3.0) ** (i + 1) for i in range(n)], (n, 3)))

    def test_static_and_symbolic_one_step_agree(self, compute):
        x = pt.vector("x")
        n = pt.lscalar("n")
        one = graphc.scan(lambda x, h: (h + x, x), x, [0.0, None], n_steps=1, return_updates=False)
        same = graphc.scan(lambda x, h: (h + x, x), x, [0.0, None], n_steps=n, return_updates=False)
        assert isinstance(scan_node(one[0]).op, Scan)
        for a, b in zip(*compute([one, same], {x: np.arange(1.0, 3), n: 1}), strict=True):
            np.testing.assert_allclose(a, b)

    def test_empty_results_have_their_shapes(self, compute):
        X, W = pt.matrix("X"), pt.matrix("W")
        outputs = graphc.scan(
            lambda x, h: (h + x.sum(), x @ W, x > 0),
            X,
            [pt.zeros(2, dtype="float32").astype("float64"), None, None],
            return_updates=False,
        )
        found = compute(outputs, {X: np.empty((0, 3)), W: np.empty((3, 4))})
        assert [v.shape for v in found] == [(0, 2), (0, 4), (0, 3)]
        assert [v.dtype.name for v in found] == ["float64", "float64", "bool"]


class TestUntil:
    def test_stops_after_the_step(self, compute):
        x = pt.vector("x")
        y = graphc.scan(lambda x, s: (s + x, until(s + x > 3)), x, 0.0, return_updates=False)
        np.testing.assert_allclose(compute(y, {x: np.ones(9)}), [1, 2, 3, 4])
        np.testing.assert_allclose(compute(y, {x: np.ones(2)}), [1, 2])
        assert compute(y, {x: np.ones(0)}).shape == (0,)

    def test_condition_of_another_dtype(self, compute):
        y = graphc.scan(
            lambda k: (k - 1, until(pt.eq(k, 1).astype("int8"))),
            outputs_info=4,
            n_steps=100,
            return_updates=False,
        )
        np.testing.assert_array_equal(compute(y), [3, 2, 1, 0])

    def test_newton(self, compute):
        a = pt.scalar("a")

        def step(x):
            new = 0.5 * (x + a / x)
            return [new, abs(new - x)], until(abs(new - x) < 1e-12)

        xs, errors = graphc.scan(step, outputs_info=[a, None], n_steps=64, return_updates=False)
        x, e = compute([xs, errors], {a: 2.0})
        assert len(x) == len(e) < 64
        np.testing.assert_allclose(x[-1], np.sqrt(2))


class TestCapture:
    def test_roots_and_earlier_variables(self, compute):
        x, w = pt.vector("x"), pt.scalar("w")
        square = w**2
        square.name = "square"
        y = graphc.scan(lambda x: x * square + pt.exp(w), x, return_updates=False)
        assert roles(scan_node(y)) == {
            "x": "sequence",
            "square": "non-sequence",
            "w": "non-sequence",
            "out0": "nit-sot",
        }
        np.testing.assert_allclose(compute(y, {x: np.ones(2), w: 3.0}), [9 + np.exp(3)] * 2)

    def test_strict(self):
        x, w = pt.vector("x"), pt.scalar("w")
        with pytest.raises(ValueError, match=r"strict=True.*also reads w of type.*non_sequences"):
            graphc.scan(lambda x: x * w, x, strict=True, return_updates=False)
        n, m = pt.lscalars("nm")
        sizes = pt.stack([n, m])
        options = {"n_steps": 2, "strict": True, "return_updates": False}
        y = graphc.scan(lambda size: pt.ones(size), non_sequences=[sizes], **options)
        assert y.eval({n: 3, m: 4}).shape == (2, 3, 4)
        graphc.scan(lambda x, w: x * w**2, x, non_sequences=w, strict=True, return_updates=False)

    def test_shared_variable(self, compute):
        x, w = pt.vector("x"), graphc.shared(2.0, name="w")
        y = graphc.scan(lambda x: x * w, x, return_updates=False)
        np.testing.assert_allclose(compute(y, {x: np.arange(3.0)}), [0, 2, 4])

    def test_result_is_an_argument_or_captured(self, compute):
        x, w = pt.vector("x"), pt.vector("w")
        a, b, c = graphc.scan(lambda x: (x, w, pt.as_tensor(1.0)), x, return_updates=False)
        a, b, c = compute([a, b, c], {x: np.arange(2.0), w: np.arange(3.0)})
        np.testing.assert_allclose(a, np.arange(2.0))
        np.testing.assert_allclose(b, [np.arange(3.0)] * 2)
        np.testing.assert_allclose(c, [1, 1])

    def test_function_is_called_once(self):
        calls = []
        graphc.scan(lambda x, h: calls.append(x) or h + x, pt.vector(), 0, return_updates=False)
        assert len(calls) == 1

    def test_op_as_function(self, compute):
        x = pt.vector("x")
        np.testing.assert_allclose(
            compute(graphc.scan(pt.exp, x, return_updates=False), {x: np.zeros(2)}), [1, 1]
        )


class TestNested:
    def test_matrix_product(self, compute):
        A, B = pt.matrices("A", "B")

        def row(a):
            return graphc.scan(lambda b, a: (a * b).sum(), B.T, non_sequences=a, return_updates=False)

        a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
        np.testing.assert_allclose(compute(graphc.scan(row, A, return_updates=False), {A: a, B: b}), a @ b)

    def test_states_of_both(self, compute):
        x, n = pt.vector("x"), pt.lscalar("n")

        def outer(x, total):
            inner = graphc.scan(lambda v: v * x + total, outputs_info=x, n_steps=n, return_updates=False)
            return total + inner.sum()

        y = graphc.scan(outer, x, 0.0, return_updates=False)
        for steps in (0, 1, 3):
            value, total, expected = rng.normal(size=4), 0.0, []
            for each in value:
                v, added = each, 0.0
                for _ in range(steps):
                    v = v * each + total
                    added += v
                total += added
                expected.append(total)
            np.testing.assert_allclose(compute(y, {x: value, n: steps}), expected)

    def test_three_deep_with_until(self, compute):
        n = pt.lscalar("n")

        def inner(i):
            return graphc.scan(
                lambda k, i: (k + i, until(k > 2)),
                outputs_info=0,
                non_sequences=i,
                n_steps=n,
                return_updates=False,
            )[-1]

        y = graphc.scan(
            lambda j: graphc.scan(inner, pt.arange(j, j + 2), return_updates=False).sum(),
            pt.arange(1, 4),
            return_updates=False,
        )

        def reference(i):
            k = 0
            for _ in range(5):
                k, stop = k + i, k > 2
                if stop:
                    break
            return k

        expected = [sum(reference(i) for i in (j, j + 1)) for j in (1, 2, 3)]
        np.testing.assert_array_equal(compute(y, {n: 5}), expected)

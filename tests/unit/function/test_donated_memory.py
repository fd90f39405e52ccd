# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, gathers, joins, scans and the like computed in donated inputs; donation in all tiers."""

import re

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function.io import In
from graphc_runtime.threads import is_alone

RNG = np.random.default_rng(3)
X, Y, W = RNG.normal(size=(3, 8, 8))
V, INDEX = RNG.normal(size=8), np.array([1, 0, 3, 4, 4, 2, -1, 1])
WIDE = RNG.normal(size=(4, 16))


def matrix(name):
    return pt.tensor(name, dtype="float64", shape=(8, 8))


def vector(name):
    return pt.tensor(name, dtype="float64", shape=(8,))


x, y, w, v = matrix("x"), matrix("y"), matrix("w"), vector("v")
index = pt.tensor("index", dtype="int64", shape=(8,))
wide = pt.tensor("wide", dtype="float64", shape=(4, 16))
VALUES = {x: X, y: Y, w: W, v: V, index: INDEX, wide: WIDE}


def calls(outputs, donate):
    """The function, arguments, what it gave for them, and what it should have given."""
    inputs = list(VALUES)
    f = graphc.function(inputs, outputs, donate=donate, on_unused_input="ignore")
    reference = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")
    expected = reference(*[value.copy() for value in VALUES.values()])
    given = {name: value.copy() for name, value in VALUES.items()}
    return f, given, f(*given.values()), expected


def recurrent(start, rows):
    return graphc.scan(lambda row, h, m: pt.tanh(row + h @ m), [rows], [start], [w], return_updates=False)


ONE_CALL = {
    "product": lambda: ([x @ w, y.sum()], {y: 0}),
    "product of something else in its memory": lambda: ([pt.exp(x) @ w], {x: 0}),
    "matrix and vector": lambda: ([x @ pt.exp(v)], {v: 0}),
    "reduction": lambda: ([x.sum(axis=0), v.max()], {v: 0}),
    "argmax": lambda: ([x.argmax(axis=1), index.sum()], {index: 0}),
    "gather": lambda: ([x[index], (y * 2.0).sum()], {y: 0}),
    "join": lambda: ([pt.concatenate([x[0, :3] * 2.0, y[0, :5] + 1.0]), v.sum()], {v: 0}),
    "running sum": lambda: (
        [graphc.scan(lambda a, b: a + b, [y[0]], [pt.constant(0.0)], return_updates=False), v.sum()],
        {v: 0},
    ),
    "last row": lambda: ([recurrent(v, x)[-1]], {v: 0}),
    "trace": lambda: ([recurrent(v, x)], {x: 0}),
    "trace and last row": lambda: ([recurrent(v, x), recurrent(v, x)[-1]], {x: 0, v: 1}),
    "update of a product": lambda: ([pt.set_subtensor((x @ w)[0], v), y.sum()], {y: 0}),
    "update of another array": lambda: ([pt.set_subtensor(x[0], 1.0), y.sum()], {y: 0}),
    "reshape": lambda: ([pt.exp(x).reshape((4, 16)), wide.sum()], {wide: 0}),
    "reshaped product": lambda: ([(x @ y).reshape((4, 16)), wide.sum()], {wide: 0}),
    "transpose": lambda: ([x.T, w.sum()], {w: 0}),
    "row": lambda: ([y[2], v.sum()], {v: 0}),
    "two": lambda: ([x @ x, x.sum(axis=0)], {y: 0, v: 1}),
}


@pytest.mark.parametrize("case", list(ONE_CALL))
def test_what_is_computed_in_donated_memory(case):
    outputs, lent = ONE_CALL[case]()
    f, given, results, expected = calls(outputs, list(lent))
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-10)
    assert len(f.report.donations) == len(lent)
    for name, position in lent.items():
        assert results[position] is given[name], f.report.donations
    for name, value in VALUES.items():
        if name not in lent:
            np.testing.assert_array_equal(given[name], value)


@pytest.mark.parametrize(
    ("build", "donate", "reason"),
    [
        (lambda: [x @ w], x, "graphc.matmul reads it while the result is computed"),
        (lambda: [pt.concatenate([x[0, :3] * 2.0, v[:5] + 1.0])], v, "reads it"),
        (lambda: [pt.concatenate([v[3:], v[:3]])], v, "reads it"),
        (lambda: [v[::-1]], v, "reads it"),
        (lambda: [x[::-1], w[0]], w, "func.return reads it"),
        (lambda: [recurrent(v, x)], w, "overwritten"),
        (
            lambda: [
                graphc.scan(lambda a, b, h: pt.tanh(a + h * b), [x[1:], x[:-1]], [v], return_updates=False)
            ],
            x,
            "sizes|type",
        ),
        (
            lambda: [graphc.scan(lambda r, h, m: pt.tanh(h @ m) + m[0], [y], [v], [x], return_updates=False)],
            x,
            "overwritten",
        ),
    ],
)
def test_what_is_not(build, donate, reason):
    f, given, results, expected = calls(build(), [donate])
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-10)
    assert len(f.report.donations) == 1 and re.search(reason, f.report.donations[0]), f.report.donations
    np.testing.assert_array_equal(given[donate], VALUES[donate])


def test_rows_that_are_stored_as_they_are():
    """A state that is a row of the sequence would be read after the row has been overwritten."""

    def step(row, before, h):
        return row, pt.tanh(h @ pt.sin(w) + row + before)

    for order in (0, 1):
        states = graphc.scan(step, [x], [v, v * 2.0], return_updates=False)
        _, _, results, expected = calls([states[order], states[1 - order][-1]], [x])
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-10)


TIERS = ["struct", "buffer", "python"]


@pytest.mark.parametrize("tier", TIERS)
def test_spares(tier, monkeypatch):
    """An input that is not read is the result when it has its sizes, which are known at run time only."""
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    a, b, spare = pt.dmatrix("a"), pt.dmatrix("b"), pt.dmatrix("spare")
    f = graphc.function([a, b, spare], [a @ b, a.sum()], donate=[spare], on_unused_input="ignore")
    assert f.report.donations == ["spare lends its memory to result 0 if it has its sizes"]
    left, right = RNG.normal(size=(5, 6)), RNG.normal(size=(6, 7))
    for call in (f, f.executor.executable.bind([])):
        memory = np.empty((5, 7))
        assert call(left, right, memory)[0] is memory
        np.testing.assert_allclose(memory, left @ right)
        for other in (np.empty((5, 6)), np.empty((0, 7)), np.empty((7, 5))):
            result = call(left, right, other)[0]
            assert result is not other
            np.testing.assert_allclose(result, left @ right)
        square = RNG.normal(size=(6, 6))
        before = square.copy()
        np.testing.assert_allclose(call(left, square, square)[0], left @ before)
        np.testing.assert_allclose(call(square, square, square)[0], before @ before)
        np.testing.assert_array_equal(square, before)
        memory.flags.writeable = False
        assert call(left, right, memory)[0] is not memory
        out = [np.empty((5, 7)), np.empty(())]
        memory = np.zeros((5, 7))
        assert call(left, right, memory, out=out)[0] is out[0] and not memory.any()


@pytest.mark.parametrize("tier", TIERS)
def test_functions_of_every_tier(tier, monkeypatch):
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    a = pt.dmatrix("a")
    s = graphc.shared(np.arange(3.0), "s")
    f = graphc.function([a], a * 2.0 + 1.0, updates={s: s * 2.0 + 1.0}, donate=[a])
    assert len(f.report.donations) == 2 and all("lends" in text for text in f.report.donations)
    array, memory = np.ones((2, 3)), s.container[0].ctypes.data
    assert f(array) is array and (array == 3).all()
    # Where references cannot be counted through structures, calls of functions count them in Python, which
    # tells nothing while other threads run (those of a test runner, for example).
    in_place = tier == "struct" or is_alone()
    assert s.get_value().tolist() == [1, 3, 5] and (s.container[0].ctypes.data == memory) >= in_place
    held = s.get_value(borrow=True)
    assert f(a=array) is array and (array == 7).all()
    assert held.tolist() == [1, 3, 5] and s.get_value().tolist() == [3, 7, 11]
    array.flags.writeable = False
    assert (f(array) == 15).all() and (array == 7).all()
    g = graphc.function([In(a, value=np.ones((2, 2)), mutable=True)], a + 1.0)
    assert g().tolist() == g().tolist() == [[2, 2], [2, 2]]
    assert g([[1, 2], [3, 4]]).tolist() == [[2, 3], [4, 5]]


def parts_computed_early():
    """Joins whose parts others read too, so that these are computed before the joins."""
    z, m = pt.tensor("z", dtype="float64", shape=(3,)), pt.tensor("m", dtype="float64", shape=(5, 3))
    flipped, e, c, row = z[::-1], pt.exp(z), pt.cumsum(z), m[:, 0]
    count = (e > 0).sum() - 1
    joins = [
        pt.concatenate([flipped, flipped[:2]]),
        pt.concatenate([e, e[:2]]),
        pt.concatenate([c, c[:2] * 2]),
        pt.concatenate([row[1:], m[0, :1]]),
        pt.specify_shape(pt.concatenate([pt.tanh(z), pt.tanh(z)[:count]]), (5,)),
        pt.concatenate([pt.concatenate([pt.sin(z), pt.sin(z)[:1]]), c[1:2]]),
    ]
    return [z, m], joins


def views_needed_early():
    """Parts and repetitions of arrays, which others need in memory of their own before the end."""
    z, m = pt.tensor("z", dtype="float64", shape=(3,)), pt.tensor("m", dtype="float64", shape=(5, 3))
    wide = pt.repeat(m[:, :1], 2, axis=1)
    views = [m[::-1, 1], pt.repeat(z, 2)[:5], pt.specify_shape(wide.ravel()[::2], (5,)), pt.tile(z[:1], 5)]
    early = sum((pt.sort(v)[0] + v.reshape((5, 1)).sum() for v in views), start=pt.sort(wide).sum())
    return [z, m], [*views, pt.broadcast_to(early, (5,))]


@pytest.mark.parametrize("made", [parts_computed_early, views_needed_early])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_new_values_wait_for_what_reads_the_old_ones(mode, made):
    (z, m), joins = made()
    values = np.array([1.0, 2.0, 3.0]), np.arange(15.0).reshape(5, 3)
    olds = [pt.tensor(f"old{i}", dtype="float64", shape=(5,)) for i in range(len(joins))]
    readers = [pt.sort, lambda old: pt.sort(pt.cumsum(old) * 1.5), pt.exp]
    reads = [readers[i % 3](old) for i, old in enumerate(olds)]
    arrays = [np.arange(5.0) + i for i in range(len(joins))]
    expected = graphc.function([z, m, *olds], [*joins, *reads], mode="reference")(*values, *arrays)
    f = graphc.function([z, m, *olds], [*joins, *reads], donate=olds, mode=mode)
    assert sum("lends its memory" in each for each in f.report.donations) == len(joins)
    states = [graphc.shared(array, shape=(5,)) for array in arrays]
    g = graphc.function(
        [z, m],
        graphc.graph_replace(reads, dict(zip(olds, states, strict=True))),
        updates=dict(zip(states, joins, strict=True)),
        mode=mode,
    )
    updated = [*g(*values)]
    for got in ([*f(*values, *map(np.copy, arrays))], [*(s.get_value() for s in states), *updated]):
        for each, want in zip(got, expected, strict=True):
            np.testing.assert_allclose(each, want, rtol=1e-14)

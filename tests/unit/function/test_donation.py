# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs and shared variables whose memory becomes that of results."""

import pickle
import random
import re
import threading
import tracemalloc

import numpy as np
import pytest
from fuzzing import some

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.lower import takes_memory_first
from graphc.function.io import In
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_runtime.layout import tier as call_tier

# `test_every_tier` and `test_functions_of_every_tier` show what the other tiers do.
pytestmark = pytest.mark.skipif(call_tier() != "struct", reason="some tests are about the struct entry")


def lent(f):
    return [text for text in f.report.donations if "lends" in text]


def vector(n=5):
    return np.arange(float(n))


@pytest.mark.parametrize("form", ["mutable", "donate", "variable", "name", "position"])
def test_the_result_is_the_donated_array(form):
    x = pt.dvector("x")
    if form in ("mutable", "donate"):
        f = graphc.function([In(x, **{form: True})], x * 2.0 + 1.0)
    else:
        f = graphc.function([x], x * 2.0 + 1.0, donate=[{"variable": x, "name": "x", "position": 0}[form]])
    a = vector()
    for _ in range(3):
        expected = a * 2 + 1
        assert f(a) is a
        np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    ("build", "by_hand"),
    [
        (lambda x, y: pt.set_subtensor(x[1:3], y[:2]), lambda x, y: _set(x, slice(1, 3), y[:2])),
        (
            lambda x, y: pt.inc_subtensor(x[::-2], y[::2]),
            lambda x, y: _set(x, slice(None, None, -2), x[::-2] + y[::2]),
        ),
        (lambda x, y: pt.set_subtensor(x[1:], x[:-1]), lambda x, y: _set(x, slice(1, None), x[:-1].copy())),
        (lambda x, y: pt.set_subtensor((x + y)[0], 7.0), lambda x, y: _set(x + y, 0, 7)),
        (
            lambda x, y: pt.set_subtensor(pt.set_subtensor(x[0], y[1])[4], y[0]),
            lambda x, y: _set(_set(x, 0, y[1]), 4, y[0]),
        ),
        (
            lambda x, y: pt.inc_subtensor(x[np.array([0, 3, 3])], y[:3]),
            lambda x, y: _set(x, [0, 3], [x[0] + y[0], x[3] + y[1] + y[2]]),
        ),
        (
            lambda x, y: pt.exp(x) * (x - y) / (y + x.sum()),
            lambda x, y: np.exp(x) * (x - y) / (y + x.sum()),
        ),
    ],
)
def test_what_is_computed_in_place(build, by_hand):
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([x, y], build(x, y), donate=[x], on_unused_input="ignore")
    assert lent(f)
    a, b = vector(), vector() + 10
    expected = by_hand(a.copy(), b)
    assert f(a, b) is a
    np.testing.assert_allclose(a, expected)
    assert b.tolist() == [10, 11, 12, 13, 14]


def _set(array, index, value):
    array[index] = value
    return array


def test_a_sum_in_the_same_loop():
    x = pt.dmatrix("x")
    f = graphc.function([x], [x * 2.0, x.sum(), (x * x).sum(axis=1), x.max(axis=0)], donate=[x])
    a = np.random.default_rng(0).normal(size=(70, 100))
    before = a.copy()
    doubled, total, rows, columns = f(a)
    assert doubled is a
    np.testing.assert_allclose(doubled, before * 2)
    np.testing.assert_allclose(total, before.sum())
    np.testing.assert_allclose(rows, (before * before).sum(axis=1))
    np.testing.assert_allclose(columns, before.max(axis=0))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda x, y: [x + x[::-1]], "other elements"),
        (lambda x, y: [x * 2.0, x[::-1]], "after the result has been computed"),
        (lambda x, y: [pt.exp(y), x.sum()], "sizes of the result may differ"),
        (lambda x, y: [x.sum()], "no result has its type"),
        (lambda x, y: [pt.concatenate([x, y])], "sizes of the result may differ"),
        (lambda x, y: [pt.set_subtensor(x[0], 1.0), x], "reads it"),
    ],
)
def test_what_is_not_computed_in_place(build, reason):
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([x, y], build(x, y), donate=[x], on_unused_input="ignore")
    reference = graphc.function([x, y], build(x, y), mode="reference", on_unused_input="ignore")
    if not lent(f):
        assert len(f.report.donations) == 1
        assert re.search(reason, f.report.donations[0]), f.report.donations
    a, b = vector(), vector() + 3
    expected = reference(a.copy(), b)
    for result, value in zip(f(a, b), expected, strict=True):
        np.testing.assert_allclose(result, value)


def test_arrays_that_are_not_only_the_callers_to_give():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([x, y], x * 2.0 + y, donate=[x])
    a = vector()
    result = f(a, a)
    assert result is not a and result.tolist() == [0, 3, 6, 9, 12] and a.tolist() == vector().tolist()
    a.flags.writeable = False
    assert f(a, a).tolist() == [0, 3, 6, 9, 12] and a.tolist() == vector().tolist()
    whole = vector(6)
    assert f(whole[:4], whole[2:]).tolist() == [2, 5, 8, 11] and whole.tolist() == vector(6).tolist()
    first = whole[:3]
    assert f(first, whole[3:]) is first and whole.tolist() == [3, 6, 9, 3, 4, 5]
    assert f([1, 2, 3], first).tolist() == [5, 10, 15]


def test_default_values_stay():
    x = pt.dvector("x")
    f = graphc.function([In(x, value=vector(3), mutable=True)], x + 1.0)
    assert f().tolist() == f().tolist() == [1, 2, 3]
    a = vector(3)
    assert f(a) is a and f(x=vector(3)).tolist() == [1, 2, 3]


def test_out_and_donation():
    x = pt.dvector("x")
    f = graphc.function([x], [x * 2.0, x.sum()], donate=[x])
    a, out, total = vector(), np.empty(5), np.empty(())
    results = f(a, out=[out, total])
    assert results[0] is out and results[1] is total and total == 10
    assert out.tolist() == [0, 2, 4, 6, 8] and a.tolist() == vector().tolist()
    f(a, out=[a, None])
    assert a.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("tier", ["struct", "buffer", "python"])
def test_every_tier(tier, monkeypatch):
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    x, y, s = pt.dvector("x"), pt.dvector("y"), graphc.shared(vector(3))
    f = graphc.function([x, y], [x * 2.0 + y, y.sum()], updates={s: s * 2.0}, donate=[x])
    cell = [vector(3)]
    call = f.executor.executable.bind([cell])
    a, ones = vector(3), np.ones(3)
    assert call(a, ones)[0] is a and a.tolist() == [1, 3, 5] and cell[0].tolist() == [0, 2, 4]
    assert call(a, a)[0].tolist() == [3, 9, 15] and a.tolist() == [1, 3, 5]
    a.flags.writeable = False
    assert call(a, ones)[0].tolist() == [3, 7, 11] and a.tolist() == [1, 3, 5]
    out = (np.empty(3), np.empty(()))
    assert call(a, ones, out=out)[0] is out[0] and out[0].tolist() == [3, 7, 11] and a.tolist() == [1, 3, 5]
    assert cell[0].tolist() == [0, 16, 32]
    with pytest.raises(ValueError, match="agree"):
        call(vector(3), np.ones(4))


def test_other_modes_and_python_ops():
    x = pt.dvector("x")
    for mode in ("reference", "debug"):
        f = graphc.function([x], x + 1.0, donate=[x], mode=mode)
        a = vector(3)
        assert f(a).tolist() == [1, 2, 3] and a.tolist() == [0, 1, 2]
        assert "go through Python" in f.report.donations[0]


def test_pickle_and_disk_cache(tmp_path, monkeypatch):
    x = pt.dvector("x")
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        first = graphc.function([x], x + 1.0, donate=[x])
        f = graphc.function([x], x + 1.0, donate=[x])
        plain = graphc.function([x], x + 1.0)
    assert first.report.cache == ["miss"] and f.report.cache == ["hit"] and plain.report.cache == ["miss"]
    assert f.report.donations == first.report.donations and lent(f)
    a = vector()
    for g in (f, pickle.loads(pickle.dumps(f)), f.copy()):
        assert g(a) is a
    assert a.tolist() == [3, 4, 5, 6, 7] and plain(a) is not a


def test_errors():
    x, y = pt.dvector("x"), pt.dvector("y")
    with pytest.raises(ValueError, match="donate names 'z', which is not among the inputs: x"):
        graphc.function([x], x + 1.0, donate=["z"])
    with pytest.raises(ValueError, match="donate names y"):
        graphc.function([x], x + 1.0, donate=[y])
    with pytest.raises(TypeError, match=r"write \['x'\]"):
        graphc.function([x], x + 1.0, donate="x")
    with pytest.raises(TypeError, match="variables, names or positions"):
        graphc.function([x], x + 1.0, donate=[2.5])
    with pytest.raises(ValueError, match="one option"):
        In(x, mutable=True, donate=False)


def test_a_loop_allocates_nothing():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([x, y], pt.set_subtensor((x * 0.5 + y)[:10], 0.0), donate=[x])
    a, b = np.ones(10000), np.ones(10000)
    f(a, b)
    tracemalloc.start()
    for _ in range(1000):
        a = f(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10000


# Shared variables ------------------------------------------------------------------------------------------


def test_shared_variables_are_updated_in_place():
    w, g = graphc.shared(vector(3), "w"), pt.dvector("g")
    f = graphc.function([g], (w * w).sum(), updates={w: w - 0.5 * g})
    assert lent(f) == ["w lends its memory to its new value"]
    memory = w.container[0].ctypes.data
    assert f(np.ones(3)) == 5
    assert w.container[0].ctypes.data == memory and w.get_value().tolist() == [-0.5, 0.5, 1.5]


def test_values_that_somebody_holds_stay():
    w = graphc.shared(vector(3), "w")
    f = graphc.function([], [], updates={w: w + 1.0})
    held, view = w.get_value(borrow=True), w.get_value(borrow=True)[1:]
    f()
    assert held.tolist() == [0, 1, 2] and w.get_value().tolist() == [1, 2, 3]
    del held
    mine = vector(3)
    w.set_value(mine, borrow=True)
    f()
    assert mine.tolist() == [0, 1, 2] and view.tolist() == [1, 2]
    w.set_value(mine[:2], borrow=True)
    f()
    assert mine.tolist() == [0, 1, 2] and w.get_value().tolist() == [1, 2]


def test_two_variables_with_one_container():
    w = graphc.shared(vector(3), "w")
    other = w.clone("other")
    f = graphc.function([], other * 1.0, updates={w: w + 1.0})
    assert f().tolist() == [0, 1, 2] and f().tolist() == [1, 2, 3]


def test_a_failing_check_leaves_shared_variables_alone():
    w, i, x = graphc.shared(vector(4), "w"), pt.lvector("i"), pt.dvector("x")
    f = graphc.function([i, x], pt.exp(x)[i + i], updates={w: pt.set_subtensor(w[0], 9.0) * 2.0})
    for _ in range(2):
        with pytest.raises(IndexError):
            f(np.array([0, 5]), vector(4))
        assert w.get_value().tolist() == [0, 1, 2, 3]
    f(np.array([0, 1]), vector(4))
    assert w.get_value().tolist() == [18, 2, 4, 6]


def test_a_check_that_needs_the_new_value():
    w = graphc.shared(np.array([0, 1, 2]), "w")
    new = w + 1
    f = graphc.function([], pt.as_tensor_variable(np.arange(20.0))[new * 5], updates={w: new})
    f()
    memory = w.get_value()
    for _ in range(5):
        before = w.get_value()
        try:
            f()
        except IndexError:
            np.testing.assert_array_equal(w.get_value(), before)
    assert memory.tolist() == [1, 2, 3]


def takes_first(body):
    """Whether a kernel of these operations takes memory before it writes."""
    head = "llvm.func @main(%o: !llvm.ptr, %m: i64, %p: !llvm.ptr, %n: i64, %c: i1, %f: f64) -> i64 {"
    taking = "llvm.func @graphc_workspace_0(!llvm.ptr, i64) -> i64 attributes {graphc.helper = {"
    taking += 'kind = "workspace", number = 0 : i64, planned = false}}'
    text = "\n".join([taking, "llvm.func @free(!llvm.ptr)", head, *body, "llvm.return %n : i64\n}"])
    with new_context(), ir.Location.unknown():
        return takes_memory_first(ir.Module.parse(text), 2, {1})


def test_memory_is_taken_before_anything_is_written():
    store, take = (
        "llvm.store %n, %p : i64, !llvm.ptr",
        "%w = llvm.call @graphc_workspace_0(%p, %n) : (!llvm.ptr, i64) -> i64",
    )
    own = "%a = llvm.alloca %n x i64 : (i64) -> !llvm.ptr"
    part = "%q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i64"
    loop = "llvm.br ^loop\n ^loop:\n{}\n{}\nllvm.cond_br %c, ^loop, ^end\n ^end:"
    for body, first in [
        ([take, store], True),
        ([store], True),
        ([take], True),
        ([store, take], False),
        ([store, "llvm.br ^end\n ^end:", take], False),
        (["llvm.cond_br %c, ^left, ^end\n ^left:", store, "llvm.return %n : i64\n ^end:", take], True),
        ([loop.format(take, store)], False),
        (["%e = llvm.intr.exp(%f) : (f64) -> f64", take], True),
        (["llvm.call @free(%p) : (!llvm.ptr) -> ()", take], False),
        # Memory of its own, and arguments that may change, but for pointers to those that must not.
        ([own, "llvm.store %n, %a : i64, !llvm.ptr", take], True),
        (["llvm.store %n, %o : i64, !llvm.ptr", "llvm.call @free(%o) : (!llvm.ptr) -> ()", take], True),
        (["llvm.store %p, %o : !llvm.ptr, !llvm.ptr", take], False),
        ([part, "llvm.store %n, %q : i64, !llvm.ptr", take], False),
        (["%q = llvm.ptrtoint %p : !llvm.ptr to i64", take], False),
    ]:
        assert takes_first(body) == first, body
    w, x = graphc.shared(np.eye(30)), pt.dmatrix()
    f = graphc.function([x], [], updates={w: w - pt.tanh(x @ x)})
    assert lent(f)


@pytest.mark.parametrize("index", [pt.lscalar("i"), pt.lvector("i")])
def test_steps_along_gradients_of_rows_are_in_place(index):
    w, before = graphc.shared(np.arange(24.0).reshape(6, 4)), np.arange(24.0).reshape(6, 4)
    loss = (w[index].sum(axis=-1) ** 2).mean()
    f = graphc.function([index], loss, updates={w: w - 0.1 * graphc.grad(loss, w)})
    assert lent(f)
    f(np.ones((2,) * index.type.ndim, int))
    rows = before[np.ones((2,) * index.type.ndim, int)].reshape(-1, 4)
    slopes = 2 * rows.sum(axis=1, keepdims=True) / len(rows) * np.ones(4)
    expected = before.copy()
    expected[1] -= 0.1 * slopes.sum(axis=0)
    np.testing.assert_allclose(w.get_value(), expected, rtol=1e-13)


def test_cells_at_indices_along_two_axes_are_in_place():
    i, j = pt.lvectors("i", "j")
    w, x = graphc.shared(np.arange(24.0).reshape(6, 4)), np.arange(24.0).reshape(6, 4)
    step = w - 0.1 * graphc.grad((w[i, j] ** 2).sum(), w)
    for update in (w[i, j].inc(1.0), w[i, j].set(w[j, i] * 2), step):
        w.set_value(x)
        f = graphc.function([i, j], w[i, j].sum(), updates={w: update})
        expected = graphc.function([i, j], update, mode="reference")([0, 3, 0], [1, 2, 1])
        assert lent(f)
        np.testing.assert_allclose(f([0, 3, 0], [1, 2, 1]), x[[0, 3, 0], [1, 2, 1]].sum())
        np.testing.assert_allclose(w.get_value(), expected, rtol=1e-14)


def test_readers_in_other_threads_see_whole_values():
    w = graphc.shared(np.zeros(200_000), "w")
    update = graphc.function([], [], updates={w: w + 1.0})
    read = graphc.function([], [w.min(), w.max()])
    stop, wrong = threading.Event(), []

    def watch():
        while not stop.is_set():
            low, high = read()
            value = w.get_value()
            if low != high or value[0] != value[-1]:
                wrong.append((low, high))

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(300):
        update()
    stop.set()
    thread.join()
    assert not wrong and w.get_value()[0] == 300


# Random graphs ---------------------------------------------------------------------------------------------


def _recurrent(a, b):
    """A loop with a trace, of rows that are read before they are stored."""
    return graphc.scan(lambda x, h, w: pt.tanh(h @ w + x), [a], [b[0]], [pt.sin(b)], return_updates=False)


def _running(a, b):
    return graphc.scan(lambda x, h: h + 0.1 * x, [a], [b[1]], return_updates=False)


def _random_values(rng, leaves):
    values = list(leaves)
    for _ in range(rng.randrange(2, 9)):
        a, b = rng.choice(values), rng.choice(values)
        i = rng.randrange(4)
        values.append(
            rng.choice(
                [
                    lambda a, b, i: a + b * 0.5,
                    lambda a, b, i: a * 0.7 - 0.1,
                    lambda a, b, i: pt.set_subtensor(a[i : i + 3], b[2:5]),
                    lambda a, b, i: pt.inc_subtensor(a[::2], b[::2] * 0.5),
                    lambda a, b, i: a[::-1],
                    lambda a, b, i: a.T,
                    lambda a, b, i: pt.set_subtensor(a[1:], a[:-1]),
                    lambda a, b, i: a - b.sum() * 0.01,
                    lambda a, b, i: a - b.sum(axis=0) * 0.1,
                    lambda a, b, i: a * b.max(axis=1, keepdims=True),
                    lambda a, b, i: pt.sin(a) @ pt.cos(b),
                    lambda a, b, i: pt.inc_subtensor(a[np.array([0, 2, 2])], b[:3]),
                    lambda a, b, i: pt.concatenate([a[:i], b[i:]]),
                    lambda a, b, i: pt.switch(a > b, a, b),
                    lambda a, b, i: a @ b,
                    lambda a, b, i: pt.tanh(a).sum(axis=0)[None, :] * b,
                    lambda a, b, i: a[np.array([3, 1, 0, 2, 6, -1, 4])],
                    lambda a, b, i: pt.concatenate([a[:1] * 2.0, b[1:3] @ a, b[3:]]),
                    lambda a, b, i: _recurrent(a, b),
                    lambda a, b, i: _running(a, b),
                ]
            )(a, b, i)
        )
    return values


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", some(range(60), 30))
def test_donated_and_not_donated_agree(seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    shape = (7, 7) if rng.random() < 0.5 else (None, None)
    x, y = (pt.tensor(name, dtype="float64", shape=shape) for name in "xy")
    start = numbers.normal(size=(7, 7))
    s = graphc.shared(start, "s", shape=shape)
    values = _random_values(rng, [x, y, s])
    outputs = rng.sample(values, rng.randrange(1, 4))
    if rng.random() < 0.5:
        outputs.append(rng.choice(values).sum(axis=rng.choice([0, 1, None])))
    updates = {s: rng.choice(values[2:])}
    donate = rng.choice([[x], [x, y]])
    f = graphc.function([x, y], outputs, updates=updates, donate=donate, on_unused_input="ignore")
    reference = graphc.function([x, y], outputs, updates=updates, mode="reference", on_unused_input="ignore")
    a, b = numbers.normal(size=(2, 7, 7))
    for is_same in (False, True, False):
        s.set_value(start)
        expected = reference(a.copy(), (a if is_same else b).copy())
        expected_state = s.get_value()
        s.set_value(start)
        held = s.get_value(borrow=True) if is_same else None
        first = a.copy()
        second = first if is_same else b.copy()
        results = f(first, second)
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(s.get_value(), expected_state, rtol=1e-9, atol=1e-9)
        if held is not None:
            np.testing.assert_array_equal(held, start)
        arrays = [*results, s.container[0], *([] if y in donate else [second])]
        for i, array in enumerate(arrays):
            assert not any(np.may_share_memory(array, other) for other in arrays[:i])

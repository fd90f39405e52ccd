# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Updates see old values and happen all or not at all; givens, default updates, borrowing, copies."""

import copy

import numpy as np
import pytest

import graphc
import graphc.tensor as pt


class Fails(Exception):
    pass


def python_step(limit):
    """An op that fails for values above a limit."""

    def step(x):
        if x.max() > limit:
            raise Fails(f"{x.max()} is too large")
        return x + 1

    return graphc.wrap_py(step, [pt.dvector], [pt.dvector])


def test_all_updates_see_old_values(mode):
    a, b, c = (graphc.shared(np.full(3, v), name) for v, name in ((1.0, "a"), (2.0, "b"), (3.0, "c")))
    x = pt.dscalar("x")
    f = graphc.function([x], a + b, updates=[(a, b * x), (b, c + a), (c, a)], mode=mode)
    values = [np.full(3, v) for v in (1.0, 2.0, 3.0)]
    for x in (2.0, -1.0, 0.5):
        np.testing.assert_array_equal(f(x), values[0] + values[1])
        values = [values[1] * x, values[2] + values[0], values[0]]
        for variable, value in zip((a, b, c), values, strict=True):
            np.testing.assert_array_equal(variable.get_value(), value)


def test_updates_that_are_views_of_each_other(mode):
    """As in PyTensor and NumPy, new values are made of the old ones, whatever memory these are in."""
    values = [np.arange(4.0), np.arange(4.0) + 10, np.arange(6.0) + 20, *np.arange(8.0).reshape(2, 2, 2)]
    a, b, c, m, n = (graphc.shared(value, shape=value.shape) for value in values)
    news = [b[::-1], a[::-1], pt.concatenate([a[::2], b[::2], c[4:]]), n.T, m]
    f = graphc.function([], [a[1:], b, m.T], updates=dict(zip((a, b, c, m, n), news, strict=True)), mode=mode)
    for _ in range(3):
        p, q, r, s, t = values
        for got, want in zip(f(), [p[1:], q, s.T], strict=True):
            np.testing.assert_array_equal(got, want)
        values = [q[::-1], p[::-1], np.concatenate([p[::2], q[::2], r[4:]]), t.T, s]
        for variable, want in zip((a, b, c, m, n), values, strict=True):
            np.testing.assert_array_equal(variable.get_value(), want)


# Each is x, but most are no views of it.
SAME = {
    "float64": [
        *(lambda x, y: x * 1, lambda x, y: x / 1, lambda x, y: x - 0, lambda x, y: x * pt.ones(3)),
        *(lambda x, y: pt.maximum(x, x), lambda x, y: pt.switch(y > 0, x, x), lambda x, y: pt.clip(x, x, x)),
        *(
            lambda x, y: pt.neg(-x),
            lambda x, y: pt.tensor_copy(x),
            lambda x, y: pt.where(pt.ones(3) > 0, x, y),
        ),
        *(lambda x, y: x, lambda x, y: pt.reshape(x, (3, 1)).ravel() * 1, lambda x, y: (x * 1)[::-1][::-1]),
    ],
    "int64": [
        *(lambda x, y: x + y - y, lambda x, y: x ^ y ^ y, lambda x, y: x & x, lambda x, y: x // 1),
        *(lambda x, y: ~(~x), lambda x, y: (x | x) + 0, lambda x, y: x.astype("float64").astype("int64")),
    ],
    "complex128": [lambda x, y: pt.complex(x.real, x.imag), lambda x, y: pt.conj(pt.conj(x))],
}


@pytest.mark.parametrize("dtype", SAME)
def test_updates_of_what_turns_out_to_be_the_old_value(mode, dtype):
    y, old = pt.tensor("y", dtype=dtype, shape=(3,)), np.array([1, 2, 3], dtype)
    states = [graphc.shared(old, shape=(3,)) for _ in SAME[dtype]]
    same = [make(x, y) for make, x in zip(SAME[dtype], states, strict=True)]
    news = [pt.concatenate([x[2:], x[:2]]) for x in same]
    updates = dict(zip(states, news, strict=True))
    sums = [pt.cumsum(x) for x in same]
    f = graphc.function([y], sums, updates=updates, mode=mode, on_unused_input="ignore")
    for i, got in enumerate(f(np.array([5, -6, 7], dtype))):
        np.testing.assert_array_equal(got, [1, 3, 6], err_msg=f"number {i}")
    for i, state in enumerate(states):
        np.testing.assert_array_equal(state.get_value(), [3, 1, 2], err_msg=f"number {i}")


@pytest.mark.parametrize("mixed", [False, True])
def test_a_failed_call_changes_nothing(mode, mixed):
    a, b = graphc.shared(np.arange(3.0), "a"), graphc.shared(np.ones(3), "b")
    x, i = pt.dvector("x"), pt.lscalar("i")
    # The failure comes last: the Python op needs the new value, a check the values of the input.
    new = a * 2 + x
    last = python_step(100)(new) if mixed else new[i : i + 1] + pt.ones(3)[pt.argmax(x) + i]
    updates = {a: new, b: b + last.sum()}
    f = graphc.function([x, i], last, updates=updates, mode=mode, on_unused_input="ignore")
    kept = [v.get_value(borrow=True) for v in (a, b)]
    with pytest.raises((Fails, IndexError, ValueError)):
        f([0.0, 0.0, 1000.0], 2)
    for variable, array, value in zip((a, b), kept, (np.arange(3.0), np.ones(3)), strict=True):
        assert variable.get_value(borrow=True) is array
        np.testing.assert_array_equal(array, value)
    f(np.zeros(3), 0)
    np.testing.assert_array_equal(a.get_value(), np.arange(3.0) * 2)


def test_a_failed_call_changes_nothing_in_place():
    """Nobody else has the value, so that it could be updated in place: not where the call can fail later."""
    a = graphc.shared(np.zeros(50_000), "a")
    total = a.sum()
    f = graphc.function([], python_step(10)(a * 2 + 1)[0] + total, updates={a: a * 2 + 1})
    for _ in range(3):
        f()
    value = a.get_value()
    with pytest.raises(Fails):
        for _ in range(5):
            value = a.get_value()
            f()
    np.testing.assert_array_equal(a.get_value(), value)


def test_a_wrong_buffer_changes_nothing(mode):
    a = graphc.shared(np.zeros(3), "a")
    f = graphc.function([], a * 2, updates={a: a + 1}, mode=mode)
    with pytest.raises(ValueError, match="out="):
        f(out=np.zeros(4))
    np.testing.assert_array_equal(a.get_value(), np.zeros(3))
    out = np.zeros(3)
    assert f(out=out) is out
    np.testing.assert_array_equal(a.get_value(), np.ones(3))


def test_givens_and_default_updates(mode):
    a, b = graphc.shared(1.0, "a"), graphc.shared(10.0, "b")
    a.default_update = a + b
    b.default_update = b * 2
    x = pt.dscalar("x")
    f = graphc.function([], a * 3, mode=mode)
    assert [f(), f()] == [3, 33] and b.get_value() == 40
    assert graphc.function([], a * 3, no_default_updates=True, mode=mode)() == 31 * 3
    assert graphc.function([], a * 3, no_default_updates=[a], mode=mode)() == 31 * 3 and a.get_value() == 31
    g = graphc.function([x], a * 3, givens={a: x * 2}, mode=mode)
    assert g(5.0) == 30 and a.get_value() == 31
    h = graphc.function([], a, updates={a: a - 1}, mode=mode)
    assert h() == 31 and a.get_value() == 30


def test_borrowed_values():
    array = np.arange(3.0)
    a = graphc.shared(array, borrow=True)
    assert a.get_value(borrow=True) is array and a.get_value() is not array
    b = graphc.shared(array)
    array[0] = 7
    assert b.get_value()[0] == 0 and a.get_value()[0] == 7
    a.set_value(array * 2)
    assert array[0] == 7
    f = graphc.function([], [], updates={a: a + 1})
    before, held = a.get_value(), a.get_value(borrow=True)
    f()
    # What was handed out stays as it was: the update made a new array.
    np.testing.assert_array_equal(held, before)
    np.testing.assert_array_equal(a.get_value(), before + 1)


# -- copies ------------------------------------------------------------------------------------------


def accumulator(mode):
    a = graphc.shared(np.zeros(3), "a")
    x = pt.dvector("x")
    return a, graphc.function([x], a + x, updates={a: a + x}, mode=mode)


def test_copy_shares_variables(mode):
    a, f = accumulator(mode)
    g = f.copy(share_memory=True, name="g")
    assert g.executor is f.executor and g.name == "g" and g.report.name == "g"
    f(np.ones(3))
    np.testing.assert_array_equal(g(np.ones(3)), np.full(3, 2.0))
    np.testing.assert_array_equal(a.get_value(), np.full(3, 2.0))
    assert g.report.fast_call == f.report.fast_call


def test_copy_swaps_without_compiling(mode):
    a, f = accumulator(mode)
    b = graphc.shared(np.full(3, 5.0), "b")
    g = f.copy(swap={a: b})
    assert g.executor is f.executor and g.get_shared() == [b] and list(g.updates) == [b]
    np.testing.assert_array_equal(g(np.ones(3)), np.full(3, 6.0))
    np.testing.assert_array_equal(b.get_value(), np.full(3, 6.0))
    np.testing.assert_array_equal(a.get_value(), np.zeros(3))
    del f
    np.testing.assert_array_equal(g(np.ones(3)), np.full(3, 7.0))


def test_copy_that_merges_variables(mode):
    a, b = graphc.shared(np.ones(2), "a"), graphc.shared(np.full(2, 3.0), "b")
    f = graphc.function([], a + 2 * b, mode=mode)
    g = f.copy(swap={a: b})
    np.testing.assert_array_equal(g(), np.full(2, 9.0))
    crossed = f.copy(swap={a: b, b: a})
    np.testing.assert_array_equal(crossed(), np.full(2, 5.0))


def test_copy_without_updates(mode):
    a, f = accumulator(mode)
    g = f.copy(delete_updates=True)
    assert not g.updates
    g(np.ones(3))
    np.testing.assert_array_equal(a.get_value(), np.zeros(3))
    h = g.copy(delete_updates=True)
    assert h.executor is g.executor


def test_copies_have_defaults_of_their_own(mode):
    x, s = pt.dscalar("x"), pt.dscalar("s")
    f = graphc.function([x, graphc.In(s, value=1.0, update=s + x)], s * 2, mode=mode)
    g = f.copy()
    assert f(5.0) == 2 and f(0.0) == 12 and g(1.0) == 2


def test_deepcopy_copies_shared_variables(mode):
    a, f = accumulator(mode)
    f(np.ones(3))
    g, b = copy.deepcopy((f, a))
    assert g.get_shared() == [b] and b is not a
    g(np.ones(3))
    np.testing.assert_array_equal(b.get_value(), np.full(3, 2.0))
    np.testing.assert_array_equal(a.get_value(), np.ones(3))
    f(np.full(3, 4.0))
    np.testing.assert_array_equal(a.get_value(), np.full(3, 5.0))
    np.testing.assert_array_equal(b.get_value(), np.full(3, 2.0))
    # Without the variable the function has one of its own, as after unpickling.
    other = copy.deepcopy(f)
    other(np.ones(3))
    np.testing.assert_array_equal(a.get_value(), np.full(3, 5.0))

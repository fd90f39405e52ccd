# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many threads calling one function at once get right answers, and updates are not lost."""

import os
import random
import sys
import threading
import time

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function import calls
from graphc_runtime import commit, kernel_call
from graphc_runtime.commit import snapshot

THREADS = 8
# Calls through Python take ten times as long; what two threads can do to each other takes time, not calls.
SHARE = 8 if os.environ.get("GRAPHC_CALL_TIER") else 1


@pytest.fixture(autouse=True)
def _often():
    """Threads are switched as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(work, calls):
    """Calls ``work(thread, i)`` in `THREADS` threads, ``calls`` times in all; raises what they raise."""
    errors, ready = [], threading.Barrier(THREADS)

    def loop(thread):
        ready.wait()
        try:
            for i in range(calls // THREADS):
                work(thread, i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=loop, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def mixed_step():
    return graphc.wrap_py(lambda x: x + 1, [pt.dvector], [pt.dvector])


def test_native():
    x, y = pt.dmatrix("x"), pt.dvector("y")
    # Several kernels' worth of work with intermediate arrays: each call needs a workspace of its own.
    z = pt.exp(x @ y - pt.log(pt.exp(x @ y).sum()))
    f = graphc.function([x, y], [z, graphc.cumulative(pt.add, z)])
    rng = np.random.default_rng(0)
    arguments = [(rng.normal(size=(3 + k, 4)), rng.normal(size=4)) for k in range(THREADS)]
    expected = [f(*pair) for pair in arguments]

    def work(thread, i):
        for got, want in zip(f(*arguments[thread]), expected[thread], strict=True):
            assert got.tobytes() == want.tobytes()

    run(work, 48_000 // SHARE)


@pytest.mark.parametrize("form", ["small", "in place", "without the GIL", "loop"])
def test_native_with_updates(form):
    """Each call sees the state of exactly one call before it."""
    size = 1 if form == "small" else 4 if form == "loop" else 100_000
    count = graphc.shared(np.zeros(size), "count")
    new = count + 1
    if form == "without the GIL":  # read in another order than written, so it needs a new array
        new = pt.sin(count * 0)[::-1] + new
    if form == "loop":
        new = graphc.scan(lambda v: pt.sqrt(v * v), outputs_info=new, n_steps=30, return_updates=False)[-1]
    f = graphc.function([], count[0] + 0, updates={count: new})
    calls, seen = (40_000 // SHARE if form == "small" else 2_000), [[] for _ in range(THREADS)]
    run(lambda thread, i: seen[thread].append(float(f())), calls)
    np.testing.assert_array_equal(count.get_value(), np.full(size, float(calls)))
    assert sorted(value for part in seen for value in part) == list(range(calls))


def test_mixed_graphs():
    x = pt.dvector("x")
    f = graphc.function([x], [(mixed_step()(x * 2) ** 2).sum(), pt.exp(mixed_step()(x)) - 1])

    def work(thread, i):
        total, values = f(np.full(3, float(thread)))
        assert total == 3 * (2 * thread + 1) ** 2
        np.testing.assert_allclose(values, np.exp(thread + 1.0) - 1)

    run(work, 8_000 // SHARE)


def test_mixed_graphs_with_updates():
    state = graphc.shared(np.zeros(3), "state")
    f = graphc.function([], state[0] + 0, updates={state: mixed_step()(state * 1)})
    seen = [[] for _ in range(THREADS)]
    run(lambda thread, i: seen[thread].append(float(f())), 4_000)
    np.testing.assert_array_equal(state.get_value(), np.full(3, 4000.0))
    assert sorted(value for part in seen for value in part) == list(range(4000))


def test_torture():
    """Functions that share variables, others' reads and writes, sleeps, failures, copies and loops."""
    a, b = graphc.shared(np.zeros(8), "a"), graphc.shared(np.zeros(8), "b")
    x, n = pt.dvector("x"), pt.lscalar("n")
    add = graphc.function([x], [a, b], updates={a: a + x, b: b - x})
    add_in_python = graphc.function([x], [a, b], updates={a: mixed_step()(a - 1) + x, b: b - x})
    total = graphc.function([], (a + b).sum())
    checked = graphc.function([x, n], a, updates={a: a + x * x[n]}, on_unused_input="ignore")
    loop = graphc.function(
        [n], graphc.scan(lambda v: v + a - a, outputs_info=pt.ones(8), n_steps=n, return_updates=False)[-1]
    )
    dice = [random.Random(seed) for seed in range(THREADS)]

    def work(thread, i):
        roll = dice[thread].randrange(8)
        if roll < 2:
            add(np.full(8, 1.0))
        elif roll == 2:
            add_in_python(np.full(8, -1.0))
        elif roll == 3:
            assert total() == 0, "both updates of a call are seen, or none"
        elif roll == 4:
            with pytest.raises(IndexError):
                checked(np.ones(8), 9)
        elif roll == 5:
            np.testing.assert_array_equal(loop(20), np.ones(8))
        elif roll == 6:
            x, y = a.get_value(), b.get_value()
            assert x.min() == x.max() and y.min() == y.max()
        else:
            time.sleep(dice[thread].random() * 1e-4)

    run(work, 16_000 // SHARE)
    np.testing.assert_array_equal(a.get_value(), -b.get_value())


@pytest.mark.parametrize("nested", ["set_value", "function"])
def test_an_op_that_stores_what_the_function_updates_runs_once(nested):
    """The function's own update wins: it is computed from the value at the beginning of the call."""
    count, calls = graphc.shared(0.0, "count"), []
    bump = graphc.function([], updates={count: count + 1})

    def step(x):
        calls.append(1)
        bump() if nested == "function" else count.set_value(count.get_value() + 1)
        return 2 * x

    x = pt.dvector("x")
    op = graphc.wrap_py(step, [pt.dvector], [pt.dvector])
    for y in (op(x), op(x) * pt.exp(x)):
        f = graphc.function([x], y, updates={count: count + 10})
        calls.clear()
        count.set_value(1.0)
        f(np.ones(2))
        assert len(calls) == 1 and count.get_value() == 11


@pytest.mark.parametrize("kind", ["python", "native"])
def test_a_slow_update_ends_beside_a_thread_that_stores(kind):
    """Python ops run twice at most; what is stored meanwhile waits for the second attempt."""
    state, n, calls, stop = graphc.shared(np.zeros(2), "state"), pt.lscalar("n"), [], threading.Event()

    def slow(x):
        calls.append(1)
        time.sleep(0.05)
        return x

    if kind == "python":
        new = graphc.wrap_py(slow, [pt.dvector], [pt.dvector])(state) + 1 + 0 * n
    else:
        new = graphc.scan(lambda h: pt.cos(h), outputs_info=state, n_steps=n, return_updates=False)[-1]
    f = graphc.function([n], new, updates={state: new})
    stored = []

    def store():
        while not stop.is_set():
            state.set_value(np.full(2, float(len(stored))))
            stored.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=store)
    thread.start()
    try:
        while len(stored) < 3:
            time.sleep(0.001)
        # Python integers are not exact inputs: the slow path takes them.
        results = [f(10**6 if kind == "native" else 1) for _ in range(2)]
    finally:
        stop.set()
        thread.join()
    assert len(results) == 2 and len(calls) <= 4


@pytest.mark.parametrize("donated", [False, True])
def test_machine_code_waits_for_a_slow_update(donated):
    """No update is lost where a function with a slow Python op runs beside one of machine code."""
    count, x = graphc.shared(0.0, "count"), pt.dvector("x")

    def slow(x):
        time.sleep(0.02)
        return x

    op = graphc.wrap_py(slow, [pt.dscalar], [pt.dscalar])
    f = graphc.function([], [], updates={count: op(count) + 1000})
    g = graphc.function([graphc.In(x, mutable=donated)], x + 1, updates={count: count + 1})
    stop, quick = threading.Event(), []

    def store():
        while not stop.is_set():
            g(np.ones(3))
            quick.append(1)
            time.sleep(0.0002)

    thread = threading.Thread(target=store)
    thread.start()
    try:
        while len(quick) < 3:
            time.sleep(0.001)
        for _ in range(5):
            f()
    finally:
        stop.set()
        thread.join()
    assert count.get_value() == 5000 + len(quick)


def test_a_call_that_overwrites_what_it_reads_has_the_turn(monkeypatch):
    """It cannot start anew when another thread has stored a value after it read the old one."""
    count, x = graphc.shared(0.0, "count"), pt.dvector("x")
    slow = graphc.wrap_py(lambda value: value, [pt.dscalar], [pt.dscalar])
    f = graphc.function([], [], updates={count: slow(count) + 1000})
    g = graphc.function([graphc.In(x, mutable=True)], x + 1, updates={count: count + 1})
    threads = []

    def read(cells):
        values = snapshot(cells)
        if not threads:
            threads.append(threading.Thread(target=f))
            threads[0].start()
            threads[0].join(0.2)
        return values

    for module in (calls, kernel_call):
        monkeypatch.setattr(module, "snapshot", read)
    # Machine code leaves its work to Python, as if another call had the turn.
    monkeypatch.setattr(commit._flag, "value", 1)
    g(np.ones(3))
    threads[0].join()
    assert count.get_value() == 1001

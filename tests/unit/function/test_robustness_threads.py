# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many threads calling one function at once get right answers, and updates are not lost."""

import random
import sys
import threading
import time

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

THREADS = 8


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

    run(work, 48_000)


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
    calls, seen = (40_000 if form == "small" else 2_000), [[] for _ in range(THREADS)]
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

    run(work, 8_000)


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

    run(work, 16_000)
    np.testing.assert_array_equal(a.get_value(), -b.get_value())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C and other signals during long native loops, progress lines, and threads beside such loops."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc_runtime import interrupts, progress

# Long enough that only an interrupt ends it soon, short enough that a failure does not block.
MANY = 4 * 10**9


class Stop(Exception):
    pass


@pytest.fixture
def alarm():
    """Sets a timer whose handler raises `Stop`."""

    def handler(*_):
        raise Stop

    old = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds=0.1: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def logistic(mode="fast_run", **options):
    x, n = pt.dscalar("x"), pt.lscalar("n")
    ys = graphc.scan(
        lambda y: 3.6 * y * (1 - y),
        outputs_info=x,
        n_steps=n,
        name="logistic",
        **options,
        return_updates=False,
    )
    return graphc.function([x, n], ys[-1], mode=mode)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_a_loop_of_scalars_ends(alarm, mode):
    f = logistic(mode)
    assert "graphc_tick" in f.ir_stages()["buffer"]
    expected = f(0.3, 1000)
    with pytest.raises(Stop):
        alarm()
        f(0.3, MANY)
    assert f(0.3, 1000) == expected


@pytest.fixture
def keyboard():
    """Python's own handler of SIGINT: tests that a shell started in the background do not have it."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def test_keyboard_interrupt(keyboard):
    f = logistic()
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    # Started within: where the machine is busy the signal may come before the call.
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        f(0.3, MANY)
    timer.join()


def test_rows_while_and_nested_loops_end(alarm):
    h, w, n = pt.dvector("h"), pt.dmatrix("w"), pt.lscalar("n")
    rows = graphc.scan(
        lambda h, w: pt.tanh(h @ w), outputs_info=h, non_sequences=w, n_steps=n, return_updates=False
    )[-1]
    counted = graphc.scan(
        lambda i: (i + 1, graphc.until(i < 0)),
        outputs_info=pt.constant(0, dtype="int64"),
        n_steps=n,
        return_updates=False,
    )[-1]

    def outer(y):
        return graphc.scan(lambda z: pt.sin(z) + y, outputs_info=y, n_steps=10**6, return_updates=False)[-1]

    nested = graphc.scan(outer, outputs_info=h[0], n_steps=n, return_updates=False)[-1]
    for result in (rows, counted, nested):
        f = graphc.function([h, w, n], result, on_unused_input="ignore")
        assert not f.report.fallbacks
        f(np.ones(8), np.eye(8), 2)
        with pytest.raises(Stop):
            alarm()
            f(np.ones(8), np.eye(8), 10**10)


def test_without_the_gil(alarm):
    big, n = pt.dvector("big"), pt.lscalar("n")
    ys = graphc.scan(
        lambda y, v: pt.cos(v * y).sum(),
        outputs_info=big[0],
        non_sequences=big,
        n_steps=n,
        return_updates=False,
    )
    f = graphc.function([big, n], ys[-1])
    values = np.ones(200_000)
    f(values, 2)
    with pytest.raises(Stop):
        alarm()
        f(values, 10**9)


def test_shared_variables_keep_their_values(alarm):
    state = graphc.shared(np.full(4, 0.3), "state")
    n = pt.lscalar("n")
    ys = graphc.scan(lambda y: 3.6 * y * (1 - y), outputs_info=state, n_steps=n, return_updates=False)
    f = graphc.function([n], ys[-1].sum(), updates={state: ys[-1]})
    with pytest.raises(Stop):
        alarm()
        f(10**10)
    np.testing.assert_array_equal(state.get_value(), np.full(4, 0.3))
    f(1)
    np.testing.assert_allclose(state.get_value(), np.full(4, 3.6 * 0.3 * 0.7))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_updates_in_place_come_after_what_can_be_interrupted(alarm, mode):
    """Beside a long loop the value is not overwritten: the call would keep the GIL, and could not end."""
    x, n = pt.dscalar("x"), pt.lscalar("n")
    count = graphc.shared(np.zeros(3), "count")
    ys = graphc.scan(lambda y: 3.6 * y * (1 - y), outputs_info=x, n_steps=n, return_updates=False)
    f = graphc.function([x, n], ys[-1], updates={count: count + 1}, mode=mode)
    f(0.3, 10)
    turns = []

    def other_thread():
        while len(turns) < 5:
            turns.append(len(turns))
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGALRM)

    alarm(0)
    thread = threading.Thread(target=other_thread)
    with pytest.raises(Stop):
        thread.start()
        f(0.3, MANY)
    thread.join()
    np.testing.assert_array_equal(count.get_value(), np.ones(3))
    # Loops that are known to be short do not matter.
    short = graphc.scan(lambda y: pt.sin(y), outputs_info=x, n_steps=9, return_updates=False)[-1]
    report = graphc.function([x], short, updates={count: count + 1}, mode=mode).report
    assert report.donations == ["count lends its memory to its new value"]


def test_handlers_that_return_let_the_loop_go_on():
    calls = []
    old = signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
    try:
        f = logistic()
        expected = f(0.3, 3 * 10**8)
        signal.setitimer(signal.ITIMER_REAL, 0.06, 0.06)
        assert f(0.3, 3 * 10**8) == expected and len(calls) >= 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_other_threads_run_beside_a_long_loop():
    """Inputs are small, so the call holds the GIL, but hands it on now and then."""
    f, ran = logistic(), []
    timer = threading.Timer(0.05, lambda: ran.append(1))
    timer.start()
    f(0.3, 3 * 10**8)
    assert ran
    worker = threading.Thread(target=f, args=(0.3, 3 * 10**8))
    worker.start()
    time.sleep(0.05)
    assert worker.is_alive()
    worker.join()


def test_the_other_call_tiers():
    code = (
        "import signal, graphc, graphc.tensor as pt\n"
        "def stop(*_): raise KeyError('stop')\n"
        "signal.signal(signal.SIGALRM, stop)\n"
        "n = pt.lscalar()\n"
        "f = graphc.function([n], graphc.scan(lambda y: 3.6 * y * (1 - y), outputs_info=pt.constant(0.3),"
        " n_steps=n, return_updates=False)[-1])\n"
        "f(10); signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
        "try: f(10**10)\n"
        "except KeyError: print(f(3))\n"
    )
    for tier in ("buffer", "python"):
        environment = {**os.environ, "GRAPHC_CALL_TIER": tier}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert ran.stdout.startswith("0."), (tier, ran.stderr)


def test_kernels_run_without_a_table():
    """A context whose table is null leaves signals alone."""
    f = logistic()
    loaded = f.executor.executable.loaded
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(loaded.address("graphc_run"))
    x, n, y = np.array(0.3), np.array(10**6), np.zeros(())
    data = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in (x, n, y)))
    context, dims = (ctypes.c_uint64 * interrupts.CONTEXT_WORDS)(), (ctypes.c_int64 * 1)()
    assert run(*(ctypes.addressof(a) for a in (context, data, dims))) == 0
    assert y == f(0.3, 10**6)


def test_short_loops_have_no_polls():
    c = pt.dscalar("c")
    y = graphc.scan(lambda y: pt.sin(y), outputs_info=c, n_steps=500, return_updates=False)[-1]
    stages = graphc.function([c], y).ir_stages()
    assert "graphc_tick" not in stages["buffer"] and "graphc_hooks" not in stages["asm"]


def test_progress(mode, capfd):
    steps = 3000 if mode in ("reference", "debug") else 2 * 10**8
    f = logistic(mode, progress=True)
    if mode in ("reference", "debug"):
        progress_patience = progress._PATIENCE
        progress._PATIENCE = 0
    try:
        f(0.3, steps)
    finally:
        if mode in ("reference", "debug"):
            progress._PATIENCE = progress_patience
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith("logistic [") for line in lines) and len(lines) >= 2
    assert f"{steps}/{steps}" in lines[-1]


def test_progress_of_rows_and_short_loops(capfd):
    h, w, n = pt.dvector("h"), pt.dmatrix("w"), pt.lscalar("n")
    hs = graphc.scan(
        lambda h, w: pt.tanh(h @ w),
        outputs_info=h,
        non_sequences=w,
        n_steps=n,
        progress=True,
        name="net",
        return_updates=False,
    )
    f = graphc.function([h, w, n], hs[-1])
    f(np.ones(8), np.eye(8), 100)
    assert capfd.readouterr().err == ""
    f(np.ones(8), np.eye(8), 3 * 10**7)
    assert "net [" in capfd.readouterr().err


def test_progress_on_a_terminal(monkeypatch):
    class Terminal:
        text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    for done in (0, 1, 2, 4):
        progress.report("fit", done, 4)
    shown = [line.rstrip() for line in stream.text.split("\r")]
    assert len(shown) == 5 and stream.text.endswith("\n")
    assert shown[2].startswith("fit [#######                       ] 1/4")
    progress.report("search", 3, 1 << 48)
    assert "search 3 iterations" in stream.text
    progress.forget()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work apart from signal handlers, and forks beside it."""

import contextvars
import cProfile
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest

from graphc_runtime import worker
from graphc_runtime.worker import Abandoned, apart, checkpoint

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


class Stop(Exception):
    pass


@pytest.fixture
def alarm():
    """Sets a timer whose handler raises `Stop`."""

    def handler(*_):
        raise Stop

    old = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds=0.05: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_results_errors_and_context_come_through():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(3)

    def work(x, *, y):
        assert threading.current_thread() is not threading.main_thread()
        assert apart(threading.get_ident) == threading.get_ident(), "work within work stays"
        return x, y, variable.get()

    def fail():
        raise SystemExit(4)

    size = threading.stack_size()
    assert apart(work, 1, y=2) == (1, 2, 3)
    with pytest.raises(SystemExit) as caught:
        apart(fail)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"
    assert apart(threading.get_ident) == apart(threading.get_ident), "one worker serves all"
    assert threading.stack_size() == size


def test_other_threads_and_watched_ones_work_themselves():
    found = []
    thread = threading.Thread(target=lambda: found.append(apart(threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]
    assert cProfile.Profile().runcall(apart, threading.get_ident) == threading.get_ident()


def test_what_is_left_behind_stops_and_does_not_delay_others(alarm):
    ended, go_on = [], threading.Event()

    def work():
        try:
            go_on.wait(60)
            checkpoint()
            ended.append("finished")
        except Abandoned:
            ended.append("abandoned")
            raise

    alarm()
    with pytest.raises(Stop):
        apart(work)
    assert apart(lambda: 5) == 5
    go_on.set()
    wait_until(lambda: ended)
    assert ended == ["abandoned"]
    wait_until(lambda: not worker._state.present)
    assert apart(lambda: 6) == 6


def test_a_handler_can_ask_for_work_too(alarm):
    found = []
    old = signal.signal(signal.SIGALRM, lambda *_: found.append(apart(lambda: 7)))
    try:
        alarm()
        assert apart(lambda: wait_until(lambda: found) or 8) == 8
    finally:
        signal.signal(signal.SIGALRM, old)
    assert found == [7]


def test_results_are_not_kept():
    class Thing:
        pass

    apart(Thing)
    apart(int)
    gc.collect()
    assert not any(isinstance(one, Thing) for one in gc.get_objects())


def child(body):
    """The exit status of a child of a fork that runs `body`; 9 if it raised, a negative number if it hung."""
    pid = os.fork()
    if pid == 0:
        status = 9
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            status = body()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forks_wait_for_checkpoints():
    lock, ended = threading.Lock(), threading.Event()

    def work():
        while not ended.is_set():
            with lock:
                time.sleep(0.01)
            checkpoint()

    thread = threading.Thread(target=apart, args=(work,))
    thread.start()
    wait_until(lambda: worker._state.present)
    try:
        # A child whose lock is held would wait for ever.
        assert [child(lambda: apart(lambda: lock.acquire() and 5)) for _ in range(5)] == [5] * 5
    finally:
        ended.set()
        thread.join()
    assert apart(lambda: 6) == 6


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_fork_that_cannot_wait_leaves_a_child_that_says_so(monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(worker, "FORK_SECONDS", 0.05)
    thread = threading.Thread(target=apart, args=(lambda: ended.wait(60),))
    thread.start()
    wait_until(lambda: worker._state.present)

    def body():
        with pytest.raises(worker.ForkedError, match="forked while another thread was compiling"):
            apart(int)
        return 5

    try:
        assert child(body) == 5
    finally:
        ended.set()
        thread.join()


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_work_itself_can_fork():
    assert apart(child, lambda: apart(lambda: 5)) == 5
    assert apart(lambda: 6) == 6


EXIT = """
import signal, time
from graphc_runtime.worker import apart, checkpoint

def work():
    for i in range(300):
        time.sleep(0.01)
        {checkpoint}
    print("worked on")

def handler(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
apart(work)
"""


@pytest.mark.parametrize("stops", [True, False])
def test_the_interpreter_ends_when_the_work_has(stops):
    program = EXIT.format(checkpoint="checkpoint()" if stops else "pass")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == -signal.SIGINT
    assert ran.stderr.count("Traceback") == 1 and ran.stderr.endswith("KeyboardInterrupt\n")
    assert ran.stdout == ("" if stops else "worked on\n")

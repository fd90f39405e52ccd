# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work that signals must not break into, nor forks: compiling, and loading code.

Python runs signal handlers in its main thread, between any two bytecodes. An exception that a handler
raises there would leave an import, a dialect's registration or somebody's lock half done. So what the main
thread asks for with `apart` runs in a worker thread, for which it waits. The wait ends at once when a handler
raises; the abandoned work stops at its next `checkpoint`, and what is asked for meanwhile gets
another worker. Other threads take no signals and work themselves.

A child of a fork has only the thread that forked. So a fork waits until all work stands at a checkpoint,
where nobody holds what the child will need.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import sys
import threading
import time
import weakref
from _thread import LockType, allocate_lock, get_ident, interrupt_main, start_new_thread
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# Of virtual memory: MLIR and LLVM recurse deeply.
STACK_BYTES = 64 << 20
# How long a fork waits for work that comes to no checkpoint.
FORK_SECONDS = 60.0


class Abandoned(BaseException):
    """Nobody waits for the work any more; not for users to see."""


class ForkedError(RuntimeError):
    """A child of a fork cannot compile: the fork came in the midst of work in another thread."""


class Task:
    """Work that somebody waits for.

    Attributes:
        abandoned: nobody waits any more.
        finished: it has a result, or has failed.
    """

    def __init__(self, run: Callable[[], Any] | None = None) -> None:
        self._run = run
        self._result: Any = None
        self._error: BaseException | None = None
        self._done = allocate_lock()
        self._done.acquire()
        self.abandoned = self.finished = False

    def run(self) -> None:
        """Does the work in this thread."""
        assert self._run is not None
        try:
            with taking_part(self):
                self._result = self._run()
        except BaseException as error:
            self._error = error
        self._run = None
        self.finished = True
        self._done.release()

    def fail(self, error: BaseException) -> None:
        """Ends the wait for work whose thread is gone."""
        self._error = error
        self._done.release()

    def result(self) -> Any:
        """Waits. Raises what the work raised, or what a signal handler raises meanwhile."""
        self._done.acquire()
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error


class Presence:
    """A thread at work.

    Attributes:
        task: on which task.
        rests: whether it stands still.
        is_called: whether it shall come to a `checkpoint`: a fork waits for it, or nobody waits for its work.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rests = self.is_called = False


class _Worker:
    """A thread that does tasks. It is not a `threading.Thread`: starting one can be interrupted half-way."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._ended = allocate_lock()
        self._ended.acquire()

    def start(self) -> None:
        before = threading.stack_size()
        try:
            with contextlib.suppress(ValueError):
                threading.stack_size(STACK_BYTES)
            start_new_thread(self._work, ())
        finally:
            threading.stack_size(before)

    def do(self, task: Task) -> None:
        self._tasks.put(task)

    def dismiss(self, *, wait: bool = False) -> None:
        """Ends the thread when it has done what it has; waits for that, for a second at most."""
        self._tasks.put(None)
        if wait:
            self._ended.acquire(timeout=1)

    def _work(self) -> None:
        threading.current_thread().name = "graphc-worker"
        while (task := self._tasks.get()) is not None:
            task.run()
            del task
        self._ended.release()


class _State:
    """State of a process; a child of a fork begins anew.

    Attributes:
        worker: an idle worker.
        waiting: the tasks that the main thread waits for; several where a signal handler asks for one.
        present: the threads at work.
        forking: held by the thread that forks.
        forker: which one that is.
        gate: held by it too; threads at work wait for it.
        missed: work that the fork did not wait for long enough.
        interrupted: a signal handler raised while a fork waited.
        ended: the interpreter ends.
        broken: this is a child that must not compile.
    """

    def __init__(self, *, broken: bool = False) -> None:
        self.worker: _Worker | None = None
        self.waiting: list[Task] = []
        self.present: dict[int, Presence] = {}
        self.forking = allocate_lock()
        self.forker: int | None = None
        self.gate: LockType | None = None
        self.missed = self.interrupted = self.ended = False
        self.broken = broken


_state = _State()
_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def apart(function: Callable[_Given, _Result], *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
    """``function(*args, **kwargs)``, where no signal handler can break into it.

    Debuggers and profilers see the thread that has them, so that it works itself while it has one.

    Raises:
        ForkedError: this process was forked from the midst of other work.
    """
    if _state.broken:
        raise _broken()
    ident = get_ident()
    if ident in _state.present:
        return function(*args, **kwargs)
    watched = sys.gettrace() is not None or sys.getprofile() is not None
    if _state.ended or watched or ident != threading.main_thread().ident:
        with taking_part(Task()):
            return function(*args, **kwargs)
    context = contextvars.copy_context()
    task = Task(lambda: context.run(function, *args, **kwargs))
    worker = None
    try:
        worker, _state.worker = _state.worker, None
        _state.waiting.append(task)
        if worker is None:
            worker = _Worker()
            try:
                worker.start()
            except RuntimeError:  # no more threads are to be had
                worker = None
        if worker is None:
            task.run()
        else:
            worker.do(task)
        result: _Result = task.result()
        return result
    finally:
        if not task.finished:
            _abandon(task)
        _state.waiting[:] = [other for other in _state.waiting if other is not task]
        if worker is not None:
            if task.finished and _state.worker is None:
                _state.worker = worker
            else:
                worker.dismiss()


def renew_in_children(owner: object) -> None:
    """Gives ``owner.lock`` anew in children of a fork, where the thread that holds it may be missing.

    Args:
        owner: can be referred to weakly; its lock is a `threading.RLock`.
    """
    _owners.add(owner)


def _abandon(task: Task) -> None:
    """Says that nobody waits for a task. Threads that begin with it look for themselves."""
    task.abandoned = True
    for presence in _state.present.copy().values():
        presence.is_called = presence.is_called or presence.task is task


def presence() -> Presence:
    """This thread's, which says when it is to come to a checkpoint; never that of one at no work."""
    return _state.present.get(get_ident()) or Presence(Task())


def checkpoint() -> None:
    """To be called by work where it holds no lock and could stop, often.

    Raises:
        Abandoned: nobody waits for it any more.
    """
    presence = _state.present.get(get_ident())
    if presence is None:
        return
    presence.is_called = presence.task.abandoned
    while (gate := _state.gate) is not None:
        presence.rests = True
        with gate:
            presence.rests = False
    if presence.task.abandoned:
        raise Abandoned


@contextlib.contextmanager
def taking_part(task: Task | None) -> Iterator[None]:
    """The block is work on a task; None where it belongs to none."""
    if task is None:
        yield
        return
    ident, present = get_ident(), _state.present
    present[ident] = Presence(task)
    try:
        checkpoint()
        yield
    finally:
        # In a child of a fork there is another table.
        present.pop(ident, None)
        _state.present.pop(ident, None)


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """The block waits for other threads at work."""
    presence = _state.present.get(get_ident())
    if presence is None:
        yield
        return
    presence.rests = True
    try:
        yield
    finally:
        presence.rests = False
    checkpoint()


def idle_workers() -> int:
    """Number of threads that wait here for work, and do nothing."""
    return int(_state.worker is not None)


def current_task() -> Task | None:
    """The task of this thread."""
    presence = _state.present.get(get_ident())
    return None if presence is None else presence.task


def _broken() -> ForkedError:
    return ForkedError(
        "this process cannot compile: it was forked while another thread was compiling, and that came to no "
        f"point where it could wait within {FORK_SECONDS:g} s. Compile before forking, or start processes "
        "with multiprocessing's 'spawn' or 'forkserver'"
    )


def _others_at_work() -> bool:
    me = get_ident()
    return any(not one.rests for ident, one in _state.present.copy().items() if ident != me)


def _before_fork() -> None:
    me = get_ident()
    presence = _state.present.get(me)
    if presence is not None:
        presence.rests = True  # for other threads that fork
    try:
        _state.forking.acquire()
        _state.forker, _state.missed, _state.interrupted = me, False, False
        _state.gate = allocate_lock()
        _state.gate.acquire()
        for other in _state.present.copy().values():
            other.is_called = True
        # Python warns of forks of processes that have several threads.
        if _state.worker is not None:
            worker, _state.worker = _state.worker, None
            worker.dismiss(wait=True)
        until = time.monotonic() + FORK_SECONDS
        while not _state.missed and _others_at_work():
            time.sleep(0.001)
            _state.missed = time.monotonic() > until
    except BaseException:  # of a signal handler; Python drops what is raised here
        _state.interrupted = True
        _state.missed = _others_at_work()


def _after_fork_in_parent() -> None:
    me = get_ident()
    presence = _state.present.get(me)
    if presence is not None:
        presence.rests = False
    if _state.forker == me:
        gate, _state.gate, _state.forker = _state.gate, None, None
        _state.forking.release()
        if gate is not None:
            gate.release()
    if _state.interrupted:
        _state.interrupted = False
        # The thread begins when this one is out of the handlers of the fork.
        start_new_thread(interrupt_main, ())


def _after_fork_in_child() -> None:
    global _state
    old, _state = _state, _State(broken=_state.missed or _state.broken)
    presence = old.present.get(get_ident())
    if presence is not None:
        presence.rests = False
        _state.present[get_ident()] = presence
    for owner in _owners:
        owner.lock = threading.RLock()
    for task in old.waiting:
        if presence is None or presence.task is not task:
            task.fail(_broken())


def _end() -> None:
    """Lets no thread work on while the interpreter and C++'s static objects end."""
    _state.ended = True
    for presence in _state.present.copy().values():
        _abandon(presence.task)
    while any(ident != get_ident() for ident in _state.present.copy()):
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
atexit.register(_end)

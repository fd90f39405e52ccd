# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helper processes that run functions of graphc: a crash in MLIR or LLVM ends them and not the caller.

A worker is a new interpreter, no fork: it inherits neither locks nor threads. It is kept for further calls,
and ends when the process that started it ends or has closed its end of the socket.
"""

from __future__ import annotations

import faulthandler
import importlib
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import IO, Any

from graphc.errors import CompileError
from graphc_runtime.worker import checkpoint

# Native memory that compilers do not give back goes with the process.
_MOST_CALLS = 500
_MOST_IDLE = 4
_WAIT_SECONDS = 0.05
# A worker that is too slow ends itself a little later, also when nobody is there any more to end it.
_GRACE_SECONDS = 5
_START = "import sys; sys.path[:] = {path!r}; from graphc.backends import worker; worker.serve({descriptor})"


class WorkerDied(Exception):
    """A worker ended before it had an answer.

    Attributes:
        how: what ended it, in words: a signal, an exit status, the time limit.
        output: the end of what it wrote to its standard error stream.
    """

    def __init__(self, how: str, output: str) -> None:
        super().__init__(how)
        self.how = how
        self.output = output


class Worker:
    """A helper process; one thread uses it at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.calls = 0
        try:
            # Ctrl-C in a terminal goes to a whole session: the caller decides what becomes of the worker.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path, descriptor=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        finally:
            theirs.close()
        self._connection = Connection(ours.detach())
        _ALL.add(self)

    @property
    def is_alive(self) -> bool:
        """True if the process still runs."""
        return self._process.poll() is None

    @property
    def is_closed(self) -> bool:
        """True if it takes no more calls."""
        return self._connection.closed

    def call(self, function: str, arguments: Sequence[object], seconds: float = 0) -> Any:
        """Result of a function in the worker.

        Args:
            function: ``"module:name"``.
            arguments: what it is called with; these and the result are pickled.
            seconds: time limit; 0 for none.

        Raises:
            WorkerDied: the process ended, or took too long and was ended.
            Exception: what the function raised.
        """
        self.calls += 1
        self._output.seek(0)
        self._output.truncate()
        try:
            self._connection.send((function, tuple(arguments), seconds))
            end = time.monotonic() + (seconds or math.inf)
            while not self._connection.poll(_WAIT_SECONDS):
                if time.monotonic() > end:
                    self._process.kill()
                    raise self._death(f"it took longer than {seconds:g} seconds")
                # Whoever asked may have given up: Ctrl-C arrives in another thread.
                checkpoint()
            raised, value = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._death(self._how_it_ended()) from None
        except BaseException:
            # An interrupt: its answer would be taken for that of the next call.
            self._process.kill()
            self._process.wait()
            self.close()
            raise
        if raised:
            raise value
        return value

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"it ended with status {code}"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    def _death(self, how: str) -> WorkerDied:
        self._process.wait()
        self._output.seek(0)
        output = self._output.read().decode(errors="replace")[-4000:].strip()
        self.close()
        return WorkerDied(how, output)

    def close(self) -> None:
        """Closes this side of the socket, which the process takes for its end."""
        _ALL.discard(self)
        self._connection.close()
        self._output.close()


_ALL: weakref.WeakSet[Worker] = weakref.WeakSet()
# Workers that wait for their next call. Appending and popping are atomic.
_IDLE: list[Worker] = []


def call(function: str, *arguments: object, seconds: float = 0, last: bool = False) -> Any:
    """Result of a function in a worker; arguments and exceptions as in `Worker.call`.

    Args:
        function, arguments, seconds: as there.
        last: the worker ends after it, since the call may damage its memory.

    Raises:
        CompileError: no process can be started.
    """
    worker = _take()
    try:
        return worker.call(function, arguments, seconds)
    finally:
        if not worker.is_closed:
            if not last and worker.calls < _MOST_CALLS and len(_IDLE) < _MOST_IDLE:
                _IDLE.append(worker)
            else:
                worker.close()


def _take() -> Worker:
    while _IDLE:
        try:
            worker = _IDLE.pop()
        except IndexError:  # another thread was faster
            break
        if worker.is_alive:
            return worker
        worker.close()
    try:
        return Worker()
    except OSError as error:
        raise CompileError(
            f"cannot start the process that compiles, sys.executable is {sys.executable!r}: {error}; "
            f"config.compile_isolated = False compiles in this one"
        ) from None


def _forget_in_child() -> None:
    """A child of a fork has workers of its own; those of its parent must not stay alive because of it."""
    _IDLE.clear()
    for worker in list(_ALL):
        worker._process.returncode = 0  # not a child of this process
        worker.close()


os.register_at_fork(after_in_child=_forget_in_child)


def serve(descriptor: int) -> None:
    """The worker's main loop: answers calls until the other side is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    connection = Connection(descriptor)
    while True:
        try:
            name, arguments, seconds = connection.recv()
        except (EOFError, ConnectionError):
            return
        if seconds:
            faulthandler.dump_traceback_later(seconds + _GRACE_SECONDS, exit=True)
        answer = _answer(name, arguments)
        faulthandler.cancel_dump_traceback_later()
        try:
            connection.send_bytes(answer)
        except ConnectionError:
            return


def _answer(name: str, arguments: tuple[object, ...]) -> bytes:
    """The pickled answer to a call."""
    module, _, function = name.partition(":")
    try:
        value = getattr(importlib.import_module(module), function)(*arguments)
        return pickle.dumps((False, value))
    except Exception as error:
        try:
            data = pickle.dumps((True, error))
            pickle.loads(data)  # some exceptions cannot be made again
            return data
        except Exception:
            return pickle.dumps((True, CompileError(f"{type(error).__name__}: {error}")))

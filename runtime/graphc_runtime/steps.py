# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines on stderr that say how far a compilation is that takes long: ``config.compile_progress``.

Work asks for a `watcher`, and tells it where a part begins.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds after which compilations are shown on a terminal, where one line is written over and over.
PATIENCE = 2.0
# Seconds between two lines: on a terminal, and elsewhere, where the first comes after as many.
OFTEN, SELDOM = 0.2, 5.0
# Seconds after which is said what takes long.
ADVICE = 5.0

# Takes what begins, such as a pass, its number, from 1 on, and how many there are, as far as is known.
Watcher = Callable[[tuple[str, int, int]], object]
_watcher: ContextVar[Watcher | None] = ContextVar("graphc_watcher", default=None)


def watcher() -> Watcher | None:
    """Who watches the work of this thread, if anybody does; to be told of each step that begins."""
    return _watcher.get()


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """In the block, steps of this thread, and of work that it waits for, are told to a watcher."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def shown(name: str, choice: str, advice: Callable[[], str] = str) -> Iterator[None]:
    """In the block, lines on stderr say which step runs, after some patience.

    Args:
        name: what is compiled.
        choice: ``"on"``, ``"auto"``: elsewhere than on terminals with more patience, or ``"off"``.
        advice: what is said once, after five seconds, of what is compiled; asked for then, in another thread.
    """
    terminal = bool(getattr(sys.stderr, "isatty", bool)())
    if sys.stderr is None or choice == "off":
        yield
        return
    lines = _Lines(name, terminal, PATIENCE if terminal or choice == "on" else SELDOM, advice)
    with watched(lines.steps.append):
        try:
            yield
        finally:
            lines.end()


class _Lines:
    """The written lines. A thread writes: the one at work is inside a pass, or in LLVM."""

    def __init__(self, name: str, terminal: bool, patience: float, advice: Callable[[], str]) -> None:
        self._name, self._terminal, self._patience, self._advice = name, terminal, patience, advice
        self._start = time.monotonic()
        self.steps: deque[tuple[str, int, int]] = deque(maxlen=1)
        self._written = False
        # Locks: a `threading.Thread` with an event takes three times as long as all else of a short block.
        self._ended, self._left = allocate_lock(), allocate_lock()
        self._ended.acquire()
        self._left.acquire()
        self._process = os.getpid()
        try:
            start_new_thread(self._run, ())
        except RuntimeError:  # no more threads are to be had, or the interpreter ends
            self._left.release()

    def end(self) -> None:
        """Ends the thread, and the line on a terminal."""
        self._ended.release()
        if self._process == os.getpid():  # a child of a fork has no other threads
            self._left.acquire()
        if self._written:
            self._write("done", "\n")

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self._left.release()

    def _watch(self) -> None:
        wait, is_advised = self._patience, False
        while not self._ended.acquire(timeout=wait):
            self._write("{} ({} of {})".format(*self.steps[0]) if self.steps else "begins", "")
            if not is_advised and time.monotonic() - self._start >= ADVICE:
                is_advised = True
                text = self._advice()
                if text:
                    self._put(("\n" if self._terminal else "") + f"compiling {self._name}: {text}\n")
            wait = OFTEN if self._terminal else SELDOM

    def _write(self, what: str, end: str) -> None:
        line = f"compiling {self._name}: {what}, {time.monotonic() - self._start:.1f} s"
        self._put(f"\r{line[:100]:<100}{end}" if self._terminal else f"{line}\n")

    def _put(self, text: str) -> None:
        stream = sys.stderr
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, AttributeError):  # a broken stderr must not end a compilation
            return
        self._written = True

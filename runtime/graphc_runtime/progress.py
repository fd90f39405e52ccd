# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines on stderr that say how far a long loop is: ``scan(..., progress=True)``."""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
import time
from typing import Any

# Loops that end sooner show nothing.
_PATIENCE = 0.2
_WIDTH = 30
# The bound of loops that have none.
_UNBOUNDED = 1 << 48
# Percent between two lines where stderr is no terminal, on which one line is written over and over.
_COARSE = 10


class _Loop:
    """One loop that is running."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.shown = -1

    def line(self, name: str, done: int, total: int) -> str:
        seconds = time.monotonic() - self.start
        if total >= _UNBOUNDED:
            return f"{name} {done} iterations, {seconds:.1f} s"
        left = seconds * (total - done) / done if done else 0.0
        bar = "#" * (_WIDTH * done // total if total else _WIDTH)
        return f"{name} [{bar:<{_WIDTH}}] {done}/{total}, {seconds:.1f} s, {left:.1f} s left"


_LOOPS: dict[tuple[int, str], _Loop] = {}


def report(name: str, done: int, total: int) -> None:
    """Notes that ``done`` of ``total`` iterations of a loop have run; writes a line now and then.

    Args:
        name: of the loop; loops of one name in one thread share a line.
        done: iterations so far. With ``done >= total`` the loop has ended.
        total: iterations in all, or the most there can be.
    """
    key = (threading.get_ident(), name)
    ended = done >= total
    loop = _LOOPS.get(key)
    if loop is None:
        if ended:
            return
        loop = _LOOPS[key] = _Loop()
    percent = 100 * done // total if total else 100
    if percent < loop.shown:
        # An exception has ended the loop that was there.
        loop = _LOOPS[key] = _Loop()
    if ended:
        del _LOOPS[key]
    elif time.monotonic() - loop.start < _PATIENCE:
        return
    stream: Any = sys.stderr
    if stream is None or (ended and loop.shown < 0):
        return
    terminal = bool(getattr(stream, "isatty", bool)())
    if not ended and loop.shown >= 0 and percent < loop.shown + (1 if terminal else _COARSE):
        return
    loop.shown = percent
    line = loop.line(name, done, total) if not ended or total < _UNBOUNDED else f"{name} has ended"
    stream.write(f"\r{line:<78}" + ("\n" if ended else "") if terminal else f"{line}\n")
    stream.flush()


def forget() -> None:
    """Drops the loops of this thread, which an exception has ended."""
    thread = threading.get_ident()
    for key in [key for key in _LOOPS if key[0] == thread]:
        del _LOOPS[key]


def _from_code(name: bytes, done: int, total: int) -> None:
    try:
        report(name.decode(errors="replace"), done, total)
    except KeyboardInterrupt:
        # An exception cannot leave from here: the next poll finds the signal again.
        _thread.interrupt_main()
    except Exception:  # a broken stderr must not end a computation
        return


CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(_from_code)

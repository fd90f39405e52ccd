# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts and progress of machine code: Ctrl-C, and how far a loop is.

Python runs signal handlers between bytecodes of the main thread, so that a loop in machine code would go on
until its end. Such loops therefore call `graphc_poll` now and then (`graphc.library.interrupts`), which asks
CPython every `INTERVAL` seconds, with the GIL, to run handlers that are due. If one raises, the exception is
kept in the call's context and the kernel returns `INTERRUPTED`.

What the code needs is in a table of eleven words that contexts point at; a null pointer, or a call outside of
the main thread, leaves handlers alone, so that objects without Python work too. In words:

    0  identity of the main thread        4  PyGILState_Ensure
    1  PyThread_get_thread_ident          5  PyErr_CheckSignals
    2  clock_gettime                      6  PyErr_Fetch
    3  the clock, and INTERVAL in ns << 8 7  PyGILState_Release
    8  graphc_runtime.progress.CALLBACK      9, 10  PyEval_SaveThread, PyEval_RestoreThread

A call that keeps the GIL lets other threads run at each look, unless it may write to the value of a shared
variable, which no other thread must see then.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from typing import Any

from graphc_runtime import progress, symbols

# Status of a kernel that an exception of a signal handler has ended.
INTERRUPTED = -3
# Seconds between two looks. Waiting for a busy GIL takes up to 5 ms, a tenth of this.
INTERVAL = 0.05
# 64-bit words of a call's context: arena, given, expected, table; then fuel, step, last poll and last look,
# of which the first three hold the exception (type, value, traceback) in the end; and what is done with the
# GIL: released, shared with other threads now and then, or kept. The last one is the caller's floating-point
# environment, for kernels that compute in another one: handlers run in the caller's.
CONTEXT_WORDS = 10
HOOKS_WORD, FUEL_WORD, GIL_WORD, ENVIRONMENT_WORD = 3, 4, 8, 9
GIL_RELEASED, GIL_SHARED, GIL_KEPT = 0, 1, 2
# Iterations before the first poll of a call with little data; calls with much of it poll at once.
FUEL = 64

SYMBOL = "graphc_hooks"

_TABLE = (ctypes.c_uint64 * 11)()


def hooks() -> int:
    """Address of the table; 0 where this interpreter does not have what it needs."""
    return ctypes.addressof(_TABLE) if _TABLE[1] else 0


def raise_kept(context: Any) -> None:
    """Raises the exception that an interrupted kernel has left in its context (an array of words)."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    kept = [context[FUEL_WORD + i] or None for i in range(3)]
    for i in range(3):
        context[FUEL_WORD + i] = 0
    progress.forget()
    restore(*kept)


def _fill() -> None:
    clock = symbols.optional("clock_gettime")
    found = [
        symbols.optional(name)
        for name in (
            "PyThread_get_thread_ident",
            "PyGILState_Ensure",
            "PyErr_CheckSignals",
            "PyErr_Fetch",
            "PyGILState_Release",
            "PyEval_SaveThread",
            "PyEval_RestoreThread",
        )
    ]
    known = getattr(time, "CLOCK_MONOTONIC", None)
    functions = [address for address in found if address is not None]
    callback = ctypes.cast(progress.CALLBACK, ctypes.c_void_p).value
    if clock is None or known is None or callback is None or len(functions) < len(found):
        return
    if sys.implementation.name != "cpython":
        return
    ident, ensure, check, fetch, release, save, restore = functions
    timing = int(known) | int(INTERVAL * 1e9) << 8
    _TABLE[:] = [0, ident, clock, timing, ensure, check, fetch, release, callback, save, restore]
    _set_main_thread()


def _set_main_thread() -> None:
    _TABLE[0] = threading.main_thread().ident or 0


_fill()
symbols.register(SYMBOL, ctypes.addressof(_TABLE), _TABLE)
if hasattr(os, "register_at_fork"):
    # The thread that forks is the child's main thread.
    os.register_at_fork(after_in_child=_set_main_thread)

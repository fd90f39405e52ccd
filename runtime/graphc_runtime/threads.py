# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The threads that kernels run on: how many, and the pool's code.

The pool is machine code of its own (`graphc.library.pool` has the source), loaded when the first object
that splits work is loaded, and kept until the process ends. Its workers start when work is split for the
first time.
"""

from __future__ import annotations

import _thread
import base64
import ctypes
import os
import signal
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphc_runtime import elf, wide_integers
from graphc_runtime.libraries import library_of
from graphc_runtime.loader import host_machine, load_object
from graphc_runtime.pool_code import OBJECT
from graphc_runtime.symbols import finder, resolve
from graphc_runtime.worker import idle_workers

_MOST = 1024


def usable_cores() -> int:
    """The number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_alone() -> bool:
    """True if no other thread that Python started has code to run.

    The count is one number: a walk over the states of threads, which come and go, can meet one that is freed.
    """
    return _thread._count() <= idle_workers()


def parse_threads(value: Any) -> int:
    """A number of threads.

    Raises:
        ValueError: not a whole number from 1 to 1024.
    """
    number = int(value)
    if isinstance(value, bool | float) or not 1 <= number <= _MOST:
        raise ValueError(f"expected a number of threads from 1 to {_MOST}, got {value!r}")
    return number


class _State:
    """The loaded pool, and what is set before it is loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.local = threading.local()
        self.default: int | None = None
        self.pool: Any = None
        self.key = 0


_state = _State()


def default_threads() -> int:
    """The number of threads where none is set for the calling thread."""
    if _state.default is None:
        given = os.environ.get("GRAPHC_THREADS") or "0"
        try:
            _state.default = parse_threads(given) if given != "0" else usable_cores()
        except ValueError as error:
            raise ValueError(f"GRAPHC_THREADS: {error}") from None
    return _state.default


def set_default_threads(number: int) -> None:
    """Sets how many threads kernels may use, in all threads that have no number of their own.

    Args:
        number: 0 stands for the cores that this process may use.

    Raises:
        ValueError: not a number from 0 to 1024.
    """
    _state.default = parse_threads(number) if number else usable_cores()
    if _state.pool is not None:
        _word("graphc_thread_default").value = _state.default


def get_threads() -> int:
    """The number of threads that kernels called by this thread may use."""
    return getattr(_state.local, "number", 0) or default_threads()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Lets kernels that this thread calls inside a ``with`` block use at most `number` threads.

    Other threads are not affected; `config.threads` is what they use. Results do not depend on the number.

    Args:
        number: from 1 (all work stays on the calling thread) to 1024.

    Raises:
        ValueError: another number.

    Examples:
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], x.sum())
        >>> with graphc.threads(1):
        ...     result = f([1.0, 2.0])
        >>> float(result)
        3.0
    """
    wanted = parse_threads(number)
    before = getattr(_state.local, "number", 0)
    # Machine code finds the number through the pool's key.
    address("graphc_thread_count")
    _set_own(wanted)
    try:
        yield
    finally:
        _set_own(before)


def workers() -> int:
    """Number of workers that the pool has started in this process."""
    return 0 if _state.pool is None else int(_word("graphc_pool_workers").value)


def address(symbol: str) -> int:
    """Address of a function of the pool; loads the pool.

    Raises:
        LoadError: the code cannot be loaded here.
    """
    with _state.lock:
        if _state.pool is None:
            _load()
    if symbol == "graphc_share_blas":
        _find_blas()
    return int(_state.pool.address(symbol))


def _load() -> None:
    machine = "aarch64" if host_machine() == elf.AARCH64 else "x86_64"
    pool = load_object(zlib.decompress(base64.b64decode(OBJECT[machine])), resolve)
    # Workers run this code until the process ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    key = ctypes.c_ulong(0)
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None):
        raise MemoryError("the system has no key for thread-local data left")
    _state.key = key.value
    _state.pool = pool
    _word("graphc_thread_key").value = key.value
    _word("graphc_thread_default").value = default_threads()
    _word("graphc_pool_setmask").value = int(signal.SIG_SETMASK)
    _reset()
    os.register_at_fork(after_in_child=_after_fork)
    _set_own(getattr(_state.local, "number", 0))


def _find_blas() -> None:
    """Tells the pool how to set the number of threads of the BLAS that kernels call, if that is OpenBLAS."""
    # Code that adapts integers is in no library.
    library = library_of(resolve("blas_dgemm")) or wide_integers.library()
    for prefix, suffix in (("scipy_openblas", ""), ("openblas", ""), ("scipy_openblas", "64_")):
        if library is not None and hasattr(library, f"{prefix}_set_num_threads{suffix}"):
            for name in ("get", "set"):
                function = getattr(library, f"{prefix}_{name}_num_threads{suffix}")
                _word(f"graphc_blas_{name}").value = ctypes.cast(function, ctypes.c_void_p).value
            return


def _word(symbol: str) -> Any:
    return ctypes.c_int64.from_address(_state.pool.address(symbol))


def _reset() -> None:
    """Forgets workers: before there are any, and in the child of a fork, where only this thread lives on."""
    ctypes.CFUNCTYPE(None)(_state.pool.address("graphc_pool_reset"))()


def _set_own(number: int) -> None:
    """Sets the number of the calling thread; 0 for the default."""
    _state.local.number = number
    if _state.pool is not None:
        ctypes.CDLL(None).pthread_setspecific(ctypes.c_ulong(_state.key), ctypes.c_void_p(number))


def _after_fork() -> None:
    _state.lock = threading.Lock()
    _reset()


finder("graphc_share", address)

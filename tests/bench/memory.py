# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much memory a call needs beyond its arguments and results.

Linux counts the pages that a process holds, and their peak, which can be reset. A call's peak less what was
held before and less its results is what it allocated in between. Blocks from 16 KiB on are made to come from
the system and to go back there when they are freed: otherwise the call would reuse, unseen, what an earlier
one has freed. That slows allocation down, so memory is measured after the times. graphc's functions are
compiled again so as to keep no workspace for the next call.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRECISION = 250_000  # bytes: 32 pages for each of two processors
MMAP_THRESHOLD = -3  # glibc's M_MMAP_THRESHOLD
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _held(what: str) -> int:
    match = re.search(rf"^{what}:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match is not None
    return 1024 * int(match[1])


def _size(result: Any) -> int:
    if isinstance(result, list | tuple):
        return sum(_size(each) for each in result)
    return int(result.nbytes)


def extra(call: Callable[[], Any], repeats: int = 9) -> int | None:
    """The bytes, or None where the system does not tell. Linux counts in batches, to about `PRECISION`.

    The median of some calls: a library that frees in the background may do so after the count has begun.
    """
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(MMAP_THRESHOLD, 16 * 1024)
        _RESET.write_text("5")
    except (AttributeError, OSError):
        return None
    found = []
    call()
    for _ in range(repeats):
        gc.collect()
        libc.malloc_trim(0)
        _RESET.write_text("5")
        before = _held("VmRSS")
        result = call()
        found.append(_held("VmHWM") - before - _size(result))
        del result
    return max(0, sorted(found)[repeats // 2])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a call, on a machine that does other things too."""

from __future__ import annotations

import time
import timeit
from typing import Any

BATCH = 0.002  # seconds: long against the clock, short against the turns of other work on the same core


def best_time(statement: str, names: dict[str, Any], seconds: float) -> float:
    """The shortest time of one call, in seconds, over batches that take `seconds` together."""
    timer = timeit.Timer(statement, globals=names)
    number = 1
    while (took := timer.timeit(number)) < BATCH / 2:
        number = max(2 * number, min(100 * number, int(number * BATCH / max(took, 1e-9))))
    best, deadline = took / number, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        best = min(best, timer.timeit(number) / number)
    return best

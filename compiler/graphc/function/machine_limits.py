# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of this machine: measured once, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np

from graphc.config import config
from graphc_runtime.cache import disk_cache
from graphc_runtime.record import record
from graphc_runtime.threads import usable_cores

# Rows of the matrices whose product is timed, elements that each thread copies, and seconds for each figure.
_ROWS, _ELEMENTS, _SECONDS = 768, 4_000_000, 0.25


@record(frozen=True)
class MachineLimits:
    """Rates that nothing on this machine exceeds for long.

    Attributes:
        float64, float32: floating-point operations a second of a matrix product by NumPy's BLAS.
        bandwidth: bytes read and written a second by a copy of arrays larger than the caches, on all cores.
        cores: that this process may use.
    """

    float64: float
    float32: float
    bandwidth: float
    cores: int

    def rate(self, element: str) -> float:
        """The rate of arithmetic on `f64` or `f32`."""
        return self.float32 if element == "f32" else self.float64

    def largest(self, other: MachineLimits) -> MachineLimits:
        """Of each figure the larger one."""
        return MachineLimits(
            max(self.float64, other.float64),
            max(self.float32, other.float32),
            max(self.bandwidth, other.bandwidth),
            self.cores,
        )

    def __str__(self) -> str:
        rates = f"{self.float64 / 1e9:.1f} GFLOP/s in float64, {self.float32 / 1e9:.1f} in float32"
        return f"{rates}, copies {self.bandwidth / 1e9:.1f} GB/s, {self.cores} cores"


def machine_limits(*, renew: bool = False) -> MachineLimits:
    """The limits of this machine, out of the cache folder if they are there; measuring takes a second.

    Args:
        renew: measure again, and keep the larger figures: what was measured while other programs ran is low.
    """
    if renew:
        _limits.cache_clear()
    return _limits(config.cache_dir, renew)


@cache
def _limits(folder: str, renew: bool = False) -> MachineLimits:
    key = hashlib.sha256(f"machine limits 1;{_processor()};{usable_cores()}".encode()).hexdigest()
    disk = disk_cache(folder, config.cache_size_mb) if folder else None
    stored = None if disk is None else disk.get(key)
    before = None if stored is None else MachineLimits(**json.loads(stored))
    if before is not None and not renew:
        return before
    found = measure() if before is None else measure().largest(before)
    if disk is not None:
        disk.put(key, json.dumps(asdict(found)).encode())
    return found


def measure() -> MachineLimits:
    """Measures now; the best of many repetitions, since other programs run, too."""
    cores = usable_cores()
    rates = [2 * _ROWS**3 / _shortest(_product(dtype)) for dtype in (np.float64, np.float32)]
    with ThreadPoolExecutor(cores) as pool:
        pairs = [(np.ones(_ELEMENTS), np.ones(_ELEMENTS)) for _ in range(cores)]

        def copy() -> None:
            list(pool.map(lambda pair: np.copyto(*pair), pairs))

        moved = 16 * _ELEMENTS * cores
        return MachineLimits(rates[0], rates[1], moved / _shortest(copy), cores)


def _product(dtype: type[np.floating]) -> Callable[[], object]:
    a = np.full((_ROWS, _ROWS), 0.5, dtype)
    out = np.empty_like(a)
    return lambda: np.matmul(a, a, out=out)


def _shortest(call: Callable[[], object]) -> float:
    call()
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{platform.machine()} {next(named, platform.processor())}"

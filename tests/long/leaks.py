# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that stays after functions are compiled, called and dropped: python tests/long/leaks.py.

Anonymous memory of the process after `malloc_trim`, before and after many cycles, of which the first do not
count: they fill caches. Exits with 1 where a cycle leaves more than its limit.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import graphc
import graphc.tensor as pt

# Bytes a cycle. MLIR keeps types and attributes of a context, and LLVM some of what it has made.
LIMIT_COMPILE, LIMIT_CALL, LIMIT_FAILED = 10_000, 8, 64


def held() -> int:
    """Bytes of anonymous memory that the process holds and uses."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    fields = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").split()
    return 1024 * int(fields[fields.index("Anonymous:") + 1])


def growth(cycle: Callable[[int], object], cycles: int, warm: int) -> float:
    """Bytes that a cycle leaves, on average."""
    for number in range(warm):
        cycle(number)
    before = held()
    for number in range(warm, warm + cycles):
        cycle(number)
    return (held() - before) / cycles


def compiles(number: int) -> None:
    """Compiles and calls a function that no other cycle has."""
    x = pt.vector("x")
    y = graphc.scan(
        lambda row, state: state * 0.5 + pt.exp(row) * (1.5 + number),
        [x],
        outputs_info=[0.0],
        return_updates=False,
    )
    f = graphc.function([x], y[-1])
    f(np.ones(5))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints bytes a cycle; 1 if there are too many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=150)
    options = parser.parse_args(argv)
    x = pt.vector("x")
    f = graphc.function([x], [pt.exp(x).sum(), x[:-1] * 2])
    good, bad = np.ones(1000), np.ones((2, 2))

    def fails(number: int) -> None:
        try:
            f(bad)
        except TypeError:
            return
        raise AssertionError("a call with a matrix must fail")

    with graphc.config.change_flags(cache_dir=""):
        found = {
            "compile": (growth(compiles, options.cycles, options.warm), LIMIT_COMPILE),
            "call": (growth(lambda number: f(good), 100 * options.cycles, 100 * options.warm), LIMIT_CALL),
            "failed call": (growth(fails, 10 * options.cycles, 10 * options.warm), LIMIT_FAILED),
        }
    texts = [f"{bytes_:,.0f} bytes a {what} (at most {limit:,})" for what, (bytes_, limit) in found.items()]
    print("; ".join(texts))
    return int(any(bytes_ > limit for bytes_, limit in found.values()))


if __name__ == "__main__":
    sys.exit(main())

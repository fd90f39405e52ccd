# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of functions that were dropped: ``python tests/numeric/leak.py [CYCLES]``.

Compiles, calls and drops that many distinct functions (1,000 by default) without the disk cache, and as many
with it, and prints what the process has gained. It fails above `COMPILED` and `CACHED` bytes a function.
"""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import graphc
import graphc.tensor as pt
from graphc_runtime import loader

# Bytes that a dropped function may leave. A leaked object alone is 16 KiB, a module of MLIR or of LLVM a
# multiple of that.
CACHED, COMPILED = 4096, 10_000


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def mapped() -> Iterator[list[int]]:
    """Counts functions' code in memory: what was loaded in the block and is still there."""
    alive, original = [0], loader.LoadedObject.__init__

    def note(self: loader.LoadedObject, *args: Any) -> None:
        original(self, *args)
        if "graphc_run" not in self:
            return  # the thread pool, which stays
        alive[0] += 1
        weakref.finalize(self, lambda: alive.__setitem__(0, alive[0] - 1))

    loader.LoadedObject.__init__ = note  # type: ignore[method-assign]
    try:
        yield alive
    finally:
        loader.LoadedObject.__init__ = original  # type: ignore[method-assign]


def cycle(number: int) -> None:
    """Compiles and calls a function that differs from those of other numbers."""
    x = pt.dvector(f"x{number}")
    state = graphc.shared(np.zeros(3), f"state{number}")
    y = pt.exp(x) * (number + 0.5) + state
    f = graphc.function([x], [y, y.sum()], updates={state: state + x})
    f(np.ones(3))
    f([1, 2, 3])


def grown(cycles: int, warm_up: int = 30) -> float:
    """Bytes that a cycle leaves, on average; functions of the warm-up fill caches that are bounded."""
    for number in range(warm_up):
        cycle(-number - 1)
    gc.collect()
    before = resident()
    for number in range(cycles):
        cycle(number)
    gc.collect()
    return (resident() - before) / cycles


def main() -> int:
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    failed = False
    kinds = (("compiled", "", COMPILED), ("from the disk cache", graphc.config.cache_dir, CACHED))
    for name, folder, bound in kinds:
        with graphc.config.change_flags(cache_dir=folder), mapped() as alive:
            if folder:
                for number in range(-30, cycles):
                    cycle(number)
            left = grown(cycles)
            print(f"{name}: {left:.0f} bytes a function over {cycles} functions, {alive[0]} still mapped")
            failed = failed or left > bound or alive[0] > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

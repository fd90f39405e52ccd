# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a fresh process waits for: run as `cold.py LIBRARY WHAT`, prints one JSON object of seconds.

`WHAT` is `first_call` (compile and call `x + 1`), `deep` (300 operations and their gradient), one of the
loops `scan_ar1`, `scan_rnn`, `scan_garch`, or `scan_long`, which `libraries.py` describes. The import of the
library, and for graphc the loading of MLIR and LLVM, are timed apart. With the cache on, a second process
must neither compile nor load a compiler; `loaded` tells which of the compiler's libraries the process holds
at its end.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Time one library in this process."""
    name, what = sys.argv[1:3]
    times = {}

    def lap(label: str) -> None:
        nonlocal start
        now = time.perf_counter()
        times[label], start = now - start, time.perf_counter()

    start = time.perf_counter()
    import numpy.random  # noqa: F401 - what makes the data of loops; JAX loads it with itself

    lap("import_numpy")
    import libraries  # its own imports are the standard library's

    if name == "graphc":
        start = time.perf_counter()
        import graphc

        lap("import_graphc")
    library = libraries.load(name)
    lap("import")
    if name == "graphc" and not graphc.config.cache_dir:
        from graphc.backends.cpu.compiler import preload

        preload(has_scan=what.startswith("scan"))
        lap("load_compiler")
    found = getattr(library, what)()
    lap("first")
    if what == "scan_long":
        times |= found
    loaded = [module for module in ("torch_mlir", "mlir", "llvmlite", "scipy") if module in sys.modules]
    print(json.dumps({**times, "loaded": loaded}))


if __name__ == "__main__":
    main()

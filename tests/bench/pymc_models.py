# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Log densities and gradients of PyMC's models on graphc, numba and JAX: `make bench-pymc`.

`python tests/bench/pymc_models.py [--only MODEL ...] [--modes MODE ...] [--what cold calls]` needs an
environment that has graphc, PyMC, numba and JAX. Every model and mode has a process of its own:

- cold: nothing in any cache; the processor's time counts, so `--jobs` models are compiled at a time.
- calls: again in new processes, from the caches that the first have filled; then the functions of all modes
  are asked in turns, one process at a time, so that a busy moment hits all. The best time counts.

Results are kept in `results/pymc.json` after each model, so a run can be continued; a full run also writes
`docs/benchmarks_pymc.md`. All values are compared; a mode that differs from the others is an error.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import pymc_tables
import pymc_worker
from bytecode import compile_sources

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "results" / "pymc.json"
MODES = ("GRAPHC", "GRAPHC_REWRITTEN", "GRAPHC_GRAD", "NUMBA", "JAX")
ROUNDS, SECONDS = 4, 0.1

Row = dict[str, dict[str, Any]]
# One process imports everything, those that compile are copies of it.
FORKS = multiprocessing.get_context("forkserver")


class Process:
    """A model in one mode, compiled in a process of its own with its caches in `caches`."""

    def __init__(self, model: str, mode: str, caches: Path) -> None:
        self._pipe, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=pymc_worker.serve, args=(theirs, model, mode, caches))
        self._process.start()
        theirs.close()
        try:
            self.hello: dict[str, Any] = self._pipe.recv()
        except EOFError:
            self._process.join()
            self.hello = {"error": f"exit {self._process.exitcode}"}

    def best(self) -> float:
        """The best time of a call in seconds."""
        self._pipe.send(SECONDS)
        return float(self._pipe.recv())

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._pipe.send(None)
        self._process.join()


def compile_times(model: str, modes: list[str], caches: Path, row: Row) -> None:
    """Compiles in each mode with nothing in any cache."""
    for mode in modes:
        own = caches / model / mode
        shutil.rmtree(own, ignore_errors=True)
        with Process(model, mode, own) as cold:
            row[mode] = cold.hello


def call_times(model: str, modes: list[str], caches: Path, row: Row) -> None:
    """Compiles again from the caches, and asks all modes for the best time of a call, in turns."""
    with ExitStack() as stack:
        workers = {
            mode: stack.enter_context(Process(model, mode, caches / model / mode))
            for mode in modes
            if "error" not in row.get(mode, {})
        }
        for mode, worker in workers.items():
            found = row.setdefault(mode, {})
            if "error" in worker.hello:
                found |= worker.hello
            else:
                found |= {
                    "cached_cpu": worker.hello["cpu"],
                    "cached_wall": worker.hello["wall"],
                    "best": np.inf,
                }
        for _ in range(ROUNDS):
            for mode, worker in workers.items():
                if "error" not in worker.hello:
                    row[mode]["best"] = min(worker.best(), row[mode]["best"])


def check(row: Row) -> None:
    """Marks a mode whose values differ from the median of all."""
    known = {mode: found["values"] for mode, found in row.items() if found.get("values")}
    if not known:
        return
    middle = np.median(list(known.values()), axis=0)
    scale = np.max(np.abs(middle), where=np.isfinite(middle), initial=1e-8)
    for mode, values in known.items():
        if not np.allclose(values, middle, rtol=1e-6, atol=1e-9 * scale, equal_nan=True):
            row[mode]["error"] = "values differ from the other modes'"


def main() -> None:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="MODEL")
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--what", nargs="*", default=["cold", "calls"], choices=["cold", "calls"])
    parser.add_argument("--jobs", type=int, default=2, help="models compiled at a time")
    parser.add_argument("--caches", type=Path, help="where compiled functions are kept between runs")
    parser.add_argument("--write", action="store_true", help="write the page from what is kept")
    options = parser.parse_args()
    kept: dict[str, Row] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    paths = [str(HERE), str(ROOT / "tests" / "interop"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # These modes need no C++ compiler, and looking for it would count.
    os.environ["PYTENSOR_FLAGS"] = "cxx="
    compile_sources()
    multiprocessing.set_forkserver_preload(pymc_worker.IMPORTS)
    sys.path[:0] = paths[:2]
    from models import MODELS

    names = options.only or ([] if options.write else list(MODELS))

    def step(model: str, what: Callable[[str, list[str], Path, Row], None]) -> None:
        what(model, options.modes, caches, kept.setdefault(model, {}))
        check(kept[model])
        print(pymc_tables.progress(model, kept[model]), flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({model: kept[model] for model in sorted(kept)}))

    with tempfile.TemporaryDirectory() as scratch, ThreadPool(options.jobs) as pool:
        caches = options.caches or Path(scratch)
        if "cold" in options.what:
            pool.map(lambda model: step(model, compile_times), names, chunksize=1)
        if "calls" in options.what:
            for model in names:
                step(model, call_times)
    if options.write or not options.only:
        (ROOT / "docs" / "benchmarks_pymc.md").write_text(pymc_tables.page(kept))


if __name__ == "__main__":
    main()

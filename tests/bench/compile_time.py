# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How compile time grows with the graph: `python tests/bench/compile_time.py` (`make bench-compile`).

The graphs are random: element-wise functions of vectors, and vectors scaled by the sum of another one. Each
is compiled in a fresh process, the compiler loaded, the disk cache off: 100 to 30,000 operations, then 1,000
with their gradient, cold and from the cache; then graphs of one form, at sizes that double (`SHAPES`). A line
has seconds, processor seconds (of all threads) and the peak memory of its process. The exponent compares the
processor time of a line with that of the one before it; 1 is proportional, n log n is about 1.1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bytecode import compile_sources

SIZES = (100, 300, 1000, 3000, 10_000, 30_000)
# Goals: seconds of 1,000 operations with gradient, cold and from the cache; bytes of the largest graph.
COLD, CACHED, PEAK = 3.0, 0.1, 500_000_000
LARGEST_EXPONENT = 1.15
_RECENT = 40  # operands are among that many results before


def random_graph(size: int, gradient: bool) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of a graph of `size` operations on vectors."""
    import numpy as np

    import graphc
    import graphc.tensor as pt

    rng = np.random.default_rng(0)
    inputs = [pt.dvector(f"x{i}") for i in range(8)]
    functions = [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a - b,
        lambda a, b: a / (1 + b * b),
        lambda a, b: a * b.sum(),
        pt.maximum,
        lambda a, b: pt.tanh(a),
        lambda a, b: pt.exp(-a * a),
    ]
    pool = list(inputs)
    while len(pool) < size:
        first, second = rng.integers(max(0, len(pool) - _RECENT), len(pool), 2)
        pool.append(functions[rng.integers(len(functions))](pool[first], pool[second]))
    cost = sum((x.sum() for x in [*pool[-20:], *inputs]), 0.0)
    return inputs, [cost, *(graphc.grad(cost, inputs) if gradient else ())]


def chain_of_updates(size: int) -> tuple[list[Any], list[Any]]:
    """`set_subtensor` of one element after the other."""
    import graphc.tensor as pt

    y = x = pt.vector("x")
    for i in range(size):
        y = pt.set_subtensor(y[i], float(i))
    return [x], [y]


def join_of_inputs(size: int) -> tuple[list[Any], list[Any]]:
    """`concatenate` of as many vectors."""
    import graphc.tensor as pt

    vectors = [pt.vector(f"x{i}") for i in range(size)]
    return vectors, [pt.concatenate([2 * v + 1 for v in vectors])]


def many_inputs(size: int) -> tuple[list[Any], list[Any]]:
    """A sum of as many vectors."""
    import graphc.tensor as pt

    vectors = [pt.vector(f"x{i}") for i in range(size)]
    return vectors, [sum(vectors[1:], vectors[0])]


def conditionals(size: int) -> tuple[list[Any], list[Any]]:
    """`ifelse` between vectors, each of the result of the one before."""
    import graphc
    import graphc.tensor as pt

    y = x = pt.vector("x")
    for i in range(size):
        y = graphc.ifelse(x[0] > i, pt.exp(y), y + 1.0)
    return [x], [y]


def steps(size: int) -> tuple[list[Any], list[Any]]:
    """Two operations a step, which are two loops in fast_compile."""
    import graphc.tensor as pt

    y = x = pt.vector("x")
    for _ in range(size):
        y = pt.tanh(y) + x
    return [x], [y]


# Graphs of one form by name, with their sizes.
SHAPES = {
    "chain_of_updates": (chain_of_updates, (100, 200, 400)),
    "join_of_inputs": (join_of_inputs, (250, 500, 1000)),
    "many_inputs": (many_inputs, (75, 150, 300)),
    "conditionals": (conditionals, (25, 50, 100)),
    "steps_of_fast_compile": (steps, (200, 400, 800)),
}


def measure(size: int, gradient: bool, shape: str = "") -> dict[str, Any]:
    """Time of one compilation in this process, and the memory that the process has needed."""
    import graphc

    if not graphc.config.cache_dir:
        from graphc.backends.cpu.compiler import preload

        preload()
    inputs, outputs = SHAPES[shape][0](size) if shape else random_graph(size, gradient)
    start, used = time.perf_counter(), time.process_time()
    mode = "fast_compile" if shape.endswith("fast_compile") else "fast_run"
    f = graphc.function(inputs, outputs, mode=mode)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    found = {"seconds": seconds, "used": used, "bytes": peak}
    return {**found, "phases": f.report.phases, "cache": f.report.cache}


def fresh(size: int, gradient: bool, cache: str, repeats: int, shape: str = "") -> dict[str, Any]:
    """The fastest of several processes."""
    command = [sys.executable, __file__, "--one", str(size), *(["--gradient"] if gradient else [])]
    command += ["--shape", shape] if shape else []
    environment = {**os.environ, "GRAPHC_CACHE_DIR": cache}
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    best: dict[str, Any] = min(runs, key=lambda run: run["used"])
    return best


def _row(title: str, found: dict[str, Any], goal: float | None = None, note: str = "") -> dict[str, Any]:
    met = None if goal is None else found["seconds"] <= goal
    verdict = "" if met is None else f"goal {goal} s {'met' if met else 'missed'}"
    print(
        f"{title:<38} {found['seconds']:8.3f} s {found['used']:8.3f} s used"
        f" {found['bytes'] / 1e6:7.0f} MB  {note}{verdict}",
        flush=True,
    )
    return {"title": title, "goal": goal, "met": met, **found}


def curve(repeats: int, shape: str = "") -> list[dict[str, Any]]:
    """One line for each size."""
    rows: list[dict[str, Any]] = []
    before: tuple[int, float] | None = None
    for size in SHAPES[shape][1] if shape else SIZES:
        found = fresh(size, False, "", repeats, shape)
        note = ""
        if before is not None:
            found["exponent"] = math.log(found["used"] / before[1]) / math.log(size / before[0])
            note = f"exponent {found['exponent']:.2f}"
        rows.append(_row(f"{size} {shape.replace('_', ' ') or 'operations'}", found, note=note))
        before = size, found["used"]
    return rows


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", type=int, help="measure a graph of this size in this process")
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--shape", choices=SHAPES, default="", help="of that graph")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, default=Path("results/compile_time.json"))
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.gradient, arguments.shape)))
        return 0
    compile_sources()
    rows = curve(arguments.repeats)
    peak, exponent = rows[-1]["bytes"], rows[-1]["exponent"]
    rows.append(_row("1000 operations with gradient", fresh(1000, True, "", arguments.repeats), COLD))
    with tempfile.TemporaryDirectory() as cache:
        fresh(1000, True, cache, 1)
        found = fresh(1000, True, cache, arguments.repeats + 1)
    rows.append(_row("1000 with gradient, from the cache", found, CACHED))
    for shape in SHAPES:
        rows += curve(arguments.repeats, shape)
    print(f"peak memory {peak / 1e6:.0f} MB, goal {PEAK / 1e6:.0f}; ", end="")
    print(f"last exponent {exponent:.2f}, goal {LARGEST_EXPONENT}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

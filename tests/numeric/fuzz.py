# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A long run over random graphs, each named by its seed.

    python tests/numeric/fuzz.py --minutes 10            run until the time is over, print every failure
    python tests/numeric/fuzz.py --seed 1234             run one graph and show it

`make fuzz` runs the same graphs through hypothesis, which also shrinks what fails.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("compiler", "dialects", "runtime", "tools", "tests/numeric")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to run")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--seed", type=int, help="run this seed only, and print its graph")
    parser.add_argument("--steps", type=int, default=14, help="largest number of steps of a graph")
    parser.add_argument(
        "--mode", action="append", help="modes to compare with the reference (default fast_run)"
    )
    parser.add_argument("--max-failures", type=int, default=10, help="stop after so many")
    return parser.parse_args()


def run_seed(seed: int, steps: int, modes: list[str]) -> str | None:
    """The error of a seed's graph, or None."""
    from comparing import check
    from graphs import Choices, build

    graph = None
    try:
        graph = build(Choices.seeded(seed), max_steps=steps)
        for mode in modes:
            check(graph, mode)
    except Exception:
        shown = "" if graph is None else f"{graph}\n"
        return f"seed {seed} with --steps {steps}\n{shown}{traceback.format_exc()}"
    return None


def main() -> int:
    """Run; the exit status is 1 when a graph failed."""
    options = arguments()
    modes = options.mode or ["fast_run"]
    if options.seed is not None:
        from graphs import Choices, build

        print(build(Choices.seeded(options.seed), max_steps=options.steps))
        error = run_seed(options.seed, options.steps, modes)
        print(error or "agrees")
        return int(error is not None)
    seed, failures, end = options.start, 0, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end and failures < options.max_failures:
        error = run_seed(seed, options.steps, modes)
        if error is not None:
            failures += 1
            print(error, flush=True)
        seed += 1
        if (seed - options.start) % 100 == 0:
            print(f"{seed - options.start} graphs, {failures} failures", file=sys.stderr, flush=True)
    print(f"{seed - options.start} graphs from seed {options.start}, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

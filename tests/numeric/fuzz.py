# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A long run over random graphs, each named by its seed.

    python tests/numeric/fuzz.py --minutes 10            run until the time is over, print every failure
    python tests/numeric/fuzz.py --seed 1234             run one graph and show it
    python tests/numeric/fuzz.py --programs              programs: compiled, immediate, lazy and reference

`make fuzz` runs the same graphs and programs through hypothesis, which also shrinks what fails.
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
    parser.add_argument("--programs", action="store_true", help="run programs in four ways instead of graphs")
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


def run_program(seed: int, steps: int) -> str | None:
    """The error of a seed's program, or None."""
    from four_ways import check_program
    from graphs import Choices
    from programs import build_program

    program = None
    try:
        program = build_program(Choices.seeded(seed), max_steps=steps)
        check_program(program)
    except Exception:
        shown = "" if program is None else f"{program}\n"
        return f"seed {seed} with --programs --steps {steps}\n{shown}{traceback.format_exc()}"
    return None


def show(options: argparse.Namespace) -> None:
    """Print the graph or program of the seed given."""
    from graphs import Choices, build
    from programs import build_program

    make = build_program if options.programs else build
    print(make(Choices.seeded(options.seed), max_steps=options.steps))


def main() -> int:
    """Run; the exit status is 1 when a graph failed."""
    options = arguments()
    modes = options.mode or ["fast_run"]

    def run(seed: int) -> str | None:
        return run_program(seed, options.steps) if options.programs else run_seed(seed, options.steps, modes)

    if options.seed is not None:
        show(options)
        error = run(options.seed)
        print(error or "agrees")
        return int(error is not None)
    seed, failures, end = options.start, 0, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end and failures < options.max_failures:
        error = run(seed)
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

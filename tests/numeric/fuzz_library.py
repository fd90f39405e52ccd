# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A run over random graphs of the whole library, each named by its seed (see `test_random_graphs`).

python tests/numeric/fuzz_library.py --count 200 --batch 10     seeds 0 to 199
python tests/numeric/fuzz_library.py --seed 1234                run one graph and show it
python tests/numeric/fuzz_library.py --count 100 --poison       fill memory with NaN before use and after it
python tests/numeric/fuzz_library.py --count 20 --large         large values, on one, two and three threads
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("compiler", "dialects", "runtime", "tools", "tests/numeric")]

LARGE = {"sizes": (64, 1, 300, 1000, 7), "max_elements": 200_000, "max_inputs": 2}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--seed", type=int, help="run this seed only, and print its graph")
    parser.add_argument("--count", type=int, default=100, help="how many graphs")
    parser.add_argument("--batch", type=int, default=1, help="how many graphs are one function")
    parser.add_argument("--mode", action="append", help="modes to compare with the reference")
    parser.add_argument("--poison", action="store_true", help="compile with config.poison_memory")
    parser.add_argument("--large", action="store_true", help="large values, on several threads")
    return parser.parse_args()


def graph_of(seed: int, large: bool = False) -> Any:
    """The graph of a seed: 5 to 40 steps of the whole library."""
    from graphs import Choices, build
    from steps_library import ALL

    return build(Choices.seeded(seed), min_steps=5, max_steps=40, table=ALL, **(LARGE if large else {}))


def run_batch(seeds: range, options: argparse.Namespace) -> str | None:
    """The error of a batch of graphs, or None."""
    from comparing import check_all

    import graphc

    try:
        graphs = [graph_of(seed, options.large) for seed in seeds]
        with graphc.config.change_flags(poison_memory=options.poison):
            for mode in options.mode or ["fast_run"]:
                check_all(graphs, mode, threads=(1, 2, 3) if options.large else (1,))
    except Exception:
        return f"{seeds} with {sys.argv[1:]}\n{traceback.format_exc()}"
    return None


def main() -> int:
    """Run; the exit status is 1 when a graph failed."""
    options = arguments()
    if options.seed is not None:
        print(graph_of(options.seed, options.large))
        options.start, options.count, options.batch = options.seed, 1, 1
    failures = 0
    for first in range(options.start, options.start + options.count, options.batch):
        print(f"seed {first}", file=sys.stderr, flush=True)
        error = run_batch(range(first, first + options.batch), options)
        if error is not None:
            failures += 1
            print(error, flush=True)
    print(f"{options.count} graphs from seed {options.start}, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

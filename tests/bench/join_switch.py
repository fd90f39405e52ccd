# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What computing joins in place saves, in this compiler: `python tests/bench/join_switch.py [--seconds s]`.

Three pipelines: with `graphc-join-buffer-elimination`; without it; and also without upstream's
`eliminate-empty-tensors`, which puts operands of simple joins in their place too. The last one allocates and
copies as a library does. They are measured in turns, and the best time of each counts.
"""

from __future__ import annotations

import argparse
from typing import Any

from join_lines import CASES
from worker import best_time

FLAGS = ("graphc-join-buffer-elimination", "eliminate-empty-tensors")
NAMES = ("on", "off", "allocating")


def build(case: Any, removed: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Compile a case without some passes: the statement to time and its names."""
    import libraries

    from graphc import pipelines

    whole = pipelines.PIPELINES["fast_run"]
    pipelines.PIPELINES["fast_run"] = [entry for entry in whole if entry[0] not in removed]
    try:
        return libraries.load("graphc").build(case)  # type: ignore[no-any-return]
    finally:
        pipelines.PIPELINES["fast_run"] = whole


def measure(case: Any, seconds: float, rounds: int = 5) -> dict[str, float]:
    """The best time of a case with each pipeline, in seconds."""
    timed = {name: build(case, FLAGS[:removed]) for removed, name in enumerate(NAMES)}
    for statement, names in timed.values():
        eval(statement, names)
    best = dict.fromkeys(timed, float("inf"))
    for _ in range(rounds):
        for name, (statement, names) in timed.items():
            best[name] = min(best[name], best_time(statement, names, seconds / rounds))
    return best


def main() -> None:
    """Print a table."""
    import graphc

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each time")
    options = parser.parse_args()
    # What the cache holds does not say which passes have been left out.
    graphc.config.cache_dir = ""
    print("| line | on, us | off, us | allocating, us | saved |\n|---|---:|---:|---:|---:|")
    for case in CASES:
        best = measure(case, options.seconds)
        times = " | ".join(f"{1e6 * best[name]:.3g}" for name in NAMES)
        print(f"| {case.title} | {times} | {1 - best['on'] / best['allocating']:.0%} |", flush=True)


if __name__ == "__main__":
    main()

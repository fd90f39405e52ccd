# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What computing joins in place saves, in this compiler: `python tests/bench/join_switch.py`.

Three pipelines: with `graphc-join-buffer-elimination`; without it; and also without upstream's
`eliminate-empty-tensors`, which puts operands of simple joins in their place too. The last one allocates and
copies as a library does. They are measured in turns, and the best time of each counts.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import tables
from join_lines import CASES
from worker import best_time

FLAGS = ("graphc-join-buffer-elimination", "eliminate-empty-tensors")
NAMES = ("on", "off", "allocating")
# The part of the time that is to be saved, as PyTensor's own rewrite saved 10, 18 and 24 %.
GOALS = {"join2": 0.25, "join4": 0.35, "join8": 0.45} | dict.fromkeys(
    ("join_tanh2", "join_tanh4", "join_tanh8"), 0.05
)


def build(case: Any, removed: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Compile a case without some passes: the statement to time and its names."""
    import libraries

    from graphc.backends.cpu import pipeline
    from graphc.backends.stages import Stage

    whole = pipeline.PIPELINES["fast_run"]
    left = [entry for entry in pipeline.FAST_RUN if entry[0] not in removed]
    pipeline.PIPELINES["fast_run"] = (Stage.of("changed", left),)
    try:
        return libraries.load("graphc").build(case)  # type: ignore[no-any-return]
    finally:
        pipeline.PIPELINES["fast_run"] = whole


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
    """Print a table, or the same as one line of JSON."""
    import graphc

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # What the cache holds does not say which passes have been left out.
    graphc.config.cache_dir = ""
    rows = []
    for case in CASES:
        best = measure(case, options.seconds)
        saved = 1 - best["on"] / best["allocating"]
        rows.append({"title": case.title, **best, "saved": saved, "goal": GOALS.get(case.name)})
    if options.json:
        print(json.dumps(rows))
    else:
        print("\n".join(tables.switch_table(rows)))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Peak memory of loops of which few rows are read: `python tests/bench/scan_memory.py`.

300 rows of 0.76 MiB; what is printed is memory beyond arguments and results, and the time of a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import memory
import numpy as np

import graphc
import graphc.tensor as pt

ROW, STEPS = 316, 300


def _classifier(n: Any, x: Any, h0: Any) -> Any:
    def step(a: Any, h: Any, w: Any) -> Any:
        h = pt.tanh(a + 0.5 * h)
        return h, pt.special.softmax(h @ w, axis=-1)

    return graphc.scan(
        step, sequences=[x], outputs_info=[h0, None], non_sequences=[h0], return_updates=False
    )[1]


def _states(n: Any, x: Any, h0: Any) -> Any:
    return graphc.scan(lambda h: pt.tanh(h) * 0.9, outputs_info=[h0], n_steps=n, return_updates=False)


CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "last row of an output": lambda n, x, h0: _classifier(n, x, h0)[-1],
    "last row of a map": lambda n, x, h0: graphc.map(lambda a: pt.exp(a) * 2, x, return_updates=False)[-1],
    "all rows, n an input": _states,
    "two last rows": lambda n, x, h0: _states(n, x, h0)[-2:],
}


def main() -> None:
    """Prints a line for each case."""
    graphc.config.workspace_limit_mb = 0
    rng = np.random.default_rng(0)
    arguments = STEPS, rng.normal(size=(STEPS, ROW, ROW)), rng.normal(size=(ROW, ROW))
    for name, make in CASES.items():
        inputs = [pt.lscalar("n"), pt.dtensor3("x"), pt.dmatrix("h0")]
        f = graphc.function(inputs, make(*inputs), on_unused_input="ignore")
        f(*arguments)
        start = time.perf_counter()
        f(*arguments)
        seconds = time.perf_counter() - start
        found = memory.extra(lambda f=f: f(*arguments), repeats=3)  # type: ignore[misc]
        text = "unknown" if found is None else f"{found / 2**20:.1f} MiB"
        print(f"{name:24s} {text:>12s} {seconds:8.3f} s")


if __name__ == "__main__":
    main()

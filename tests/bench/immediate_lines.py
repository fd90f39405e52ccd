# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workloads of immediate mode: operations that run one by one, on arrays of each library."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case


def chain(m: Any, x: Any) -> Any:
    """100 elementwise operations."""
    h = x
    for _ in range(25):
        h = (h * 1.01 + 0.5 - x) * 0.99
    return h


CASES = [
    Case(
        "eager_add",
        "immediate mode: `a + b`, 3 elements",
        "ns",
        lambda: (np.arange(3.0), np.ones(3)),
        lambda m, a, b: a + b,
        goal=1e-6,
        lead=(("jax", 1.0),),
        eager="eager",
    ),
    Case(
        "lazy_chain",
        "immediate mode, lazy: 100 operations on 1e6 float64",
        "ms",
        lambda: (np.linspace(-1.0, 1.0, 1_000_000),),
        chain,
        lead=(("numpy", 5.0),),
        eager="lazy",
    ),
]

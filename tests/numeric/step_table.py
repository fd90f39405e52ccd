# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of steps of random graphs, and what they ask of operands.

A step is a function of a `graphs.Builder`. It returns a new variable and whether its value is exact (no
rounding), or None where it finds no operands that fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Result = tuple[Any, bool] | None
STEPS: dict[str, Callable[[Any], Result]] = {}


def step(function: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Add a step to the table, under the name of the function."""
    STEPS[function.__name__] = function
    return function


def kind(v: Any) -> str:
    """NumPy's kind letter of the dtype."""
    return np.dtype(v.type.dtype).kind


def is_float(v: Any) -> bool:
    return kind(v) == "f"


def is_number(v: Any) -> bool:
    return kind(v) != "b"


def is_integer(v: Any) -> bool:
    return kind(v) in "iu"


def with_rank(v: Any) -> bool:
    return v.type.ndim > 0


def square_fits(b: Any, v: Any) -> bool:
    """Whether a matrix of the size of the first axis is small enough for the graph."""
    return b.shape(v)[0] ** 2 <= b.max_elements


def fits_elementwise(b: Any, x: Any, y: Any) -> bool:
    """Whether two variables broadcast: sizes agree, or are statically 1."""
    pairs = zip(reversed(b.shape(x)), reversed(b.shape(y)), strict=False)
    statics = zip(reversed(x.type.shape), reversed(y.type.shape), strict=False)
    return all(m == n or 1 in static for (m, n), static in zip(pairs, statics, strict=False))

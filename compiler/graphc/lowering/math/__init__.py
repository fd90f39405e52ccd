# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branch-free expansions of elementary functions, one builder function for each `math` operation.

An expansion takes a `Builder` and the operand and returns the result; the same expression serves float32
and float64, which differ in constants only. Whatever LLVM's vectoriser can widen is allowed: no calls, no
branches, no table look-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from graphc.lowering.math import exponential, inverse_trigonometric, logarithm
from graphc.lowering.math.builder import Builder, Number

Expansion = Callable[[Builder, Number], Number]


@cache
def expansions() -> dict[str, Expansion]:
    """Operation name to expansion."""
    return {
        "math.acos": inverse_trigonometric.acos,
        "math.asin": inverse_trigonometric.asin,
        "math.atan": inverse_trigonometric.atan,
        "math.cosh": exponential.cosh,
        "math.erf": exponential.erf,
        "math.exp": exponential.exp,
        "math.exp2": exponential.exp2,
        "math.expm1": exponential.expm1,
        "math.log": logarithm.log,
        "math.log10": logarithm.log10,
        "math.log1p": logarithm.log1p,
        "math.log2": logarithm.log2,
        "math.sinh": exponential.sinh,
        "math.tanh": exponential.tanh,
    }


__all__ = ["Builder", "Expansion", "Number", "expansions"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branch-free expansions of elementary functions, one builder function for each `math` operation.

An expansion takes a `Builder` and the operand and returns the result; the same expression serves float32
and float64, which differ in constants only. Whatever LLVM's vectoriser can widen is allowed: no calls, no
branches, no table look-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from graphc.lowering.math import coefficients
from graphc.lowering.math.builder import Builder, Number

Expansion = Callable[[Builder, Number], Number]


@cache
def expansions() -> dict[str, Expansion]:
    """Operation name to expansion."""
    return {
        "math.acos": coefficients.acos,
        "math.asin": coefficients.asin,
        "math.atan": coefficients.atan,
        "math.cosh": coefficients.cosh,
        "math.erf": coefficients.erf,
        "math.exp": coefficients.exp,
        "math.exp2": coefficients.exp2,
        "math.expm1": coefficients.expm1,
        "math.log": coefficients.log,
        "math.log10": coefficients.log10,
        "math.log1p": coefficients.log1p,
        "math.log2": coefficients.log2,
        "math.sinh": coefficients.sinh,
        "math.tanh": coefficients.tanh,
    }


# Of float16, in float32, where these take less.
HALVES: dict[str, Expansion] = {"math.tanh": coefficients.tanh_of_half}

__all__ = ["HALVES", "Builder", "Expansion", "Number", "expansions"]

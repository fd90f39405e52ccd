# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces expressions by cheaper ones of the same value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.passes._base import Pass


@dataclass
class AlgebraicSimplification(Pass):
    """Algebraic identities on elementwise operations, reductions and views.

    *Exact* rules give the same bits, but for the sign of a zero; *rounding* rules may differ in the last place;
    *wider* rules give a finite value where the original overflowed or was NaN on the way. No rule makes a finite value
    infinite or NaN, and none drops a run-time shape check.

    | rule | class |
    |---|---|
    | `x + 0`, `x - 0`, `x * 1`, `x / 1`, integer `x // 1` to x; `0 - x`, `x * -1`, `x / -1` to -x | exact |
    | integers: `x * 0`, `x - x`, `x ^ x`, `x mod 1` to 0 (floats keep these: NaN and inf) | exact |
    | `-(-x)`, `~~x`, `not not x`, `conj(conj(x))`, `-(x - y)` to `y - x`, `x - (-y)` to `x + y`, `(-x) * (-y)` to `x * y` | exact |
    | `1 / x` to reciprocal, `1 / (1 / x)` to x, `x * (1 / y)` to `x / y`, `x / (1 / y)` to `x * y`, `1 / (x / y)` to `y / x` | rounding, wider |
    | `x / c` to `x * (1 / c)` for c a power of two | exact |
    | `(x * c) * d` to `x * (c d)`, `(x / c) / d`, `(x * c) / d`, if the combined constant is neither zero, subnormal nor inf | rounding, wider |
    | `(x + c) + d` to `x + (c + d)`: integers, and floats if c and d have one sign (no compensated-sum trick breaks) | rounding |
    | `x * x` to sqr; pow with exponent 0, 1, 2, 3, 4, -1, -2, 1/2, -1/2, 3/2 to products and roots | rounding |
    | `sqr(-x)`, `sqr(abs(x))`, `abs(-x)`, `abs(abs(x))`, `abs(sqr(x))`, rounding of rounded or integer values | exact |
    | `sqrt(sqr(x))` to abs(x), `log(exp(x))` to x, `1 / exp(x)` to exp(-x), `log(1 / x)` to -log(x) | rounding, wider |
    | `exp(log(x))`, `exp(log1p(x))`, `expm1(log1p(x))`, `sqr(sqrt(x))` to x, 1 + x, x, x, NaN outside the domain as before | rounding |
    | `maximum(x, x)`, `maximum(maximum(x, y), y)`, constants of nested maxima; the same for minimum, and, or | exact |
    | `x < x`, `x > x`, `x != x` and so on of integers to constants; `not (a == b)` to `a != b`; of integers also `not (a < b)` | exact |
    | `switch` with a constant or negated condition, or equal branches; `cast` of a lossless `cast`; casts to the own dtype | exact |
    | `sum(-x)` to `-sum(x)`; `sum(x * c)` to `sum(x) * c` for integers, and floats with finite abs(c) >= 1 | rounding |
    | reductions of reductions, over no axes, over axes of size 1; sums over a permuted operand | rounding |
    | dimshuffle of dimshuffle, reshape of reshape (where the inner one cannot fail) | exact |

    `pow(x, 1/2)` differs from sqrt at -inf: inf there, NaN here. For smaller constants `sum(x * c)` stays, because
    sum(x) can overflow.

    Source: PyTensor's `tensor/rewriting/math.py` and `elemwise.py` (`local_add_neg_to_sub`, `local_pow_specialize`,
    `AlgebraicCanonizer`, ...).
    """

    stage = "graph"

    def run(self, module: Any) -> None:
        from graphc.passes._rewrite import Rewriter, functions
        from graphc.passes._simplify import RULES

        for function in functions(module):
            rewriter = Rewriter(function, RULES)
            rewriter.run()
            for name, number in rewriter.counts.items():
                self.count(name.replace("_", " "), number)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces expressions that overflow or cancel by equal ones that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import apply_rules
from graphc.passes.graph.simplify._lines import STABLE_FORMS
from graphc.passes.graph.simplify._stable_forms import RULES
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class Stabilize(Pass):
    """Rewrites real floating-point expressions into numerically safer forms.

    | pattern | becomes | what was wrong |
    |---|---|---|
    | `log(1 + x)`, `log(1 - x)` | `log1p(x)`, `log1p(-x)` | all digits lost for small x |
    | `exp(x) - 1`, `1 - exp(x)` | `expm1(x)`, `-expm1(x)` | all digits lost for small x |
    | `log1p(exp(x))` | `softplus(x)` | inf for x > 709 |
    | `log1p(-exp(x))` | `log1mexp(x)` | digits lost near 0 and for small exp(x) |
    | `log(expm1(x))` | `x + log1mexp(-x)` | inf for x > 709 |
    | `log(sigmoid(x))` | `-softplus(-x)` | -inf for x < -745 |
    | `log1p(-sigmoid(x))` | `-softplus(x)` | -inf for x > 37 |
    | `1 - sigmoid(x)` | `sigmoid(-x)` | 0 for x > 37 |
    | `1 / (1 + exp(-x))`, `exp(x) / (1 + exp(x))` | `sigmoid(x)` | nan or lost digits when exp overflows |
    | `log(softmax(x))` | `log_softmax(x)` | -inf where softmax underflows |
    | `exp(x) / sum(exp(x))` | `softmax(x)` | nan when exp overflows |
    | `exp(x) * (w / sum(exp(x)))` | `softmax(x) * w` | as above; nan when all exp underflow |
    | `exp(x) * (w / (exp(x) + exp(y)))` | `sigmoid(x - y) * w` | as above |
    | `log(sum(exp(x)))` | `m + log(sum(exp(x - m)))`, m the maximum | infinite when exp over- or underflows |
    | `log(c * exp(x) + d * exp(y))`, c, d > 0 | `logaddexp(x + log(c), y + log(d))` | as above |
    | `1 - erf(x)`, `1 + erf(x)`, `1 - erfc(x)` | `erfc(x)`, `erfc(-x)`, `erf(x)` | 0 for x > 6; lost digits |
    | `log(erfc(x))`, `log1p(-erf(x))` | for x >= 1: `log_ndtr(-sqrt(2) x) + log(2)` | -inf for x > 27 |

    In `log(sum(exp(x)))` the shift m is 0 where the maximum is infinite or NaN: rows of -inf give -inf, and
    +inf and NaN come through. The softmax of a quotient is `guarded` in the same way, so that +inf makes NaN
    only where it stands and 0 elsewhere, as the quotient has it. Exponential and sum are found as factors of
    one product, with views, broadcasts, signs and other factors between, as derivatives by the chain rule
    have them. Sums that are shifted by a maximum already are recognised and stay. Where the original is
    finite and accurate, results agree to a few units in the last place.

    Source: PyTensor's `tensor/rewriting/math.py` (names `log1p`, `local_log_sum_exp`, `local_1msigmoid`,
    ...); M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """

    stage = "graph"
    lines = STABLE_FORMS

    def run(self, module: ir.Module) -> None:
        apply_rules(module, RULES, self.count)

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
    | `exp(x) - 1`, `1 - exp(x)` | `expm1(x)`, `-expm1(x)` | all digits lost for small x |
    | `1 - sigmoid(x)`, `1 - ndtr(x)` | `sigmoid(-x)`, `ndtr(-x)` | 0 far out |
    | `1 - tanh(x)`, `1 + tanh(x)` | `2 sigmoid(-2 x)`, `2 sigmoid(2 x)` | 0 far out |
    | `1 - erf(x)`, `1 + erf(x)` | `erfc(x)`, `erfc(-x)` | 0 for x > 6; lost digits |
    | `1 / (1 + exp(-x))`, `exp(x) / (1 + exp(x))` | `sigmoid(x)` | nan or lost digits when exp overflows |
    | `exp(x) / (exp(x) + exp(y) + ...)` | `sigmoid(x - logaddexp(y, ...))` | as above |
    | `exp(x) / sum(exp(x))` | `softmax(x)` | nan when exp overflows |
    | `exp(x) * (w / sum(exp(x)))` | `softmax(x) * w` | as above; nan when all exp underflow |
    | `exp(x) * exp(y)`, `exp(x) / exp(y)` | `exp(x + y)`, `exp(x - y)` | 0 times infinity |
    | `exp(x) ** y`, `prod(exp(x))` | `exp(x * y)`, `exp(sum(x))` | as above |
    | `exp(x) * sigmoid(-x)` | `sigmoid(x)` | as above |
    | `sigmoid(x) / (1 - sigmoid(x))` | `exp(x)` | infinite for x > 37 |
    | `x ** 100 * x ** -100` | `x ** 0` | 0 times infinity, where x is neither |
    | `arctanh(tanh(x))`, `logit(sigmoid(x))`, ... | `x` | infinite far out |
    | `log(V)`, `log1p(V)`, `log2(V)`, `log10(V)` | the logarithm of V | V over- or underflows |

    In the last line V is any expression of exponentials; its logarithm is made of those of its parts:

    | V | its logarithm |
    |---|---|
    | `exp(x)`, `exp2(x)`, `c ** x`, constants | `x`, `x log(2)`, `x log(c)`, constants |
    | `sigmoid(x)`, `softmax(x)`, `ndtr(x)` | `-softplus(-x)`, `log_softmax(x)`, `log_ndtr(x)` |
    | `erfc(x)` | for x >= 1 `log_ndtr(-sqrt(2) x) + log(2)` |
    | `expm1(x)`, `sinh(x)`, `cosh(x)` | `x + log1mexp(-x)`, ... |
    | `iv(v, x)`, `kv(v, x)` and those of orders 0, 1 | `log(ive(v, x)) + abs(x)`, `log(kve(v, x)) - x` |
    | terms, `sum` | `logaddexp`, `softplus`; `m + log(sum(exp(x - m)))`, m the maximum |
    | differences | `x + log1mexp(y - x)` |
    | `w * exp(x) + u * exp(y)`, w and u of unknown sign | `m + log(w * exp(x - m) + u * exp(y - m))` |
    | products, quotients, powers, roots, `prod` | sums, differences, multiples |
    | `maximum`, `minimum`, `clip`, `max`, `min`, `switch`, casts | the same of the logarithms |
    | views, slices, elements at indices or masks | the same of the logarithm |
    | sorted, repeated, joined, assigned elements | the same of the logarithms |

    Exponentials of arrays that broadcast against each other stay factors: their product has more elements.
    Functions are found behind what only moves or selects elements. A constant counts as a number where it has
    one element; ones that broadcast keep their shape.
    In `log(sum(exp(x)))` the shift m is 0 where the maximum is infinite or NaN: rows of -inf give -inf, and
    +inf and NaN come through. The softmax of a quotient is `guarded` in the same way, so that +inf makes NaN
    only where it stands and 0 elsewhere, as the quotient has it. Exponential and sum are found as factors of
    one product, with views, broadcasts, signs and other factors between, as derivatives by the chain rule
    have them. Sums that are shifted by a maximum already are recognised and stay. Where the original is
    finite and accurate, results agree to a few units in the last place of what is exponentiated.

    The rules are those by which derivatives are taken (`graphc/ops/logarithms.py`): values and derivatives
    know the same expressions. The logarithm of a value is computed where the value was, outside of loops that
    only read it, and once for all that ask for it.

    Source: PyTensor's `tensor/rewriting/math.py` (names `log1p`, `local_log_sum_exp`, `local_1msigmoid`,
    ...); M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """

    stage = "graph"
    lines = STABLE_FORMS

    def run(self, module: ir.Module) -> None:
        apply_rules(module, RULES, self.count)

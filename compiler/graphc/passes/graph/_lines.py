# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of one line of algebraic-simplification and stabilize; docs/passes/graph.md has their tables."""

from __future__ import annotations

from graphc.ir.patterns import Line, op, x, y

_ALL, _NUMBERS, _REAL = "biufc", "iufc", "iuf"

# Tried before the other rules of algebraic-simplification.
ALGEBRA = (
    Line("add zero", x + 0, x, _NUMBERS),
    Line("sub zero", x - 0, x, _NUMBERS),
    Line("sub zero", 0 - x, -x, _NUMBERS),
    Line("sub self", x - x, 0, "iu"),
    Line("sub self", op.xor(x, x), 0, "biu"),
    Line("mul one", x * 1, x, _REAL),
    Line("mul one", x * -1, -x, "if"),
    Line("mul one", x / 1, x),
    Line("mul one", x / -1, -x),
    Line("mul one", op.floor_div(x, 1), x, "iu"),
    Line("mul zero", x * 0, 0, "iu"),
    Line("mod one", op.mod(x, 1), 0, "iu"),
    Line("neg of", op.neg(op.neg(x)), x, _NUMBERS),
    Line("neg of", -(x - y), y - x, _NUMBERS),
    Line("add of neg", x + -y, x - y, _NUMBERS),
    Line("add of neg", x - -y, x + y, _NUMBERS),
    Line("signs of factors", -x * -y, x * y, "if"),
    Line("signs of factors", -x / -y, x / y),
    Line("one over", 1 / x, op.reciprocal(x)),
    Line("reciprocal of", op.reciprocal(op.reciprocal(x)), x),
    Line("reciprocal of", op.reciprocal(x / y), y / x),
    Line("reciprocal of", op.reciprocal(op.exp(x)), op.exp(-x)),
    Line("factor reciprocal", x * op.reciprocal(y), x / y),
    Line("factor reciprocal", x / op.reciprocal(y), x * y),
    Line("mul self", x * x, op.sqr(x), _REAL),
    Line("log of exp", op.log(op.exp(x)), x),
    Line("log of exp", op.log1p(op.expm1(x)), x),
    Line("log of exp", op.log2(op.exp2(x)), x),
    Line("log of exp", op.log(op.reciprocal(x)), -op.log(x)),
    Line("square and root", op.sqrt(op.sqr(x)), op.abs(x)),
    Line("square and root", op.sqr(-x), op.sqr(x), _NUMBERS),
    Line("abs of exp", op.abs(op.exp(x)), op.exp(x)),
    Line("abs of", op.abs(-x), op.abs(x), "if"),
    Line("sign of sign", op.sign(op.sign(x)), op.sign(x), _NUMBERS),
    Line("trivial unary", op.identity(x), x, _ALL),
    Line("trivial unary", op.conj(op.conj(x)), x, _ALL),
)

# Tried after them: negations move to the end, where they cancel.
SIGNS = (
    Line("sign of product", -x * y, -(x * y)),
    Line("sign of product", -x / y, -(x / y)),
    Line("sign of product", x / -y, -(x / y)),
)

# Tried before the other rules of stabilize.
STABLE_FORMS = (
    Line("log of one plus", op.log(1 + x), op.log1p(x)),
    Line("log of one plus", op.log(1 - x), op.log1p(-x)),
    Line("sub with one", op.exp(x) - 1, op.expm1(x)),
    Line("sub with one", 1 - op.exp(x), -op.expm1(x)),
    Line("sub with one", 1 - op.sigmoid(x), op.sigmoid(-x)),
    Line("sub with one", 1 - op.erf(x), op.erfc(x)),
    Line("sub with one", 1 - op.erfc(x), op.erf(x)),
    Line("add of one", 1 + op.erf(x), op.erfc(-x)),
    Line("minus one", op.exp(x) + -1, op.expm1(x)),
    *(
        Line("minus one", before, -after)
        for f, after in (
            (op.sigmoid, op.sigmoid(-x)),
            (op.erf, op.erfc(x)),
            (op.erfc, op.erf(x)),
            (op.ndtr, op.ndtr(-x)),
            (op.tanh, 2 * op.sigmoid(op.mul(x, -2))),
        )
        for before in (f(x) - 1, f(x) + -1)
    ),
    Line("sub with one", 1 - op.tanh(x), 2 * op.sigmoid(op.mul(x, -2))),
    Line("sub with one", 1 - op.ndtr(x), op.ndtr(-x)),
    Line("add of one", 1 + op.tanh(x), 2 * op.sigmoid(op.mul(x, 2))),
    Line("quotient to sigmoid", op.reciprocal(1 + op.exp(x)), op.sigmoid(-x)),
    Line("quotient to sigmoid", 1 / (1 + op.exp(x)), op.sigmoid(-x)),
    Line("quotient to sigmoid", op.exp(x) / (1 + op.exp(x)), op.sigmoid(x)),
)

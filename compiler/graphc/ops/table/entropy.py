# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: products with logarithms, entropies, logit and sinc."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import register
from graphc.ops.external import floats_or_double, register_scipy
from graphc.ops.math import abs as abs_
from graphc.ops.math import bitwise_and, cos, eq, gt, log, log1p, lt, sqr, switch
from graphc.ops.table import forms_special as forms
from graphc.ops.table.explog import share

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable

_LN2 = float(np.log(2))


def _over(x: Variable, y: Variable) -> Variable:
    """x / y, but 0 / 0 is 0; its own derivatives are those of the quotient elsewhere."""
    both: Variable = bitwise_and(eq(x, 0), eq(y, 0))
    return x / switch(both, 1, y)


def _log_ratio(x: Variable, y: Variable) -> Variable:
    """log(x / y) without the error of a quotient near 1, and without its overflow."""
    ratio = x / y
    close: Variable = bitwise_and(gt(ratio, 0.5), lt(ratio, 2))
    return switch(close, log1p((x - y) / y), log(x) - log(y))


def _sinc(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    """(cos(pi x) - sinc(x)) / x, near 0 by its series."""
    square = sqr(np.pi * x)
    near = -(np.pi**2 / 3) * x * (1 - square / 10 * (1 - square / 28 * (1 - square / 54)))
    small = lt(abs_(x), 0.05)
    far = (cos(np.pi * x) - out) / switch(small, 1, x)
    return g * switch(small, near, far)


register_scipy(
    "xlogy",
    "x * log(y), 0 for x = 0.",
    (lambda x, y, out, g: g * log(y), lambda x, y, out, g: g * _over(x, y)),
    forms.xlogy,
)
register_scipy(
    "xlog1py",
    "x * log1p(y), 0 for x = 0.",
    (lambda x, y, out, g: g * log1p(y), lambda x, y, out, g: g * _over(x, 1 + y)),
    forms.xlog1py,
)
register_scipy(
    "entr", "-x * log(x), 0 at 0, minus infinity below.", (lambda x, out, g: -g * (log(x) + 1),), forms.entr
)
register_scipy(
    "rel_entr",
    "x * log(x / y), 0 for x = 0, infinite for negative operands.",
    (lambda x, y, out, g: g * (_log_ratio(x, y) + 1), lambda x, y, out, g: -g * x / y),
    forms.rel_entr,
)
register_scipy(
    "kl_div",
    "x * log(x / y) - x + y, infinite for negative operands.",
    (lambda x, y, out, g: g * _log_ratio(x, y), lambda x, y, out, g: g * (y - x) / y),
    forms.kl_div,
)
register_scipy(
    "logit", "log(x / (1 - x)), the inverse of sigmoid.", (lambda x, out, g: g / (x * (1 - x)),), forms.logit
)
register(
    "logaddexp2",
    np.logaddexp2,
    "log2(2**x + 2**y).",
    forms.logaddexp2,
    grad=(
        lambda x, y, out, g: g * share((x - y) * _LN2, out),
        lambda x, y, out, g: g * share((y - x) * _LN2, out),
    ),
)
register("sinc", np.sinc, "sin(pi x) / (pi x), 1 at 0.", forms.sinc, dtypes=floats_or_double, grad=(_sinc,))

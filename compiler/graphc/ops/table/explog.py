# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: exponentials, logarithms and roots.

Slopes, here and in the other tables, are written of the operand where the result has lost it: the one of
``expm1`` is ``exp(x)``, not ``out + 1``. (Those of ``tanh`` and ``sigmoid``, which networks keep by layer and
step, are as exact as the results, near 0 and 1: to the last place of 1.) ``tests/numeric/test_slopes.py`` holds each, and its own slope, against
mpmath far out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import register
from graphc.ops.external import real_floats
from graphc.ops.math import eq, exp, expm1, sigmoid, sqr, switch
from graphc.ops.table import forms

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    tail = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + tail), tail / (1 + tail))


def _expm1(x: np.ndarray) -> np.ndarray:
    """NumPy's; of a complex number whose real part is -0 the array API standard wants that of 0."""
    out = np.expm1(x)
    return out if out.dtype.kind != "c" else out + out.dtype.type(complex(0.0, -0.0))


forms.register_libm("exp", "e to the power x.", lambda x, out, g: g * out)
forms.register_libm("exp2", "2 to the power x.", lambda x, out, g: g * out * _LN2)


def share(difference: TensorVariable, out: TensorVariable) -> TensorVariable:
    """Slope of logaddexp in an operand. That of two that are -inf is 0, as in `logsumexp`.

    Args:
        difference: of the operand and the other one.
        out: their logaddexp, or that to another base.
    """
    return switch(eq(out, -np.inf), 0, sigmoid(difference))


forms.register_libm(
    "expm1", "exp(x) - 1 without cancellation.", lambda x, out, g: g * exp(x), reference=_expm1
)
forms.register_libm("log", "Natural logarithm.", lambda x, out, g: g / x)
forms.register_libm("log2", "Logarithm to base 2.", lambda x, out, g: g / (x * _LN2))
forms.register_libm("log10", "Logarithm to base 10.", lambda x, out, g: g / (x * _LN10))
forms.register_libm("log1p", "log(1 + x) without cancellation.", lambda x, out, g: g / (1 + x))
forms.register_libm("sqrt", "Square root.", lambda x, out, g: 0.5 * g / out)
forms.register_libm("cbrt", "Cube root.", lambda x, out, g: g / (3 * sqr(out)))
register(
    "sigmoid",
    _sigmoid,
    "1 / (1 + exp(-x)).",
    forms.wide(forms.sigmoid),
    dtypes=real_floats,
    # Loops keep the result alone; where they do not come between, 1 - out is compiled as sigmoid(-x).
    grad=(lambda x, out, g: g * out * (1 - out),),
)
register(
    "softplus",
    lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "log(1 + exp(x)).",
    forms.wide(forms.softplus),
    dtypes=real_floats,
    grad=(lambda x, out, g: g * sigmoid(x),),
)
register(
    "log1mexp",
    lambda x: np.where(x > -_LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
    "log(1 - exp(x)), for negative x.",
    forms.wide(forms.log1mexp),
    dtypes=real_floats,
    # From the left, from where the function is defined, 0 has the slope -inf, whatever its sign.
    grad=(lambda x, out, g: g * switch(eq(x, 0), -np.inf, exp(x) / expm1(x)),),
)
register(
    "logaddexp",
    np.logaddexp,
    "log(exp(x) + exp(y)).",
    forms.in_double(forms.logaddexp),
    grad=(lambda x, y, out, g: g * share(x - y, out), lambda x, y, out, g: g * share(y - x, out)),
    folds=True,
)

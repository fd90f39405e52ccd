# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: error and gamma functions. SciPy is the reference, loaded when one is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops import forms
from graphc.ops._pt import pt
from graphc.ops.elementwise import register
from graphc.ops.rows_explog import real_float

_ERF_SLOPE = float(2 / np.sqrt(np.pi))


def _special(name: str) -> Callable[..., Any]:
    def reference(*arrays: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return reference


def _gamma(b: Any, x: Any) -> Any:
    """tgamma of the C library, but NaN for minus infinity and the negative integers, as in SciPy."""
    pole = b.logical_and(b.lt(x, b.const(0, x.dtype)), b.eq(x, b.floor(x)))
    return b.select(pole, b.const(np.nan, x.dtype), b.math("tgamma", x))


register(
    "erf",
    _special("erf"),
    "Error function.",
    forms.libm("erf"),
    nin=1,
    dtypes=real_float,
    grad=(lambda x, out, g: g * _ERF_SLOPE * pt.exp(-pt.sqr(x)),),
)
register(
    "erfc",
    _special("erfc"),
    "1 - erf(x) without cancellation.",
    forms.libm("erfc"),
    nin=1,
    dtypes=real_float,
    grad=(lambda x, out, g: -g * _ERF_SLOPE * pt.exp(-pt.sqr(x)),),
)
register(
    "gamma",
    _special("gamma"),
    "Gamma function.",
    _gamma,
    nin=1,
    dtypes=real_float,
    grad=(lambda x, out, g: g * out * pt.psi(x),),
)
register(
    "gammaln",
    _special("gammaln"),
    "Logarithm of the magnitude of the gamma function.",
    forms.libm("lgamma"),
    nin=1,
    dtypes=real_float,
    grad=(lambda x, out, g: g * pt.psi(x),),
)
register(
    "digamma",
    _special("psi"),
    "Derivative of gammaln.",
    forms.digamma,
    nin=1,
    dtypes=real_float,
    absent="the trigamma function is not among the operations",
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: error functions and the normal distribution. SciPy is the reference, loaded when one is
evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.external import of_complex, register_kernel, register_scipy
from graphc.ops.math import abs as abs_
from graphc.ops.math import bitwise_and, erf, erfcx, exp, gt, maximum, minimum, sqr, switch
from graphc.ops.table import forms, forms_special

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable


def _slope(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * exp(-out) / (1 + out)


register_kernel(
    "lambertw0",
    "The w with w exp(w) = x that is at least -1, for x from -1/e on; NaN elsewhere.",
    grad=(_slope,),
)
register_kernel(
    "lambertw1",
    "The w with w exp(w) = x that is at most -1, for x from -1/e to 0; NaN elsewhere.",
    grad=(_slope,),
)


_ERF_SLOPE = float(2 / np.sqrt(np.pi))
_SQRT_HALF = float(np.sqrt(0.5))
_SQRT_2PI = float(np.sqrt(2 * np.pi))


def _normal_density(x: Variable) -> Variable:
    return exp(-0.5 * sqr(x)) / _SQRT_2PI


def _far_terms(x: TensorVariable, sign: int) -> tuple[TensorVariable, TensorVariable]:
    """Asymptotic series for large x, the sum of (2k - 1)!! (sign / (2 x**2))**k for k > 0: the series
    of what is left of 2 x f(x) after its limit.
    """
    far = gt(abs_(x), 8)
    t = 0.5 * sign / sqr(switch(far, x, 8))
    total = t.zeros_like()
    for factor in range(35, 0, -2):
        total = factor * t * (1 + total)
    return far, total


def _erfcx_slope(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    far, terms = _far_terms(x, -1)
    return g * switch(bitwise_and(far, x > 0), _ERF_SLOPE * terms, 2 * x * out - _ERF_SLOPE)


def _dawsn_slope(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    far, terms = _far_terms(x, 1)
    return g * switch(far, -terms, 1 - 2 * x * out)


def _log_ndtr(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    """The density over the distribution function, below 0 both scaled by exp(x**2 / 2), which overflows above.

    Each side is limited to where it is finite, so that its own derivatives are.
    """
    above = _normal_density(maximum(x, 0)) * exp(-maximum(out, -1))
    below = (2 / _SQRT_2PI) / erfcx(-_SQRT_HALF * minimum(x, 0))
    return g * switch(x > 0, above, below)


def _owens_t_h(h: Variable, a: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return -0.5 * g * _normal_density(h) * erf(a * h * _SQRT_HALF)


def _owens_t_a(h: Variable, a: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    square = 1 + sqr(a)
    return g * exp(-0.5 * sqr(h) * square) / (2 * np.pi * square)


register_scipy(
    "erf",
    "Error function.",
    (lambda x, out, g: g * _ERF_SLOPE * exp(-sqr(x)),),
    forms.libm("erf"),
    special=of_complex("erf"),
)
register_scipy(
    "erfc",
    "1 - erf(x) without cancellation.",
    (lambda x, out, g: -g * _ERF_SLOPE * exp(-sqr(x)),),
    forms.libm("erfc"),
    special=of_complex("erfc"),
)
register_scipy(
    "erfcx",
    "exp(x**2) * erfc(x), without overflow of the exponential.",
    (_erfcx_slope,),
    forms_special.erfcx,
    special=of_complex("erfcx"),
)
register_scipy(
    "erfi",
    "Imaginary error function.",
    (lambda x, out, g: g * _ERF_SLOPE * exp(sqr(x)),),
    forms_special.erfi,
    special=of_complex("erfi"),
)
register_scipy("erfinv", "Inverse of erf.", (lambda x, out, g: g / _ERF_SLOPE * exp(sqr(out)),))
register_scipy("erfcinv", "Inverse of erfc.", (lambda x, out, g: -g / _ERF_SLOPE * exp(sqr(out)),))
register_scipy(
    "dawsn", "Dawson's integral, sqrt(pi) / 2 * exp(-x**2) * erfi(x).", (_dawsn_slope,), forms_special.dawsn
)
register_scipy(
    "ndtr",
    "Distribution function of the standard normal distribution.",
    (lambda x, out, g: g * _normal_density(x),),
    forms.wide(forms_special.ndtr),
)
register_scipy("ndtri", "Inverse of ndtr.", (lambda x, out, g: g / _normal_density(out),))
register_scipy(
    "log_ndtr", "Logarithm of ndtr, also where that underflows.", (_log_ndtr,), forms_special.log_ndtr
)
register_scipy(
    "ndtri_exp",
    "Inverse of log_ndtr, also where ndtr underflows.",
    (lambda x, out, g: g * (_SQRT_2PI / 2) * erfcx(-_SQRT_HALF * out),),
)
register_scipy("owens_t", "Owen's T function of h and a.", (_owens_t_h, _owens_t_a))

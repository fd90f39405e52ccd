# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: error functions and the normal distribution. SciPy is the reference, loaded when one is
evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import register
from graphc.ops.external import of_complex, real_floats, register_kernel, register_scipy, scipy_function
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
    1,
    grad=(_slope,),
)
register_kernel(
    "lambertw1",
    "The w with w exp(w) = x that is at most -1, for x from -1/e to 0; NaN elsewhere.",
    1,
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


register(
    "erf",
    scipy_function("erf"),
    "Error function.",
    forms.libm("erf"),
    nin=1,
    special=of_complex("erf"),
    dtypes=real_floats,
    grad=(lambda x, out, g: g * _ERF_SLOPE * exp(-sqr(x)),),
)
register(
    "erfc",
    scipy_function("erfc"),
    "1 - erf(x) without cancellation.",
    forms.libm("erfc"),
    nin=1,
    special=of_complex("erfc"),
    dtypes=real_floats,
    grad=(lambda x, out, g: -g * _ERF_SLOPE * exp(-sqr(x)),),
)
register(
    "erfcx",
    scipy_function("erfcx"),
    "exp(x**2) * erfc(x), without overflow of the exponential.",
    forms_special.erfcx,
    nin=1,
    special=of_complex("erfcx"),
    dtypes=real_floats,
    grad=(_erfcx_slope,),
)
register(
    "erfi",
    scipy_function("erfi"),
    "Imaginary error function.",
    forms_special.erfi,
    nin=1,
    special=of_complex("erfi"),
    dtypes=real_floats,
    grad=(lambda x, out, g: g * _ERF_SLOPE * exp(sqr(x)),),
)
register_scipy("erfinv", "Inverse of erf.", (lambda x, out, g: g / _ERF_SLOPE * exp(sqr(out)),))
register_scipy("erfcinv", "Inverse of erfc.", (lambda x, out, g: -g / _ERF_SLOPE * exp(sqr(out)),))
register_scipy(
    "dawsn", "Dawson's integral, sqrt(pi) / 2 * exp(-x**2) * erfi(x).", (_dawsn_slope,), forms_special.dawsn
)
register(
    "ndtr",
    scipy_function("ndtr"),
    "Distribution function of the standard normal distribution.",
    forms.wide(forms_special.ndtr),
    nin=1,
    dtypes=real_floats,
    grad=(lambda x, out, g: g * _normal_density(x),),
)
register_scipy("ndtri", "Inverse of ndtr.", (lambda x, out, g: g / _normal_density(out),))
register(
    "log_ndtr",
    scipy_function("log_ndtr"),
    "Logarithm of ndtr, also where that underflows.",
    forms_special.log_ndtr,
    nin=1,
    dtypes=real_floats,
    grad=(_log_ndtr,),
)
register_scipy(
    "ndtri_exp",
    "Inverse of log_ndtr, also where ndtr underflows.",
    (lambda x, out, g: g * (_SQRT_2PI / 2) * erfcx(-_SQRT_HALF * out),),
)
register_scipy("owens_t", "Owen's T function of h and a.", (_owens_t_h, _owens_t_a))

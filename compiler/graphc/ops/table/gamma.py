# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: gamma and beta functions, complete and incomplete. SciPy is the reference, loaded when one is
evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import Undefined, register
from graphc.ops.external import by_differences, real_floats, register_kernel, register_scipy, scipy_function
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    betainc_da,
    betainc_db,
    betaln,
    cos,
    digamma,
    exp,
    gamma,
    gammainc_da,
    gammaln,
    ge,
    gt,
    log,
    log1p,
    lt,
    minimum,
    polygamma,
    sqrt,
    switch,
    trigamma,
    xlog1py,
    xlogy,
    zeta,
)
from graphc.ops.math import sign as sign_
from graphc.ops.table import forms_bessel, forms_gamma

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable


def _polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    import scipy.special

    value = scipy.special.polygamma(n, x)
    return np.where((n < 0) | (n != np.floor(n)), np.nan, value)


def _gamma_density(a: Variable, x: Variable) -> Variable:
    """Derivative of gammainc(a, x) with respect to x."""
    return exp(xlogy(a - 1, x) - x - gammaln(a))


def _beta_density(a: Variable, b: Variable, x: Variable) -> Variable:
    """Derivative of betainc(a, b, x) with respect to x."""
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


def _log(x: Variable) -> Variable:
    """The logarithm of what is above 0: beside a density that is 0 there, 0."""
    return log(switch(gt(x, 0), x, 1))


def _log_size(x: Variable) -> Variable:
    return abs_(_log(x))


def _beta_length(a: Variable, b: Variable, x: Variable) -> Variable:
    """Distance in the first parameter over which an incomplete beta function changes little."""
    return a / (1 + sqrt(a) + a * _log_size(x))


# Second derivatives do not depend on the order in which they are taken.
_betainc_mixed = by_differences(
    lambda a, b, x: betainc_da(a, b, x), 1, lambda a, b, x: _beta_length(b, a, 1 - x)
)
# Zeta functions have a pole at 1.
_zeta_order = by_differences(
    lambda s, q: zeta(s, q), 0, lambda s, q: minimum((s - 1) / 6, 1 / (1 + _log_size(q)))
)


# From here on three terms of the asymptotic series are enough.
_FAR = 64.0


def _digamma_step(x: TensorVariable, m: TensorVariable) -> TensorVariable:
    """digamma(x + m) - digamma(x), whose terms are nearly the same where x is large."""
    far = ge(minimum(x, x + m), _FAR) & lt(m, np.inf)
    u, v = 1 / switch(far, x, _FAR), 1 / switch(far, x + m, _FAR)
    inside = switch(far, m, 0)
    # u - v, u^2 - v^2 and so on have it as a factor.
    step, total, squares = inside * u * v, u + v, u * u + v * v
    series = 1 / 12 - squares / 120 + (squares * squares - (u * v) ** 2) / 252
    difference = log1p(inside * u) + step * (0.5 + total * series)
    return switch(far, difference, digamma(x + m) - digamma(x))


def _rgamma_slope(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    """-rgamma(x) digamma(x); below a half its reflection, as digamma has poles where rgamma is 0."""
    low = lt(x, 0.5)
    below, above = switch(low, x, 0), switch(low, 1, x)
    reflected = cos(np.pi * below) * gamma(1 - below) - out * digamma(1 - below)
    return g * switch(low, reflected, -out * digamma(above))


def _t_density(df: TensorVariable, t: TensorVariable) -> TensorVariable:
    """Derivative of stdtr(df, t) with respect to t."""
    return exp(-0.5 * (df + 1) * log1p(t * t / df) - 0.5 * log(df) - betaln(0.5, 0.5 * df))


def _stdtrit_df(
    df: TensorVariable, p: TensorVariable, t: TensorVariable, g: TensorVariable
) -> TensorVariable:
    """By stdtr(df, t) = p. The tail is half of betainc(df / 2, 1/2, df / (df + t^2)), or by its complement."""
    square = t * t
    near = lt(square, df)
    inside = betainc_db(0.5, df / 2, switch(near, square / (df + square), 0.5))
    outside = betainc_da(df / 2, 0.5, switch(near, 0.5, df / (df + square)))
    by_shape = sign_(t) * switch(near, -inside, outside)
    return g * (0.25 * by_shape / _t_density(df, t) + t / (2 * df))


register_scipy("gamma", "Gamma function.", (lambda x, out, g: g * out * digamma(x),), forms_gamma.gamma)
register_scipy(
    "gammaln",
    "Logarithm of the magnitude of the gamma function.",
    (lambda x, out, g: g * digamma(x),),
    forms_gamma.gammaln,
)
register_scipy("digamma", "Derivative of gammaln.", (lambda x, out, g: g * trigamma(x),), forms_gamma.digamma)
register(
    "trigamma",
    lambda x: scipy_function("polygamma")(1, x),
    "Derivative of digamma.",
    forms_gamma.trigamma,
    dtypes=real_floats,
    grad=(lambda x, out, g: g * polygamma(2, x),),
)
register(
    "polygamma",
    _polygamma,
    "Derivative of order n of digamma.",
    forms_gamma.polygamma,
    dtypes=real_floats,
    grad=(Undefined("the order is a whole number"), lambda n, x, out, g: g * polygamma(n + 1, x)),
)
register_kernel(
    "zeta",
    "Hurwitz zeta function, the sum of (q + k)**-s over k >= 0.",
    reference=scipy_function("zeta"),
    grad=(_zeta_order, lambda s, q, out, g: -g * s * zeta(s + 1, q)),
)
register_scipy("rgamma", "1 / gamma(x), 0 at the poles.", (_rgamma_slope,), forms_gamma.rgamma)
register_scipy(
    "beta",
    "Beta function, gamma(a) * gamma(b) / gamma(a + b).",
    (
        lambda a, b, out, g: -g * out * _digamma_step(a, b),
        lambda a, b, out, g: -g * out * _digamma_step(b, a),
    ),
    forms_bessel.beta,
)
register_scipy(
    "betaln",
    "Logarithm of the magnitude of the beta function.",
    (
        lambda a, b, out, g: -g * _digamma_step(a, b),
        lambda a, b, out, g: -g * _digamma_step(b, a),
    ),
)
register_scipy(
    "poch",
    "Rising factorial, gamma(x + m) / gamma(x).",
    (
        lambda x, m, out, g: g * out * _digamma_step(x, m),
        lambda x, m, out, g: g * out * digamma(x + m),
    ),
)
register_scipy(
    "binom",
    "Binomial coefficient of real n and k.",
    (
        lambda n, k, out, g: g * out * _digamma_step(n - k + 1, k),
        lambda n, k, out, g: g * out * (digamma(n - k + 1) - digamma(k + 1)),
    ),
)
register_scipy(
    "gammainc",
    "Regularized lower incomplete gamma function of a and x.",
    (lambda a, x, out, g: g * gammainc_da(a, x), lambda a, x, out, g: g * _gamma_density(a, x)),
)
register_scipy(
    "gammaincc",
    "Regularized upper incomplete gamma function of a and x, 1 - gammainc(a, x).",
    (lambda a, x, out, g: -g * gammainc_da(a, x), lambda a, x, out, g: -g * _gamma_density(a, x)),
)
register_kernel(
    "gammainc_da",
    "Derivative of gammainc with respect to a.",
    grad=(
        by_differences(lambda a, x: gammainc_da(a, x), 0, lambda a, x: a / (1 + sqrt(a) + a * _log_size(x))),
        lambda a, x, out, g: g * _gamma_density(a, x) * (_log(x) - digamma(a)),
    ),
)
register_scipy(
    "gammaincinv",
    "The x for which gammainc(a, x) is y.",
    (
        lambda a, y, out, g: -g * gammainc_da(a, out) / _gamma_density(a, out),
        lambda a, y, out, g: g / _gamma_density(a, out),
    ),
)
register_scipy(
    "gammainccinv",
    "The x for which gammaincc(a, x) is y.",
    (
        lambda a, y, out, g: -g * gammainc_da(a, out) / _gamma_density(a, out),
        lambda a, y, out, g: -g / _gamma_density(a, out),
    ),
)
register_scipy(
    "betainc",
    "Regularized incomplete beta function of a, b and x.",
    (
        lambda a, b, x, out, g: g * betainc_da(a, b, x),
        lambda a, b, x, out, g: g * betainc_db(a, b, x),
        lambda a, b, x, out, g: g * _beta_density(a, b, x),
    ),
)
register_scipy(
    "betaincc",
    "Complement of betainc, 1 - betainc(a, b, x).",
    (
        lambda a, b, x, out, g: -g * betainc_da(a, b, x),
        lambda a, b, x, out, g: -g * betainc_db(a, b, x),
        lambda a, b, x, out, g: -g * _beta_density(a, b, x),
    ),
)
register_kernel(
    "betainc_da",
    "Derivative of betainc with respect to a.",
    grad=(
        by_differences(lambda a, b, x: betainc_da(a, b, x), 0, _beta_length),
        _betainc_mixed,
        lambda a, b, x, out, g: g * _beta_density(a, b, x) * (_log(x) - digamma(a) + digamma(a + b)),
    ),
)
register_kernel(
    "betainc_db",
    "Derivative of betainc with respect to b.",
    grad=(
        _betainc_mixed,
        by_differences(lambda a, b, x: betainc_db(a, b, x), 1, lambda a, b, x: _beta_length(b, a, 1 - x)),
        lambda a, b, x, out, g: g * _beta_density(a, b, x) * (_log(1 - x) - digamma(b) + digamma(a + b)),
    ),
)
register_scipy(
    "betaincinv",
    "The x for which betainc(a, b, x) is y.",
    (
        lambda a, b, y, out, g: -g * betainc_da(a, b, out) / _beta_density(a, b, out),
        lambda a, b, y, out, g: -g * betainc_db(a, b, out) / _beta_density(a, b, out),
        lambda a, b, y, out, g: g / _beta_density(a, b, out),
    ),
)
register_scipy(
    "stdtrit",
    "The t for which stdtr(df, t) is p: quantile of Student's t distribution of df degrees of freedom.",
    (_stdtrit_df, lambda df, p, out, g: g / _t_density(df, out)),
)

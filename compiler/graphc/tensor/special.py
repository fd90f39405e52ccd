# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions under the names of ``scipy.special`` and of PyTensor's ``tensor.special``.

Elementwise ones are rows of the table of operations (docs/operations.md). Those without vector code of our
own call SciPy's C code, through pointers: what uses one needs SciPy where it runs, artifacts too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axes
from graphc.ops.external import float_operand
from graphc.ops.math import lt, softplus, switch
from graphc.ops.softmax import LogSoftmax, Softmax
from graphc.tensor import distribution_functions
from graphc.tensor.distribution_functions import *  # noqa: F403
from graphc.tensor.math import (
    beta,
    betainc,
    betaincc,
    betaincinv,
    betaln,
    binom,
    cbrt,
    dawsn,
    digamma,
    ellipe,
    ellipk,
    entr,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfi,
    erfinv,
    exp1,
    exp2,
    expi,
    expit,
    expm1,
    exprel,
    gamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    hyp1f1,
    hyp2f1,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jn,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kl_div,
    kn,
    kv,
    kve,
    log1p,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    ndtri_exp,
    owens_t,
    poch,
    polygamma,
    psi,
    rel_entr,
    rgamma,
    sinc,
    spence,
    xlog1py,
    xlogy,
    y0,
    y1,
    yn,
    yv,
    zeta,
)
from graphc.tensor.reductions import logsumexp

if TYPE_CHECKING:
    from graphc.graph.tensor.like import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "beta",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "binom",
    "cbrt",
    "chi2sf",
    "dawsn",
    "digamma",
    "ellipe",
    "ellipk",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "exp1",
    "exp2",
    "expi",
    "expit",
    "expm1",
    "exprel",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammal",
    "gammaln",
    "gammau",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kn",
    "kv",
    "kve",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "poch",
    "polygamma",
    "psi",
    "rel_entr",
    "rgamma",
    "sinc",
    "softmax",
    "spence",
    "xlog1py",
    "xlogx",
    "xlogy",
    "xlogy0",
    "y0",
    "y1",
    "yn",
    "yv",
    "zeta",
]
__all__ += distribution_functions.__all__


def gammal(k: TensorLike, x: TensorLike) -> TensorVariable:
    """Lower incomplete gamma function, not regularized.

    Examples:
        >>> pt.gammal(1.0, 2.0).round(6).eval()
        array(0.864665)
    """
    return gammainc(k, x) * gamma(k)


def gammau(k: TensorLike, x: TensorLike) -> TensorVariable:
    """Upper incomplete gamma function, not regularized.

    Examples:
        >>> pt.gammau(1.0, 2.0).round(6).eval()
        array(0.135335)
    """
    return gammaincc(k, x) * gamma(k)


def xlogx(x: TensorLike) -> TensorVariable:
    """x log(x), 0 at 0.

    Examples:
        >>> pt.xlogx([0.0, 1.0]).eval()
        array([0., 0.])
    """
    x = as_tensor_variable(x)
    return xlogy(x, x)


def xlogy0(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Theano's name of ``xlogy``.

    Examples:
        >>> pt.xlogy0([0.0, 1.0], [0.0, 1.0]).eval()
        array([0., 0.])
    """
    return xlogy(x, y)


def chi2sf(x: TensorLike, k: TensorLike) -> TensorVariable:
    """Survival function of the chi-squared distribution with k degrees of freedom.

    Examples:
        >>> pt.chi2sf(3.0, 2).round(6).eval()
        array(0.22313)
    """
    x, k = float_operand(x), float_operand(k)
    return gammaincc(k / 2, x / 2)


def loggamma(x: TensorLike) -> TensorVariable:
    """Logarithm of gamma for positive x, NaN for negative ones (real operands; gammaln has the magnitude).

    Examples:
        >>> pt.loggamma([3.0]).round(6).eval()
        array([0.693147])
    """
    x = float_operand(x)
    return switch(lt(x, 0), np.nan, gammaln(x))


def factorial(n: TensorLike) -> TensorVariable:
    """gamma(n + 1), 0 for negative n.

    Examples:
        >>> pt.factorial([3, 4]).eval()
        array([ 6., 24.])
    """
    n = float_operand(n)
    return switch(lt(n, 0), 0, gamma(n + 1))


def multigammaln(a: TensorLike, d: int) -> TensorVariable:
    """Logarithm of the multivariate gamma function of dimension d.

    Examples:
        >>> pt.multigammaln(2.0, 1).round(6).eval()
        array(0.)
    """
    a = float_operand(a)
    terms = [gammaln(a - 0.5 * j) for j in range(int(d))]
    return d * (d - 1) / 4 * float(np.log(np.pi)) + sum(terms[1:], terms[0])


def log_expit(x: TensorLike) -> TensorVariable:
    """log(sigmoid(x)), without underflow.

    Examples:
        >>> pt.log_expit([0.0]).round(6).eval()
        array([-0.693147])
    """
    x = float_operand(x)
    return -softplus(-x)


def softmax(c: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """exp(c) / sum(exp(c)), without overflow.

    Args:
        c: array-like; integers become float64.
        axis: axes over which the result sums to 1; None for all.

    Examples:
        >>> pt.softmax([0.0, 0.0]).eval()
        array([0.5, 0.5])
    """
    c = as_tensor_variable(c)
    return Softmax(normalize_axes(axis, c.type.ndim, "softmax"))(c)


def log_softmax(c: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """log(softmax(c)), without overflow; arguments as `softmax`.

    Examples:
        >>> pt.log_softmax([0.0, 0.0]).round(6).eval()
        array([-0.693147, -0.693147])
    """
    c = as_tensor_variable(c)
    return LogSoftmax(normalize_axes(axis, c.type.ndim, "log_softmax"))(c)

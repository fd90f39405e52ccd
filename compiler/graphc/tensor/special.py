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
from graphc.ops.elementwise import OPS
from graphc.ops.external import float_operand
from graphc.ops.softmax import LogSoftmax, Softmax
from graphc.tensor import distribution_functions
from graphc.tensor.distribution_functions import *  # noqa: F403
from graphc.tensor.math import ALIASES
from graphc.tensor.reductions import logsumexp

if TYPE_CHECKING:
    from graphc.graph.tensor.like import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# Rows that scipy.special has, by its names.
_ELEMENTWISE = (
    *("erf", "erfc", "erfcx", "erfi", "erfinv", "erfcinv", "dawsn", "ndtr", "ndtri", "ndtri_exp", "log_ndtr"),
    "owens_t",
    *("gamma", "gammaln", "rgamma", "psi", "digamma", "polygamma", "zeta", "beta", "betaln", "poch", "binom"),
    *("gammainc", "gammaincc", "gammaincinv", "gammainccinv", "betainc", "betaincc", "betaincinv"),
    *("j0", "j1", "jn", "jv", "y0", "y1", "yn", "yv", "i0", "i0e", "i1", "i1e", "iv", "ive"),
    *("k0", "k0e", "k1", "k1e", "kn", "kv", "kve", "hyp2f1", "hyp1f1", "expi", "exp1", "exprel", "spence"),
    *("ellipk", "ellipe", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "logit", "expit", "sinc"),
    *("cbrt", "exp2", "expm1", "log1p"),
)
_ROWS = {name: OPS[ALIASES.get(name, name)] for name in _ELEMENTWISE}
globals().update(_ROWS)

_OWN: tuple[str, ...] = (
    "chi2sf",
    "factorial",
    "gammal",
    "gammau",
    "log_expit",
    "log_softmax",
    "loggamma",
    "multigammaln",
)
_OWN += ("xlogx", "xlogy0")
__all__ = [*_ROWS, *_OWN, "logsumexp", "softmax"]
__all__ += distribution_functions.__all__


def gammal(k: TensorLike, x: TensorLike) -> TensorVariable:
    """Lower incomplete gamma function, not regularized.

    Examples:
        >>> pt.gammal(1.0, 2.0).round(6).eval()
        array(0.864665)
    """
    return OPS["gammainc"](k, x) * OPS["gamma"](k)


def gammau(k: TensorLike, x: TensorLike) -> TensorVariable:
    """Upper incomplete gamma function, not regularized.

    Examples:
        >>> pt.gammau(1.0, 2.0).round(6).eval()
        array(0.135335)
    """
    return OPS["gammaincc"](k, x) * OPS["gamma"](k)


def xlogx(x: TensorLike) -> TensorVariable:
    """x log(x), 0 at 0.

    Examples:
        >>> pt.xlogx([0.0, 1.0]).eval()
        array([0., 0.])
    """
    x = as_tensor_variable(x)
    return OPS["xlogy"](x, x)


def xlogy0(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Theano's name of ``xlogy``.

    Examples:
        >>> pt.xlogy0([0.0, 1.0], [0.0, 1.0]).eval()
        array([0., 0.])
    """
    return OPS["xlogy"](x, y)


def chi2sf(x: TensorLike, k: TensorLike) -> TensorVariable:
    """Survival function of the chi-squared distribution with k degrees of freedom.

    Examples:
        >>> pt.chi2sf(3.0, 2).round(6).eval()
        array(0.22313)
    """
    x, k = float_operand(x), float_operand(k)
    return OPS["gammaincc"](k / 2, x / 2)


def loggamma(x: TensorLike) -> TensorVariable:
    """Logarithm of gamma for positive x, NaN for negative ones (real operands; gammaln has the magnitude).

    Examples:
        >>> pt.loggamma([3.0]).round(6).eval()
        array([0.693147])
    """
    x = float_operand(x)
    return OPS["switch"](OPS["lt"](x, 0), np.nan, OPS["gammaln"](x))


def factorial(n: TensorLike) -> TensorVariable:
    """gamma(n + 1), 0 for negative n.

    Examples:
        >>> pt.factorial([3, 4]).eval()
        array([ 6., 24.])
    """
    n = float_operand(n)
    return OPS["switch"](OPS["lt"](n, 0), 0, OPS["gamma"](n + 1))


def multigammaln(a: TensorLike, d: int) -> TensorVariable:
    """Logarithm of the multivariate gamma function of dimension d.

    Examples:
        >>> pt.multigammaln(2.0, 1).round(6).eval()
        array(0.)
    """
    a = float_operand(a)
    terms = [OPS["gammaln"](a - 0.5 * j) for j in range(int(d))]
    return d * (d - 1) / 4 * float(np.log(np.pi)) + sum(terms[1:], terms[0])


def log_expit(x: TensorLike) -> TensorVariable:
    """log(sigmoid(x)), without underflow.

    Examples:
        >>> pt.log_expit([0.0]).round(6).eval()
        array([-0.693147])
    """
    x = float_operand(x)
    return -OPS["softplus"](-x)


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

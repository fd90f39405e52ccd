# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions under the names of ``scipy.special`` and of PyTensor's ``tensor.special``.

Elementwise ones are rows of the table of operations (docs/operations.md). Those without vector code of our
own call SciPy's C code, through pointers: what uses one needs SciPy where it runs, artifacts too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, is_weak_scalar
from graphc.ops.dimshuffle import normalize_axes
from graphc.ops.external import ComplexSpecial, float_operand
from graphc.ops.math import (
    airy_ai,
    airy_aip,
    airy_bi,
    airy_bip,
    airye_ai,
    airye_aip,
    airye_bi,
    airye_bip,
    cast,
    complex,
    cos,
    ellipj_cn,
    ellipj_dn,
    ellipj_ph,
    ellipj_sn,
    exp,
    fresnel_c,
    fresnel_s,
    lt,
    mul,
    shichi_chi,
    shichi_shi,
    sici_ci,
    sici_si,
    sin,
    softplus,
    sph_legendre,
    sqr,
    switch,
)
from graphc.ops.reduce import LogSoftmax, Softmax
from graphc.tensor import distribution_functions
from graphc.tensor.compat import (
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
    ellipeinc,
    ellipk,
    ellipkinc,
    ellipkm1,
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
    stdtrit,
    xlog1py,
    xlogy,
    y0,
    y1,
    yn,
    yv,
    zeta,
)
from graphc.tensor.distribution_functions import *  # noqa: F403
from graphc.tensor.reductions import logsumexp

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "airy",
    "airye",
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
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
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
    "fresnel",
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
    "shichi",
    "sici",
    "sinc",
    "softmax",
    "spence",
    "sph_harm",
    "sph_harm_y",
    "stdtrit",
    "wofz",
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


# Functions with several results -----------------------------------------------------------------------------


def airy(x: TensorLike) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Airy functions and their derivatives: Ai, Ai', Bi, Bi'. Also of complex numbers.

    Each result that is used costs a call of SciPy's C code.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.airy(0.0)]
        [0.355028, -0.258819, 0.614927, 0.448288]
    """
    return airy_ai(x), airy_aip(x), airy_bi(x), airy_bip(x)


def airye(x: TensorLike) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Those of `airy`, scaled: the first two by ``exp(2/3 x sqrt(x))``, NaN for negative real numbers; the
    others by ``exp(-abs(real(2/3 x sqrt(x))))``, by complex x without a gradient.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.airye(1.0)]
        [0.263514, -0.309977, 0.619912, 0.478729]
    """
    return airye_ai(x), airye_aip(x), airye_bi(x), airye_bip(x)


def sici(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sin(t) / t and cos(t) / t, Si and Ci. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.sici(1.0)]
        [0.946083, 0.337404]
    """
    return sici_si(x), sici_ci(x)


def shichi(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sinh(t) / t and cosh(t) / t, Shi and Chi. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.shichi(1.0)]
        [1.057251, 0.837867]
    """
    return shichi_shi(x), shichi_chi(x)


def fresnel(z: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to z, S and C. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.fresnel(1.0)]
        [0.438259, 0.779893]
    """
    return fresnel_s(z), fresnel_c(z)


def ellipj(
    u: TensorLike, m: TensorLike
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Jacobi's elliptic functions sn, cn and dn of u, and the amplitude phi with ``ellipkinc(phi, m) = u``.

    Args:
        u: array-like.
        m: parameters between 0 and 1; NaN elsewhere.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.ellipj(0.5, 0.0)]
        [0.479426, 0.877583, 1.0, 0.5]
    """
    return ellipj_sn(u, m), ellipj_cn(u, m), ellipj_dn(u, m), ellipj_ph(u, m)


def sph_harm_y(n: TensorLike, m: TensorLike, theta: TensorLike, phi: TensorLike) -> TensorVariable:
    """Spherical harmonics, complex, with the Condon-Shortley phase.

    Computed by the recurrence in the degree, in time that grows with it, for degrees up to 1e7.

    Args:
        n: degrees, whole numbers; 0 where ``abs(m) > n``.
        m: orders, whole numbers.
        theta: polar angles, from 0 to pi.
        phi: azimuths.

    Examples:
        >>> pt.special.sph_harm_y(1, 0, 0.0, 0.0).round(6).eval()
        array(0.488603+0.j)
    """
    size, angle = sph_legendre(n, m, theta), float_operand(phi)
    turn = mul(m, cast(angle, size.type.dtype) if is_weak_scalar(angle) else angle)
    return complex(size * cos(turn), size * sin(turn))


def sph_harm(m: TensorLike, n: TensorLike, theta: TensorLike, phi: TensorLike) -> TensorVariable:
    """`sph_harm_y` with the arguments of SciPy before 1.17: order, degree, azimuth, polar angle.

    Examples:
        >>> pt.special.sph_harm(0, 1, 0.0, 0.0).round(6).eval()
        array(0.488603+0.j)
    """
    return sph_harm_y(n, m, phi, theta)


def wofz(z: TensorLike) -> TensorVariable:
    """Faddeeva function, ``exp(-z**2) erfc(-i z)``, complex. Of complex numbers SciPy computes it in Python.

    Examples:
        >>> pt.special.wofz(1.0).round(6).eval()
        array(0.367879+0.607158j)
    """
    z = float_operand(as_tensor_variable(z))
    if z.type.kind == "c":
        return ComplexSpecial("wofz")(z)
    return complex(exp(-sqr(z)), float(2 / np.sqrt(np.pi)) * dawsn(z))


# Functions put together from others -------------------------------------------------------------------------


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
    if int(d) < 1:
        raise ValueError(f"multigammaln: d must be at least 1, got {d}")
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

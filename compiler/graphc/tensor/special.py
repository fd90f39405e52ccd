# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions under the names of ``scipy.special`` and of PyTensor's ``tensor.special``.

Elementwise ones are rows of the table of operations (docs/operations.md). Those without vector code of our
own call SciPy's C code, through pointers: what uses one needs SciPy where it runs, artifacts too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor import convert
from graphc.hooks import publish as _publish
from graphc.ops import dimshuffle, external, math, reduce
from graphc.tensor.compat import beta as beta
from graphc.tensor.compat import betainc as betainc
from graphc.tensor.compat import betaincc as betaincc
from graphc.tensor.compat import betaincinv as betaincinv
from graphc.tensor.compat import betaln as betaln
from graphc.tensor.compat import binom as binom
from graphc.tensor.compat import cbrt as cbrt
from graphc.tensor.compat import dawsn as dawsn
from graphc.tensor.compat import digamma as digamma
from graphc.tensor.compat import ellipe as ellipe
from graphc.tensor.compat import ellipeinc as ellipeinc
from graphc.tensor.compat import ellipk as ellipk
from graphc.tensor.compat import ellipkinc as ellipkinc
from graphc.tensor.compat import ellipkm1 as ellipkm1
from graphc.tensor.compat import entr as entr
from graphc.tensor.compat import erf as erf
from graphc.tensor.compat import erfc as erfc
from graphc.tensor.compat import erfcinv as erfcinv
from graphc.tensor.compat import erfcx as erfcx
from graphc.tensor.compat import erfi as erfi
from graphc.tensor.compat import erfinv as erfinv
from graphc.tensor.compat import exp1 as exp1
from graphc.tensor.compat import exp2 as exp2
from graphc.tensor.compat import expi as expi
from graphc.tensor.compat import expit as expit
from graphc.tensor.compat import expm1 as expm1
from graphc.tensor.compat import exprel as exprel
from graphc.tensor.compat import gamma as gamma
from graphc.tensor.compat import gammainc as gammainc
from graphc.tensor.compat import gammaincc as gammaincc
from graphc.tensor.compat import gammainccinv as gammainccinv
from graphc.tensor.compat import gammaincinv as gammaincinv
from graphc.tensor.compat import gammaln as gammaln
from graphc.tensor.compat import hyp1f1 as hyp1f1
from graphc.tensor.compat import hyp2f1 as hyp2f1
from graphc.tensor.compat import i0 as i0
from graphc.tensor.compat import i0e as i0e
from graphc.tensor.compat import i1 as i1
from graphc.tensor.compat import i1e as i1e
from graphc.tensor.compat import iv as iv
from graphc.tensor.compat import ive as ive
from graphc.tensor.compat import j0 as j0
from graphc.tensor.compat import j1 as j1
from graphc.tensor.compat import jn as jn
from graphc.tensor.compat import jv as jv
from graphc.tensor.compat import k0 as k0
from graphc.tensor.compat import k0e as k0e
from graphc.tensor.compat import k1 as k1
from graphc.tensor.compat import k1e as k1e
from graphc.tensor.compat import kl_div as kl_div
from graphc.tensor.compat import kn as kn
from graphc.tensor.compat import kv as kv
from graphc.tensor.compat import kve as kve
from graphc.tensor.compat import log1p as log1p
from graphc.tensor.compat import log_ndtr as log_ndtr
from graphc.tensor.compat import logit as logit
from graphc.tensor.compat import ndtr as ndtr
from graphc.tensor.compat import ndtri as ndtri
from graphc.tensor.compat import ndtri_exp as ndtri_exp
from graphc.tensor.compat import owens_t as owens_t
from graphc.tensor.compat import poch as poch
from graphc.tensor.compat import polygamma as polygamma
from graphc.tensor.compat import psi as psi
from graphc.tensor.compat import rel_entr as rel_entr
from graphc.tensor.compat import rgamma as rgamma
from graphc.tensor.compat import sinc as sinc
from graphc.tensor.compat import spence as spence
from graphc.tensor.compat import stdtrit as stdtrit
from graphc.tensor.compat import xlog1py as xlog1py
from graphc.tensor.compat import xlogy as xlogy
from graphc.tensor.compat import y0 as y0
from graphc.tensor.compat import y1 as y1
from graphc.tensor.compat import yn as yn
from graphc.tensor.compat import yv as yv
from graphc.tensor.compat import zeta as zeta
from graphc.tensor.distribution_functions import *  # noqa: F403
from graphc.tensor.reductions import logsumexp as logsumexp

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


# Functions with several results -----------------------------------------------------------------------------


def airy(x: TensorLike) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Airy functions and their derivatives: Ai, Ai', Bi, Bi'. Also of complex numbers.

    Each result that is used costs a call of SciPy's C code.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.airy(0.0)]
        [0.355028, -0.258819, 0.614927, 0.448288]
    """
    return external.airy_ai(x), external.airy_aip(x), external.airy_bi(x), external.airy_bip(x)


def airye(x: TensorLike) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Those of `airy`, scaled: the first two by ``exp(2/3 x sqrt(x))``, NaN for negative real numbers; the
    others by ``exp(-abs(real(2/3 x sqrt(x))))``, by complex x without a gradient.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.airye(1.0)]
        [0.263514, -0.309977, 0.619912, 0.478729]
    """
    return external.airye_ai(x), external.airye_aip(x), external.airye_bi(x), external.airye_bip(x)


def sici(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sin(t) / t and cos(t) / t, Si and Ci. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.sici(1.0)]
        [0.946083, 0.337404]
    """
    return external.sici_si(x), external.sici_ci(x)


def shichi(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sinh(t) / t and cosh(t) / t, Shi and Chi. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.shichi(1.0)]
        [1.057251, 0.837867]
    """
    return external.shichi_shi(x), external.shichi_chi(x)


def fresnel(z: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to z, S and C. Also of complex numbers.

    Examples:
        >>> [v.round(6).eval().tolist() for v in pt.special.fresnel(1.0)]
        [0.438259, 0.779893]
    """
    return external.fresnel_s(z), external.fresnel_c(z)


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
    return (
        external.ellipj_sn(u, m),
        external.ellipj_cn(u, m),
        external.ellipj_dn(u, m),
        external.ellipj_ph(u, m),
    )


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
    size, angle = external.sph_legendre(n, m, theta), external.float_operand(phi)
    turn = math.mul(m, math.cast(angle, size.type.dtype) if convert.is_weak_scalar(angle) else angle)
    return math.complex(size * math.cos(turn), size * math.sin(turn))


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
    z = external.float_operand(convert.as_tensor_variable(z))
    if z.type.kind == "c":
        return external.ComplexSpecial("wofz")(z)
    return math.complex(math.exp(-math.sqr(z)), float(2 / np.sqrt(np.pi)) * dawsn(z))


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
    x = convert.as_tensor_variable(x)
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
    x, k = external.float_operand(x), external.float_operand(k)
    return gammaincc(k / 2, x / 2)


def loggamma(x: TensorLike) -> TensorVariable:
    """Logarithm of gamma for positive x, NaN for negative ones (real operands; gammaln has the magnitude).

    Examples:
        >>> pt.loggamma([3.0]).round(6).eval()
        array([0.693147])
    """
    x = external.float_operand(x)
    return math.switch(math.lt(x, 0), np.nan, gammaln(x))


def factorial(n: TensorLike) -> TensorVariable:
    """gamma(n + 1), 0 for negative n.

    Examples:
        >>> pt.factorial([3, 4]).eval()
        array([ 6., 24.])
    """
    n = external.float_operand(n)
    return math.switch(math.lt(n, 0), 0, gamma(n + 1))


def multigammaln(a: TensorLike, d: int) -> TensorVariable:
    """Logarithm of the multivariate gamma function of dimension d.

    Examples:
        >>> pt.multigammaln(2.0, 1).round(6).eval()
        array(0.)
    """
    a = external.float_operand(a)
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
    x = external.float_operand(x)
    return -math.softplus(-x)


def softmax(c: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """exp(c) / sum(exp(c)), without overflow.

    Args:
        c: array-like; integers become float64.
        axis: axes over which the result sums to 1; None for all.

    Examples:
        >>> pt.softmax([0.0, 0.0]).eval()
        array([0.5, 0.5])
    """
    c = convert.as_tensor_variable(c)
    return reduce.Softmax(dimshuffle.normalize_axes(axis, c.type.ndim, "softmax"))(c)


def log_softmax(c: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """log(softmax(c)), without overflow; arguments as `softmax`.

    Examples:
        >>> pt.log_softmax([0.0, 0.0]).round(6).eval()
        array([-0.693147, -0.693147])
    """
    c = convert.as_tensor_variable(c)
    return reduce.LogSoftmax(dimshuffle.normalize_axes(axis, c.type.ndim, "log_softmax"))(c)


_publish(globals(), imported=True)

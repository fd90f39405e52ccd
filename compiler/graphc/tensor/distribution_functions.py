# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distribution functions, transformations and losses of ``scipy.special``, put together from its others.

Operands are array-like and broadcast; gradients are those of the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import is_weak_scalar
from graphc.hooks import publish
from graphc.ops.elementwise import OPS
from graphc.ops.external import float_operand
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    betainc,
    binom,
    bitwise_and,
    eq,
    exp,
    expm1,
    exprel,
    floor,
    gammainc,
    gammaincc,
    ge,
    gt,
    le,
    log,
    log1p,
    lt,
    poch,
    sin,
    sqr,
    sqrt,
    switch,
)
from graphc.ops.math import pow as pow_

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _where(condition: TensorLike, x: TensorLike, y: TensorLike) -> TensorVariable:
    return switch(condition, x, y)


def _floor(x: TensorLike) -> TensorVariable:
    return floor(float_operand(x))


def _divisor(x: TensorVariable | float) -> tuple[TensorVariable | float, TensorVariable | bool]:
    """x with 1 in place of 0, and where that is."""
    if is_weak_scalar(x):
        return x or 1.0, x == 0
    none = eq(x, 0)
    return _where(none, 1.0, x), none


def lambertw(z: TensorLike, k: int = 0) -> TensorVariable:
    """The w with ``w exp(w) = z``, for real numbers.

    Args:
        z: array-like. (SciPy's function gives complex numbers; this one NaN where w is not real.)
        k: the branch: 0, at least -1, for z from -1/e on; or -1, at most -1, for z from -1/e to 0.

    Examples:
        >>> pt.lambertw([0.0, np.e]).eval()
        array([0., 1.])
    """
    if k not in (0, -1):
        raise ValueError(f"only the branches 0 and -1 of lambertw have real values, got k={k!r}")
    return OPS["lambertw1" if k else "lambertw0"](z)


# Distribution functions -------------------------------------------------------------------------------------


def bdtr(k: TensorLike, n: TensorLike, p: TensorLike) -> TensorVariable:
    """Distribution function of the binomial distribution: at most k successes in n trials.

    Examples:
        >>> pt.bdtr(1, 2, 0.5).eval()
        array(0.75)
    """
    k, n, p = _floor(k), float_operand(n), float_operand(p)
    inner = betainc(n - k, k + 1, 1 - p)
    return _where(eq(k, n), 1.0, _where(gt(k, n), np.nan, inner))


def bdtrc(k: TensorLike, n: TensorLike, p: TensorLike) -> TensorVariable:
    """More than k successes in n trials.

    Examples:
        >>> pt.bdtrc(1, 2, 0.5).eval()
        array(0.25)
    """
    k, n, p = _floor(k), float_operand(n), float_operand(p)
    inner = betainc(k + 1, n - k, p)
    return _where(eq(k, n), 0.0, _where(gt(k, n), np.nan, inner))


def nbdtr(k: TensorLike, n: TensorLike, p: TensorLike) -> TensorVariable:
    """Distribution function of the negative binomial distribution: at most k failures before n successes.

    Examples:
        >>> pt.nbdtr(0, 1, 0.5).eval()
        array(0.5)
    """
    k = _floor(k)
    return betainc(n, k + 1, p)


def nbdtrc(k: TensorLike, n: TensorLike, p: TensorLike) -> TensorVariable:
    """More than k failures before n successes.

    Examples:
        >>> pt.nbdtrc(0, 1, 0.5).eval()
        array(0.5)
    """
    k = _floor(k)
    return betainc(k + 1, n, 1 - float_operand(p))


def pdtr(k: TensorLike, m: TensorLike) -> TensorVariable:
    """Distribution function of the Poisson distribution of mean m.

    Examples:
        >>> pt.pdtr(0, 1.0).round(6).eval()
        array(0.367879)
    """
    return gammaincc(_floor(k) + 1, m)


def pdtrc(k: TensorLike, m: TensorLike) -> TensorVariable:
    """1 less `pdtr`, without cancellation.

    Examples:
        >>> pt.pdtrc(0, 1.0).round(6).eval()
        array(0.632121)
    """
    return gammainc(_floor(k) + 1, m)


def chdtr(v: TensorLike, x: TensorLike) -> TensorVariable:
    """Distribution function of the chi-squared distribution of v degrees of freedom.

    Examples:
        >>> pt.chdtr(2, 3.0).round(6).eval()
        array(0.77687)
    """
    return gammainc(float_operand(v) / 2, float_operand(x) / 2)


def chdtrc(v: TensorLike, x: TensorLike) -> TensorVariable:
    """1 less `chdtr`, without cancellation.

    Examples:
        >>> pt.chdtrc(2, 3.0).round(6).eval()
        array(0.22313)
    """
    return gammaincc(float_operand(v) / 2, float_operand(x) / 2)


def gdtr(a: TensorLike, b: TensorLike, x: TensorLike) -> TensorVariable:
    """Distribution function of the gamma distribution of rate a and shape b.

    Examples:
        >>> pt.gdtr(1.0, 1.0, 2.0).round(6).eval()
        array(0.864665)
    """
    return gammainc(b, float_operand(a) * float_operand(x))


def gdtrc(a: TensorLike, b: TensorLike, x: TensorLike) -> TensorVariable:
    """1 less `gdtr`, without cancellation.

    Examples:
        >>> pt.gdtrc(1.0, 1.0, 2.0).round(6).eval()
        array(0.135335)
    """
    return gammaincc(b, float_operand(a) * float_operand(x))


def fdtr(dfn: TensorLike, dfd: TensorLike, x: TensorLike) -> TensorVariable:
    """Distribution function of the F distribution of dfn and dfd degrees of freedom.

    Examples:
        >>> pt.fdtr(1, 1, 1.0).eval()
        array(0.5)
    """
    dfn, dfd, x = float_operand(dfn), float_operand(dfd), float_operand(x)
    scaled = dfn * x
    return betainc(dfn / 2, dfd / 2, scaled / (dfd + scaled))


def fdtrc(dfn: TensorLike, dfd: TensorLike, x: TensorLike) -> TensorVariable:
    """1 less `fdtr`, without cancellation.

    Examples:
        >>> pt.fdtrc(1, 1, 1.0).eval()
        array(0.5)
    """
    dfn, dfd, x = float_operand(dfn), float_operand(dfd), float_operand(x)
    return betainc(dfd / 2, dfn / 2, dfd / (dfd + dfn * x))


def stdtr(df: TensorLike, t: TensorLike) -> TensorVariable:
    """Distribution function of Student's t distribution of df degrees of freedom.

    Examples:
        >>> pt.stdtr(3, 0.0).eval()
        array(0.5)
    """
    df, t = float_operand(df), float_operand(t)
    square = t * t
    # The tail, from the smaller one of two complementary arguments.
    near = lt(square, df)
    tail = 0.5 * _where(
        near,
        1 - betainc(0.5, df / 2, _where(near, square / (df + square), 0.5)),
        betainc(df / 2, 0.5, _where(near, 0.5, df / (df + square))),
    )
    return _where(gt(df, 0), _where(lt(t, 0), tail, 1 - tail), np.nan)


# Transformations, losses, counts ----------------------------------------------------------------------------


def boxcox(x: TensorLike, lmbda: TensorLike) -> TensorVariable:
    """``(x**lmbda - 1) / lmbda``, log(x) for ``lmbda = 0``.

    Examples:
        >>> pt.boxcox([1.0, 4.0], 0.5).eval()
        array([0., 2.])
    """
    return _scaled_expm1(log(float_operand(x)), lmbda)


def boxcox1p(x: TensorLike, lmbda: TensorLike) -> TensorVariable:
    """`boxcox` of 1 + x.

    Examples:
        >>> pt.boxcox1p([0.0, 3.0], 0.5).eval()
        array([0., 2.])
    """
    return _scaled_expm1(log1p(float_operand(x)), lmbda)


def _scaled_expm1(y: TensorVariable, lmbda: TensorLike) -> TensorVariable:
    """expm1(lmbda y) / lmbda, which is y exprel(lmbda y)."""
    lmbda = float_operand(lmbda)
    return y * exprel(lmbda * y)


def inv_boxcox(y: TensorLike, lmbda: TensorLike) -> TensorVariable:
    """The x with ``boxcox(x, lmbda) = y``.

    Examples:
        >>> pt.inv_boxcox([0.0, 2.0], 0.5).eval()
        array([1., 4.])
    """
    return exp(_scaled_log1p(y, lmbda))


def inv_boxcox1p(y: TensorLike, lmbda: TensorLike) -> TensorVariable:
    """The x with ``boxcox1p(x, lmbda) = y``.

    Examples:
        >>> pt.inv_boxcox1p([0.0, 2.0], 0.5).eval()
        array([0., 3.])
    """
    return expm1(_scaled_log1p(y, lmbda))


def _scaled_log1p(y: TensorLike, lmbda: TensorLike) -> TensorVariable:
    """log1p(lmbda y) / lmbda, y for ``lmbda = 0``."""
    y, lmbda = float_operand(y), float_operand(lmbda)
    divisor, none = _divisor(lmbda)
    return _where(none, y, log1p(lmbda * y) / divisor)


def huber(delta: TensorLike, r: TensorLike) -> TensorVariable:
    """``r**2 / 2`` up to delta, ``delta (abs(r) - delta / 2)`` beyond; infinite for negative delta.

    Examples:
        >>> pt.huber(1.0, [0.5, 3.0]).eval()
        array([0.125, 2.5  ])
    """
    delta, r = float_operand(delta), float_operand(r)
    size = abs_(r)
    loss = _where(le(size, delta), 0.5 * r * r, delta * (size - 0.5 * delta))
    return _where(lt(delta, 0), np.inf, loss)


def pseudo_huber(delta: TensorLike, r: TensorLike) -> TensorVariable:
    """``delta**2 (sqrt(1 + (r / delta)**2) - 1)``; infinite for negative delta.

    Examples:
        >>> pt.pseudo_huber(1.0, [0.0, 3.0]).round(4).eval()
        array([0.    , 2.1623])
    """
    delta, r = float_operand(delta), float_operand(r)
    divisor, none = _divisor(delta)
    square = sqr(r / divisor)
    # sqrt(1 + s) - 1 without cancellation.
    loss = _where(none, 0.0, delta * delta * (square / (sqrt(1 + square) + 1)))
    return _where(lt(delta, 0), np.inf, loss)


def exp10(x: TensorLike) -> TensorVariable:
    """10 to the power x.

    Examples:
        >>> pt.exp10([1.0, 2.0]).eval()
        array([ 10., 100.])
    """
    return pow_(10.0, float_operand(x))


def cosm1(x: TensorLike) -> TensorVariable:
    """cos(x) - 1 without cancellation.

    Examples:
        >>> pt.cosm1([0.0, 1e-8]).eval()
        array([-0.e+00, -5.e-17])
    """
    half = sin(0.5 * float_operand(x))
    return -2 * half * half


def comb(N: TensorLike, k: TensorLike, *, repetition: bool = False) -> TensorVariable:
    """Number of sets of k of N things, as a float; 0 for negative operands and k above N.

    Examples:
        >>> pt.comb(5, 2).eval()
        array(10.)
    """
    n, k = float_operand(N), float_operand(k)
    if repetition:
        return _where(bitwise_and(eq(n, 0), eq(k, 0)), 1.0, comb(n + k - 1, k))
    valid = bitwise_and(bitwise_and(le(k, n), ge(k, 0)), ge(n, 0))
    return _where(valid, binom(n, k), 0.0)


def perm(N: TensorLike, k: TensorLike) -> TensorVariable:
    """Number of sequences of k of N things, as a float; 0 for negative operands and k above N.

    Examples:
        >>> pt.perm(5, 2).eval()
        array(20.)
    """
    n, k = float_operand(N), float_operand(k)
    valid = bitwise_and(bitwise_and(le(k, n), ge(k, 0)), ge(n, 0))
    return _where(valid, poch(n - k + 1, k), 0.0)


publish(globals())

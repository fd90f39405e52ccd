# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: hypergeometric functions; exponential, trigonometric, Fresnel and elliptic integrals, Jacobi's
elliptic functions, and Legendre functions of spherical harmonics. SciPy's C code computes most of them.

Each result of a function that has several is a row of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.ops import math as elements
from graphc.ops.elementwise import Undefined, is_complex
from graphc.ops.external import (
    by_differences,
    ellipeinc_dm,
    ellipj_cn,
    ellipj_dn,
    ellipj_ph,
    ellipj_sn,
    ellipkinc_dm,
    register_kernel,
    register_part,
    register_scipy,
    sph_legendre,
)
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    cos,
    cosh,
    ellipe,
    ellipk,
    ellipkm1,
    eq,
    exp,
    exprel,
    gt,
    hyp1f1,
    hyp2f1,
    hyp2f1_da,
    hyp2f1_dc,
    log1p,
    lt,
    maximum,
    minimum,
    sin,
    sinc,
    sinh,
    sqr,
    sqrt,
    switch,
)
from graphc.ops.math import round as round_
from graphc.ops.table import forms_bessel, forms_special

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable


def _spread_of(*parameters: TensorVariable) -> TensorVariable:
    """Distance in a parameter over which a hypergeometric function changes little, which grows like a
    power of others.
    """
    reaches = [log1p(abs_(p)) for p in parameters]
    return 1 / (1 + sum(reaches[1:], start=reaches[0]))


def _hyp2f1_length(
    a: TensorVariable, b: TensorVariable, c: TensorVariable, z: TensorVariable
) -> TensorVariable:
    """Before a pole at c = 0, -1, ... not far."""
    return minimum(_spread_of(a, b, c, 1 / (1 - z)), 2 * switch(gt(c, 0), c, abs_(c - round_(c))))


def _hyp1f1_length(a: TensorVariable, b: TensorVariable, x: TensorVariable) -> TensorVariable:
    return minimum(_spread_of(a, b, x), 2 * switch(gt(b, 0), b, abs_(b - round_(b))))


def _hyp2f1_by(place: int, derivative: str = "hyp2f1_da") -> Callable[..., Variable]:
    return by_differences(lambda a, b, c, z: getattr(elements, derivative)(a, b, c, z), place, _hyp2f1_length)


def _hyp2f1_da_z(*operands: TensorVariable) -> TensorVariable:
    a, b, c, z, _, g = operands
    above = (a + 1, b + 1, c + 1, z)
    return g * (b / c) * (hyp2f1(*above) + a * hyp2f1_da(*above))


def _hyp2f1_dc_z(*operands: TensorVariable) -> TensorVariable:
    a, b, c, z, _, g = operands
    above = (a + 1, b + 1, c + 1, z)
    return g * (a * b / c) * (hyp2f1_dc(*above) - hyp2f1(*above) / c)


def _spence(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    # log(x) / (1 - x)
    terms = [-1.0 * (-1) ** k / (k + 1) for k in range(_TERMS)]
    return g * _with_series(x - 1, terms, lambda t: log1p(t) / -t)


def _ellipk(m: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    terms = [np.pi / 2 * k * _SQUARES[k] for k in range(1, _TERMS)]
    return g * _with_series(m, terms, lambda t: (ellipe(t) / (1 - t) - ellipk(t)) / (2 * t))


def _ellipe(m: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    terms = [np.pi / 2 * k * _SQUARES[k] / (1 - 2 * k) for k in range(1, _TERMS)]
    return g * _with_series(m, terms, lambda t: (ellipe(t) - ellipk(t)) / (2 * t))


def _ellipkm1(p: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    """As `_ellipk`, without the difference 1 - m."""
    terms = [np.pi / 2 * k * _SQUARES[k] for k in range(1, _TERMS)]
    return -g * _with_series(1 - p, terms, lambda t: (ellipe(t) / p - ellipkm1(p)) / (2 * t))


def _over_itself(f: Callable[[TensorVariable], TensorVariable], x: TensorVariable) -> TensorVariable:
    """f(x) / x, 1 at 0, of complex numbers."""
    none = eq(x, 0)
    return switch(none, 1, f(x) / switch(none, 1, x))


def _si(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (_over_itself(sin, x) if is_complex(x) else sinc(x / np.pi))


def _shi(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (_over_itself(sinh, x) if is_complex(x) else 0.5 * (exprel(x) + exprel(-x)))


def _incomplete(by_m: Callable[..., Variable], power: float) -> tuple[Callable[..., Variable], ...]:
    """Rules of an incomplete elliptic integral: what it is an integral of, and a kernel."""
    return (
        lambda phi, m, out, g: g * (1 - m * sqr(sin(phi))) ** power,
        lambda phi, m, out, g: g * by_m(phi, m),
    )


def _incomplete_dm(by_m: Callable[..., Variable], power: float) -> tuple[Callable[..., Variable], ...]:
    """Those of its derivative by m; before 1 - m sin(phi)^2 = 0 is not far."""

    def length(phi: TensorVariable, m: TensorVariable) -> TensorVariable:
        return (1 - m * switch(gt(abs_(phi), 1.5), 1, sqr(sin(phi)))) / (4 + 4 * sqr(sin(phi)))

    def by_phi(
        phi: TensorVariable, m: TensorVariable, out: TensorVariable, g: TensorVariable
    ) -> TensorVariable:
        square = sqr(sin(phi))
        return -power * g * square * (1 - m * square) ** (power - 1)

    return by_phi, by_differences(by_m, 1, length)


def _of_amplitude(
    rule: Callable[[TensorVariable, TensorVariable, TensorVariable, TensorVariable], TensorVariable],
) -> Callable[..., Variable]:
    """Rule by m of a function of Jacobi's, from sn, cn, dn and the derivative of the amplitude, which is the
    phi with F(phi, m) = u: -dn times that of F by m.
    """

    def by_m(u: TensorVariable, m: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        sn, cn, dn = ellipj_sn(u, m), ellipj_cn(u, m), ellipj_dn(u, m)
        return g * rule(sn, cn, dn, -dn * ellipkinc_dm(ellipj_ph(u, m), m))

    return by_m


def _sph_legendre(
    n: TensorVariable, m: TensorVariable, theta: TensorVariable, out: TensorVariable, g: TensorVariable
) -> TensorVariable:
    """Half the difference of the neighbouring orders, which has no pole at 0."""
    up = sqrt(maximum((n - m) * (n + m + 1), 0)) * sph_legendre(n, m + 1, theta)
    down = sqrt(maximum((n + m) * (n - m + 1), 0)) * sph_legendre(n, m - 1, theta)
    # Out of 0 to pi the sine is taken as positive.
    return 0.5 * g * switch(lt(sin(theta), 0), down - up, up - down)


_TERMS = 20
# Squares of binomial(2 k, k) / 4**k, of which the series of elliptic integrals are made.
_SQUARES = [(math.comb(2 * k, k) / 4.0**k) ** 2 for k in range(_TERMS)]


def _with_series(
    t: TensorVariable, terms: Sequence[float], far: Callable[[TensorVariable], TensorVariable]
) -> TensorVariable:
    """A power series near 0, where a quotient cancels or is 0 / 0: its derivatives, too, are right there."""
    small = lt(abs_(t), 0.1)
    near, total = switch(small, t, 0), t.zeros_like()
    for term in reversed(terms):
        total = total * near + term
    return switch(small, total, far(switch(small, 0.5, t)))


register_scipy(
    "hyp2f1",
    "Gauss hypergeometric function F(a, b; c; z).",
    (
        lambda a, b, c, z, out, g: g * hyp2f1_da(a, b, c, z),
        lambda a, b, c, z, out, g: g * hyp2f1_da(b, a, c, z),
        lambda a, b, c, z, out, g: g * hyp2f1_dc(a, b, c, z),
        lambda a, b, c, z, out, g: g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, z),
    ),
)
register_kernel(
    "hyp2f1_da",
    "Derivative of hyp2f1 with respect to a, for z <= 1; NaN elsewhere.",
    grad=(_hyp2f1_by(0), _hyp2f1_by(1), _hyp2f1_by(2), _hyp2f1_da_z),
)
register_kernel(
    "hyp2f1_dc",
    "Derivative of hyp2f1 with respect to c, for z <= 1; NaN elsewhere.",
    grad=(
        _hyp2f1_by(2),
        lambda a, b, c, z, out, g: _hyp2f1_by(2)(b, a, c, z, out, g),
        _hyp2f1_by(2, "hyp2f1_dc"),
        _hyp2f1_dc_z,
    ),
)
register_scipy(
    "hyp1f1",
    "Confluent hypergeometric function of a, b and x.",
    (
        by_differences(lambda a, b, x: hyp1f1(a, b, x), 0, lambda a, b, x: _spread_of(a, b, x)),
        by_differences(lambda a, b, x: hyp1f1(a, b, x), 1, _hyp1f1_length),
        lambda a, b, x, out, g: g * (a / b) * hyp1f1(a + 1, b + 1, x),
    ),
)
register_scipy(
    "exprel",
    "(exp(x) - 1) / x, 1 at 0.",
    (lambda x, out, g: 0.5 * g * hyp1f1(2.0, 3.0, x),),
    forms_special.exprel,
)
register_scipy("expi", "Exponential integral Ei.", (lambda x, out, g: g * exp(x) / x,), forms_bessel.expi)
register_scipy("exp1", "Exponential integral E1.", (lambda x, out, g: -g * exp(-x) / x,))
register_scipy(
    "spence", "Integral of log(t) / (1 - t) from 1 to x, a dilogarithm.", (_spence,), forms_bessel.spence
)
register_scipy("ellipk", "Complete elliptic integral of the first kind of the parameter m.", (_ellipk,))
register_scipy("ellipe", "Complete elliptic integral of the second kind of the parameter m.", (_ellipe,))
register_scipy(
    "ellipkm1", "Complete elliptic integral of the first kind of the parameter 1 - p.", (_ellipkm1,)
)
register_scipy(
    "ellipkinc",
    "Incomplete elliptic integral of the first kind of the amplitude phi and the parameter m.",
    _incomplete(ellipkinc_dm, -0.5),
)
register_scipy(
    "ellipeinc",
    "Incomplete elliptic integral of the second kind of the amplitude phi and the parameter m.",
    _incomplete(ellipeinc_dm, 0.5),
)
register_kernel(
    "ellipkinc_dm", "Derivative of ellipkinc with respect to m.", grad=_incomplete_dm(ellipkinc_dm, -0.5)
)
register_kernel(
    "ellipeinc_dm", "Derivative of ellipeinc with respect to m.", grad=_incomplete_dm(ellipeinc_dm, 0.5)
)
register_part(
    "ellipj_sn",
    "The sine of Jacobi's amplitude.",
    (
        lambda u, m, out, g: g * ellipj_cn(u, m) * ellipj_dn(u, m),
        _of_amplitude(lambda sn, cn, dn, slope: cn * slope),
    ),
)
register_part(
    "ellipj_cn",
    "The cosine of Jacobi's amplitude.",
    (
        lambda u, m, out, g: -g * ellipj_sn(u, m) * ellipj_dn(u, m),
        _of_amplitude(lambda sn, cn, dn, slope: -sn * slope),
    ),
)
register_part(
    "ellipj_dn",
    "Jacobi's delta amplitude, sqrt(1 - m sn**2).",
    (
        lambda u, m, out, g: -g * m * ellipj_sn(u, m) * ellipj_cn(u, m),
        lambda u, m, out, g: _of_amplitude(
            lambda sn, cn, dn, slope: -0.5 * (sn * sn + 2 * m * sn * cn * slope) / dn
        )(u, m, out, g),
    ),
)
register_part(
    "ellipj_ph",
    "Jacobi's amplitude of u, for the parameter m.",
    (lambda u, m, out, g: g * ellipj_dn(u, m), _of_amplitude(lambda sn, cn, dn, slope: slope)),
)
register_part("sici_si", "Sine integral.", (_si,))
register_part("sici_ci", "Cosine integral.", (lambda x, out, g: g * cos(x) / x,))
register_part("shichi_shi", "Hyperbolic sine integral.", (_shi,))
register_part("shichi_chi", "Hyperbolic cosine integral.", (lambda x, out, g: g * cosh(x) / x,))
register_part(
    "fresnel_s", "Integral of sin(pi t**2 / 2) from 0 to x.", (lambda x, out, g: g * sin(np.pi / 2 * sqr(x)),)
)
register_part(
    "fresnel_c", "Integral of cos(pi t**2 / 2) from 0 to x.", (lambda x, out, g: g * cos(np.pi / 2 * sqr(x)),)
)
_WHOLE = Undefined("degree and order are whole numbers")
register_kernel(
    "sph_legendre",
    "Legendre function of cos(theta), normalized on the sphere, of degree n and order m.",
    grad=(_WHOLE, _WHOLE, _sph_legendre),
)

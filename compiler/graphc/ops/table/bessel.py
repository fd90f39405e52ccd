# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: Bessel and Airy functions. SciPy's C code computes them; it is loaded when such code is.

Derivatives are those of the NIST Digital Library of Mathematical Functions, 10.6 and 10.29, as differences of
neighbouring orders, which have no pole at 0. By the order they are found by differences.

Slopes of Airy functions that are scaled by exponentials cancel far out; there they are those of the asymptotic
series (9.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops import math
from graphc.ops.elementwise import is_complex
from graphc.ops.external import (
    airy_ai,
    airy_aip,
    airy_bi,
    airy_bip,
    airye_ai,
    airye_aip,
    airye_bi,
    airye_bip,
    by_differences,
    floats_or_double,
    register_part,
    register_scipy,
)
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    gt,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kv,
    kve,
    log,
    log1p,
    sqrt,
    switch,
    y0,
    y1,
    yv,
)
from graphc.ops.math import sign as sign_
from graphc.ops.table import forms_bessel, forms_special

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphc.graph.basic import Variable
    from graphc.graph.tensor.variable import TensorVariable


def _by_order(name: str) -> Callable[..., Variable]:
    """Rule for the order. Near 0 and infinity these functions are powers of x, far out of the order, too."""
    return by_differences(
        lambda v, x: getattr(math, name)(v, x),
        0,
        lambda v, x: 1 / (1 + abs_(log(abs_(x) / 2)) + log1p(abs_(v))),
    )


def _of_orders(name: str, sign: float) -> Callable[..., Variable]:
    """Rule for orders v: half of f(v - 1) + sign * f(v + 1)."""

    def rule(v: TensorVariable, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        f = getattr(math, name)
        above = f(v + 1, x)
        return 0.5 * g * (f(v - 1, x) + above if sign > 0 else f(v - 1, x) - above)

    return rule


def _ive(v: TensorVariable, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (0.5 * (ive(v - 1, x) + ive(v + 1, x)) - sign_(x) * out)


def _kve(v: TensorVariable, x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (out - 0.5 * (kve(v - 1, x) + kve(v + 1, x)))


# Of the asymptotic series of Airy functions in 1 / zeta, zeta = 2/3 x**1.5, and of their derivatives.
_U = [1.0]
for _k in range(1, 9):
    _U.append(_U[-1] * (6 * _k - 5) * (6 * _k - 3) * (6 * _k - 1) / (216 * _k * (2 * _k - 1)))
_V = [(1 + 6 * k) / (1 - 6 * k) * u for k, u in enumerate(_U)]


def _airye(kind: str) -> Callable[..., Variable]:
    """Rule for a scaled Airy function: what is scaled has the derivative of ``airy``, and the scale its own."""
    grows, primed = kind[0] == "b", kind[-1] == "p"
    factor = (1.0 if grows else -1.0 if primed else 1.0) / (1.0 if grows else 2.0) / float(np.sqrt(np.pi))
    sign, power = 1.0 if grows else -1.0, 0.25 if primed else -0.25
    terms = [factor * sign**k * c * (power - 1.5 * k) for k, c in enumerate(_V if primed else _U)]

    def rule(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
        ai, aip = (airye_bi, airye_bip) if grows else (airye_ai, airye_aip)
        inner = x * ai(x) if primed else aip(x)
        if is_complex(x):
            return g * (inner + sqrt(x) * out)
        right, far = gt(x, 0), gt(x, 60)
        root = switch(right, sqrt(switch(right, x, 1)), 0)
        near = inner - root * out if grows else inner + root * out
        beyond = switch(far, x, 60)
        inverse = 1.5 * beyond**-1.5
        total = x.zeros_like()
        for term in reversed(terms):
            total = total * inverse + term
        return g * switch(far, total * beyond ** (power - 1), near)

    return rule


register_scipy("j0", "Bessel function of the first kind of order 0.", (lambda x, out, g: -g * j1(x),))
register_scipy(
    "j1", "Bessel function of the first kind of order 1.", (lambda x, out, g: 0.5 * g * (j0(x) - jv(2, x)),)
)
register_scipy("jv", "Bessel function of the first kind of order v.", (_by_order("jv"), _of_orders("jv", -1)))
register_scipy("y0", "Bessel function of the second kind of order 0.", (lambda x, out, g: -g * y1(x),))
register_scipy(
    "y1", "Bessel function of the second kind of order 1.", (lambda x, out, g: 0.5 * g * (y0(x) - yv(2, x)),)
)
register_scipy(
    "yv", "Bessel function of the second kind of order v.", (_by_order("yv"), _of_orders("yv", -1))
)
register_scipy(
    "i0",
    "Modified Bessel function of the first kind of order 0.",
    (lambda x, out, g: g * i1(x),),
    forms_bessel.modified_bessel(0, scaled=False),
    floats_or_double,
)
register_scipy(
    "i1",
    "Modified Bessel function of the first kind of order 1.",
    (lambda x, out, g: 0.5 * g * (i0(x) + iv(2, x)),),
    forms_bessel.modified_bessel(1, scaled=False),
)
register_scipy(
    "iv", "Modified Bessel function of the first kind of order v.", (_by_order("iv"), _of_orders("iv", 1))
)
register_scipy(
    "i0e",
    "exp(-abs(x)) * i0(x).",
    (lambda x, out, g: g * (i1e(x) - sign_(x) * out),),
    forms_bessel.modified_bessel(0, scaled=True),
)
register_scipy(
    "i1e",
    "exp(-abs(x)) * i1(x).",
    (lambda x, out, g: g * (0.5 * (i0e(x) + ive(2, x)) - sign_(x) * out),),
    forms_bessel.modified_bessel(1, scaled=True),
)
register_scipy("ive", "exp(-abs(x)) * iv(v, x).", (_by_order("ive"), _ive))
register_scipy(
    "k0",
    "Modified Bessel function of the second kind of order 0.",
    (lambda x, out, g: -g * k1(x),),
    forms_special.with_small("k0", forms_special.log_of_two_over),
)
register_scipy(
    "k1",
    "Modified Bessel function of the second kind of order 1.",
    (lambda x, out, g: -0.5 * g * (k0(x) + kv(2, x)),),
    forms_special.with_small("k1", forms_special.reciprocal),
)
register_scipy(
    "kv",
    "Modified Bessel function of the second kind of order v.",
    (_by_order("kv"), lambda v, x, out, g: -_of_orders("kv", 1)(v, x, out, g)),
)
register_scipy(
    "k0e",
    "exp(x) * k0(x).",
    (lambda x, out, g: g * (out - k1e(x)),),
    forms_special.with_small("k0e", forms_special.log_of_two_over),
)
register_scipy(
    "k1e",
    "exp(x) * k1(x).",
    (lambda x, out, g: g * (out - 0.5 * (k0e(x) + kve(2, x))),),
    forms_special.with_small("k1e", forms_special.reciprocal),
)
register_scipy("kve", "exp(x) * kv(v, x).", (_by_order("kve"), _kve))
register_part("airy_ai", "Airy function Ai.", (lambda x, out, g: g * airy_aip(x),))
register_part("airy_aip", "Derivative of Ai.", (lambda x, out, g: g * x * airy_ai(x),))
register_part("airy_bi", "Airy function Bi.", (lambda x, out, g: g * airy_bip(x),))
register_part("airy_bip", "Derivative of Bi.", (lambda x, out, g: g * x * airy_bi(x),))
_UP, _DOWN = "exp(2/3 x sqrt(x))", "exp(-abs(2/3 x sqrt(x)))"
for _part, _scale in (("ai", _UP), ("aip", _UP), ("bi", _DOWN), ("bip", _DOWN)):
    register_part(
        f"airye_{_part}",
        f"airy_{_part}(x) {_scale}, NaN for the first kind of negative numbers.",
        (_airye(_part),),
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: Bessel functions. SciPy's C code computes them; it is loaded when such code is.

Derivatives are those of the NIST Digital Library of Mathematical Functions, 10.6 and 10.29, as differences of
neighbouring orders, which have no pole at 0. By the order they are found by differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ops import forms_bessel, forms_special, math
from graphc.ops.external import by_differences, floats_or_double, register_scipy
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
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
    y0,
    y1,
    yv,
)
from graphc.ops.math import sign as sign_

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


register_scipy("j0", "Bessel function of the first kind of order 0.", (lambda x, out, g: -g * j1(x),))
register_scipy(
    "j1",
    "Bessel function of the first kind of order 1.",
    (lambda x, out, g: 0.5 * g * (j0(x) - jv(2, x)),),
)
register_scipy("jv", "Bessel function of the first kind of order v.", (_by_order("jv"), _of_orders("jv", -1)))
register_scipy("y0", "Bessel function of the second kind of order 0.", (lambda x, out, g: -g * y1(x),))
register_scipy(
    "y1",
    "Bessel function of the second kind of order 1.",
    (lambda x, out, g: 0.5 * g * (y0(x) - yv(2, x)),),
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

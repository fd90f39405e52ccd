# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: hypergeometric functions, exponential and elliptic integrals. SciPy's C code computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops import forms_bessel, forms_special
from graphc.ops.elementwise import Undefined
from graphc.ops.external import NO_CLOSED_FORM, register_kernel, register_scipy
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable

_SECOND = "only first derivatives with respect to the parameters are known"


def _hyp2f1_z(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    out: TensorVariable,
    g: TensorVariable,
) -> TensorVariable:
    return g * (a * b / c) * pt.hyp2f1(a + 1, b + 1, c + 1, z)


def _hyp1f1_x(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, out: TensorVariable, g: TensorVariable
) -> TensorVariable:
    return g * (a / b) * pt.hyp1f1(a + 1, b + 1, x)


def _spence(x: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    at_one = pt.eq(x, 1)
    return g * pt.switch(at_one, -1, pt.log(x) / pt.switch(at_one, 1, 1 - x))


def _ellipk(m: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    at_zero = pt.eq(m, 0)
    safe = pt.switch(at_zero, 1, m)
    return g * pt.switch(at_zero, np.pi / 8, (pt.ellipe(m) / (1 - m) - out) / (2 * safe))


def _ellipe(m: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    at_zero = pt.eq(m, 0)
    return g * pt.switch(at_zero, -np.pi / 8, (out - pt.ellipk(m)) / (2 * pt.switch(at_zero, 1, m)))


register_scipy(
    "hyp2f1",
    "Gauss hypergeometric function F(a, b; c; z).",
    (
        lambda a, b, c, z, out, g: g * pt.hyp2f1_da(a, b, c, z),
        lambda a, b, c, z, out, g: g * pt.hyp2f1_da(b, a, c, z),
        lambda a, b, c, z, out, g: g * pt.hyp2f1_dc(a, b, c, z),
        _hyp2f1_z,
    ),
)
register_kernel(
    "hyp2f1_da", "Derivative of hyp2f1 with respect to a, for z <= 1; NaN elsewhere.", 4, absent=_SECOND
)
register_kernel(
    "hyp2f1_dc", "Derivative of hyp2f1 with respect to c, for z <= 1; NaN elsewhere.", 4, absent=_SECOND
)
register_scipy(
    "hyp1f1",
    "Confluent hypergeometric function of a, b and x.",
    (Undefined(NO_CLOSED_FORM), Undefined(NO_CLOSED_FORM), _hyp1f1_x),
)
register_scipy(
    "exprel",
    "(exp(x) - 1) / x, 1 at 0.",
    (lambda x, out, g: 0.5 * g * pt.hyp1f1(2.0, 3.0, x),),
    forms_special.exprel,
)
register_scipy("expi", "Exponential integral Ei.", (lambda x, out, g: g * pt.exp(x) / x,), forms_bessel.expi)
register_scipy("exp1", "Exponential integral E1.", (lambda x, out, g: -g * pt.exp(-x) / x,))
register_scipy(
    "spence", "Integral of log(t) / (1 - t) from 1 to x, a dilogarithm.", (_spence,), forms_bessel.spence
)
register_scipy("ellipk", "Complete elliptic integral of the first kind of the parameter m.", (_ellipk,))
register_scipy("ellipe", "Complete elliptic integral of the second kind of the parameter m.", (_ellipe,))

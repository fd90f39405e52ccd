# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: hypergeometric functions, exponential and elliptic integrals. SciPy's C code computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.ops import forms_bessel, forms_special
from graphc.ops import math as elements
from graphc.ops.external import by_differences, register_kernel, register_scipy
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    ellipe,
    ellipk,
    exp,
    gt,
    hyp1f1,
    hyp2f1,
    hyp2f1_da,
    hyp2f1_dc,
    log1p,
    lt,
    minimum,
    switch,
)
from graphc.ops.math import round as round_

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


def _hyp2f1_da_z(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    out: TensorVariable,
    g: TensorVariable,
) -> TensorVariable:
    above = (a + 1, b + 1, c + 1, z)
    return g * (b / c) * (hyp2f1(*above) + a * hyp2f1_da(*above))


def _hyp2f1_dc_z(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    out: TensorVariable,
    g: TensorVariable,
) -> TensorVariable:
    above = (a + 1, b + 1, c + 1, z)
    return g * (a * b / c) * (hyp2f1_dc(*above) - hyp2f1(*above) / c)


def _hyp2f1_z(
    a: TensorVariable,
    b: TensorVariable,
    c: TensorVariable,
    z: TensorVariable,
    out: TensorVariable,
    g: TensorVariable,
) -> TensorVariable:
    return g * (a * b / c) * hyp2f1(a + 1, b + 1, c + 1, z)


def _hyp1f1_x(
    a: TensorVariable, b: TensorVariable, x: TensorVariable, out: TensorVariable, g: TensorVariable
) -> TensorVariable:
    return g * (a / b) * hyp1f1(a + 1, b + 1, x)


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
        _hyp2f1_z,
    ),
)
register_kernel(
    "hyp2f1_da",
    "Derivative of hyp2f1 with respect to a, for z <= 1; NaN elsewhere.",
    4,
    grad=(_hyp2f1_by(0), _hyp2f1_by(1), _hyp2f1_by(2), _hyp2f1_da_z),
)
register_kernel(
    "hyp2f1_dc",
    "Derivative of hyp2f1 with respect to c, for z <= 1; NaN elsewhere.",
    4,
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
        _hyp1f1_x,
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of draws by their parameters, where a draw is a smooth function of a number drawn without them.

A draw of ``normal(loc, scale)`` is ``loc + scale * z``, and z does not depend on the parameters, so that its
derivatives are 1 and z. Written in terms of the draw itself, such rules need no second look at the generator.
Distributions drawn by rejection (gamma by its shape, beta, ...) have no such form here, and numbers that are
counted have no derivatives at all.

Source: D. Kingma, M. Welling, "Auto-Encoding Variational Bayes" (2014), section 2.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Maybe, Variable, Variables, describe
from graphc.graph.undefined import grad_undefined
from graphc.ops.create import ones_like
from graphc.ops.elementwise import unbroadcast
from graphc.ops.math import log, log1p

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.tensor.random.op import RandomVariable

Rule = Callable[..., "TensorVariable"]


def _one(x: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
    return ones_like(x)


def _deviation(x: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
    """(x - loc) / scale, of the last two parameters."""
    return (x - parameters[-2]) / parameters[-1]


_LOCATED: tuple[Rule | None, ...] = (_one, _deviation)
# For each distribution the derivatives by its parameters, as functions of the draw and the parameters.
RULES: dict[str, tuple[Rule | None, ...]] = {
    **dict.fromkeys(
        ("normal", "laplace", "gumbel", "logistic", "cauchy", "halfnormal", "halfcauchy"), _LOCATED
    ),
    "uniform": (
        lambda x, low, high: (high - x) / (high - low),
        lambda x, low, high: (x - low) / (high - low),
    ),
    "lognormal": (lambda x, mean, sigma: x, lambda x, mean, sigma: x * (log(x) - mean) / sigma),
    "exponential": (lambda x, scale: x / scale,),
    "rayleigh": (lambda x, scale: x / scale,),
    "t": (None, *_LOCATED),
    "truncexpon": (None, *_LOCATED),
    "gamma": (None, lambda x, shape, scale: x / scale),
    "invgamma": (None, lambda x, shape, scale: x / scale),
    "gengamma": (None, None, lambda x, alpha, p, lambd: x / lambd),
    "pareto": (lambda x, b, scale: -x * log(x / scale) / b, lambda x, b, scale: x / scale),
    "lomax": (lambda x, a: -(1 + x) * log1p(x) / a,),
    "weibull": (lambda x, a: -x * log(x) / a,),
    "power": (lambda x, a: -x * log(x) / a,),
    "vonmises": (_one, None),
}


def _has_derivative(op: RandomVariable) -> bool:
    return np.dtype(op.dtype).kind == "f" and bool(op.row.dtype == "float64")


def _rule(op: RandomVariable, i: int) -> Rule | None:
    rules = RULES.get(op.distribution, ())
    return rules[i] if i < len(rules) else None


def _reason(op: RandomVariable, i: int) -> str:
    """Reason for which there is no derivative by a parameter, and the remedy."""
    name = op.row.parameters[i].name
    known = [p.name for j, p in enumerate(op.row.parameters) if _rule(op, j) is not None]
    others = f"; those by {', '.join(known)} exist" if known else ""
    return (
        f"draws of {op.distribution} have no derivative by the parameter {name}{others}. "
        f"graphc.gradient.disconnected_grad({name}) treats it as a constant"
    )


def pullback(
    op: RandomVariable, inputs: Variables, outputs: Variables, cotangents: Maybe
) -> list[Variable | None]:
    """Cotangents of the parameters; without a rule undefined ones, an error only if they are asked for."""
    g = cotangents[1]
    _, sizes, parameters = op.split(inputs)
    terms: list[Variable | None] = [None] * (1 + len(sizes))
    for i, p in enumerate(parameters):
        rule = _rule(op, i)
        if g is None or not _has_derivative(op):
            terms.append(None)
        elif rule is None:
            terms.append(grad_undefined(op, 1 + len(sizes) + i, p, _reason(op, i)))
        else:
            terms.append(unbroadcast(g * rule(outputs[1], *parameters), p))
    return terms


def pushforward(
    op: RandomVariable, inputs: Variables, outputs: Variables, tangents: Maybe
) -> list[Variable | None]:
    """The tangent of the draws.

    Raises:
        UndefinedGradientError: a parameter without a rule has a tangent.
    """
    _, _, parameters = op.split(inputs)
    _, _, moves = op.split(tangents)
    total: TensorVariable | None = None
    for i, t in enumerate(moves):
        if t is None or not _has_derivative(op):
            continue
        rule = _rule(op, i)
        if rule is None:
            node = outputs[1].owner
            raise UndefinedGradientError(_reason(op, i) + describe(node.location if node else None))
        term = t * rule(outputs[1], *parameters)
        total = term if total is None else total + term
    return [None, total]

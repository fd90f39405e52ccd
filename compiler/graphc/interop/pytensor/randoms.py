# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random variables: the draws of NumPy's generators, bit for bit."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Apply

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts

# Distributions with the same parameters in the same order, and what graphc calls them.
_SAME = (
    "uniform", "triangular", "beta", "normal", "halfnormal", "lognormal", "gumbel", "logistic", "vonmises", "poisson",
    "geometric", "cauchy", "halfcauchy", "invgamma", "wald", "truncexpon", "t", "bernoulli", "laplace", "binomial",
    "gengamma", "multinomial", "categorical", "dirichlet", "exponential", "pareto", "hypergeometric", "weibull",
    "integers",
)  # fmt: skip
_RENAMED = {
    "nbinom": "negative_binomial",
    "negative_binomial": "negative_binomial",
    "beta_binomial": "betabinom",
}
DISTRIBUTIONS = {name: name for name in _SAME} | _RENAMED


@converts("RandomVariable")
def _(op: Any, node: Apply, inputs: Values, c: Converter) -> Any:
    """The generator after the draws, and the draws."""
    rng, size, *parameters = inputs
    if not type(op).__module__.startswith("pytensor."):
        raise NoConversion("a distribution with a sampler of its own")
    options: dict[str, Any] = {"rng": rng, "return_next_rng": True}
    if size is not None:
        length = node.inputs[1].type.shape[0]
        if length is None:
            raise NoConversion("the number of axes of the size is computed")
        options["size"] = [size[i] for i in range(length)]
    if op.name == "gamma":
        results = pt.random.gamma(parameters[0], scale=parameters[1], **options)
    elif op.name == "multivariate_normal":
        results = pt.random.multivariate_normal(
            *parameters, method=getattr(op, "method", "cholesky"), **options
        )
    elif op.name == "permutation" and node.inputs[2].type.ndim == 1 and size is None:
        results = pt.random.permutation(parameters[0], **options)
    elif op.name in DISTRIBUTIONS:
        results = getattr(pt.random, DISTRIBUTIONS[op.name])(*parameters, **options)
    else:
        raise NoConversion(f"graphc does not draw from {op.name} as PyTensor does")
    return list(results)

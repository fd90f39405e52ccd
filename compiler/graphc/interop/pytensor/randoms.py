# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random variables: the draws of NumPy's generators, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, sizes

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.basic import Variable
    from graphc.interop.pytensor.convert import Result

# Distributions with the same parameters in the same order, and what graphc calls them.
_SAME = (
    "uniform", "triangular", "beta", "normal", "halfnormal", "lognormal", "logistic", "vonmises", "poisson",
    "geometric", "invgamma", "wald", "truncexpon", "t", "bernoulli", "laplace", "binomial",
    "gengamma", "multinomial", "categorical", "dirichlet", "exponential", "hypergeometric", "weibull", "integers",
)  # fmt: skip
_RENAMED = {"nbinom": "negative_binomial", "negative_binomial": "negative_binomial"}
DISTRIBUTIONS = {name: name for name in _SAME} | _RENAMED
# How many of the first parameters are integers. NumPy truncates numbers with fractions to them, and PyTensor
# hands it one number at a time, or calls what numba makes of the same code.
_INTEGERS = {"multinomial": 1, "binomial": 1, "integers": 2}


def sampler_of(cls: type) -> type:
    """The class whose sampler a class of random variables has."""
    return next(base for base in cls.__mro__ if "rng_fn" in vars(base))


def _options(node: Apply, rng: object, size: Any) -> dict[str, Any]:
    """The options of graphc's functions: the generator, and the size where the node has one."""
    options: dict[str, Apply] = {"rng": rng, "return_next_rng": True}
    if size is not None:
        length = node.inputs[1].type.shape[0]
        if length is None:
            raise NoConversion("the number of axes of the size is computed")
        options["size"] = [size[i] for i in range(length)]
    return options


@converts("RandomVariable")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The generator after the draws, and the draws."""
    if not sampler_of(type(op)).__module__.startswith("pytensor."):
        raise NoConversion("a distribution with a sampler of its own")
    rng, size, *parameters = inputs
    options = _options(node, rng, size)
    count = _INTEGERS.get(op.name, 0)
    parameters[:count] = [
        pt.cast(x, "int64") if x.type.dtype.startswith("float") else x for x in parameters[:count]
    ]
    if op.name == "gamma":
        results = pt.random.gamma(parameters[0], scale=parameters[1], **options)
    elif op.name == "multivariate_normal":
        results = pt.random.multivariate_normal(
            *parameters, method=getattr(op, "method", "cholesky"), **options
        )
    elif op.name == "categorical":  # no mode of PyTensor looks for negative probabilities
        results = pt.random.categorical(pt.maximum(parameters[0], 0), **options)
    elif op.name == "permutation" and node.inputs[2].type.ndim == 1 and size is None:
        results = pt.random.permutation(parameters[0], **options)
    elif op.name in DISTRIBUTIONS:
        results = getattr(pt.random, DISTRIBUTIONS[op.name])(*parameters, **options)
    else:
        raise NoConversion(f"graphc does not draw from {op.name} as PyTensor does")
    return list(results)


@converts("ChoiceWithoutReplacement")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, a, *probabilities, shape = inputs
    length = shape.type.shape[0] if shape.type.ndim == 1 else None
    if size is not None or length is None or a.type.ndim != op.ndims_params[0]:
        raise NoConversion("several choices at once")
    drawn = pt.random.choice(
        a,
        size=[shape[i] for i in range(length)],
        replace=False,
        p=probabilities[0] if probabilities else None,
        rng=rng,
        return_next_rng=True,
    )
    return list(drawn)


def _cauchy(q: Variable) -> Variable:
    return -1 / pt.tan(math.pi * pt.switch(pt.gt(q, 0.5), q - 1, q))


# SciPy's draws of these are values of the inverse distribution function, which NumPy's are not.
_INVERSES: dict[str, Callable[..., Variable]] = {
    "CauchyRV": _cauchy,
    "HalfCauchyRV": lambda q: pt.tan(math.pi / 2 * q),
    "GumbelRV": lambda q: -pt.log(-pt.log(q)),
    "ParetoRV": lambda q, shape: (1 - q) ** (-1.0 / shape),
}


@converts(*_INVERSES)
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Of uniform numbers; the last parameter is a scale, and what comes before it a shift or a shape."""
    rng, size, first, scale = inputs
    high = pt.ones_like(pt.cast(first * scale, "float64")) if size is None else 1.0
    rng, drawn = pt.random.uniform(0.0, high, **_options(node, rng, size))
    name = type(op).__name__
    if name == "ParetoRV":
        return [rng, _INVERSES[name](drawn, first) * scale]
    return [rng, _INVERSES[name](drawn) * scale + first]


@converts("BetaBinomialRV")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """SciPy draws all probabilities first."""
    rng, size, n, a, b = inputs
    options = _options(node, rng, size)
    if size is None:
        options["size"] = sizes(n + a + b)
    options["rng"], p = pt.random.beta(a, b, **options)
    return list(pt.random.binomial(pt.cast(n, "int64"), p, **options))


@converts("BetaClippedRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """PyMC's beta variables are never exactly 0 or 1."""
    rng, size, *parameters = inputs
    rng, drawn = pt.random.beta(*parameters, **_options(node, rng, size))
    dtype = np.dtype(node.outputs[1].type.dtype)
    low, high = (np.nextafter(a, b, dtype=dtype) for a, b in ((0, 1), (1, 0)))
    return [rng, pt.clip(pt.cast(drawn, dtype.name), low, high)]


@converts("WaldRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """With a shift, which does not make more draws."""
    rng, size, mean, scale, shift = inputs
    rng, drawn = pt.random.wald(mean, scale, **_options(node, rng, size))
    return [rng, drawn + shift]


@converts("DiscreteUniformRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Both ends included. SciPy draws for several ranges one by one, each with bits of its own."""
    rng, size, lower, upper = inputs
    if not all(bound.type.broadcastable == (True,) * bound.type.ndim for bound in (lower, upper)):
        raise NoConversion("several ranges")
    low, high = (pt.cast(x, "int64") for x in (lower, upper + 1))
    return list(pt.random.integers(low, high, **_options(node, rng, size)))

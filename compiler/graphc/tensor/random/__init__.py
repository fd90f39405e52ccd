# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws: ``graphc.tensor.random``.

A generator is a variable (`graphc.shared` of a ``numpy.random.Generator``); drawing gives numbers and the
generator after them. `RandomStream` looks after the generators itself.
"""

from __future__ import annotations

from graphc.hooks import RenamedModule
from graphc.tensor.random import continuous, discrete, extremes
from graphc.tensor.random.continuous import (
    beta,
    cauchy,
    chisquare,
    exponential,
    f,
    gamma,
    gengamma,
    halfcauchy,
    halfnormal,
    invgamma,
    lognormal,
    noncentral_chisquare,
    noncentral_f,
    normal,
    random,
    standard_cauchy,
    standard_exponential,
    standard_gamma,
    standard_normal,
    standard_t,
    t,
    truncexpon,
    uniform,
)
from graphc.tensor.random.discrete import (
    bernoulli,
    betabinom,
    binomial,
    categorical,
    choice,
    dirichlet,
    geometric,
    hypergeometric,
    integers,
    logseries,
    multinomial,
    multivariate_normal,
    nbinom,
    negative_binomial,
    permutation,
    poisson,
    shuffle,
    zipf,
)
from graphc.tensor.random.extremes import (
    gumbel,
    laplace,
    logistic,
    lomax,
    pareto,
    power,
    rayleigh,
    triangular,
    vonmises,
    wald,
    weibull,
)
from graphc.tensor.random.op import RandomVariable
from graphc.tensor.random.shared import RandomGeneratorSharedVariable, rng, shared_rng
from graphc.tensor.random.stream import RandomStream
from graphc.tensor.random.type import RandomGeneratorType, RandomGeneratorVariable, add_methods
from graphc_runtime.generators import generator_of, state_of

# The functions that draw.
DRAWS = {
    name: function
    for module in (continuous, discrete, extremes)
    for name, function in vars(module).items()
    if getattr(function, "__module__", None) == module.__name__ and not name.startswith("_")
}
add_methods(DRAWS)
RandomStream.functions = DRAWS

default_rng = shared_rng

utils = RenamedModule(f"{__name__}.utils", "graphc.tensor.random.stream")

__all__ = [
    "DRAWS",
    "RandomGeneratorSharedVariable",
    "RandomGeneratorType",
    "RandomGeneratorVariable",
    "RandomStream",
    "RandomVariable",
    "bernoulli",
    "beta",
    "betabinom",
    "binomial",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "generator_of",
    "gengamma",
    "geometric",
    "gumbel",
    "halfcauchy",
    "halfnormal",
    "hypergeometric",
    "integers",
    "invgamma",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "lomax",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "random",
    "rayleigh",
    "rng",
    "shared_rng",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "state_of",
    "t",
    "triangular",
    "truncexpon",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]

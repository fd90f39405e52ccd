# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws: ``graphc.tensor.random``.

A generator is a variable (`graphc.shared` of a ``numpy.random.Generator``); drawing gives numbers and the
generator after them. `RandomStream` looks after the generators itself.
"""

from graphc.hooks import RenamedModule as _RenamedModule
from graphc.hooks import publish as _publish
from graphc.tensor.random import continuous, discrete, extremes
from graphc.tensor.random.continuous import beta as beta
from graphc.tensor.random.continuous import cauchy as cauchy
from graphc.tensor.random.continuous import chisquare as chisquare
from graphc.tensor.random.continuous import exponential as exponential
from graphc.tensor.random.continuous import f as f
from graphc.tensor.random.continuous import gamma as gamma
from graphc.tensor.random.continuous import gengamma as gengamma
from graphc.tensor.random.continuous import halfcauchy as halfcauchy
from graphc.tensor.random.continuous import halfnormal as halfnormal
from graphc.tensor.random.continuous import invgamma as invgamma
from graphc.tensor.random.continuous import lognormal as lognormal
from graphc.tensor.random.continuous import noncentral_chisquare as noncentral_chisquare
from graphc.tensor.random.continuous import noncentral_f as noncentral_f
from graphc.tensor.random.continuous import normal as normal
from graphc.tensor.random.continuous import random as random
from graphc.tensor.random.continuous import standard_cauchy as standard_cauchy
from graphc.tensor.random.continuous import standard_exponential as standard_exponential
from graphc.tensor.random.continuous import standard_gamma as standard_gamma
from graphc.tensor.random.continuous import standard_normal as standard_normal
from graphc.tensor.random.continuous import standard_t as standard_t
from graphc.tensor.random.continuous import t as t
from graphc.tensor.random.continuous import truncexpon as truncexpon
from graphc.tensor.random.continuous import uniform as uniform
from graphc.tensor.random.discrete import bernoulli as bernoulli
from graphc.tensor.random.discrete import betabinom as betabinom
from graphc.tensor.random.discrete import binomial as binomial
from graphc.tensor.random.discrete import categorical as categorical
from graphc.tensor.random.discrete import choice as choice
from graphc.tensor.random.discrete import dirichlet as dirichlet
from graphc.tensor.random.discrete import geometric as geometric
from graphc.tensor.random.discrete import hypergeometric as hypergeometric
from graphc.tensor.random.discrete import integers as integers
from graphc.tensor.random.discrete import logseries as logseries
from graphc.tensor.random.discrete import multinomial as multinomial
from graphc.tensor.random.discrete import multivariate_normal as multivariate_normal
from graphc.tensor.random.discrete import nbinom as nbinom
from graphc.tensor.random.discrete import negative_binomial as negative_binomial
from graphc.tensor.random.discrete import permutation as permutation
from graphc.tensor.random.discrete import poisson as poisson
from graphc.tensor.random.discrete import shuffle as shuffle
from graphc.tensor.random.discrete import zipf as zipf
from graphc.tensor.random.extremes import gumbel as gumbel
from graphc.tensor.random.extremes import laplace as laplace
from graphc.tensor.random.extremes import logistic as logistic
from graphc.tensor.random.extremes import lomax as lomax
from graphc.tensor.random.extremes import pareto as pareto
from graphc.tensor.random.extremes import power as power
from graphc.tensor.random.extremes import rayleigh as rayleigh
from graphc.tensor.random.extremes import triangular as triangular
from graphc.tensor.random.extremes import vonmises as vonmises
from graphc.tensor.random.extremes import wald as wald
from graphc.tensor.random.extremes import weibull as weibull
from graphc.tensor.random.op import RandomVariable as RandomVariable
from graphc.tensor.random.shared import RandomGeneratorSharedVariable as RandomGeneratorSharedVariable
from graphc.tensor.random.shared import rng as rng
from graphc.tensor.random.shared import shared_rng as shared_rng
from graphc.tensor.random.stream import RandomStream as RandomStream
from graphc.tensor.random.type import RandomGeneratorType as RandomGeneratorType
from graphc.tensor.random.type import RandomGeneratorVariable as RandomGeneratorVariable
from graphc.tensor.random.type import add_methods as _add_methods
from graphc_runtime.generators import generator_of as generator_of
from graphc_runtime.generators import state_of as state_of

# The functions that draw.
DRAWS = {
    name: getattr(module, name) for module in (continuous, discrete, extremes) for name in module.__all__
}
_add_methods(DRAWS)
RandomStream.functions = DRAWS

default_rng = shared_rng

utils = _RenamedModule(f"{__name__}.utils", "graphc.tensor.random.stream")

_publish(globals(), imported=True)

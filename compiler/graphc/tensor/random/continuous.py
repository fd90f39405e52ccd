# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of real numbers.

Parameters are array-likes that broadcast against each other. All functions take ``size``, the shape of the
draws, and as keywords ``rng``, ``dtype`` (``config.floatX`` by default), ``name`` and ``return_next_rng``;
see `RandomVariable.__call__`. Names and parameters follow PyTensor, those it does not have follow NumPy.
"""

from __future__ import annotations

from typing import Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.tensor.random.op import RandomVariable


def _draw(distribution: str, parameters: tuple[Any, ...], size: Any, options: dict[str, Any]) -> Any:
    dtype = options.pop("dtype", None)
    return RandomVariable(distribution, dtype)(*parameters, size=size, **options)


def random(size: Any = None, **options: Any) -> Any:
    """Uniform on [0, 1), with the float32 stream of NumPy's ``Generator.random`` for that dtype."""
    return _draw("standard_uniform", (), () if size is None else size, options)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Uniform on [low, high)."""
    return _draw("uniform", (low, high), size, options)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Normal with mean ``loc`` and standard deviation ``scale``."""
    return _draw("normal", (loc, scale), size, options)


def standard_normal(size: Any = None, **options: Any) -> Any:
    """Normal with mean 0 and deviation 1, with NumPy's float32 stream for that dtype."""
    return _draw("standard_normal", (), () if size is None else size, options)


def halfnormal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * abs(z)`` of a standard normal z."""
    return _draw("halfnormal", (loc, scale), size, options)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``exp`` of a normal."""
    return _draw("lognormal", (mean, sigma), size, options)


def exponential(scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Exponential with mean ``scale``."""
    return _draw("exponential", (scale,), size, options)


def standard_exponential(size: Any = None, **options: Any) -> Any:
    """Exponential with mean 1, with NumPy's float32 stream for that dtype."""
    return _draw("standard_exponential", (), () if size is None else size, options)


def truncexpon(b: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * x`` of an exponential x that is at most ``b``."""
    return _draw("truncexpon", (b, loc, scale), size, options)


def gamma(shape: Any, rate: Any = None, scale: Any = None, size: Any = None, **options: Any) -> Any:
    """Gamma with density proportional to ``x**(shape - 1) * exp(-x / scale)``; ``rate`` is 1 / scale."""
    return _draw("gamma", (shape, _scale("gamma", rate, scale)), size, options)


def standard_gamma(shape: Any, size: Any = None, **options: Any) -> Any:
    """Gamma with scale 1, with NumPy's float32 stream for that dtype."""
    return _draw("standard_gamma", (shape,), size, options)


def invgamma(shape: Any, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``scale / g`` of a standard gamma g."""
    return _draw("invgamma", (shape, scale), size, options)


def gengamma(alpha: Any = 1.0, p: Any = 1.0, lambd: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Generalised gamma: ``lambd * g**(1 / p)`` of a gamma g of shape ``alpha / p``."""
    return _draw("gengamma", (alpha, p, lambd), size, options)


def beta(alpha: Any, beta: Any, size: Any = None, **options: Any) -> Any:
    """Beta with density proportional to ``x**(alpha - 1) * (1 - x)**(beta - 1)``."""
    return _draw("beta", (alpha, beta), size, options)


def chisquare(df: Any, size: Any = None, **options: Any) -> Any:
    """Chi-square with ``df`` degrees of freedom."""
    return _draw("chisquare", (df,), size, options)


def noncentral_chisquare(df: Any, nonc: Any, size: Any = None, **options: Any) -> Any:
    """Noncentral chi-square with noncentrality ``nonc``."""
    return _draw("noncentral_chisquare", (df, nonc), size, options)


def f(dfnum: Any, dfden: Any, size: Any = None, **options: Any) -> Any:
    """Fisher's F."""
    return _draw("f", (dfnum, dfden), size, options)


def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, size: Any = None, **options: Any) -> Any:
    """Noncentral F."""
    return _draw("noncentral_f", (dfnum, dfden, nonc), size, options)


def t(df: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Student's t with location and scale."""
    return _draw("t", (df, loc, scale), size, options)


def standard_t(df: Any, size: Any = None, **options: Any) -> Any:
    """Student's t."""
    return _draw("standard_t", (df,), size, options)


def cauchy(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Cauchy with median ``loc``."""
    return _draw("cauchy", (loc, scale), size, options)


def standard_cauchy(size: Any = None, **options: Any) -> Any:
    """Cauchy with median 0 and scale 1."""
    return _draw("standard_cauchy", (), () if size is None else size, options)


def halfcauchy(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * abs(x)`` of a standard Cauchy x."""
    return _draw("halfcauchy", (loc, scale), size, options)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Laplace, the double exponential."""
    return _draw("laplace", (loc, scale), size, options)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Logistic."""
    return _draw("logistic", (loc, scale), size, options)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Gumbel, the extreme value distribution of maxima."""
    return _draw("gumbel", (loc, scale), size, options)


def weibull(shape: Any, size: Any = None, **options: Any) -> Any:
    """Weibull with scale 1."""
    return _draw("weibull", (shape,), size, options)


def power(a: Any, size: Any = None, **options: Any) -> Any:
    """On [0, 1] with density ``a * x**(a - 1)``."""
    return _draw("power", (a,), size, options)


def pareto(b: Any, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Classical Pareto, at least ``scale``; NumPy's ``pareto`` is `lomax`."""
    return _draw("pareto", (b, scale), size, options)


def lomax(a: Any, size: Any = None, **options: Any) -> Any:
    """Pareto II, from 0 on: what ``numpy.random.Generator.pareto`` draws."""
    return _draw("lomax", (a,), size, options)


def rayleigh(scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Rayleigh."""
    return _draw("rayleigh", (scale,), size, options)


def triangular(left: Any, mode: Any, right: Any, size: Any = None, **options: Any) -> Any:
    """Triangular on [left, right]."""
    return _draw("triangular", (left, mode, right), size, options)


def vonmises(mu: Any = 0.0, kappa: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Von Mises on [-pi, pi]."""
    return _draw("vonmises", (mu, kappa), size, options)


def wald(mean: Any = 1.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Wald, the inverse Gaussian."""
    return _draw("wald", (mean, scale), size, options)


def _scale(what: str, rate: Any, scale: Any) -> Any:
    if rate is not None and scale is not None:
        raise ValueError(f"{what} takes a rate or a scale, not both")
    if rate is None:
        return 1.0 if scale is None else scale
    return 1.0 / as_tensor_variable(rate)

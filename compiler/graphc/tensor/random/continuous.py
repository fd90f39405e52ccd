# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of real numbers.

Parameters are array-likes that broadcast against each other. All functions take ``size``, the shape of the
draws, and as keywords ``rng``, ``dtype`` (``config.floatX`` by default), ``name`` and ``return_next_rng``;
see `RandomVariable.__call__`. Names and parameters follow PyTensor, those it does not have follow NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.tensor.random.op import RandomVariable

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.tensor.random.type import RandomGeneratorVariable


def _draw(distribution: str, parameters: tuple[Any, ...], size: Any, options: dict[str, Any]) -> Any:
    dtype = options.pop("dtype", None)
    return RandomVariable(distribution, dtype)(*parameters, size=size, **options)


def random(size: Any = None, **options: Any) -> Any:
    """Uniform on [0, 1), with the float32 stream of NumPy's ``Generator.random`` for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).random(size=2).round(3).eval()
        array([0.541, 0.379])
    """
    return _draw("standard_uniform", (), () if size is None else size, options)


def uniform(
    low: TensorLike = 0.0, high: TensorLike = 1.0, size: Any = None, **options: Any
) -> tuple[RandomGeneratorVariable, TensorVariable]:
    """Uniform on [low, high).

    Examples:
        >>> pt.random.RandomStream(3).uniform(size=2).round(3).eval()
        array([0.541, 0.379])
    """
    return _draw("uniform", (low, high), size, options)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Normal with mean ``loc`` and standard deviation ``scale``.

    Examples:
        >>> pt.random.RandomStream(3).normal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return _draw("normal", (loc, scale), size, options)


def standard_normal(size: Any = None, **options: Any) -> Any:
    """Normal with mean 0 and deviation 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_normal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return _draw("standard_normal", (), () if size is None else size, options)


def halfnormal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * abs(z)`` of a standard normal z.

    Examples:
        >>> pt.random.RandomStream(3).halfnormal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return _draw("halfnormal", (loc, scale), size, options)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``exp`` of a normal.

    Examples:
        >>> pt.random.RandomStream(3).lognormal(size=2).round(3).eval()
        array([1.689, 1.05 ])
    """
    return _draw("lognormal", (mean, sigma), size, options)


def exponential(scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Exponential with mean ``scale``.

    Examples:
        >>> pt.random.RandomStream(3).exponential(2.0, size=2).round(3).eval()
        array([0.419, 2.374])
    """
    return _draw("exponential", (scale,), size, options)


def standard_exponential(size: Any = None, **options: Any) -> Any:
    """Exponential with mean 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_exponential(size=2).round(3).eval()
        array([0.209, 1.187])
    """
    return _draw("standard_exponential", (), () if size is None else size, options)


def truncexpon(b: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * x`` of an exponential x that is at most ``b``.

    Examples:
        >>> pt.random.RandomStream(3).truncexpon(2.0, size=2).round(3).eval()
        array([0.631, 0.397])
    """
    return _draw("truncexpon", (b, loc, scale), size, options)


def gamma(shape: Any, rate: Any = None, scale: Any = None, size: Any = None, **options: Any) -> Any:
    """Gamma with density proportional to ``x**(shape - 1) * exp(-x / scale)``; ``rate`` is 1 / scale.

    Examples:
        >>> pt.random.RandomStream(3).gamma(2.0, size=2).round(3).eval()
        array([2.439, 1.215])
    """
    return _draw("gamma", (shape, _scale("gamma", rate, scale)), size, options)


def standard_gamma(shape: Any, size: Any = None, **options: Any) -> Any:
    """Gamma with scale 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_gamma(2.0, size=2).round(3).eval()
        array([2.439, 1.215])
    """
    return _draw("standard_gamma", (shape,), size, options)


def invgamma(shape: Any, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``scale / g`` of a standard gamma g.

    Examples:
        >>> pt.random.RandomStream(3).invgamma(2.0, size=2).round(3).eval()
        array([0.41 , 0.823])
    """
    return _draw("invgamma", (shape, scale), size, options)


def gengamma(alpha: Any = 1.0, p: Any = 1.0, lambd: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Generalised gamma: ``lambd * g**(1 / p)`` of a gamma g of shape ``alpha / p``.

    Examples:
        >>> pt.random.RandomStream(3).gengamma(size=2).round(3).eval()
        array([0.209, 1.187])
    """
    return _draw("gengamma", (alpha, p, lambd), size, options)


def beta(alpha: Any, beta: Any, size: Any = None, **options: Any) -> Any:
    """Beta with density proportional to ``x**(alpha - 1) * (1 - x)**(beta - 1)``.

    Examples:
        >>> pt.random.RandomStream(3).beta(2.0, 3.0, size=2).round(3).eval()
        array([0.539, 0.558])
    """
    return _draw("beta", (alpha, beta), size, options)


def chisquare(df: Any, size: Any = None, **options: Any) -> Any:
    """Chi-square with ``df`` degrees of freedom.

    Examples:
        >>> pt.random.RandomStream(3).chisquare(2.0, size=2).round(3).eval()
        array([0.419, 2.374])
    """
    return _draw("chisquare", (df,), size, options)


def noncentral_chisquare(df: Any, nonc: Any, size: Any = None, **options: Any) -> Any:
    """Noncentral chi-square with noncentrality ``nonc``.

    Examples:
        >>> pt.random.RandomStream(3).noncentral_chisquare(2.0, 1.0, size=2).round(3).eval()
        array([0.965, 1.59 ])
    """
    return _draw("noncentral_chisquare", (df, nonc), size, options)


def f(dfnum: Any, dfden: Any, size: Any = None, **options: Any) -> Any:
    """Fisher's F.

    Examples:
        >>> pt.random.RandomStream(3).f(2.0, 3.0, size=2).round(3).eval()
        array([0.257, 0.096])
    """
    return _draw("f", (dfnum, dfden), size, options)


def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, size: Any = None, **options: Any) -> Any:
    """Noncentral F.

    Examples:
        >>> pt.random.RandomStream(3).noncentral_f(2.0, 3.0, 1.0, size=2).round(3).eval()
        array([0.198, 0.345])
    """
    return _draw("noncentral_f", (dfnum, dfden, nonc), size, options)


def t(df: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Student's t with location and scale.

    Examples:
        >>> pt.random.RandomStream(3).t(3.0, size=2).round(3).eval()
        array([0.581, 0.938])
    """
    return _draw("t", (df, loc, scale), size, options)


def standard_t(df: Any, size: Any = None, **options: Any) -> Any:
    """Student's t.

    Examples:
        >>> pt.random.RandomStream(3).standard_t(3.0, size=2).round(3).eval()
        array([0.581, 0.938])
    """
    return _draw("standard_t", (df,), size, options)


def cauchy(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Cauchy with median ``loc``.

    Examples:
        >>> pt.random.RandomStream(3).cauchy(size=2).round(3).eval()
        array([10.682, -0.258])
    """
    return _draw("cauchy", (loc, scale), size, options)


def standard_cauchy(size: Any = None, **options: Any) -> Any:
    """Cauchy with median 0 and scale 1.

    Examples:
        >>> pt.random.RandomStream(3).standard_cauchy(size=2).round(3).eval()
        array([10.682, -0.258])
    """
    return _draw("standard_cauchy", (), () if size is None else size, options)


def halfcauchy(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """``loc + scale * abs(x)`` of a standard Cauchy x.

    Examples:
        >>> pt.random.RandomStream(3).halfcauchy(size=2).round(3).eval()
        array([10.682,  0.258])
    """
    return _draw("halfcauchy", (loc, scale), size, options)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Laplace, the double exponential.

    Examples:
        >>> pt.random.RandomStream(3).laplace(size=2).round(3).eval()
        array([ 0.086, -0.278])
    """
    return _draw("laplace", (loc, scale), size, options)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Logistic.

    Examples:
        >>> pt.random.RandomStream(3).logistic(size=2).round(3).eval()
        array([ 0.166, -0.495])
    """
    return _draw("logistic", (loc, scale), size, options)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Gumbel, the extreme value distribution of maxima.

    Examples:
        >>> pt.random.RandomStream(3).gumbel(size=2).round(3).eval()
        array([0.249, 0.743])
    """
    return _draw("gumbel", (loc, scale), size, options)


def weibull(shape: Any, size: Any = None, **options: Any) -> Any:
    """Weibull with scale 1.

    Examples:
        >>> pt.random.RandomStream(3).weibull(2.0, size=2).round(3).eval()
        array([0.457, 1.09 ])
    """
    return _draw("weibull", (shape,), size, options)


def power(a: Any, size: Any = None, **options: Any) -> Any:
    """On [0, 1] with density ``a * x**(a - 1)``.

    Examples:
        >>> pt.random.RandomStream(3).power(2.0, size=2).round(3).eval()
        array([0.435, 0.834])
    """
    return _draw("power", (a,), size, options)


def pareto(b: Any, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Classical Pareto, at least ``scale``; NumPy's ``pareto`` is `lomax`.

    Examples:
        >>> pt.random.RandomStream(3).pareto(3.0, size=2).round(3).eval()
        array([1.072, 1.485])
    """
    return _draw("pareto", (b, scale), size, options)


def lomax(a: Any, size: Any = None, **options: Any) -> Any:
    """Pareto II, from 0 on: what ``numpy.random.Generator.pareto`` draws.

    Examples:
        >>> pt.random.RandomStream(3).lomax(3.0, size=2).round(3).eval()
        array([0.072, 0.485])
    """
    return _draw("lomax", (a,), size, options)


def rayleigh(scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Rayleigh.

    Examples:
        >>> pt.random.RandomStream(3).rayleigh(size=2).round(3).eval()
        array([0.647, 1.541])
    """
    return _draw("rayleigh", (scale,), size, options)


def triangular(left: Any, mode: Any, right: Any, size: Any = None, **options: Any) -> Any:
    """Triangular on [left, right].

    Examples:
        >>> pt.random.RandomStream(3).triangular(0.0, 1.0, 2.0, size=2).round(3).eval()
        array([1.042, 0.87 ])
    """
    return _draw("triangular", (left, mode, right), size, options)


def vonmises(mu: Any = 0.0, kappa: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Von Mises on [-pi, pi].

    Examples:
        >>> pt.random.RandomStream(3).vonmises(size=2).round(3).eval()
        array([ 1.011, -1.232])
    """
    return _draw("vonmises", (mu, kappa), size, options)


def wald(mean: Any = 1.0, scale: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Wald, the inverse Gaussian.

    Examples:
        >>> pt.random.RandomStream(3).wald(size=2).round(3).eval()
        array([0.596, 1.47 ])
    """
    return _draw("wald", (mean, scale), size, options)


def _scale(what: str, rate: Any, scale: Any) -> Any:
    if rate is not None and scale is not None:
        raise ValueError(f"{what} takes a rate or a scale, not both")
    if rate is None:
        return 1.0 if scale is None else scale
    return 1.0 / as_tensor_variable(rate)

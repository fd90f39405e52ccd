# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of real numbers.

Parameters are array-likes that broadcast against each other. All functions take ``size``, the shape of the
draws, and as keywords ``rng``, ``dtype`` (``config.floatX`` by default), ``name`` and ``return_next_rng``;
see `RandomVariable.__call__`. Names and parameters follow PyTensor, those it does not have follow NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from graphc.hooks import publish
from graphc.tensor.random.drawing import draw, scale_of

if TYPE_CHECKING:
    from graphc.graph.tensor import SizeLike, TensorLike
    from graphc.tensor.random.drawing import Drawn, DrawOptions


def random(size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Uniform on [0, 1), with the float32 stream of NumPy's ``Generator.random`` for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).random(size=2).round(3).eval()
        array([0.541, 0.379])
    """
    return draw("standard_uniform", (), () if size is None else size, options)


def uniform(
    low: TensorLike = 0.0, high: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Uniform on [low, high).

    Examples:
        >>> pt.random.RandomStream(3).uniform(size=2).round(3).eval()
        array([0.541, 0.379])
    """
    return draw("uniform", (low, high), size, options)


def normal(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Normal with mean ``loc`` and standard deviation ``scale``.

    Examples:
        >>> pt.random.RandomStream(3).normal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return draw("normal", (loc, scale), size, options)


def standard_normal(size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Normal with mean 0 and deviation 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_normal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return draw("standard_normal", (), () if size is None else size, options)


def halfnormal(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """``loc + scale * abs(z)`` of a standard normal z.

    Examples:
        >>> pt.random.RandomStream(3).halfnormal(size=2).round(3).eval()
        array([0.524, 0.049])
    """
    return draw("halfnormal", (loc, scale), size, options)


def lognormal(
    mean: TensorLike = 0.0, sigma: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """``exp`` of a normal.

    Examples:
        >>> pt.random.RandomStream(3).lognormal(size=2).round(3).eval()
        array([1.689, 1.05 ])
    """
    return draw("lognormal", (mean, sigma), size, options)


def exponential(scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Exponential with mean ``scale``.

    Examples:
        >>> pt.random.RandomStream(3).exponential(2.0, size=2).round(3).eval()
        array([0.419, 2.374])
    """
    return draw("exponential", (scale,), size, options)


def standard_exponential(size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Exponential with mean 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_exponential(size=2).round(3).eval()
        array([0.209, 1.187])
    """
    return draw("standard_exponential", (), () if size is None else size, options)


def truncexpon(
    b: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """``loc + scale * x`` of an exponential x that is at most ``b``.

    Examples:
        >>> pt.random.RandomStream(3).truncexpon(2.0, size=2).round(3).eval()
        array([0.631, 0.397])
    """
    return draw("truncexpon", (b, loc, scale), size, options)


def gamma(
    shape: TensorLike,
    rate: TensorLike | None = None,
    scale: TensorLike | None = None,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Gamma with density proportional to ``x**(shape - 1) * exp(-x / scale)``; ``rate`` is 1 / scale.

    Examples:
        >>> pt.random.RandomStream(3).gamma(2.0, size=2).round(3).eval()
        array([2.439, 1.215])
    """
    return draw("gamma", (shape, scale_of("gamma", rate, scale)), size, options)


def standard_gamma(shape: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Gamma with scale 1, with NumPy's float32 stream for that dtype.

    Examples:
        >>> pt.random.RandomStream(3).standard_gamma(2.0, size=2).round(3).eval()
        array([2.439, 1.215])
    """
    return draw("standard_gamma", (shape,), size, options)


def invgamma(
    shape: TensorLike, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """``scale / g`` of a standard gamma g.

    Examples:
        >>> pt.random.RandomStream(3).invgamma(2.0, size=2).round(3).eval()
        array([0.41 , 0.823])
    """
    return draw("invgamma", (shape, scale), size, options)


def gengamma(
    alpha: TensorLike = 1.0,
    p: TensorLike = 1.0,
    lambd: TensorLike = 1.0,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Generalised gamma: ``lambd * g**(1 / p)`` of a gamma g of shape ``alpha / p``.

    Examples:
        >>> pt.random.RandomStream(3).gengamma(size=2).round(3).eval()
        array([0.209, 1.187])
    """
    return draw("gengamma", (alpha, p, lambd), size, options)


def beta(alpha: TensorLike, beta: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Beta with density proportional to ``x**(alpha - 1) * (1 - x)**(beta - 1)``.

    Examples:
        >>> pt.random.RandomStream(3).beta(2.0, 3.0, size=2).round(3).eval()
        array([0.539, 0.558])
    """
    return draw("beta", (alpha, beta), size, options)


def chisquare(df: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Chi-square with ``df`` degrees of freedom.

    Examples:
        >>> pt.random.RandomStream(3).chisquare(2.0, size=2).round(3).eval()
        array([0.419, 2.374])
    """
    return draw("chisquare", (df,), size, options)


def noncentral_chisquare(
    df: TensorLike, nonc: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Noncentral chi-square with noncentrality ``nonc``.

    Examples:
        >>> pt.random.RandomStream(3).noncentral_chisquare(2.0, 1.0, size=2).round(3).eval()
        array([0.965, 1.59 ])
    """
    return draw("noncentral_chisquare", (df, nonc), size, options)


def f(dfnum: TensorLike, dfden: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Fisher's F.

    Examples:
        >>> pt.random.RandomStream(3).f(2.0, 3.0, size=2).round(3).eval()
        array([0.257, 0.096])
    """
    return draw("f", (dfnum, dfden), size, options)


def noncentral_f(
    dfnum: TensorLike,
    dfden: TensorLike,
    nonc: TensorLike,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Noncentral F.

    Examples:
        >>> pt.random.RandomStream(3).noncentral_f(2.0, 3.0, 1.0, size=2).round(3).eval()
        array([0.198, 0.345])
    """
    return draw("noncentral_f", (dfnum, dfden, nonc), size, options)


def t(
    df: TensorLike,
    loc: TensorLike = 0.0,
    scale: TensorLike = 1.0,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Student's t with location and scale.

    Examples:
        >>> pt.random.RandomStream(3).t(3.0, size=2).round(3).eval()
        array([0.581, 0.938])
    """
    return draw("t", (df, loc, scale), size, options)


def standard_t(df: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Student's t.

    Examples:
        >>> pt.random.RandomStream(3).standard_t(3.0, size=2).round(3).eval()
        array([0.581, 0.938])
    """
    return draw("standard_t", (df,), size, options)


def cauchy(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Cauchy with median ``loc``.

    Examples:
        >>> pt.random.RandomStream(3).cauchy(size=2).round(3).eval()
        array([10.682, -0.258])
    """
    return draw("cauchy", (loc, scale), size, options)


def standard_cauchy(size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Cauchy with median 0 and scale 1.

    Examples:
        >>> pt.random.RandomStream(3).standard_cauchy(size=2).round(3).eval()
        array([10.682, -0.258])
    """
    return draw("standard_cauchy", (), () if size is None else size, options)


def halfcauchy(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """``loc + scale * abs(x)`` of a standard Cauchy x.

    Examples:
        >>> pt.random.RandomStream(3).halfcauchy(size=2).round(3).eval()
        array([10.682,  0.258])
    """
    return draw("halfcauchy", (loc, scale), size, options)


publish(globals())

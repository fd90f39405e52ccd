# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of real numbers: double exponentials, extremes, powers, angles; keywords as in
`graphc.tensor.random.continuous`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from graphc.hooks import publish
from graphc.tensor.random.drawing import draw

if TYPE_CHECKING:
    from graphc.graph.tensor import SizeLike, TensorLike
    from graphc.tensor.random.drawing import Drawn, DrawOptions


def laplace(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Laplace, the double exponential.

    Examples:
        >>> pt.random.RandomStream(3).laplace(size=2).round(3).eval()
        array([ 0.086, -0.278])
    """
    return draw("laplace", (loc, scale), size, options)


def logistic(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Logistic.

    Examples:
        >>> pt.random.RandomStream(3).logistic(size=2).round(3).eval()
        array([ 0.166, -0.495])
    """
    return draw("logistic", (loc, scale), size, options)


def gumbel(
    loc: TensorLike = 0.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Gumbel, the extreme value distribution of maxima.

    Examples:
        >>> pt.random.RandomStream(3).gumbel(size=2).round(3).eval()
        array([0.249, 0.743])
    """
    return draw("gumbel", (loc, scale), size, options)


def weibull(shape: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Weibull with scale 1.

    Examples:
        >>> pt.random.RandomStream(3).weibull(2.0, size=2).round(3).eval()
        array([0.457, 1.09 ])
    """
    return draw("weibull", (shape,), size, options)


def power(a: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """On [0, 1] with density ``a * x**(a - 1)``.

    Examples:
        >>> pt.random.RandomStream(3).power(2.0, size=2).round(3).eval()
        array([0.435, 0.834])
    """
    return draw("power", (a,), size, options)


def pareto(
    b: TensorLike, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Classical Pareto, at least ``scale``; NumPy's ``pareto`` is `lomax`.

    Examples:
        >>> pt.random.RandomStream(3).pareto(3.0, size=2).round(3).eval()
        array([1.072, 1.485])
    """
    return draw("pareto", (b, scale), size, options)


def lomax(a: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Pareto II, from 0 on: what ``numpy.random.Generator.pareto`` draws.

    Examples:
        >>> pt.random.RandomStream(3).lomax(3.0, size=2).round(3).eval()
        array([0.072, 0.485])
    """
    return draw("lomax", (a,), size, options)


def rayleigh(scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Rayleigh.

    Examples:
        >>> pt.random.RandomStream(3).rayleigh(size=2).round(3).eval()
        array([0.647, 1.541])
    """
    return draw("rayleigh", (scale,), size, options)


def triangular(
    left: TensorLike,
    mode: TensorLike,
    right: TensorLike,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Triangular on [left, right].

    Examples:
        >>> pt.random.RandomStream(3).triangular(0.0, 1.0, 2.0, size=2).round(3).eval()
        array([1.042, 0.87 ])
    """
    return draw("triangular", (left, mode, right), size, options)


def vonmises(
    mu: TensorLike = 0.0, kappa: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Von Mises on [-pi, pi].

    Examples:
        >>> pt.random.RandomStream(3).vonmises(size=2).round(3).eval()
        array([ 1.011, -1.232])
    """
    return draw("vonmises", (mu, kappa), size, options)


def wald(
    mean: TensorLike = 1.0, scale: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Wald, the inverse Gaussian.

    Examples:
        >>> pt.random.RandomStream(3).wald(size=2).round(3).eval()
        array([0.596, 1.47 ])
    """
    return draw("wald", (mean, scale), size, options)


publish(globals())

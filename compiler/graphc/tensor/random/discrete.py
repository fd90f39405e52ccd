# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of integers, of positions and of vectors; keywords as in `graphc.tensor.random.continuous`.

The dtype is int64 by default; numbers are cast to any other one, but for `integers`, which draws other
widths as NumPy does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from graphc.config import config
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import parse_dtype
from graphc.hooks import publish
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.math import cast
from graphc.ops.shape import as_size, known_size, size_of
from graphc.ops.shaping import as_sizes, expand_dims, specify_shape
from graphc.tensor.linalg.decompositions import cholesky
from graphc.tensor.products import matmul
from graphc.tensor.random.drawing import draw
from graphc.tensor.random.op import RandomVariable
from graphc.tensor.random.python import ChoiceWithoutReplacement, MultivariateNormal, Root, check_vectors
from graphc.tensor.random.shared import drawn

if TYPE_CHECKING:
    from graphc.graph.tensor import SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.tensor.random.drawing import Drawn, DrawOptions


def integers(
    low: TensorLike,
    high: TensorLike | None = None,
    size: SizeLike = None,
    *,
    endpoint: bool = False,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Uniform integers from ``low`` to below ``high``, or from 0 to below ``low`` without ``high``.

    With ``endpoint`` the last number counts, too. Bounds are int64, also for uint64.

    Examples:
        >>> pt.random.RandomStream(3).integers(0, 9, size=3).eval()
        array([5, 4, 1])
    """
    if high is None:
        low, high = 0, low
    return draw("integers", (low, as_tensor_variable(high) + 1 if endpoint else high), size, options)


def bernoulli(p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """1 with probability ``p``, else 0.

    Examples:
        >>> pt.random.RandomStream(3).bernoulli(0.5, size=3).eval()
        array([1, 0, 1])
    """
    return draw("bernoulli", (p,), size, options)


def binomial(n: TensorLike, p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Number of successes in ``n`` trials.

    Examples:
        >>> pt.random.RandomStream(3).binomial(9, 0.5, size=3).eval()
        array([5, 4, 6])
    """
    return draw("binomial", (n, p), size, options)


def betabinom(
    n: TensorLike, a: TensorLike, b: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Binomial with a probability that is drawn from a beta distribution.

    Examples:
        >>> pt.random.RandomStream(3).betabinom(9, 2.0, 3.0, size=3).eval()
        array([6, 5, 6])
    """
    return draw("betabinom", (n, a, b), size, options)


def negative_binomial(
    n: TensorLike, p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]
) -> Drawn:
    """Number of failures before ``n`` successes; n need not be an integer.

    Examples:
        >>> pt.random.RandomStream(3).negative_binomial(3, 0.5, size=3).eval()
        array([4, 4, 3])
    """
    return draw("negative_binomial", (n, p), size, options)


nbinom = negative_binomial


def geometric(p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Number of trials up to the first success.

    Examples:
        >>> pt.random.RandomStream(3).geometric(0.5, size=3).eval()
        array([2, 1, 4])
    """
    return draw("geometric", (p,), size, options)


def poisson(lam: TensorLike = 1.0, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Poisson with mean ``lam``.

    Examples:
        >>> pt.random.RandomStream(3).poisson(2.0, size=3).eval()
        array([3, 1, 2])
    """
    return draw("poisson", (lam,), size, options)


def hypergeometric(
    ngood: TensorLike,
    nbad: TensorLike,
    nsample: TensorLike,
    size: SizeLike = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Number of good ones in a sample without replacement.

    Examples:
        >>> pt.random.RandomStream(3).hypergeometric(5, 5, 4, size=3).eval()
        array([2, 2, 1])
    """
    return draw("hypergeometric", (ngood, nbad, nsample), size, options)


def logseries(p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Logarithmic series.

    Examples:
        >>> pt.random.RandomStream(3).logseries(0.5, size=3).eval()
        array([1, 2, 1])
    """
    return draw("logseries", (p,), size, options)


def zipf(a: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Zipf: probability proportional to ``k**-a``.

    Examples:
        >>> pt.random.RandomStream(3).zipf(3.0, size=3).eval()
        array([1, 1, 1])
    """
    return draw("zipf", (a,), size, options)


def categorical(p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Positions along the last axis of ``p``, with these probabilities (which are not normalised).

    Examples:
        >>> pt.random.RandomStream(3).categorical([0.2, 0.8], size=3).eval()
        array([1, 1, 1])
    """
    return draw("categorical", (p,), size, options)


def multinomial(n: TensorLike, p: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Numbers of the outcomes in ``n`` trials; ``p`` has the probabilities along its last axis.

    Examples:
        >>> pt.random.RandomStream(3).multinomial(4, [0.5, 0.5]).eval()
        array([2, 2])
    """
    return draw("multinomial", (n, p), size, options)


def dirichlet(alphas: TensorLike, size: SizeLike = None, **options: Unpack[DrawOptions]) -> Drawn:
    """Probability vectors; ``alphas`` has the parameters along its last axis.

    Examples:
        >>> pt.random.RandomStream(3).dirichlet([1.0, 1.0]).round(3).eval()
        array([0.15, 0.85])
    """
    return draw("dirichlet", (alphas,), size, options)


def multivariate_normal(
    mean: TensorLike,
    cov: TensorLike,
    size: SizeLike = None,
    *,
    method: Root = "svd",
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Normal vectors.

    Args:
        mean: vectors along the last axis.
        cov: covariance matrices in the last two axes.
        size: shape of the batch.
        method: ``"svd"``, ``"eigh"`` or ``"cholesky"``: which square root of cov numbers are multiplied with.
            That of Cholesky is the only one that is unique: with it draws are compiled, and have derivatives;
            with the others NumPy draws, in calls from Python.
        options: keywords of all draws.

    Raises:
        ValueError: mean is no vector, cov no matrix, or the method has another name.
        LinAlgError: when run with ``"cholesky"``, cov is not positive definite.

    Examples:
        >>> pt.random.RandomStream(3).multivariate_normal([0.0, 0.0], np.eye(2)).round(3).eval()
        array([0.524, 0.049])
    """
    if method == "cholesky":
        return _by_cholesky(mean, cov, size, options)
    rng, name, both = options.get("rng"), options.get("name"), options.get("return_next_rng", False)
    return MultivariateNormal(method, options.get("dtype"))(mean, cov, size, rng, name, both)


def _by_cholesky(mean: TensorLike, cov: TensorLike, size: SizeLike, options: DrawOptions) -> Drawn:
    mean, cov = (cast(as_tensor_variable(x), "float64") for x in (mean, cov))
    check_vectors(mean, cov)
    # One number of each row: the sizes of the batch, and the length, of both.
    joint = mean + cov[..., 0]
    batch = [size_of(joint, i) for i in range(joint.type.ndim - 1)]
    sizes = batch if size is None else as_sizes(size, "multivariate_normal")
    following, noise = RandomVariable("normal")(
        0.0,
        1.0,
        size=[*sizes, size_of(mean, mean.type.ndim - 1)],
        rng=options.get("rng"),
        return_next_rng=True,
    )
    moved = mean + matmul(cholesky(cov), expand_dims(noise, -1))[..., 0]
    draws = cast(moved, parse_dtype(options.get("dtype") or config.floatX))
    draws.name = options.get("name")
    result: Any = (following, draws) if options.get("return_next_rng") else draws
    return result


def permutation(
    x: TensorLike, size: SizeLike = None, *, axis: int = 0, **options: Unpack[DrawOptions]
) -> Drawn:
    """The numbers below an integer, or the slices of an array along an axis, in random order.

    Args:
        x: an integer, which may be symbolic, or an array.
        size: shape of a batch of permutations.
        axis: the axis, of an array.
        options: keywords of all draws.

    Examples:
        >>> pt.random.RandomStream(3).permutation(4).eval()
        array([0, 1, 2, 3])
    """
    x = as_tensor_variable(x)
    axis = normalize_axis(axis, max(x.type.ndim, 1), "permutation")
    count = as_size(x, "permutation") if x.type.ndim == 0 else size_of(x, axis)
    batch = [] if size is None else as_sizes(size, "permutation")
    op = RandomVariable("permutation", options.pop("dtype", None) if x.type.ndim == 0 else None)
    following, order = drawn(op, options.get("rng"), [*batch, count], options.get("name"), True)
    draws = order if x.type.ndim == 0 else x[(slice(None),) * axis + (order,)]
    result: Any = (following, draws) if options.get("return_next_rng") else draws
    return result


shuffle = permutation


def choice(
    a: TensorLike,
    size: SizeLike = None,
    replace: bool = True,
    p: TensorLike | None = None,
    **options: Unpack[DrawOptions],
) -> Drawn:
    """Elements of an array, or numbers below an integer.

    Args:
        a: an integer, which may be symbolic, or an array whose rows are drawn.
        size: shape of the draws; one draw by default.
        replace: whether something may be drawn twice.
        p: probabilities, which sum to 1.
        options: keywords of all draws; ``dtype`` is that of ``a`` by default.

    Raises:
        ValueError: ``p`` is no vector.

    Examples:
        >>> pt.random.RandomStream(3).choice(5, size=2, replace=False).eval()
        array([4, 2])
    """
    a = as_tensor_variable(a)
    count = as_size(a, "choice") if a.type.ndim == 0 else size_of(a, 0)
    shape = () if size is None else size
    rng, name, dtype = options.get("rng"), options.get("name"), options.get("dtype")
    if p is not None:
        p = _as_long_as(operand(p, "the probabilities of choice must be a vector", 1, 1), count)
    if not replace:
        op = ChoiceWithoutReplacement(p is not None)
        following, found = op(count, p, shape, rng=rng, return_next_rng=True)
    elif p is None:
        following, found = RandomVariable("integers")(0, count, size=shape, rng=rng, return_next_rng=True)
    else:
        following, found = RandomVariable("choice")(p, size=shape, rng=rng, return_next_rng=True)
    draws = found if a.type.ndim == 0 else a[found]
    # Positions are int64, as NumPy's are; what was asked for is the dtype of what they choose.
    draws = draws if dtype is None else cast(draws, parse_dtype(dtype))
    draws.name = name
    result: Any = (following, draws) if options.get("return_next_rng") else draws
    return result


def _as_long_as(p: TensorVariable, count: TensorVariable) -> TensorVariable:
    known = known_size(count)
    if known is not None and p.type.shape[0] is not None:
        if known != p.type.shape[0]:
            raise ValueError(f"a and p must have the same size, got {known} and {p.type.shape[0]}")
        return p
    return specify_shape(p, (count,))


publish(globals())

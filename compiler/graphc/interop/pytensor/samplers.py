# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distributions that PyMC draws from by formulas of SciPy and its own: the same numbers of the same bits.

SciPy checks parameters first; outside of their domain draws here are NaN, or what the formula gives.
Parameters keep their dtypes where SciPy computes with them alone, in float32 for example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Constant

import graphc.tensor as pt
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, sizes
from graphc.interop.pytensor.types import is_dense
from graphc.ops.checks import CheckAndRaise

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pytensor.graph.basic import Variable as PyTensorVariable
    from pytensor.graph.op import Op

    from graphc.graph.basic import Variable
    from graphc.interop.pytensor.convert import Result

_SPECIAL: Any = pt.special
_HALF_ROOT = math.sqrt(0.5)


def _floats(inputs: Values) -> Values:
    return [pt.cast(x, "float64") for x in inputs]


def _shape(node: Apply, size: Variable | None, parameters: Values) -> list[Variable]:
    """The sizes of draws of which each is one number."""
    if size is None:
        return sizes(reduce(pt.add, parameters))
    length = node.inputs[1].type.shape[0]
    if length is None:
        raise NoConversion("the number of axes of the size is computed")
    return [size[i] for i in range(length)]


def _normal(rng: Variable, shape: Sequence[Variable | int]) -> Sequence[Variable]:
    following, draws = pt.random.normal(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
    return following, draws


def _uniform(rng: Variable, shape: Sequence[Variable | int]) -> Sequence[Variable]:
    following, draws = pt.random.uniform(0.0, 1.0, size=shape, rng=rng, return_next_rng=True)
    return following, draws


@converts("SkewNormalRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, *parameters = inputs
    mu, sigma, alpha = parameters
    shape = _shape(node, size, parameters)
    rng, u = _normal(rng, shape)
    rng, v = _normal(rng, shape)
    d = alpha / pt.sqrt(1 + alpha**2)
    mixed = d * u + v * pt.sqrt(1 - d**2)
    return [rng, pt.switch(pt.ge(u, 0), mixed, -mixed) * sigma + mu]


@converts("RiceRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, *parameters = inputs
    b, sigma = _floats(parameters)
    rng, drawn = _normal(rng, [2, *_shape(node, size, [b, sigma])])
    moved = b * _HALF_ROOT + drawn
    return [rng, pt.sqrt(pt.sum(moved * moved, axis=0)) * sigma]


@converts("MoyalRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, *parameters = inputs
    mu, sigma = _floats(parameters)
    shape = _shape(node, size, [mu, sigma])
    rng, drawn = pt.random.gamma(0.5, scale=2.0, size=shape, rng=rng, return_next_rng=True)
    return [rng, -pt.log(drawn) * sigma + mu]


@converts("SkewStudentTRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, *parameters = inputs
    a, b, mu, sigma = parameters
    shape = _shape(node, size, parameters)
    rng, drawn = pt.random.beta(a, b, size=shape, rng=rng, return_next_rng=True)
    skewed = (2 * drawn - 1) * pt.sqrt(a + b) / (2 * pt.sqrt(drawn * (1 - drawn)))
    return [rng, skewed * sigma + mu]


@converts("TruncatedNormalRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The inverse of the distribution function in logarithms, of the tail in which more digits are left."""
    rng, size, *parameters = inputs
    mu, sigma, lower, upper = parameters
    rng, q = _uniform(rng, _shape(node, size, parameters))
    a, b = _floats([(lower - mu) / sigma, (upper - mu) / sigma])
    mass = _log_normal_mass(a, b)
    below = _SPECIAL.ndtri_exp(pt.logaddexp(_SPECIAL.log_ndtr(a), pt.log(q) + mass))
    above = -_SPECIAL.ndtri_exp(pt.logaddexp(_SPECIAL.log_ndtr(-b), pt.log1p(-q) + mass))
    return [rng, pt.switch(pt.lt(a, 0), below, above) * sigma + mu]


def _log_normal_mass(a: Variable, b: Variable) -> Variable:
    """The logarithm of the probability of an interval."""
    left, right = _SPECIAL.log_ndtr(b), _SPECIAL.log_ndtr(-a)
    in_left = left + pt.log1p(-pt.exp(_SPECIAL.log_ndtr(a) - left))
    in_right = right + pt.log1p(-pt.exp(_SPECIAL.log_ndtr(-b) - right))
    central = pt.log1p(-_SPECIAL.ndtr(a) - _SPECIAL.ndtr(-b))
    return pt.switch(pt.gt(a, 0), in_right, pt.switch(pt.le(b, 0), in_left, central))


@converts("MatrixNormalRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, *parameters = inputs
    mu, rows, columns = _floats(parameters)
    if size is None and any(x.type.ndim != 2 for x in (mu, rows, columns)):
        raise NoConversion("a batch without a size")
    shape = [] if size is None else _shape(node, size, [])
    rng, drawn = _normal(rng, [*shape, rows.shape[-2], columns.shape[-2]])
    return [rng, mu + pt.matmul(rows, pt.matmul(drawn, pt.swapaxes(columns, -1, -2)))]


@converts("StickBreakingWeightsRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    rng, size, alpha, count = inputs
    (alpha,), count = _floats([alpha]), pt.reshape(count, [])
    shape = sizes(alpha) if size is None else _shape(node, size, [])
    rng, beta = pt.random.beta(
        1.0, pt.expand_dims(alpha, -1), size=[*shape, count], rng=rng, return_next_rng=True
    )
    rest = pt.cumprod(1 - beta[..., :-1], axis=-1)
    weights = pt.concatenate([pt.ones([*shape, 1]), rest], axis=-1) * beta
    last = pt.sub(1.0, pt.sum(weights, axis=-1, keepdims=True))
    return [rng, pt.concatenate([weights, last], axis=-1)]


@converts("InterpolatedRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The inverse of an integral of straight lines."""
    rng, size, *given = inputs
    if any(n != 1 for v in node.inputs[2:] for n in v.type.shape[:-1]):
        raise NoConversion("several lattices")
    x, pdf, cdf = (pt.reshape(value, [value.shape[-1]]) for value in _floats(given))
    rng, p = _uniform(rng, [] if size is None else _shape(node, size, []))
    i = pt.searchsorted(cdf, p) - 1
    slope = (pdf[i + 1] - pdf[i]) / (x[i + 1] - x[i])
    rest = p - cdf[i]
    level = pt.switch(pt.le(pt.abs(pdf[i]), 1e-8), 0.0, rest / pdf[i])
    rising = (-pdf[i] + pt.sqrt(pdf[i] ** 2 + 2 * slope * rest)) / slope
    return [rng, x[i] + pt.switch(pt.le(pt.abs(slope), 1e-8), level, rising)]


@converts("WishartRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """Bartlett's decomposition, with SciPy's order of draws."""
    rng, size, nu, scale = inputs
    n, shape = node.inputs[3].type.shape[-1], [] if size is None else _shape(node, size, [])
    if n is None or len(shape) > 1:
        raise NoConversion("a size that is not known, or several axes of draws")
    count = shape[0] if shape else pt.constant(np.int64(1))
    nu = pt.cast(pt.cast(pt.reshape(nu, []), "int64"), "float64")
    pairs, (i, j) = n * (n - 1) // 2, np.tril_indices(n, k=-1)
    rng, below = _normal(rng, [count * pairs])
    factor = pt.zeros([count, n, n])
    factor = pt.set_subtensor(factor[:, i, j], pt.reshape(below, [count, pairs]))
    for k in range(n):
        rng, drawn = pt.random.chisquare(nu - k, size=[count], rng=rng, return_next_rng=True)
        factor = pt.set_subtensor(factor[:, k, k], pt.sqrt(drawn))
    root = pt.matmul(pt.linalg.cholesky(pt.reshape(_floats([scale])[0], [n, n])), factor)
    drawn = pt.matmul(root, pt.swapaxes(root, -1, -2))
    return [rng, drawn if shape else drawn[0]]


@converts("CARRV", module="pymc")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """By a banded factor of the precision matrix, whose places are known, and with PyMC's checks."""
    rng, size, mu, _, alpha, tau, _ = inputs
    order, degrees, weights = _bands(node.inputs[3])
    mu, alpha, tau = _floats([mu, pt.reshape(alpha, []), pt.reshape(tau, [])])
    shape = sizes(mu) if size is None else [*_shape(node, size, []), mu.shape[-1]]
    rng, drawn = _normal(rng, shape)
    tau = CheckAndRaise(ValueError, "the domain of alpha is: -1 < alpha < 1")(tau, pt.lt(pt.abs(alpha), 1.0))
    factor = pt.linalg.cholesky_banded(tau * (degrees - alpha * weights))
    solved = pt.linalg.cho_solve_banded((factor, False), drawn, b_ndim=1)
    moved = solved + pt.broadcast_to(mu, shape)[..., order]
    return [rng, moved[..., np.argsort(order)]]


def _bands(weights: PyTensorVariable) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """The order of nodes in which a graph has few bands, and in it the bands of its degrees and weights."""
    import scipy.sparse

    while weights.owner is not None and type(weights.owner.op).__name__ in ("DimShuffle", "DenseFromSparse"):
        weights = weights.owner.inputs[0]
    if not isinstance(weights, Constant):
        raise NoConversion("an adjacency matrix that is computed")
    matrix = scipy.sparse.csr_matrix(np.squeeze(weights.data) if is_dense(weights.type) else weights.data)
    if abs(matrix - matrix.T).max() > 0:
        raise NoConversion("an adjacency matrix that is not symmetric")
    degrees = scipy.sparse.diags(np.asarray(matrix.sum(axis=0))[0])
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(
        scipy.sparse.csr_matrix(degrees - matrix / 2), symmetric_mode=True
    )
    found = [part.toarray()[np.ix_(order, order)] for part in (degrees, matrix)]
    # As many as there are before the first one without an element.
    count = next(k for k in range(1, len(order) + 1) if not np.diagonal(found[1], k).any())
    ab = [np.stack([np.pad(np.diagonal(x, k), (k, 0)) for k in reversed(range(count))]) for x in found]
    return order, ab[0], ab[1]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Densities with sums over hidden states, where log densities are beyond -745 or 709: finite numbers, and right.

PyMC writes `logsumexp` as a `switch` between exponentials, one of which overflows there. Each density is
written once, computed by graphc from PyMC's model and, with its derivatives, in 60 digits.
"""

from __future__ import annotations

import warnings
from functools import reduce
from types import SimpleNamespace

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import graphc
from graphc.interop.pytensor import from_pytensor

rng = np.random.default_rng(0)
NEAR_ZERO = rng.normal(0, 1e-3, 160)
LOG_STEPS = np.log([[0.9, 0.1], [0.3, 0.7]])
GROUPS = rng.normal(0, 1, (3, 1, 40))
POINTS = [[z, w] for z in (-40.0, -1.0, -0.001, 0.001, 0.3, 40.0) for w in (0.0, -2.0)]


def _normal(x, mu, sigma):
    return pm.logp(pm.Normal.dist(mu, sigma), x)


def _forward(step, start, rows, z):
    return pytensor.scan(
        step, sequences=[rows], outputs_info=[start], non_sequences=[z], strict=True, return_updates=False
    )[-1]


def _exact_normal(x, mu, sigma):
    scale = -mpmath.log(sigma) - mpmath.log(2 * mpmath.pi) / 2
    return scale - ((x - mu) / mpmath.mpf(sigma)) ** 2 / 2


exp, log = np.frompyfunc(mpmath.exp, 1, 1), np.frompyfunc(mpmath.log, 1, 1)
MODEL = SimpleNamespace(
    logsumexp=pt.logsumexp, normal=_normal, forward=_forward, exp=pt.exp, log=pt.log, stack=pt.stack,
    sigmoid=pt.sigmoid, logaddexp=pt.logaddexp, cumsum=pt.cumsum, log1p=pt.log1p,
)  # fmt: skip
EXACT = SimpleNamespace(
    logsumexp=lambda x, axis=None, keepdims=False: log(exp(x).sum(axis=axis, keepdims=keepdims)),
    normal=_exact_normal, forward=lambda step, start, rows, z: reduce(lambda state, row: step(row, state, z), rows, start),
    exp=exp, log=log, stack=np.array, sigmoid=lambda x: 1 / (1 + exp(-x)), logaddexp=lambda x, y: log(exp(x) + exp(y)),
    cumsum=np.cumsum, log1p=lambda x: log(1 + x),
)  # fmt: skip


# -- densities: of two numbers z and of data ---------------------------------------------------------------


def hidden_markov(xp, z, y):
    """The forward algorithm, a step for each datum."""

    def step(datum, state, z):
        return xp.logsumexp(state[:, None] + LOG_STEPS, axis=0) + xp.normal(datum, z, 1e-3)

    return xp.logsumexp(xp.forward(step, z * 0 + np.log(0.5), y, z))


def hidden_markov_with_kept_axes(xp, z, y):
    def step(datum, state, z):
        total = xp.logsumexp(state[:, None] + LOG_STEPS, axis=0, keepdims=True)
        return total[0] + xp.normal(datum, xp.stack([z[0], z[0] + z[1]]), 0.01)

    return xp.logsumexp(xp.forward(step, z * 0 + np.log(0.5), y, z))


def two_kinds_of_series(xp, z, y):
    return xp.logsumexp(xp.normal(y, z[:, None], 2e-3).sum(axis=1))


def two_kinds_by_weights(xp, z, y):
    weight = xp.sigmoid(z[1])
    each = xp.normal(y, xp.stack([z[0], -z[0]])[:, None], 2e-3).sum(axis=1)
    return xp.logsumexp(each + xp.log(xp.stack([weight, 1 - weight])))


def two_kinds_by_hand(xp, z, y):
    return xp.log(xp.exp(xp.normal(y, z[:, None], 2e-3).sum(axis=1)).sum())


def two_kinds_by_logaddexp(xp, z, y):
    one, other = (xp.normal(y, z[i], 2e-3).sum() for i in range(2))
    return xp.logaddexp(one, other - 1.5)


def change_of_level(xp, z, y):
    """The time of the change is summed out."""
    before, after = (xp.cumsum(xp.normal(y, z[i], 2e-3)) for i in range(2))
    return xp.logsumexp(before + after[-1] - after)


def kinds_of_groups(xp, z, y):
    """A sum along an axis of a matrix, for each of three groups."""
    each = xp.normal(GROUPS + z[0], z[:, None] * 3, 0.05).sum(axis=2)
    whole = xp.logsumexp(each, axis=(0, 1)) + (xp.logsumexp(each, axis=0) * np.array([1, 3])).sum()
    return xp.logsumexp(each + y[0], axis=-1).sum() + whole


def kinds_of_kinds(xp, z, y):
    inner = xp.logsumexp(xp.normal(y[:, None], z, 2e-3), axis=1).sum()
    return xp.logsumexp(xp.stack([inner, z[0] * 2000, z[1] - 900]))


def zeros_too_many(xp, z, y):
    zero = xp.logaddexp(xp.log(xp.sigmoid(z[0])), xp.log(1 - xp.sigmoid(z[0])) - xp.exp(z[1] * 3 + 1))
    return 160 * zero + xp.normal(y, z[1], 0.01).sum()


DENSITIES = (
    hidden_markov, hidden_markov_with_kept_axes, two_kinds_of_series, two_kinds_by_weights, two_kinds_by_hand,
    two_kinds_by_logaddexp, change_of_level, kinds_of_groups, kinds_of_kinds, zeros_too_many,
)  # fmt: skip


def exact(density, z):
    """The density and its slopes, in 60 digits."""
    with mpmath.workdps(60):
        z, step, y = (
            np.array([mpmath.mpf(v) for v in z]),
            mpmath.mpf(10) ** -25,
            np.array(list(map(mpmath.mpf, NEAR_ZERO))),
        )
        ends = [(z + e, z - e) for e in np.array([[step, 0], [0, step]])]
        slopes = [(density(EXACT, a, y) - density(EXACT, b, y)) / (2 * step) for a, b in ends]
        return float(density(EXACT, z, y)), np.array(slopes, float)


def compiled(density, data, mode):
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = pm.Flat("z", shape=2)
        pm.Potential(
            "density", density(MODEL, z, pm.Data("y", data) if mode == "GRAPHC" else pt.constant(data))
        )
    return model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode=mode, point_fn=False)


@pytest.mark.parametrize("density", DENSITIES, ids=lambda density: density.__name__)
def test_density_and_gradient(density):
    """With data of unknown and of known size."""
    functions = {mode: compiled(density, NEAR_ZERO, mode) for mode in ("GRAPHC", "GRAPHC_REWRITTEN")}
    for point in POINTS:
        value, gradient = exact(density, point)
        scale = max(1.0, abs(gradient).max())
        for mode, f in functions.items():
            got, slopes = f(np.array(point))
            np.testing.assert_allclose(got, value, rtol=1e-9, err_msg=f"{mode} {point}")
            # What is added to log densities is rounded as they are.
            spread = scale * (1e-9 + abs(value) * np.finfo(float).eps)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-9, atol=spread, err_msg=f"{mode} {point}")


@pytest.mark.parametrize("link", ["OrderedLogistic", "OrderedProbit"])
def test_ordered_categories(link):
    """Log probabilities of all categories; of the logistic link their slopes, too, as graphc takes them."""
    eta, cuts, kinds = pt.dscalar("eta"), np.array([-1.0, 0.2, 1.5]), np.arange(4)
    tail = {
        "OrderedLogistic": lambda z: 1 / (1 + mpmath.exp(z)),
        "OrderedProbit": lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2,
    }[link]
    value = pm.logp(getattr(pm, link).dist(eta=eta, cutpoints=cuts), kinds)
    (made,), result = from_pytensor([eta], value)
    functions = [pytensor.function([eta], value, mode=mode) for mode in ("GRAPHC", "GRAPHC_REWRITTEN")]
    functions.append(graphc.function([made], result))
    slopes = graphc.function([made], graphc.gradient.jacobian(result, made))

    def exact(kind, x):
        low, high = ([-mpmath.inf, *cuts, mpmath.inf][i] - x for i in (kind, kind + 1))
        return mpmath.log(tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low))

    # In PyMC's probit link the square root of 2 is a float32.
    bound = {"rtol": 1e-11, "atol": 1e-300} if link == "OrderedLogistic" else {"rtol": 1e-7, "atol": 1e-12}
    with mpmath.workdps(60):
        for x in [0.3, *(sign * scale for scale in (1, 10, 100, 800) for sign in (1, -1))]:
            wanted = [float(exact(kind, mpmath.mpf(x))) for kind in kinds]
            for f in functions:
                np.testing.assert_allclose(f(x), wanted, **bound, err_msg=f"{link} {x}")
            if link == "OrderedLogistic":
                wanted = [
                    float(mpmath.diff(lambda t, k=k: exact(k, t), x, h=mpmath.mpf(10) ** -20)) for k in kinds
                ]
                np.testing.assert_allclose(slopes(x), wanted, rtol=1e-9, atol=1e-15, err_msg=f"{link} {x}")


def test_ends_of_the_support():
    """What no parameter moves has no slope: distribution functions where an observation is at or before the end."""
    s = pt.dscalar("s")
    kinds = [
        pm.Exponential.dist(s), pm.HalfNormal.dist(s), pm.Weibull.dist(2.0, s), pm.LogNormal.dist(0.0, s),
        pm.Pareto.dist(s, 1.0), pm.Uniform.dist(0.0, s), pm.Triangular.dist(lower=0, upper=2 * s, c=s),
        pm.HalfCauchy.dist(s), pm.Gamma.dist(2.0, s), pm.Geometric.dist(s / 2), pm.Kumaraswamy.dist(s, 2.0),
    ]  # fmt: skip
    values = [pt.exp(pm.logcdf(kind, at)) for at in (0.0, -1.0) for kind in kinds]
    values += [pt.exp(pm.logcdf(kind, np.zeros(1))).sum() for kind in kinds[:5]]
    slopes = [pytensor.grad((value - 0.25) ** 2, s) for value in values]
    found = np.array(pytensor.function([s], [*values, *slopes], mode="GRAPHC")(1.0))
    assert (found == 0).all()

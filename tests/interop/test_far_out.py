# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Densities with sums over hidden states, where log densities are beyond -745 or 709: finite numbers, and right.

PyMC writes `logsumexp` as a `switch` between exponentials, one of which overflows there. Each density is
written once, computed by graphc from PyMC's model and, with its derivatives, in 60 digits.
"""

from __future__ import annotations

import warnings
from functools import cache, reduce
from types import SimpleNamespace

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import test_stable_forms as stable

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


# A distribution function's upper tail, which is that of the opposite number.
LINKS = {
    "OrderedLogistic": lambda z: 1 / (1 + mpmath.exp(z)),
    "OrderedProbit": lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2,
}
CUTS = np.array([-1.0, 0.2, 1.5])
FAR = [0.3, *(sign * scale for scale in (1, 10, 30, 40, 100, 800, 1000) for sign in (1, -1))]


def exact_category(link, kind, x, *cuts):
    low, high = ([-mpmath.inf, *cuts, mpmath.inf][i] - x for i in (kind, kind + 1))
    tail = LINKS[link]
    return mpmath.log(tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low))


@cache
def category_and_slopes(link, kind, x):
    """The log probability of a category, and its derivatives by the predictor and by the cut points."""
    step, point = mpmath.mpf(10) ** -20, [mpmath.mpf(x), *map(mpmath.mpf, CUTS)]
    with mpmath.workdps(60):
        ends = [
            exact_category(link, kind, *(v + sign * step * (i == k) for i, v in enumerate(point)))
            for k in range(4)
            for sign in (1, -1)
        ]
        slopes = [float((up - down) / (2 * step)) for up, down in zip(ends[::2], ends[1::2], strict=True)]
        return float(exact_category(link, kind, *point)), slopes


@pytest.mark.parametrize("link", LINKS)
def test_ordered_categories(link):
    """Log probabilities of categories of data, with PyTensor's own gradient and with graphc's."""
    # In PyMC's probit link the square root of 2 is a float32.
    bound = {"rtol": 1e-9, "atol": 1e-12} if link == "OrderedLogistic" else {"rtol": 3e-7, "atol": 1e-12}
    eta, cuts, kinds = pt.dvector("eta"), pt.dvector("cuts"), pt.lvector("kinds")
    value = pm.logp(getattr(pm, link).dist(eta=eta, cutpoints=cuts), kinds)
    slopes = pytensor.grad(value.sum(), [eta, cuts])
    functions = [
        pytensor.function([eta, cuts, kinds], [value, *slopes], mode=mode)
        for mode in ("GRAPHC", "GRAPHC_REWRITTEN")
    ]
    if link == "OrderedLogistic":
        inputs, result = from_pytensor([eta, cuts, kinds], value)
        functions.append(graphc.function(inputs, [result, *graphc.grad(result.sum(), inputs[:2])]))
    at, categories = np.repeat(FAR, 4), np.tile(np.arange(4), len(FAR))
    wanted = [category_and_slopes(link, int(k), float(x)) for x, k in zip(at, categories, strict=True)]
    values, by_eta = np.array([v for v, _ in wanted]), np.array([s[0] for _, s in wanted])
    terms = np.array([s[1:] for _, s in wanted])
    rounding = bound["rtol"] * abs(terms).sum(axis=0)
    for f in functions:
        value, slope, by_cuts = f(at, CUTS, categories)
        np.testing.assert_allclose(value, values, **bound)
        np.testing.assert_allclose(slope, by_eta, **bound)
        assert np.all(abs(by_cuts - terms.sum(axis=0)) <= rounding)


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


@pytest.mark.skipif(
    not hasattr(getattr(pt, "nlinalg", None), "EighGrad"),
    reason="PyTensor 3 makes a graph of what was one op",
)
@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
def test_functions_of_matrices_with_equal_eigenvalues(mode):
    """Gaussian processes far out: a function of eigenvalues and vectors has its slopes where values are equal."""
    weights = np.random.default_rng(3).normal(size=(4, 4))
    matrices = [np.ones((4, 4)), np.eye(4), np.zeros((4, 4)), np.diag([1.0, 1, 3, 3]), weights @ weights.T]
    for dtype, bound in (("float64", 1e-6), ("float32", 1e-2)):
        a = pt.matrix("a", dtype=dtype)
        slopes = []
        for uplo in "LU":
            w, v = pt.nlinalg.Eigh(uplo)(a)
            inverse = (v / (w + 1)) @ v.T
            cost = (inverse * weights.astype(dtype)).sum() + pt.log(w + 1).sum()
            slopes.append(pytensor.grad(cost, a))
        f = pytensor.function([a], slopes, mode=mode)
        for given in matrices:
            right = np.linalg.inv(given + np.eye(4))
            slope = right - right @ (weights + weights.T) / 2 @ right
            for found, kept, other in zip(
                f(given.astype(dtype)), (np.tril, np.triu), (np.triu, np.tril), strict=True
            ):
                whole = kept(slope) + (other(slope) - np.diag(np.diag(slope))).T
                np.testing.assert_allclose(found, whole, rtol=bound, atol=bound)


# -- derivatives by the chain rule, as PyTensor makes them ---------------------------------------------------

# Of those cases of values whose derivatives over- or underflow by the chain rule, with finite ones.
CHAINS = [
    "log(1 - exp)", "log(expm1)", "log(exp - exp)", "log(exp + exp - exp)", "log1p(expm1)", "arctanh(tanh)",
    "logit(sigmoid)", "exp / (1 + exp)", "1 / (1 + exp)", "two sigmoids", "log(1 - ndtr)", "log(erfc)",
    "log(exps and numbers)", "log(mixture)", "log(mixed)", "log(weighted)", "log(-y * exp + exp)", "log(sum)",
    "log(weighted sum)", "log(mean)", "log(share)", "share", "log1p(exp twice)", "log((y * exp) ** 2)",
    "log(softplus)", "log(-log(sigmoid))", "cloglog", "log(expm1(exp))", "log(tanh * exp)", "log(cosh)",
    "log(sinh)", "log(i0)", "log(iv)", "i1 / i0", "density / tail", "exp / squared sum", "tail * sum",
]  # fmt: skip


class Functions:
    """PyTensor's functions by the names of the cases."""

    def __getattr__(self, name):
        return getattr(pt, name)

    def ndtr(self, x):
        return 0.5 * pt.erfc(-x / np.sqrt(2))

    def logit(self, x):
        return pt.log(x / (1 - x))


@pytest.mark.parametrize("kind", ["above 0", "of both signs", "and a zero"])
def test_powers_of_data_over_exponentials(kind):
    """As times of survival over scales have; the signs of data decide whether there is a logarithm."""
    t = np.exp(np.random.default_rng(4).normal(size=20)) * {"of both signs": -1.0}.get(kind, 1.0)
    t[0] = abs(t[0])
    t[1] *= kind != "and a zero"
    m, alpha = pt.dscalar(), pt.dscalar()
    ratio = t / pt.exp(m)
    f = pytensor.function([m, alpha], [ratio**alpha, pt.log(ratio)], mode="GRAPHC")
    graph = dict(f.vm.jit_fn.ir_stages())["graph (optimised)"]
    assert ("graphc.pow" not in graph and "graphc.log" not in graph) == (kind == "above 0")
    far = (-720.0, 720.0) if kind == "above 0" else ()
    with np.errstate(invalid="ignore", divide="ignore"):
        for x in (-30.0, -0.4, 0.0, 0.7, 30.0, *far):
            for a in (0.0, 1.0, 0.3, 0.9, 2.0, -0.8):
                power, logarithm = f(x, a)
                if kind == "above 0":
                    exact = [mpmath.mpf(v) / mpmath.exp(x) for v in t]
                    expected = np.array([float(v ** mpmath.mpf(a)) for v in exact])
                    np.testing.assert_allclose(logarithm, [float(mpmath.log(v)) for v in exact], 1e-14, 1e-15)
                else:
                    expected = (t / np.exp(x)) ** a
                    np.testing.assert_allclose(logarithm, np.log(t) - x, 1e-14, 1e-15)
                np.testing.assert_allclose(power, expected, 1e-12)


def test_derivatives_by_the_chain_rule(monkeypatch):
    """Values and slopes of expressions far out, differentiated by PyTensor."""
    monkeypatch.setattr(stable, "pt", pt)  # which the cases stack and reduce with
    inputs = [pt.dvector(n) for n in "abc"]
    outputs = []
    for name in CHAINS:
        y = stable.CASES[name](Functions(), *inputs)
        outputs += [y, *pytensor.grad(y.sum(), inputs, disconnected_inputs="ignore")]
    f = pytensor.function(inputs, outputs, mode="GRAPHC", on_unused_input="ignore")
    points = stable.POINTS
    with np.errstate(all="ignore"):
        found = f(*points.T)
    failures = []
    for number, name in enumerate(CHAINS):
        for i, point in enumerate(points):
            known = stable.exact(name, tuple(point))
            if known is None or abs(known[0]) > 1e300:
                continue
            value, *slopes = (float(column[i]) for column in found[4 * number : 4 * number + 4])
            scale = max(map(abs, known[1]))
            # What is near 1 is as exact as 1, and a power as what it is of.
            spread = 2e-15 * max(1.0, *np.abs(point)) ** 2
            for got, want in zip([value, *slopes], [known[0], *known[1]], strict=True):
                small = abs(want) < 1e-9 * scale and want is not known[0]
                if not small and not abs(got - want) <= 1e-9 * abs(want) + spread:
                    failures.append((name, tuple(point), got, mpmath.nstr(want, 12)))
    assert not failures, failures

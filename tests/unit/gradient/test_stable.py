# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of expressions of exponentials, where these over- and underflow."""

import numpy as np
import pytest
from scipy.special import erfcx

import graphc
import graphc.tensor as pt
from graphc.tensor.special import log_softmax, softmax

V, W, X = pt.vector("v"), pt.vector("w"), pt.matrix("x")
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])


def shares(x, axis=None):
    """The softmax."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(x):
    tail = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, tail) / (1 + tail)


def erfc_slope(x):
    """The derivative of log(erfc(x))."""
    return -2 / np.sqrt(np.pi) / erfcx(x)


def lse(x, **options):
    return pt.log(pt.sum(pt.exp(x), **options))


def weighted_softmax(p, w):
    """Gradient of sum(p * w) where p are the shares."""
    return p * (w - (p * w).sum(axis=-1, keepdims=True))


# Each cost, what it is differentiated by, and the gradient.
OF_VECTORS = {
    "log sum exp": (lse(V), lambda v, w: shares(v)),
    "weighted": (pt.log((WEIGHTS * pt.exp(V)).sum()), lambda v, w: shares(v + np.log(WEIGHTS))),
    "log mean exp": (pt.log(pt.mean(pt.exp(V))), lambda v, w: shares(v)),
    "terms": (pt.log(0.3 * pt.exp(V[0]) + 0.7 * pt.exp(V[1])) + 0 * V.sum(),
              lambda v, w: np.append(shares(v[:2] + np.log([0.3, 0.7])), [0, 0])),
    "mixture": (pt.log(0.3 * pt.exp(V) + 0.7 * pt.exp(W)).sum(),
                lambda v, w: sigmoid(v - w + np.log(0.3 / 0.7))),
    "logaddexp": (pt.log(pt.exp(V) + pt.exp(W)).sum(), lambda v, w: sigmoid(v - w)),
    "log1p(exp)": (pt.log1p(pt.exp(V)).sum(), lambda v, w: sigmoid(v)),
    "log(1 + exp)": (pt.log(1 + pt.exp(V)).sum(), lambda v, w: sigmoid(v)),
    "log(sigmoid)": (pt.log(pt.sigmoid(V)).sum(), lambda v, w: sigmoid(-v)),
    "log(1 - sigmoid)": (pt.log(1 - pt.sigmoid(V)).sum(), lambda v, w: -sigmoid(v)),
    "log1p(-sigmoid)": (pt.log1p(-pt.sigmoid(V)).sum(), lambda v, w: -sigmoid(v)),
    "log(erfc)": (pt.log(pt.erfc(V)).sum(), lambda v, w: erfc_slope(v)),
    "log(1 - erf)": (pt.log(1 - pt.erf(V)).sum(), lambda v, w: erfc_slope(v)),
    "log(1 + erf)": (pt.log(0.5 * (1 + pt.erf(V))).sum(), lambda v, w: -erfc_slope(-v)),
    "log1p(erf)": (pt.log1p(pt.erf(V)).sum(), lambda v, w: -erfc_slope(-v)),
    "quotient": ((pt.exp(V) / pt.exp(V).sum() * WEIGHTS).sum(),
                 lambda v, w: weighted_softmax(shares(v), WEIGHTS)),
    "product": ((pt.exp(V) * (W / pt.exp(V).sum())).sum(), lambda v, w: weighted_softmax(shares(v), w)),
    "log of quotient": (pt.log(pt.exp(V) / pt.exp(V).sum())[1], lambda v, w: np.eye(4)[1] - shares(v)),
    "1 / (1 + exp)": ((1 / (1 + pt.exp(-V))).sum(), lambda v, w: sigmoid(v) * sigmoid(-v)),
    "exp / (1 + exp)": ((pt.exp(V) / (1 + pt.exp(V))).sum(), lambda v, w: sigmoid(v) * sigmoid(-v)),
}  # fmt: skip
OF_ROWS = {
    "axis": (lse(X, axis=1).sum(), shares),
    "mean": (pt.log(pt.mean(pt.exp(X), axis=1)).sum(), shares),
    "keepdims": (lse(X, axis=1, keepdims=True).sum(), shares),
    "maximum by hand": (
        (X.max(axis=1) + lse(X - X.max(axis=1, keepdims=True), axis=1)).sum(), shares),
    "logsumexp": (pt.logsumexp(X, axis=1).sum(), shares),
    "softmax": ((softmax(X, axis=1) * WEIGHTS).sum(),
                lambda x, axis: weighted_softmax(shares(x, 1), WEIGHTS)),
    "log_softmax": (log_softmax(X, axis=1)[:, 0].sum(), lambda x, axis: np.eye(4)[0] - shares(x, axis)),
    "loop": (graphc.scan(lambda row: lse(row), X, return_updates=False).sum(), shares),
    "vectorized": (pt.vectorize(lambda row: lse(row), signature="(n)->()")(X).sum(), shares),
}  # fmt: skip


@pytest.fixture(scope="module", params=["reference", "fast_run"])
def gradients(request):
    """All gradients in one function."""
    costs = {**OF_VECTORS, **OF_ROWS}
    by_name = {name: graphc.grad(cost, V if name in OF_VECTORS else X) for name, (cost, _) in costs.items()}
    return graphc.function([V, W, X], by_name, mode=request.param, on_unused_input="ignore")


@pytest.mark.parametrize("shift", [0, -2000, 2000])
def test_far_out(gradients, shift):
    rng = np.random.default_rng(3)
    for scale in (1, 3, 10, 100, 1000):
        v, w = scale * rng.normal(size=4) + shift, scale * rng.normal(size=4) + shift
        x = scale * rng.normal(size=(3, 4)) + shift
        found = gradients(v, w, x)
        for name, (_, wanted) in OF_VECTORS.items():
            np.testing.assert_allclose(found[name], wanted(v, w), rtol=2e-8, atol=1e-9, err_msg=name)
        for name, (_, wanted) in OF_ROWS.items():
            np.testing.assert_allclose(found[name], wanted(x, axis=1), rtol=2e-8, atol=1e-9, err_msg=name)


def test_masks(gradients):
    """Elements of -inf have no share."""
    x = np.array(
        [[0.0, -np.inf, 1.0, 2.0], [-np.inf, -np.inf, -2000.0, 0.0], [-900.0, -901.0, -np.inf, -950.0]]
    )
    found = gradients(x[0], np.zeros(4), x)
    for name in ("axis", "keepdims", "logsumexp", "loop"):
        np.testing.assert_allclose(found[name], shares(x, 1), err_msg=name)
    np.testing.assert_allclose(found["log sum exp"], shares(x[0]))


def test_hidden_markov_model():
    """The forward algorithm with a logarithm of a sum in each step."""
    transitions = np.log([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]])
    e = pt.matrix("e")
    for total in (lse, pt.logsumexp):
        alpha = graphc.scan(
            lambda row, a, total=total: row + total(a[:, None] + transitions, axis=0),
            sequences=[e[1:]],
            outputs_info=[e[0]],
            return_updates=False,
        )
        f = graphc.function([e], graphc.grad(total(alpha[-1]), e))
        rows = 1000 * np.random.default_rng(0).normal(size=(6, 3)) - 3000
        found = f(rows)
        # Posterior probabilities of the states; far apart, the best state of each row has all of it.
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_allclose(found, shares(rows, 1), atol=1e-8)


def test_forward_mode_and_second_order():
    t = pt.vector("t")
    costs = [lse(V), pt.log(pt.sigmoid(V)).sum(), pt.log(0.5 * pt.exp(V[0]) + 0.5 * pt.exp(V[1]))]
    tangents = [graphc.pushforward(cost, V, t) for cost in costs]
    hessians = [graphc.hessian(cost, V) for cost in costs[:2]]
    v, direction = np.array([-2000.0, -2001.0, -2002.0]), np.array([1.0, 2.0, 4.0])
    *found, h_lse, h_sigmoid = graphc.function([V, t], [*tangents, *hessians])(v, direction)
    p = shares(v)
    np.testing.assert_allclose(found, [p @ direction, 7.0, shares(v[:2]) @ direction[:2]], rtol=1e-12)
    np.testing.assert_allclose(h_lse, np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(h_sigmoid, np.zeros((3, 3)), atol=1e-300)


def test_second_derivative_of_the_distribution_of_the_normal():
    x = np.array([-1000.0, -30.0, -1.0, 0.0, 1.0, 30.0, 1000.0, 1e200])
    slope = graphc.grad(pt.log(0.5 * (1 + pt.erf(V / np.sqrt(2)))).sum(), V)
    mills = np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))
    found = graphc.function([V], graphc.grad(slope.sum(), V))(x)
    np.testing.assert_allclose(found, -mills * (x + mills), rtol=1e-8, atol=1e-100)


def test_what_lies_between():
    """Variables inside the expression still have gradients of their own, and may be constants."""
    e = pt.exp(V)
    s = e.sum()
    cost = pt.log(s) + s
    v = np.array([0.5, 1.0, -1.0])
    by_sum, by_exp, by_v, fixed = (
        graphc.grad(cost, s), graphc.grad(cost, e), graphc.grad(cost, V),
        graphc.grad(cost, V, consider_constant=[s], disconnected_inputs="ignore"),
    )  # fmt: skip
    found = graphc.function([V], [by_sum, by_exp, by_v, fixed])(v)
    total = np.exp(v).sum()
    slope = 1 / total + 1
    for got, wanted in zip(found, [slope, np.full(3, slope), np.exp(v) * slope, 0], strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(wanted, np.shape(got)))


def test_expressions_of_each_other():
    """The cotangent of exp(-x) in the same expression as exp(x) reaches x once."""
    total = pt.exp(V).sum()
    costs = [
        pt.log(pt.exp(V) / total / pt.exp(-V)),
        pt.log(total * (pt.exp(V) + pt.exp(-V))),
        pt.log(pt.softmax(V) * pt.sigmoid(2 * V) * pt.exp(V**2)),
        pt.exp(V) * (V**2 / total),
    ]
    slopes = [graphc.grad((cost * W).sum(), V) for cost in costs]
    f = graphc.function([V, W], [*slopes, *((cost * W).sum() for cost in costs)])
    v, w, count = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -0.5]), len(costs)
    differences = [np.subtract(f(v + d, w)[count:], f(v - d, w)[count:]) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(f(v, w)[:count], np.transpose(differences), rtol=1e-6, atol=1e-8)


def test_values():
    """What the compiler computes for the expressions that only derivatives made stable before."""
    v, w = np.array([-2000.0, 3.0, 1500.0, 0.0]), np.array([-2001.0, -2.0, 1500.0, 5.0])
    mixture = pt.log(0.3 * pt.exp(V) + 0.7 * pt.exp(W))
    product = pt.exp(V) * (W / pt.exp(V).sum())
    found = graphc.function([V, W], [mixture, product, graphc.grad(lse(V) ** 2, V)])(v, w)
    np.testing.assert_allclose(found[0], np.logaddexp(v + np.log(0.3), w + np.log(0.7)))
    np.testing.assert_allclose(found[1], shares(v) * w)
    np.testing.assert_allclose(found[2], 2 * 1500 * shares(v))


# Quotients that are spread over what they are multiplied by: derivatives of functions of means.
SHARES = {
    "of one": lambda x: 1 / (1 + pt.exp(-x)),
    "of ones": lambda x: np.ones((1, 1)) / (np.ones((1, 1)) + pt.exp(-x)),
    "softmax": lambda x: pt.exp(x) / pt.exp(x).sum(),
    "reciprocal": lambda x: pt.reciprocal(1 + pt.exp(x)) * x,
    "tails": lambda x: pt.erfc(x) / pt.exp(-x),
}
OF_MEANS = {
    "sin": lambda m, x: pt.sin(m),
    "cube": lambda m, x: m**3,
    "product": lambda m, x: m * pt.sin(x).sum(),
    "quotient": lambda m, x: m / pt.exp(x).mean(),
    "gradient": lambda m, x: (graphc.grad(m**2, x) * x).sum(),
}


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("outer", OF_MEANS)
def test_second_derivatives_of_functions_of_means(outer, share):
    x = pt.matrix("x")
    for mean in (lambda v: v.mean(), lambda v: v.mean(axis=0).mean(), lambda v: v.sum() / 3):
        slope = graphc.grad(OF_MEANS[outer](mean(SHARES[share](x)), x), x)
        f = graphc.function([x], slope, mode="reference")
        second = graphc.function([x], graphc.grad(slope.sum(), x), mode="reference")
        value, step = np.array([[0.3, -0.7], [1.1, 0.4]]), 1e-5
        found = second(value)
        for place in np.ndindex(value.shape):
            moved = np.zeros(value.shape)
            moved[place] = step
            change = (f(value + moved) - f(value - moved)).sum() / (2 * step)
            np.testing.assert_allclose(found[place], change, rtol=1e-6, atol=1e-8)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.optimizers`` against the formulas in NumPy, and minima that they find."""

from dataclasses import dataclass

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.optimizers import adam, adamw, lbfgs, sgd

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 3.0


def sgd_step(p, g, state, t, rate=0.1, momentum=0.9, nesterov=False):
    state["v"] = momentum * state.get("v", 0) - rate * g
    return p + (momentum * state["v"] - rate * g if nesterov else state["v"])


def adamw_step(p, g, state, t, rate=0.1, decay=0.0):
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * g**2
    step = rate * state["m"] / (1 - 0.9**t) / (np.sqrt(state["v"] / (1 - 0.999**t)) + 1e-8)
    return p - rate * decay * p - step


RULES = {
    "sgd": (lambda c, p: sgd(c, p, 0.1), lambda *a: sgd_step(*a, momentum=0.0)),
    "momentum": (lambda c, p: sgd(c, p, 0.1, 0.9), sgd_step),
    "nesterov": (lambda c, p: sgd(c, p, 0.1, 0.9, nesterov=True), lambda *a: sgd_step(*a, nesterov=True)),
    "adam": (lambda c, p: adam(c, p, 0.1), adamw_step),
    "adamw": (lambda c, p: adamw(c, p, 0.1, weight_decay=0.2), lambda *a: adamw_step(*a, decay=0.2)),
}


@dataclass
class Params:
    w: object
    b: object


def model(dtype="float64"):
    params = Params(graphc.shared(np.zeros(3, dtype), name="w"), {"b": graphc.shared(np.zeros((), dtype))})
    x, y = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype)
    return params, x, y, ((pt.dot(x, params.w) + params.b["b"] - y) ** 2).mean()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rule", RULES)
def test_steps(rule, dtype):
    of_graph, step = RULES[rule]
    params, x, y, loss = model(dtype)
    updates = of_graph(loss, params)
    assert all(new.type.dtype == old.type.dtype for old, new in updates.items())
    f = graphc.function([x, y], loss, updates=updates)
    w, b, of_w, of_b = np.zeros(3), 0.0, {}, {}
    for t in range(1, 21):
        f(X.astype(dtype), Y.astype(dtype))
        r = X @ w + b - Y
        g_w, g_b = 2 * X.T @ r / len(Y), 2 * r.mean()
        w, b = step(w, g_w, of_w, t), step(b, g_b, of_b, t)
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(params.w.get_value(), w, rtol=tolerance)
    np.testing.assert_allclose(params.b["b"].get_value(), b, rtol=tolerance)


def test_gradients_and_schedules():
    params, x, y, loss = model()
    slopes = graphc.grad(loss, params)
    clipped = Params(slopes.w.clip(-0.1, 0.1), slopes.b)
    rate = graphc.shared(0.5)
    f = graphc.function([x, y], [], updates=sgd(clipped, params, rate))
    f(X, Y)
    assert np.abs(params.w.get_value()).max() <= 0.05 + 1e-12
    rate.set_value(0.0)
    before = params.w.get_value()
    f(X, Y)
    np.testing.assert_array_equal(params.w.get_value(), before)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lbfgs(dtype):
    params, x, y, loss = model(dtype)
    seen = []
    found = lbfgs(
        loss, params, {x: X.astype(dtype), y: Y.astype(dtype)}, tolerance=1e-4, callback=seen.append
    )
    assert found.success and found.gradient_norm < 1e-4 and len(seen) == found.iterations
    np.testing.assert_allclose(params.w.get_value(), [1.0, -2.0, 0.5], atol=1e-3)
    np.testing.assert_allclose(params.b["b"].get_value(), 3.0, atol=1e-3)
    assert params.w.get_value().dtype == dtype


W, N = graphc.shared(np.ones(2), name="w"), graphc.shared(np.arange(2))


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (
            lambda: sgd((W**2).sum(), pt.vector("x")),
            TypeError,
            "params must be a shared variable of floats, got x",
        ),
        (lambda: adam((W**2).sum(), {"a": [N]}), TypeError, r"params\['a'\]\[0\] must be .* of floats"),
        (lambda: adam((W**2).sum(), np.ones(2)), TypeError, "type ndarray; make it with graphc.shared"),
        (lambda: sgd((W**2).sum(), W, momentum=1.0), ValueError, r"momentum must be in \[0, 1\), got 1.0"),
        (lambda: adam((W**2).sum(), W, beta2=-0.1), ValueError, "beta2"),
        (lambda: sgd((W**2).sum(), W, nesterov=True), ValueError, "needs a momentum"),
        (lambda: sgd(3.0, W), TypeError, "a scalar loss, or gradients; got 3.0"),
        (lambda: sgd([W], {"a": W}), TypeError, "the gradients must be a dict with the keys"),
        (lambda: lbfgs((W * pt.scalar("c")).sum(), W), ValueError, "c of type"),
    ],
)
def test_mistakes(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()

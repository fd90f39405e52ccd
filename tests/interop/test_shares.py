# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTensor's derivatives of logarithms of sums of exponentials, where all of these over- or underflow.

PyTensor makes the logarithm stable, and not its derivative: exp(x) over its sum, 0 / 0 or inf / inf.
"""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from models import MODELS
from pymc.blocking import DictToArrayBijection
from pymc.pytensorf import rewrite_pregrad
from scipy.special import expit, ive, logsumexp, softmax

import graphc
import graphc.interop.pytensor
from graphc.interop.pytensor import from_pytensor

X, Y = pt.dmatrix("x"), pt.dmatrix("y")


def forward(rows, transitions):
    """The forward algorithm; the derivative of its loop has a loop that reads the trace."""
    alphas = pytensor.scan(
        lambda row, a: row + pt.logsumexp(a[:, None] + transitions, axis=0),
        sequences=[rows[1:]],
        outputs_info=[rows[0]],
        return_updates=False,
    )
    return pt.logsumexp(alphas[-1])


def equal_rows(x, y):
    """PyMC's rewrites before a gradient leave one exponential for all rows."""
    return rewrite_pregrad((pt.logsumexp(x[0] + pt.zeros_like(y), axis=1) * y[:, 0]).sum())


FLAT = np.full((4, 4), -np.log(4))  # all states follow all with the same probability
# Each cost, and its gradient by x.
COSTS = {
    "axis": (pt.logsumexp(X, axis=1).sum(), lambda x, y: softmax(x, axis=1)),
    "keepdims": ((pt.logsumexp(X, axis=0, keepdims=True) * Y).sum(),
                 lambda x, y: softmax(x, axis=0) * y.sum(axis=0)),
    "all": (pt.logsumexp(X) ** 2, lambda x, y: 2 * logsumexp(x) * softmax(x)),
    "two terms": (pt.logaddexp(X, Y).sum(), lambda x, y: expit(x - y)),
    "three terms": (pt.logaddexp(X, Y, 2 * Y).sum(),
                    lambda x, y: np.exp(x - logsumexp([x, y, 2 * y], axis=0))),
    "one and another": (pt.log1p(pt.exp(X)).sum(), lambda x, y: expit(x)),
    "equal rows": (equal_rows(X, Y), lambda x, y: np.outer([1, 0, 0], y[:, 0].sum() * softmax(x[0]))),
    "Bessel functions": (
        (pt.log(pt.i0(X)) + Y * pt.log(pt.iv(2.5, abs(X)))).sum(),
        lambda x, y: ive(1, x) / ive(0, x) + y * np.sign(x) * (
            ive(1.5, abs(x)) + ive(3.5, abs(x))) / ive(2.5, abs(x)) / 2),
    "rows in a loop": (
        pytensor.map(lambda row: pt.logsumexp(row), X, return_updates=False).sum(), lambda x, y: softmax(x, axis=1)),
    "recurrence": (forward(X, FLAT), lambda x, y: softmax(x, axis=1)),
}  # fmt: skip


@pytest.fixture(scope="module", params=["GRAPHC", "GRAPHC_REWRITTEN", "from_pytensor"])
def gradients(request):
    """All gradients in one function."""
    outputs = [pytensor.grad(cost, X) for cost, _ in COSTS.values()]
    if request.param != "from_pytensor":
        return pytensor.function([X, Y], outputs, mode=request.param)
    inputs, made = from_pytensor([X, Y], outputs)
    return graphc.function(inputs, made)


@pytest.mark.parametrize("scale", [1, 10, 100, 1000])
@pytest.mark.parametrize("shift", [0, -2000, 2000])
def test_far_out(gradients, scale, shift):
    x, y = scale * np.random.default_rng(scale).normal(size=(2, 3, 4)) + shift
    for (name, (_, wanted)), got in zip(COSTS.items(), gradients(x, y), strict=True):
        np.testing.assert_allclose(got, wanted(x, y), rtol=1e-9, atol=1e-9, err_msg=name)


def test_hidden_markov_model():
    """Log densities less than the logarithm of the smallest number have slopes."""
    model = MODELS["hmm"]()
    f = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode="GRAPHC", point_fn=True)
    start = model.initial_point()
    flat = DictToArrayBijection.map({**start, "s_log__": np.asarray(-2.0)})

    def at(moved):
        return f(DictToArrayBijection.rmap(flat._replace(data=moved)))

    value, got = at(flat.data)
    assert value < -745
    steps = 1e-5 * np.eye(flat.data.size)
    wanted = [(at(flat.data + step)[0] - at(flat.data - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
    rng = np.random.default_rng(0)
    for scale in (10, 100):
        value, got = at(flat.data + scale * rng.normal(size=flat.data.size))
        assert np.isfinite(value) and np.isfinite(got).all()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A family of functions that share a constant and a state, exported once for all tests."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt


@pytest.fixture(scope="session")
def family():
    """Compiled functions by name, and the shared variable that they update."""
    x, n = pt.dvector("x"), pt.lscalar("n")
    weights = pt.constant(np.linspace(-1, 1, 40))
    bias = graphc.shared(np.array([0.5, 0.25]), name="bias")
    h = graphc.scan(
        lambda xt, h, b: pt.tanh(0.5 * h + b[0] * xt),
        sequences=[x],
        outputs_info=[pt.constant(0.1)],
        non_sequences=[bias],
        return_updates=False,
    )
    value = (h**2).sum() + pt.dot(weights, pt.exp(weights * x[0])) + graphc.ifelse(n > 2, x.sum(), x[n])
    model = graphc.function([x, n], value, name="model")
    gradient = graphc.function([x, n], {"value": value, "gradient": graphc.grad(value, x)})
    step = graphc.function([x, n], [value], updates={bias: bias + 0.5 * graphc.grad(value, bias)})
    return {"model": model, "gradient": gradient, "step": step}, bias


@pytest.fixture(scope="session")
def exported(family, tmp_path_factory):
    """The file with these functions, for two targets."""
    functions, bias = family
    start = bias.get_value()
    path = tmp_path_factory.mktemp("artifact") / "family.gcx"
    docs = {"model": "The value of a model."}
    graphc.export(functions, path, targets=["host", "x86-64-v2", "aarch64"], docs=docs)
    np.testing.assert_array_equal(bias.get_value(), start)
    return path


@pytest.fixture
def point():
    return np.linspace(0.1, 0.9, 7), np.array(3)

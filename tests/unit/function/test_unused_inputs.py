# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of which simplification leaves nothing count as used if the graph as it was written reads them."""

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import MissingInputError, UnusedInputError
from graphc.graph.replace import clone_replace

A, Z, W = pt.scalar("a"), pt.scalar("z"), pt.tensor("w", dtype="float64", shape=(3,))

USES = {
    "gradient of a product with a number": (graphc.grad(3 * Z, Z), 3),
    "with a variable": (graphc.grad(A * Z, Z), 5),
    "and more": (graphc.grad(A * Z, Z) * 2 + 1, 11),
    "pushforward": (graphc.pushforward(3 * Z, Z, pt.constant(1.0)), 3),
    "pullback": (graphc.pullback(3 * Z, Z, pt.constant(1.0)), 3),
    "jacobian": (graphc.jacobian(2 * W, W), 2 * np.eye(3)),
    "hessian": (graphc.hessian((W**2).sum(), W), 2 * np.eye(3)),
    "ones_like": (pt.ones_like(Z), 1),
    "zeros_like and a cast": (pt.zeros_like(Z).astype("float32"), 0),
    "full_like": (pt.full_like(W, 2), np.full(3, 2)),
    "size of a scalar": (Z.size, 1),
    "size": (W.size, 3),
    "length": (W.shape[0], 3),
    "arange": (pt.arange(W.shape[0]), np.arange(3)),
    "mean of ones": (pt.ones_like(W).mean(), 1),
}


@pytest.mark.parametrize("name", list(USES))
def test_counts_as_used(name):
    output, wanted = USES[name]
    f = graphc.function([A, Z, W], output, mode="reference", on_unused_input="ignore")
    np.testing.assert_array_equal(f(5.0, 2.0, np.ones(3)), wanted)
    inputs = [W] if "W" in name or np.ndim(wanted) or name in ("size", "length", "mean of ones") else [Z]
    inputs += [A] if name in ("with a variable", "and more") else []
    values = {v: {A: 5.0, Z: 2.0, W: np.ones(3)}[v] for v in inputs}
    np.testing.assert_array_equal(graphc.function(inputs, output)(*values.values()), wanted)
    np.testing.assert_array_equal(output.eval(values, mode="reference"), wanted)
    assert pickle.loads(pickle.dumps(output)).type == output.type


@pytest.mark.parametrize("output", [A, A + 1, graphc.grad(A * A, A), pt.ones_like(A), A.size])
def test_others_are_still_refused(output):
    with pytest.raises(UnusedInputError, match="z of type"):
        graphc.function([A, Z], output)


def test_gradients_do_not_mark_what_users_made():
    """The gradient of a product is another variable than its factor."""
    a, z = pt.scalar("a"), pt.scalar("z")
    g = graphc.grad(a * z, z)
    assert g is not a
    with pytest.raises(UnusedInputError):
        graphc.function([a, z], a)
    assert graphc.function([a, z], clone_replace(g))(2.0, 3.0) == 2


def test_an_unused_input_is_named_before_a_missing_one():
    x, s = pt.dscalars("xs")
    with pytest.raises(UnusedInputError, match="uses the input s"):
        graphc.function([s], [x])
    with pytest.raises(MissingInputError, match="the input x"):
        graphc.function([s], [x], on_unused_input="ignore")


def test_updates_that_nobody_reads_are_checked():
    x, s = pt.dscalars("xs")
    with pytest.raises(MissingInputError, match="the input s"):
        graphc.function([graphc.In(x, update=s + x)], x)
    assert graphc.function([graphc.In(x, update=s + x), s], x, mode="reference")(1, 2) == 1

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pushforward`."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import DisconnectedInputError
from graphc.gradient import pullback, pushforward


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


BOTH = pytest.mark.parametrize("direct", [True, False], ids=["op_rules", "pulled_twice"])


@BOTH
def test_linear_map(direct):
    w, x, t = pt.dmatrix("w"), pt.dvector("x"), pt.dvector("t")
    jvp = pushforward(pt.dot(w, x), x, t, use_op_pushforward=direct)
    rng = np.random.default_rng(0)
    wv, xv, tv = rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=3)
    np.testing.assert_allclose(run([w, x, t], jvp, wv, xv, tv), wv @ tv)


@BOTH
@pytest.mark.parametrize(
    "f",
    [
        lambda x: pt.tanh(x) * pt.exp(-(x**2)),
        lambda x: x.sum(axis=0) ** 2,
        lambda x: pt.max(x, axis=1) + pt.prod(x, axis=1),
        lambda x: x[:, ::-1][0] * x.T[1, 0],
        lambda x: pt.concatenate([x, 2 * x], axis=1).reshape((3, 4)),
        lambda x: pt.logsumexp(x, axis=0),
        lambda x: pt.set_subtensor(x[0, 1:], x[1, :-1] ** 2),
        lambda x: pt.sqrt(abs(x)).mean(),
    ],
)
def test_agrees_with_differences(f, direct):
    x, t = pt.matrix("x", shape=(2, 3), dtype="float64"), pt.matrix("t", shape=(2, 3), dtype="float64")
    y = f(x)
    rng = np.random.default_rng(0)
    xv, tv = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    value = graphc.function([x], y, mode="reference")
    expected = (value(xv + 1e-6 * tv) - value(xv - 1e-6 * tv)) / 2e-6
    np.testing.assert_allclose(
        run([x, t], pushforward(y, x, t, use_op_pushforward=direct), xv, tv), expected, rtol=1e-6, atol=1e-8
    )


@BOTH
def test_forward_and_reverse_are_transposes(direct):
    x, y = pt.dvector("x"), pt.dvector("y")
    t, u, c = pt.dvector("t"), pt.dvector("u"), pt.dvector("c")
    f = pt.cumsum(x * y) if hasattr(pt, "cumsum") else pt.sin(x * y) / (1 + x**2)
    forward = (pushforward(f, [x, y], [t, u], use_op_pushforward=direct) * c).sum()
    gx, gy = pullback(f, [x, y], c)
    backward = (gx * t).sum() + (gy * u).sum()
    a, b = run([x, y, t, u, c], [forward, backward], *np.random.default_rng(0).normal(size=(5, 4)))
    np.testing.assert_allclose(a, b)


def test_an_op_without_pushforward_uses_its_pullback():
    class Square(graphc.Op):
        __props__ = ()

        def make_node(self, x):
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] ** 2

        def pullback(self, inputs, outputs, cotangents):
            return [2 * inputs[0] * cotangents[0]]

    x, t = pt.dvector("x"), pt.dvector("t")
    jvp = pushforward(pt.exp(Square()(pt.sin(x))), x, t)
    xv, tv = np.array([0.2, 0.4]), np.array([1.0, -2.0])
    s = np.sin(xv)
    np.testing.assert_allclose(run([x, t], jvp, xv, tv), np.exp(s**2) * 2 * s * np.cos(xv) * tv)
    # Nothing of the placeholder for the cotangent is left in the graph.
    assert set(graphc.explicit_graph_inputs(jvp)) == {x, t}


@BOTH
def test_several_outputs_and_inner_wrt(direct):
    x, t = pt.dscalar("x"), pt.dscalar("t")
    h = pt.exp(x)
    a, b = pushforward((h * 2, h * x), h, t, use_op_pushforward=direct)
    values = run([x, t], [a, b], 0.5, 3.0)
    np.testing.assert_allclose(values, [6.0, 1.5])


@BOTH
def test_f_that_is_a_wrt(direct):
    x, t = pt.dscalar("x"), pt.dscalar("t")
    got = pushforward([x, x**2], x, t, use_op_pushforward=direct)
    np.testing.assert_allclose(run([x, t], got, 3.0, 2.0), [2.0, 12.0])


@BOTH
def test_disconnected(direct):
    x, y, t = pt.dscalars("x", "y", "t")
    options = {"use_op_pushforward": direct}
    with pytest.raises(DisconnectedInputError, match="depends on none"):
        pushforward(y**2, x, t, **options)
    with pytest.warns(UserWarning, match="depends on none"):
        pushforward(y**2, x, t, disconnected_outputs="warn", **options)
    zero = pushforward(y**2, x, t, disconnected_outputs="ignore", **options)
    np.testing.assert_array_equal(run([y], zero, 1.0), 0.0)
    assert (
        pushforward(y**2, x, t, disconnected_outputs="ignore", return_disconnected="none", **options) is None
    )


@BOTH
def test_complex_tangents(direct):
    z, t = pt.zvector("z"), pt.zvector("t")
    f = pt.exp(z) * pt.conj(z) + abs(z)
    zv, tv = np.array([0.3 + 0.1j, -1 + 2j]), np.array([1 - 1j, 0.5j])

    def value(z):
        return np.exp(z) * np.conj(z) + abs(z)

    expected = (value(zv + 1e-6 * tv) - value(zv - 1e-6 * tv)) / 2e-6
    np.testing.assert_allclose(
        run([z, t], pushforward(f, z, t, use_op_pushforward=direct), zv, tv), expected, rtol=1e-6
    )


def test_checks_and_old_names():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="one tangent for each wrt"):
        pushforward(x * 2, [x], [x, x])
    with pytest.raises(ValueError, match="must have 1 dimensions"):
        pushforward(x * 2, x, pt.dscalar())
    with pytest.raises(TypeError, match="eval_points"):
        pushforward(x * 2, x)
    assert graphc.Rop(x * 2, x, x).type == x.type
    np.testing.assert_allclose(run([x], pushforward(x * 2, x, tangents=x), [1.0]), [2.0])

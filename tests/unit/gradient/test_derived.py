# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jacobian`, `hessian` and the batching of graphs that they use."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import DisconnectedInputError
from graphc.gradient import grad, hessian, jacobian
from graphc.transforms.vectorize import vectorize_graph


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


def numeric_jacobian(f, x, eps=1e-6):
    columns = []
    for index in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[index] = eps
        columns.append((f(x + step) - f(x - step)) / (2 * eps))
    return np.stack(columns, -1).reshape(np.shape(f(x)) + x.shape)


CASES = {
    "elementwise": lambda x: pt.tanh(x) * x[0] + pt.exp(-x),
    "reductions": lambda x: pt.stack([x.sum(), pt.max(x), pt.prod(x), (x**2).mean()]),
    "softmax": lambda x: x - pt.logsumexp(x),
    "reshape": lambda x: x.reshape((2, 2)) * x.reshape((2, 2)).T,
    "broadcast": lambda x: pt.dimshuffle(x, (0, "x")) * x,
    "join": lambda x: pt.concatenate([x, x[::-1] ** 2, pt.ones_like(x[:1])]),
    "slices": lambda x: x[1:] - x[:-1] ** 2,
    "update": lambda x: pt.set_subtensor(x[1:3], x[2:] ** 2),
    "take": lambda x: (x**2)[np.array([0, 3, 3])],
    "dot": lambda x: pt.dot(np.arange(12.0).reshape(3, 4), x**2),
    "outer": lambda x: pt.outer(x, x).sum(axis=0),
    "matmul": lambda x: pt.dot(x.reshape((2, 2)), pt.exp(x).reshape((2, 2))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
def test_jacobian_agrees_with_differences(case, known):
    x = pt.vector("x", shape=(4 if known else None,), dtype="float64")
    y = CASES[case](x)
    value = graphc.function([x], y, mode="reference")
    v = np.array([0.3, -0.7, 1.1, 0.5])
    np.testing.assert_allclose(run([x], jacobian(y, x), v), numeric_jacobian(value, v), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("case", ["elementwise", "reductions", "slices"])
def test_unrolled_rows_agree_with_batched_ones(case):
    x = pt.vector("x", shape=(4,), dtype="float64")
    y = CASES[case](x)
    v = np.array([0.3, -0.7, 1.1, 0.5])
    batched, unrolled = run([x], [jacobian(y, x, vectorize=True), jacobian(y, x, vectorize=False)], v)
    np.testing.assert_allclose(batched, unrolled)


def test_the_graph_of_a_jacobian_does_not_grow_with_the_rows():
    def nodes(n):
        x = pt.vector("x", shape=(n,), dtype="float64")
        return len(list(graphc.graph.toposort([jacobian(pt.sin(x) * x.sum(), x)])))

    assert nodes(100) == nodes(5)


def test_jacobian_shapes_and_containers():
    x, y = pt.matrix("x", shape=(2, 3), dtype="float64"), pt.vector("y", shape=(3,), dtype="float64")
    f = pt.dot(x, y)
    jx, jy = jacobian(f, [x, y])
    assert jx.type.shape == (2, 2, 3)
    xv, yv = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    a, b = run([x, y], [jx, jy], xv, yv)
    np.testing.assert_allclose(a, np.einsum("ij,k->ijk", np.eye(2), yv))
    np.testing.assert_allclose(b, xv)
    assert isinstance(jacobian(f, (x, y)), tuple)
    scalar = jacobian(f.sum(), x)
    np.testing.assert_allclose(run([x, y], scalar, xv, yv), np.tile(yv, (2, 1)))
    matrix = jacobian(x * 2, x)
    np.testing.assert_allclose(run([x], matrix, xv), 2 * np.einsum("ij,kl->ikjl", np.eye(2), np.eye(3)))


def test_jacobian_of_a_run_time_size():
    x = pt.dvector("x")
    j = jacobian(x**2, x)
    f = graphc.function([x], j, mode="reference")
    for n in (1, 3, 0):
        np.testing.assert_allclose(f(np.arange(float(n))), np.diag(2 * np.arange(float(n))))


def test_jacobian_disconnected():
    x, y = pt.dvector("x"), pt.dvector("y")
    with pytest.raises(DisconnectedInputError):
        jacobian(x * 2, y)
    zero = jacobian(x * 2, y, disconnected_inputs="ignore")
    assert run([x, y], zero, [1.0, 2.0], [1.0, 2.0, 3.0]).shape == (2, 3)


def test_jacobian_refuses_what_it_cannot_do():
    with pytest.raises(TypeError, match="needs a variable"):
        jacobian(1.0, pt.dvector())
    z = pt.zvector("z")
    with pytest.raises(TypeError, match="real expression"):
        jacobian(z * 2, z)
    x = pt.dvector("x")
    assert np.array_equal(jacobian(x * 2, x, vectorize=False).eval({x: np.ones(3)}), 2 * np.eye(3))


class Opaque(graphc.Op):
    """Sine of a vector, without a batching rule."""

    __props__ = ()

    def make_node(self, x):
        if x.type.ndim != 1:
            raise TypeError("vectors only")
        return graphc.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.sin(inputs[0])

    def pullback(self, inputs, outputs, cotangents):
        return [Weighted()(inputs[0], cotangents[0])]


class Weighted(Opaque):
    def make_node(self, x, g):
        return graphc.Apply(self, [x, g], [g.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.cos(inputs[0]) * inputs[1]


@pytest.mark.parametrize("size", [3, None])
def test_ops_without_a_rule_are_loops(size):
    x = pt.vector("x", shape=(size,), dtype="float64")
    v = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(run([x], jacobian(Opaque()(x), x), v), np.diag(np.cos(v)))


def test_hessian():
    from scipy.optimize import rosen_hess

    x = pt.dvector("x")
    cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    v = np.array([1.3, 0.7, 0.8, 1.9])
    np.testing.assert_allclose(run([x], hessian(cost, x), v), rosen_hess(v))


def test_hessian_of_a_linear_cost_is_zero():
    x = pt.dvector("x")
    np.testing.assert_array_equal(run([x], hessian((2 * x).sum(), x), [1.0, 2.0]), np.zeros((2, 2)))


def test_hessian_checks():
    x, m = pt.dvector("x"), pt.dmatrix("m")
    with pytest.raises(ValueError, match=r"scalar \(0-d\)"):
        hessian(x, x)
    with pytest.raises(ValueError, match=r"vectors \(1-d\)"):
        hessian(m.sum(), m)
    assert isinstance(hessian((x**2).sum(), [x]), list)


def test_gradient_of_a_jacobian():
    x = pt.dvector("x")
    cost = (jacobian(x**3, x) ** 2).sum()
    v = np.array([0.5, 2.0])
    np.testing.assert_allclose(run([x], grad(cost, x), v), 36 * v**3)


def test_vectorize_graph_with_two_axes():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = pt.dot(x, y) * pt.exp(x)
    batch = pt.tensor("batch", shape=(None, 2, None), dtype="float64")
    g = vectorize_graph(f, {x: batch})
    rng = np.random.default_rng(0)
    bv, yv = rng.normal(size=(3, 2, 4)), rng.normal(size=4)
    np.testing.assert_allclose(run([batch, y], g, bv, yv), (bv @ yv)[..., None] * np.exp(bv))
    # Batch axes broadcast from the right.
    rows = pt.dmatrix("rows")
    g = vectorize_graph(f, {x: batch, y: rows})
    yv = rng.normal(size=(2, 4))
    np.testing.assert_allclose(run([batch, rows], g, bv, yv), (bv * yv).sum(-1)[..., None] * np.exp(bv))

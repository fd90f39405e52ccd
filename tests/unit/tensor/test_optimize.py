# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minima and roots: values against closed forms, derivatives against differences, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.tensor.optimize import minimize, minimize_scalar, root, root_scalar

SCALAR = [
    (minimize, {}),
    (minimize, {"jac": False, "method": "powell"}),
    (minimize, {"hess": True, "method": "Newton-CG"}),
    (minimize_scalar, {}),
]


@pytest.mark.parametrize("find, options", SCALAR)
def test_minimum_of_a_number(find, options):
    x, a, b = pt.dscalar("x"), pt.dscalar("a"), pt.dscalar("b")
    found, success = find((x - a * b) ** 2 + pt.exp(b), x, **options)
    assert found.type == x.type and success.type.dtype == "bool"
    slopes = graphc.grad(found, [a, b])
    f = graphc.function([x, a, b], [found, success, *slopes])
    value, good, by_a, by_b = f(0.3, 2.0, 3.0)
    assert good
    np.testing.assert_allclose([value, by_a, by_b], [6, 3, 2], rtol=1e-5)


@pytest.mark.parametrize(
    "find, options",
    [
        (root_scalar, {}),
        (root_scalar, {"jac": True, "method": "newton"}),
        (root_scalar, {"jac": True, "hess": True, "method": "halley"}),
        (root_scalar, {"method": "brentq", "optimizer_kwargs": {"bracket": (-3, 3)}}),
        (root, {}),
        (root, {"jac": False, "method": "lm"}),
    ],
)
def test_root_of_a_number(find, options):
    x, a = pt.dscalar("x"), pt.dscalar("a")
    found, success = find(x + 2 * a * pt.cos(x), x, **options)
    f = graphc.function([x, a], [found, success, graphc.grad(found, a)])
    value, good, slope = f(0.0, 1.0)
    assert good
    np.testing.assert_allclose(value, -1.029866529322, rtol=1e-7)
    # x' (1 - 2 a sin x) + 2 cos x = 0
    np.testing.assert_allclose(slope, -2 * np.cos(value) / (1 - 2 * np.sin(value)), rtol=1e-6)


def quadratic(matrix, b, x):
    return 0.5 * (x.ravel() @ matrix @ x.ravel()) - (b * x).sum()


@pytest.mark.parametrize("dtype, shape", [("float64", (3,)), ("float32", (3,)), ("float64", (3, 1))])
@pytest.mark.parametrize("static", [True, False])
def test_minimum_of_an_array(dtype, shape, static):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(3, 3))
    matrix, b_value = (half @ half.T + 3 * np.eye(3)).astype(dtype), rng.normal(size=shape).astype(dtype)
    x = pt.tensor(dtype=dtype, shape=shape if static else (None,) * len(shape))
    b, m = pt.tensor(dtype=dtype, shape=(None,) * len(shape)), pt.tensor(dtype=dtype, shape=(None, None))
    options = {"tol": 1e-9 if dtype == "float64" else 1e-3}
    found, _ = minimize(quadratic(m, b, x), x, hess=True, method="trust-ncg", optimizer_kwargs=options)
    cost = (found * np.arange(1, 4, dtype=dtype).reshape(shape)).sum()
    f = graphc.function([x, b, m], [found, *graphc.grad(cost, [b, m])])
    value, by_b, by_m = f(np.zeros(shape, dtype), b_value, matrix)
    inverse, weights = np.linalg.inv(matrix.astype(float)), np.arange(1.0, 4.0)
    solution = inverse @ b_value.ravel()
    assert value.dtype == dtype and value.shape == shape
    tolerance = {"rtol": 1e-5} if dtype == "float64" else {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(value.ravel(), solution, **tolerance)
    np.testing.assert_allclose(by_b.ravel(), inverse.T @ weights, **tolerance)
    half = np.outer(inverse.T @ weights, solution)
    np.testing.assert_allclose(by_m, -(half + np.outer(solution, inverse.T @ weights)) / 2, **tolerance)


def test_several_unknowns():
    u, v, a = pt.dscalar("u"), pt.dvector("v"), pt.dvector("a")
    found, success = minimize((u - a.sum()) ** 2 + ((v - u * a) ** 2).sum(), [u, v])
    f = graphc.function([u, v, a], [*found, success, *graphc.grad(found[1].sum(), [a])])
    point = np.array([1.0, 2.0, 3.0])
    best, vector, good, slope = f(0.0, np.zeros(3), point)
    assert good
    np.testing.assert_allclose(best, 6, rtol=1e-5)
    np.testing.assert_allclose(vector, 6 * point, rtol=1e-5)
    np.testing.assert_allclose(slope, np.full(3, 12.0), rtol=1e-5)  # sum(v) = sum(a)^2

    y, z, c = pt.dscalars("y", "z", "c")
    (y_root, z_root), _ = root(pt.stack([y**2 * c - 1, y + z - 2]), [y, z])
    g = graphc.function([y, z, c], [y_root, z_root, graphc.grad(z_root, c)])
    np.testing.assert_allclose(g(1.0, 1.0, 4.0), [0.5, 1.5, 1 / 16], rtol=1e-8)


def test_second_derivatives_and_batches():
    x, a = pt.dscalar("x"), pt.dscalar("a")
    found, _ = root(x**3 - a, x)
    curvature = graphc.grad(graphc.grad(found, a), a)
    np.testing.assert_allclose(curvature.eval({x: 1.5, a: 8.0}), -2 / 9 * 8 ** (-5 / 3), rtol=1e-8)
    grid = pt.dmatrix("grid")
    roots, slopes = graphc.vectorize_graph([found, graphc.grad(found, a)], {a: grid})
    points = np.array([[1.0, 8.0], [27.0, 64.0]])
    values, steep = graphc.function([x, grid], [roots, slopes])(1.5, points)
    np.testing.assert_allclose(values, np.cbrt(points), rtol=1e-8)
    np.testing.assert_allclose(steep, points ** (-2 / 3) / 3, rtol=1e-7)


def test_what_does_not_depend_on_the_unknown_is_computed_outside():
    x, a, b = pt.dscalar("x"), pt.dscalar("a"), pt.dscalar("b")
    inner = a * b
    found, _ = minimize((x - inner) ** 2 + pt.cast(pt.constant(0), "int64"), x)
    assert found.owner.inputs == [x, inner]


def test_what_moves_no_minimum_is_disconnected():
    x, a, n = pt.dscalar("x"), pt.dscalar("a"), pt.lscalar("n")
    found, success = minimize((x - 1) ** 2 + a, x)
    with pytest.raises(graphc.gradient.DisconnectedInputError):
        graphc.grad(found, a)
    repeated, _ = root_scalar(pt.alloc(x**2 - 1, n).sum(), x)
    with pytest.raises(graphc.gradient.DisconnectedInputError):
        graphc.grad(repeated, n)
    slope = graphc.grad(repeated, n, disconnected_inputs="ignore")
    assert slope.eval({x: 3.0, n: 5}, on_unused_input="ignore") == 0
    assert success.eval({x: 0.0, a: 1.0})


def test_starts_of_narrower_types_shared_parameters_and_pickles():
    x, a = pt.dvector("x"), graphc.shared(np.array([1.0, 2.0, 3.0]), name="a")
    found, _ = minimize(((x - a) ** 2).sum(), x)
    started = graphc.graph.replace.graph_replace(found, {x: pt.ones(3)})
    f = graphc.function([], started)
    np.testing.assert_allclose(f(), [1, 2, 3], rtol=1e-6)
    a.set_value(np.array([4.0, 5.0, 6.0]))
    np.testing.assert_allclose(f(), [4, 5, 6], rtol=1e-6)
    y = pt.dscalar("y")
    g = pickle.loads(pickle.dumps(graphc.function([y], root(y**2 - 2, y)[0])))
    np.testing.assert_allclose(g(1.0), np.sqrt(2), rtol=1e-9)


def test_a_search_that_fails_says_so():
    x = pt.dscalar("x")
    _, success = root(x**2 + 1, x)
    assert not success.eval({x: 3.0})


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, v, i: minimize(v, v), "objective must be a scalar"),
        (lambda x, v, i: minimize(x**2, v), "not depend on v"),
        (lambda x, v, i: minimize(i**2, i), "must be a float tensor"),
        (lambda x, v, i: minimize_scalar(v.sum(), v), "must have 0 dimensions"),
        (lambda x, v, i: root(v.sum(), v), "equations must have 1 dimensions"),
        (lambda x, v, i: root_scalar(x, x, hess=True), "needs jac=True"),
        (lambda x, v, i: minimize(x, []), "at least one variable"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(pt.dscalar("x"), pt.dvector("v"), pt.lscalar("i"))

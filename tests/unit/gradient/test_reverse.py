# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`grad` and `pullback`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import DisconnectedInputError, NullTypeGradError
from graphc.gradient import (
    DisconnectedType,
    disconnected_type,
    grad,
    grad_not_implemented,
    numeric_grad,
    pullback,
    subgraph_grad,
)

from ._faulty import Faulty


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


def test_polynomial():
    x = pt.dscalar("x")
    y = x**3 + 2 * x
    np.testing.assert_allclose(run([x], grad(y, x), 2.0), 14.0)


@pytest.mark.parametrize("constant", [True, False])
def test_powers_of_zero(constant):
    """Each column of a matrix of powers, the constant one too, has derivatives of any order at 0."""
    x, n = pt.dvectors("x", "n")
    exponents = np.arange(4.0)
    y = x[:, None] ** (exponents if constant else n)
    first = grad((y * [1.0, 2.0, 3.0, 4.0]).sum(), x)
    found = run([x, n], [first, grad(first.sum(), x)], [0.0, -1.0, 2.0], exponents)
    np.testing.assert_allclose(found, [[2.0, 8.0, 62.0], [6.0, -18.0, 54.0]])


def test_mixed_derivatives_of_powers():
    """Those by the exponent at 0, where the derivative by the base is 0."""
    x, y = pt.dvectors("x", "y")
    slope = grad((x**y).sum(), x)
    points = np.array([2.0, 0.25, 3.0, 0.5]), np.array([0.0, 0.0, 1.0, -1.0])
    a, b = points
    found = run([x, y], grad(slope.sum(), y), *points)
    np.testing.assert_allclose(found, a ** (b - 1) * (1 + b * np.log(a)))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_slopes_on_branch_cuts(mode):
    """Along a cut, on the side that the sign of a zero says."""
    z = pt.vector("z", dtype="complex128")
    # Functions, points on their cuts, and the direction of the cut.
    cases = [
        (pt.arcsin, np.arcsin, (2.0, -2.0), 1.0), (pt.arccos, np.arccos, (2.0, -2.0), 1.0),
        (pt.arcsinh, np.arcsinh, (2.0, -2.0), 1j), (pt.arccosh, np.arccosh, (0.5, -2.0), 1.0),
        (pt.sqrt, np.sqrt, (-2.0, -0.5), 1.0), (pt.log, np.log, (-2.0, -0.5), 1.0),
    ]  # fmt: skip
    functions = [grad(pt.real(part * ours(z)).sum(), z) for ours, *_ in cases for part in (1, -1j)]
    f = graphc.function([z], functions, mode=mode)
    for i, (_, theirs, places, along) in enumerate(cases):
        for zero in (0.0, -0.0):
            at = np.array([complex(p, zero) if along == 1 else complex(zero, p) for p in places])
            step = np.array([complex(1e-6, 0)] * 2 if along == 1 else [complex(0, 1e-6)] * 2)
            # Parts that are zeros keep their signs.
            ends = [np.array(at) for _ in "+-"]
            for end, sign in zip(ends, (1, -1), strict=True):
                name = "real" if along == 1 else "imag"
                setattr(end, name, getattr(at, name) + sign * getattr(step, name))
            change = (theirs(ends[0]) - theirs(ends[1])) / 2e-6
            re, im = (np.real(np.conj(g) * along) for g in f(at)[2 * i : 2 * i + 2])
            np.testing.assert_allclose(re + 1j * im, change, rtol=1e-6, atol=1e-8, err_msg=theirs.__name__)


def test_result_container_follows_wrt():
    x, y = pt.dscalars("x", "y")
    cost = x * y
    assert isinstance(grad(cost, [x, y]), list)
    assert isinstance(grad(cost, (x, y)), tuple)
    assert grad(cost, x).type == x.type


def test_terms_of_all_uses_are_added():
    x = pt.dvector("x")
    h = pt.exp(x)
    cost = (h * h + h).sum() + x.sum()
    v = np.array([0.1, -0.3])
    np.testing.assert_allclose(run([x], grad(cost, x), v), 2 * np.exp(2 * v) + np.exp(v) + 1)


def test_wrt_may_be_an_inner_variable_and_the_cost():
    x = pt.dvector("x")
    h = pt.exp(x)
    cost = (h**2).sum()
    gh, gc, gx = grad(cost, [h, cost, x])
    values = run([x], [gh, gc, gx], [0.0, 1.0])
    h_value = np.exp([0.0, 1.0])
    np.testing.assert_allclose(values[0], 2 * h_value)
    np.testing.assert_allclose(values[1], 1.0)
    np.testing.assert_allclose(values[2], 2 * h_value**2)


def test_broadcast_dimensions_are_summed():
    x = pt.dmatrix("x")
    b = pt.dvector("b")
    cost = ((x + b) ** 2).sum()
    xv, bv = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    gx, gb = run([x, b], grad(cost, [x, b]), xv, bv)
    np.testing.assert_allclose(gx, 2 * (xv + bv))
    np.testing.assert_allclose(gb, (2 * (xv + bv)).sum(0))


def test_second_derivative():
    x = pt.dscalar("x")
    second = grad(grad(pt.sin(x) * x**2, x), x)
    v = 0.7
    expected = -np.sin(v) * v**2 + 4 * v * np.cos(v) + 2 * np.sin(v)
    np.testing.assert_allclose(run([x], second, v), expected)


def test_deep_graph_does_not_recurse():
    x = pt.dscalar("x")
    y = x
    for _ in range(3000):
        y = y * 1.0001
    np.testing.assert_allclose(run([x], grad(y, x), 1.0), 1.0001**3000, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradient_has_the_dtype_of_its_variable(dtype):
    x = pt.vector("x", dtype=dtype)
    cost = (x.astype("float64") ** 2).sum()
    g = grad(cost, x)
    assert g.type.dtype == dtype
    np.testing.assert_allclose(run([x], g, np.array([1, 2], dtype)), [2, 4])


def test_names():
    x = pt.dscalar("x")
    cost = x**2
    cost.name = "cost"
    assert grad(cost, x).name == "(dcost/dx)"
    assert grad(cost, x, add_names=False).name is None


# Disconnected -------------------------------------------------------------------------------------


def test_disconnected_policies():
    x, y = pt.dscalars("x", "y")
    with pytest.raises(DisconnectedInputError, match="with respect to y"):
        grad(x**2, [x, y])
    with pytest.warns(UserWarning, match="with respect to y"):
        grad(x**2, y, disconnected_inputs="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero = grad(x**2, y, disconnected_inputs="ignore")
    np.testing.assert_array_equal(run([x, y], zero, 1.0, 2.0), 0.0)
    assert grad(x**2, y, disconnected_inputs="ignore", return_disconnected="none") is None
    placeholder = grad(x**2, y, disconnected_inputs="ignore", return_disconnected="disconnected")
    assert isinstance(placeholder.type, DisconnectedType)
    with pytest.raises(ValueError, match="disconnected_inputs must be one of"):
        grad(x**2, y, disconnected_inputs="never")


def test_shape_is_disconnected():
    x = pt.dvector("x")
    with pytest.raises(DisconnectedInputError):
        grad(x.shape[0].astype("float64") * 2.0, x)
    cost = x.sum() * x.shape[0]
    np.testing.assert_allclose(run([x], grad(cost, x), [1.0, 2.0, 3.0]), [3, 3, 3])


def test_comparison_is_zero_but_connected():
    x = pt.dvector("x")
    cost = pt.switch(x > 0, 2.0, 3.0).sum()
    np.testing.assert_array_equal(run([x], grad(cost, x), [1.0, -1.0]), [0, 0])


@pytest.mark.parametrize("f", [pt.floor, pt.sign, pt.ceil])
def test_piecewise_constant_functions_have_zero_gradient(f):
    x = pt.dvector("x")
    np.testing.assert_array_equal(run([x], grad(f(x).sum(), x), [1.5, -1.5]), [0, 0])


def test_consider_constant():
    x, y = pt.dscalars("x", "y")
    h = x * y
    cost = h**2 + x
    gx = grad(cost, x, consider_constant=[h])
    np.testing.assert_allclose(run([x, y], gx, 2.0, 3.0), 1.0)
    with pytest.raises(DisconnectedInputError):
        grad(h**2, x, consider_constant=[h])
    # The constant itself can still be differentiated with respect to.
    np.testing.assert_allclose(run([x, y], grad(cost, h, consider_constant=[h]), 2.0, 3.0), 12.0)
    with pytest.raises(TypeError, match="list of variables"):
        grad(cost, x, consider_constant=h)


# Integers -----------------------------------------------------------------------------------------


def test_integer_inputs_have_float_gradients():
    i = pt.ivector("i")
    x = pt.dvector("x")
    cost = (x * i).sum()
    gi = grad(cost, i)
    assert gi.type.dtype == "float64"
    np.testing.assert_allclose(run([x, i], gi, [1.5, 2.5], [1, 2]), [1.5, 2.5])


def test_nothing_passes_through_integer_results():
    i = pt.lvector("i")
    cost = ((i * 2) * 1.5).sum()
    g = grad(cost, i)
    assert g.type.dtype == graphc.config.floatX
    np.testing.assert_array_equal(run([i], g, [1, 2]), [0.0, 0.0])
    np.testing.assert_array_equal(run([i], grad(i.sum(), i), [1, 2]), [0.0, 0.0])


def test_cast_to_integer_has_zero_gradient():
    x = pt.dvector("x")
    cost = (x.astype("int64") * x).sum()
    np.testing.assert_allclose(run([x], grad(cost, x), [1.5, 2.5]), [1, 2])


# Complex ------------------------------------------------------------------------------------------


def test_complex_gradient_is_that_of_real_and_imaginary_part():
    z = pt.zvector("z")
    cost = (pt.real(z * z) + 2 * pt.imag(z) + abs(z) ** 2).sum()
    v = np.array([1 + 2j, -0.5 + 0.3j])
    a, b = v.real, v.imag
    # real(z*z) = a**2 - b**2, abs(z)**2 = a**2 + b**2
    expected = (2 * a + 2 * a) + 1j * (-2 * b + 2 + 2 * b)
    np.testing.assert_allclose(run([z], grad(cost, z), v), expected)


def test_complex_holomorphic():
    z = pt.zvector("z")
    w = pt.exp(z) * pt.sin(z)
    cost = (pt.real(w) * 2 - pt.imag(w)).sum()
    v = np.array([0.3 + 0.2j, -0.4 + 0.9j])

    def f(a, b):
        w = np.exp(a + 1j * b) * np.sin(a + 1j * b)
        return (2 * w.real - w.imag).sum()

    ga, gb = numeric_grad(f, [v.real, v.imag])
    np.testing.assert_allclose(run([z], grad(cost, z), v), ga + 1j * gb, rtol=1e-6)


def test_complex_from_real_input():
    x = pt.dvector("x")
    cost = abs(pt.exp(1j * x) + 0.5).sum()
    v = np.array([0.3, 1.2])
    (expected,) = numeric_grad(lambda a: abs(np.exp(1j * a) + 0.5).sum(), [v])
    g = grad(cost, x)
    assert g.type.dtype == "float64"
    np.testing.assert_allclose(run([x], g, v), expected, rtol=1e-6)


def test_complex_cost_is_refused():
    z = pt.zscalar("z")
    with pytest.raises(TypeError, match="real cost"):
        grad(z * z, z)


# Known gradients and pullback ---------------------------------------------------------------------


def test_known_grads_replace_what_would_be_computed():
    x = pt.dvector("x")
    h = pt.tanh(x)
    cost = (h**2).sum()
    gh = grad(cost, h)
    given = pt.dvector("given")
    gx = grad(None, x, known_grads={h: given})
    v = np.array([0.2, 0.5])
    np.testing.assert_allclose(run([x, given], gx, v, [1.0, 2.0]), [1.0, 2.0] * (1 - np.tanh(v) ** 2))
    same = grad(cost, x, known_grads={h: gh})
    np.testing.assert_allclose(run([x], same, v), run([x], grad(cost, x), v))
    doubled = grad(cost, x, known_grads={cost: pt.as_tensor_variable(2.0)})
    np.testing.assert_allclose(run([x], doubled, v), 2 * run([x], grad(cost, x), v))


def test_known_grads_are_checked():
    x = pt.dscalar("x")
    with pytest.raises(TypeError, match="must be a variable"):
        grad(None, x, known_grads={x**2: 1.0})
    with pytest.raises(TypeError, match="floating-point"):
        grad(None, x, known_grads={x**2: pt.as_tensor_variable(1)})
    with pytest.raises(ValueError, match="both are None"):
        grad(None, x)


def test_pullback():
    x = pt.dvector("x")
    w = pt.dmatrix("w")
    v = pt.dvector("v")
    y = pt.dot(w, pt.tanh(x))
    gx, gw = pullback(y, [x, w], v)
    rng = np.random.default_rng(1)
    xv, wv, vv = rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=2)
    got = run([x, w, v], [gx, gw], xv, wv, vv)
    np.testing.assert_allclose(got[0], (1 - np.tanh(xv) ** 2) * (wv.T @ vv))
    np.testing.assert_allclose(got[1], np.outer(vv, np.tanh(xv)))


def test_pullback_adds_when_one_f_is_computed_from_another():
    x = pt.dscalar("x")
    h = x**2
    y = h * 3
    g = pullback([h, y], x, [pt.as_tensor_variable(10.0), pt.as_tensor_variable(1.0)])
    np.testing.assert_allclose(run([x], g, 2.0), 10 * 4 + 12)


def test_pullback_checks_its_arguments():
    x = pt.dvector("x")
    with pytest.raises(ValueError, match="one cotangent for each f"):
        pullback([x * 2], x, [x, x])
    with pytest.raises(ValueError, match="must have 1 dimensions"):
        pullback(x * 2, x, pt.dscalar())
    assert graphc.Lop(x * 2, x, x).type == x.type


def test_subgraph_grad():
    x, w1, w2 = pt.dvector("x"), pt.dmatrix("w1"), pt.dmatrix("w2")
    a1 = pt.tanh(pt.dot(x, w1))
    a2 = pt.tanh(pt.dot(a1, w2))
    cost2 = (a2**2).sum() + (w2**2).sum()
    cost1 = (w1**2).sum()
    (g2,), ends = subgraph_grad([w2], [a1], cost=cost2)
    start = dict(zip([a1], ends, strict=True))
    (g1,), _, from_start, from_cost = subgraph_grad([w1], [x], start=start, cost=cost1, details=True)
    assert len(from_start) == len(from_cost) == 1
    rng = np.random.default_rng(3)
    values = rng.normal(size=2), rng.normal(size=(2, 3)), rng.normal(size=(3, 2))
    for ours, whole in zip([g1, g2], grad(cost1 + cost2, [w1, w2]), strict=True):
        np.testing.assert_allclose(run([x, w1, w2], ours, *values), run([x, w1, w2], whole, *values))
    apart = run([x, w1, w2], from_start[0] + from_cost[0], *values)
    np.testing.assert_allclose(apart, run([x, w1, w2], g1, *values))
    for arguments in (({w1}, [x], start), ([w1], x, start), ([w1], [x], ends)):
        with pytest.raises(TypeError, match="must"):
            subgraph_grad(*arguments)


# Errors -------------------------------------------------------------------------------------------


def test_cost_must_be_scalar():
    x = pt.dvector("x")
    with pytest.raises(TypeError, match=r"scalar \(0-d\) cost.*\.sum\(\)"):
        grad(x * 2, x)
    with pytest.raises(TypeError, match="must be a variable"):
        grad(x.sum(), 3.0)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (lambda op, x, g: g[0], TypeError, "must return a list"),
        (lambda op, x, g: [], ValueError, "one term for each input, 1 in all, got 0"),
        (lambda op, x, g: [3.0], TypeError, "must be a variable or None"),
        (lambda op, x, g: [g[0].sum()], ValueError, r"shape \(\)"),
        (lambda op, x, g: [pt.zeros_like(x[0], dtype="int64")], TypeError, "discrete type"),
        (lambda op, x, g: [grad_not_implemented(op, 0, x[0], "too hard")], NullTypeGradError, "too hard"),
        (lambda op, x, g: [disconnected_type()], DisconnectedInputError, "with respect to x"),
    ],
)
def test_faulty_rules(rule, error, message):
    x = pt.dvector("x")
    with pytest.raises(error, match=message):
        grad(Faulty(rule)(x).sum(), x)


def test_undefined_gradients_may_be_returned():
    x = pt.dvector("x")
    bad = Faulty(lambda op, x, g: [grad_not_implemented(op, 0, x[0])])(x).sum()
    assert "Null" in str(grad(bad, x, null_gradients="return").type)


def test_theano_rule_names():
    class OldStyle(graphc.Op):
        __props__ = ()

        def make_node(self, x):
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] ** 2

        def grad(self, inputs, g):
            return [g[0] * 2 * inputs[0]]

    x = pt.dvector("x")
    np.testing.assert_allclose(run([x], grad(OldStyle()(x).sum(), x), [1.0, 3.0]), [2, 6])


def test_wrt_may_be_a_constant():
    c = pt.as_tensor_variable(np.array([1.0, 2.0]))
    x = pt.dvector("x")
    h = x * c
    gc, gh = grad((h * c).sum(), [c, h])
    np.testing.assert_allclose(run([x], [gc, gh], [3.0, 4.0]), [[6, 16], [1, 2]])


@pytest.mark.parametrize(
    "between",
    [
        lambda x: pt.cast(x.T, "complex128").real,
        lambda x: pt.conj(x[None].transpose(2, 0, 1))[:, 0],
        lambda x: -(x.T),
        lambda x: pt.linalg.cholesky(x.T @ x + pt.eye(3)).T,
        lambda x: pt.set_subtensor(x.T[1:], 2.0).T.reshape((3, 2)),
        lambda x: pt.concatenate([x.T[1:], pt.take(x.T, [0, 0], axis=0)]),
    ],
)
def test_cotangents_that_are_permuted_are_added_up_whatever_made_them(between):
    """Of one operand, as a cast, of several, or an update, which is seen as one of the permuted array."""
    x = pt.dmatrix("x")
    y = between(x)
    w = pt.constant(np.arange(12.0).reshape(4, 3))
    loss = (pt.sin(y) * w[: y.shape[0], : y.shape[1]]).sum() + (pt.exp(between(x)) * 0.1).sum()
    value = np.array([[0.5, -0.25, 1], [0.125, 0.75, -0.5]])
    (expected,) = numeric_grad(graphc.function([x], loss, mode="reference"), [value])
    np.testing.assert_allclose(run([x], grad(loss, x), value), expected, rtol=1e-5, atol=1e-5)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives through conditionals: right, and computed for the chosen side only."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import Apply, Op, grad, ifelse
from graphc.gradient import hessian, jacobian, pullback, pushforward, verify_grad
from graphc.gradient.derived import hessian_vector_product
from graphc.graph.demand import MAX_PRODUCTS
from graphc.graph.traversal import toposort


class Count(Op):
    """The identity; counts how often it runs, forward and in gradients."""

    __props__ = ("name",)
    runs: dict[str, int] = {}

    def __init__(self, name: str) -> None:
        self.name = name

    def make_node(self, x: Any) -> Apply:  # type: ignore[override]
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        Count.runs[self.name] = Count.runs.get(self.name, 0) + 1
        output_storage[0][0] = inputs[0].copy()

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [Count(f"d{self.name}")(cotangents[0])]


def count(name: str, x: Any) -> Any:
    return Count(name)(x)


def runs_of(function: Any, *values: Any) -> dict[str, int]:
    Count.runs = {}
    function(*values)
    return Count.runs


def compiled(inputs: list[Any], outputs: Any, mode: str = "reference") -> Any:
    return graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")


X, S = pt.dvector("x"), pt.dscalar("s")
A, B = pt.scalar("a", dtype="bool"), pt.scalar("b", dtype="bool")


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_the_other_side_does_not_spoil_the_gradient(mode):
    y = ifelse(S > 0, pt.log(S), -S)
    g = grad(y, S)
    f = compiled([S], [g, grad(g, S), pushforward(y, S, pt.constant(1.0))], mode)
    np.testing.assert_allclose(f(0.0), [-1.0, 0.0, -1.0])
    np.testing.assert_allclose(f(2.0), [0.5, -0.25, 0.5])
    # Also where the dangerous part is shared by two conditionals, and neither is chosen.
    root = pt.sqrt(S)
    z = ifelse(A, root, S) + ifelse(B, 2 * root, 3 * S)
    f = compiled([S, A, B], grad(z, S), mode)
    np.testing.assert_allclose(f(0.0, False, False), 4.0)
    np.testing.assert_allclose(f(4.0, True, False), 0.25 + 3)
    np.testing.assert_allclose(f(4.0, True, True), 0.75)


def test_only_the_chosen_side_is_computed_forward_and_backward():
    y = ifelse(A, pt.sin(count("then", X)).sum(), pt.exp(count("other", X)).sum())
    f = compiled([X, A], [y, grad(y, X)])
    assert runs_of(f, [1.0], True) == {"then": 1, "dthen": 1}
    assert runs_of(f, [1.0], False) == {"other": 1, "dother": 1}


def test_a_part_shared_by_conditionals_is_differentiated_where_one_of_them_needs_it():
    shared = pt.sin(count("shared", X))
    y = ifelse(A, shared.sum(), S) + ifelse(B, (shared * 2).sum(), S)
    f = compiled([X, S, A, B], [y, *grad(y, [X, S])])
    x = np.array([0.3, 0.7])
    for a in (True, False):
        for b in (True, False):
            _, gx, gs = f(x, 1.0, a, b)
            np.testing.assert_allclose(gx, (a + 2 * b) * np.cos(x))
            np.testing.assert_allclose(gs, (not a) + (not b))
            expected = {"shared": 1, "dshared": 1} if a or b else {}
            assert runs_of(f, x, 1.0, a, b) == expected


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_nested_conditionals_cost_linear_time(n):
    conditions = pt.dvector("conditions")
    y: Any = S
    for i in range(n):
        y = ifelse(conditions[i] > 0, pt.sin(count("then", y)), pt.cos(count("other", y)))
    f = compiled([S, conditions], [y, grad(y, S)])
    assert runs_of(f, 0.5, np.ones(n)) == {"then": n, "dthen": n}
    assert runs_of(f, 0.5, np.tile([1.0, -1.0], n // 2)) == dict.fromkeys(
        ("then", "dthen", "other", "dother"), n // 2
    )
    assert len(list(toposort([grad(y, S)]))) < 20 * n


def test_against_finite_differences():
    def f(x: Any, s: Any) -> Any:
        first = ifelse(s > 0, x * s, pt.sin(x[:2]))
        second = ifelse(first.sum() > 0.5, pt.exp(first).sum() + s, ifelse(s > -2, (first**2).sum(), s))
        return second * s + first[0]

    rng = np.random.default_rng(0)
    for s in (0.8, -0.7, -2.5):
        verify_grad(f, [np.array([0.4, 0.9, 1.3]), np.array(s)], rng=rng)


def test_wrt_inside_a_branch_and_the_conditional_itself():
    inner = pt.exp(S)
    y = ifelse(S > 0, 2 * inner, S)
    z = y * y
    gi, gy, gs = grad(z, [inner, y, S])
    f = compiled([S], [gi, gy, gs])
    e = np.e
    np.testing.assert_allclose(f(1.0), [2 * (2 * e) * 2, 4 * e, 8 * e * e])
    np.testing.assert_allclose(f(-1.0), [0.0, -2.0, -2.0])


def test_several_outputs_and_equal_sides():
    a, b = ifelse(A, [X, pt.sin(X)], [X, X * S])
    f = compiled([X, S, A], grad((a * b).sum(), [X, S]))
    x = np.array([0.5, 2.0])
    gx, gs = f(x, 3.0, True)
    np.testing.assert_allclose(gx, np.sin(x) + x * np.cos(x))
    np.testing.assert_allclose(gs, 0.0)
    gx, gs = f(x, 3.0, False)
    np.testing.assert_allclose(gx, 6 * x)
    np.testing.assert_allclose(gs, (x * x).sum())


def test_sides_of_different_shape_and_dtype():
    x32 = pt.vector("x32", dtype="float32")
    y = ifelse(A, x32[:2], X).sum()
    g32, g64 = grad(y, [x32, X])
    assert g32.type.dtype == "float32" and g64.type.dtype == "float64"
    f = compiled([x32, X, A], [g32, g64])
    ones = np.ones(3, "float32")
    np.testing.assert_array_equal(f(ones, [1.0], True)[0], [1, 1, 0])
    np.testing.assert_array_equal(f(ones, [1.0], True)[1], [0])
    np.testing.assert_array_equal(f(ones, [1.0], False)[0], [0, 0, 0])


def test_complex_and_integer_values():
    z = pt.zscalar("z")
    y = ifelse(A, pt.abs(z) ** 2, pt.real(z))
    f = compiled([z, A], grad(y, z))
    np.testing.assert_allclose(f(1 + 2j, True), 2 + 4j)
    np.testing.assert_allclose(f(1 + 2j, False), 1)
    n = pt.lscalar("n")
    y = ifelse(A, n * 1.5, n * n * S)
    g = grad(y, n)
    assert g.type.dtype == graphc.config.floatX
    np.testing.assert_allclose(compiled([n, S, A], g)(2, 3.0, True), 1.5)


def test_the_derivative_by_a_condition_is_zero():
    """As that by the condition of `switch`, whatever the condition is and what it chooses between."""
    chosen = [
        ifelse(S > 0, X.sum(), X.prod()),
        ifelse(S, X, X[::-1]).sum(),  # a float as the condition
        ifelse(S > 0, 0, 1),
        ifelse(pt.isnan(S), ifelse(S < 1, 2.0, X.sum()), 3.0),
        sum(ifelse(S > 0, [X.sum(), 1.0], [X.prod(), 2.0])),
        pt.switch(S > 0, X.sum(), X.prod()),
    ]
    slopes = [grad(y, S) for y in chosen] + [
        graphc.jacobian(chosen[0], S),
        grad(chosen[0] * S, S) - chosen[0],
    ]
    assert compiled([X, S], slopes)([1.0, 2.0, 4.0], 0.5) == [0.0] * len(slopes)
    assert compiled([X, S], [pushforward(y, S, pt.constant(2.0)) for y in chosen[:2]])([1.0, 2.0], 0.5) == [
        0,
        0,
    ]


def test_forward_mode():
    y = ifelse(A, pt.sin(count("then", X)) * S, X[::-1] * 2)
    t = pushforward(y, [X, S], [pt.ones_like(X), pt.constant(2.0)])
    twice = pushforward(y, [X, S], [pt.ones_like(X), pt.constant(2.0)], use_op_pushforward=False)
    f = compiled([X, S, A], [t, twice])
    x = np.array([0.2, 0.6])
    for got in f(x, 3.0, True):
        np.testing.assert_allclose(got, np.cos(x) * 3 + 2 * np.sin(x))
    for got in f(x, 3.0, False):
        np.testing.assert_allclose(got, [2.0, 2.0])
    # A side without tangent has zeros.
    y = ifelse(A, S, 3.0)
    assert compiled([S, A], pushforward(y, S, pt.constant(1.0)))(1.0, False) == 0.0


def test_second_derivatives():
    y = ifelse(A, (X**3).sum(), ifelse(B, pt.sin(X).prod(), X[0]))
    p = pt.constant(np.array([1.0, -2.0]))
    f = compiled([X, A, B], [hessian(y, X), hessian_vector_product(y, X, p)])
    x = np.array([0.3, 0.8])
    s, c = np.sin(x), np.cos(x)
    cases = {
        (True, False): np.diag(6 * x),
        (False, True): np.array([[-s[0] * s[1], c[0] * c[1]], [c[0] * c[1], -s[0] * s[1]]]),
        (False, False): np.zeros((2, 2)),
    }
    for (a, b), expected in cases.items():
        h, hp = f(x, a, b)
        np.testing.assert_allclose(h, expected, atol=1e-12)
        np.testing.assert_allclose(hp, expected @ [1.0, -2.0], atol=1e-12)


def test_jacobian():
    y = ifelse(A, pt.exp(X), X[::-1] * S)
    jx, js = jacobian(y, [X, S])
    f = compiled([X, S, A], [jx, js])
    x = np.array([0.1, 0.2, 0.3])
    got = f(x, 2.0, True)
    np.testing.assert_allclose(got[0], np.diag(np.exp(x)))
    np.testing.assert_allclose(got[1], np.zeros(3))
    got = f(x, 2.0, False)
    np.testing.assert_allclose(got[0], 2 * np.eye(3)[::-1])
    np.testing.assert_allclose(got[1], x[::-1])


@pytest.mark.parametrize("mode", ["reference", "fast_run"])
def test_a_loop_in_a_branch(mode):
    def step(x, p, q):
        return p * x, q + count("body", p)

    p, q = graphc.scan(step, [X], [S, S * 2], return_updates=False)
    y = ifelse(A, p.sum(), S) + ifelse(B, q.sum(), S)
    f = compiled([X, S, A, B], [y, *grad(y, [X, S])], mode)
    plain = {
        (True, True): p.sum() + q.sum(),
        (False, True): q.sum() + S,
        (True, False): p.sum() + S,
    }
    x = np.array([0.8, 2.0])
    for sides, cost in plain.items():
        expected = compiled([X, S], [cost, *grad(cost, [X, S])])(x, 0.5)
        for got, want in zip(f(x, 0.5, *sides), expected, strict=True):
            np.testing.assert_allclose(got, want)
    assert runs_of(f, x, 0.5, False, True) == {"body": 2, "dbody": 2}
    assert runs_of(f, x, 0.5, False, False) == {}


def test_known_gradients_and_constants():
    y = ifelse(A, X * 2, X * X)
    g = pt.dvector("g")
    f = compiled([X, A, g], [grad(None, X, known_grads={y: g}), pullback(y, X, g)])
    for got in f([1.0, 3.0], False, [1.0, 10.0]):
        np.testing.assert_allclose(got, [2.0, 60.0])
    h = pt.exp(X)
    z = ifelse(A, h.sum(), X.sum())
    f = compiled([X, A], grad(z, X, consider_constant=[h]))
    np.testing.assert_allclose(f([1.0], True), [0.0])
    np.testing.assert_allclose(f([1.0], False), [1.0])


def test_undefined_gradients_are_reported():
    from graphc.errors import NullTypeGradError

    class Undefined(Op):
        __props__ = ()

        def make_node(self, x: Any) -> Apply:  # type: ignore[override]
            return Apply(self, [x], [x.type()])

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            from graphc.gradient import grad_undefined

            return [grad_undefined(self, 0, inputs[0], "no rule")]

    with pytest.raises(NullTypeGradError, match="no rule"):
        grad(ifelse(A, Undefined()(S), S), S)


def test_names_and_types_of_gradients():
    y = ifelse(A, pt.tensor("m", shape=(2,)).sum(), S)
    y.name = "cost"
    m = y.owner.inputs[1].owner.inputs[0]
    g = grad(y, m)
    assert g.name == "(dcost/dm)" and g.type.shape == (2,)


def test_demands_that_are_unknown():
    """With many conditions a gradient is computed everywhere, and is right."""
    conditions = pt.dvector("conditions")
    shared = pt.sin(X)
    y: Any = 0.0
    for i in range(MAX_PRODUCTS + 3):
        y = y + ifelse(conditions[i] > 0, shared.sum(), S)
    f = compiled([X, S, conditions], grad(y, [X, S]))
    values = np.where(np.arange(MAX_PRODUCTS + 3) % 3, 1.0, -1.0)
    gx, gs = f([0.5], 1.0, values)
    np.testing.assert_allclose(gx, np.cos([0.5]) * (values > 0).sum())
    np.testing.assert_allclose(gs, (values < 0).sum())


def test_a_thousand_conditionals():
    conditions = pt.dvector("conditions")
    y: Any = S
    for i in range(1000):
        y = ifelse(conditions[i] > 0, S * 0.5, y + 1)
    f = compiled([S, conditions], grad(y, S))
    assert f(1.0, -np.ones(1000)) == 1.0 and f(1.0, np.ones(1000)) == 0.5


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    """The gradient is that of the program in which every choice is made."""
    rng = random.Random(seed)
    conditions = [pt.scalar(name, dtype="bool") for name in "abc"]
    recipe = [(rng.random(), rng.random(), rng.random(), rng.choice("abc")) for _ in range(25)]

    def build(choose: Any) -> Any:
        pool: list[Any] = [X, X * 0.5, S * X]
        for kind, i, j, name in recipe:
            p, q = pool[int(i * len(pool))], pool[int(j * len(pool))]
            if kind < 0.45:
                pool.append(choose(name, p, q))
            elif kind < 0.7:
                pool.append(pt.sin(p))
            else:
                pool.append(p * q * 0.3 if kind < 0.8 else p + q)
        return (pool[-1] * pool[-2]).sum()

    named = dict(zip("abc", conditions, strict=True))
    cost = build(lambda name, p, q: ifelse(named[name], p, q))
    f = compiled([X, S, *conditions], [cost, *grad(cost, [X, S], disconnected_inputs="ignore")])
    x = np.array([0.7, -0.4])
    for k in range(8):
        values = {name: bool(k >> i & 1) for i, name in enumerate("abc")}
        plain = build(lambda name, p, q, values=values: p if values[name] else q)
        expected = compiled([X, S], [plain, *grad(plain, [X, S], disconnected_inputs="ignore")])(x, 1.3)
        for got, want in zip(f(x, 1.3, *values.values()), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)

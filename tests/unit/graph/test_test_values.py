# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test values: what a graph is computed from while it is written."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import TestValueError
from graphc.graph.op import get_test_value, get_test_values

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def strict():
    with graphc.config.change_flags(compute_test_value="raise"):
        yield


def given(value, name="x", **options):
    x = pt.as_tensor_variable(value).type.clone(**options)(name)
    x.tag.test_value = value
    return x


def written():
    """Graphs of all kinds: elements, loops, conditionals, graphs as ops, and their gradients, draws,
    sparse matrices, ops of users.
    """
    x, n = given(X, shape=(None, None)), given(3, "n", dtype="int32")
    shared, rng = graphc.shared(X + 1), graphc.shared(np.random.default_rng(1))
    loop = graphc.scan(lambda row, last, w: 2 * last * row + w.sum(), [x], [x[0]], [shared])
    power = graphc.scan(lambda last, a: last * a, None, [pt.ones_like(x)], [x], n_steps=n)[-1]
    chosen = graphc.ifelse(x.sum() > 0, x * 2, x)
    inner = pt.matrix("inner")
    inner.tag.test_value = X
    op = graphc.OpFromGraph([inner], [pt.sin(inner) * shared * 2])
    yield from (
        x + shared,
        pt.dot(x, shared.T),
        loop,
        power,
        chosen,
        op(x),
        x[1:],
        x.shape[0],
        pt.linalg.svd(x)[1],
    )
    for y in (pt.exp(x), loop, power, chosen, op(x)):
        yield graphc.grad(y.sum(), x)
    yield graphc.jacobian(x.sum(axis=0), x)
    yield pt.random.normal(x, 1, rng=rng)
    yield graphc.sparse.csr_from_dense(x) @ x.T
    yield graphc.vectorize_graph(pt.exp(inner), {inner: pt.stack([x, x])})
    yield pt.as_tensor_variable([n, 2, n])


def test_values_are_those_of_the_function():
    for y in written():
        roots = [v for v in graphc.graph.traversal.explicit_graph_inputs([y]) if v.name in ("x", "n")]
        f = graphc.function(roots, y, mode="reference", on_unused_input="ignore")
        value = f(*(v.tag.test_value for v in roots))
        np.testing.assert_allclose(
            *(getattr(v, "toarray", lambda v=v: v)() for v in (get_test_value(y), value))
        )
        assert y.type.filter(y.tag.test_value, strict=True) is y.tag.test_value


def test_errors_are_those_of_the_line_that_makes_them():
    x, w = given(X), given(X, "w", shape=(None, None))
    with pytest.raises(ValueError, match=r"matrix product .*\n.*while running Matmul\(x, w\)"):
        pt.dot(x, w)
    with pytest.raises(ValueError, match="matrix product"):
        graphc.scan(lambda last, a: pt.dot(last, a), None, [w], [w], n_steps=2)
    for wrong in (X[0], X + 1j, "x"):
        with pytest.raises(TypeError):
            x.tag.test_value = wrong
    np.testing.assert_array_equal(x.tag.test_value, X)


@pytest.mark.parametrize("setting", ["raise", "warn", "ignore", "off"])
def test_inputs_without_a_value(setting):
    x = pt.vector("x")
    with graphc.config.change_flags(compute_test_value=setting):
        if setting == "raise":
            with pytest.raises(ValueError, match=r"x \(made at .*\) has no test value; set x.tag.test_value"):
                x + 1
            with pytest.raises(TestValueError):
                get_test_values(x)
        elif setting == "warn":
            with pytest.warns(UserWarning, match="has no test value") as caught:
                y = x + 1
            assert caught[0].filename == __file__ and not vars(y.tag).get("test_value")
        else:
            y = pt.exp(x + 1)
            assert "test_value" not in vars(y.tag) and get_test_values(x) == []
        values = get_test_values(given(X), 3)
        assert values == [] if setting == "off" else values[0][1] == 3
    with pytest.raises(TestValueError, match=r"x .*has no test value"):
        x.get_test_value()
    assert get_test_value(graphc.shared(2.0)) == get_test_value(pt.constant(2.0)) == get_test_value(2.0) == 2


def test_what_an_op_overwrites_is_copied_and_copies_keep_values():
    class Overwrites(graphc.Op):
        destroy_map = {0: [0]}

        def make_node(self, x):
            return graphc.graph.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            inputs[0] += 1
            output_storage[0][0] = inputs[0]

    x = given(X.copy())
    np.testing.assert_array_equal(Overwrites()(x).tag.test_value, X + 1)
    for copy in (x, x.clone(), pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(copy.tag.test_value, X)
        with pytest.raises(TypeError):
            copy.tag.test_value = X[0]

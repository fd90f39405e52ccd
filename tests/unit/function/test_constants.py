# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is computed of large constants alone is computed once, when a function is made."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

DATA = np.linspace(0.5, 3.0, 40)
MATRIX = np.eye(6) * 3 + np.linspace(0, 1, 36).reshape(6, 6) @ np.linspace(0, 1, 36).reshape(6, 6).T


def names(f):
    return [getattr(node.op, "name", type(node.op).__name__) for node in f.fgraph.nodes]


def both(inputs, outputs, *values):
    f = graphc.function(inputs, outputs)
    expected = graphc.function(inputs, outputs, mode="reference")(*values)
    for got, want in zip(f(*values), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    return f


def test_functions_of_data_run_once():
    x = pt.vector("x", shape=(40,))
    f = both([x], [pt.sum(x * pt.gammaln(pt.constant(DATA) + 1))], DATA)
    assert names(f) == ["mul", "Reduce"]
    assert [v.data.size for v in f.fgraph.inputs[1:]] == [40]


def test_factors_and_sums_of_data_run_once():
    x = pt.vector("x", shape=(6,))
    root = pt.linalg.cholesky(pt.constant(MATRIX))
    f = both([x], [pt.dot(root.T, x), x * pt.sum(pt.constant(DATA))], DATA[:6])
    assert "Cholesky" not in names(f) and "Reduce" not in names(f)


def test_gradients_of_data_are_folded_too():
    x = pt.scalar("x")
    cost = pt.sum(pt.log(pt.constant(DATA)) * x**2)
    f = both([x], [cost, graphc.grad(cost, x)], 1.5)
    assert "log" not in names(f)


@pytest.mark.parametrize(
    "made",
    [
        lambda c: pt.reshape(c, [40, 1]) * c,  # larger than what it is made of
        lambda c: c[::-1],  # a view
        lambda c: pt.zeros([1000]) + c[0],  # of a few numbers
    ],
)
def test_what_would_take_more_memory_stays(made):
    x = pt.scalar("x")
    f = both([x], [made(pt.constant(DATA)) * x], 2.0)
    assert all(v.data.size <= DATA.size for v in f.fgraph.inputs[1:])


def test_results_are_each_callers_own():
    f = graphc.function([], [pt.exp(pt.constant(DATA))])
    (first,) = f()
    first[:] = 0
    np.testing.assert_allclose(f()[0], np.exp(DATA))


def test_what_fails_fails_in_calls():
    x = pt.vector("x", shape=(6,))
    f = graphc.function([x], pt.dot(pt.linalg.cholesky(pt.constant(-MATRIX)), x))
    with pytest.raises(np.linalg.LinAlgError):
        f(DATA[:6])


def test_loops_read_values_that_are_known():
    x = pt.scalar("x")
    states = graphc.scan(
        lambda row, s: s * 0.5 + row,
        sequences=[pt.log(pt.constant(DATA))],
        outputs_info=[x],
        return_updates=False,
    )
    f = both([x], [states[-1]], 1.0)
    assert "log" not in names(f)


def test_equal_values_are_one_argument():
    # A value and its slope take at the same elements, which were computed from the positions for each.
    x, at = pt.matrix("x", shape=(40, 3)), pt.constant(np.arange(40) % 3)
    y = x[pt.constant(np.arange(40)), at]
    f = both([x], [y, graphc.grad(pt.sum(y**2), x)], DATA[:, None] * DATA[:3])
    assert len(f.fgraph.inputs) == 2

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""linear-systems keeps what programs compute, in values, shapes and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphc
import graphc.tensor as pt
from graphc.tensor import linalg

PASS = "graphc-linear-systems"


def matrices(rng: np.random.Generator, n: int, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    """Matrices far from singular."""
    x = rng.uniform(-1, 1, (*batch, n, n)) + 3 * np.eye(n)
    return (x + 1j * rng.uniform(-1, 1, x.shape) if dtype.startswith("c") else x).astype(dtype)


def positive(a):
    """A positive definite matrix."""
    return a @ pt.matrix_transpose(a) + pt.eye(3)


FORMS = {
    "inv(a) @ b": lambda a, b: linalg.inv(a) @ b,
    "b @ inv(a)": lambda a, b: pt.matrix_transpose(b) @ linalg.inv(a),
    "inv(a).T @ b": lambda a, b: pt.matrix_transpose(linalg.inv(a)) @ b,
    "b @ inv(a).T": lambda a, b: pt.matrix_transpose(b) @ pt.matrix_transpose(linalg.inv(a)),
    "inv(a) @ inv(a)": lambda a, b: linalg.inv(a) @ linalg.inv(a),
    "inv(inv(a))": lambda a, b: linalg.inv(linalg.inv(a)) @ b,
    "log(det(a))": lambda a, b: pt.log(linalg.det(a)),
    "log(abs(det(a)))": lambda a, b: pt.log(pt.abs(linalg.det(a))),
    "sign(det(a))": lambda a, b: pt.sign(linalg.det(a)) if a.type.dtype == "float64" else linalg.det(a),
    "both": lambda a, b: linalg.det(a) + pt.log(pt.abs(linalg.det(a))),
    "two systems": lambda a, b: linalg.solve(a, linalg.solve(a, b, b_ndim=2), b_ndim=2, transposed=True),
    "inverse and system": lambda a, b: linalg.inv(a) @ linalg.solve(a, b, b_ndim=2),
    "transposed": lambda a, b: linalg.solve(pt.matrix_transpose(a), linalg.inv(a) @ b, b_ndim=2),
}
FACTORED = {
    "lower": lambda a, b: linalg.solve(linalg.cholesky(positive(a)), b, b_ndim=2),
    "turned": lambda a, b: linalg.solve(pt.matrix_transpose(linalg.cholesky(positive(a))), b, b_ndim=2),
    "upper": lambda a, b: linalg.solve(
        linalg.cholesky(positive(a), lower=False), b, b_ndim=2, transposed=True
    ),
    "product": lambda a, b: linalg.solve(_product(linalg.cholesky(positive(a))), b, b_ndim=2),
    "again": lambda a, b: linalg.cholesky(_product(linalg.cholesky(positive(a)))),
    "other way round": lambda a, b: linalg.cholesky(_product(linalg.cholesky(positive(a), lower=False))),
    "two systems": lambda a, b: _twice(positive(a), b),
    "gradient": lambda a, b: graphc.grad(pt.sum(linalg.solve(a, b, b_ndim=2)), a),
}


def _product(factor):
    return factor @ pt.matrix_transpose(factor)


def _twice(a, b):
    for _ in range(2):
        b = linalg.solve(a, b, assume_a="pos", lower=True, b_ndim=2)
    return b


def check(forms, dtype, static, batch, n, seed):
    """All forms with the pass and in the reference mode."""
    rng = np.random.default_rng(seed)
    a_value, b_value = matrices(rng, n, batch, dtype), rng.uniform(-1, 1, (*batch, n, 2)).astype(dtype)
    a = pt.tensor(dtype=dtype, shape=a_value.shape if static else (None,) * a_value.ndim)
    b = pt.tensor(dtype=dtype, shape=(None,) * b_value.ndim)
    outputs = [form(a, b) for form in forms.values()]
    have = graphc.function([a, b], outputs, on_unused_input="ignore")(a_value, b_value)
    want = graphc.function([a, b], outputs, mode="reference", on_unused_input="ignore")(a_value, b_value)
    for name, x, y in zip(forms, have, want, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10, err_msg=name)


# Every pair of two of them.
COMBINATIONS = [
    *(("float64", (), False), ("float64", (2,), True)),
    *(("complex128", (), True), ("complex128", (2,), False)),
]


@pytest.mark.parametrize(("dtype", "batch", "static"), COMBINATIONS)
def test_same_values(dtype, batch, static):
    check(FORMS, dtype, static, batch, 3, 0)


@pytest.mark.parametrize(("batch", "static"), [((), False), ((2,), True)])
def test_same_values_with_factors(batch, static):
    check(FACTORED, "float64", static, batch, 3, 1)


@settings(max_examples=6, deadline=None)
@given(
    names=st.lists(st.sampled_from(list(FORMS)), min_size=1, max_size=3, unique=True),
    n=st.sampled_from([0, 1, 4, 40]),
    static=st.booleans(),
    seed=st.integers(0, 99),
)
def test_any_forms_together(names, n, static, seed):
    check({name: FORMS[name] for name in names}, "float64", static, (), n, seed)


def operations(f) -> str:
    """The graph stage after the passes."""
    stages = f.ir_stages() if callable(f.ir_stages) else f.ir_stages
    return str(stages["graph (optimised)"])


def test_gradients_share_the_factorization():
    a, b = pt.dmatrix(), pt.dvector()
    loss = pt.sum(pt.sqr(linalg.solve(a, b)))
    text = operations(graphc.function([a, b], [loss, *graphc.grad(loss, [a, b])]))
    assert text.count('"graphc.lu_factor"') == 1 and '"graphc.solve"' not in text


def test_the_factorization_leaves_the_loop():
    a, x = pt.dmatrix(), pt.dvector()
    trace = graphc.scan(
        lambda x, a: linalg.solve(a, x), outputs_info=[x], non_sequences=[a], n_steps=5, return_updates=False
    )
    f = graphc.function([a, x], trace)
    text = operations(f)
    assert text.index('"graphc.lu_factor"') < text.index('"graphc.scan"')
    value, start = matrices(np.random.default_rng(0), 4, (), "float64"), np.arange(4.0)
    expected = start
    for row in f(value, start):
        expected = np.linalg.solve(value, expected)
        np.testing.assert_allclose(row, expected)


def test_singular_matrices_still_raise():
    a, b = pt.dmatrix(), pt.dmatrix()
    x = linalg.solve(a, b)
    for output in (linalg.inv(a) @ b, b @ linalg.inv(a), linalg.solve(a, x)):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            graphc.function([a, b], output)(np.zeros((2, 2)), np.ones((2, 2)))


def test_the_logarithm_of_a_large_determinant_is_finite():
    a = pt.dmatrix()
    f = graphc.function([a], [pt.log(linalg.det(a)), pt.log(pt.abs(linalg.det(-a[1:, 1:])))])
    np.testing.assert_allclose(f(np.eye(400) * 1e3), [400 * np.log(1e3), 399 * np.log(1e3)])
    assert np.isnan(graphc.function([a], pt.log(linalg.det(a)))(-np.eye(3)))


def test_wrong_sizes_still_raise():
    a, b = pt.dmatrix(), pt.dmatrix()
    f = graphc.function([a, b], linalg.inv(a) @ b)
    with pytest.raises(ValueError):
        f(np.eye(3), np.ones((2, 2)))


def by_hand(a, g, n):
    """The gradient of a lower factor as PyTensor's graphs have it."""
    factor, mask = linalg.cholesky(a), pt.tri(n, dtype=a.type.dtype)

    def solved(b):
        return linalg.solve_triangular(factor.T, b, lower=False, b_ndim=2)

    def placed(v):
        return pt.set_subtensor(pt.zeros(n * n, a.type.dtype)[:: n + 1], v).reshape((n, n))

    product = factor.T @ g
    w = solved(solved((product * mask - placed(product.flatten()[:: n + 1] / 2)).T).T)
    return (w + w.T) * mask - placed(w.flatten()[:: n + 1])


@pytest.mark.parametrize("n", [1, 5, 16, 17, 70])
def test_gradients_of_factors_are_one_operation(n):
    """Own ones and those of PyTensor's form: right where matrices are near singular; triangles that are not
    read may have anything in them."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n)) * np.logspace(0, -3, n)
    value, slope = x @ x.T + 1e-9 * np.eye(n), rng.normal(size=(n, n))
    a, g = pt.matrix("a", shape=(n, n)), pt.matrix("g", shape=(n, n))
    own = graphc.grad((linalg.cholesky(a) * g).sum(), a)
    upper = graphc.grad((linalg.cholesky(a, lower=False) * g.T).sum(), a).T
    outputs = [own, by_hand(a, g, n), upper]
    f = graphc.function([a, g], outputs)
    counts = str(f.ir_stages()["graph (optimised)"]).count("graphc.cholesky_pullback")
    assert counts == 1 or n < 3
    have = f(value, slope)
    want = graphc.function([a, g], outputs, mode="reference")(value, slope)
    for found, expected in zip(have, want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    spoilt = value + np.triu(np.full((n, n), np.nan), 1), slope + np.triu(np.full((n, n), np.nan), 1)
    np.testing.assert_allclose(graphc.function([a, g], by_hand(a, g, n))(*spoilt), have[1], rtol=1e-12)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Determinants, inverses, powers, exponentials, norms and products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import graphc
import graphc.tensor as pt
import graphc.tensor.linalg as L

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 40])
def test_functions_of_square_matrices(compare, random, dtype, n):
    def build(a):
        return [L.det(a), *L.slogdet(a), L.inv(a), L.expm(a), *(L.matrix_power(a, k) for k in (-2, 0, 1, 5))]

    def reference(a):
        powers = [np.linalg.matrix_power(a, k) for k in (-2, 0, 1, 5)]
        return [np.linalg.det(a), *np.linalg.slogdet(a), np.linalg.inv(a), scipy.linalg.expm(a), *powers]

    a = (random(2, n, n, dtype=dtype) / np.sqrt(n) + np.eye(n) * 1.5).astype(dtype)
    compare(build, reference, a)


def test_exponentials_of_large_and_special_matrices(compare, random):
    a = np.stack(
        [random(4, 4) * 50 / 4, np.zeros((4, 4)), np.diag([1.0, 2.0, -700.0, 5.0]), np.triu(random(4, 4))]
    )

    def reference(a):
        return scipy.linalg.expm(a) / np.abs(scipy.linalg.expm(a)).max((1, 2), keepdims=True)

    compare(lambda a: L.expm(a) / pt.max(pt.abs(L.expm(a)), axis=(1, 2), keepdims=True), reference, a)
    bad = np.full((2, 2), np.inf)
    compare(L.expm, lambda a: a * np.nan, bad)


def test_singular_matrices_have_determinants(compare):
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]])
    compare(lambda a: [L.det(a), *L.slogdet(a)], lambda a: [np.linalg.det(a), *np.linalg.slogdet(a)], a)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_empty(compare, shape):
    def build(a):
        return [L.det(a), *L.slogdet(a), L.inv(a), L.expm(a)]

    compare(build, lambda a: [np.linalg.det(a), *np.linalg.slogdet(a), a, a], np.zeros(shape))


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64"])
def test_norms(compare, random, dtype):
    vectors = (None, 0, 1, 2, 3, 0.5, np.inf, -np.inf)
    matrices = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)

    def every(norm, x):
        found = [norm(x, o, axis=1, keepdims=k) for o in vectors for k in (False, True)]
        found += [
            norm(x, o, axis=axes, keepdims=k)
            for o in matrices
            for axes in ((0, 2), (2, 1))
            for k in (False, True)
        ]
        return [*found, norm(x[0]), norm(x[0], 1), norm(x[0, 0], 3), norm(x[0], keepdims=True)]

    x = (random(3, 4, 5) * 3).astype(dtype) if dtype == "int64" else random(3, 4, 5, dtype=dtype)
    compare(
        lambda x: [*every(L.norm, x), L.norm(x), L.norm(x, keepdims=True)],
        lambda x: [
            *every(np.linalg.norm, x),
            *(np.linalg.norm(x, axis=(-2, -1), keepdims=k) for k in (False, True)),  # as PyTensor
        ],
        x,
    )


def test_norms_of_nothing_are_0():
    for shape, orders in {(0,): (None, 1, np.inf), (0, 3): (None, 1, 2, "nuc", np.inf)}.items():
        x = pt.tensor("x", dtype="float64", shape=(None,) * len(shape))
        assert not any(graphc.function([x], [L.norm(x, o) for o in orders])(np.zeros(shape)))


def test_norms_of_the_array_standard_and_condition_numbers(compare, random):
    def every(m, x):
        vectors = [m.vector_norm(x, axis=axis, ord=o) for axis in (None, 1, (0, 2)) for o in (1, 2, np.inf)]
        kept = [m.vector_norm(x, axis=(0, 2), keepdims=True), m.vector_norm(x, keepdims=True)]
        conds = [m.cond(x[:, :3, :3], p) for p in (None, 2, -2, 1, np.inf, "fro")]
        return [*vectors, *kept, m.matrix_norm(x), m.matrix_norm(x, ord=1, keepdims=True), *conds, m.cond(x)]

    compare(lambda x: every(L, x), lambda x: every(np.linalg, x), random(2, 3, 4))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_products(compare, random, dtype):
    a = random(2, 3, 4) * 4
    a = a.astype(dtype) if dtype != "complex128" else random(2, 3, 4, dtype=dtype)

    def every(m, a):
        short = a[0, 0]
        return [
            *(m.kron(a[0], a[1]), m.kron(short, a[1]), m.inner(a[0], a[1]), m.vdot(a, a[::-1])),
            *(m.vecdot(a, a[::-1]), m.vecdot(a, a, axis=0), m.matvec(a, short), m.vecmat(a[:, :, 0], a)),
            *(m.cross(a[..., :3], a[..., 1:]), m.cross(a, a[:, ::-1], axis=1)),
        ]

    def build(a):
        chains = [L.multi_dot([a[0], a[1].T, a[0], a[0, 0]]), L.matrix_dot(a[0], a[1].T, a[0])]
        blocks = [L.block_diag(a[0], a[1, :1], a[1, :, :1]), L.block_diag(a, a[..., :2])]
        return [*every(pt, a), *chains, *blocks]

    def reference(a):
        product = a[0] @ a[1].T @ a[0]
        many = np.stack([scipy.linalg.block_diag(x, x[:, :2]) for x in a])
        blocks = [scipy.linalg.block_diag(a[0], a[1, :1], a[1, :, :1]), many]
        return [*every(np, a), product @ a[0, 0], product, *blocks]

    for static in (False, True):
        compare(build, reference, a, static=static)


def test_the_chain_is_multiplied_in_the_cheapest_order():
    a, b, c = (pt.tensor(dtype="float64", shape=s) for s in ((10, 1000), (1000, 2), (2, 1000)))
    outer = L.multi_dot([a, b, c]).owner
    assert outer.inputs[0].owner is not None and outer.inputs[1] is c
    left = L.multi_dot([c, a.T, a]).owner
    assert left.inputs[0].owner is not None and left.inputs[1] is a


def test_tensorinv(compare, random):
    compare(lambda a: L.tensorinv(a), lambda a: np.linalg.tensorinv(a), random(4, 6, 8, 3))
    compare(lambda a: L.tensorinv(a, ind=1), lambda a: np.linalg.tensorinv(a, ind=1), random(24, 8, 3))


def test_lstsq_with_limits_that_are_none():
    a, b = np.array([[2.0, 1.0], [3.0, 4.0]]), np.array([[17.0, 20.0], [43.0, 50.0]])
    limit = pt.dscalar()
    f = graphc.function([limit], pt.linalg.lstsq(a, b, limit))
    for value in (-1.0, 0.0, 0.5, 1.0, 2.0):
        want = np.linalg.lstsq(a, b, rcond=value)
        got = f(value)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-10, err_msg=str(value))
        assert got[2] == want[2]

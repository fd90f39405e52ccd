# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of vectors and matrices in compiled code against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as gt

SIZES = (0, 1, 2, 5, 8, 17)
DTYPES = ("float64", "float32", "complex128", "int64", "int8", "bool", "float16")


def values(dtype, *shape):
    rng = np.random.default_rng(sum(shape))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("int"):
        return rng.integers(-9, 10, shape).astype(dtype)
    value = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("c") else 0)
    return np.asarray(value).astype(dtype)


def tensors(dtype, *shapes):
    return [gt.tensor(f"x{i}", dtype=dtype, shape=shape) for i, shape in enumerate(shapes)]


def close(got, want, dtype):
    tolerance = {"float16": 3e-2, "float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-11)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vector_and_matrix(dtype):
    x, y, w = tensors(dtype, (None,), (None,), (None, None))
    results = [gt.dot(x, w), gt.dot(y, w.T), gt.dot(w, y), gt.dot(w.T, x), gt.dot(x, x)]
    function = graphc.function([x, y, w], results)
    for m in SIZES:
        for n in SIZES:
            a, b, c = values(dtype, m), values(dtype, n), values(dtype, m, n)
            wanted = [a @ c, b @ c.T, c @ b, c.T @ a, a @ a]
            for got, want in zip(function(a, b, c), wanted, strict=True):
                close(got, np.asarray(want), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int32"])
@pytest.mark.parametrize(
    "size", [(1, 8, 8), (5, 5, 5), (3, 1, 4), (2, 16, 3), (4, 3, 0), (1, 1, 9), (6, 5, 1)]
)
def test_sizes_known_when_compiling(dtype, size):
    m, n, k = size
    shapes = [(m, k), (k, n), (k, m), (n, k)]
    a, b, at, bt = tensors(dtype, *shapes)
    function = graphc.function(
        [a, b, at, bt], [gt.matmul(a, b), gt.matmul(at.T, b), gt.matmul(a, bt.T), gt.matmul(at.T, bt.T)]
    )
    va, vb, vat, vbt = (values(dtype, *shape) for shape in shapes)
    wanted = [va @ vb, vat.T @ vb, va @ vbt.T, vat.T @ vbt.T]
    for got, want in zip(function(va, vb, vat, vbt), wanted, strict=True):
        close(got, want, dtype)


def test_parts_of_arrays():
    x, w = tensors("float64", (None, None), (None, None))
    results = [gt.dot(x[1], w), gt.dot(x[::-1, 2], w[:, 1:]), gt.dot(w[2:], x[:, 0]), gt.dot(x[1:2], w).sum()]
    function = graphc.function([x, w], results)
    a, b = values("float64", 5, 5), values("float64", 5, 5)
    wanted = [a[1] @ b, a[::-1, 2] @ b[:, 1:], b[2:] @ a[:, 0], (a[1:2] @ b).sum()]
    for got, want in zip(function(a, b), wanted, strict=True):
        close(np.asarray(got), np.asarray(want), "float64")


def test_what_reads_a_row_of_a_product():
    x, w = tensors("float64", (None,), (None, None))
    row = gt.dot(x, w)
    results = [row, gt.tanh(row) + 1, row.sum(), gt.dot(row, w), row.dimshuffle("x", 0) * w, gt.outer(row, x)]
    function = graphc.function([x, w], results)
    for n in (0, 1, 7):
        a, b = values("float64", n), values("float64", n, n)
        r = a @ b
        wanted = [r, np.tanh(r) + 1, r.sum(), r @ b, r[None] * b, np.outer(r, a)]
        for got, want in zip(function(a, b), wanted, strict=True):
            close(np.asarray(got), np.asarray(want), "float64")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(value):
    x, w = tensors("float64", (None,), (None, None))
    function = graphc.function([x, w], [gt.dot(x, w), gt.dot(w, x)])
    for n in (3, 8, 20):
        a, b = np.ones(n), np.ones((n, n))
        b[n // 2, n - 1] = value
        for got, want in zip(function(a, b), [a @ b, b @ a], strict=True):
            np.testing.assert_array_equal(got, want)


def test_rows_too_long_for_the_vector_code():
    x, w = tensors("float64", (None,), (None, None))
    function = graphc.function([x, w], [gt.dot(x, w), gt.dot(w, x)])
    a, b = values("float64", 600), values("float64", 600, 600)
    for got, want in zip(function(a, b), [a @ b, b @ a], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_batches_of_rows():
    a, b = tensors("float64", (None, 1, None), (None, None, None))
    function = graphc.function([a, b], gt.matmul(a, b))
    for batch, k, n in ((0, 2, 3), (3, 5, 4), (2, 0, 3)):
        va, vb = values("float64", batch, 1, k), values("float64", batch, k, n)
        close(function(va, vb), va @ vb, "float64")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches_of_small_matrices(dtype):
    """Sizes, layouts and batches that are known at run time only, and a batch that is broadcast."""
    a, b, one = tensors(dtype, (None,) * 3, (None,) * 3, (None, None))
    results = [
        gt.matmul(a, b),
        gt.matmul(a.dimshuffle(0, 2, 1), b.dimshuffle(0, 2, 1)),
        gt.matmul(one, b),
        gt.matmul(a, one),
        gt.matmul(a[::-1], b[:, :, ::2]),
        gt.matmul(a[:, ::-1], b[:, ::-1]),
        gt.matmul(a, b[:, :, :1])[:, :, 0],
    ]
    function = graphc.function([a, b, one], results)
    for batch, n in ((0, 3), (5, 1), (4, 2), (3, 4), (2, 7), (3, 8), (2, 9), (2, 16), (2, 33)):
        va, vb, vone = values(dtype, batch, n, n), values(dtype, batch, n, n) + 1, values(dtype, n, n)
        wanted = [
            va @ vb,
            va.swapaxes(1, 2) @ vb.swapaxes(1, 2),
            vone @ vb,
            va @ vone,
            va[::-1] @ vb[:, :, ::2],
            va[:, ::-1] @ vb[:, ::-1],
            (va @ vb[:, :, :1])[:, :, 0],
        ]
        for got, want in zip(function(va, vb, vone), wanted, strict=True):
            close(got, want, dtype)


def test_gradients_of_batches_of_small_matrices():
    a, b = tensors("float64", (None,) * 3, (None,) * 3)
    cost = (gt.matmul(a, b) ** 2).sum()
    function = graphc.function([a, b], graphc.grad(cost, [a, b]))
    va, vb = values("float64", 6, 5, 3), values("float64", 6, 3, 9)
    error = 2 * (va @ vb)
    for got, want in zip(
        function(va, vb), [error @ vb.swapaxes(1, 2), va.swapaxes(1, 2) @ error], strict=True
    ):
        close(got, want, "float64")

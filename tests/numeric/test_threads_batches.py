# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches, products and recurrences on several threads: the same results as on one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from thread_counts import COUNTS, same_on_all_counts, sample

import graphc
import graphc.tensor as pt


def kernel_inputs(count, n):
    a = sample("float64", count, n, n)
    return a @ a.swapaxes(1, 2) + n * np.eye(n)


@pytest.mark.parametrize(("count", "n"), [(0, 3), (1, 90), (3, 120), (700, 8), (50, 33), (5, 140)])
def test_batches_of_kernels(batched_kernels, count, n):
    a = kernel_inputs(count, n)
    factor, values, ordered = same_on_all_counts(batched_kernels, a)
    np.testing.assert_allclose(factor, np.linalg.cholesky(a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ordered, np.sort(a, axis=-1))


@pytest.fixture(scope="module")
def batched_kernels():
    from graphc.ops.factors import Cholesky
    from graphc.ops.spectral import Eigvalsh

    A = pt.tensor3("A", dtype="float64")
    return graphc.function([A], [Cholesky()(A), Eigvalsh()(A), pt.sort(A, axis=-1)])


def test_kernels_report_the_first_error(batched_kernels):
    a = kernel_inputs(3000, 8)
    a[[1234, 2800]] *= -1
    for count in COUNTS:
        with graphc.threads(count), pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            batched_kernels(a)
    # Other calls are not affected.
    np.testing.assert_allclose(batched_kernels(a[:1000])[0], np.linalg.cholesky(a[:1000]), rtol=1e-9)


def test_kernels_without_memory_for_scratch():
    """A range that gets no scratch memory leaves the work to the caller."""
    import ctypes

    from graphc.backends.cpu.object import compile_to_object
    from graphc.library.define import kernel_parts
    from graphc.library.helpers import KernelCall
    from graphc.native.parts import Part

    call = KernelCall("sort", ("f64", "f64"), (), ())
    symbol = call.symbol
    types = "ptr, ptr, ptr, i64, i64, i64, i64"
    parameters = "ptr %a, ptr %r, ptr %s, i64 %batch, i64 %cost, i64 %bytes, i64 %n"
    text = (
        f"declare i64 @{symbol}({types})\n"
        f"define i64 @main({parameters}) {{\n  %x = call i64 @{symbol}({parameters})\n  ret i64 %x\n}}\n"
    )
    parts = [Part(part.text.replace("@malloc(", "@no_memory(")) for part in kernel_parts([call])]
    from graphc_runtime import symbols
    from graphc_runtime.loader import load_object

    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda size: None)
    symbols.register("no_memory", ctypes.cast(nothing, ctypes.c_void_p).value, nothing)
    loaded = load_object(compile_to_object(text, parts=parts), symbols.resolve)
    main = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)(
        loaded.address("main")
    )
    a = sample("float64", 500, 100)
    result, scratch = np.empty_like(a), np.empty(1600, np.uint8)
    pointers = (x.ctypes.data for x in (a, result, scratch))
    assert main(*pointers, 500, 10_000_000, 1600, 100) == 0
    np.testing.assert_array_equal(result, np.sort(a, axis=-1))


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        *((dtype, (20, 70, 65, 90)) for dtype in ("float32", "float64", "complex64", "complex128")),
        *(
            ("float64", sizes)
            for sizes in [
                (900, 8, 8, 8),
                (700, 17, 5, 20),
                (2, 300, 300, 300),
                (300, 1, 40, 50),
                (0, 4, 4, 4),
            ]
        ),
        ("float64", (3, 0, 4, 4)),
    ],
)
def test_batches_of_products(products, dtype, sizes):
    batch, m, n, k = sizes
    a, b = sample(dtype, batch, m, k), sample(dtype, batch, k, n, seed=1)
    plain, turned, joined = same_on_all_counts(products(dtype), a, b)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for got, want in ((plain, a @ b), (turned, (a @ b).swapaxes(1, 2)), (joined[:, m:], a @ b)):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 10)


@pytest.fixture(scope="module")
def products():
    made = {}

    def function(dtype):
        if dtype not in made:
            A, B = pt.tensor3("A", dtype=dtype), pt.tensor3("B", dtype=dtype)
            turned = pt.matmul(B.swapaxes(1, 2), A.swapaxes(1, 2))
            made[dtype] = graphc.function(
                [A, B], [pt.matmul(A, B), turned, pt.join(1, pt.matmul(A, B), pt.matmul(A, B))]
            )
        return made[dtype]

    return function


@pytest.mark.parametrize(
    "sizes",
    [(700, 500, 300), (1000, 40, 70), (40, 1000, 70), (130, 130, 130), (30, 31, 4000), (257, 511, 129)],
)
def test_large_products(sizes):
    """Products are divided by sizes, not by threads; BLAS keeps the number of threads that it had."""
    m, n, k = sizes
    f = _large_products()
    a, b = sample("float64", m, k), sample("float64", k, n, seed=1)
    one, two, three = same_on_all_counts(f, a, b)
    for got in (one, two, three.T):
        np.testing.assert_allclose(got, a @ b, rtol=1e-10, atol=1e-9)


def _large_products(cache=[]):  # noqa: B006
    if not cache:
        A, B = pt.matrix("A", dtype="float64"), pt.matrix("B", dtype="float64")
        cache.append(graphc.function([A, B], [A @ B, (B.T @ A.T).T, B.T @ A.T]))
    return cache[0]


def test_blas_keeps_its_number_of_threads():
    from graphc_runtime import libraries, symbols

    library = libraries.library_of(symbols.resolve("blas_dgemm"))
    get = getattr(library, "scipy_openblas_get_num_threads", None)
    if get is None:
        pytest.skip("this BLAS is not SciPy's OpenBLAS")
    before = get()
    a = sample("float64", 400, 400)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _large_products()(a, a), range(20)))
    assert get() == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_of_a_recurrence(dtype):
    """Vectors times matrices that are large enough to be shared with workers that are awake."""
    x, W = pt.matrix("x", dtype=dtype), pt.matrix("W", dtype=dtype)
    h = graphc.scan(
        lambda x, h: pt.tanh(pt.dot(h, W) + x),
        sequences=[x],
        outputs_info=[pt.zeros_like(x[0])],
        return_updates=False,
    )
    f = graphc.function([x, W], [h, *graphc.grad((h**2).sum(), [x, W])])
    for size in (300, 517):
        a, w = sample(dtype, 60, size), sample(dtype, size, size, seed=1) / np.sqrt(size).astype(dtype)
        states, *_ = same_on_all_counts(f, a, w)
        expected = np.zeros(size, dtype)
        for row in a:
            expected = np.tanh(expected @ w + row)
        np.testing.assert_allclose(states[-1], expected, rtol=0, atol=1e-3 if dtype == "float32" else 1e-9)


def test_cumulative_along_each_axis():
    X = pt.matrix("X", dtype="float64")
    f = graphc.function([X], [pt.cumsum(X, axis=0), pt.cumsum(X, axis=1), pt.cumprod(X * 1e-3 + 1, axis=0)])
    for shape in ((700, 1300), (3, 40_000), (0, 5), (1, 2000)):
        a = sample("float64", *shape)
        down, along, product = same_on_all_counts(f, a)
        np.testing.assert_allclose(down, a.cumsum(0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(along, a.cumsum(1), rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(product, (a * 1e-3 + 1).cumprod(0), rtol=1e-9)


@pytest.mark.parametrize(
    ("images", "filters", "groups"),
    [
        ((5, 16, 20, 20), (32, 16, 3, 3), 1),
        ((1, 8, 60, 50), (8, 4, 5, 3), 2),
        ((3, 9, 40, 40), (9, 1, 3, 3), 9),
    ],
)
def test_parts_of_convolutions(images, filters, groups):
    X, F = (pt.tensor(dtype="float64", shape=s) for s in ((None,) * 4, filters))
    y = pt.nn.conv2d(X, F, stride=(1, 2), padding="same", groups=groups)
    outputs = [y, *graphc.grad((y**2).sum(), [X, F])]
    x, f = sample("float64", *images), sample("float64", *filters)
    got = same_on_all_counts(graphc.function([X, F], outputs), x, f)
    want = graphc.function([X, F], outputs, mode="reference")(x, f)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)
    # No images: gradients are zero.
    empty = graphc.function([X, F], outputs)(x[:0], f)
    assert [e.shape for e in empty] == [(0, *got[0].shape[1:]), (0, *images[1:]), filters]
    np.testing.assert_array_equal(empty[2], 0)


def test_parts_of_transforms():
    X = pt.tensor(dtype="float64", shape=(None, None))
    outputs = [pt.fft.fft(X), pt.fft.rfft(X), pt.fft.irfft(pt.fft.rfft(X), n=X.shape[1])]
    f = graphc.function([X], outputs)
    for rows, n in ((0, 8), (300, 64), (90, 1000), (120, 211), (2000, 6)):
        x = sample("float64", rows, n)
        first, second, third = same_on_all_counts(f, x)
        np.testing.assert_allclose(first, np.fft.fft(x), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(second, np.fft.rfft(x), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(third, x, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("rows", "groups"), [(None, 7), (None, None), (1200, 7), (1, 7)])
def test_a_batch_of_densities_with_groups_keeps_rows_of_its_own(dtype, rows, groups):
    """Gathers, scatters and sums of each row, with gradients: rows on the stack belong to one thread."""
    count, data = 40, sample("float64", 40).astype(dtype)
    positions = np.arange(count) * 3 % 7
    point = pt.tensor("point", dtype=dtype, shape=(None if groups is None else groups + 1,))
    scale = pt.exp(point[-1])
    residual = (data - point[:-1][positions]) / scale
    density = -0.5 * (residual**2).sum() - count * point[-1] - (point[:-1] ** 2).sum()
    both = [density, graphc.grad(density, point)]
    q = pt.tensor("q", dtype=dtype, shape=(rows, None if groups is None else groups + 1))
    f = graphc.function([q], graphc.vectorize_graph(both, {point: q}))
    one = graphc.function([point], both)
    given = (sample("float64", rows or 1500, 8) * 0.3).astype(dtype)
    densities, gradients = same_on_all_counts(f, given)
    for i in range(0, len(given), 97):
        value, slope = one(given[i])
        tolerance = 1e-9 if dtype == "float64" else 1e-4
        np.testing.assert_allclose(densities[i], value, rtol=tolerance)
        np.testing.assert_allclose(gradients[i], slope, rtol=tolerance, atol=tolerance)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large loops on several threads: the same results as on one, from any thread, in any process."""

from __future__ import annotations

import base64
import importlib
import os
import signal
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from thread_counts import COUNTS, same_on_all_counts, sample

import graphc
import graphc.tensor as pt
from graphc_runtime import threads as runtime

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"


@pytest.fixture(scope="module")
def row_work():
    X = pt.matrix("X", dtype="float64")
    outputs = [pt.softmax(X, axis=-1), X.sum(axis=0), X.max(axis=1), pt.argmax(X, axis=1), X.T + 1.0]
    return graphc.function([X], [*outputs, (X - X.mean(axis=0)) / pt.sqrt(pt.var(X, axis=0))])


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_every_dtype(dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    if dtype == "bool":
        outputs = [x & y, x.all(), y.any(), x.sum()]
    else:
        outputs = [x * y + x, x.sum()]
        if not dtype.startswith("complex"):
            outputs += [x.max(), y.min(), pt.argmax(x)]
    f = graphc.function([x, y], outputs)
    a, b = sample(dtype, 700_001), sample(dtype, 700_001, seed=1)
    results = same_on_all_counts(f, a, b)
    with np.errstate(all="ignore"):
        elementwise = a & b if dtype == "bool" else a * b + a
    if dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        np.testing.assert_allclose(
            results[0], elementwise, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-2
        )
    else:
        np.testing.assert_array_equal(results[0], elementwise)
        if dtype != "bool":
            assert results[1] == a.sum()
    if len(results) == 5:
        assert (results[2], results[3], results[4]) == (a.max(), b.min(), a.argmax())


@pytest.mark.parametrize(
    "shape", [(0, 5), (5, 0), (1, 300_000), (300_000, 1), (997, 1009), (7, 65_537), (40_001, 13)]
)
def test_awkward_sizes(row_work, shape):
    if 0 in shape:
        X = pt.matrix("X", dtype="float64")
        assert graphc.function([X], pt.exp(X))(np.empty(shape)).shape == shape
        return
    a = sample("float64", *shape)
    soft, columns, largest, where, turned, _ = same_on_all_counts(row_work, a)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(soft, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(columns, a.sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(largest, a.max(axis=1))
    np.testing.assert_array_equal(where, a.argmax(axis=1))
    np.testing.assert_array_equal(turned, a.T + 1.0)


@pytest.mark.parametrize(
    "size", [0, 1, 4095, 4097, 16_383, 16_385, 32_769, 1 << 20, (1 << 20) + 1, 1_500_007]
)
def test_long_reductions(size):
    f = _reductions()
    a = sample("float64", size) if size else np.empty(0)
    total, product, squares = same_on_all_counts(f, a)
    np.testing.assert_allclose(total, a.sum(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(product, np.prod(1 + a * 1e-7), rtol=1e-9)
    np.testing.assert_allclose(squares, (a * a).sum(), rtol=1e-12)


def _reductions(cache=[]):  # noqa: B006
    if not cache:
        x = pt.vector("x", dtype="float64")
        cache.append(graphc.function([x], [x.sum(), (1 + x * 1e-7).prod(), (x**2).sum()]))
    return cache[0]


def test_reductions_with_nan_and_signed_zeros():
    x = pt.vector("x", dtype="float64")
    f = graphc.function([x], [x.max(), x.min(), x.sum()])
    a = np.zeros(900_000)
    a[700_000] = -0.0
    assert [float(v) for v in same_on_all_counts(f, a)] == [0.0, 0.0, 0.0]
    a[800_000] = np.nan
    assert all(np.isnan(v) for v in same_on_all_counts(f, a))


def test_gathers_and_joins():
    x, X = pt.vector("x", dtype="float64"), pt.matrix("X", dtype="float64")
    i = pt.vector("i", dtype="int64")
    f = graphc.function([x, X, i], [x[i], X[i % X.shape[0]], pt.join(0, x, pt.exp(x)), x[::-1] * 2.0])
    a, A = sample("float64", 300_000), sample("float64", 500, 200)
    index = np.random.default_rng(2).integers(-300_000, 300_000, 20_000)
    taken, rows, joined, flipped = same_on_all_counts(f, a, A, index)
    np.testing.assert_array_equal(taken, a[index])
    np.testing.assert_array_equal(rows, A[index % 500])
    np.testing.assert_allclose(joined, np.concatenate([a, np.exp(a)]), rtol=1e-14)
    np.testing.assert_array_equal(flipped, a[::-1] * 2.0)


def test_repeated_indices_accumulate_in_order():
    x, y, i = pt.vector("x"), pt.vector("y"), pt.vector("i", dtype="int64")
    f = graphc.function([x, y, i], [pt.inc_subtensor(x[i], y), pt.set_subtensor(x[i], y)])
    a, b = sample("float64", 1000), sample("float64", 400_000)
    index = np.random.default_rng(3).integers(0, 1000, 400_000)
    added, last = same_on_all_counts(f, a, b, index)
    expected = a.copy()
    np.add.at(expected, index, b)
    np.testing.assert_allclose(added, expected, rtol=1e-9, atol=1e-9)
    expected = a.copy()
    expected[index] = b
    np.testing.assert_array_equal(last, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches_of_small_products(dtype):
    B = pt.tensor("B", dtype=dtype, shape=(None, 5, 7))
    C = pt.tensor("C", dtype=dtype, shape=(None, 7, 3))
    f = graphc.function([B, C], [pt.matmul(B, C), pt.exp(pt.matmul(B, C)).sum(axis=0)])
    b, c = sample(dtype, 20_003, 5, 7), sample(dtype, 20_003, 7, 3, seed=1)
    product, _ = same_on_all_counts(f, b, c)
    np.testing.assert_allclose(product, b @ c, rtol=1e-3, atol=1e-4)


def test_static_sizes_and_shared_updates():
    x = pt.tensor("x", dtype="float64", shape=(600, 700))
    state = graphc.shared(np.zeros((600, 700)), name="state")
    f = graphc.function([x], [pt.tanh(x).sum(axis=1)], updates={state: state + x})
    a = sample("float64", 600, 700)
    (rows,) = same_on_all_counts(f, a)
    np.testing.assert_allclose(rows, np.tanh(a).sum(axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.get_value(), a * len(COUNTS), rtol=1e-14)


def test_errors_are_those_of_one_thread():
    x, i = pt.vector("x", dtype="float64"), pt.vector("i", dtype="int64")
    f = graphc.function([x, i], pt.exp(x[i]))
    a = sample("float64", 500_000)
    index = np.zeros(400_000, np.int64)
    index[[123_456, 345_678]] = 500_003, 500_001
    messages = set()
    for count in COUNTS:
        with graphc.threads(count), pytest.raises(IndexError) as error:
            f(a, index)
        messages.add(str(error.value))
    assert len(messages) == 1 and "out of bounds" in messages.pop()


def test_many_calling_threads(row_work):
    a = sample("float64", 400, 300)
    expected = row_work(a)

    def call(number):
        with graphc.threads(number % 3 + 1):
            return [row_work(a) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(call, range(24)):
            for result in results:
                for got, want in zip(result, expected, strict=True):
                    np.testing.assert_array_equal(got, want)


def test_one_region_at_a_time():
    """What is called inside a region runs on its own thread alone."""
    import ctypes

    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    parallel = ctypes.CFUNCTYPE(None, kind, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        runtime.address("graphc_parallel")
    )
    outer, inner = [], []

    def body(_, chunk):
        me = threading.get_ident()
        parallel(kind(lambda _, i: inner.append((chunk, i, threading.get_ident() == me))), None, 5, 4)
        outer.append(chunk)

    parallel(kind(body), None, 20, 4)
    assert sorted(outer) == list(range(20))
    assert sorted(inner) == [(chunk, i, True) for chunk in range(20) for i in range(5)]


def test_number_of_threads():
    with graphc.config.change_flags(threads=3):
        assert runtime.get_threads() == 3
        with graphc.threads(2):
            assert runtime.get_threads() == 2
            other = []
            worker = threading.Thread(target=lambda: other.append(runtime.get_threads()))
            worker.start()
            worker.join()
            assert other == [3]
            with graphc.threads(1):
                assert runtime.get_threads() == 1
        assert runtime.get_threads() == 3
    assert runtime.get_threads() == runtime.usable_cores()
    for bad in (0, -1, 1025, 2.5, True, "many"):
        with pytest.raises(ValueError), graphc.threads(bad):
            pass
    with pytest.raises(ValueError, match=r"config\.threads"):
        graphc.config.threads = -1


def test_machine_code_sees_the_number():
    import ctypes

    count = ctypes.CFUNCTYPE(ctypes.c_int64)(runtime.address("graphc_thread_count"))
    assert count() == runtime.get_threads()
    with graphc.threads(7):
        assert count() == 7
    with graphc.config.change_flags(threads=4):
        assert count() == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(row_work):
    a = sample("float64", 400, 300)
    with graphc.threads(2):
        expected = row_work(a)
        assert runtime.workers() >= 1
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            code = 1
            try:
                fresh = runtime.workers() == 0
                equal = all(np.array_equal(x, y) for x, y in zip(row_work(a), expected, strict=True))
                code = 0 if fresh and equal and runtime.workers() == 1 else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        for x, y in zip(row_work(a), expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_environment_and_end_of_process():
    """A process that ends while workers look for work ends normally."""
    code = (
        "import numpy as np, graphc, graphc.tensor as pt\n"
        "from graphc_runtime import threads\n"
        "x = pt.vector('x')\n"
        "f = graphc.function([x], pt.exp(x).sum())\n"
        "f(np.ones(500_000))\n"
        "print(threads.get_threads(), threads.workers())\n"
    )
    environment = {**os.environ, "GRAPHC_THREADS": "3", "GRAPHC_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["3", "2"]), done.stderr
    environment["GRAPHC_THREADS"] = "none"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "config.threads" in done.stderr


@pytest.mark.parametrize("name", ["pool_code", "wide_integers_code"])
def test_shipped_code_is_up_to_date(name):
    from graphc.library.pool import MACHINES
    from graphc_runtime import elf
    from graphc_runtime.image import Image
    from graphc_tools.pool import SHIPPED

    module = importlib.import_module(f"graphc_runtime.{name}")
    for machine, code in module.OBJECT.items():
        image = Image(elf.parse(zlib.decompress(base64.b64decode(code))), lambda name: 1 << 20)
        assert len(image.relocate(1 << 21)) > 1000, machine
    current = {machine: SHIPPED[name].source_hash(machine) for machine in MACHINES}
    assert current == module.SOURCE, "run python -m graphc_tools.pool"


def test_results_and_sums_of_one_loop():
    x, i = pt.vector("x", dtype="float64"), pt.vector("i", dtype="int64")
    f = graphc.function([x, i], [pt.exp(x), pt.exp(x).sum(), x[i], x[i] * 2 + 1])
    for size in (0, 1, 70_000, 300_001):
        a = sample("float64", size)
        index = np.random.default_rng(0).integers(-size, max(size, 1), size)
        values, total, read, more = same_on_all_counts(f, a, index)
        np.testing.assert_allclose(values, np.exp(a), rtol=1e-14)
        np.testing.assert_allclose(total, np.exp(a).sum(), rtol=1e-12)
        np.testing.assert_array_equal(read, a[index])
        np.testing.assert_allclose(more, a[index] * 2 + 1, rtol=1e-14)

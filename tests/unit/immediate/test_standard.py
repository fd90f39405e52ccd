# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``env.array_api``: the array API standard on tensors with values; `make conformance` runs its own tests."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import graphc
import graphc.array_api
import graphc.tensor as pt
from graphc.immediate.tensor import Size

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -6.0]], "float32")


@pytest.fixture(scope="module")
def xp(env):
    return env.array_api


def test_names_and_signatures_are_those_of_the_symbolic_namespace(xp):
    assert set(dir(xp)) == {*dir(graphc.array_api)}
    for ours, symbolic in ((xp, graphc.array_api), (xp.linalg, graphc.array_api.linalg)):
        for name in symbolic.__all__:
            function = getattr(symbolic, name)
            if inspect.isfunction(function):
                found = list(inspect.signature(getattr(ours, name)).parameters.values())
                wanted = list(inspect.signature(function).parameters.values())
                assert [(p.name, p.kind) for p in found] == [(p.name, p.kind) for p in wanted], name
    assert xp.__array_api_version__ == "2024.12" and xp.fft.fft is xp.fft.fft
    with pytest.raises(AttributeError, match="has no 'cumprod'"):
        _ = xp.cumprod
    with pytest.raises(AttributeError):
        _ = xp.importlib


def test_dtypes_are_equal_to_dtypes_only(xp):
    """NumPy takes None for float64."""
    found = [xp.float64, xp.float32, xp.complex128, xp.bool]
    for dtype in found:
        for other in (None, 1.5, [], object(), "nothing"):
            assert dtype != other and other != dtype and other not in found
        assert dtype == np.dtype(dtype.name) and dtype == dtype.name


def test_the_namespace_of_a_tensor(env, xp):
    x = env.as_tensor(A)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="versions are"):
        x.__array_namespace__(api_version="1999.12")
    assert x.device == "cpu" and x.to_device(x.device) is x
    with pytest.raises(ValueError, match="device= must be 'cpu'"):
        x.to_device("gpu")

    def softmax(values):  # written for the standard
        n = values.__array_namespace__()
        shifted = n.exp(values - n.max(values, axis=-1, keepdims=True))
        return shifted / n.sum(shifted, axis=-1, keepdims=True)

    np.testing.assert_allclose(softmax(x).sum(axis=1), [1, 1], rtol=1e-6)
    assert isinstance(xp.exp(pt.vector()), graphc.Variable)


def test_sizes_are_python_integers_that_promote_as_int64(env):
    x = env.as_tensor(A)
    assert x.shape == (2, 3) and all(isinstance(n, int) for n in (*x.shape, x.size, x.shape[0] - 1))
    assert json.dumps({"n": x.size, "shape": x.shape}) == '{"n": 6, "shape": [2, 3]}'
    n = x.shape[0]
    symbolic = pt.fmatrix("s")
    for f in (
        lambda v, n: v / n,
        lambda v, n: (n - 1) * v,
        lambda v, n: v + (-n // 2) % 3,
        lambda v, n: v**n,
    ):
        assert f(x, n).dtype == f(symbolic, symbolic.shape[0]).dtype == "float64"
    assert type(n * 2 + 1) is Size and type(n / 2) is np.float64 and 3 / n == 1.5 and type(abs(-n)) is Size
    assert env.zeros((n, x.shape[1])).shape == x.shape and x[n - 1].shape == (3,)
    assert (symbolic * n).dtype == "float64" and (x * 2).dtype == "float32"


def test_numbers_among_the_operands_are_data(env, xp):
    x = env.as_tensor(A)
    for operation in (
        lambda k: xp.add(x, k),
        lambda k: xp.maximum(k, x),
        lambda k: xp.clip(x, -k, k),
        lambda k: xp.where(x > 0, x, k),
        lambda k: xp.linspace(0.0, k, 5),
    ):
        operation(0.5)
        before = env.cache_info().misses
        for k in (1.25, 2.0, 4.5):
            operation(k)
        assert env.cache_info().misses == before
    assert xp.where(x > 0, x, 0).dtype == "float32" and xp.where(x > 0, 1.5, x).dtype == "float32"
    np.testing.assert_array_equal(xp.clip(x, -1, None), np.maximum(A, -1))
    with pytest.raises(OverflowError):
        xp.where(True, xp.asarray(1, dtype=xp.int8), 1000)


def test_making_arrays(env, xp):
    mine = np.arange(3.0)
    shared, copied = xp.asarray(mine, copy=False), xp.asarray(mine)
    mine[0] = 7.0
    assert float(shared[0]) == 7.0 and float(copied[0]) == 0.0
    assert xp.asarray(shared) is shared and xp.asarray(shared, copy=True) is not shared
    assert xp.asarray([1, 2]).dtype == xp.int64 and xp.asarray(1.5).dtype == xp.float64
    assert xp.asarray([True], dtype=xp.float32).dtype == xp.float32
    assert xp.astype(shared, xp.float64, copy=False) is shared and xp.astype(shared, xp.int8).dtype == xp.int8
    for given in ([1.0], np.arange(3)):
        with pytest.raises(ValueError, match="without a copy"):
            xp.asarray(given, dtype=xp.float64, copy=False)
    np.testing.assert_array_equal(xp.from_dlpack(np.arange(4)), np.arange(4))


def test_what_needs_values(env, xp):
    x = env.as_tensor(A)
    for got, want in zip(xp.unstack(x, axis=-1), A.T, strict=True):
        np.testing.assert_array_equal(got, want)
    assert len(xp.unstack(x)) == 2
    np.testing.assert_array_equal(+x, A)
    for mask in (True, np.False_, env.as_tensor(True), env.as_tensor(A[0, 0] > 9)):
        np.testing.assert_array_equal(x[mask], A[bool(mask)])
        np.testing.assert_array_equal(x[0, 0][mask], A[0, 0][np.asarray(bool(mask))])
    rows = env.as_tensor(np.array([True, False]))
    np.testing.assert_array_equal(x[env.as_tensor(True), rows], A[True, np.array([True, False])])
    for sizes in ((0,), (2, 0)):
        none = np.zeros(sizes, bool)
        assert x[env.as_tensor(none)].shape == A[none].shape
    info = xp.finfo(x)
    assert [type(v) for v in info[:5]] == [int, float, float, float, float] and info.bits == 32
    assert info.eps == float(np.finfo("float32").eps) and xp.finfo(xp.complex128).dtype == xp.float64
    assert xp.result_type(x, xp.float64) == xp.float64 and xp.can_cast(x, xp.float64)


def test_functions_that_2024_12_added(env, xp):
    x, order = env.as_tensor(A), env.as_tensor(np.argsort(A, axis=1))
    np.testing.assert_array_equal(xp.count_nonzero(x > 0, axis=1), [2, 2])
    np.testing.assert_array_equal(xp.take_along_axis(x, order), np.sort(A))
    np.testing.assert_array_equal(xp.diff(x, axis=0, prepend=x[:1]), np.diff(A, axis=0, prepend=A[:1]))
    running = xp.cumulative_prod(x, axis=1, include_initial=True)
    np.testing.assert_allclose(running, np.cumulative_prod(A, axis=1, include_initial=True), rtol=1e-6)
    np.testing.assert_array_equal(xp.nextafter(x, xp.zeros_like(x)), np.nextafter(A, np.zeros_like(A)))
    np.testing.assert_array_equal(xp.reciprocal(x), 1 / A)
    stack = np.stack([np.diag([1.0, 1e-3]), np.diag([1.0, 0.5])])
    np.testing.assert_array_equal(
        xp.linalg.matrix_rank(env.as_tensor(stack), rtol=env.as_tensor([0.1, 0.6])), [1, 1]
    )
    assert xp.fft.fftfreq(4, dtype=xp.float32).dtype == xp.float32

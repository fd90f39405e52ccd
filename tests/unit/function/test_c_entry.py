# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C functions of log densities: numbers, status codes, threads, refusals."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function.c_entry import density_entry, values_entry

DENSITY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
VALUES = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3)


def call(entry, x, dim=None):
    gradient, value = np.full(len(x), -7.0), np.full((), -7.0)
    status = DENSITY(entry.address)(
        len(x) if dim is None else dim, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, entry.user
    )
    return status, float(value), gradient


@pytest.fixture(scope="module")
def density():
    """A loop, data as an argument, a large constant, a shared value."""
    x, data = pt.dvector("x"), pt.dvector("data")
    scale = graphc.shared(np.full(3, 2.0), name="scale")
    h = graphc.scan(
        lambda d, h, a: 0.5 * h + a * d,
        sequences=[data],
        outputs_info=[x[0]],
        non_sequences=[x[1]],
        return_updates=False,
    )
    value = (
        -(h**2).sum()
        - (x * scale).sum()
        + pt.dot(pt.constant(np.arange(40.0)), x[2] + pt.zeros(40))
        + pt.log(x[0])
    )
    f = graphc.function([x, data], [value, graphc.grad(value, x)])
    return f, scale


def test_numbers_and_status(density):
    f, _ = density
    data = np.linspace(0, 1, 50)
    entry = density_entry(f, np.ones(3), data)
    x = np.array([0.5, -1.0, 2.0])
    status, value, gradient = call(entry, x)
    expected = f(x, data)
    assert (status, value) == (0, float(expected[0]))
    np.testing.assert_array_equal(gradient, expected[1])
    assert call(entry, x, dim=4)[0] == -1
    assert call(entry, np.array([0.0, 1.0, 1.0]))[0] == 3
    assert call(entry, np.array([-1.0, 1.0, 1.0]))[0] == 4


def test_threads_call_at_the_same_time(density):
    f, _ = density
    data = np.linspace(0, 1, 50)
    entry = density_entry(f, np.ones(3), data)
    points = np.random.default_rng(0).uniform(0.1, 1, (4, 200, 3))
    failures = []

    def work(mine):
        for x in mine:
            status, value, gradient = call(entry, x)
            expected = f(x, data)
            if status or value != expected[0] or not np.array_equal(gradient, expected[1]):
                failures.append(x)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in points]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_failed_check_is_a_status():
    x, i = pt.dvector("x"), pt.lvector("i")
    value = x[i].sum()
    f = graphc.function([x, i], [value, graphc.grad(value, x)])
    where = np.array([0, 1])
    entry = density_entry(f, np.ones(3), where)
    assert call(entry, np.ones(3))[0] == 0
    where[0] = 5
    assert call(entry, np.ones(3))[0] == 1


def test_values():
    x = pt.dvector("x")
    f = graphc.function([x], pt.concatenate([x, pt.exp(x)]))
    entry = values_entry(f, np.zeros(2))
    given, result = np.array([0.0, 1.0]), np.zeros(4)
    assert VALUES(entry.address)(2, 4, given.ctypes.data, result.ctypes.data, entry.user) == 0
    np.testing.assert_array_equal(result, f(given))
    assert VALUES(entry.address)(2, 3, given.ctypes.data, result.ctypes.data, entry.user) == -1


def test_refusals():
    x = pt.dvector("x")
    state = graphc.shared(0.0)
    for outputs, options, message in [
        ([x.sum(), x * 2], {"updates": {state: state + 1}}, "updates"),
        ([x.sum(), x[:1]], {}, "gradient of shape"),
        ([x.sum().astype("float32"), x], {}, "dtypes"),
        ([], {"on_unused_input": "ignore"}, "dtypes"),
        ([graphc.as_op([pt.dscalar], [pt.dscalar])(lambda v: v)(x.sum()), x], {}, "in Python"),
    ]:
        with pytest.raises(TypeError, match=message):
            density_entry(graphc.function([x], outputs, **options), np.ones(3))
    y = pt.fvector("y")
    for f, message in [
        (graphc.function([y], [y.sum().astype("float64"), y.astype("float64")]), "float64 vector"),
        (graphc.function([x], [x.sum(), x * 2], donate=[x]), "donated"),
    ]:
        with pytest.raises(TypeError, match=message):
            density_entry(f, np.ones(3))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of mode "cuda" take, keep and give arrays of the device: transfers, shared variables, results."""

from __future__ import annotations

import copy
import operator
import pickle
import threading

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import DeviceArray, upload
from graphc_runtime.cuda.driver import DeviceMemoryError, DriverError
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

A = np.arange(3, dtype="float32")
x = pt.vector("x", dtype="float32")


class Device:
    """One simulated device for all functions of a test, which have kernels of the same names."""

    def __init__(self) -> None:
        self.driver = SimulatedDriver()

    def function(self, inputs, outputs, **options):
        f = graphc.function(inputs, outputs, mode="cuda", **options)
        kernels = Kernels(f.ir_stages()["gpu"])

        def call(*args, **keywords):
            self.driver.use(kernels)
            return f(*args, **keywords)

        call.function = f
        return call

    def moved(self) -> list[str]:
        """The transfers since the last time."""
        found = [transfer.kind for transfer in self.driver.transfers]
        self.driver.transfers.clear()
        return found


@pytest.fixture
def device(monkeypatch):
    made = Device()
    monkeypatch.setattr(executable, "device", lambda: made.driver)
    return made


def test_results_stay_until_they_are_read(device):
    f = device.function([x], [x * 2, x.sum()])
    y, total = f(A)
    assert isinstance(y, DeviceArray) and isinstance(total, DeviceArray)
    assert y.shape == (3,) and y.dtype == "float32" and total.shape == ()
    assert device.moved() == ["upload"]
    np.testing.assert_array_equal(np.asarray(y), 2 * A)
    assert float(total) == 3 and device.moved() == ["download", "download"]


def test_results_are_taken_where_they_are(device):
    f = device.function([x], pt.sin(x))
    y = f(A)
    assert device.moved() == ["upload"]
    z = f(f(y))
    assert device.moved() == []
    np.testing.assert_allclose(z.get(), np.sin(np.sin(np.sin(A))), rtol=1e-5)
    assert y.get().tolist() == pytest.approx(np.sin(A).tolist())  # an argument is not written to
    f.function.trust_input = True
    f(y)
    assert device.moved() == ["download", "download"]


def test_arguments_of_the_device_are_checked(device):
    f = device.function([x], x + 1)
    array = upload(device.driver, np.arange(3.0), device.driver.main_stream)
    with pytest.raises(TypeError, match=r"input 0 \(x\): expected dtype float32 and 1 axes, given float64"):
        f(array)
    with pytest.raises(TypeError, match="float64"):
        f(np.arange(3.0) + 0.1)  # the host's rules are those of other modes


def test_shared_variables_stay(device):
    w = graphc.shared(np.ones(3, "float32"), "w")
    f = device.function([], w.sum(), updates={w: w * 2})
    for number in range(3):
        assert float(f()) == 3 * 2**number
    assert device.moved() == ["upload", "download", "download", "download"]
    np.testing.assert_array_equal(w.get_value(), np.full(3, 8, "float32"))
    inside = w.get_value(return_internal_type=True)
    assert isinstance(inside, DeviceArray) and inside.get().tolist() == [8, 8, 8]
    assert device.moved() == ["download", "download"]
    f()
    assert inside.get().tolist() == [8, 8, 8]  # who has it keeps it
    w.set_value(A)
    assert float(f()) == 3
    np.testing.assert_array_equal(w.get_value(borrow=True), 2 * A)


def test_other_modes_see_the_same_value(device):
    w = graphc.shared(np.ones(3, "float32"), "w")
    f = device.function([x], [], updates={w: w + x})
    twice = pt.vector("twice", dtype="float32")
    g = graphc.function([twice], w * twice, updates={w: w - 1})
    python = graphc.wrap_py(lambda value: value[::-1].copy(), [w.type], [w.type])
    h = graphc.function([], python(w))
    r = graphc.function([], w + 1, mode="reference")
    value = np.ones(3, "float32")
    for _ in range(3):
        f(A)
        value = value + A
        np.testing.assert_array_equal(h(), value[::-1])
        np.testing.assert_array_equal(r(), value + 1)
        np.testing.assert_array_equal(g(A), value * A)
        value = value - 1
    np.testing.assert_array_equal(w.get_value(), value)


def test_copies_pickles_and_zeros(device):
    w = graphc.shared(np.ones(3, "float32"), "w")
    f = device.function([], [], updates={w: w * 2})
    f()
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert isinstance(other.container[0], np.ndarray)
        np.testing.assert_array_equal(other.get_value(), [2, 2, 2])
    assert w.get_value().tolist() == [2, 2, 2]
    w.zero()
    f()
    np.testing.assert_array_equal(w.get_value(), np.zeros(3))


def test_generators_stay_too(device):
    rng = graphc.shared(np.random.default_rng(3))
    state, draws = pt.random.normal(0, 1, size=4, rng=rng, return_next_rng=True)
    f = device.function([], draws * 2, updates={rng: state})
    wanted = np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_allclose(f().get(), wanted.normal(0, 1, 4) * 2)
    assert rng.get_value().normal() == wanted.normal()


def test_large_constants_are_sent_once(device):
    table = np.arange(100_000, dtype="float32")
    f = device.function([x], pt.constant(table)[:3] + x)
    device.moved()
    for _ in range(3):
        np.testing.assert_array_equal(f(A).get(), 2 * A)
    moved = [transfer for transfer in device.driver.transfers if transfer.nbytes == table.nbytes]
    assert len(moved) <= 1


def test_threads_lose_no_update(device):
    w = graphc.shared(np.zeros(3, "float32"), "w")
    f = device.function([], [], updates={w: w + 1})
    f()
    threads = [threading.Thread(target=lambda: [f.function() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(w.get_value(), np.full(3, 21))


def test_errors_of_the_driver_name_the_operation_and_the_line(device, monkeypatch):
    f = device.function([x], pt.sort(x) * 2)
    device.driver.use({})
    with pytest.raises(DriverError) as caught:
        f.function(A)
    text = str(caught.value)
    assert f"in: launch of sort_0 for Sort\n  made at {__file__}:" in text and text.count("made at") == 1
    small = SimulatedDriver(total=1 << 10)
    monkeypatch.setattr(executable, "device", lambda: small)
    named = pt.outer(x, x)
    named.name = "products"
    g = device.function([x], [named])
    for size, what in (
        (300, r"input 0 \(x\), of shape \(300,\)"),
        (40, r"result 0 'products', of shape \(40, 40\)"),
    ):
        with pytest.raises(
            DeviceMemoryError, match=f"were asked for, .* are free\n  for {what} and dtype float32"
        ):
            g.function(np.zeros(size, "float32"))
    f = graphc.function([x], pt.sum(x @ pt.exp(pt.outer(x, x) @ pt.outer(x, x))), mode="cuda")
    with pytest.raises(
        DeviceMemoryError, match=r"for an array of shape \(16, 16\) .*\n  in: allocate for .*\n  made at"
    ):
        f(np.zeros(16, "float32"))


def test_calls_like_one_before_go_straight_to_the_driver(device, monkeypatch):
    w = graphc.shared(np.ones(3, "float32"), "w")
    scale = pt.constant(np.full(3, 2, "float32"))
    f = device.function([graphc.In(x, value=A)], {"y": x * scale, "z": w.sum()}, updates={w: w + x})
    given = upload(device.driver, A, device.driver.main_stream)
    for _ in range(2):
        f(given)
    device.moved()
    general = f.function.calls._run
    monkeypatch.setattr(f.function.calls, "_run", None)
    found = f(given)
    assert found["y"].get().tolist() == [0, 2, 4] and float(found["z"]) == 9
    assert device.moved() == ["download", "download"] and device.driver.prepared == 1
    named, numbers = upload(device.driver, 0 * A, device.driver.main_stream), A.tolist()
    assert f(x=given, out={"y": named, "z": None})["y"] is named and named.get().tolist() == [0, 2, 4]
    assert f(numbers)["y"].get().tolist() == [0, 2, 4] and float(f()["z"]) == 18
    launch = device.driver.launch
    monkeypatch.setattr(device.driver, "launch", lambda *a, **k: _refuse())
    with pytest.raises(DriverError, match=rf"refused\n  in: launch of \w+ for \S+\n  made at {__file__}:"):
        f(given)
    monkeypatch.setattr(device.driver, "launch", launch)
    w.set_value(A)  # of the host: moved by the next call, on the general way
    monkeypatch.setattr(f.function.calls, "_run", general)
    assert float(f(given)["z"]) == 3 and float(f()["z"]) == 6 and float(f(x=given)["z"]) == 9
    with f.function.trace() as trace:
        assert float(f(given)["z"]) == 12
    assert "1 call" in str(trace)
    with pytest.raises(TypeError, match="by position"):
        f(given, given)
    with pytest.raises(TypeError, match="float64"):
        f(upload(device.driver, np.arange(3.0), device.driver.main_stream))
    assert float(f(given)["z"]) == 15


def _refuse():
    raise DriverError("refused", 1)


def test_failed_checks_change_nothing(device):
    w = graphc.shared(np.ones(3, "float32"), "w")
    f = device.function([x], [], updates={w: w + x})
    with pytest.raises(ValueError):
        f(np.ones(4, "float32"))
    np.testing.assert_array_equal(w.get_value(), np.ones(3))


def test_out_is_on_the_host(device):
    f = device.function([x], [x + 1, x * 2])
    out = np.empty(3, "float32")
    y, z = f(A, out=[out, None])
    assert y is out and isinstance(z, DeviceArray)
    np.testing.assert_array_equal(out, A + 1)


def test_forms_of_outputs_and_choices(device):
    f = device.function([x], {"a": x + 1, "b": [x * 2]})
    found = f(A)
    assert found["a"].get().tolist() == [1, 2, 3] and found["b"][0].get().tolist() == [0, 2, 4]


def test_a_trace_keeps_arrays_where_they_are(device):
    w = graphc.shared(np.ones(3, "float32"), "w")
    f = device.function([x], x * w, updates={w: w + 1})
    with f.function.trace() as trace:
        y = f(A)
    assert isinstance(y, DeviceArray) and "1 call" in str(trace)
    np.testing.assert_array_equal(w.get_value(), [2, 2, 2])


OPERATORS = [getattr(operator, name) for name in "add sub mul truediv pow mod eq lt".split()]


@pytest.mark.parametrize("operate", OPERATORS)
def test_operators_give_arrays_of_the_host(device, operate):
    y = device.function([x], x + 1)(A)
    value = A + 1
    for other in (2, value, np.float32(3)):
        for found, wanted in (
            (operate(y, other), operate(value, other)),
            (operate(other, y), operate(other, value)),
        ):
            assert type(found) is np.ndarray and found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(operate(y, y), operate(value, value))


def test_indexing_and_iteration(device):
    y = device.function([x], x + 1)(A)
    assert y[0] == 1 and y[1:].tolist() == [2, 3] and y[[2, 0]].tolist() == [3, 1] and list(y) == [1, 2, 3]
    np.testing.assert_array_equal(np.exp(y), np.exp(A + 1))
    before = y
    y += 1
    assert y.tolist() == [2, 3, 4] and before.get().tolist() == [1, 2, 3]
    with pytest.raises(TypeError):
        np.add(A, 1, out=before)


def test_reductions_beside_others_that_take_elements(device):
    """Kernels of one run are not looked into when the next one grows over them."""
    z, s = pt.matrix("z"), pt.scalar("s")
    total = pt.log((pt.ones((2, 3)) + pt.erf(s)).sum())
    quantiles = pt.quantile(z, [0.0, 0.25, 1.0], axis=1)
    for outputs in ([quantiles, total], [total, quantiles], [quantiles, total, pt.exp(z).sum(axis=0)]):
        values = np.arange(20.0).reshape(4, 5) / 10, 0.5
        found = device.function([z, s], outputs)(*values)
        expected = graphc.function([z, s], outputs, mode="reference")(*values)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)

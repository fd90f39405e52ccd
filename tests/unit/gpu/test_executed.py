# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of every kernel class run, by the interpreter on the simulated driver, as they do on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gpu_cases import CASES
from simulation import asked, assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt
from graphc.errors import UnsupportedError
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import upload
from graphc_runtime.cuda.driver import NoDeviceError

# Sums of a device are added up in another order.
_TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    inputs, outputs = case.graph()
    cpu = graphc.function(inputs, outputs)
    device = graphc.function(inputs, outputs, mode="cuda")
    driver = device_for(monkeypatch, device)
    for shapes in case.shapes:
        values = case.values(shapes)
        for found, expected in zip(device(*values), cpu(*values), strict=True):
            assert found.dtype == expected.dtype and found.shape == expected.shape
            tolerance = _TOLERANCE.get(expected.dtype.name, 0)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    plans = device.executor.executable.plans
    if plans._is_planned and plans._is_ready:
        largest = max(case.shapes, key=lambda shapes: sum(map(math.prod, shapes)))
        given = [upload(driver, value, driver.main_stream) for value in case.values(largest)]
        plans._is_planned = False
        direct = asked(monkeypatch, driver, lambda: device(*given), given)
        plans._is_planned = True
        # A plan is made and used, and found again.
        assert [asked(monkeypatch, driver, lambda: device(*given), given) for _ in range(2)] == 2 * [direct]
        assert direct and driver.prepared == 1
        del given
    del found
    assert_nothing_lives(driver)
    assert set(driver.launches) <= set(driver._kernels)


def test_equal_calls_give_equal_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.matrix("x", dtype="float32")
    f = graphc.function([x], [pt.sum(x), pt.sum(x, axis=0), pt.sum(x, axis=1)], mode="cuda")
    device_for(monkeypatch, f)
    value = np.random.default_rng(0).normal(size=(70, 90)).astype(np.float32)
    for first, second in zip(f(value), f(value), strict=True):
        assert first.get().tobytes() == second.get().tobytes()


def test_shared_variables_are_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.vector("x", dtype="float32")
    state = graphc.shared(np.zeros(3, np.float32))
    f = graphc.function([x], pt.sum(state), updates={state: state + x}, mode="cuda")
    device_for(monkeypatch, f)
    assert f(np.ones(3, np.float32)) == 0
    assert f(np.ones(3, np.float32)) == 3
    np.testing.assert_array_equal(state.get_value(), [2, 2, 2])


def test_checks_of_values_and_of_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = pt.vector("x", dtype="float32"), pt.vector("i", dtype="int64")
    y = pt.vector("y", dtype="float32")
    f = graphc.function([x, i, y], x[i] * y, mode="cuda")
    device_for(monkeypatch, f)
    value = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(f(value, [3, -1], value[:2]), [0, 3])
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        f(value, [0, 4], value[:2])
    with pytest.raises(ValueError, match="must agree"):
        f(value, [0, 1], value)


def test_without_a_device_the_first_call_says_so() -> None:
    x = pt.vector("x")
    f = graphc.function([x], x + 1, mode="cuda")
    if executable_device_is_there():
        pytest.skip("there is a device here")
    with pytest.raises(NoDeviceError, match="CUDA"):
        f(np.zeros(3))
    np.testing.assert_array_equal(graphc.function([x], x + 1)(np.zeros(3)), np.ones(3))


def executable_device_is_there() -> bool:
    try:
        executable.device()
    except NoDeviceError:
        return False
    return True


def test_loops_that_are_no_kernel_launch_those_of_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.matrix("x", dtype="float32")
    first = {"initial": x[:2], "taps": [-1, -2]}
    rows = graphc.scan(
        lambda row, a, b: a - 0.5 * b + row, sequences=[x], outputs_info=[first], return_updates=False
    )
    f, cpu = graphc.function([x], rows, mode="cuda"), graphc.function([x], rows)
    driver = device_for(monkeypatch, f)
    value = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    np.testing.assert_allclose(f(value), cpu(value), rtol=1e-5)
    assert driver.replayed == 6


def test_the_architecture_is_a_setting() -> None:
    x = pt.vector("x")
    for arch in ("sm_80", "sm_100"):
        with graphc.config.change_flags(cuda_arch=arch):
            f = graphc.function([x], x + 1, mode="cuda")
            assert f.ir_stages()["ptx"].count(f".target {arch}\n") == 1
    with pytest.raises(ValueError, match="expected one of sm_80"):
        graphc.config.cuda_arch = "sm_20"


def test_denormal_numbers_are_kept() -> None:
    x = pt.vector("x")
    with pytest.raises(UnsupportedError, match="keep denormal numbers"):
        graphc.function([x], x + 1, mode="cuda", flush_denormals=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "bool", "complex128"])
def test_transposes(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Squares that are full and not, rows that are multiples of a vector and not, one and several inputs."""
    x, y = (pt.tensor(name, dtype=dtype, shape=(None, None, None)) for name in "xy")
    across, turned = x.transpose(0, 2, 1), pt.moveaxis(y, 2, 0)
    outputs = [
        across * turned.transpose(1, 0, 2),
        across + y.transpose(1, 2, 0).transpose(2, 1, 0),
        turned * x[0, 0, 0],
    ]
    f = graphc.function([x, y], outputs, mode="cuda")
    cpu = graphc.function([x, y], outputs)
    device_for(monkeypatch, f)
    assert "transpose_" in f.ir_stages()["gpu"]
    rng = np.random.default_rng(0)
    for last in (68, 8, 67):
        shape = (2, last, last)
        values = [(rng.normal(size=shape) * 3).astype(dtype) for _ in range(2)]
        for found, expected in zip(f(*values), cpu(*values), strict=True):
            np.testing.assert_array_equal(found, expected)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.export` for CUDA devices; the files run on the simulated driver."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cuda.lower import lower
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.loaded import load
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver


@pytest.fixture
def simulated(monkeypatch):
    """Gives functions of a file a device that knows their kernels."""

    def use(path, name):
        text = load(path, target="cuda").text(f"mlir:{name}")
        driver = SimulatedDriver(Kernels(lower(text, "sm_90").kernels))
        monkeypatch.setattr(executable, "device", lambda: driver)
        return load(path, target="cuda")

    return use


def model(mode="fast_run"):
    x, w = pt.matrix("x"), graphc.shared(np.ones(3), name="w")
    large = pt.constant(np.linspace(0, 1, 30).reshape(10, 3))
    outputs = {"value": pt.exp(x).sum(axis=1), "more": [x * w, large + w]}
    return graphc.function([x], outputs, updates={w: w + x.sum()}, mode=mode)


@pytest.mark.parametrize("mode", ["fast_run", "cuda"])
def test_one_file_has_code_for_the_cpu_and_for_devices(simulated, mode, tmp_path):
    f, path = model(mode), tmp_path / "model.gcx"
    graphc.export({"model": f}, path, targets=["host", "cuda"], keep_ir=True)
    on_cpu, on_device = load(path), simulated(path, "model")
    assert on_cpu.target == "host" and on_device.target == "cuda"
    x = np.random.default_rng(0).normal(size=(4, 3))
    for _ in range(3):
        wanted, found = on_cpu.model(x), on_device.model(x)
        assert isinstance(found["value"], DeviceArray)
        np.testing.assert_allclose(np.asarray(found["value"]), wanted["value"], rtol=1e-12)
        for result, expected in zip(found["more"], wanted["more"], strict=True):
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
    np.testing.assert_allclose(on_device.state["w"], on_cpu.state["w"], rtol=1e-12)


def test_devices_have_an_architecture(tmp_path):
    x = pt.vector("x")
    path = graphc.export(
        graphc.function([x], x * 2, mode="fast_run"), tmp_path / "f.gcx", targets="cuda-sm_80"
    )
    target = load(path).package.targets["cuda-sm_80"]
    assert (target.triple, target.cpu) == ("nvptx64-nvidia-cuda", "sm_80")


@pytest.mark.parametrize("targets", [["cuda"], ["host", "cuda"]])
def test_checks_of_sizes_fail_before_the_device_is_asked(simulated, targets, tmp_path):
    x, y = pt.vector("x"), pt.vector("y")
    path = tmp_path / "f.gcx"
    f = graphc.function([x, y], pt.log(x + y)[y.shape[0] - 1], mode="fast_run")
    graphc.export({"f": f}, path, targets=targets, keep_ir=True)
    f = simulated(path, "f").f
    np.testing.assert_allclose(np.asarray(f([1.0, 2.0], [3.0, 4.0])), np.log(6.0))
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        f([1.0, 2.0], [3.0, 4.0, 5.0])
    with pytest.raises(IndexError, match="index -1"):
        f([], [])


def test_sizes_that_depend_on_values(simulated, tmp_path):
    x = pt.matrix("x")
    f = graphc.function([x], [pt.nonzero(x > 0)[0], pt.arange(x.sum().astype("int64"))], mode="fast_run")
    graphc.export({"f": f}, tmp_path / "f.gcx", targets=["cuda"], keep_ir=True)
    found = simulated(tmp_path / "f.gcx", "f").f
    for value in (np.array([[1.0, -1], [2, 1]]), np.zeros((2, 0))):
        for result, expected in zip(found(value), f(value), strict=True):
            np.testing.assert_array_equal(np.asarray(result), expected)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.export` for CUDA devices; the files run on the simulated driver."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cuda.code import lower
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.loaded import load
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

pytestmark = pytest.mark.usefixtures("quick_ptx")


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


# A driver that does nothing and reads ones, and what a file asks of it, in a process that finds no compiler.
_ALONE = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("graphc", "graphc_dialects", "graphc_tools", "mlir", "llvmlite", "scipy"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import numpy as np
import graphc_runtime
from graphc_runtime.cuda import executable

class Driver:
    name, arch, ordinal, main_stream = "none", "sm_90", 0, 1
    def __init__(self):
        self.asked, self.handles = [], 256
    def new(self, *given, **more):
        self.handles += 256
        return self.handles
    allocate = function = load = new_stream = new
    def __getattr__(self, name):
        def ask(*given, **more):
            self.asked.append(name)
            return self.new()
        return ask
    def upload(self, address, array, stream):
        self.asked.append("upload")
    def download(self, array, address, stream):
        array[...] = 1
        self.asked.append("download")

driver = Driver()
executable.device = lambda: driver
model = graphc_runtime.load(sys.argv[1], target="cuda")
x, w = np.ones((9, 4)), np.eye(4)
found = model.f(x, w)
assert [array.shape for array in found] == [(9, 4), (4,), (1,)], found
print(*(driver.asked.count(name) for name in ("begin_capture", "replay")), "launch" in driver.asked)
"""


def test_loops_and_sizes_run_with_the_runtime_alone(tmp_path):
    x, w = pt.matrix("x"), pt.matrix("w")
    rows = graphc.scan(
        lambda r, s: pt.tanh(pt.sort(r + s @ w)), sequences=[x], outputs_info=[x[0]], return_updates=False
    )
    until = graphc.scan(
        lambda s: (pt.sort(s @ w), graphc.until(s.sum() > 9)),
        outputs_info=[x[0]],
        n_steps=20,
        return_updates=False,
    )
    f = graphc.function([x, w], [rows, until[-1], pt.arange(x.sum().astype("int64"))], mode="fast_run")
    path = graphc.export({"f": f}, tmp_path / "f.gcx", targets=["cuda"])
    made = subprocess.run(
        [sys.executable, "-c", _ALONE, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 0, made.stderr
    # Nine steps of the one loop, 4, 4, 8 and 4 of the other, which reads each time that it goes on.
    assert made.stdout.split() == ["2", "29", "True"]

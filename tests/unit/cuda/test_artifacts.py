# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files with code for a device: read without a compiler, and refused when something is wrong with them."""

from __future__ import annotations

import importlib.util
import pickle
from dataclasses import replace
from pathlib import Path

import mutated_artifacts
import numpy as np
import pytest

from graphc_runtime.container import Writer
from graphc_runtime.cpu import TargetRecord
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.calls import LibraryCalls
from graphc_runtime.cuda.driver import NoDeviceError
from graphc_runtime.errors import ArtifactError, LoadError
from graphc_runtime.loaded import load
from graphc_runtime.package import Code, FunctionRecord, Package, StateRecord, Stored
from graphc_tools.gpu.simulated import SimulatedDriver

_spec = importlib.util.spec_from_file_location("programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


def example() -> bytes:
    """A file with two functions, one of which has a state."""
    writer = Writer()
    values = np.arange(4, dtype=np.float32)
    state = StateRecord("y", (None,), Stored(writer.add(values.tobytes()), "float32", (4,)))
    records = {}
    for name, made, cells, form in (
        ("column_sums", programs.column_sums(), (), 0),
        ("step", programs.axpy(), (("state", 0),), None),
    ):
        code = Code(writer.add(made.artifact.code), (), (), 0)
        signature = replace(made.manifest.signature, name=name)
        outputs = ("",) * len(signature.outputs)
        records[name] = FunctionRecord("", signature, outputs, form, cells, {}, (), {"cuda": code})
    target = TargetRecord("nvptx64-nvidia-cuda", "sm_90")
    return writer.to_bytes(Package(records, (state,), {"cuda": target}).to_json())


@pytest.fixture
def simulated(monkeypatch):
    driver = SimulatedDriver(programs.KERNELS)
    monkeypatch.setattr(executable, "device", lambda: driver)
    return driver


def test_functions_of_a_file_run_on_the_device(simulated):
    module = load(example())
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(module.column_sums(x)), x.sum(axis=0), rtol=1e-5)
    assert module.step(np.ones(4, np.float32)) is None
    np.testing.assert_array_equal(module.state["y"], np.arange(4) + 1.5)
    module.step(np.ones(4, np.float32))
    assert [t.kind for t in simulated.transfers].count("upload") == 4  # x, two arguments, the state once
    again = pickle.loads(pickle.dumps(module))
    np.testing.assert_array_equal(again.state["y"], np.arange(4) + 3)
    module.state["y"] = np.zeros(4, np.float32)
    module.step(np.ones(4, np.float32))
    np.testing.assert_array_equal(module.state["y"], np.full(4, 1.5))


def test_files_are_read_where_there_is_no_device(monkeypatch):
    def nothing():
        raise NoDeviceError("there is no CUDA driver here")

    monkeypatch.setattr(executable, "device", nothing)
    module = load(example())
    assert [spec.dtype for spec in module.column_sums.inputs] == ["float32"]
    with pytest.raises(LoadError, match="no CUDA driver"):
        module.column_sums(np.zeros((1, 1), np.float32))


def test_no_driver_is_said_clearly():
    with pytest.raises(NoDeviceError, match=r"no CUDA driver here .*all other targets work without it"):
        LibraryCalls("libnothing_of_this_name.so")


@pytest.mark.fuzz
def test_changed_files_are_read_or_refused():
    tally = mutated_artifacts.run(example(), 800, seed=3)
    refused = sum(count for (_, found), count in tally.items() if found == "refused")
    assert refused > 500


def test_changed_code_is_refused():
    made = programs.column_sums()
    data = bytearray(made.artifact.code)
    data[len(data) // 2] ^= 1
    with pytest.raises(ArtifactError, match="SHA-256"):
        executable.DeviceCode.from_bytes(bytes(data))

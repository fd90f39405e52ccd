# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of kernels, and the model of the time that they take."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cuda.code import lower
from graphc_runtime.cuda import executable
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.performance import (
    Counts,
    Launch,
    Resources,
    bytes_in_flight,
    counted,
    launches,
    predicted,
    ptxas,
)
from graphc_tools.gpu.simulated import SimulatedDriver

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def quick_ptx() -> None:
    """Nothing: registers, which say how many blocks run at once, are those of optimised PTX."""


_COPY = """
gpu.module @kernels {{
  gpu.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) kernel {{
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %s = arith.constant {step} : index
    %0 = arith.muli %b, %n : index
    %1 = arith.addi %0, %t : index
    %i = arith.muli %1, %s : index
    %a = memref.load %x[%i] : memref<?xf32>
    memref.store %a, %y[%1] : memref<?xf32>
    gpu.return
  }}
}}
"""
_ARRAY = (1 << 40, 1 << 40, 0, 1 << 40, 1)


def _counts(step: int, grid: int = 1000, block: int = 128) -> Counts:
    kernels = Kernels(_COPY.format(step=step))
    return counted(kernels["copy"], Launch("copy", (grid, 1, 1), (block, 1, 1), (*_ARRAY, *_ARRAY), 0))


@pytest.mark.parametrize(("step", "sectors"), [(1, 4), (2, 8), (8, 32), (100, 32)])
def test_sectors_of_a_request(step: int, sectors: int) -> None:
    counts = _counts(step)
    assert (counts.blocks, counts.requests, counts.stored_requests) == (2, 8, 8)
    assert counts.sectors == sectors * counts.requests
    assert counts.stored_sectors == 4 * counts.stored_requests
    assert (counts.loaded, counts.stored) == (2 * 4 * sectors * 32, 2 * 4 * 4 * 32)
    assert counts.operations == 8 * 9


_PTX = """
.visible .entry many(.param .u64 x)
{
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd2];
    add.f32 %f9, %f1, %f5;
    bar.sync 0;
    ld.global.f64 %fd1, [%rd3];
    ret;
}
.visible .entry chased(.param .u64 x)
{
    ld.global.u64 %rd4, [%rd1];
    add.s64 %rd5, %rd4, 8;
    ld.global.u64 %rd6, [%rd5];
    ret;
}
"""


def test_bytes_that_are_asked_for_together() -> None:
    assert bytes_in_flight(_PTX) == {"many": 32, "chased": 8}


def test_time_is_that_of_what_limits_a_kernel() -> None:
    launch = Launch("copy", (1 << 20, 1, 1), (128, 1, 1), (), 0)
    needs = Resources(32, 0)

    def time(blocks: int = 1 << 20, in_flight: int = 16, **work: int) -> float:
        counts = Counts(requests=4, sectors=64, loaded=2048, blocks=1)
        for name, value in work.items():
            setattr(counts, name, value)
        return predicted(Launch("copy", (blocks, 1, 1), launch.block, (), 0), counts, in_flight, needs).total

    whole = (1 << 20) * 2048 / 4.2e6
    assert whole < time() < 1.05 * whole + 2
    assert time(in_flight=4) > 1.5 * time()  # too few requests for the latency of memory
    assert time(operations=4000) > 2 * time()
    assert time(sectors=1 << 12) > 2 * time()
    # One block has one multiprocessor's share of the bandwidth.
    assert time(blocks=1, loaded=1 << 30, sectors=1 << 25) > 50 * time(
        blocks=132, loaded=1 << 23, sectors=1 << 18
    )


def test_launches_of_arrays_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.fmatrix("x")
    f = graphc.function([x], pt.exp(x).sum(axis=1), mode="cuda")
    kernels = Kernels(lower(f.ir_stages()["graph"], "sm_90").kernels)

    def use(driver: SimulatedDriver) -> None:
        monkeypatch.setattr(executable, "device", lambda: driver)

    rows, columns = 1 << 22, 1 << 12
    (launch,) = launches(f, kernels, [("float32", (rows, columns))], use)
    counts = counted(kernels[launch.name], launch)
    moved = counts.loaded * launch.count / counts.blocks
    np.testing.assert_allclose(moved, 4.0 * rows * columns, rtol=0.01)
    assert counts.sectors == 16 * counts.requests  # 16 bytes a thread


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> object:
    """The script that measures devices."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "bench")
    monkeypatch.setattr(executable, "device", executable.device)  # it is replaced
    yield importlib.import_module("gpu")
    for name in ("gpu", "gpu_lines"):
        sys.modules.pop(name, None)


# Lines, and the least part of the bandwidth of copies that they may have.
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("row_sums_64x4194304", 0.9),
        ("column_sums_65536x4096", 0.9),
        ("softmax_8192x8192", 0.9),
        ("normalised", 0.85),
        ("transpose", 0.9),
        ("join", 0.85),
        ("fused_elementwise", 0.9),
        ("argmax", 0.7),
    ],
)
def test_time_is_within_30_percent_of_what_a_device_measured(
    bench, name: str, share: float, tmp_path: Path
) -> None:
    if ptxas() is None:
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
    (line,) = [line for line in bench.LINES if line.name == name]
    assert " s" in bench.build_line(name, tmp_path)
    total = sum(found.total for found in bench.predicted(line, tmp_path))
    measured = bench.measured(ROOT / "docs" / "guide" / "on-a-gpu.md")[name]
    assert 0.7 < total / measured < 1.3
    assert line.moved(*line.shapes) / 4.2e6 / total > share

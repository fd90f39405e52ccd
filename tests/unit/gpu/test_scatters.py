# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at positions that repeat: all threads take part, and the bits are those of the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cuda import pipeline
from graphc.graph.basic import Variable
from graphc_runtime.cuda import executable
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver


def _check(
    inputs: list[Variable],
    outputs: list[Variable],
    runs: list[list[np.ndarray]],
    scatters: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = graphc.function(inputs, outputs, mode="cuda")
    cpu = graphc.function(inputs, outputs)
    text = device.ir_stages()["gpu"]
    assert text.count("gpu.func @scatter") == scatters
    driver = SimulatedDriver(Kernels(text))
    monkeypatch.setattr(executable, "device", lambda: driver)
    for values in runs:
        for found, expected in zip(device(*values), cpu(*values), strict=True):
            np.testing.assert_array_equal(np.asarray(found), expected)


def test_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are rounded in the order of the positions; of what is set the last one stays."""
    x, v = (pt.matrix(name, dtype="float32") for name in "xv")
    i = pt.lvector("i")
    outputs = [x[i].inc(v), x[i].set(v), x.T[:, i].inc(v.T)]
    rng = np.random.default_rng(0)
    runs = []
    for rows, columns, count in ((5, 3, 20), (40, 1, 9), (1, 33, 70), (4, 3, 0)):
        a, b = (rng.normal(size=(n, columns)).astype(np.float32) for n in (rows, count))
        runs.append([a, b, rng.integers(-rows, rows, count)])
    _check([x, v, i], outputs, runs, 3, monkeypatch)


def test_several_indices_and_other_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    z, b = pt.matrix("z", dtype="complex64"), pt.matrix("b", dtype="bool")
    i = pt.lmatrix("i")
    outputs = [z[i, i.T].inc(z[0, 0]), b[:, i[0]].inc(b)]
    rng = np.random.default_rng(1)
    given = [
        (rng.normal(size=(4, 4)) + 1j).astype(np.complex64),
        rng.random((2, 4)) < 0.3,
        rng.integers(0, 4, (4, 4)),
    ]
    _check([z, b, i], outputs, [given], 2, monkeypatch)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "float64", "complex128"])
def test_many_writes_to_many_rows(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a tile of writes, by several digits; numbers that are added are sorted with their rows."""
    x, v, i = pt.vector("x", dtype=dtype), pt.vector("v", dtype=dtype), pt.lvector("i")
    flag = "graphc-gpu-scatter"
    steps = tuple(
        step._replace(text=f"{flag}{{bits=8 items=1}}") if step.text == flag else step
        for step in pipeline.KERNELS.steps
    )
    monkeypatch.setattr(pipeline, "KERNELS", replace(pipeline.KERNELS, steps=steps))
    rng = np.random.default_rng(0)
    runs = []
    for rows, count in ((150, 400), (400, 300), (1, 5)):
        a, b = (rng.normal(size=n).astype(dtype) for n in (rows, count))
        runs.append([a, b, rng.integers(-rows, rows, count)])
    with graphc.config.change_flags(cache_dir=""):
        _check([x, v, i], [x[i].inc(v), x[i].set(v)], runs, 2, monkeypatch)

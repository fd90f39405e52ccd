# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for large arrays on small ones: the interpreter is slow, so that what is large is set otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt
from graphc.backends.cuda import pipeline
from graphc.function.types import Function
from graphc_tools.gpu.simulated import SimulatedDriver


def _compiled(
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    inputs: list[graphc.Variable],
    outputs: list[graphc.Variable],
) -> tuple[Function, SimulatedDriver]:
    """A function, compiled with an option of a pass."""
    flag = option.partition("{")[0]
    steps = pipeline.KERNELS.steps
    changed = tuple(step._replace(text=option) if step.text == flag else step for step in steps)
    assert changed != steps
    monkeypatch.setattr(pipeline, "KERNELS", replace(pipeline.KERNELS, steps=changed))
    with graphc.config.change_flags(cache_dir=""):
        function = graphc.function(inputs, outputs, mode="cuda")
    driver = device_for(monkeypatch, function)
    return function, driver


_REAL = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("dtype", _REAL)
def test_long_rows_are_sorted_by_digits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts of a row, tiles that are not full, keys that repeat; and rows that are short or empty."""
    x = pt.matrix("x", dtype=dtype)
    outputs = [pt.sort(x[:, ::2], axis=1), pt.argsort(x, axis=1)]
    option = "graphc-gpu-sort{tile=32 threads=64 items=1 parts=4}"
    f, driver = _compiled(monkeypatch, option, [x], outputs)
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        value = rng.normal(size=(2, 170)).astype(dtype)
        for number, special in enumerate(
            (np.nan, -np.inf, np.inf, 0.0, -0.0, np.finfo(dtype).smallest_subnormal)
        ):
            value[rng.random(value.shape) < 0.05 * (number + 1)] = special
    else:
        value = np.frombuffer(rng.bytes(2 * 170 * 8), "u8").astype(dtype).reshape(2, 170)
        value[rng.random(value.shape) < 0.3] = 1
    for given in (value, value[:, :50], value[:, :20], value[:1, :0], value[:0]):
        found = f(given)
        np.testing.assert_array_equal(found[0], np.sort(given[:, ::2], axis=1))
        np.testing.assert_array_equal(found[1], np.argsort(given, axis=1, kind="stable"))
    assert {name.partition("_")[0] for name in driver.launches} >= {
        "sort",
        "tiles",
        "digits",
        "running",
        "radix",
    }


@pytest.mark.parametrize("turned", [False, True])
def test_large_products(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = pt.matrix("x", dtype="float32"), pt.matrix("y", dtype="float32")
    outputs = [x.T @ y.T if turned else x @ y]
    f, driver = _compiled(monkeypatch, "graphc-gpu-matmul{parts=1}", [x, y], outputs)
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((140, 37), (37, 70)))
    values = (a.T.copy(), b.T.copy()) if turned else (a, b)
    exact = a.astype(float) @ b.astype(float)
    np.testing.assert_allclose(f(*values)[0], exact, rtol=1e-5, atol=1e-5)
    assert any(name.startswith("large") for name in driver.launches)
    assert not any(name.startswith("product") for name in driver.launches)


@pytest.mark.parametrize(
    ("dtype", "option", "tolerance", "sizes"),
    [("float16", "", 1e-3, (140, 40, 136)), ("float32", " precision=tf32", 1e-2, (131, 37, 70))],
)
def test_large_products_on_tensor_cores(
    dtype: str, option: str, tolerance: float, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows begin at multiples of 16 bytes, and elsewhere."""
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    f, driver = _compiled(monkeypatch, f"graphc-gpu-matmul{{parts=1{option}}}", [x, y], [x @ y])
    rng = np.random.default_rng(0)
    m, k, n = sizes
    a, b = (rng.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n)))
    exact = a.astype(float) @ b.astype(float)
    np.testing.assert_allclose(f(a, b)[0], exact, rtol=tolerance, atol=tolerance)
    assert any(name.startswith("large_tensor") for name in driver.launches)
    assert not any(name.startswith("tensor") for name in driver.launches)


def test_short_factors_are_rounded_to_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 digits after the first one; ties go away from 0, and infinities and NaN stay."""
    x, y = pt.tensor("x", dtype="float32", shape=(6, None)), pt.matrix("y", dtype="float32")
    with graphc.config.change_flags(matmul_precision="tf32"):
        f = graphc.function([x, y], x @ y, mode="cuda")
    device_for(monkeypatch, f)
    given = [1 + 2.0**-11, 1 - 2.0**-13, -1 - 3 * 2.0**-12, 2.0**-140, np.inf, np.nan]
    rounded = [1 + 2.0**-10, 1, -1 - 2.0**-10, 0, np.inf, np.nan]
    found = f(np.array(given, np.float32)[:, None], np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(np.asarray(found)[:, 0], np.array(rounded, np.float32))


def test_precisions_that_there_are_not_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one of float32, tf32"):
        graphc.config.matmul_precision = "bfloat16"

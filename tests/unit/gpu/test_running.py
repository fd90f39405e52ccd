# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running operations of every element type, and how they round."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt
from graphc.function.types import Function
from graphc.ops.cumulative import Cumulative


def _compiled(
    monkeypatch: pytest.MonkeyPatch, inputs: list[graphc.Variable], outputs: list[graphc.Variable]
) -> Function:
    function = graphc.function(inputs, outputs, mode="cuda")
    device_for(monkeypatch, function)
    return function


@pytest.mark.parametrize(
    ("dtype", "kinds"),
    [("bool", ("add", "min")), ("uint8", ("mul", "max")), ("float16", ("min",)), ("complex64", ("mul",))],
)
def test_element_types(dtype: str, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.tensor("x", dtype=dtype, shape=(None, 1))
    outputs = [Cumulative(kind, reverse=kind == "mul")(x) for kind in kinds]
    f = _compiled(monkeypatch, [x], outputs)
    value = np.random.default_rng(0).integers(0, 3, (70, 1)).astype(dtype)
    for found, expected in zip(f(value), graphc.function([x], outputs)(value), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6)


def test_nan_and_signs_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.vector("x")
    f = _compiled(monkeypatch, [x], [Cumulative("max")(x), Cumulative("min")(x), pt.cumsum(x)])
    value = np.array([1.0, np.inf, -np.inf, np.nan, 2.0] + [0.0] * 300)
    with np.errstate(invalid="ignore"):
        expected = [np.maximum.accumulate(value), np.minimum.accumulate(value), np.cumsum(value)]
    for found, wanted in zip(f(value), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_sums_round_less_often_than_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pt.vector("x", dtype="float32")
    f = _compiled(monkeypatch, [x], [pt.cumsum(x)])
    value = np.random.default_rng(0).random(20_001).astype(np.float32)
    exact = np.cumsum(value.astype(np.float64))
    found, steps = f(value)[0], np.cumsum(value)
    assert np.abs(found - exact).max() < 0.2 * np.abs(steps - exact).max()
    assert np.asarray(f(value)[0]).tobytes() == np.asarray(found).tobytes()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Systems with matrices that are said to be positive definite or symmetric, and are not regular."""

from __future__ import annotations

import re

import numpy as np
import pytest
from simulation import assert_nothing_lives, device_for

import graphc
import graphc.tensor as pt

WRONG = np.array([[4.0, 1.0], [1.0, -4.0]])


@pytest.mark.parametrize(
    ("kind", "dtype", "wrong", "message"),
    [("pos", "float32", WRONG, "not positive definite"), ("sym", "float64", WRONG * 0, "singular")],
)
def test_errors(
    kind: str, dtype: str, wrong: np.ndarray, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the CPU's; or such systems of a batch alone have no solution."""
    lower = kind == "sym"
    a, b = pt.tensor("a", dtype=dtype, shape=(None, 2, 2)), pt.tensor("b", dtype=dtype, shape=(None, 2, 1))
    whole, right = np.array([[4, 1], [1, 3]], dtype), np.ones((2, 2, 1), dtype)
    # The other triangle is not read.
    good = np.array([[4, 7], [1, 3]] if lower else [[4, 1], [7, 3]], dtype)
    values = np.stack([wrong.astype(dtype), good])
    for on_error in ("raise", "nan"):
        x = pt.linalg.solve(a, b, assume_a=kind, lower=lower, on_error=on_error)
        cpu, device = (graphc.function([a, b], x, mode=mode) for mode in ("fast_run", "cuda"))
        assert not device.report.on_host
        driver = device_for(monkeypatch, device)
        if on_error == "nan":
            found = device(values, right)
            assert np.all(np.isnan(found[0])) and np.all(np.isnan(cpu(values, right)[0]))
            np.testing.assert_allclose(found[1], np.linalg.solve(whole, right[1]), rtol=1e-6)
            continue
        for function in (cpu, device):
            with pytest.raises(np.linalg.LinAlgError, match=re.escape(message)):
                function(values, right)
        np.testing.assert_allclose(device(values[1:], right[1:]), cpu(values[1:], right[1:]), rtol=1e-6)
        assert_nothing_lives(driver)

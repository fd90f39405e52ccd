# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks, positions of what is true, and different elements are found on devices, as NumPy finds them."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt

_DTYPES = "bool float16 int64 complex128".split()


@pytest.mark.parametrize("dtype", _DTYPES)
def test_masks(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All, none and some elements, of tiles that are full and not, side by side and not."""
    x, mask = pt.vector("x", dtype=dtype), pt.vector("mask", dtype="bool")
    f = graphc.function([x, mask], [x[mask], x[::-2][mask[::-2]], pt.flatnonzero(mask)], mode="cuda")
    assert "runs on the host" not in str(f.report)
    device_for(monkeypatch, f)
    rng = np.random.default_rng(0)
    for size, share in ((0, 0.5), (1, 1.0), (33, 0.5), (70, 0.0), (4500, 0.3), (4096, 1.0)):
        value = np.asarray(rng.integers(0, 9, size) + (1j if dtype[0] == "c" else 0)).astype(dtype)
        chosen = rng.random(size) < share
        found = f(value, chosen)
        np.testing.assert_array_equal(found[0], value[chosen])
        np.testing.assert_array_equal(found[1], value[::-2][chosen[::-2]])
        np.testing.assert_array_equal(found[2], np.flatnonzero(chosen))


def test_what_is_made_of_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a mask chooses, elements of matrices, `nonzero` and `unique`; sizes are unknown."""
    x = pt.matrix("x", dtype="float32")
    outputs = [x[x > 0], x[x[:, 0] > 0], *pt.nonzero(x > 1), pt.unique(pt.floor(x))]
    f = graphc.function([x], outputs, mode="cuda")
    device_for(monkeypatch, f)
    for shape in ((37, 3), (1, 1)):
        value = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        expected = [
            value[value > 0],
            value[value[:, 0] > 0],
            *np.nonzero(value > 1),
            np.unique(np.floor(value)),
        ]
        for found, wanted in zip(f(value), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)

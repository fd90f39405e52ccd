# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples run, agree with scikit-learn, write their plot, and fail loudly when they do not converge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"

pytest.importorskip("sklearn", reason="the examples need the demo extra")
pytest.importorskip("matplotlib", reason="the examples need the demo extra")


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One example in a process of its own."""
    roots = [str(ROOT / root) for root in ("compiler", "dialects", "runtime", "tools")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
@pytest.mark.parametrize("name", ["logistic_regression.py", "huber_regression.py"])
def test_fits_agree_with_scikit_learn(name, mode, tmp_path):
    picture = tmp_path / "plots" / "fit.png"
    done = run(name, "--mode", mode, "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and done.stdout.count("\nok  ") == 2
    assert "step   10" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_fit_that_stops_early_is_reported(tmp_path):
    done = run("logistic_regression.py", "--max-steps", "2", "--plot", str(tmp_path / "fit.png"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL largest difference of a coefficient" in done.stdout


def test_the_ir_is_shown_at_each_stage(tmp_path):
    done = run("huber_regression.py", "--show-ir", "--plot", str(tmp_path / "fit.png"))
    assert done.returncode == 0, done.stdout + done.stderr
    stages = [line for line in done.stdout.splitlines() if line.startswith("// ---- ")]
    assert len(stages) >= 4
    for trace in ("graphc.", "linalg.generic", "memref.", "llvm."):
        assert trace in done.stdout

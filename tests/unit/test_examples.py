# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples run, agree with their peers, write their plot, and fail loudly when they do not converge."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"

pytest.importorskip("sklearn", reason="the examples need the demo extra")
pytest.importorskip("matplotlib", reason="the examples need the demo extra")


class Done(NamedTuple):
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch, capsys) -> Callable[..., Done]:
    """Runs an example in this process, which has the packages that most of them load."""

    def in_this_process(name: str, *arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *arguments])
        monkeypatch.syspath_prepend(str(EXAMPLES))
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return in_this_process


def run_alone(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One example in a process of its own."""
    roots = [str(ROOT / root) for root in ("compiler", "dialects", "runtime", "tools")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def report() -> Any:
    """The module that the examples share."""
    spec = importlib.util.spec_from_file_location("_report", EXAMPLES / "_report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
@pytest.mark.parametrize("name", ["logistic_regression.py", "huber_regression.py"])
def test_fits_agree_with_scikit_learn(run, name, mode, tmp_path):
    picture = tmp_path / "plots" / "fit.png"
    done = run(name, "--mode", mode, "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and done.stdout.count("\nok  ") == 2
    assert "step   10" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_fit_that_stops_early_is_reported(tmp_path):
    """The exit status of a process of its own."""
    done = run_alone("logistic_regression.py", "--max-steps", "2", "--plot", str(tmp_path / "fit.png"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL largest difference of a coefficient" in done.stdout


def test_the_ir_is_shown_at_each_stage(run, tmp_path):
    done = run("huber_regression.py", "--show-ir", "--plot", str(tmp_path / "fit.png"))
    assert done.returncode == 0, done.stdout + done.stderr
    stages = [line for line in done.stdout.splitlines() if line.startswith("// ---- ")]
    assert len(stages) >= 4
    for trace in ("graphc.", "linalg.generic", "memref.", "llvm."):
        assert trace in done.stdout


def test_sunspot_models_agree_with_statsmodels(run, tmp_path):
    pytest.importorskip("statsmodels", reason="the examples need the demo extra")
    picture = tmp_path / "sunspots.png"
    done = run("sunspots.py", "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and done.stdout.count("\nok  ") == 7
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_sunspot_models_in_the_reference_mode(run, tmp_path):
    pytest.importorskip("statsmodels", reason="the examples need the demo extra")
    done = run("sunspots.py", "--mode", "reference", "--max-steps", "2", "--plot", str(tmp_path / "s.png"))
    # Two steps do not converge, but the loss is that of the plain loop.
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ok   GARCH: relative difference of the loss at our optimum" in done.stdout
    assert "FAIL AR: largest difference of a parameter" in done.stdout


@pytest.mark.parametrize(
    ("name", "mode", "checks"),
    [
        ("trust_region.py", "fast_run", 1),
        ("trust_region.py", "reference", 1),
        ("hmc.py", "fast_run", 4),
        ("immediate_session.py", "fast_run", 5),
    ],
)
def test_conditionals_draws_and_immediate_mode(run, name, mode, checks, tmp_path):
    picture = tmp_path / "picture.png"
    done = run(name, "--mode", mode, "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and done.stdout.count("\nok  ") == checks
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_sampler_in_the_reference_mode(run, tmp_path):
    done = run("hmc.py", "--mode", "reference", "--draws", "20", "--plot", str(tmp_path / "hmc.png"))
    # So few draws say little of the moments; but the program runs.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert done.stdout.count("standard errors") == 4


def test_the_network_learns(run, tmp_path):
    picture = tmp_path / "rnn.png"
    done = run("char_rnn.py", "--updates", "150", "--hidden", "32", "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "training [##############################] 150/150" in done.stdout
    assert "ok   loss over that of frequencies" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_network_in_the_reference_mode(run, tmp_path):
    arguments = ("--mode", "reference", "--updates", "5", "--hidden", "8", "--plot", str(tmp_path / "r.png"))
    done = run("char_rnn.py", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL loss over that of frequencies" in done.stdout


def test_a_missing_package_is_named():
    with pytest.raises(SystemExit, match="needs no_such_package"):
        report().require("numpy", "no_such_package")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`make long`: what its runner writes, and what it does with failures."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"long_{name}", ROOT / "tests" / "long" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(monkeypatch, tmp_path):
    run = load("run")
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    return run


def test_figures_are_written_with_date_and_commit(run, tmp_path):
    page = tmp_path / "page.md"
    steps = (
        run.Step("one", "the first", "-c 'print(1); print(\"12 | programs\")'"),
        run.Step("two", "the second", "-c 'import sys; print(\"{minutes} wrong\"); sys.exit(3)'"),
    )
    assert run.main(["--steps", "one"], steps, page) == 0
    [row] = run.rows_of(page.read_text(encoding="utf-8")).values()
    assert "| the first | 12 \\| programs | 0 | 20" in row
    assert row.endswith(f" {run.commit_of(ROOT)} |")
    assert run.main(["--steps", "two", "--minutes", "7"], steps, page) == 1
    page.write_text(page.read_text(encoding="utf-8") + "\n## Others\n\n| a | b |\n", encoding="utf-8")
    assert run.main(["--steps", "two", "--minutes", "7"], steps, page) == 1
    text = page.read_text(encoding="utf-8")
    assert text.endswith("cores.\n\n## Others\n\n| a | b |\n")
    assert "the first" in text and "| **failed** with exit code 3: 7 wrong |" in text
    assert (tmp_path / "two.log").read_text(encoding="utf-8") == "7 wrong\n"
    with pytest.raises(SystemExit):
        run.main(["--steps", "three"], steps, page)


def test_the_steps_name_files(run):
    for step in run.STEPS:
        word = step.command.split()[0]
        assert word == "-m" or (ROOT / word).is_file()
    assert run.fuzz_counts('x\n{\n "counts": {"programs": 1200, "crashes": 0}, "seconds": {}\n}') == (
        "1,200 programs, 0 crashes"
    )


def test_damage(run):
    assert run.damage_counts("flipped   refused  12\nforged_code  read 5\nforged refused 1000\n") == (
        "1,012 refused, 5 read"
    )


def test_leaks_are_counted():
    """In a process of its own: elsewhere, memory that other tests have given back is taken first."""
    code = (
        "import runpy, sys; growth = runpy.run_path(sys.argv[1])['growth']; kept = []; "
        "print(growth(lambda number: kept.append(bytearray(1 << 20)), 20, 2)); "
        "print(growth(lambda number: bytearray(1 << 20), 20, 2))"
    )
    command = [sys.executable, "-c", code, str(ROOT / "tests" / "long" / "leaks.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept, dropped = map(float, done.stdout.split())
    assert kept > 1 << 19
    assert dropped < 1 << 18

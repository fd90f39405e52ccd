# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `graphc-new` writes passes the checks as it is, in a copy of packages and tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphc_tools.new import create_op, create_pass

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("compiler", "dialects", "runtime", "tools")
TESTS = ("lit/dialect", "lit/lit.cfg.py", "unit/dialect", "unit/ops", "unit/passes/test_completeness.py")
ALONE = ("unit/test_one_place.py",)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scratch")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in (*TESTS, *ALONE):
        source, target = ROOT / "tests" / name, root / "tests" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            shutil.copy(source, target)
    for flag in (path for path in (ROOT / "tests" / "lit" / "passes").iterdir() if path.is_dir()):
        shutil.copytree(flag, root / "tests" / "lit" / "passes" / flag.name)
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(ROOT / "tests" / "typing", root / "tests" / "typing")
    create_op("sample-op", "The rows of an array in reverse order.", root=root)
    create_pass("sample-pass", "graph", "Counts operations.", root=root)
    return root


def run(scratch: Path, *command: str) -> None:
    roots = os.pathsep.join(str(scratch / name) for name in PACKAGES)
    environment = {**os.environ, "PYTHONPATH": roots}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=scratch, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def generated(scratch: Path) -> list[str]:
    return [str(path) for path in scratch.rglob("*sample_*.py")]


def test_lint(scratch: Path) -> None:
    assert len(generated(scratch)) == 6
    run(scratch, "ruff", "check", *generated(scratch))
    run(scratch, "ruff", "format", "--check", *generated(scratch))


def test_types(scratch: Path) -> None:
    # What `make types` found out of the files that are the same; modification times are copied, too.
    known = ROOT / ".mypy_cache"
    if known.is_dir():
        shutil.copytree(known, scratch / known.name, dirs_exist_ok=True)
    run(scratch, "mypy")


def test_completeness_and_its_own_tests(scratch: Path) -> None:
    tests = [f"tests/{name}" for name in ("unit/ops/test_sample_op.py", "unit/ops/test_completeness.py")]
    tests += ["tests/unit/dialect/test_completeness.py", "tests/unit/passes/test_completeness.py"]
    run(scratch, "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, "-k", "ample")
    run(
        scratch, "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/unit/test_one_place.py", "-k", "ample"
    )


@pytest.mark.parametrize(
    "path",
    ["dialect/sample_op", "dialect/sample_op_invalid"]
    + [f"passes/sample-pass/{kind}" for kind in ("basic", "invalid", "doctest")],
)
def test_lit(scratch: Path, path: str) -> None:
    file = scratch / "tests" / "lit" / f"{path}.mlir"
    line = next(x for x in file.read_text().splitlines() if "RUN: " in x).partition("RUN: ")[2]
    code = "import sys; from graphc_tools.lit_format import parse_command, run_command; "
    code += "done = run_command(parse_command(sys.argv[1])); sys.exit(0 if done[0] else done[1])"
    roots = os.pathsep.join(str(scratch / name) for name in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-c", code, line.replace("%s", str(file))],
        env={**os.environ, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "summary", "message"),
    [
        ("Bad_Name", "Does.", "lower-case words"),
        ("fusion", "Does.", "already"),
        ("new-one", "no stop", "full stop"),
    ],
)
def test_wrong_arguments(tmp_path: Path, name: str, summary: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_pass(name, "graph", summary, root=tmp_path)


def test_an_operation_that_exists(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="already"):
        create_op("take", "Takes.", root=tmp_path)

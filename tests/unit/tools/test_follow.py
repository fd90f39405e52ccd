# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files, functions, classes and commands that the pages on the architecture name are there."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graphc_tools import one_operation

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "architecture" / "follow.md"
# `folder/file.py`, `folder/file.py:name`, `folder/file.py:Class.name`, `folder/folder`.
NAMED = re.compile(r"`((?:compiler|dialects|runtime|tools|tests)/[\w/]+(?:\.py)?)(?::([\w.]+))?(?: -[^`]*)?`")


def definitions(path: Path) -> set[str]:
    """Functions, classes, methods and variables of a module."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


NAMES = sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8"))))


def test_the_page_names_files():
    assert len(NAMES) > 40


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_what_is_named_is_there(path, name):
    assert (ROOT / path).exists(), path
    if name:
        assert name in definitions(ROOT / path), f"{path} has no {name}"


FILES = [
    str(path.relative_to(ROOT))
    for top in ("compiler", "dialects", "runtime", "tools", "tests", "docs")
    for path in (ROOT / top).rglob("*.py")
]


@pytest.mark.parametrize("page", sorted(PAGE.parent.glob("*.md")), ids=lambda page: page.stem)
def test_files_of_a_page_are_there(page):
    """In full, or from any folder on: `passes/manager/run.py`."""
    named = set(re.findall(r"`([\w./-]+\.py)(?::[\w.]+)?`", page.read_text(encoding="utf-8")))
    named = {name for name in named if "..." not in name}
    lost = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)]
    assert not lost


def passed(command: list[str]) -> tuple[int, str]:
    """How many tests a command runs, all of which pass, and its output."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout
    return int(found[1]), done.stdout


def test_the_commands_for_one_operation_select_its_cases():
    """Of the page, as they stand there; groups of cases keep only those of the operation."""
    page = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"`(pytest tests/numeric[^`]*)`", page)
    count, _ = passed([*shlex.split(command), "-q", "-p", "no:cacheprovider"])
    assert 3 <= count <= 20
    (name,) = re.findall(r"`graphc-test (\w+)`", page)
    count, _ = passed(["graphc_tools.one_operation", name])
    assert 5 <= count <= 20


def test_lit_tests_of_one_operation():
    """Of the passes that name it, or that name what a function is written with; of many, the files."""
    lit = ROOT / "tests" / "lit"
    assert lit / "passes" / "linear-systems" in one_operation.lit_tests("cholesky")
    assert {path.suffix for path in one_operation.lit_tests("exp")} == {".mlir"}
    assert "cumulative" in one_operation.written("cumsum") and one_operation.written("exp") == {"exp"}


def test_an_operation_that_is_not_there(capsys, monkeypatch):
    monkeypatch.setattr(one_operation, "TESTS", ("tests/numeric/test_op_gradients.py",))
    assert one_operation.main(["cumsums"]) == 2
    assert "no test is of an operation 'cumsums'; is it cumsum" in capsys.readouterr().err

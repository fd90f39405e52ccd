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


def test_the_command_for_one_operation_selects_its_cases():
    """Of the page, as it stands there; groups of cases keep only those of the operation."""
    (command,) = re.findall(r"`(pytest tests/numeric[^`]*)`", PAGE.read_text(encoding="utf-8"))
    arguments = [sys.executable, "-m", *shlex.split(command), "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and 3 <= int(passed[1]) <= 30, done.stdout

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files, functions and classes that the walk through the code names are there."""

from __future__ import annotations

import ast
import re
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

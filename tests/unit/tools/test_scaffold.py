# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A scaffolded pass works, and so do its tests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import graphc.passes.graph
from graphc.passes.manager.base import discover, find
from graphc_tools.lit_format import parse_command, run_command
from graphc_tools.scaffold import scaffold


@pytest.fixture
def scaffolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = scaffold("sample-pass", "graph", "Counts operations.", root=tmp_path)
    path = [*graphc.passes.graph.__path__, str(files[0].parent)]
    monkeypatch.setattr(graphc.passes.graph, "__path__", path)
    importlib.invalidate_caches()
    discover.cache_clear()
    find.cache_clear()
    yield files
    monkeypatch.undo()
    sys.modules.pop("graphc.passes.graph.sample_pass", None)
    discover.cache_clear()
    find.cache_clear()


def test_scaffolded_tests_pass(scaffolded: list[Path]) -> None:
    assert [path.name for path in scaffolded] == [
        "sample_pass.py",
        "basic.mlir",
        "invalid.mlir",
        "doctest.mlir",
    ]
    assert find("graphc-sample-pass").options() == {"max-operations": 100000}
    for path in scaffolded[1:]:
        line = path.read_text().partition("\n")[0].partition("RUN: ")[2]
        command = parse_command(line.replace("%s", str(path)))
        assert command is not None
        passed, output = run_command(command)
        assert passed, output


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
        scaffold(name, "graph", summary, root=tmp_path)

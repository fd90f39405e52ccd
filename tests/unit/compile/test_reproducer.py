# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compilation that fails in this process writes down with what."""

from __future__ import annotations

import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import CompileError
from graphc.ir.diagnostics import PassError
from graphc.passes.graph.fusion import Fusion
from graphc_tools.opt import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, value in (("reproducer_dir", str(tmp_path)), ("compile_isolated", False), ("cache_dir", "")):
        monkeypatch.setattr(graphc.config, name, value)
    return tmp_path


@pytest.mark.parametrize("error", [KeyError("no such value"), PassError("nothing goes"), AssertionError()])
def test_a_defect_of_a_pass(folder, monkeypatch, capsys, error):
    def run(self, module):
        raise error

    monkeypatch.setattr(Fusion, "run", run)
    x = pt.vector("x")
    with pytest.raises(CompileError, match="please report this with the module") as caught:
        graphc.function([x], pt.exp(x), mode="fast_run")
    assert isinstance(caught.value, PassError) == isinstance(error, PassError)
    assert caught.value.__cause__ is error
    (file,) = folder.glob("*.mlir")
    assert str(file) in str(caught.value)
    text = file.read_text(encoding="utf-8")
    assert '"graphc.exp"' in text and "graphc-fusion" in text and "// settings: " in text
    # It happens again.
    assert main([str(file), "--run-reproducer"]) == 1
    assert "graphc-fusion" in capsys.readouterr().err
    monkeypatch.undo()
    assert main([str(file), "--run-reproducer"]) == 0


def test_a_folder_that_cannot_be_written(folder, monkeypatch):
    (folder / "file").touch()
    monkeypatch.setattr(graphc.config, "reproducer_dir", str(folder / "file"))
    monkeypatch.setattr(Fusion, "run", lambda self, module: {}["nothing"])
    x = pt.vector("x")
    with pytest.raises(CompileError, match="could not be written to"):
        graphc.function([x], pt.exp(x), mode="fast_run")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-opt as a process and as a function: exit codes, streams, failures inside passes."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphc.passes.graph import fusion
from graphc_tools.lit_format import parse_command
from graphc_tools.opt import main

SOURCE = "func.func @f(%x: tensor<?xf64>) -> tensor<?xf64> {\n  return %x : tensor<?xf64>\n}\n"


def run(*arguments: str, source: str = SOURCE) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return main(list(arguments), io.StringIO(source), stdout, stderr), stdout.getvalue(), stderr.getvalue()


def test_as_a_process() -> None:
    command = [sys.executable, "-m", "graphc_tools.opt", "--canonicalize", "-"]
    done = subprocess.run(command, input=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "func.func @f" in done.stdout
    done = subprocess.run(command, input="func.func @f(", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("-:1:13: error: expected")
    assert "Traceback" not in done.stderr


def test_usage_error_of_a_process() -> None:
    command = [sys.executable, "-m", "graphc_tools.opt", "--graphc-nonsense"]
    done = subprocess.run(command, input=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("graphc-opt: error: no pass named 'graphc-nonsense'; the passes")


def test_a_pass_of_a_similar_name_is_offered() -> None:
    code, _, messages = run("--graphc-fuse", source=SOURCE)
    assert code == 1
    assert "no pass named 'graphc-fuse'; do you mean 'graphc-fusion'? --list-passes shows all" in messages


@pytest.mark.parametrize(
    "source",
    [
        "",
        "garbage",
        '"graphc.add"() : () -> ()',
        "func.func @f() { return 1 }",
        "module {",
        "\0",
        "{-# a #-}",
    ],
)
def test_bad_input_is_a_diagnostic(source: str) -> None:
    code, _, messages = run("--cse", source=source)
    assert code == (0 if not source else 1)
    assert "Traceback" not in messages
    assert code == 0 or "error: " in messages


def test_bug_in_a_pass_is_reported_without_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Any, module: Any) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(fusion.Fusion, "run", crash)
    code, _, messages = run("--graphc-fusion")
    assert code == 1
    assert "internal error in graphc-fusion: KeyError: 'surprise' (at test_opt.py:" in messages
    assert "Traceback" not in messages


def test_pass_that_breaks_the_module_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def corrupt(self: Any, module: Any) -> None:
        module.body.operations[0].regions[0].blocks[0].operations[0].operation.erase()

    monkeypatch.setattr(fusion.Fusion, "run", corrupt)
    code, output, messages = run("--graphc-fusion")
    assert (code, output) == (1, "")
    assert "error: empty block: expect at least a terminator" in messages


def test_object_code(tmp_path: Path) -> None:
    target = tmp_path / "out.o"
    source = "llvm.func @f(%x: i64) -> i64 {\n  llvm.return %x : i64\n}\n"
    assert run("--emit=obj", "-o", str(target), source=source)[0] == 0
    assert len(target.read_bytes()) > 100


def test_output_cannot_be_written(tmp_path: Path) -> None:
    code, _, messages = run("-o", str(tmp_path / "no" / "such"))
    assert code == 1
    assert messages.startswith("graphc-opt: error: cannot open output file")


def test_lit_commands() -> None:
    command = parse_command("not graphc-opt --a='b | c' x.mlir 2>&1 | filecheck x.mlir --check-prefix=P")
    assert command is not None
    assert command.arguments == ["--a=b | c", "x.mlir"]
    assert command.check == ["x.mlir", "--check-prefix=P"]
    assert command.fails and command.merges
    assert parse_command("graphc-opt - < x.mlir") is None
    assert parse_command("graphc-opt x.mlir | grep y") is None
    assert parse_command("graphc-opt x.mlir | filecheck a | filecheck b") is None

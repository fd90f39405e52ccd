# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-opt beside running passes: versions, lists, help, completion, differences, files, reduction."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys

import pytest

from graphc_dialects._mlir import passmanager
from graphc_dialects.dialect import new_context
from graphc_tools import _listing
from graphc_tools.opt import main

SOURCE = """
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> (tensor<?xf64>, tensor<f64>) {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.log1p"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.add"(%1, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %2, %3 : tensor<?xf64>, tensor<f64>
}
func.func @other(%x: tensor<?xf64>) -> tensor<?xf64> {
  return %x : tensor<?xf64>
}
"""


def run(*arguments: str, source: str = SOURCE) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return main(list(arguments), io.StringIO(source), stdout, stderr), stdout.getvalue(), stderr.getvalue()


def test_version() -> None:
    code, out, _ = run("--version")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and [line[0] for line in lines] == ["graphc-opt", "torch-mlir", "llvmlite"]
    assert all(line[-1][0].isdigit() for line in lines)


def test_upstreams_passes_exist() -> None:
    """Each of the list is registered, for the operation that the list says."""
    with new_context():
        for name, anchor in _listing.upstream().items():
            text = f"{anchor}({name})" if anchor else name
            passmanager.PassManager.parse(f"builtin.module({text})")
    assert len(_listing.upstream()) > 250
    code, out, _ = run("--list-passes")
    assert code == 0 and "  --canonicalize\n" in out and "  --affine-loop-tile on func.func\n" in out


def test_help_by_topic() -> None:
    code, out, _ = run("--help=printing")
    assert code == 0 and "--mlir-print-ir-tree-dir" in out and "--reduce" not in out
    code, _, errors = run("--help=nothing")
    assert code == 1 and "the topics are: input, passes, printing, checking, about" in errors


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    code, out, _ = run("--completion", shell)
    assert code == 0 and "graphc-fusion" in out and "mlir-timing" in out and "canonicalize" in out
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=out, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes() -> None:
    script = run("--completion", "bash")[1]
    ask = 'COMP_WORDS=(graphc-opt --graphc-fus); COMP_CWORD=1; _graphc_opt; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], text=True, capture_output=True)
    assert done.stdout == "--graphc-fusion\n", done.stderr


def test_loop_notation() -> None:
    code, out, _ = run("--loop-notation")
    assert code == 0 and "log1p(exp(" in out and "graphc." not in out
    code, _, errors = run("--loop-notation", source="func.func @f() { return }")
    assert code == 1 and "--loop-notation prints the function @main" in errors


def test_differences() -> None:
    code, _, errors = run("--graphc-stabilize", "--cse", "--diff")
    removed = [line for line in errors.splitlines() if line.startswith("-") and "log1p" in line]
    added = [line for line in errors.splitlines() if line.startswith("+") and "softplus" in line]
    assert code == 0 and len(removed) == len(added) == 1
    assert "before graphc-stabilize" in errors and "before cse" not in errors and "\x1b" not in errors
    coloured = run("--graphc-stabilize", "--diff", "--color=always")[2]
    assert re.sub("\x1b\\[[0-9]+m", "", coloured).strip() == errors.strip()
    assert "\x1b[31m-" in coloured and "\x1b[32m+" in coloured


def test_a_file_for_each_pass(tmp_path) -> None:
    given = ("--graphc-stabilize", "--pass-pipeline")
    assert run(f"--mlir-print-ir-tree-dir={tmp_path}", given[0], "--cse")[0] == 0
    files = sorted(tmp_path.rglob("*.mlir"))
    assert [file.name for file in files] == ["0_graphc-stabilize.mlir", "1_cse.mlir"]
    assert "graphc.softplus" in files[0].read_text(encoding="utf-8")
    (tmp_path / "file").touch()
    code, _, errors = run(f"--mlir-print-ir-tree-dir={tmp_path}/file", "--cse")
    assert code == 1 and "cannot write" in errors and "Traceback" not in errors


def test_reduce(tmp_path) -> None:
    script = tmp_path / "interesting.py"
    script.write_text("import sys\nsys.exit('graphc.log1p' not in open(sys.argv[1]).read())\n")
    code, out, errors = run("--reduce", f"{sys.executable} {script}")
    assert code == 0 and "reduced to" in errors
    assert "graphc.log1p" in out
    assert not any(word in out for word in ("graphc.exp", "graphc.add", "reduce_sum", "@other", "%arg1"))
    assert run("--canonicalize", source=out)[0] == 0


@pytest.mark.parametrize(
    ("command", "source", "message"),
    [
        ("false", SOURCE, "'false' must exit with 0 for the module as it is"),
        ("no-such-command", SOURCE, "cannot run 'no-such-command'"),
        ("true", "func.func @f(", "--reduce needs a module that can be parsed"),
    ],
)
def test_reduce_refuses(command: str, source: str, message: str) -> None:
    code, _, errors = run("--reduce", command, source=source)
    assert code == 1 and message in errors and "Traceback" not in errors

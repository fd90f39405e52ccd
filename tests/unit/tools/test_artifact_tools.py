# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-compile and graphc-run."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from graphc_runtime import run
from graphc_tools import compile

MODEL = """
import numpy as np
import graphc
import graphc.tensor as pt
x, y = pt.dvector("x"), pt.dscalar("y")
total = graphc.shared(np.zeros(2), name="total")
scale = graphc.function([x, y], pt.as_tensor_variable(x * y), name="scale")
def family():
    add = graphc.function([x], [total], updates={total: total + x.sum()})
    both = graphc.function([x, y], {"sum": x.sum(), "parts": [x + y, {"last*/": x[-1] * y}]})
    return {"double": graphc.function([x], x * 2), "add": add, "both": both}
nothing = 5
"""
GRAPH = """
module {
  func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
    %0 = "graphc.add"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    return %0 : tensor<?xf64>
  }
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    (folder / "model.py").write_text(MODEL)
    (folder / "graph.mlir").write_text(GRAPH)
    sources = [f"{folder}/model.py:scale", f"{folder}/model.py:family"]
    assert compile.main([*sources, "-o", f"{folder}/model.gcx", "--licence", "MIT"]) == 0
    return folder


def test_list(folder, capsys):
    assert run.main([f"{folder}/model.gcx", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "scale(x: float64[?], y: float64[]) -> output_0: float64[?]" in lines
    assert (
        "both(x: float64[?], y: float64[]) -> sum: float64[], parts: float64[?], parts.last*/: float64[]"
        in lines
    )
    assert "state total: float64[?]" in lines and "targets: host (here)" in lines and "licences: MIT" in lines


def test_inputs_and_outputs(folder, capsys, monkeypatch):
    artifact = f"{folder}/model.gcx"
    np.save(folder / "x.npy", np.arange(3.0))
    out = folder / "out.npy"
    given = ["--function", "scale", "--input", f"x=@{folder}/x.npy", "--input", "y=1.5", "--output", str(out)]
    assert run.main([artifact, *given]) == 0
    np.testing.assert_array_equal(np.load(out), [0, 1.5, 3])
    assert run.main([artifact, "--function", "double", "--input", "x=4xf64=1.5", "--output", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out), [3.0] * 4)
    assert run.main([artifact, "--function", "double", "--input", "x=[1, 2]"]) == 0
    assert "[2. 4.]" in capsys.readouterr().out
    stream = io.BytesIO((folder / "x.npy").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert run.main([artifact, "--function", "double", "--input", "x=-", "--benchmark"]) == 0
    assert "us a call at best" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--function says which"),
        (["--function", "other"], "'other'; the artifact has the functions"),
        (["--function", "double", "--input", "z=1"], "expected NAME=VALUE with a name of x"),
        (["--function", "double", "--input", "x=1+"], "neither a number nor lists"),
        (["--function", "double", "--input", "x=4xf7=1"], "the type f7"),
        (["--function", "double", "--input", "x=@/nowhere.npy"], "/nowhere.npy"),
        (["--function", "double"], "misses the arguments x"),
        (["--function", "double", "--input", "x=1", "--target", "x86-64-v9"], "no code for target"),
    ],
)
def test_errors_of_run(folder, capsys, arguments, message):
    assert run.main([f"{folder}/model.gcx", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error and error.startswith("graphc-run: ") and "Traceback" not in error


def test_a_graph_in_mlir(folder, capsys):
    assert compile.main([f"{folder}/graph.mlir", "-o", f"{folder}/graph.gcx", "--keep-ir"]) == 0
    given = ["--input", "input_0=[1.0, 2.0]", "--input", "input_1=2xf64=0.5"]
    assert run.main([f"{folder}/graph.gcx", *given]) == 0
    assert "[1.5 2.5]" in capsys.readouterr().out


def test_what_can_be_emitted(folder):
    for kind in ("object", "header", "llvm", "asm", "mlir"):
        assert compile.main([f"{folder}/model.py:scale", "--emit", kind, "-o", f"{folder}/scale.{kind}"]) == 0
        assert (folder / f"scale.{kind}").stat().st_size > 100
    emitted = folder / "family.h"
    assert compile.main([f"{folder}/model.py:family", "--emit", "header", "-o", str(emitted)]) == 0
    assert " *   1  parts: float64[?]\n *   2  parts.last* /: float64[]" in emitted.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["model.py:absent"], 2, "does not define absent"),
        (["model.py"], 2, "a source is model.py:name"),
        (["model.py:nothing"], 1, "must be a compiled graphc.function"),
        (["nowhere.py:f"], 1, "nowhere.py"),
        (["model.py:scale", "model.py:scale"], 1, "two functions have the name scale"),
        (
            ["model.py:scale", "--emit", "object", "--target", "host", "--target", "aarch64"],
            2,
            "takes one target",
        ),
    ],
)
def test_errors_of_compile(folder, capsys, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    assert compile.main([*arguments, "-o", "x.out"]) == code
    assert message in capsys.readouterr().err
    assert not (folder / "x.out").exists()


def test_a_broken_graph_is_one_error(folder, capsys):
    (folder / "bad.mlir").write_text(GRAPH.replace("graphc.add", "graphc.nonsense"))
    assert compile.main([f"{folder}/bad.mlir", "-o", f"{folder}/bad.gcx"]) == 1
    assert capsys.readouterr().err.startswith("graphc-compile: ")


def test_both_from_a_fresh_process(folder):
    command = [
        sys.executable,
        "-m",
        "graphc_tools.compile",
        f"{folder}/graph.mlir",
        "-o",
        f"{folder}/fresh.gcx",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    program = (
        "import sys; from graphc_runtime.run import main\n"
        f"code = main(['{folder}/fresh.gcx', '--input', 'input_0=2xf64=1', '--input', 'input_1=[2, 3]'])\n"
        "assert code == 0 and not {'graphc', 'llvmlite', 'torch_mlir', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "[3. 4.]" in done.stdout


@pytest.mark.parametrize("arguments", [["--list"], ["--function", "double", "--input", "x=[1]"]])
def test_a_reader_may_end_before(folder, arguments):
    """As `head` does."""
    reading, writing = os.pipe()
    os.close(reading)
    given = [f"{folder}/model.gcx", *arguments]
    program = f"import sys; from graphc_runtime.run import main; sys.exit(main({given}))"
    done = subprocess.run([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")

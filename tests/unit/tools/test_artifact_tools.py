# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""graphc-compile and graphc-run."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import graphc_runtime
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
    return {"twice": graphc.function([x], x * 2), "add": add, "both": both}
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
    assert run.main([artifact, "--function", "twice", "--input", "x=4xf64=1.5", "--output", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out), [3.0] * 4)
    assert run.main([artifact, "--function", "twice", "--input", "x=[1, 2]"]) == 0
    assert "[2. 4.]" in capsys.readouterr().out
    stream = io.BytesIO((folder / "x.npy").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert run.main([artifact, "--function", "twice", "--input", "x=-", "--benchmark"]) == 0
    assert "us a call at best" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--function says which"),
        (["--function", "other"], "'other'; the artifact has the functions"),
        (["--function", "twice", "--input", "z=1"], "expected NAME=VALUE with a name of x"),
        (["--function", "twice", "--input", "x=1+"], "neither a number nor lists"),
        (["--function", "twice", "--input", "x=4xf7=1"], "the type f7"),
        (["--function", "twice", "--input", "x=@/nowhere.npy"], "/nowhere.npy"),
        (["--function", "twice"], "misses the arguments x"),
        (["--function", "twice", "--input", "x=1", "--target", "x86-64-v9"], "no code for target"),
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


@pytest.mark.parametrize("arguments", [["--list"], ["--function", "twice", "--input", "x=[1]"]])
def test_a_reader_may_end_before(folder, arguments):
    """As `head` does."""
    reading, writing = os.pipe()
    os.close(reading)
    given = [f"{folder}/model.gcx", *arguments]
    program = f"import sys; from graphc_runtime.run import main; sys.exit(main({given}))"
    done = subprocess.run([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


TRAINED = """
import numpy as np
import graphc
import graphc.tensor as pt
from pathlib import Path
with Path(__file__).with_suffix(".runs").open("a") as runs:
    print(__name__, file=runs)
x, y = pt.dvector("x"), pt.dscalar("y")
w = graphc.shared(np.zeros(2), name="w")
out = pt.dot(w, x)
predict = graphc.function([x], out)
def train():
    return graphc.function([x, y], out, updates={w: w + 0.5 * (y - out) * x})
"""
SECOND = """
import model, graphc, graphc.tensor as pt
w = graphc.shared(3.0, name="w")
both = graphc.function([], [w * 2, model.w * 2], name="both")
"""


@pytest.mark.parametrize("first", ["predict", "train", "both"])
def test_functions_of_one_file_have_the_same_states(tmp_path, first, capsys):
    """Also where another file imports it, in any order; states of two files are two, though of one name."""
    (tmp_path / "model.py").write_text(TRAINED)
    (tmp_path / "other.py").write_text(SECOND)
    named = {"predict": "model.py:predict", "train": "model.py:train", "both": "other.py:both"}
    given = [f"{tmp_path}/{named[name]}" for name in sorted(named, key=lambda name: name != first)]
    assert compile.main([*given, "-o", f"{tmp_path}/m.gcx"]) == 0, capsys.readouterr().err
    assert (tmp_path / "model.runs").read_text() == "model\n"
    assert "model" not in sys.modules
    program = f"""
import numpy as np, graphc_runtime
m = graphc_runtime.load("{tmp_path}/m.gcx")
x = np.array([1.0, 2.0])
print(*sorted(m.state), m.predict(x), m.train(x, 10.0), m.predict(x), *map(np.ravel, m.both()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == "w w_2 0.0 0.0 25.0 [6.] [10. 20.]".split()


def test_a_model_in_c_has_one_state_for_both(tmp_path):
    (tmp_path / "model.py").write_text(TRAINED)
    given = [f"{tmp_path}/model.py:{name}" for name in ("predict", "train")]
    assert compile.main([*given, "--emit", "header", "-o", f"{tmp_path}/model.h"]) == 0
    states = re.findall(r"(\w+): float64\[\?\] \(state\)", (tmp_path / "model.h").read_text())
    assert set(states) == {"w"} and len(states) >= 2
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler (cc)")
    assert compile.main([*given, "--emit", "shared", "-o", f"{tmp_path}/libmodel.so"]) == 0
    (tmp_path / "main.c").write_text(IN_C)
    flags = [f"-I{graphc_runtime.include_dir()}", "-Wall", "-Wextra", "-Werror", f"-L{tmp_path}", "-lmodel"]
    command = ["cc", "main.c", *flags, f"-Wl,-rpath,{tmp_path}", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "25"]


IN_C = r"""
#include "libmodel.h"

int main(void) {
  double w[2], next[2], x[2] = {1, 2}, y = 10, out = -1;
  int64_t two[1] = {2};
  static char memory[1 << 12];
  graphc_call call = {memory, sizeof memory, NULL};
  graphc_tensor xs = {x, two, NULL, GRAPHC_FLOAT64, 1}, ws = {w, two, NULL, GRAPHC_FLOAT64, 1};
  graphc_tensor outs = {&out, NULL, NULL, GRAPHC_FLOAT64, 0};
  graphc_tensor few[2] = {xs, ws}, more[3] = {xs, {&y, NULL, NULL, GRAPHC_FLOAT64, 0}, ws};
  graphc_tensor both[2] = {outs, {next, two, NULL, GRAPHC_FLOAT64, 1}};
  memcpy(w, predict_info.inputs[1].initial, sizeof w);
  if (predict(&call, few, &outs, NULL)) return 1;
  printf("%g\n", out);
  if (train(&call, more, both, NULL)) return 2;
  memcpy(w, next, sizeof w);
  if (predict(&call, few, &outs, NULL)) return 3;
  printf("%g\n", out);
  return 0;
}
"""

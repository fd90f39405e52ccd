# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in C and C++ call exported functions."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.artifacts.emit import emit

CC, CXX = shutil.which("cc"), shutil.which("c++")
needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler (cc)")

PROGRAM = r"""
#include "family.h"
#include <stdlib.h>

static int64_t live = 0, calls = 0;
static void *take(void *self, int64_t bytes, int64_t alignment) {
  (void)self; calls++; live++;
  return aligned_alloc((size_t)alignment, (size_t)((bytes + alignment - 1) / alignment * alignment));
}
static void give(void *self, void *memory) { (void)self; live--; free(memory); }

static int fail(const char *what, const graphc_error *error) {
  char text[300];
  graphc_describe(error, text, sizeof text);
  printf("%s: %d %s\n", what, (int)error->code, text);
  return 1;
}

int main(void) {
  double x[7], bias[2], value, slope[7], next[2];
  int64_t n = 3, x_shape[1] = {7}, two[1] = {2}, slope_shape[1] = {0};
  const graphc_allocator allocator = {NULL, take, give};
  graphc_call call = {NULL, 0, &allocator};
  graphc_error error = {0, 0, 0, 0, 0, 0, NULL};
  for (int i = 0; i < 7; i++) x[i] = 0.1 + (0.9 - 0.1) / 6 * i;
  memcpy(bias, gradient_info.inputs[2].initial, sizeof bias);

  graphc_tensor inputs[3] = {{x, x_shape, NULL, GRAPHC_FLOAT64, 1},
                             {&n, NULL, NULL, GRAPHC_INT64, 0},
                             {bias, two, NULL, GRAPHC_FLOAT64, 1}};
  graphc_tensor outputs[2] = {{&value, NULL, NULL, GRAPHC_FLOAT64, 0},
                              {slope, slope_shape, NULL, GRAPHC_FLOAT64, 1}};
  if (gradient_info.abi_version != GRAPHC_ABI_VERSION || gradient_n_inputs != 3) return 2;
  if (gradient_shapes(inputs, outputs, &error)) return fail("shapes", &error);
  printf("shape %lld\n", (long long)slope_shape[0]);
  if (gradient(&call, inputs, outputs, &error)) return fail("gradient", &error);
  printf("value %.17g\n", value);
  for (int i = 0; i < 7; i++) printf("slope %.17g\n", slope[i]);

  graphc_tensor stepped[2] = {{&value, NULL, NULL, GRAPHC_FLOAT64, 0}, {next, two, NULL, GRAPHC_FLOAT64, 1}};
  for (int i = 0; i < 2; i++) {
    if (step(&call, inputs, stepped, &error)) return fail("step", &error);
    printf("step %.17g\n", value);
    memcpy(bias, next, sizeof bias);
  }
  printf("next %.17g %.17g updates %d\n", bias[0], bias[1], (int)step_info.outputs[1].updates);

  /* Without an allocator the workspace has to be enough. */
  int64_t bytes = gradient_workspace(inputs, &error);
  printf("workspace %lld\n", (long long)bytes);
  if (bytes >= 0) {
    char *memory = (char *)malloc((size_t)bytes + 1);
    graphc_call alone = {memory + 1, bytes, NULL};
    int64_t before = calls;
    if (gradient(&alone, inputs, outputs, NULL)) return 3;
    if (calls != before) return 4;
    free(memory);
  }

  /* Errors. */
  x_shape[0] = 2; n = 2; slope_shape[0] = 2;
  inputs[1].dtype = GRAPHC_INT64;
  fail("check", (gradient(&call, inputs, outputs, &error), &error));
  x_shape[0] = 7; n = 3; slope_shape[0] = 6;
  fail("shape", (gradient(&call, inputs, outputs, &error), &error));
  slope_shape[0] = 7; inputs[0].dtype = GRAPHC_FLOAT32;
  fail("dtype", (gradient(&call, inputs, outputs, &error), &error));
  inputs[0].dtype = GRAPHC_FLOAT64; inputs[0].rank = 2;
  fail("rank", (gradient(&call, inputs, outputs, &error), &error));
  int64_t apart[1] = {16};
  inputs[0].rank = 1; inputs[0].strides = apart;
  fail("strides", (gradient(&call, inputs, outputs, &error), &error));
  inputs[0].strides = NULL; inputs[0].data = (char *)x + 1;
  fail("alignment", (gradient(&call, inputs, outputs, &error), &error));
  inputs[0].data = NULL;
  fail("null", (gradient(&call, inputs, outputs, &error), &error));
  printf("live %lld\n", (long long)live);
  return 0;
}
"""


@pytest.fixture(scope="module")
def built(family, tmp_path_factory):
    """A folder with the program, object, library and header."""
    if CC is None:
        pytest.skip("there is no C compiler (cc)")
    folder = tmp_path_factory.mktemp("c")
    functions, _ = family
    emit(functions, folder / "family.o", "object")
    emit(functions, folder / "libfamily.so", "shared")
    for name in ("main.c", "main.cpp"):
        text = PROGRAM
        (folder / name).write_text(text)
    return folder


def build(folder, compiler, source, *more):
    include = [f"-I{folder}", f"-I{graphc_runtime.include_dir()}"]
    program = folder / f"{source}.{len(more)}.out"
    flags = ["-Wall", "-Wextra", "-Werror", "-O1"]
    command = [compiler, *flags, *include, str(folder / source), *map(str, more), "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def check(family, output):
    """Compares what the program printed with Python."""
    functions, bias = family
    x, n = 0.1 + (0.9 - 0.1) / 6 * np.arange(7), 3
    lines = output.splitlines()
    expected = functions["gradient"](x, n)
    assert lines[0] == "shape 7"
    numbers = [float(line.split()[1]) for line in lines[1:9]]
    np.testing.assert_allclose(numbers, [expected["value"], *expected["gradient"]], rtol=1e-14)
    kept = bias.get_value()
    try:
        steps = [functions["step"](x, n)[0] for _ in range(2)]
        new = bias.get_value()
    finally:
        bias.set_value(kept)
    np.testing.assert_allclose([float(line.split()[1]) for line in lines[9:11]], steps, rtol=1e-14)
    found = lines[11].split()
    np.testing.assert_allclose([float(found[1]), float(found[2])], new, rtol=1e-14)
    assert found[4] == "2" and int(lines[12].split()[1]) >= -1
    errors = dict(line.split(": ", 1) for line in lines[13:-1])
    codes = {name: int(text.split()[0]) for name, text in errors.items()}
    assert codes == {
        "check": 8,
        "shape": 4,
        "dtype": 2,
        "rank": 3,
        "strides": 5,
        "alignment": 6,
        "null": 1,
    }
    assert "given 6, expected 7" in errors["shape"] and "{" not in errors["check"]
    assert lines[-1] == "live 0"


@needs_cc
def test_c_with_an_object(family, built):
    program = build(built, CC, "main.c", built / "family.o")
    check(family, subprocess.run([program], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(CXX is None, reason="there is no C++ compiler (c++)")
def test_cpp_with_a_shared_library(family, built):
    program = build(built, CXX, "main.cpp", f"-L{built}", "-lfamily", f"-Wl,-rpath,{built}")
    check(family, subprocess.run([program], capture_output=True, text=True, check=True).stdout)


@needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm")
def test_only_the_interface_is_exported(family, built):
    functions, _ = family
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", built / "libfamily.so"], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names == {f"{name}{more}" for name in functions for more in ("", "_shapes", "_workspace", "_info")}
    listed = subprocess.run(["nm", "-g", built / "family.o"], capture_output=True, text=True)
    undefined = {line.split()[-1] for line in listed.stdout.splitlines() if " U " in line}
    assert not undefined & {"malloc", "free", "realloc"} and not any("graphc" in name for name in undefined)


def test_objects_for_other_machines(family, tmp_path):
    functions, _ = family
    emit(functions, tmp_path / "arm.o", "object", "aarch64")
    data = (tmp_path / "arm.o").read_bytes()
    assert data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == 183
    with pytest.raises(graphc.errors.CompileError, match="needs a linker"):
        emit(functions, tmp_path / "arm.so", "shared", "aarch64")


def test_texts(family, tmp_path):
    functions, _ = family
    for kind, wanted in [
        ("header", "gradient_info"),
        ("llvm", " i32 @gradient("),
        ("mlir", "func.func"),
        ("asm", "gradient_info:"),
    ]:
        emit(functions, tmp_path / kind, kind)
        assert wanted in (tmp_path / kind).read_text()
    assert re.search(r"2  bias: float64\[\?\] \(state\)", (tmp_path / "header").read_text())


def test_freestanding_refuses_libraries(tmp_path):
    x, a = pt.dvector("x"), pt.dmatrix("a")
    emit(graphc.function([x], pt.tanh(x).sum(), name="f"), tmp_path / "f.o", "object", freestanding=True)
    for graph in (pt.gammaln(x), pt.linalg.cholesky(a)):
        f = graphc.function([v for v in (x, a) if v in graphc.ancestors([graph])], graph, name="f")
        with pytest.raises(graphc.errors.CompileError, match=r"freestanding|does not have"):
            emit(f, tmp_path / "g.o", "object", freestanding=True)

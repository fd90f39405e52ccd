# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in C and C++ call exported functions."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from ways_artifacts import call

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.artifacts.emit import emit
from graphc_runtime.manifest import ArraySpec
from graphc_runtime.npyrandom import archive_path

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
  if (gradient_shapes(NULL, inputs, outputs, &error)) return fail("shapes", &error);
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


RUST = r"""
use std::os::raw::c_void;
#[repr(C)]
struct Tensor { data: *mut c_void, shape: *mut i64, strides: *const i64, dtype: i32, rank: i32 }
#[repr(C)]
struct Error { numbers: [i32; 4], given: i64, expected: i64, message: *const u8 }
#[link(name = "family")]
extern "C" {
    fn model(call: *const c_void, inputs: *const Tensor, outputs: *const Tensor, error: *mut Error) -> i32;
}
fn tensor<T>(data: *mut T, shape: *mut i64, dtype: i32, rank: i32) -> Tensor {
    Tensor { data: data as *mut c_void, shape, strides: std::ptr::null(), dtype, rank }
}
fn main() {
    let mut x: Vec<f64> = (0..7).map(|i| 0.1 + (0.9 - 0.1) / 6.0 * i as f64).collect();
    let (mut n, mut bias, mut value) = (3i64, [0.5f64, 0.25], 0.0f64);
    let (mut x_shape, mut two) = ([7i64], [2i64]);
    let none = std::ptr::null_mut();
    let inputs = [
        tensor(x.as_mut_ptr(), x_shape.as_mut_ptr(), 11, 1),
        tensor(&mut n, none, 4, 0),
        tensor(bias.as_mut_ptr(), two.as_mut_ptr(), 11, 1),
    ];
    let outputs = [tensor(&mut value, none, 11, 0)];
    #[repr(C)]
    struct Call { workspace: *mut u8, bytes: i64, allocator: *const c_void }
    let mut memory = vec![0u8; 1 << 16];
    let call = Call { workspace: memory.as_mut_ptr(), bytes: 1 << 16, allocator: std::ptr::null() };
    let mut error: Error = unsafe { std::mem::zeroed() };
    let code = unsafe {
        model(&call as *const Call as *const c_void, inputs.as_ptr(), outputs.as_ptr(), &mut error)
    };
    println!("{} {:?}", code, value);
}
"""


@needs_cc
@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no Rust compiler (rustc)")
def test_rust_with_a_shared_library(family, built):
    functions, _ = family
    (built / "main.rs").write_text(RUST)
    program = built / "main.rust"
    command = ["rustc", "-A", "warnings", "-L", built, "-C", f"link-arg=-Wl,-rpath,{built}", "-o", program]
    done = subprocess.run([*command, built / "main.rs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code, value = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    assert code == "0"
    x = 0.1 + (0.9 - 0.1) / 6 * np.arange(7)
    np.testing.assert_allclose(float(value), functions["model"](x, 3), rtol=1e-14)


DRAWS = r"""
#include "draws.h"

int main(void) {
  double normal[40], gamma[40], single = 0;
  float plain[40];
  int64_t count[40], sizes[5][1] = {{40}, {40}, {40}, {40}, {6}};
  uint64_t state[6], next[6];
  static char memory[1 << 16];
  graphc_call call = {memory, sizeof memory, NULL};
  graphc_error error;
  memcpy(state, draws_info.inputs[0].initial, sizeof state);
  graphc_tensor inputs[1] = {{state, sizes[4], NULL, GRAPHC_UINT64, 1}};
  graphc_tensor outputs[5] = {{normal, sizes[0], NULL, GRAPHC_FLOAT64, 1},
                              {gamma, sizes[1], NULL, GRAPHC_FLOAT64, 1},
                              {plain, sizes[2], NULL, GRAPHC_FLOAT32, 1},
                              {count, sizes[3], NULL, GRAPHC_INT64, 1},
                              {next, sizes[4], NULL, GRAPHC_UINT64, 1}};
  for (int round = 0; round < 50; round++) {
    if (draws(&call, inputs, outputs, &error)) return 1;
    for (int i = 0; i < 40; i++) single += normal[i] + gamma[i] + (double)plain[i] + (double)count[i];
    memcpy(state, next, sizeof state);
  }
  printf("%.17g %.17g %.17g %.9g %d\n", single, normal[39], gamma[39], (double)plain[39], (int)count[39]);
  return 0;
}
"""


@needs_cc
@pytest.mark.skipif(not archive_path().exists(), reason="this NumPy has no library of draws")
def test_draws_in_c(tmp_path):
    rng = graphc.shared(np.random.default_rng(11), name="rng")
    first, normal = rng.normal(1.0, 2.0, size=40)
    second, gamma = first.standard_gamma(2.5, size=40)
    third, plain = second.standard_normal(size=40, dtype="float32")
    last, count = third.poisson(3.0, size=40)
    f = graphc.function([], [normal, gamma, plain, count], updates={rng: last}, name="draws")
    needs = emit(f, tmp_path / "draws.o", "object")
    assert "NumPy's random draws (libnpyrandom.a)" in needs
    (tmp_path / "draws.c").write_text(DRAWS)
    program = build(tmp_path, CC, "draws.c", tmp_path / "draws.o", archive_path())
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    total = 0.0
    for _ in range(50):
        results = f()
        for values in zip(*results, strict=True):
            total += values[0] + values[1] + float(values[2]) + values[3]
    expected = [f"{total:.17g}", *(f"{results[i][39]:.17g}" for i in (0, 1)), f"{results[2][39]:.9g}"]
    assert found[1:] == [*expected[1:], str(results[3][39])]
    np.testing.assert_allclose(float(found[0]), total, rtol=1e-12)


ARM_CC = shutil.which("aarch64-linux-gnu-gcc")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


@pytest.mark.skipif(not ARM_CC or not QEMU, reason="needs qemu-user and aarch64-linux-gnu-gcc")
def test_aarch64_under_qemu(family, built):
    functions, _ = family
    emit(functions, built / "arm.o", "object", "aarch64")
    program = build(built, ARM_CC, "main.c", built / "arm.o", "-static")
    check(family, subprocess.run([QEMU, program], capture_output=True, text=True, check=True).stdout)


class Library:
    """A shared library by addresses of its functions."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))

    def address(self, symbol):
        return ctypes.cast(self.library[symbol], ctypes.c_void_p).value


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_freestanding_products(tmp_path, dtype):
    a, b = pt.matrix("a", dtype=dtype), pt.matrix("b", dtype=dtype)
    graphs = [pt.dot(a, b), pt.dot(a.T, b), pt.dot(a, b.T), pt.dot(a.T, b.T), pt.exp(pt.dot(a, b) / 100) @ b]
    f = graphc.function([a, b], graphs, name="products")
    emit(f, tmp_path / "products.so", "shared", freestanding=True)
    rng, spec = np.random.default_rng(0), ArraySpec(dtype, (None, None))
    for n in (3, 70):
        values = [rng.normal(size=(n, n)).astype(dtype) for _ in range(2)]
        outputs = call(Library(tmp_path / "products.so"), "products", values, [spec] * len(graphs))
        for found, expected in zip(outputs, f(*values), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-4)


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_freestanding_factors(tmp_path, dtype):
    a, p, b = (pt.matrix(name, dtype=dtype) for name in "apb")
    lower = pt.linalg.cholesky(a)
    graphs = [lower, pt.linalg.solve(p.T, b), pt.linalg.inv(p)]
    if dtype == "float64":
        graphs += [
            pt.linalg.solve_triangular(a, b, lower=False),
            pt.linalg.solve_triangular(a, b, lower=True, trans=1, unit_diagonal=True),
            pt.linalg.cholesky(a, lower=False),
            graphc.grad((lower * b[0, 0]).sum(), a),
            pt.linalg.solve(p, b),
            pt.linalg.det(p / 4)[None, None],
        ]
    f = graphc.function([a, p, b], graphs, name="factors")
    assert emit(f, tmp_path / "factors.so", "shared", freestanding=True) == ()
    rng, spec, library = np.random.default_rng(0), ArraySpec(dtype, (None, None)), tmp_path / "factors.so"
    for n in (25, 60):
        given = rng.normal(size=(n, n)) / np.sqrt(n)
        positive = given @ given.T + 3 * np.eye(n)
        values = [positive / 4, positive[rng.permutation(n)], rng.normal(size=(n, 7))]
        values = [value.astype(dtype) for value in values]
        found = call(Library(library), "factors", values, [spec] * len(graphs))
        for x, y in zip(found, f(*values), strict=True):
            scale = max(1.0, abs(y).max())
            np.testing.assert_allclose(x / scale, y / scale, atol=2e-4 if dtype == "float32" else 1e-12)
    with pytest.raises(ValueError, match="not positive definite"):
        call(Library(library), "factors", [-values[0], *values[1:]], [spec] * len(graphs))


@pytest.fixture(scope="module")
def small():
    x = pt.dvector("x")
    scale = graphc.shared(np.ones(2), name="scale")
    return {"small": graphc.function([x], x * 2 + scale.sum(), name="small")}


def test_objects_for_other_machines(small, tmp_path):
    emit(small, tmp_path / "arm.o", "object", "aarch64")
    data = (tmp_path / "arm.o").read_bytes()
    assert data[:4] == b"\x7fELF" and int.from_bytes(data[18:20], "little") == 183
    with pytest.raises(graphc.errors.CompileError, match="needs a linker"):
        emit(small, tmp_path / "arm.so", "shared", "aarch64")


def test_texts(small, tmp_path):
    for kind, wanted in [
        ("header", "small_info"),
        ("llvm", " i32 @small("),
        ("mlir", "func.func"),
        ("asm", "small_info:"),
    ]:
        emit(small, tmp_path / kind, kind)
        assert wanted in (tmp_path / kind).read_text()
    assert re.search(r"1  scale: float64\[\?\] \(state\)", (tmp_path / "header").read_text())


def test_freestanding_refuses_libraries(tmp_path):
    x, a = pt.dvector("x"), pt.dmatrix("a")
    emit(graphc.function([x], pt.tanh(x).sum(), name="f"), tmp_path / "f.o", "object", freestanding=True)
    for graph in (pt.gammaln(x), pt.linalg.eigh(a)[0]):
        f = graphc.function([v for v in (x, a) if v in graphc.ancestors([graph])], graph, name="f")
        with pytest.raises(graphc.errors.CompileError, match=r"freestanding|does not have"):
            emit(f, tmp_path / "g.o", "object", freestanding=True)

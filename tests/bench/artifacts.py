# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts beside JAX and torch: size, load time, process start to first result, calls from Python and C.

`python tests/bench/artifacts.py [--peers-python PYTHON]`. Two models with their gradients: a hierarchical
regression of the size of the radon study (919 rows, 85 groups), and a recurrent network with 64 hidden units
and 32 steps. Times are the best of rounds; calls from C are timed by a program in C, the kernel of this
process through its address.
The peers' files are made and read by `artifact_peers.py` with their own Python.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from artifact_peers import WAYS, best

import graphc
import graphc.tensor as pt
import graphc_runtime
from graphc.artifacts.emit import emit

# Goals: seconds to load; how much longer a call from C may take than the kernel of this process.
LOAD, SLOWER = 5e-3, 1.02
TURNS = 5
# The most that a process may take to its first result, of what it takes with each peer.
SHARE = {"jax.export": 1 / 5, "jax compiled": 1 / 5, "AOTInductor": 1 / 10}

_TIMER = r"""
#define _POSIX_C_SOURCE 199309L
#include "model.h"
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
  int n_in = model_n_inputs, n_out = model_n_outputs, count = atoi(argv[argc - 1]);
  graphc_tensor in[16], out[16];
  static int64_t shapes[32][8];
  FILE *file = fopen(argv[1], "rb");
  for (int i = 0; i < n_in; i++) {
    const graphc_array *a = &model_info.inputs[i];
    int64_t bytes = 0;
    if (fread(shapes[i], 8, (size_t)a->rank, file) != (size_t)a->rank) return 1;
    if (fread(&bytes, 8, 1, file) != 1) return 1;
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64 + 64);
    in[i] = (graphc_tensor){memory, shapes[i], NULL, a->dtype, a->rank};
    if (fread(in[i].data, 1, (size_t)bytes, file) != (size_t)bytes) return 1;
  }
  for (int i = 0; i < n_out; i++) out[i].shape = shapes[16 + i], out[i].strides = NULL;
  graphc_error error;
  if (model_shapes(NULL, in, out, &error)) return 2;
  for (int i = 0; i < n_out; i++) {
    size_t elements = 1;
    for (int axis = 0; axis < out[i].rank; axis++) elements *= (size_t)out[i].shape[axis];
    out[i].data = aligned_alloc(64, elements * 8 / 64 * 64 + 64);
  }
  int64_t bytes = model_workspace(in, &error);
  bytes = bytes < 0 ? 1 << 26 : bytes;
  char *memory = malloc((size_t)bytes + 8192);
  double best = 1e9;
  for (int round = 0; round < 64; round++) {
    /* Where the workspace lies relative to the arrays can double the time of a copy of columns. */
    graphc_call call = {memory + round % 8 * 1088, bytes, NULL};
    double start = now();
    for (int i = 0; i < count; i++)
      if (model(&call, in, out, &error)) return 3;
    double each = (now() - start) / count;
    if (each < best) best = each;
  }
  printf("%.9g %.17g\n", best, *(double *)out[0].data);
  return 0;
}
"""


class Model(NamedTuple):
    """A function, values of its inputs, and the data that are in it."""

    function: Any
    values: list[np.ndarray]
    data: dict[str, np.ndarray]


class Line(NamedTuple):
    """What is measured of a file: bytes, and seconds."""

    size: int
    load: float
    first: float
    call: float
    from_c: float | None = None


def hierarchical() -> Model:
    """Negative log posterior of a regression with varying intercepts, and its gradient."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, 85, 919))
    floor, level = rng.integers(0, 2, 919).astype(float), rng.normal(1.2, 0.8, 919)
    q = pt.dvector("q")
    mean, slope, spread, noise, z = q[0], q[1], pt.exp(q[2]), pt.exp(q[3]), q[4:]
    at = (mean + spread * z)[pt.constant(group)] + slope * pt.constant(floor)
    apart = (pt.constant(level) - at) / noise
    density = 0.5 * (apart**2).sum() + 919 * q[3] + 0.5 * (z**2).sum() + 0.005 * (mean**2 + slope**2)
    density = density + 0.5 * spread**2 - q[2] + 0.02 * noise**2 - q[3]
    f = graphc.function([q], [density, graphc.grad(density, q)], name="model")
    return Model(f, [np.full(89, 0.1)], {"group": group, "floor": floor, "level": level})


def recurrent() -> Model:
    """The loss of a recurrent network, and the gradient of its matrices."""
    rng, hidden = np.random.default_rng(0), 64
    x, w, u = pt.dmatrix("x"), pt.dmatrix("w"), pt.dmatrix("u")
    h = graphc.scan(
        lambda row, h: pt.tanh(row + pt.dot(h, w)),
        sequences=[pt.dot(x, u)],
        outputs_info=[pt.zeros((hidden,))],
        return_updates=False,
    )
    loss = (h**2).mean()
    values = [rng.normal(size=(32, 8)), 0.1 * rng.normal(size=(hidden, hidden)), rng.normal(size=(8, hidden))]
    return Model(graphc.function([x, w, u], [loss, *graphc.grad(loss, [w, u])], name="model"), values, {})


def kernel_time(model: Model) -> float:
    """Seconds of the kernel of this process, called like the exported one: by a loop of machine code."""
    from graphc.backends.cpu.object import compile_to_object
    from graphc_runtime import symbols
    from graphc_runtime.interrupts import CONTEXT_WORDS
    from graphc_runtime.loader import load_object

    text = f"""
define void @repeat(ptr %run, ptr %release, ptr %data, ptr %dims, i64 %count) {{
entry:
  %ctx = alloca [{CONTEXT_WORDS} x i64], align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  store [{CONTEXT_WORDS} x i64] zeroinitializer, ptr %ctx
  %status = call i64 %run(ptr %ctx, ptr %data, ptr %dims)
  call void %release(ptr %ctx)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  ret void
}}
"""
    loop = load_object(compile_to_object(text, exports=["repeat"]), symbols.resolve)
    executable, cells = model.function.machine_code()
    arrays = executable.arguments(model.values, [cell[0] for cell in cells])
    arrays += [np.empty_like(result) for result in model.function(*model.values)]
    data = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    sizes = [size for array in arrays for size in array.shape]
    dims = (ctypes.c_int64 * len(sizes))(*sizes)
    repeat = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(loop.address("repeat"))
    kernel, times = executable.kernel, []
    count = max(1, int(0.005 / best(lambda: model.function(*model.values), 3)))
    for _ in range(30):
        start = time.perf_counter()
        repeat(kernel.run, kernel.release, ctypes.addressof(data), ctypes.addressof(dims), count)
        times.append((time.perf_counter() - start) / count)
    return min(times)


def c_program(model: Model, folder: Path) -> Callable[[], float] | None:
    """What measures the seconds of a call from C; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    emit(model.function, folder / "model.o", "object")
    (folder / "timer.c").write_text(_TIMER)
    program = [
        f"-I{folder}",
        f"-I{graphc_runtime.include_dir()}",
        str(folder / "timer.c"),
        str(folder / "model.o"),
    ]
    program += blas(folder)
    subprocess.run([compiler, "-O2", *program, "-lm", "-o", str(folder / "timer")], check=True)
    parts = []
    for value in model.values:
        parts += [
            np.array(value.shape, np.int64).tobytes(),
            np.int64(value.nbytes).tobytes(),
            value.tobytes(),
        ]
    (folder / "inputs").write_bytes(b"".join(parts))
    count = max(1, int(0.005 / best(lambda: model.function(*model.values), 3)))
    command = [str(folder / "timer"), str(folder / "inputs"), str(count)]

    def measure() -> float:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, value = map(float, done.stdout.split())
        np.testing.assert_allclose(value, model.function(*model.values)[0], rtol=1e-12)
        return seconds

    return measure


def blas(folder: Path) -> list[str]:
    """Arguments of the C compiler for SciPy's BLAS, which calls from Python have too."""
    import scipy

    library = next(Path(scipy.__file__).parents[1].glob("scipy.libs/libscipy_openblas-*.so"))
    names = ", ".join(f"a{i}" for i in range(13))
    parameters = ", ".join(f"void *a{i}" for i in range(13))
    (folder / "blas.c").write_text(
        f"void scipy_dgemm_({parameters});\nvoid dgemm_({parameters}) {{ scipy_dgemm_({names}); }}\n"
    )
    return [str(folder / "blas.c"), str(library), f"-Wl,-rpath,{library.parent}"]


def first_result(path: Path, model: Model) -> float:
    """Seconds from the start of a process to the first result of the artifact."""
    np.savez(path.with_suffix(".npz"), *model.values)
    program = (
        "import sys, numpy as np, graphc_runtime\n"
        "values = np.load(sys.argv[2]).values()\n"
        "graphc_runtime.load(sys.argv[1])['model'](*values)\n"
    )
    command = [sys.executable, "-c", program, str(path), str(path.with_suffix(".npz"))]
    subprocess.run(command, check=True)
    return best(lambda: subprocess.run(command, check=True), 7)


def loading(path: Path) -> float:
    """Seconds to load the artifact and its function."""
    return best(lambda: graphc_runtime.load(path)["model"])


def own(model: Model, folder: Path) -> tuple[Line, float, float]:
    """The line of graphc, and seconds of the kernel and of the function of this process."""
    path = graphc.export(model.function, folder / "model.gcx")
    loaded, outs = graphc_runtime.load(path)["model"], model.function(*model.values)
    # In turns: the machine may be slower for a while.
    program, kernels, calls = c_program(model, folder), [], []
    for _ in range(TURNS):
        kernels.append(kernel_time(model))
        calls += [] if program is None else [program()]
    line = Line(
        path.stat().st_size,
        loading(path),
        first_result(path, model),
        best(lambda: loaded(*model.values, out=outs)),
        min(calls, default=None),
    )
    return line, min(kernels), best(lambda: model.function(*model.values, out=outs))


def peers(python: str, models: dict[str, Model], folder: Path) -> dict[tuple[str, str], Line]:
    """Lines of JAX and torch by model and way."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    script = [python, str(Path(__file__).with_name("artifact_peers.py"))]

    def run(*args: str) -> str:
        done = subprocess.run(
            [*script, *args], env=environment, check=True, capture_output=True, text=True, cwd=folder
        )
        return done.stdout

    for name, model in models.items():
        inputs = {f"input_{i}": value for i, value in enumerate(model.values)}
        np.savez(folder / f"{name}.npz", **inputs, **model.data)  # type: ignore[arg-type]
    run("make", str(folder))
    found = {}
    for name, model in models.items():
        for way, suffix in WAYS.items():
            args = (str(folder), way, name)
            load, call, value = map(float, run("time", *args).split()[-3:])
            np.testing.assert_allclose(value, model.function(*model.values)[0], rtol=1e-10)
            start = best(lambda args=args: run("first", *args), 5)  # type: ignore[misc]
            found[name, way] = Line((folder / f"{name}.{suffix}").stat().st_size, load, start, call)
    return found


def row(title: str, line: Line) -> str:
    """A line of the table."""
    from_c = "" if line.from_c is None else f"{line.from_c * 1e6:.1f} us"
    return (
        f"| {title} | {line.size / 1e3:.0f} kB | {line.load * 1e3:.1f} ms | {line.first * 1e3:.0f} ms "
        f"| {line.call * 1e6:.1f} us | {from_c} |"
    )


def main() -> int:
    """Prints a table of all models; the exit status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers-python", help="a Python that has JAX and torch")
    python = parser.parse_args().peers_python
    models = {"hierarchical": hierarchical(), "recurrent": recurrent()}
    missed = []
    with tempfile.TemporaryDirectory() as text:
        others = peers(python, models, Path(text)) if python else {}
        print("| model, file | size | load | process start to first result | call from Python | from C |")
        print("|---|---|---|---|---|---|")
        for name, model in models.items():
            line, kernel, jit = own(model, Path(text))
            print(row(f"{name}: graphc", line))
            print(f"| {name}: in this process | | | | {jit * 1e6:.1f} us | {kernel * 1e6:.1f} us |")
            missed += [f"{name} loads in {line.load * 1e3:.1f} ms"] * (line.load > LOAD)
            if line.from_c is not None and line.from_c > SLOWER * kernel:
                missed.append(f"{name} from C takes {line.from_c / kernel:.3f} of the kernel here")
            for way in WAYS if others else ():
                other = others[name, way]
                print(row(f"{name}: {way}", other))
                if line.first > SHARE[way] * other.first:
                    missed.append(f"{name}: first result after {line.first / other.first:.2f} of {way}")
    print("\n".join(missed) or "no goal missed")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

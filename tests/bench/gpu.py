# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times functions on a CUDA device, next to PyTorch, CuPy and JAX.

    python tests/bench/gpu.py build FILE     where graphc is installed: compiles all lines into FILE
    python tests/bench/gpu.py run FILE       where the device is: needs NumPy and the driver, no compiler
    python tests/bench/gpu.py simulate FILE  checks the small sizes without a device; needs graphc
    python tests/bench/gpu.py host FILE      times what calls cost in Python, without a device or its driver

`run` prints a table and writes it, with date and device, to docs/gpu-figures.md (`--page PATH` for another
place). Peers that are not installed have an empty column.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(_ROOT / "runtime")]

from gpu_lines import LINES, Line  # noqa: E402

PEERS = ("torch", "cupy", "jax")
_REPEATS, _WARM = 20, 5


def build(path: Path) -> None:
    """Compiles the lines; what has no kernel is left out, and named."""
    graphc, pt = importlib.import_module("graphc"), importlib.import_module("graphc.tensor")
    functions = {}
    for line in LINES:
        inputs = [
            pt.tensor(f"x{i}", dtype=dtype, shape=(None,) * ndim)
            for i, (dtype, ndim) in enumerate(line.dtypes)
        ]
        function = graphc.function(inputs, line.graph(pt, *inputs), mode="fast_run")
        try:
            graphc.export({line.name: function}, path, targets=["cuda"])
        except graphc.errors.CompileError as error:
            print(f"{line.name}: left out: {error}")
            continue
        functions[line.name] = function
    graphc.export(functions, path, targets=["cuda"], keep_ir=True)
    print(f"{path}: {', '.join(functions)}")


def errors(line: Line, function: Callable[..., Any], peer: Callable[..., Any] | None) -> tuple[float, float]:
    """Largest errors against float64, relative to the largest result: ours, and PyTorch's."""
    values = line.inputs(line.small, seed=1)
    exact = np.asarray(line.peer(np, *(value.astype(np.float64) for value in values)))
    scale = np.abs(exact).max() or 1.0
    ours = np.abs(np.asarray(function(*values)) - exact).max() / scale
    theirs = np.abs(peer(*values) - exact).max() / scale if peer is not None else np.nan
    return float(ours), float(theirs)


class Clock:
    """Microseconds of what is asked of a device, by its own clock, and of the host."""

    def __init__(self, driver: Any) -> None:
        self._driver, self._events = driver, [driver.new_event(timing=True) for _ in range(2)]

    def device(self, call: Callable[[], Any]) -> float:
        """Median time of a call on the device."""
        driver, (first, last) = self._driver, self._events
        for _ in range(_WARM):
            call()
        found = []
        for _ in range(_REPEATS):
            driver.record(first, driver.main_stream)
            call()
            driver.record(last, driver.main_stream)
            found.append(1000 * driver.elapsed(first, last))
        return statistics.median(found)

    def host(self, call: Callable[[], Any], wait: Callable[[], Any]) -> float:
        """Median time of a call until Python goes on, of 100 in a row."""
        found = []
        for _ in range(_REPEATS):
            wait()
            start = time.perf_counter()
            for _ in range(100):
                call()
            found.append(1e4 * (time.perf_counter() - start))
        return statistics.median(found)


def torch_call(line: Line) -> Callable[..., Any] | None:
    """The line with torch.compile, on arrays of the device."""
    torch = _found("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return torch.compile(functools.partial(line.peer, torch))


def peer_time(name: str, line: Line, values: list[np.ndarray]) -> float:
    """Microseconds of a peer; NaN where it is not installed."""
    module = _found(name)
    if module is None:
        return np.nan
    if name == "torch":
        call = torch_call(line)
        if call is None:
            return np.nan
        given = [module.from_numpy(value).cuda() for value in values]
        return _waited(lambda: call(*given), module.cuda.synchronize)
    if name == "cupy":
        given = [module.asarray(value) for value in values]
        return _waited(lambda: line.peer(module, *given), module.cuda.Device().synchronize)
    if module.default_backend() != "gpu":
        return np.nan
    call = module.jit(functools.partial(line.peer, module.numpy))
    given = [module.device_put(value) for value in values]
    return _waited(lambda: call(*given).block_until_ready(), lambda: None)


def _waited(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Median time of ten calls in a row until the device is done, for each."""
    for _ in range(_WARM):
        call()
    found = []
    for _ in range(_REPEATS):
        wait()
        start = time.perf_counter()
        for _ in range(10):
            call()
        wait()
        found.append(1e5 * (time.perf_counter() - start))
    return statistics.median(found)


def _found(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def copy_bandwidth(driver: Any, clock: Clock) -> float:
    """Bytes a microsecond that copies within the device read and write together."""
    nbytes = 1 << 30
    source, target = (driver.allocate(nbytes, driver.main_stream) for _ in range(2))
    spent = clock.device(lambda: driver.copy(target, source, nbytes, driver.main_stream))
    for address in (source, target):
        driver.free(address, driver.main_stream)
    return 2 * nbytes / spent


def through_torch(compiled: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A function of PyTorch, from arrays of the host to arrays of the host."""
    torch = importlib.import_module("torch")

    def call(*values: np.ndarray) -> np.ndarray:
        return compiled(*(torch.from_numpy(value).cuda() for value in values)).cpu().numpy()

    return call


def own_times(line: Line, function: Callable[..., Any], driver: Any) -> tuple[float, float]:
    """Microseconds of a call, on the device and of the host."""
    upload, clock = importlib.import_module("graphc_runtime.cuda.array").upload, Clock(driver)
    given = [upload(driver, value, driver.main_stream) for value in line.inputs(line.shapes)]

    def call() -> Any:
        return function(*given)

    return clock.device(call), clock.host(call, lambda: driver.synchronise(driver.main_stream))


def measure(line: Line, function: Callable[..., Any], driver: Any, bandwidth: float) -> list[str]:
    """The row of a line."""
    torch = torch_call(line)
    ours, theirs = errors(line, function, None if torch is None else through_torch(torch))
    spent, host = own_times(line, function, driver)
    moved = line.moved(*line.shapes)
    share = f"{moved / spent / bandwidth:.0%}" if moved else ""
    if line.goal:
        share += f" (goal {line.goal:.0%})"
    values = line.inputs(line.shapes)
    peers = [peer_time(name, line, values) for name in PEERS]
    times = ["" if np.isnan(peer) else f"{peer:,.1f}" for peer in peers]
    return [line.name, f"{spent:,.1f}", f"{host:,.1f}", share, *times, f"{ours:.1e}", f"{theirs:.1e}"]


HEAD = ("line", "us on the device", "us of the host", "of copies", *PEERS, "error", "PyTorch's error")


def run(path: Path, page: Path) -> None:
    """Measures what a file has."""
    load = importlib.import_module("graphc_runtime").load
    driver = importlib.import_module("graphc_runtime.cuda.cuda_driver").device()
    module = load(path, target="cuda")
    bandwidth = copy_bandwidth(driver, Clock(driver))
    rows = [measure(line, module[line.name], driver, bandwidth) for line in LINES if line.name in module]
    left = [line.name for line in LINES if line.name not in module]
    date = datetime.datetime.now(datetime.UTC).date()
    text = [
        "# Figures of a graphics processor",
        "",
        f"{driver.name} ({driver.arch}), {date}; copies within the device: {bandwidth / 1e6:.2f} TB/s.",
        "Medians of 20; peers are timed with ten calls in a row. This page is from `tests/bench/gpu.py run`.",
        "",
        *_table(rows),
        *(["", f"Not compiled for devices: {', '.join(left)}."] if left else []),
    ]
    print("\n".join(text))
    page.write_text("\n".join(text) + "\n", encoding="utf-8")


def _table(rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *rows)]


def simulate(path: Path) -> None:
    """Compares the small sizes with float64, with the interpreter of kernels instead of a device."""
    executable = importlib.import_module("graphc_runtime.cuda.executable")
    lower = importlib.import_module("graphc.backends.cuda.code").lower
    kernels = importlib.import_module("graphc_tools.gpu.kernels").Kernels
    simulated = importlib.import_module("graphc_tools.gpu.simulated").SimulatedDriver
    load = importlib.import_module("graphc_runtime").load
    for name in load(path, target="cuda"):
        module = load(path, target="cuda")
        driver = simulated(kernels(lower(module.text(f"mlir:{name}"), "sm_90").kernels))
        executable.device = lambda driver=driver: driver
        line = next(line for line in LINES if line.name == name)
        ours, _ = errors(line, module[name], None)
        print(f"{name}: error {ours:.1e}, {len(driver.launches)} launches")
        assert ours < 1e-5, name


def host(path: Path) -> None:
    """CPU time of calls that are all overhead, with functions of the driver that do nothing."""
    executable = importlib.import_module("graphc_runtime.cuda.executable")
    calls = importlib.import_module("no_driver").NoDriver()
    driver = importlib.import_module("graphc_runtime.cuda.cuda_driver").CudaDriver(0, calls)
    upload = importlib.import_module("graphc_runtime.cuda.array").upload
    executable.device = lambda: driver
    module = importlib.import_module("graphc_runtime").load(path, target="cuda")
    for line in LINES:
        if line.name not in ("one_kernel", "twenty_kernels"):
            continue
        given = [upload(driver, value, driver.main_stream) for value in line.inputs(line.shapes)]
        found = []
        for _ in range(_REPEATS):
            start = time.process_time()
            for _ in range(100):
                module[line.name](*given)
            found.append(1e4 * (time.process_time() - start))
        print(f"{line.name}: {statistics.median(found):.1f} us of Python a call, best {min(found):.1f}")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("build", "run", "simulate", "host"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "gpu-figures.md")
    given = parser.parse_args()
    if given.what == "run":
        run(given.file, given.page)
    else:
        {"build": build, "simulate": simulate, "host": host}[given.what](given.file)


if __name__ == "__main__":
    main()

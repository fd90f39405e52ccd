# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times functions on a CUDA device, next to PyTorch, CuPy and JAX.

    python tests/bench/gpu.py measure DIR    where the device is: all of it, within `--limit` seconds; what
                                             DIR lacks is compiled, where graphc is installed
    python tests/bench/gpu.py build DIR      where graphc is installed: compiles each line into a file of DIR
    python tests/bench/gpu.py run DIR        where the device is: needs NumPy and the driver, no compiler
    python tests/bench/gpu.py peer NAME      the times of another library
    python tests/bench/gpu.py simulate DIR   checks the small sizes without a device; needs graphc
    python tests/bench/gpu.py predict DIR    the model's times of kernels, beside those of docs/gpu-figures.md
    python tests/bench/gpu.py host DIR       times what calls cost in Python, without a device or its driver

`run` and `peer` print a line as soon as it is measured, and write all to `--json PATH`. `measure` prints a
table and writes it, with date and device, to docs/gpu-figures.md (`--page PATH` for another place). Each line
has `--seconds` for itself. Peers that are not installed have an empty column. `--only NAME,NAME` picks lines.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(_ROOT / "runtime")]

from gpu_lines import LINES, Line  # noqa: E402

PEERS = ("torch", "jax", "cupy")
_REPEATS, _WARM = 20, 3
# A line is repeated for so many seconds at most.
_PATIENCE = 1.0


def _function(line: Line) -> Any:
    graphc, pt = importlib.import_module("graphc"), importlib.import_module("graphc.tensor")
    inputs = [
        pt.tensor(f"x{i}", dtype=dtype, shape=(None,) * ndim) for i, (dtype, ndim) in enumerate(line.dtypes)
    ]
    outputs = line.graph(pt, *inputs)
    outputs, updates = outputs if isinstance(outputs, tuple) else (outputs, {})
    return graphc.function(inputs, outputs, updates=updates, mode="fast_run")


def build_line(name: str, folder: Path) -> str:
    """Compiles a line into a file of its own; says why where that cannot be."""
    line = next(line for line in LINES if line.name == name)
    graphc, start = importlib.import_module("graphc"), time.perf_counter()
    try:
        with graphc.config.change_flags(matmul_precision="tf32" if line.tf32 else "float32"):
            graphc.export({name: _function(line)}, folder / f"{name}.gcx", targets=["cuda"], keep_ir=True)
    except graphc.errors.CompileError as error:
        return f"{name}: left out: {error}"
    return f"{name}: {time.perf_counter() - start:.1f} s"


def build(folder: Path, names: Sequence[str], jobs: int = 1) -> None:
    """Compiles the lines; what has no kernel is left out, and named."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [name for name in names if not (folder / f"{name}.gcx").exists()]
    if jobs == 1:
        for name in left:
            print(build_line(name, folder), flush=True)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for said in pool.map(functools.partial(build_line, folder=folder), left):
            print(said, flush=True)


def _many(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


def errors(line: Line, function: Callable[..., Any]) -> float:
    """The largest error against float64, relative to the largest result."""
    values = line.inputs(line.small, seed=1)
    exact = line.peer(
        np, *(value.astype(np.float64) if value.dtype.kind == "f" else value for value in values)
    )
    worst = 0.0
    # The first call is asked for step by step, the second one is planned, later ones may be captured.
    for call in range(3):
        pairs = zip(_many(line.compare(function(*values))), _many(line.compare(exact)), strict=True)
        if line.name.startswith("normal") and call:
            break  # other numbers
        for ours, wanted in pairs:
            scale = np.abs(wanted).max() or 1.0
            worst = max(worst, float(np.abs(np.asarray(ours) - wanted).max() / scale))
    return worst


class Clock:
    """Microseconds of what is asked of a device, by its own clock, and of the host."""

    def __init__(self, driver: Any) -> None:
        self._driver, self._events = driver, [driver.new_event(timing=True) for _ in range(2)]

    def device(self, call: Callable[[], Any]) -> float:
        """Median time of a call on the device."""
        driver, (first, last) = self._driver, self._events
        found: list[float] = []
        end = time.perf_counter() + _PATIENCE
        for _ in range(_WARM):
            call()
        while len(found) < _REPEATS and (len(found) < 3 or time.perf_counter() < end):
            driver.record(first, driver.main_stream)
            call()
            driver.record(last, driver.main_stream)
            found.append(1000 * driver.elapsed(first, last))
        return statistics.median(found)

    def host(self, call: Callable[[], Any], wait: Callable[[], Any]) -> float:
        """Median time of a call until Python goes on, of 100 in a row."""
        found: list[float] = []
        end = time.perf_counter() + _PATIENCE / 2
        while len(found) < _REPEATS and (len(found) < 3 or time.perf_counter() < end):
            wait()
            start = time.perf_counter()
            for _ in range(100 if found and found[-1] < 1000 else 1):
                call()
            spent = time.perf_counter() - start
            found.append(1e6 * spent / (100 if found and found[-1] < 1000 else 1))
        return statistics.median(found)


def copy_bandwidth(driver: Any, clock: Clock) -> float:
    """Bytes a microsecond that copies within the device read and write together."""
    nbytes = 1 << 30
    source, target = (driver.allocate(nbytes, driver.main_stream) for _ in range(2))
    spent = clock.device(lambda: driver.copy(target, source, nbytes, driver.main_stream))
    for address in (source, target):
        driver.free(address, driver.main_stream)
    return 2 * nbytes / spent


def own_times(line: Line, function: Callable[..., Any], driver: Any) -> tuple[float, float]:
    """Microseconds of a call, on the device and of the host."""
    upload, clock = importlib.import_module("graphc_runtime.cuda.array").upload, Clock(driver)
    given = [upload(driver, value, driver.main_stream) for value in line.inputs(line.shapes)]

    def call() -> Any:
        return function(*given)

    spent = clock.device(call)
    return spent, clock.host(call, lambda: driver.synchronise(driver.main_stream)) if spent < 1000 else np.nan


class _TimeIsUp(BaseException):
    pass


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _each(
    names: Sequence[str], seconds: int, page: Path | None, measure: Callable[[Line], dict[str, float]]
) -> dict[str, Any]:
    """What is measured of each line; why not, where that fails."""
    found: dict[str, Any] = {}
    for line in (line for line in LINES if line.name in names):
        try:
            with _limit(seconds):
                found[line.name] = measure(line)
        except (Exception, _TimeIsUp) as error:
            found[line.name] = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in found[line.name].items()}
        print(line.name, shown, flush=True)
        if page is not None:
            page.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def run(folder: Path, names: Sequence[str], seconds: int, page: Path | None) -> None:
    """Measures what a folder has."""
    load = importlib.import_module("graphc_runtime").load
    driver = importlib.import_module("graphc_runtime.cuda.cuda_driver").device()
    bandwidth = copy_bandwidth(driver, Clock(driver))
    print(f"{driver.name} ({driver.arch}), copies {bandwidth / 1e6:.2f} TB/s", flush=True)

    def measure(line: Line) -> dict[str, float]:
        start = time.perf_counter()
        function = load(folder / f"{line.name}.gcx", target="cuda")[line.name]
        found = {"error": errors(line, function)}
        found["us"], found["host"] = own_times(line, function, driver)
        if moved := line.moved(*line.shapes):
            found["share"] = moved / found["us"] / bandwidth
        return {**found, "bandwidth": bandwidth, "seconds": time.perf_counter() - start}

    _each([name for name in names if (folder / f"{name}.gcx").exists()], seconds, page, measure)


def peer(name: str, names: Sequence[str], seconds: int, page: Path | None) -> None:
    """Measures another library, on the lines that name it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    module = _found(name)
    if module is None:
        print(f"{name} is not installed")
        return
    mine = [line.name for line in LINES if line.name in names and name in line.peers]
    _each(mine, seconds, page, {"torch": _torch, "jax": _jax, "cupy": _cupy}[name])
    if name == "torch" and "recurrent_network" in names:
        print("cuDNN's recurrent network:", _cudnn_network(module), flush=True)


def _torch(line: Line) -> dict[str, float]:
    torch = importlib.import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = line.tf32
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    given = [torch.from_numpy(np.asarray(value)).cuda() for value in line.inputs(line.shapes)]
    eager = functools.partial(line.peer, torch)
    # Graphs with gradients of its own are compiled by autograd.
    call = eager if line.name.startswith("convolution_") else torch.compile(eager, dynamic=False)
    return {"us": _waited(lambda: call(*given), lambda _: torch.cuda.synchronize())}


def _cudnn_network(torch: Any) -> dict[str, float]:
    """The last state of the line's network, and the gradient by all weights."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    x, network = torch.randn(512, 128, 256, device="cuda"), torch.nn.RNN(256, 256).cuda()

    def gradient() -> None:
        network.zero_grad()
        (network(x)[0][-1] ** 2).sum().backward()

    with torch.no_grad():
        forward = _waited(lambda: network(x)[0][-1], lambda _: torch.cuda.synchronize())
    return {"forward": forward, "gradient": _waited(gradient, lambda _: torch.cuda.synchronize())}


def _jax(line: Line) -> dict[str, float]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    with jax.default_matmul_precision("tensorfloat32" if line.tf32 else "highest"):
        call = jax.jit(functools.partial(line.peer, importlib.import_module("jax.numpy")))
        given = [jax.device_put(value) for value in line.inputs(line.shapes)]
        return {"us": _waited(lambda: call(*given), jax.block_until_ready)}


def _cupy(line: Line) -> dict[str, float]:
    cupy = importlib.import_module("cupy")
    cupy.get_default_memory_pool().free_all_blocks()
    given = [cupy.asarray(value) for value in line.inputs(line.shapes)]
    return {"us": _waited(lambda: line.peer(cupy, *given), lambda _: cupy.cuda.Device().synchronize())}


def _waited(call: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median time of some calls in a row until the device is done, for each."""
    for _ in range(_WARM):
        wait(call())
    start = time.perf_counter()
    wait(call())
    count = max(1, min(20, int(0.05 / (time.perf_counter() - start))))
    found: list[float] = []
    end = time.perf_counter() + _PATIENCE
    while len(found) < _REPEATS and (len(found) < 3 or time.perf_counter() < end):
        start = time.perf_counter()
        for _ in range(count):
            results = call()
        wait(results)
        found.append(1e6 * (time.perf_counter() - start) / count)
    return statistics.median(found)


def _found(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


HEAD = ("line", "us on the device", "us of the host", "of copies", *PEERS, "fastest peer / graphc", "error")


def table(ours: dict[str, Any], peers: dict[str, dict[str, Any]]) -> list[str]:
    """A row for each line; ratios above 1 are graphc ahead."""
    rows = []
    for line in (line for line in LINES if line.name in ours):
        found = ours[line.name]
        spent = found.get("us", np.nan)
        times = [peers.get(name, {}).get(line.name, {}).get("us", np.nan) for name in PEERS]
        best = min((t for t in times if not np.isnan(t)), default=np.nan)
        share = f"{found['share']:.0%}" if "share" in found else ""
        share += f" (goal {line.goal:.0%})" if line.goal else ""
        cells = [_number(spent), _number(found.get("host", np.nan)), share, *map(_number, times)]
        ratio = "" if np.isnan(best / spent) else f"{best / spent:.2f}"
        rows.append([line.name, *cells, ratio, found.get("failed") or f"{found['error']:.1e}"])
    return [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *rows)]


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def measure(options: argparse.Namespace, names: Sequence[str]) -> None:
    """All of it, in processes of their own: what fails or hangs in one of them is no end of the others."""
    end = time.monotonic() + options.limit
    folder = Path(tempfile.mkdtemp())
    files = options.file or folder / "lines"
    this = [sys.executable, str(Path(__file__))]
    if _found("graphc") is not None:
        build(files, names, jobs=max(1, (os.cpu_count() or 1) - 1))
        print(f"compiled; {end - time.monotonic():.0f} s are left", flush=True)
    steps = {"ours": [*this, "run", str(files)], **{name: [*this, "peer", name] for name in PEERS}}
    results: dict[str, Any] = {}
    for name, command in steps.items():
        page = folder / f"{name}.json"
        options_of_all = ["--json", str(page), "--only", ",".join(names), "--seconds", str(options.seconds)]
        try:
            subprocess.run([*command, *options_of_all], timeout=max(1.0, end - time.monotonic()), check=False)
        except subprocess.TimeoutExpired:
            print(f"{name}: the time is up", flush=True)
        results[name] = json.loads(page.read_text(encoding="utf-8")) if page.exists() else {}
    ours = results.pop("ours")
    driver = importlib.import_module("graphc_runtime.cuda.cuda_driver").device()
    bandwidth = next((found["bandwidth"] for found in ours.values() if "bandwidth" in found), 0.0)
    today = datetime.datetime.now(datetime.UTC).date()
    text = [
        "# Figures of a graphics processor",
        "",
        f"{driver.name} ({driver.arch}), {today}; copies within the device: {bandwidth / 1e6:.2f} TB/s.",
        "Medians of up to 20; peers are timed with calls in a row. From `tests/bench/gpu.py measure`.",
        "",
        *table(ours, results),
    ]
    print("\n".join(text))
    options.page.write_text("\n".join(text) + "\n", encoding="utf-8")


def simulate(folder: Path, names: Sequence[str]) -> None:
    """Compares the small sizes with float64, with the interpreter of kernels instead of a device."""
    executable = importlib.import_module("graphc_runtime.cuda.executable")
    lower = importlib.import_module("graphc.backends.cuda.code").lower
    kernels = importlib.import_module("graphc_tools.gpu.kernels").Kernels
    simulated = importlib.import_module("graphc_tools.gpu.simulated").SimulatedDriver
    load = importlib.import_module("graphc_runtime").load
    for line in (line for line in LINES if line.name in names):
        module = load(folder / f"{line.name}.gcx", target="cuda")
        given = module.text(f"mlir:{line.name}")
        text = lower(given, "sm_90", precision="tf32" if line.tf32 else "").kernels
        driver = simulated(kernels(text) if "gpu.func" in text else {})
        executable.device = lambda driver=driver: driver
        error = errors(line, module[line.name])
        print(f"{line.name}: error {error:.1e}, {len(driver.launches)} launches", flush=True)
        assert error < (2e-3 if line.tf32 or "float16" in line.name else 1e-5), line.name


def predicted(line: Line, folder: Path) -> list[Any]:
    """The model's prediction of each launch of a line."""
    executable = importlib.import_module("graphc_runtime.cuda.executable")
    performance = importlib.import_module("graphc_tools.gpu.performance")
    module = importlib.import_module("graphc_runtime").load(folder / f"{line.name}.gcx", target="cuda")
    lower = importlib.import_module("graphc.backends.cuda.code").lower
    lowered = lower(module.text(f"mlir:{line.name}"), "sm_90", precision="tf32" if line.tf32 else "")
    kernels = importlib.import_module("graphc_tools.gpu.kernels").Kernels(lowered.kernels)
    inputs = [(dtype, shape) for (dtype, _), shape in zip(line.dtypes, line.shapes, strict=True)]

    def use(driver: Any) -> None:
        executable.device = lambda: driver

    asked = performance.launches(module[line.name], kernels, inputs, use)
    return performance.predictions(lowered.ptx, kernels, asked)


def measured(page: Path) -> dict[str, float]:
    """Microseconds of the lines of a page."""
    rows = [
        line.split("|") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    times = {row[1].strip(): row[2].strip().replace(",", "") for row in rows}
    return {name: float(time) for name, time in times.items() if time.replace(".", "").isdigit()}


def predict(folder: Path, names: Sequence[str], page: Path) -> None:
    """Prints what the model says."""
    known = measured(page) if page.exists() else {}
    for line in (line for line in LINES if line.name in names):
        found = predicted(line, folder)
        for one in found:
            launch = one.launch
            parts = f"memory {one.memory:.1f}, sectors {one.sectors:.1f}, arithmetic {one.arithmetic:.1f}"
            print(f"    {launch.name} {launch.grid} {launch.block}: {parts}, in all {one.total:.1f} us")
        total, seen = sum(one.total for one in found), known.get(line.name, np.nan)
        print(f"{line.name}: {total:.0f} us, measured {seen:.0f}, {total / seen:.2f}", flush=True)


def host(folder: Path) -> None:
    """CPU time of calls that are all overhead, with functions of the driver that do nothing."""
    executable = importlib.import_module("graphc_runtime.cuda.executable")
    calls = importlib.import_module("no_driver").NoDriver()
    driver = importlib.import_module("graphc_runtime.cuda.cuda_driver").CudaDriver(0, calls)
    upload = importlib.import_module("graphc_runtime.cuda.array").upload
    executable.device = lambda: driver
    for line in LINES:
        if line.name not in ("one_kernel", "twenty_kernels"):
            continue
        function = importlib.import_module("graphc_runtime").load(folder / f"{line.name}.gcx", target="cuda")
        given = [upload(driver, value, driver.main_stream) for value in line.inputs(line.shapes)]
        found = []
        for _ in range(_REPEATS):
            start = time.process_time()
            for _ in range(100):
                function[line.name](*given)
            found.append(1e4 * (time.process_time() - start))
        print(f"{line.name}: {statistics.median(found):.1f} us of Python a call, best {min(found):.1f}")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("measure", "build", "run", "peer", "simulate", "predict", "host"))
    parser.add_argument("file", nargs="?", help="a folder of compiled lines, or a peer's name")
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "gpu-figures.md")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="names of lines, with commas between")
    parser.add_argument("--seconds", type=int, default=20, help="for one line")
    parser.add_argument("--limit", type=int, default=360, help="seconds for all of `measure`")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else [line.name for line in LINES]
    if given.what == "peer":
        peer(given.file, names, given.seconds, given.json)
        return
    given.file = Path(given.file) if given.file else None
    if given.what == "measure":
        measure(given, names)
    elif given.what == "run":
        run(given.file, names, given.seconds, given.json)
    elif given.what == "build":
        build(given.file, names)
    elif given.what == "simulate":
        simulate(given.file, names)
    elif given.what == "predict":
        predict(given.file, names, given.page)
    else:
        host(given.file)


if __name__ == "__main__":
    main()

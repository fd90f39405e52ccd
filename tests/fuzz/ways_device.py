# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as kernels of a device.

Where there is none, it is simulated: a driver of our own, and kernels that are interpreted. Those with matrix
products run with a library for these, too. Programs are small: kernels for what several blocks do together
are made of them where the passes are told that few elements are many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from checked import Checked, Finding

from graphc.backends.cuda import code, pipeline
from graphc.backends.cuda.code import Lowered, lower
from graphc.config import config
from graphc.errors import UnsupportedError
from graphc.passes.gpu import gpu_parts, gpu_rows, gpu_running
from graphc_runtime.cuda import executable, gemm
from graphc_runtime.cuda.analysis import by_library
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.cuda_driver import device
from graphc_runtime.cuda.driver import NoDeviceError
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

# Each thread is interpreted.
_LARGEST = 4000
# Options of passes, and numbers of their modules, with which few elements are many.
_FEW = {
    "gpu-running": "each=4",
    "gpu-sort": "tile=2 threads=64 items=1 parts=4",
    "gpu-scatter": "items=1",
    "gpu-matmul": "parts=2",
    "gpu-sweep": "rows=2 blocks=3",
    "gpu-parts": "threads=32 blocks=3 columns=3",
    "gpu-rows": "threads=32 blocks=3 rows=4 elements=3",
}
_SMALL = ((gpu_parts, "_SMALL", 2), (gpu_rows, "_SMALL", 2), (gpu_running, "_ENOUGH_ALONG", 2))


def in_parts(c: Checked) -> Iterator[Finding]:
    """The same with blocks that have few elements each; on a simulated device only."""
    if _there_is_one():
        return
    before, numbers = pipeline.KERNELS, [getattr(module, name) for module, name, _ in _SMALL]
    steps = []
    for step in before.steps:
        given = _FEW.get(step.text.removeprefix("graphc-"))
        steps.append(step._replace(text=f"{step.text}{{{given}}}", options=None) if given else step)
    try:
        pipeline.KERNELS = replace(before, steps=tuple(steps))
        for module, name, number in _SMALL:
            setattr(module, name, number)
        yield from on_device(c, "device in parts")
    finally:
        pipeline.KERNELS = before
        for (module, name, _), number in zip(_SMALL, numbers, strict=True):
            setattr(module, name, number)


def on_device(c: Checked, way: str = "device") -> Iterator[Finding]:
    """Compares with what kernels of mode "cuda" compute; what is refused, with a message, is no finding."""
    # The simulated device has no memory for what the program's own error is about.
    values = [x.value for x in c.program.inputs] + [want.value for want in c.expected]
    if _there_is_one():
        yield from c.compare(way, lambda: _thrice(c))
    elif sum(np.size(value) for value in values) < _LARGEST:
        made: list[Lowered] = []
        yield from c.compare(way, lambda: _run(c, made))
        if any(by_library(lowered.schedule) for lowered in made):
            yield from c.compare(way, lambda: _run(c, [], library=True))


@cache
def _there_is_one() -> bool:
    try:
        device()
    except NoDeviceError:
        return False
    return True


def _thrice(c: Checked) -> list[Any]:
    """The results of the third call: step by step, then planned, then captured."""
    f = _function(c)
    for _ in range(2):
        c.call(f)
    return [np.asarray(y) if isinstance(y, DeviceArray) else y for y in c.call(f)]


def _run(c: Checked, made: list[Lowered], *, library: bool = False) -> list[Any]:
    """The results; `made` gains what the program was lowered to."""

    def kept(*arguments: Any, **named: Any) -> Lowered:
        made.append(lower(*arguments, **named))
        return made[-1]

    before = code.lower, executable.device, gemm.LEAST
    try:
        # Sizes are small here; they decide while the program is compiled, and when it runs.
        code.lower, gemm.LEAST = kept, 1
        with config.change_flags(cache_dir=""):
            f = _function(c)
        if len(made) > 1:
            return c.call(c.function("fast_run"))  # parts, whose kernels have the same names
        kernels = made[0].kernels if made else ""
        driver = SimulatedDriver(Kernels(kernels) if "gpu.func" in kernels else {}, library=library)
        executable.device = lambda: driver
        results = c.call(f)
        return [np.asarray(y) if isinstance(y, DeviceArray) else y for y in results]
    finally:
        code.lower, executable.device, gemm.LEAST = before


def _function(c: Checked) -> Any:
    try:
        return c.function("cuda")
    except UnsupportedError:
        return c.function("fast_run")

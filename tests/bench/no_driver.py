# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of a CUDA driver that do nothing, for the time that calls take in Python.

What a call asks the driver for each time is a call of a C function through ctypes, as with a driver.
"""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

from graphc_runtime.cuda.driver import KernelLaunch


class NoDriver:
    """As `graphc_runtime.cuda.calls.Calls`."""

    def __init__(self) -> None:
        # Of all arguments it looks at the first one, 0, and returns that: a status without an error.
        self._nothing = ctypes.CDLL(None).labs
        self._handles = count(1 << 40, 1 << 30)

    def call(self, name: str, *arguments: int) -> tuple[int, ...]:
        status = self._nothing(0, *map(ctypes.c_uint64, arguments))
        if name == "cuMemGetInfo":
            return status, 1 << 30, 1 << 30
        if name == "cuDriverGetVersion":
            return status, 0  # so old that no library goes with it
        gives = ("Get", "Create", "Alloc", "EndCapture", "Instantiate", "Retain")
        return (status, next(self._handles)) if any(word in name for word in gives) else (status,)

    def device_name(self, device: int) -> str:
        return "none"

    def error_text(self, status: int) -> str:
        return "no driver"

    def pool_attribute(self, *arguments: Any) -> int:
        return 0

    def load_module(self, image: Any, options: Any) -> tuple[int, int]:
        return 0, 1

    def kernel(self, module: int, name: str) -> tuple[int, int]:
        return 0, 0

    def launch(self, asked: KernelLaunch, stream: int, parameters: int) -> int:
        rest = map(ctypes.c_uint64, (asked.shared, stream, parameters))
        return self._nothing(asked.function, *asked.grid, *asked.block, *rest)

    def address(self, name: str) -> int:
        # Of two handles or addresses that differ it says 0, and looks at no other arguments.
        return ctypes.cast(ctypes.CDLL(None).pthread_equal, ctypes.c_void_p).value or 0

    def elapsed(self, first: int, last: int) -> tuple[int, float]:
        return 0, 0.0

    def graph_nodes(self, graph: int) -> tuple[int, int]:
        return 0, 1

    def update_graph(self, ready: int, graph: int) -> int:
        return 0

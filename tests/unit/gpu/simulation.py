# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device that is not there, for functions of mode "cuda"."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pytest

from graphc.function.types import Function
from graphc_runtime.cuda import executable
from graphc_runtime.cuda.array import DeviceArray
from graphc_runtime.cuda.driver import KernelLaunch
from graphc_runtime.cuda.libraries import Asked
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver

# Prepares a function to be called on a device that is not there.
Run: TypeAlias = Callable[[Function], Function]


def generator(skip: int = 0, seed: int = 7) -> np.random.Generator:
    """A generator that counts, after some words."""
    made = np.random.Generator(np.random.Philox(seed))
    made.random(skip)
    return made


def device_for(
    monkeypatch: pytest.MonkeyPatch, function: Function, *, library: bool | Sequence[str] = False
) -> SimulatedDriver:
    """A device that knows the kernels of a function, whose calls are run there.

    Args:
        monkeypatch: undoes that.
        function: of mode "cuda".
        library: whether the device has the vendor's libraries, or which.
    """
    text = function.ir_stages()["gpu"]
    driver = SimulatedDriver(Kernels(text) if "gpu.func" in text else {}, library=library)
    monkeypatch.setattr(executable, "device", lambda: driver)
    return driver


def assert_nothing_lives(driver: SimulatedDriver) -> None:
    """All memory of a device was given back."""
    # A collection looks at all that pytest has collected, and there is seldom garbage in cycles.
    if driver.live:
        gc.collect()
    assert not driver.live


def asked(
    monkeypatch: pytest.MonkeyPatch,
    driver: SimulatedDriver,
    call: Callable[[], Sequence[DeviceArray]],
    given: Sequence[DeviceArray],
) -> list[tuple[object, ...]]:
    """Launches, products and copies that a call asks for, none of which is done: sizes, arguments, and of
    addresses, of which array they are or that they are of a temporary one.
    """
    found: list[tuple[object, ...]] = []

    def launch(asked: KernelLaunch, values: Sequence[float], stream: int) -> None:
        pairs = [(kind, value) for kind, value in zip(asked.types, values, strict=True)]
        found.append((asked.function, asked.grid, asked.block, *pairs))

    def copy(target: int, source: int, nbytes: int, stream: int) -> None:
        found.append(("copy", ("pointer", target), ("pointer", source), nbytes))

    def ask(of_library: Asked, addresses: Sequence[int], stream: int) -> None:
        found.append((of_library, *[("pointer", address) for address in addresses]))

    with monkeypatch.context() as patch:
        patch.setattr(driver, "ask", ask)
        patch.setattr(driver, "launch", launch)
        patch.setattr(driver, "copy", copy)
        arrays = [*given, *call()]
    names = {array.memory.address: number for number, array in enumerate(arrays)}
    return [tuple(_named(part, names) for part in ask) for ask in found]


def _named(part: object, names: dict[int, int]) -> object:
    if isinstance(part, tuple) and part[0] == "pointer":
        return names.get(int(part[1]), "temporary")
    return part

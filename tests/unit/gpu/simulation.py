# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device that is not there, for functions of mode "cuda"."""

from __future__ import annotations

import gc

import pytest

from graphc.function.types import Function
from graphc_runtime.cuda import executable
from graphc_tools.gpu.kernels import Kernels
from graphc_tools.gpu.simulated import SimulatedDriver


def device_for(monkeypatch: pytest.MonkeyPatch, function: Function) -> SimulatedDriver:
    """A device that knows the kernels of a function; the function's calls are run there."""
    text = function.ir_stages()["gpu"]
    driver = SimulatedDriver(Kernels(text) if "gpu.func" in text else {})
    monkeypatch.setattr(executable, "device", lambda: driver)
    return driver


def assert_nothing_lives(driver: SimulatedDriver) -> None:
    """All memory of a device was given back."""
    # A collection looks at all that pytest has collected, and there is seldom garbage in cycles.
    if driver.live:
        gc.collect()
    assert not driver.live

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that need a CUDA device; without one they are skipped, and say so."""

from __future__ import annotations

import pytest

from graphc_runtime.cuda.cuda_driver import CudaDriver, device
from graphc_runtime.cuda.driver import NoDeviceError


@pytest.fixture(scope="session")
def driver() -> CudaDriver:
    """The first device."""
    try:
        return device()
    except NoDeviceError as error:
        pytest.skip(f"needs a CUDA device: {error}")

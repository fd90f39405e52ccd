# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures for tests that hold in every mode."""

import pytest

# Every mode must behave alike, so every test with this fixture runs in each of them.
MODES = ["reference", "fast_run", "fast_compile", "debug"]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param

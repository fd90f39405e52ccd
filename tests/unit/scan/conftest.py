# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures for tests of loops that hold in every mode."""

import pytest

import graphc

# Every mode must behave alike, so every test with this fixture runs in each of them.
MODES = ["reference", "fast_compile", "fast_run"]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def compute(mode):
    """``compute(outputs, {input: value})``: values of a graph."""

    def run(outputs, values=None, **kwargs):
        values = values or {}
        function = graphc.function(list(values), outputs, mode=mode, on_unused_input="ignore", **kwargs)
        return function(*values.values())

    return run

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Environments that tests share, so that operations compile once, and code that both modes run."""

from __future__ import annotations

import pytest

import graphc


@pytest.fixture(scope="session")
def env():
    return graphc.immediate.Environment(name="shared by tests")


@pytest.fixture(scope="session")
def lazy():
    return graphc.immediate.Environment(name="lazy", lazy=True)


@pytest.fixture(params=["eager", "lazy"])
def gt(request, env, lazy):
    return env if request.param == "eager" else lazy

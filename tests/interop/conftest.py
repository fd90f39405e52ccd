# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of bridges need the other libraries: `make bridge` has an environment with them."""

from __future__ import annotations

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("pymc") else ["test_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--models", choices=("quick", "all"), default="quick", help="which models are tried")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest plugin that makes graphc PyTensor's backend; `recording` writes down the outcomes.

What PyTensor would compile by numba or C goes through graphc's linker; its Python linkers stay what they
are, so tests that compare a backend with Python compare graphc with Python. Statements about PyTensor's
rewritten graphs are left out, as `internals` says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import absent
import helpers
import internals
import pytensor
import pytest
import recording
from pytensor.compile import mode as modes
from pytensor.compile.mode import Mode
from pytensor.link.numba import linker as numba_linker
from pytensor.scan import op as scan_op

import graphc.interop.pytensor
from graphc.interop.pytensor.linker import LINKER, MODES

NUMBA_TESTS = "tests.link.numba.test_basic"
GRAPHC = MODES["GRAPHC"]


class NumbaLinker(graphc.interop.pytensor.GraphcLinker):
    """What tests of the numba backend build their modes of: without the rewrites that are numba's own."""

    incompatible_rewrites = (*graphc.interop.pytensor.GraphcLinker.incompatible_rewrites, "numba")


def _redirect() -> None:
    pytensor.config.mode = "GRAPHC"
    numba_linker.NumbaLinker = NumbaLinker
    modes.predefined_modes.update(dict.fromkeys(("NUMBA", "C", "CVM", "FAST_RUN"), GRAPHC))
    # Python's loops need PyTensor's own machine for their bodies.
    own = modes.predefined_linkers["cvm"]
    scan_op.Mode = lambda linker, rewrites: Mode(own if linker == "cvm" else linker, rewrites)
    modes.predefined_linkers.update(dict.fromkeys(("numba", "c", "c|py", "cvm", "auto"), LINKER))


_redirect()
internals.install(*(recording.SETTINGS[name] for name in ("left_out", "nodes", "words")))
if not recording.SETTINGS["wording"]:
    _warns = pytest.warns
    helpers.ignore_wording()
    # PyTensor itself warns of what it deprecates.
    pytest.warns = lambda *args, match=None, **kwargs: _warns(*args, **kwargs)


def pytest_configure(config: pytest.Config) -> None:
    """Tests of the numba backend expect its warning wherever numba calls Python."""
    if any("link/numba" in file for file in config.args):
        warns = pytest.warns
        pytest.warns = lambda kind, **kwargs: nullcontext() if kind is UserWarning else warns(kind, **kwargs)


@pytest.fixture
def benchmark() -> Callable[..., Any]:
    """Stands for that of pytest-benchmark: what it would time runs once."""
    return lambda function, *args, **kwargs: function(*args, **kwargs)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    tests = sys.modules.get(NUMBA_TESTS)
    if tests is not None:  # it runs numba's functions as Python, for their coverage
        tests.eval_python_only = lambda *args, **kwargs: None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Tests that set the mode and leave it so do not choose that of others."""
    with pytensor.config.change_flags(mode="GRAPHC"):
        return (yield)


def _internal(error: BaseException | None) -> str | None:
    """Says that a test needs the graph that PyTensor's rewrites make."""
    while error is not None:
        if isinstance(error, absent.AbsentNameError):
            return error.name
        error = error.__cause__ or error.__context__
    return None


recording.USES.append(_internal)

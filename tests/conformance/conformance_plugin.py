# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest plugin under which a suite's PyTensor is graphc; `recording` writes down the outcomes.

Of the driver's settings it reads ``modules``, the paths that the suite imports as modules; ``attributes``,
names of attributes that are internals; ``left_out`` and ``nodes``, what `internals` leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import absent
import helpers
import internals
import names
import op_classes
import pytest
import recording
import rewrites

from graphc.graph.op import Op

names.install(set(recording.SETTINGS["modules"]))
internals.install(*(recording.SETTINGS[name] for name in ("left_out", "nodes", "words")), rewrites=rewrites)
helpers.ignore_wording()
op_classes.add_attributes()


def pytest_collectreport(report: pytest.CollectReport) -> None:
    helpers.adapt()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    absent.Phase.strict = True
    rewrites.FACTS.clear()
    try:
        return (yield)
    finally:
        absent.Phase.strict = False


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    absent.Phase.fixture = True
    try:
        return (yield)
    finally:
        absent.Phase.fixture = False


def _internal(error: BaseException | None) -> str | None:
    """The absent name, or the attribute of PyTensor's internals, that an error is about."""
    while error is not None:
        # A stand-in that was a parameter of a test, and met a function of the library.
        _, found, after = str(error).partition("<absent ")
        if found:
            return after.partition(">")[0]
        if isinstance(error, absent.AbsentNameError | absent.AbsentInFixtureError):
            return error.name
        if isinstance(error, AttributeError):
            kind = error.obj if isinstance(error.obj, type) else type(error.obj)
            ours = kind.__module__.startswith(("graphc", "stand_ins", "builtins"))
            if ours and (error.name in recording.SETTINGS["attributes"] or isinstance(error.obj, Op)):
                return f"attribute {error.name}"
        error = error.__cause__ or error.__context__
    return None


recording.USES.append(_internal)

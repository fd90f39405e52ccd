# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest plugin that runs a foreign suite on graphc and writes one line of JSON for each test.

Its settings come from the driver in ``CONFORMANCE`` (JSON): ``results``, the file to append to;
``modules``, the paths that the suite imports as modules; ``attributes``, names of attributes that are
internals; ``left_out`` and ``nodes``, what `internals` leaves out; ``seconds``, the limit for one test.
"""

from __future__ import annotations

import json
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import absent
import helpers
import internals
import names
import op_classes
import pytest

from graphc.graph.op import Op

_SETTINGS = json.loads(os.environ["CONFORMANCE"])
_RESULTS = Path(_SETTINGS["results"])
names.install(set(_SETTINGS["modules"]))
internals.install(_SETTINGS["left_out"], _SETTINGS["nodes"])
helpers.ignore_wording()
op_classes.add_attributes()


class TimeLimitError(BaseException):
    """A test ran too long."""


def _append(**record: Any) -> None:
    with _RESULTS.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _known() -> set[str]:
    if not _RESULTS.exists():
        return set()
    records = [json.loads(line) for line in _RESULTS.read_text().splitlines()]
    return {record["test"] for record in records if "outcome" in record}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known, wanted = _known(), _SETTINGS.get("tests")
    items[:] = [
        item for item in items if item.nodeid not in known and (wanted is None or item.nodeid in wanted)
    ]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    helpers.adapt()
    if report.failed:
        _append(test=report.nodeid, outcome="failed", error="collection: " + str(report.longrepr)[-600:])


def _expired(signum: int, frame: Any) -> None:
    raise TimeLimitError(f"over {_SETTINGS['seconds']} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    _append(test=item.nodeid, started=True)
    absent.Phase.strict = True
    signal.signal(signal.SIGALRM, _expired)
    signal.alarm(_SETTINGS["seconds"])
    try:
        with warnings.catch_warnings():
            return (yield)
    finally:
        signal.alarm(0)
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
        if isinstance(error, absent.AbsentNameError | absent.AbsentInFixtureError):
            return error.name
        if isinstance(error, AttributeError):
            kind = error.obj if isinstance(error.obj, type) else type(error.obj)
            ours = kind.__module__.startswith(("graphc", "stand_ins", "builtins"))
            if ours and (error.name in _SETTINGS["attributes"] or isinstance(error.obj, Op)):
                return f"attribute {error.name}"
        error = error.__cause__ or error.__context__
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        record = {"test": item.nodeid, "outcome": report.outcome}
        if hasattr(report, "wasxfail"):
            record["outcome"] = "skipped" if report.outcome == "skipped" else "passed"
        elif call.excinfo is not None:
            error = call.excinfo.value
            record["error"] = f"{type(error).__name__}: {error}"[:500]
            if report.outcome == "failed":
                last = call.excinfo.traceback[-1]
                record["where"] = f"{last.path}:{last.lineno + 1}"
                record["uses"] = _internal(error)
        _append(**record, seconds=round(call.duration, 2))
    return report

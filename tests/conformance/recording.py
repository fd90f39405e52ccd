# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest plugin that writes one line of JSON for each test of a foreign suite.

Its settings come from the driver in ``CONFORMANCE`` (JSON): ``results``, the file to append to; ``seconds``,
the limit for one test; and what the plugin beside it needs, which says how the tests reach graphc.
"""

from __future__ import annotations

import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SETTINGS = json.loads(os.environ["CONFORMANCE"])
_RESULTS = Path(SETTINGS["results"])
# What puts a test out of scope, from its error; the plugin beside this one adds it.
USES: list[Callable[[BaseException], str | None]] = []


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
    known, wanted = _known(), SETTINGS.get("tests")
    items[:] = [
        item for item in items if item.nodeid not in known and (wanted is None or item.nodeid in wanted)
    ]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _append(test=report.nodeid, outcome="failed", error="collection: " + str(report.longrepr)[-600:])


def _expired(signum: int, frame: Any) -> None:
    raise TimeLimitError(f"over {SETTINGS['seconds']} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    _append(test=item.nodeid, started=True)
    signal.signal(signal.SIGALRM, _expired)
    signal.alarm(SETTINGS["seconds"])
    try:
        with warnings.catch_warnings():
            return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        record = {"test": item.nodeid, "outcome": report.outcome}
        # PyTensor itself fails the test, says a mark; a strict one calls it a failure that this one has not.
        beyond = call.excinfo is None and str(report.longrepr).startswith("[XPASS(strict)]")
        if hasattr(report, "wasxfail") or beyond:
            record["outcome"] = "skipped" if report.outcome == "skipped" else "passed"
        elif call.excinfo is not None:
            error = call.excinfo.value
            record["error"] = f"{type(error).__name__}: {error}"[:500]
            if report.outcome == "failed":
                last = call.excinfo.traceback[-1]
                record["where"] = f"{last.path}:{last.lineno + 1}"
                record["uses"] = next(filter(None, (uses(error) for uses in USES)), None)
        _append(**record, seconds=round(call.duration, 2))
    return report

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of a run: reading them, what is in scope, and what was expected."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import internals

Record = dict[str, Any]
Judged = dict[str, Record]
# What pytest says of a test whose parameters are none: those of a name that graphc does not have.
VANISHED = "Skipped: got empty parameter set"


def append(path: Path, **record: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read(path: Path) -> Judged:
    """The last outcome of each test; a test that failed in its body and passed its teardown has failed."""
    found: Judged = {}
    for record in _lines(path):
        if "outcome" in record:
            found[record["test"]] = record
    return found


def unfinished(path: Path) -> str | None:
    """The test that had started when a process ended."""
    lines = _lines(path)
    done = {record["test"] for record in lines if "outcome" in record}
    started = [record["test"] for record in lines if "started" in record]
    return started[-1] if started and started[-1] not in done else None


def is_done(path: Path) -> bool:
    return bool(_lines(path)[-1:] and "done" in _lines(path)[-1])


def is_of(path: Path, fingerprint: str) -> bool:
    """Whether results are of these sources, or there are none yet."""
    lines = _lines(path)
    return not lines or lines[-1].get("done") == fingerprint or "done" not in lines[-1]


def keep_passed(path: Path) -> None:
    kept = [record for record in _lines(path) if record.get("outcome") in ("passed", "skipped")]
    kept = [record for record in kept if not record.get("error", "").startswith(VANISHED)]
    path.write_text("".join(json.dumps(record) + "\n" for record in kept))


@dataclass(frozen=True)
class Rule:
    """Patterns that are out of scope, and why."""

    patterns: tuple[str, ...]
    reason: str
    tests: tuple[str, ...] = ("*",)

    def holds(self, text: str, test: str = "") -> bool:
        return _matches(text, self.patterns) and _matches(test, self.tests)


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Scope:
    """The rules of ``scope.toml``."""

    files: tuple[Rule, ...]
    tests: tuple[Rule, ...]
    names: tuple[Rule, ...]
    errors: tuple[Rule, ...]
    attributes: dict[str, str]
    left_out: list[str]
    nodes: list[str]
    quick: list[str]
    only: tuple[str, ...] = ("*",)
    words: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Scope:
        """The rules of a file.

        Raises:
            ValueError: it has no reason for an attribute by which `internals` puts tests out of scope.
        """
        table = tomllib.loads(path.read_text())

        def rules(section: str) -> tuple[Rule, ...]:
            rows = table[section]
            return tuple(
                Rule(tuple(row["patterns"]), row["reason"], tuple(row.get("tests", ["*"]))) for row in rows
            )

        attributes = {name: row["reason"] for row in table["attributes"] for name in row.get("names", [])}
        unknown = [] if "*" in attributes else sorted(set(internals.ATTRIBUTES) - attributes.keys())
        if unknown:
            raise ValueError(f"{path.name} has no [[attributes]] with a reason for {', '.join(unknown)}")
        found = (rules(section) for section in ("files", "tests", "names", "errors"))
        statements = table["statements"]
        left_out = [name for row in statements for name in row.get("attributes", [])]
        nodes = [part for row in statements for part in row.get("nodes", [])]
        only = tuple(table.get("only", ["*"]))
        words = tuple(word for row in statements for word in row.get("words", []))
        return cls(*found, attributes, left_out, nodes, table.get("quick", []), only, words)

    def file_reason(self, file: str) -> str | None:
        if not any(fnmatchcase(file, pattern) for pattern in self.only):
            return "not asked for"
        return next((rule.reason for rule in self.files if rule.holds(file)), None)

    def judge(self, records: Judged) -> Judged:
        """Mark the records of tests that are out of scope."""
        return {test: self._judged(test, record) for test, record in records.items()}

    def _judged(self, test: str, record: Record) -> Record:
        uses = record.get("uses") or ""
        if record.get("error", "").startswith(VANISHED):
            record = {**record, "outcome": "failed"}
        reason = next((rule.reason for rule in self.tests if rule.holds(test)), None)
        if reason is None and uses.startswith("attribute "):
            reason = self.attributes.get(uses.partition(" ")[2], self.attributes.get("*"))
        if reason is None and uses:
            reason = next((rule.reason for rule in self.names if rule.holds(uses)), None)
        if reason is None and record["outcome"] == "failed":
            error = record.get("error", "")
            reason = next((rule.reason for rule in self.errors if rule.holds(error, test)), None)
        return record if reason is None else {**record, "outcome": "out of scope", "reason": reason}


@dataclass
class Expected:
    """The checked-in list: reasons, each with the tests that fail for it."""

    path: Path
    reasons: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Expected:
        reasons, reason = {}, ""
        for text in path.read_text().splitlines() if path.exists() else []:
            if text.startswith("## "):
                reason = text[3:]
            elif text.startswith("tests/"):
                reasons[text] = reason
        return cls(path, reasons)

    def known(self) -> dict[str, str]:
        """The reasons of this list and, for tests that it has not, those of other versions, reached alike."""
        way, dash, _ = self.path.name.rpartition("-")
        lists = sorted(self.path.parent.glob(f"{way}{dash}[0-9]*.txt"))
        return {
            **dict(each for path in lists for each in Expected.read(path).reasons.items()),
            **self.reasons,
        }

    def update(self, results: dict[str, Judged]) -> None:
        """Take over the failures of the files that were run; new ones have no reason yet."""
        known = self.known()
        results = {file: judged for file, judged in results.items() if judged}
        kept = {test: why for test, why in self.reasons.items() if test.split("::")[0] not in results}
        for judged in results.values():
            for test, record in judged.items():
                if record["outcome"] == "failed":
                    kept[test] = known.get(test, "No reason yet")
        how = (
            "with graphc as its backend, by reason; `linked.py"
            if "-" in self.path.stem
            else "on graphc, by reason; `run.py"
        )
        head = f"# Tests of PyTensor in scope that fail {how} --update` keeps the list."
        text = [*(self.path.read_text().splitlines() if self.path.exists() else [head])[:1]]
        for reason in sorted(set(kept.values())):
            text += ["", f"## {reason}", *sorted(test for test, why in kept.items() if why == reason)]
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n".join(text) + "\n")
        self.reasons = kept


def line(file: str, judged: Judged) -> str:
    count = Counter(record["outcome"] for record in judged.values())
    in_scope = count["passed"] + count["failed"]
    return (
        f"{file:60} {count['passed']:5} of {in_scope:5} pass, {count['skipped']:4} skipped, "
        f"{count['out of scope']:4} out of scope"
    )


def report(results: dict[str, Judged], expected: Expected, differences: Sequence[str]) -> int:
    """Print the table and the differences from the lists; the exit status."""
    records = {test: record for judged in results.values() for test, record in judged.items()}
    for file, judged in results.items():
        print(line(file, judged))
    print(line("all", records))
    failed = {test for test, record in records.items() if record["outcome"] == "failed"}
    passed = {test for test, record in records.items() if record["outcome"] == "passed"}
    share = 100 * len(passed) / max(1, len(passed) + len(failed))
    print(f"{share:.1f} % of {len(passed) + len(failed)} tests in scope pass; {len(failed)} fail")
    new = sorted(failed - set(expected.reasons))
    mended = sorted(passed & set(expected.reasons))
    for title, tests in (("fails and is not listed", new), ("passes and is listed as failing", mended)):
        for test in tests:
            print(f"{title}: {test}  {records[test].get('error', '')[:200]}")
    for difference in differences:
        print(difference)
    return int(bool(new or mended or differences))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accounts of a suite in which no test is left out: every test that PyTensor itself collects has passed, is
listed with a reason as failing, is skipped by PyTensor, or is listed with a reason as out of scope.

``collected/VERSION.txt`` has the number of tests of each file as PyTensor collects them
(``run.py --collect PYTHON`` writes it), so that tests that vanish on graphc show as a difference.
``outside/VERSION.txt`` names what is out of scope: whole files, and tests of the others. docs/long-runs.md
has the sums by file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from outcomes import Expected, Judged, Scope

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "long-runs.md"


def function_of(test: str) -> str:
    """The name of a test without its parameters."""
    return test.partition("[")[0]


def collect(python: str, folder: Path, path: Path) -> None:
    """Write the number of tests of each file of a suite, as an interpreter with PyTensor collects them."""
    command = [python, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", "."]
    command += ["--collect-only", "-q", "--runslow", "tests"]
    # Nothing is compiled; without a compiler some parameters and the modes of PyTensor 2 are missing.
    environment = {**os.environ, "PYTENSOR_FLAGS": f"cxx={shutil.which('true')}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    tests = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    if not tests:
        raise SystemExit(f"{python} collected no tests: {done.stdout[-600:]}{done.stderr[-600:]}")
    counts = Counter({file.relative_to(folder).as_posix(): 0 for file in folder.glob("tests/**/test_*.py")})
    counts.update(tests)
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{file} {count}\n" for file, count in sorted(counts.items())))


def collected(path: Path) -> dict[str, int]:
    """What `collect` wrote; nothing where PyTensor has not been asked."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {file: int(count) for file, _, count in (line.partition(" ") for line in lines)}


@dataclass
class Outside:
    """The tests that are out of scope, by reason: whole files with an empty list of tests, or functions with
    the numbers of their parameters that are.
    """

    path: Path
    reasons: dict[str, str]
    counts: dict[str, int]

    @classmethod
    def read(cls, path: Path) -> Outside:
        reasons, counts, reason = {}, {}, ""
        for line in path.read_text().splitlines() if path.exists() else []:
            if line.startswith("## "):
                reason = line[3:]
            elif line.startswith("tests/"):
                test, _, count = line.partition(" ")
                reasons[test], counts[test] = reason, int(count or 1)
        return cls(path, reasons, counts)

    def of_file(self, file: str) -> int:
        """The number of tests of a file that are listed one by one."""
        return sum(count for test, count in self.counts.items() if test.startswith(file + "::"))

    def differences(self, results: dict[str, Judged]) -> list[str]:
        """What runs found that the list does not say, and the other way round."""
        results = {file: judged for file, judged in results.items() if judged}
        found = _outside(results)
        listed = {test: count for test, count in self.counts.items() if test.partition("::")[0] in results}
        return [
            f"out of scope {found.get(test, 0)} times, listed as that {listed.get(test, 0)} times: {test}"
            for test in sorted(found.keys() | listed.keys())
            if found.get(test, 0) != listed.get(test, 0)
        ]

    def update(self, results: dict[str, Judged], scope: Scope, files: Iterable[str]) -> None:
        """Take over what is out of scope in the files that were run, and the files that are not run."""
        results = {file: judged for file, judged in results.items() if judged}
        rows = {test: why for test, why in self.reasons.items() if "::" in test}
        rows = {test: why for test, why in rows.items() if test.partition("::")[0] not in results}
        counts = {test: self.counts[test] for test in rows}
        counts.update(_outside(results))
        for judged in results.values():
            for test, record in judged.items():
                if record["outcome"] == "out of scope":
                    rows[function_of(test)] = record["reason"]
        rows.update({file: reason for file in files if (reason := scope.file_reason(file))})
        text = ["# Tests of PyTensor that are out of scope, by reason; `run.py --update` keeps the list."]
        text += ["# Behind a test stands how many of its parameters are, if they are several."]
        for reason in sorted(set(rows.values())):
            named = sorted(test for test, why in rows.items() if why == reason)
            many = {test: f" {counts[test]}" for test in named if counts.get(test, 1) > 1}
            text += ["", f"## {reason}", *(test + many.get(test, "") for test in named)]
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n".join(text) + "\n")
        self.reasons, self.counts = rows, counts


def _outside(results: dict[str, Judged]) -> Counter[str]:
    return Counter(
        function_of(test)
        for judged in results.values()
        for test, record in judged.items()
        if record["outcome"] == "out of scope"
    )


@dataclass
class Sums:
    """The tests of one file, or of all."""

    collected: int = 0
    in_scope: int = 0
    passed: int = 0
    listed: int = 0
    skipped: int = 0
    out_of_scope: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def row(self, title: str) -> str:
        cells = (f"{getattr(self, each.name):,}" for each in fields(self))
        return f"| {title} | {' | '.join(cells)} |"

    @property
    def is_missing(self) -> bool:
        """Whether a file has tests that were not run."""
        return self.collected != self.in_scope + self.skipped + self.out_of_scope

    @classmethod
    def of(cls, judged: Judged, listed: int) -> Sums:
        """Of the results of a file, of which this many are listed as failing."""
        count = Counter(record["outcome"] for record in judged.values())
        in_scope = count["passed"] + listed
        total = in_scope + count["skipped"] + count["out of scope"]
        return cls(total, in_scope, count["passed"], listed, count["skipped"], count["out of scope"])


HEAD = """
A test that is *listed* fails, and `tests/conformance/expected/{version}.txt` says why. The file of this name
in `tests/conformance/outside` says what is *out of scope*, and why. *Skipped* are tests that PyTensor itself
skips or that need a package that is not there. *Collected* are the tests that PyTensor itself collects.

| file | collected | in scope | pass | listed | skipped | out of scope |
|---|---:|---:|---:|---:|---:|---:|
"""


def section(page: str, title: str, body: str) -> str:
    """A page with the section of this title renewed, or added at its end."""
    before, found, after = page.partition(f"\n## {title}\n")
    rest = after.partition("\n## ")
    after = "\n## " + rest[2] if found and rest[1] else ""
    return f"{before.rstrip()}\n\n## {title}\n{body.rstrip()}\n{after}"


def write(version: str, rows: dict[str, Sums], page: Path = PAGE) -> None:
    """Renew the table of a version in docs/long-runs.md."""
    total = sum(rows.values(), Sums())
    share = 100 * total.passed / max(1, total.in_scope)
    missing = [file for file, sums in rows.items() if sums.is_missing]
    note = f", {len(missing)} files not run" if missing else ""
    lines = [total.row(f"all: {share:.1f} % of those in scope pass{note}")]
    lines += [sums.row(file.removeprefix("tests/")) for file, sums in sorted(rows.items())]
    body = HEAD.format(version=version) + "\n".join(lines)
    text = page.read_text(encoding="utf-8") if page.exists() else "# Long runs\n"
    page.write_text(section(text, f"PyTensor {version}'s own tests", body), encoding="utf-8")


def read_rows(version: str, page: Path = PAGE) -> dict[str, Sums]:
    """The table of a version, by file; the line of the totals has the name "all"."""
    text = page.read_text(encoding="utf-8").partition(f"\n## PyTensor {version}'s own tests\n")[2]
    rows = {}
    for line in text.partition("\n## ")[0].splitlines():
        title, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if title.startswith("all: ") or title.endswith(".py"):
            rows[title.partition(":")[0]] = Sums(*(int(cell.replace(",", "")) for cell in cells))
    return rows


def accounts(
    files: Iterable[str], results: dict[str, Judged], expected: Expected, path: Path
) -> dict[str, Sums]:
    """The sums of all files: those that were run, and those that are out of scope as a whole."""
    counts, rows = collected(path), {}
    for file in files:
        listed = sum(test.partition("::")[0] == file for test in expected.reasons)
        if results.get(file) == {}:
            rows[file] = Sums(counts.get(file, 0), listed, 0, listed)
        elif file in results:
            rows[file] = Sums.of(results[file], listed)
        else:
            rows[file] = Sums(collected=counts.get(file, 0), out_of_scope=counts.get(file, 0))
    return rows


def vanished(results: dict[str, Judged], path: Path) -> list[str]:
    """The files of which PyTensor collects other numbers of tests than graphc."""
    counts = collected(path)
    return [
        f"PyTensor collects {counts[file]} tests, graphc has results of {len(judged)}: {file}"
        for file, judged in results.items()
        if file in counts and counts[file] != len(judged)
    ]

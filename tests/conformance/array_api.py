# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the test suite of the array API standard on ``env.array_api`` and hold the outcome against a list.

``make conformance-array-api`` calls it. The suite is no part of the project: its archive lies in
``../shared/suites`` or in the folder that SUITES names, or its repository is cloned with ``--clone``.
Expected failures are in ``array_api.txt``, with reasons; a failure that is not listed and a listed test that
passes are errors. Generated inputs are the same in each run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ARCHIVE = "array-api-tests.tar.gz"
CLONE = "https://github.com/data-apis/array-api-tests"
NAMESPACE = 'import graphc; xp = graphc.immediate.Environment(name="graphc", mode="{mode}").array_api'


def unpack(suites: Path, work: Path, clone: bool, version: str) -> Path | None:
    """The folder of the suite; None where there is neither an archive nor leave to clone."""
    folder = work / "array-api-tests"
    if not (folder / "conftest.py").exists():
        if (suites / ARCHIVE).exists():
            with tarfile.open(suites / ARCHIVE) as archive:
                archive.extractall(work, filter="data")
        elif clone:
            subprocess.run(["git", "clone", "-q", "--recurse-submodules", CLONE, folder], check=True)
        else:
            return None
    # The suite looks whether the text of the standard is there, and reads the stubs only.
    (folder / "array-api" / "spec" / version / "API_specification").mkdir(parents=True, exist_ok=True)
    return folder


def run(folder: Path, options: argparse.Namespace) -> dict[str, str]:
    """The outcome of each test."""
    results = folder.parent / "array-api-results.json"
    results.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": f"exec('{NAMESPACE.format(mode=options.mode)}')",
        "ARRAY_API_TESTS_VERSION": options.standard,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += [
        "-n",
        str(options.jobs),
        "--disable-deadline",
        "--derandomize",
        "--max-examples",
        str(options.examples),
    ]
    command += ["--json-report", f"--json-report-file={results}"]
    command += ["--json-report-omit", "collectors", "log", "traceback", "streams", "warnings"]
    command += ["-k", options.only] if options.only else []
    subprocess.run([*command, "array_api_tests"], cwd=folder, env=environment, check=False)
    tests = json.loads(results.read_text())["tests"] if results.exists() else []
    return {test["nodeid"]: test["outcome"] for test in tests}


def expected_failures(path: Path = HERE / "array_api.txt") -> dict[str, str]:
    """The listed tests with their reasons: a comment is the reason of what follows it."""
    found: dict[str, str] = {}
    reason = ""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line:
            found[line] = reason
    return found


def problems(outcomes: dict[str, str], expected: dict[str, str], whole: bool) -> list[str]:
    """What differs from the list.

    Args:
        outcomes: of the tests that ran.
        expected: tests that fail, with reasons.
        whole: whether all tests ran, so that listed ones must be among them.
    """
    failed = {test for test, outcome in outcomes.items() if outcome not in ("passed", "skipped")}
    found = [f"fails and is not listed: {test}" for test in sorted(failed - expected.keys())]
    for test in expected:
        if test in outcomes and test not in failed:
            found.append(f"is listed and has not failed: {test}")
        elif whole and test not in outcomes:
            found.append(f"is listed and does not exist: {test}")
    return found if outcomes else ["no test ran"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=Path, default=ROOT.parent / "shared" / "suites")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "conformance")
    parser.add_argument("--clone", action="store_true", help="clone the suite if there is no archive")
    parser.add_argument("--standard", default="2024.12", help="version of the standard")
    parser.add_argument("--examples", type=int, default=100, help="generated inputs of each test")
    parser.add_argument("--mode", default="fast_run", help="how functions are compiled")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="an expression for pytest's -k")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    folder = unpack(options.suites, options.work, options.clone, options.standard)
    if folder is None:
        print(f"conformance: NOT RUN, no {ARCHIVE} in {options.suites}; give SUITES=folder or --clone")
        return 2
    outcomes = run(folder, options)
    found = problems(outcomes, expected_failures(), whole=not options.only)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(Counter(outcomes.values()).items()))
    print(f"array API {options.standard}, {options.examples} examples: {counts}")
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

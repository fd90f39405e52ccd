# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run PyTensor's own tests on graphc and hold the outcome against the list of expected failures.

``make conformance`` calls it; ``--help`` lists the options. The archives of the suites are not part of the
project: they lie in ``../shared/suites``, in the folder that SUITES names, or are cloned with ``--clone``.
A run goes file by file and continues where it stopped, as long as graphc's sources are the same
(``--resume``: also when they are not). Where ``collected/VERSION.txt`` exists, all tests are accounted for:
see `accounts`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import accounts
import outcomes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSIONS = ("3.3.0", "3.0.7", "2.38.3")
CLONE = "https://github.com/pymc-devs/{}"
SECONDS = 300  # for one test
SILENCE = 420  # a process that reports nothing for so long is killed


@dataclass(frozen=True)
class Way:
    """How tests reach graphc.

    Args:
        plugin: of pytest, in this folder.
        scope: the file of rules in this folder.
        prefix: of the names of results and of lists of expected failures.
        environment: variables for the processes that run tests.
        project: whose tests they are, and the form of its tags.
        arguments: of pytest.
        wording: that messages are compared, and not their classes alone.
        reference: another way; what fails on graphc counts if it passes there.
    """

    plugin: str
    scope: str
    prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    project: tuple[str, str] = ("pytensor", "rel-{}")
    arguments: tuple[str, ...] = ("--runslow",)
    wording: bool = False
    reference: Way | None = None


IMPORTED = Way("conformance_plugin", "scope.toml")


@dataclass(frozen=True)
class Suite:
    """An unpacked suite and the folder of its results."""

    folder: Path
    results: Path
    way: Way

    def files(self) -> list[str]:
        found = self.folder.glob("tests/**/test_*.py")
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def modules(self) -> list[str]:
        """Paths that the suite imports as modules of PyTensor, and their packages."""
        found: set[str] = set()
        for path in self.folder.glob("tests/**/*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module)
        split = [name.split(".") for name in found if name.split(".")[0] == "pytensor"]
        return sorted({".".join(parts[:i]) for parts in split for i in range(1, len(parts) + 1)})

    def result_file(self, file: str) -> Path:
        return self.results / (file.replace("/", "-") + ".jsonl")


def unpack(way: Way, version: str, suites: Path, work: Path, clone: bool) -> Path | None:
    """The folder of a suite, unpacked when needed; None if it is not there."""
    project, tag = way.project[0], way.project[1].format(version)
    target, archive = work / f"{project}-{tag}", suites / f"{project}-tests-{version}.tar.gz"
    if target.exists():
        return target
    if (suites / target.name).exists():
        return suites / target.name
    if archive.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
    elif clone:
        options = ["--quiet", "--branch", tag, "--depth", "1"]
        subprocess.run(["git", "clone", *options, CLONE.format(project), str(target)], check=True)
    return target if target.exists() else None


def sources() -> str:
    """A fingerprint of what a result depends on: graphc's sources and this folder's Python files."""
    digest = hashlib.sha256()
    for top in ("compiler", "dialects", "runtime", "tests/conformance"):
        for path in sorted((ROOT / top).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_file(
    suite: Suite,
    file: str,
    modules: list[str],
    scope: outcomes.Scope,
    fingerprint: str,
    tests: list[str] | None = None,
) -> None:
    """Run the tests of a file, or these of them, that have no result yet; one that ends the process counts as
    failed.
    """
    results = suite.result_file(file)
    settings = {
        "results": str(results),
        "modules": modules,
        "seconds": SECONDS,
        "attributes": list(scope.attributes),
        "left_out": scope.left_out,
        "nodes": scope.nodes,
        "words": scope.words,
        "wording": suite.way.wording,
        "tests": tests,
    }
    python_path = [HERE, *(ROOT / top for top in ("compiler", "dialects", "runtime", "tools"))]
    environment = {
        "OPENBLAS_NUM_THREADS": "1",  # whose threads wait for each other in loops
        **os.environ,
        **suite.way.environment,
        "CONFORMANCE": json.dumps(settings),
        "PYTHONPATH": os.pathsep.join(map(str, python_path)),
        "GRAPHC_CACHE_DIR": "",
    }
    pytest = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(suite.folder)]
    plugins = ["-p", "recording", "-p", suite.way.plugin]
    command = ["nice", *pytest, *plugins, "-q", "--no-header", "--tb=no", *suite.way.arguments, file]
    while True:
        log = results.with_suffix(".log")
        with log.open("w") as out:
            process = subprocess.Popen(command, cwd=suite.folder, env=environment, stdout=out, stderr=out)
            _watch(process, results)
        if process.returncode in (0, 1, 5):
            break
        started = outcomes.unfinished(results)
        if started is None:
            outcomes.append(
                results, test=file, outcome="failed", error="pytest ended: " + log.read_text()[-400:]
            )
            break
        outcomes.append(
            results, test=started, outcome="failed", error=f"process ended ({process.returncode})"
        )
    outcomes.append(results, done=fingerprint)


def _watch(process: subprocess.Popen[bytes], results: Path) -> None:
    """Wait for a process; kill it when its results do not grow."""
    last = time.monotonic()
    size = -1
    while process.poll() is None:
        time.sleep(0.5)
        now = results.stat().st_size if results.exists() else 0
        if now != size:
            size, last = now, time.monotonic()
        elif time.monotonic() - last > SILENCE:
            process.kill()


def run(suite: Suite, files: list[str], scope: outcomes.Scope, options: argparse.Namespace) -> None:
    fingerprint, modules = sources(), suite.modules()
    suite.results.mkdir(parents=True, exist_ok=True)
    print_lock = threading.Lock()

    def one(file: str) -> None:
        results = suite.result_file(file)
        if options.failed:
            outcomes.keep_passed(results)
        elif options.again or not (options.resume or outcomes.is_of(results, fingerprint)):
            results.unlink(missing_ok=True)
        if not outcomes.is_done(results):
            run_file(suite, file, modules, scope, fingerprint)
        with print_lock:
            print(outcomes.line(file, scope.judge(outcomes.read(results))), flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, files))


def with_reference(
    suite: Suite, reference: Suite, results: dict[str, outcomes.Judged], scope: outcomes.Scope, known: bool
) -> dict[str, outcomes.Judged]:
    """Put tests out of scope that fail in the reference too, where they are run once.

    Args:
        suite: on graphc.
        reference: the same tests in the other way.
        results: of the suite.
        scope: its rules.
        known: run nothing.
    """
    reference.results.mkdir(parents=True, exist_ok=True)
    found = {}
    for file, judged in results.items():
        failed = [test for test, record in judged.items() if record["outcome"] == "failed"]
        path = reference.result_file(file)
        if not known and not set(failed) <= set(outcomes.read(path)):
            run_file(reference, file, [], scope, "reference", failed)
        there = outcomes.read(path)
        same = {"outcome": "out of scope", "reason": "does not pass in the default mode"}
        lost = [test for test in failed if there.get(test, {}).get("outcome", "passed") != "passed"]
        found[file] = {**judged, **{test: {**judged[test], **same} for test in lost}}
    return found


def _options(version: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="parts of file names: only these files")
    parser.add_argument("--version", default=version, help=f"one of {', '.join(VERSIONS)}")
    parser.add_argument("--suites", type=Path, default=ROOT.parent / "shared" / "suites")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "conformance")
    parser.add_argument("--clone", action="store_true", help="clone the suite's tag if there is no archive")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a representative part, about a minute")
    parser.add_argument("--resume", action="store_true", help="keep results of older sources")
    parser.add_argument("--again", action="store_true", help="keep no results")
    parser.add_argument("--failed", action="store_true", help="keep results of tests that passed")
    parser.add_argument(
        "--report", action="store_true", help="run nothing, report the results that there are"
    )
    parser.add_argument("--update", action="store_true", help="write the lists and the table of the files")
    parser.add_argument("--collect", metavar="PYTHON", help="count the tests as this PyTensor collects them")
    return parser.parse_args()


def main(way: Way = IMPORTED, version: str = VERSIONS[0]) -> int:
    options = _options(version)
    options.work.mkdir(parents=True, exist_ok=True)
    folder = unpack(way, options.version, options.suites, options.work, options.clone)
    if folder is None:
        print(
            f"conformance: NOT RUN, no tests of {way.project[0]} {options.version} in {options.suites}; ",
            end="",
        )
        print("give SUITES=folder or CONFORMANCE_ARGS=--clone")
        return 0 if options.quick else 2
    name = way.prefix + options.version
    suite = Suite(folder, options.work / f"results-{name}", way)
    scope = outcomes.Scope.read(HERE / way.scope)
    files = [file for file in suite.files() if scope.file_reason(file) is None]
    collected = HERE / "collected" / f"{name}.txt"
    if options.collect:
        accounts.collect(options.collect, folder, collected)
        return 0
    if options.quick:
        files = [file for file in files if file in scope.quick]
    if options.files:
        files = [file for file in files if any(part in file for part in options.files)]
    if not options.report:
        run(suite, files, scope, options)
    found = {file: suite.result_file(file) for file in files}
    results = {
        file: scope.judge(outcomes.read(path)) if outcomes.is_done(path) else {}
        for file, path in found.items()
    }
    if way.reference is not None:
        other = options.work / f"results-{way.reference.prefix}{options.version}"
        results = with_reference(suite, Suite(folder, other, way.reference), results, scope, options.report)
    expected = outcomes.Expected.read(HERE / "expected" / f"{name}.txt")
    outside = accounts.Outside.read(HERE / "outside" / f"{name}.txt")
    whole = not way.prefix and accounts.collected(collected)
    if options.update:
        expected.update(results)
        if whole:
            outside.update(results, scope, suite.files())
    differences = outside.differences(results) + accounts.vanished(results, collected) if whole else []
    if options.update and whole and not (options.quick or options.files):
        accounts.write(options.version, accounts.accounts(suite.files(), results, expected, collected))
    return outcomes.report(results, expected, differences)


if __name__ == "__main__":
    sys.exit(main())

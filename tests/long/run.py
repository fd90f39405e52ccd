# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What takes hours, one after the other: `make long`. Figures go to docs/long-runs.md with date and commit.

python tests/long/run.py                          everything
python tests/long/run.py --minutes 120            of fuzzing
python tests/long/run.py --steps fuzz,leaks       some of it; the other lines of the table stay
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "long-runs.md"
RESULTS = ROOT / "results" / "long"
HEAD = """# Long runs

What `make long` does, and what came out. It runs for hours, so that it is no part of `make test`.
A run of some of the steps (`make long LONG_ARGS="--steps fuzz,leaks"`) renews their lines.

| step | outcome | minutes | date | commit |
|---|---|---:|---|---|
"""


def last_line(output: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def damage_counts(output: str) -> str:
    """How many damaged files were refused, and how many could be read; each line has kind, fate, number."""
    fates: Counter[str] = Counter()
    for line in output.splitlines():
        *_, fate, number = line.split()
        fates[fate] += int(number)
    return ", ".join(f"{number:,} {fate}" for fate, number in sorted(fates.items(), reverse=True))


def fuzz_counts(output: str) -> str:
    """The counts of a campaign, which are the last JSON object that it prints."""
    counts = json.loads(output[output.rindex('{\n "counts"') :])["counts"]
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if isinstance(number, int))


@dataclass(frozen=True)
class Step:
    """A part of the run.

    Attributes:
        name: for ``--steps``.
        title: what the table calls it.
        command: words after the interpreter; {minutes} and {jobs} and {suites} are replaced.
        outcome: what to show of what it prints.
        peers: it is told the interpreter that has the peers.
    """

    name: str
    title: str
    command: str
    outcome: Callable[[str], str] = last_line


STEPS = (
    Step("artifacts", "artifacts with damaged bytes", "tests/fuzz/mutated_artifacts.py", damage_counts),
    Step(
        "fuzz",
        "random programs, evaluated in every way",
        "tests/fuzz/campaign.py --minutes {minutes} --jobs {jobs} --results results/fuzz",
        fuzz_counts,
    ),
    Step("inputs", "tests with generated inputs, 500 each", "-m pytest -q -n {jobs} -m fuzz"),
    Step("leaks", "memory that compiling and calling leaves", "tests/long/leaks.py"),
    Step("pytensor", "PyTensor's tests on graphc", "tests/conformance/run.py --suites {suites}"),
    Step(
        "array-api",
        "the array API standard's tests",
        "tests/conformance/array_api.py --suites {suites} --jobs {jobs}",
        lambda output: next(line for line in output.splitlines() if line.startswith("array API")),
    ),
    Step("bench", "benchmarks, [all lines](benchmarks.md)", "tests/bench/run.py --peers-python {peers}"),
)


def rows_of(page: str) -> dict[str, str]:
    """The lines of a page's first table, by step; other programs write the sections after it."""
    page = page.partition("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| step")]
    return {row.split("|")[1].strip(): row for row in rows}


def row(step: Step, outcome: str, seconds: float, commit: str) -> str:
    """A line of the table."""
    cell = outcome.replace("|", "\\|")
    return f"| {step.title} | {cell} | {seconds / 60:.0f} | {datetime.date.today()} | {commit} |"


def commit_of(root: Path) -> str:
    """The commit that runs; with a plus where files differ from it."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def run(step: Step, values: dict[str, str]) -> tuple[str, float, bool]:
    """Outcome, seconds, and whether it succeeded; the whole output goes to a file."""
    words = [word.format(**values) for word in shlex.split(step.command)]
    environment = {**os.environ, "FUZZ_EXAMPLES": os.environ.get("FUZZ_EXAMPLES", "500")}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{step.name}.log").write_text(done.stdout, encoding="utf-8")
    try:
        outcome = step.outcome(done.stdout)
    except (ValueError, KeyError, StopIteration):
        outcome = last_line(done.stdout)
    if done.returncode:
        return f"**failed** with exit code {done.returncode}: {outcome}", seconds, False
    return outcome, seconds, True


def main(argv: Sequence[str] | None = None, steps: Sequence[Step] = STEPS, page: Path = PAGE) -> int:
    """Runs the steps; 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [step.name for step in steps]
    parser.add_argument("--steps", default=",".join(names), help=f"some of {', '.join(names)}")
    parser.add_argument("--minutes", default="120", help="of fuzzing")
    parser.add_argument("--jobs", default="2", help="processes")
    parser.add_argument("--suites", default=str(ROOT.parent / "shared" / "suites"), help="folder of archives")
    parser.add_argument("--peers-python", dest="peers", default=sys.executable, help="has PyTensor and JAX")
    options = parser.parse_args(argv)
    chosen = options.steps.split(",")
    if unknown := set(chosen) - set(names):
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    values = {key: getattr(options, key) for key in ("minutes", "jobs", "suites", "peers")}
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    rows, sections = rows_of(before), "".join(before.partition("\n## ")[1:])
    commit, failed = commit_of(ROOT), False
    for step in steps:
        if step.name not in chosen:
            continue
        print(f"{step.name} ...", flush=True)
        outcome, seconds, succeeded = run(step, values)
        failed |= not succeeded
        print(f"{step.name}: {outcome} ({seconds / 60:.1f} min)", flush=True)
        rows[step.title] = row(step, outcome, seconds, commit)
        machine = (
            f"\nThe last line that was renewed ran on {platform.machine()} with {os.cpu_count()} cores.\n"
        )
        order = [rows[each.title] for each in steps if each.title in rows]
        page.write_text(HEAD + "\n".join(order) + "\n" + machine + sections, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

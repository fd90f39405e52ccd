# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the benchmark: `make bench`, or `python tests/bench/run.py [--part PART] [--quick] [--only NAME ...]`.

Every library has a process of its own, and each line is measured in turns (graphc, PyTensor, JAX,
torch.compile, NumPy, code by hand, and again), so that a busy moment of the machine hits all of them. The
best time counts. Writes `results/bench.json` and, once all parts are in it, `docs/benchmarks.md`; parts may
be measured one after the other (`--part arrays`, `--part loops`, `--part fresh`). A peer that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine
import tables
from all_cases import CASES
from bytecode import compile_sources
from cases import Case
from libraries import BY_HAND, NAMES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOO_SLOW = 3.0  # seconds: a compilation that takes longer is not repeated
# What can be measured apart: lines of arrays, loops and models, and what needs fresh processes.
PARTS = ("arrays", "loops", "fresh")


class Process:
    """A worker: one library in its own interpreter."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python, str(HERE / "worker.py"), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hello = self._read()

    def ask(self, case: str, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"case": case, **request}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.name} worker ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the worker."""
        self._process.communicate()


def chosen(parts: list[str], only: list[str]) -> list[Case]:
    """The lines of these parts, or those of these names."""
    if only:
        return [case for case in CASES if case.name in only]
    return [case for case in CASES if ("arrays" if case.section == "other" else "loops") in parts]


def steady(
    workers: list[Process], cases: list[Case], rounds: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """The best time of every case and library, in seconds."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        row = found.setdefault(case.name, {})
        for _ in range(rounds):
            for worker in workers:
                if set(row.get(worker.name, {})) & {"absent", "error"}:
                    continue
                answer = worker.ask(case.name, seconds=seconds)
                if "best" in answer and worker.name in row:
                    answer["best"] = min(answer["best"], row[worker.name]["best"])
                row[worker.name] = answer
            if case.moved:
                (numpy,) = (worker for worker in workers if worker.name == "numpy")
                answer = numpy.ask(case.name, seconds=seconds, moved=case.moved)
                row["copy"] = min(answer, row.get("copy", answer), key=lambda found: found["best"])
        if "best" in row.get("graphc", {}):
            (ours,) = (worker for worker in workers if worker.name == "graphc")
            row["graphc"] |= ours.ask(case.name, took=row["graphc"]["best"])
        print(tables.progress(case, row), flush=True)
    return found


def add_memory(workers: list[Process], found: dict[str, dict[str, Any]]) -> None:
    """Ask for the memory of each loop and model that was timed, and put it beside the time."""
    for case in CASES:
        for worker in workers if case.section != "other" else []:
            if worker.name in BY_HAND:
                continue
            answer = found.get(case.name, {}).get(worker.name, {})
            if "best" in answer:
                answer |= worker.ask(case.name)


def _cold(python: str, name: str, what: str, cache: str, scratch: str) -> dict[str, Any]:
    environment = {
        **os.environ,
        "GRAPHC_CACHE_DIR": cache,
        "PYTENSOR_FLAGS": f"base_compiledir={scratch}/pytensor",
        "NUMBA_CACHE_DIR": f"{scratch}/numba",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
    }
    done = subprocess.run(
        [python, str(HERE / "cold.py"), name, what], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message"}
    times: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return times


def cold(pythons: dict[str, str], repeats: int) -> dict[str, dict[str, Any]]:
    """What fresh processes wait for: the run with the shortest first result, by line and library."""
    found: dict[str, dict[str, Any]] = {}
    for what in ("first_call", "deep", "scan_ar1", "scan_rnn", "scan_garch"):
        for name in ("graphc", "pytensor", "jax", "torch"):
            if name not in pythons or (name == "torch" and what.startswith("scan")):
                continue
            runs = []
            for _ in range(repeats):
                with tempfile.TemporaryDirectory() as scratch:
                    runs.append(_cold(pythons[name], name, what, "", scratch))
                if runs[-1].get("first", 0.0) > TOO_SLOW:
                    break
            found.setdefault(what, {})[name] = min(runs, key=lambda run: run.get("first", float("inf")))
            print(f"{what:<16} {name:<9} {found[what][name]}", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            runs = [
                _cold(pythons["graphc"], "graphc", what, f"{scratch}/cache", scratch)
                for _ in range(repeats + 1)
            ]
        best = min(runs[1:], key=lambda run: run.get("first", float("inf")))
        compilers = sorted({module for run in runs[1:] for module in run.get("loaded", ())} - {"scipy"})
        if compilers:
            best = {"error": f"a function from the disk cache loaded {', '.join(compilers)}"}
        found.setdefault(f"{what}_cached", {})["graphc"] = best
        print(f"{what + '_cached':<16} graphc    {best}", flush=True)
    return found


def long(pythons: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The loop of `scan_lines.LONG` steps, with the memory it needs, in fresh processes."""
    found = {}
    for name in ("graphc", "pytensor", "jax"):
        if name in pythons:
            with tempfile.TemporaryDirectory() as scratch:
                found[name] = _cold(pythons[name], name, "scan_long", "", scratch)
            print(f"{'scan_long':<16} {name:<9} {found[name]}", flush=True)
    return {"scan_long": found}


def switch(seconds: float) -> list[dict[str, Any]]:
    """What computing joins in place saves, in a process of its own; an error has the key `error`."""
    command = [sys.executable, str(HERE / "join_switch.py"), "--json", "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [{"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message"}]
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for row in rows:
        print(tables.switch_progress(row), flush=True)
    return rows


def main() -> int:
    """Measure, print and write; the exit status is 1 when a result was wrong or a library failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--peers-python", default=sys.executable, help="interpreter in which the peers are installed"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, and no page is written")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these lines, and no page is written"
    )
    parser.add_argument(
        "--part",
        nargs="+",
        choices=PARTS,
        help="only these: lines of arrays; loops and models; what needs fresh processes",
    )
    parser.add_argument("--json", type=Path, default=ROOT / "results" / "bench.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()

    compile_sources()
    pythons = {
        name: sys.executable if name in ("graphc", "numpy", "c") else arguments.peers_python
        for name in (*NAMES, *BY_HAND)
    }
    workers = [Process(name, python) for name, python in pythons.items()]
    for worker in [w for w in workers if "absent" in w.hello]:
        print(f"{worker.name} is left out: {worker.hello['absent']}")
        workers.remove(worker)
        pythons.pop(worker.name)
    if "graphc" not in pythons:
        return 1
    parts = arguments.part or list(PARTS)
    result: dict[str, Any] = {"machine": machine.describe(), "versions": _versions(workers)}
    rounds, seconds = (1, 0.1) if arguments.quick else (4, 0.3)
    result["steady"] = steady(workers, chosen(parts, arguments.only), rounds, seconds)
    add_memory(workers, result["steady"])
    for worker in workers:
        worker.close()
    if "fresh" in parts and not arguments.only:
        result["switch"] = switch(2 * seconds)
        result["cold"] = cold(pythons, 1 if arguments.quick else 4)
        if not arguments.quick:
            result["cold"] |= long(pythons)
    return _write(result, arguments, parts)


def _versions(workers: list[Process]) -> dict[str, str]:
    return {worker.name: worker.hello["version"] for worker in workers}


def _write(result: dict[str, Any], arguments: argparse.Namespace, parts: list[str]) -> int:
    """Adds to what was measured of other parts, by the same versions on the same machine; the page is written
    when nothing is missing.
    """
    whole = not (arguments.quick or arguments.only)
    result["parts"] = parts if whole else []
    if whole and arguments.part and arguments.json.exists():
        result = _merged(json.loads(arguments.json.read_text()), result)
    result["lines"] = tables.lines(result)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    page = tables.page(result)
    print("\n" + page)
    if set(result["parts"]) == set(PARTS):
        arguments.page.write_text(page)
    measured = [
        a for part in ("steady", "cold") for row in result.get(part, {}).values() for a in row.values()
    ]
    return 1 if any("error" in answer for answer in [*measured, *result.get("switch", [])]) else 0


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    if any(before.get(key) != now[key] for key in ("machine", "versions")) or not before.get("parts"):
        return now
    merged = before | now
    merged["steady"] = before["steady"] | now["steady"]
    merged["parts"] = sorted({*before["parts"], *now["parts"]})
    return merged


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From measured times to lines with ratios, goals and verdicts, and to the page in docs/."""

from __future__ import annotations

from typing import Any

from cases import CASES, Case
from libraries import NAMES

SCALE = {"ns": 1e9, "us": 1e6, "ms": 1e3}

# Lines of fresh processes: (key, time in it, title, goal in seconds).
COLD = [
    ("first_call", "import_graphc", "`import graphc`, without NumPy's own import", 0.150),
    ("first_call", "load_compiler", "loading MLIR and LLVM", 0.35),
    ("first_call", "first", "compile and first call of `x + 1`, compiler loaded", 0.08),
    ("deep", "first", "the same, 300 operations with gradient", 1.0),
    ("first_call_cached", "first", "`x + 1` from the disk cache, no compiler loaded", 0.02),
    ("deep_cached", "first", "300 operations with gradient from the disk cache", None),
]


def show(seconds: float | None, unit: str) -> str:
    """A time in its unit with three digits; a dash for none."""
    if seconds is None:
        return "-"
    value = seconds * SCALE[unit]
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def progress(case: Case, row: dict[str, Any]) -> str:
    """One line of the terminal."""
    parts = [
        f"{name} {show(answer['best'], case.unit) if 'best' in answer else answer.get('error', 'absent')}"
        for name, answer in row.items()
    ]
    return f"{case.name:<16} [{case.unit}] " + ", ".join(parts)


def _line(title: str, unit: str, times: dict[str, float], goals: list[tuple[str, float]]) -> dict[str, Any]:
    ours = times.get("graphc")
    verdict = None if ours is None or not goals else all(ours <= limit for _, limit in goals)
    return {
        "title": title,
        "unit": unit,
        "seconds": times,
        "ratios": {name: times[name] / ours for name in NAMES[1:] if ours and name in times},
        "goal": "; ".join(text for text, _ in goals),
        "met": verdict,
    }


def _steady_line(case: Case, row: dict[str, Any]) -> dict[str, Any]:
    times = {name: answer["best"] for name, answer in row.items() if "best" in answer}
    goals = []
    if case.goal is not None:
        goals.append((f"{show(case.goal, case.unit)} {case.unit}", case.goal))
    goals += [(f"{name} / {factor:g}", times[name] / factor) for name, factor in case.lead if name in times]
    compilers = [times[name] for name in ("pytensor", "jax") if name in times]
    if case.goal is None and compilers:
        goals.append(("the better of PyTensor and JAX", min(compilers)))
    return _line(case.title, case.unit, times, goals)


def lines(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Every line with its ratios (peer's time over ours), goal and verdict (None: no goal or no time)."""
    found = [
        _steady_line(case, result["steady"][case.name]) for case in CASES if case.name in result["steady"]
    ]
    for key, field, title, goal in COLD if "cold" in result else []:
        times = {name: run[field] for name, run in result["cold"].get(key, {}).items() if field in run}
        found.append(_line(title, "ms", times, [(f"{goal * 1e3:g} ms", goal)] if goal else []))
    return found


def _row(line: dict[str, Any]) -> str:
    times = [show(line["seconds"].get(name), line["unit"]) for name in NAMES]
    ratios = [f"{line['ratios'][name]:.2f}" if name in line["ratios"] else "-" for name in NAMES[1:]]
    unmeasured = "**not measured**" if line["goal"] else "-"
    verdict = {True: "met", False: "**missed**", None: unmeasured}[line["met"]]
    return (
        "| " + " | ".join([line["title"], line["unit"], *times, *ratios, line["goal"] or "-", verdict]) + " |"
    )


def page(result: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    machine, versions = result["machine"], result["versions"]
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "graphc")
    header = ["line", "unit", *NAMES, *(f"{name} / graphc" for name in NAMES[1:]), "goal", ""]
    text = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Each library runs in a process of its own, they take turns on every line, and",
        "the best time counts. PyTensor runs its numba mode with `trust_input`; JAX runs `jit` in double",
        "precision with NumPy arrays in and out. A ratio is the peer's time over graphc's: above 1, graphc",
        "is faster. The goal of a line is an upper limit of graphc's time.",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores; {machine['system']};",
        f"{machine['python']}, {machine['mlir']}, {machine['llvm']}; peers: {peers}.",
        f"Date: {machine['date']}.",
        "",
        "| " + " | ".join(header) + " |",
        "|---|---|" + "---:|" * (len(NAMES) + len(NAMES) - 1) + "---|---|",
        *(_row(line) for line in result["lines"]),
        "",
    ]
    missed = [line["title"] for line in result["lines"] if line["met"] is False]
    text += ["Missed: " + ("; ".join(missed) if missed else "none") + ".", ""]
    problems = [
        f"- {key}, {name}: {answer['error']}"
        for part in ("steady", "cold")
        for key, row in result.get(part, {}).items()
        for name, answer in row.items()
        if "error" in answer
    ]
    return "\n".join([*text, *(["Failed:", "", *problems, ""] if problems else [])])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From measured times to lines with ratios, goals and verdicts, and to the page in docs/."""

from __future__ import annotations

from typing import Any

from all_cases import CASES
from cases import Case
from libraries import BY_HAND, NAMES
from memory import PRECISION
from scan_lines import LONG

SCALE = {"ns": 1e9, "us": 1e6, "ms": 1e3}
LONG_MEMORY = 50_000_000  # bytes that the loop of very many steps may take

# Lines of fresh processes: (key, time in it, title, goal in seconds).
COLD = [
    ("first_call", "import_graphc", "`import graphc`, without NumPy's own import", 0.150),
    ("first_call", "load_compiler", "loading MLIR and LLVM", 0.35),
    ("first_call", "first", "compile and first call of `x + 1`, compiler loaded", 0.08),
    ("deep", "first", "the same, 300 operations with gradient", 1.0),
    ("first_call_cached", "first", "`x + 1` from the disk cache, no compiler loaded", 0.02),
    ("deep_cached", "first", "300 operations with gradient from the disk cache", None),
]
LOOPS_COLD = [
    ("scan_ar1", "first", "compile and first call of `h = 0.9*h + x`, compiler loaded", 0.1),
    ("scan_rnn", "first", "the same, gradient of the recurrent network", 0.3),
    ("scan_garch", "first", "the same, GARCH(1,1) with gradient", 0.4),
    ("scan_ar1_cached", "first", "`h = 0.9*h + x` from the disk cache, no compiler loaded", 0.02),
    ("scan_rnn_cached", "first", "gradient of the recurrent network from the disk cache", 0.02),
    ("scan_garch_cached", "first", "GARCH(1,1) with gradient from the disk cache", 0.02),
    ("scan_long", "long", f"`h = 0.9*h + x`, {LONG:,} steps, last value only", None),
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
    return f"{case.name:<16} [{case.unit}] " + ", ".join(parts) + _limit(row.get("graphc", {}))


def _limit(answer: dict[str, Any]) -> str:
    """What graphc's call does, and the share of the machine's limit that it reaches."""
    found = answer.get("roofline")
    if found is None:
        return ""
    share = f"{found['least'] / answer['best']:.0%} of the limit"
    return f"; {_number(found['flops'])} flops, {_number(found['bytes'])} bytes, {share}"


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _line(title: str, unit: str, times: dict[str, float], goals: list[tuple[str, float]]) -> dict[str, Any]:
    ours = times.get("graphc")
    verdict = None if ours is None or not goals else all(ours <= limit for _, limit in goals)
    return {
        "title": title,
        "unit": unit,
        "seconds": times,
        "ratios": {name: times[name] / ours for name in (*NAMES[1:], *BY_HAND) if ours and name in times},
        "goal": "; ".join(text for text, _ in goals),
        "met": verdict,
    }


def _steady_line(case: Case, row: dict[str, Any]) -> dict[str, Any]:
    times = {name: answer["best"] for name, answer in row.items() if "best" in answer}
    goals = []
    if case.goal is not None:
        goals.append((f"{show(case.goal, case.unit)} {case.unit}", case.goal))
    goals += [
        (name if factor == 1 else f"{name} / {factor:g}", times[name] / factor)
        for name, factor in case.lead
        if name in times
    ]
    if "copy" in times:
        goals.append((f"1.5 copies ({show(times['copy'], case.unit)} {case.unit} each)", 1.5 * times["copy"]))
    compilers = [times[name] for name in ("pytensor", "jax") if name in times]
    if case.goal is None and compilers and not case.lead:
        goals.append(("the better of PyTensor and JAX", min(compilers)))
    if "torch" in times and not any(name == "torch" for name, _ in case.lead):
        goals.append(("torch", times["torch"]))
    found = _line(case.title, case.unit, times, goals)
    if "roofline" in row.get("graphc", {}):
        found["roofline"] = row["graphc"]["roofline"]
    if case.section == "other":
        return found
    found |= {"memory": _memory(row), "section": case.section}
    return _with_memory_goal(case, found)


def _with_memory_goal(case: Case, line: dict[str, Any]) -> dict[str, Any]:
    """The line with the memory of peers among its goals."""
    ours = line["memory"].get("graphc")
    for name, factor in case.memory_lead:
        if name not in line["memory"]:
            continue
        text = f"{name}'s MB" if factor == 1 else f"{name}'s MB / {factor:g}"
        line["goal"] = "; ".join(part for part in (line["goal"], text) if part)
        small = None if ours is None else ours <= line["memory"][name] / factor
        line["met"] = None if small is None or line["met"] is None else line["met"] and small
    return line


def _memory(row: dict[str, Any]) -> dict[str, int]:
    return {name: answer["memory"] for name, answer in row.items() if isinstance(answer.get("memory"), int)}


def _cold_line(
    result: dict[str, Any], key: str, field: str, title: str, goal: float | None
) -> dict[str, Any]:
    runs = result["cold"].get(key, {})
    times = {name: run[field] for name, run in runs.items() if field in run}
    return _line(title, "ms", times, [(f"{goal * 1e3:g} ms", goal)] if goal else [])


def lines(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Every line with its ratios (peer's time over ours), goal and verdict (None: no goal or no time).

    Those of loops and models also have `memory`, in bytes by library, and their `section`.
    """
    measured = [case for case in CASES if case.name in result["steady"]]
    steady = [_steady_line(case, result["steady"][case.name]) for case in measured]
    loops = [line for line in steady if "memory" in line]
    others = [line for line in steady if "memory" not in line]
    if "cold" not in result:
        return others + loops
    others += [_cold_line(result, *row) for row in COLD]
    for row in LOOPS_COLD:
        memory = _memory(result["cold"].get(row[0], {}))
        line = {**_cold_line(result, *row), "memory": memory, "section": "loops"}
        if row[0] == "scan_long":
            line["goal"] = f"{LONG_MEMORY / 1e6:g} MB"
            line["met"] = line["memory"]["graphc"] <= LONG_MEMORY if "graphc" in line["memory"] else None
        loops.append(line)
    return others + loops


def _row(line: dict[str, Any]) -> str:
    times = [show(line["seconds"].get(name), line["unit"]) for name in NAMES]
    ratios = [f"{line['ratios'][name]:.2f}" if name in line["ratios"] else "-" for name in NAMES[1:]]
    unmeasured = "**not measured**" if line["goal"] else "-"
    verdict = {True: "met", False: "**missed**", None: unmeasured}[line["met"]]
    memory = [_megabytes(line["memory"].get(name)) for name in NAMES] if "memory" in line else []
    cells = [line["title"], line["unit"], *times, *ratios, *memory, line["goal"] or "-", verdict]
    return "| " + " | ".join(cells) + " |"


def _megabytes(size: int | None) -> str:
    if size is None:
        return "-"
    return f"{size / 1e6:.1f}" if size > PRECISION else "<0.3"


def _table(lines: list[dict[str, Any]], memory: bool) -> list[str]:
    if not lines:
        return []
    header = ["line", "unit", *NAMES, *(f"{name} / graphc" for name in NAMES[1:])]
    header += [f"{name}, MB" for name in NAMES] if memory else []
    rule = "|---|---|" + "---:|" * (len(header) - 2) + "---|---|"
    return ["| " + " | ".join([*header, "goal", ""]) + " |", rule, *(_row(line) for line in lines), ""]


def _in(lines: list[dict[str, Any]], section: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("section") == section]


def _by_hand(lines: list[dict[str, Any]]) -> list[str]:
    chosen = [line for line in lines if set(BY_HAND) & set(line["seconds"])]
    if not chosen:
        return []
    text = [
        "## Written by hand",
        "",
        "The same lines in C (`tests/bench/by_hand.c`, `cc -O3 -march=native -fopenmp -ffast-math`) and in",
        "Python for numba (`parallel=True`, `fastmath=True`), which graphc does not use by default.",
        "",
        "| line | unit | graphc | numba | C | numba / graphc | C / graphc |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for line in chosen:
        times = " | ".join(show(line["seconds"].get(name), line["unit"]) for name in ("graphc", *BY_HAND))
        ratios = [f"{line['ratios'][name]:.2f}" if name in line["ratios"] else "-" for name in BY_HAND]
        text.append(f"| {line['title']} | {line['unit']} | {times} | {' | '.join(ratios)} |")
    return [*text, ""]


def _models(lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return []
    return [
        "## Models",
        "",
        "All libraries are told every size. MB is the peak of memory in a call, as for loops below.",
        "",
        *_table(lines, memory=True),
    ]


def switch_progress(row: dict[str, Any]) -> str:
    """One line of the terminal."""
    return f"switch           [us] {row['title']}: saved {row['saved']:.0%}"


def switch_table(rows: list[dict[str, Any]]) -> list[str]:
    """Times with joins computed in place, with operands of simple joins only, and with copies."""
    text = [
        "| line | on, us | off, us | allocating, us | saved | goal | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        times = " | ".join(show(row[name], "us") for name in ("on", "off", "allocating"))
        goal = "- | -"
        if row["goal"] is not None:
            goal = f"{row['goal']:.0%} | {'met' if row['saved'] >= row['goal'] else '**missed**'}"
        text.append(f"| {row['title']} | {times} | {row['saved']:.0%} | {goal} |")
    return [*text, ""]


def _switch(rows: list[dict[str, Any]]) -> list[str]:
    rows = [row for row in rows if "error" not in row]
    if not rows:
        return []
    return [
        "## Joins computed in place",
        "",
        "graphc against itself: with `graphc-join-buffer-elimination`; without it; and also without",
        "upstream's `eliminate-empty-tensors`, so that operands are allocated and copied.",
        "",
        *switch_table(rows),
    ]


def _limits(lines: list[dict[str, Any]]) -> list[str]:
    """What graphc's calls do, as the compiler counts it, against what the machine can do."""
    counted = [line for line in lines if "roofline" in line]
    if not counted:
        return []
    text = [
        "## Against the machine's limits",
        "",
        "What `f.report.roofline()` counts in each of graphc's functions, for these sizes: floating-point",
        "operations, functions such as `exp` (which the limit has by the operations of their code), bytes",
        "that each kernel reads or writes once. The limit is the sum over kernels of the longer time:",
        "that of operations at the rate of a matrix product, or of bytes at that of a copy.",
        "Shares above 100 %: data in caches; `?` stands for what is done inside of library kernels.",
        "",
        f"Machine: {counted[0]['roofline']['machine']}.",
        "",
        "| line | flops | functions | bytes | limit, us | graphc, us | share |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for line in counted:
        found, took = line["roofline"], line["seconds"]["graphc"]
        counts = " | ".join(_number(found[name]) for name in ("flops", "functions", "bytes"))
        times = f"{show(found['least'], 'us')} | {show(took, 'us')}"
        text.append(f"| {line['title']} | {counts} | {times} | {found['least'] / took:.0%} |")
    return [*text, ""]


def _loops(lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return []
    return [
        "## Loops",
        "",
        "`graphc.scan`, PyTensor's `scan`, `jax.lax.scan` and `while_loop`, and loops of Python. graphc and",
        "PyTensor are told every size but the number of steps. JAX gets `x @ U` of the recurrent network",
        "outside of the loop, and its own arrays as arguments. MB is the peak of memory in a call beyond",
        "arguments and results, as the system counts the pages of the process, to a quarter of a megabyte.",
        "",
        *_table(lines, memory=True),
    ]


def page(result: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    machine, versions = result["machine"], result["versions"]
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "graphc")
    text = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Each library runs in a process of its own, they take turns on every line, and",
        "the best time counts. PyTensor runs its numba mode with `trust_input`; JAX runs `jit` in double",
        "precision with NumPy arrays in and out; torch is `torch.compile` (Inductor), whose tensors share",
        "the memory of NumPy's arrays. A ratio is the peer's time over graphc's: above 1, graphc is faster.",
        "A line's goal is the longest time that graphc may take. A copy is NumPy's on one core, of as many",
        "bytes as the line must read and write.",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores; {machine['system']};",
        f"{machine['python']}, {machine['mlir']}, {machine['llvm']}; peers: {peers}.",
        f"Date: {machine['date']}.",
        "",
        *_table([line for line in result["lines"] if "memory" not in line], memory=False),
        *_by_hand(result["lines"]),
        *_switch(result.get("switch", [])),
        *_models(_in(result["lines"], "models")),
        *_loops(_in(result["lines"], "loops")),
        *_limits(result["lines"]),
    ]
    missed = [line["title"] for line in result["lines"] if line["met"] is False]
    missed += [
        f"saved of the {row['title']}"
        for row in result.get("switch", [])
        if row.get("goal") is not None and row["saved"] < row["goal"]
    ]
    text += ["Missed: " + ("; ".join(missed) if missed else "none") + ".", ""]
    problems = [
        f"- {key}, {name}: {answer['error']}"
        for part in ("steady", "cold")
        for key, row in result.get(part, {}).items()
        for name, answer in row.items()
        if "error" in answer
    ]
    problems += [f"- switch: {row['error']}" for row in result.get("switch", []) if "error" in row]
    return "\n".join([*text, *(["Failed:", "", *problems, ""] if problems else [])])

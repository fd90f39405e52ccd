# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From measured times of PyMC's models to a table with ratios, and to the page in docs/."""

from __future__ import annotations

import math
from typing import Any

import machine

Row = dict[str, dict[str, Any]]
PEERS = ("NUMBA", "JAX")
COLUMNS = ("GRAPHC", "GRAPHC_REWRITTEN", "GRAPHC_GRAD", *PEERS)
FASTER, COLD, CACHED = 1.5, 1.0, 0.03  # the goals: times as fast as the faster peer, seconds, seconds


def _time(found: dict[str, Any], key: str, scale: float = 1.0) -> str:
    value = found.get(key)
    return "-" if value is None or "error" in found else f"{value * scale:.3g}"


def ratio(row: Row, key: str, peers: tuple[str, ...] = PEERS, ours: str = "GRAPHC") -> float | None:
    """How many times as long the faster peer takes; None where one of both is missing."""
    times = [row[mode][key] for mode in peers if key in row.get(mode, {}) and "error" not in row[mode]]
    mine = row.get(ours, {})
    return min(times) / mine[key] if times and key in mine and "error" not in mine else None


def _mean(rows: dict[str, Row], key: str, peers: tuple[str, ...], ours: str = "GRAPHC") -> str:
    ratios = [r for row in rows.values() if (r := ratio(row, key, peers, ours))]
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3g} ({len(ratios)})" if ratios else "-"


def progress(name: str, row: Row) -> str:
    """One line of the terminal."""
    parts = [
        f"{mode} {found.get('error') or ' '.join(_time(found, key) for key in ('cpu', 'cached_cpu', 'best'))}"
        for mode, found in row.items()
    ]
    return f"{name:<24} " + " | ".join(parts)


def _line(name: str, row: Row) -> str:
    cells = [name]
    for key, scale in (("best", 1e6), ("cpu", 1.0), ("cached_cpu", 1.0)):
        cells.append(" / ".join(_time(row.get(mode, {}), key, scale) for mode in COLUMNS))
    times = ratio(row, "best")
    cells.append("-" if times is None else f"{times:.2f}")
    return "| " + " | ".join(cells) + " |"


def _missed(rows: dict[str, Row]) -> list[str]:
    slow = [name for name, row in rows.items() if (r := ratio(row, "best")) is not None and r < FASTER]
    late = [name for name, row in rows.items() if row.get("GRAPHC", {}).get("cpu", 0) > COLD]
    stale = [name for name, row in rows.items() if row.get("GRAPHC", {}).get("cached_cpu", 0) > CACHED]
    return [
        f"- Not {FASTER} times as fast as the faster peer ({len(slow)}): {', '.join(slow) or 'none'}.",
        f"- Compiles cold in more than {COLD:g} s ({len(late)}): {', '.join(late) or 'none'}.",
        f"- From the cache in more than {CACHED * 1000:g} ms ({len(stale)} of {len(rows)}).",
    ]


PAGE = """\
# PyMC's models on graphc, numba and JAX

Written by `make bench-pymc`. Each of the models of `tests/interop/models.py`: log density and gradient as one
function of a flat vector, as samplers call it.

Measured on: {ran}.

- **us a call**: the best of many short batches; the modes' processes take turns in one run.
- **cold**: CPU seconds from the graph to the first result in a fresh process with empty caches: PyTensor's
  rewrites, loading of the compiler, compilation, first call. Imports do not count, graphc's modules are there
  as bytecode, as after an installation, and garbage of the graph's making is collected before.
- **cached**: the same in a second process, with the caches that the first has filled.
- Each cell is graphc / graphc after PyTensor's rewrites / graphc with its own gradient of the density as
  PyMC builds it (PyTensor's is not part of anybody's cold time) / numba / JAX. **Times**: how many times as
  long a call of the faster of numba and JAX takes.

| geometric means (models) | numba takes | JAX takes | the faster takes |
|---|---|---|---|
{means}

{missed}

| model | us a call | cold, CPU s | cached, CPU s | times |
|---|---|---|---|---|
{lines}
"""
MEANS = (
    ("times as long a call", "best"),
    ("times the CPU, cold", "cpu"),
    ("times the CPU, from the cache", "cached_cpu"),
)


def page(rows: dict[str, Row]) -> str:
    """docs/benchmarks_pymc.md."""
    means = []
    for title, key in MEANS:
        cells = [title, *(_mean(rows, key, peers) for peers in (("NUMBA",), ("JAX",), PEERS))]
        means.append("| " + " | ".join(cells) + " |")
    return PAGE.format(
        ran=machine.with_versions("pymc", "pytensor", "numba", "jax", "llvmlite"),
        means="\n".join(means),
        missed="\n".join(_missed(rows)),
        lines="\n".join(_line(name, row) for name, row in rows.items()),
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the examples share: options, timing, the progress line, tables and the look of the plots."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphc

# Two series, told apart by colour and by marker.
BLUE, ORANGE, GREY = "#2a6fbb", "#d9730d", "#8a8f98"


def options(description: str, plot: str) -> argparse.ArgumentParser:
    """The command line that every example has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mode", default=None, help="fast_run (default), fast_compile, reference or debug")
    parser.add_argument("--show-ir", action="store_true", help="print the IR of the model at each stage")
    parser.add_argument("--plot", type=Path, default=Path("results") / plot, help="where the PNG goes")
    return parser


def require(*packages: str) -> None:
    """End the program with a message when one of the packages is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        sys.exit(f"this example needs {names}; `python -m pip install {' '.join(missing)}` installs it")


def compile_timed(name: str, inputs: Sequence[Any], outputs: Any, mode: str | None) -> Any:
    """`graphc.function`, with its time printed."""
    start = time.perf_counter()
    compiled = graphc.function(inputs, outputs, mode=mode, name=name)
    print(f"compiled {name:<18} {1e3 * (time.perf_counter() - start):8.1f} ms")
    return compiled


def show_ir(compiled: Any) -> None:
    """Print every stage from the graph to machine code."""
    for stage, text in compiled.ir_stages().items():
        print(f"\n// ---- {stage} " + "-" * max(4, 90 - len(stage)))
        print(text.rstrip())
    print()


class Progress:
    """Counts evaluations, remembers the loss, and keeps one line of a terminal up to date.

    Attributes:
        losses: the loss of every accepted step.
        seconds: how long each call of the compiled function took.
    """

    def __init__(self, label: str, value_and_gradient: Callable[[Any], tuple[Any, Any]]) -> None:
        self.label, self._function = label, value_and_gradient
        self.losses: list[float] = []
        self.seconds: list[float] = []
        self._slope = float("nan")
        self._live = sys.stdout.isatty()

    def __call__(self, theta: Any) -> tuple[float, Any]:
        start = time.perf_counter()
        loss, gradient = self._function(theta)
        self.seconds.append(time.perf_counter() - start)
        self._slope = float(np.abs(gradient).max())
        if not self.losses:
            self._record(float(loss))
        return float(loss), gradient

    def step(self, intermediate_result: Any) -> None:
        """SciPy's callback: one accepted step."""
        self._record(float(intermediate_result.fun))

    def _record(self, loss: float) -> None:
        self.losses.append(loss)
        count = len(self.losses) - 1
        line = f"{self.label:<12} step {count:4d}  loss {loss:14.8f}  max|gradient| {self._slope:9.2e}"
        if self._live:
            print(f"\r{line}", end="", flush=True)
        elif count % 10 == 0:
            print(line, flush=True)

    def finish(self, outcome: Any) -> None:
        """Close the line with what the optimiser reports."""
        if self._live:
            print()
        print(
            f"{self.label:<12} {outcome.nit} steps to loss {outcome.fun:.10f}; "
            f"{len(self.seconds)} evaluations, "
            f"first {1e6 * self.seconds[0]:.0f} us, median {1e6 * float(np.median(self.seconds)):.1f} us"
        )


class Bar:
    """A bar that fills up: one line of a terminal, or ten lines of a file.

    Args:
        label: what is counted.
        total: the count at its end.
    """

    WIDTH = 30

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total = label, total
        self._live, self._start, self._drawn = sys.stdout.isatty(), time.perf_counter(), 0.0

    def show(self, count: int, text: str) -> None:
        """Draw the bar at `count`; `text` follows it."""
        now, last = time.perf_counter(), count == self.total
        if not last and (now - self._drawn < 0.05 if self._live else count * 10 % self.total >= 10):
            return
        self._drawn = now
        filled = self.WIDTH * count // self.total
        bar = "#" * filled + "." * (self.WIDTH - filled)
        line = f"{self.label} [{bar}] {count}/{self.total}  {text}  {now - self._start:.1f} s"
        print(f"\r{line}" if self._live else line, end="\n" if last or not self._live else "", flush=True)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under a header: text to the left, numbers to the right."""
    cells = [[f"{c:.6g}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    for row in [list(header), ["-" * w for w in widths], *cells]:
        print(
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
        )


def check(what: str, difference: float, tolerance: float) -> bool:
    """Print whether a difference is within its tolerance, and return that."""
    fine = bool(difference <= tolerance)
    print(f"{'ok  ' if fine else 'FAIL'} {what}: {difference:.2e} (tolerance {tolerance:.0e})")
    return fine


def figure(columns: int, height: float = 4.8, ratios: Sequence[float] | None = None) -> tuple[Any, Any]:
    """A figure for a file, with quiet axes and a row of plots."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
        "axes.titlelocation": "left", "axes.grid": True, "grid.color": "#e3e5e8", "axes.axisbelow": True,
        "legend.frameon": False,
    })  # fmt: skip
    widths = {"width_ratios": list(ratios)} if ratios else None
    return plt.subplots(1, columns, figsize=(5.4 * columns, height), layout="constrained", gridspec_kw=widths)


def save(drawing: Any, path: Path) -> None:
    """Write the PNG and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=150)
    print(f"plot written to {path}")

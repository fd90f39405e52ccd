# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f.profile``: where the time of compiled calls goes, by counters in generated code; also as a flame graph.

Source: B. Gregg, "The flame graph", Communications of the ACM 59 (6), 2016.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from graphc.emit import all_nodes
from graphc.function.compiled import Compiled
from graphc.graph.basic import SourceLocation
from graphc.inspect.writers import LETTER, group, label, rectangle, saved, svg, text_table
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.record import record

_WIDTH, _ROW, _MARGIN = 960.0, 22.0, 12.0
_COLOURS = ("#ffe2cc", "#fff8c5", "#ffebe9", "#ffd8a8", "#fbefff")
_STYLE = """
.title { font-weight: bold } .box { stroke: #57606a; stroke-width: 0.5 }
"""


def flame_graph(name: str, rows: Sequence[ProfileRow]) -> str:
    """The text of a picture."""
    whole = sum(row.seconds for row in rows)
    depth = max((len(row.path) for row in rows), default=0) + 1
    height = depth * _ROW + 20
    title = label("title", 0, 4, f"{name}: {whole * 1e3:.3f} ms")
    return svg((_WIDTH, height), _MARGIN, _STYLE, [title, *(_boxes(rows, whole, height) if whole else ())])


def _placed(rows: Sequence[ProfileRow]) -> Iterator[tuple[ProfileRow, float]]:
    """The rows, each with the time at which it would begin if each ran once, after those before it."""
    ends: dict[tuple[str, ...], float] = {}
    for row in rows:
        start = ends.get(row.path, 0.0)
        ends[row.path] = start + row.total
        ends[(*row.path, row.name)] = start
        yield row, start


def _boxes(rows: Sequence[ProfileRow], whole: float, bottom: float) -> Iterator[str]:
    """One box a row, on that of the loop that it is in; rows come after the loops that they are in."""
    for i, (row, start) in enumerate(_placed(rows)):
        x, width = start / whole * _WIDTH, row.total / whole * _WIDTH
        y = bottom - (len(row.path) + 1) * _ROW
        where = "".join(f"\n{line}" for line in row.lines)
        title = f"{', '.join(row.ops) or row.what}: {row.total * 1e3:.3f} ms, {row.total / whole:.1%}{where}"
        colour = _COLOURS[i % len(_COLOURS)]
        box = rectangle("box", (x, y, max(width, 0.3), _ROW - 1), f' fill="{colour}"')
        fitting = row.name[: int((width - 6) / LETTER)] if width > 20 else ""
        yield from group(title, (), (box, label("name", x + 3, y + 15, fitting)))


# Seconds that the counter's rate is measured over, at least.
_LONG_ENOUGH = 0.02


@record()
class ProfileRow:
    """Measurements of a loop nest or a call.

    Attributes:
        path: names of the loops that it is in, the outermost first.
        ops: the ops that it does; several that were fused into one loop cannot be told apart.
        lines: the users' lines that applied them, without repetition.
        what: ``loop``, or the function called.
        runs: how often it ran.
        seconds: its own time, without that of what is in it and has a row of its own.
        total: with that.
        nodes: numbers of the ops among those of the graph and its loops.
    """

    path: tuple[str, ...]
    ops: tuple[str, ...]
    lines: tuple[SourceLocation, ...]
    what: str
    runs: int
    seconds: float
    total: float
    nodes: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """The ops as one text."""
        return ", ".join(dict.fromkeys(op.partition("{")[0] for op in self.ops)) or self.what


class Profile:
    """Times of a function that was compiled with ``profile=True``; ``print`` shows a table.

    Counters in the code add up over all calls, also those from other threads; of calls that overlap, times
    mix. ``reset`` sets them to zero.

    Args:
        name: of the function.
        segments: its executables.

    Examples:
        >>> x = pt.vector("x")
        >>> f = graphc.function([x], pt.exp(x).sum(), profile=True)
        >>> value = f(np.zeros(1000))
        >>> [(row.name, row.runs) for row in f.profile.rows() if row.what == "function"]
        [('function', 1)]
    """

    def __init__(self, name: str, segments: Sequence[Compiled]) -> None:
        self.name = name
        self._counters = [_Counters(segment) for segment in segments]

    def rows(self) -> list[ProfileRow]:
        """The measurements, in the order of the code. The first row of each executable, ``function``, has
        what no other row has: checks, scalars, taking memory.
        """
        return [row for counters in self._counters for row in counters.rows()]

    def reset(self) -> None:
        """Sets all counters to zero."""
        for counters in self._counters:
            counters.reset()

    @property
    def seconds(self) -> float:
        """The time in compiled code, of all calls."""
        return sum(row.seconds for row in self.rows())

    def summary(self) -> None:
        """Prints the table, as PyTensor's does."""
        print(self)

    def to_svg(self, file: str | PathLike[str] | None = None) -> str:
        """Draw a flame graph: the width of a box is its time, and what is in a loop stands above it.

        Args:
            file: also write the picture to this path.
        """
        return saved(flame_graph(self.name, self.rows()), file)

    _repr_svg_ = to_svg

    def save(self, file: str | PathLike[str]) -> None:
        """Write Chrome's trace format, for chrome://tracing or Perfetto.

        Counters know no order of runs: the trace shows sums, one after the other as they stand in the code.

        Args:
            file: the path.
        """
        events: list[dict[str, object]] = []
        for row, start in _placed(self.rows()):
            event: dict[str, object] = {"name": row.name, "cat": row.what, "ph": "X", "pid": 0, "tid": 0}
            event |= {"ts": start * 1e6, "dur": row.total * 1e6}
            event["args"] = {"runs": row.runs, "own us": row.seconds * 1e6, "lines": [*map(str, row.lines)]}
            events.append(event)
        Path(file).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def __str__(self) -> str:
        rows = self.rows()
        whole = sum(row.seconds for row in rows)
        calls = rows[0].runs if rows else 0
        head = f"profile of {self.name}: {calls} calls, {whole * 1e3:.3f} ms in compiled code"
        cells = [("share", "own ms", "runs", "us a run", "operation")]
        for row in sorted(rows, key=lambda row: -row.seconds):
            share = row.seconds / whole if whole else 0.0
            mean = row.seconds / row.runs * 1e6 if row.runs else 0.0
            where = "".join(f" in {loop}" for loop in reversed(row.path[1:]))
            place = f"  {row.lines[0].short}" if row.lines else ""
            numbers = f"{share:.1%}", f"{row.seconds * 1e3:.3f}", f"{row.runs}", f"{mean:.3f}"
            cells.append((*numbers, f"{row.name}{where}{place}"))
        return "\n".join([head, *text_table(cells, left={4})])


class _Counters:
    """The counters of one executable."""

    def __init__(self, segment: Compiled) -> None:
        code = segment.executable
        assert isinstance(code, MachineCode)
        self._slots = code.manifest.extra.get("profile", [])
        self._nodes = all_nodes(segment.fgraph)
        if not self._slots:
            return
        loaded = self._loaded = code.loaded
        data = ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("graphc_profile_data"))()
        assert data is not None
        self._table = (ctypes.c_int64 * (2 * len(self._slots))).from_address(data)
        self._clock = ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("graphc_profile_clock"))
        self._start = time.perf_counter(), self._clock()

    def reset(self) -> None:
        for i in range(2 * len(self._slots)):
            self._table[i] = 0

    def _rate(self) -> float:
        """Ticks of the counter in a second."""
        seconds = time.perf_counter() - self._start[0]
        if seconds < _LONG_ENOUGH:
            time.sleep(_LONG_ENOUGH - seconds)
        now, ticks = time.perf_counter(), self._clock()
        return (ticks - self._start[1]) / (now - self._start[0])

    def rows(self) -> Iterator[ProfileRow]:
        if not self._slots:
            return
        rate = self._rate()
        own = [self._table[2 * i] / rate for i in range(len(self._slots))]
        total = list(own)
        paths: list[tuple[str, ...]] = []
        names: list[str] = []
        for i in range(len(self._slots) - 1, 0, -1):
            total[self._slots[i]["parent"]] += total[i]
        for i, slot in enumerate(self._slots):
            numbers = [int(node[1:]) for node in slot["nodes"]]
            nodes = [self._nodes[number] for number in numbers]
            lines = dict.fromkeys(node.location for node in nodes if node.location is not None)
            ops = tuple(str(node.op) for node in nodes)
            parent = slot["parent"]
            path = (*paths[parent], names[parent]) if i else ()
            what, runs = slot["what"], self._table[2 * i + 1]
            row = ProfileRow(path, ops, tuple(lines), what, runs, own[i], total[i], frozenset(numbers))
            names.append(row.name)
            paths.append(path)
            yield row

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f.report.roofline``: what each kernel computes and moves, against what this machine can do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from html import escape
from typing import TYPE_CHECKING

from graphc.backends.target import CompileLog
from graphc.emit import all_nodes
from graphc.function.compiled import Compiled
from graphc.function.machine_limits import MachineLimits, machine_limits
from graphc.function.memory_plan import Given, arguments_of, given_values
from graphc.function.work import Counts
from graphc.graph.basic import Apply
from graphc.graph.location import SourceLocation
from graphc.ir.work import Kernel
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.function.types import Function

# Seconds that calls are timed for.
_SECONDS = 0.2


@record()
class RooflineRow:
    """The work of a loop nest or a call.

    Attributes:
        what: `loop`, `copy`, `scalars` (what stands between kernels), or the function called.
        ops: the ops that it does.
        lines: the users' lines that applied them, without repetition.
        flops: floating-point operations, less those in functions such as `exp`; None where nobody knows how
            often a loop runs, or what a library does.
        functions: how often each function is evaluated, by name.
        bytes: that are read and written, each element once; None where sizes are not known.
        moved: bytes that its loads, stores and copies move, an element as often as that happens; None where
            the number of iterations is not known.
        expanded: by element type, operations with the inline code of functions.
        limits: of the machine.
        seconds: what it took; None where it was not measured.
        nodes: numbers of the ops among those of the graph and its loops.
    """

    what: str
    ops: tuple[str, ...]
    lines: tuple[SourceLocation, ...]
    flops: int | None
    functions: dict[str, int]
    bytes: int | None
    expanded: dict[str, int]
    limits: MachineLimits
    seconds: float | None = None
    nodes: frozenset[int] = frozenset()
    moved: int | None = None

    @property
    def name(self) -> str:
        """The ops as one text."""
        return ", ".join(dict.fromkeys(op.partition("{")[0] for op in self.ops)) or self.what

    @property
    def is_measured(self) -> bool:
        """Whether counters of ``profile=True`` have its time: not that of scalars, nor of tiny products."""
        return self.what != "scalars" and "block" not in self.what

    @property
    def intensity(self) -> float | None:
        """Operations, with those of functions, for each byte; None where there are no bytes or no count."""
        return sum(self.expanded.values()) / self.bytes if self.bytes and self.flops is not None else None

    @property
    def arithmetic_seconds(self) -> float:
        """What the operations take at the rate of a matrix product."""
        return sum(count / self.limits.rate(element) for element, count in self.expanded.items())

    @property
    def copy_seconds(self) -> float:
        """What the bytes take at the rate of a copy."""
        return (self.bytes or 0) / self.limits.bandwidth

    @property
    def least_seconds(self) -> float:
        """The larger of both: the roof."""
        return max(self.arithmetic_seconds, self.copy_seconds)

    @property
    def bound(self) -> str:
        """What limits it: "arithmetic" or "memory"."""
        return "arithmetic" if self.arithmetic_seconds > self.copy_seconds else "memory"

    @property
    def peak_share(self) -> float | None:
        """The share of the peak of arithmetic that was reached; None without a time."""
        return self.arithmetic_seconds / self.seconds if self.seconds else None

    @property
    def bandwidth_share(self) -> float | None:
        """The share of a copy's bandwidth; above 1 where the data lies in caches. None without a time."""
        return self.copy_seconds / self.seconds if self.seconds else None


@record()
class Roofline:
    """The work of a function; ``print`` shows it as text, notebooks as a table.

    Attributes:
        name: of the function.
        limits: of the machine.
        rows: the kernels in the order of the code.
        seconds: of a call; None where it was not measured.
        unknown: what is called and has no count of operations.
    """

    name: str
    limits: MachineLimits
    rows: list[RooflineRow] = field(default_factory=list)
    seconds: float | None = None
    unknown: list[str] = field(default_factory=list)

    @property
    def flops(self) -> int | None:
        """Operations of all kernels, less those in functions; None if one is not known."""
        counts = [row.flops for row in self.rows]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def functions(self) -> dict[str, int]:
        """How often each function is evaluated, by name."""
        total: Counter[str] = Counter()
        for row in self.rows:
            total.update(row.functions)
        return dict(total)

    @property
    def bytes(self) -> int | None:
        """Bytes of all kernels; None if one is not known."""
        counts = [row.bytes for row in self.rows]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def least_seconds(self) -> float:
        """What the kernels take one after the other at the machine's limits."""
        return sum(row.least_seconds for row in self.rows)

    @property
    def share(self) -> float | None:
        """The share of the limit that a call reaches; None without a time."""
        return self.least_seconds / self.seconds if self.seconds else None

    def _repr_html_(self) -> str:
        """What notebooks show."""
        head, limits, *_ = str(self).splitlines()
        titles = "".join(f"<th>{escape(title)}</th>" for title in (*_HEAD, "operation"))
        rows = ((*_cells(row), _origin(row)) for row in self.rows)
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in cells) for cells in rows)
        table = f"<table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
        return f"<p>{escape(head)}<br>{escape(limits)}</p>{table}"

    def __str__(self) -> str:
        least = f"at least {_time(self.least_seconds)}"
        if self.seconds is not None:
            least += f", a call takes {_time(self.seconds)}: {_percent(self.share)} of the limit"
        lines = [
            f"roofline of {self.name}: {_count(self.flops)} flops, {_count(self.bytes)} bytes, {least}",
            f"machine: {self.limits}",
        ]
        cells = [_HEAD, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        places = ["operation", *map(_origin, self.rows)]
        for row, place in zip(cells, places, strict=True):
            texts = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            lines.append(f"{'  '.join(texts)}  {place}")
        if self.unknown:
            lines.append(f"not counted: the operations of {', '.join(self.unknown)}")
        return "\n".join(lines)


_HEAD = ("flops", "functions", "bytes", "flops/byte", "bound by", "at least", "took", "of peak", "of copy")


def _cells(row: RooflineRow) -> tuple[str, ...]:
    return (
        _count(row.flops),
        ", ".join(f"{name} {count:,}" for name, count in row.functions.items()) or "-",
        _count(row.bytes),
        "-" if row.intensity is None else f"{row.intensity:.3g}",
        row.bound,
        _time(row.least_seconds),
        "-" if row.seconds is None else _time(row.seconds),
        _percent(row.peak_share),
        _percent(row.bandwidth_share),
    )


def _origin(row: RooflineRow) -> str:
    place = f"  {row.lines[0].short}" if row.lines else ""
    return f"{row.what} of {row.name}{place}" if row.ops else row.what


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def roofline(function: Function, args: Sequence[object], seconds: float | None = None) -> Roofline:
    """See `CompileReport.roofline`."""
    found = Roofline(function.report.name, machine_limits(), seconds=seconds)
    whole = function.executor.whole
    given = given_values(function, args) if whole is not None else []
    segments = [whole] if whole is not None else list(function.executor.segments())
    for segment in segments:
        _add(found, segment, given)
    if seconds is None and whole is not None and _may_run(function, args):
        _measure(found, function, whole, args)
    return found


def _add(found: Roofline, segment: Compiled, given: list[Given]) -> None:
    """Adds the kernels of an executable."""
    log = segment.views(CompileLog(work=[]))
    nodes = all_nodes(segment.fgraph)
    for work in log.work or ():
        counts = Counts(work, arguments_of(segment, given))
        for kernel in work["kernels"]:
            found.rows.append(_row(kernel, counts, nodes, found.limits))
            found.unknown += [name for name in counts.unknown(kernel) if name not in found.unknown]


def _row(kernel: Kernel, counts: Counts, nodes: Sequence[Apply], limits: MachineLimits) -> RooflineRow:
    numbers = [i for i in (int(name[1:]) for name in kernel["nodes"]) if i < len(nodes)]
    operations = counts.operations(kernel)
    known = Counter[str]() if operations is None else operations
    functions = {name: count for name, count in known.items() if " " in name and count}
    flops = sum(known.values()) - sum(functions.values())
    counted = operations is not None and not counts.unknown(kernel)
    places = (nodes[i].location for i in numbers)
    lines = dict.fromkeys(place for place in places if place is not None)
    return RooflineRow(
        kernel["what"],
        tuple(str(nodes[i].op) for i in numbers),
        tuple(lines),
        flops if counted else None,
        {name.rpartition(" ")[0]: count for name, count in functions.items()},
        counts.bytes(kernel),
        dict(counts.expanded(known)),
        limits,
        nodes=frozenset(numbers),
        moved=counts.moved(kernel),
    )


def _may_run(function: Function, args: Sequence[object]) -> bool:
    """Whether calls with these arguments can be timed: all are values, and nothing is changed by a call."""
    if len(args) < len(function.inputs) or any(isinstance(value, tuple) for value in args):
        return False
    return not function.updates and not function.signature.donated


def _measure(found: Roofline, function: Function, whole: Compiled, args: Sequence[object]) -> None:
    """Times calls, and kernels where the function has counters for them."""
    before = _totals(function)
    calls, end = 0, time.perf_counter() + _SECONDS
    best = float("inf")
    while not calls or time.perf_counter() < end:
        start = time.perf_counter()
        function(*args)
        best, calls = min(best, time.perf_counter() - start), calls + 1
    found.seconds = best
    spent = [after - start for after, start in zip(_totals(function), before, strict=True)]
    slots = whole.executable.manifest.extra.get("profile", [])
    free = {
        i: {int(node[1:]) for node in slot["nodes"]}
        for i, slot in enumerate(slots)
        if i and not slot["parent"]
    }
    for row in found.rows:
        match = next((i for i, nodes in free.items() if nodes & row.nodes), None)
        if match is not None and row.is_measured:
            del free[match]
            row.seconds = spent[match] / calls


def _totals(function: Function) -> list[float]:
    """Seconds that each counter of a function has added up, with what is in it; none without counters."""
    return [] if function.profile is None else [row.total for row in function.profile.rows()]

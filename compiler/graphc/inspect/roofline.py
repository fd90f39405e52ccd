# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``f.report.roofline``: what each kernel computes and moves, against what this machine can do.

Counts of `graphc.ir.work` for given sizes, and rates that are measured once and kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Literal

import numpy as np

from graphc.config import config
from graphc.graph.basic import Apply, SourceLocation
from graphc.inspect.writers import html_table, text_table
from graphc.ir.size import Argument, Number, Recorded
from graphc.ir.work import Block, Kernel, Place, Work, parts_of
from graphc_runtime.cache import disk_cache
from graphc_runtime.record import record
from graphc_runtime.threads import usable_cores

Key = Literal["flops", "functions", "moved"]
_ARITHMETIC: tuple[Key, ...] = ("flops", "functions")
_MOVES: tuple[Key, ...] = ("moved",)
# Iterations that are gone through one by one, of a loop in which counts change from one to the next.
_MOST = 1_000_000


# Rows of the matrices whose product is timed, elements that each thread copies, and seconds for each figure.
_ROWS, _ELEMENTS, _LEAST = 768, 4_000_000, 0.25


@record(frozen=True)
class MachineLimits:
    """Rates that nothing on this machine exceeds for long.

    Attributes:
        float64, float32: floating-point operations a second of a matrix product by NumPy's BLAS.
        bandwidth: bytes read and written a second by a copy of arrays larger than the caches, on all cores.
        cores: that this process may use.
    """

    float64: float
    float32: float
    bandwidth: float
    cores: int

    def rate(self, element: str) -> float:
        """The rate of arithmetic on `f64` or `f32`."""
        return self.float32 if element == "f32" else self.float64

    def largest(self, other: MachineLimits) -> MachineLimits:
        """Of each figure the larger one."""
        return MachineLimits(
            max(self.float64, other.float64),
            max(self.float32, other.float32),
            max(self.bandwidth, other.bandwidth),
            self.cores,
        )

    def __str__(self) -> str:
        rates = f"{self.float64 / 1e9:.1f} GFLOP/s in float64, {self.float32 / 1e9:.1f} in float32"
        return f"{rates}, copies {self.bandwidth / 1e9:.1f} GB/s, {self.cores} cores"


def machine_limits(*, renew: bool = False) -> MachineLimits:
    """The limits of this machine, out of the cache folder if they are there; measuring takes a second.

    Args:
        renew: measure again, and keep the larger figures: what was measured while other programs ran is low.
    """
    if renew:
        _limits.cache_clear()
    return _limits(config.cache_dir, renew)


@cache
def _limits(folder: str, renew: bool = False) -> MachineLimits:
    key = hashlib.sha256(f"machine limits 1;{_processor()};{usable_cores()}".encode()).hexdigest()
    disk = disk_cache(folder, config.cache_size_mb) if folder else None
    stored = None if disk is None else disk.get(key)
    before = None if stored is None else MachineLimits(**json.loads(stored))
    if before is not None and not renew:
        return before
    found = measure() if before is None else measure().largest(before)
    if disk is not None:
        disk.put(key, json.dumps(asdict(found)).encode())
    return found


def measure() -> MachineLimits:
    """Measures now; the best of many repetitions, since other programs run, too."""
    cores = usable_cores()
    rates = [2 * _ROWS**3 / _shortest(_product(dtype)) for dtype in (np.float64, np.float32)]
    with ThreadPoolExecutor(cores) as pool:
        pairs = [(np.ones(_ELEMENTS), np.ones(_ELEMENTS)) for _ in range(cores)]

        def copy() -> None:
            list(pool.map(lambda pair: np.copyto(*pair), pairs))

        moved = 16 * _ELEMENTS * cores
        return MachineLimits(rates[0], rates[1], moved / _shortest(copy), cores)


def _product(dtype: type[np.floating]) -> Callable[[], object]:
    a = np.full((_ROWS, _ROWS), 0.5, dtype)
    out = np.empty_like(a)
    return lambda: np.matmul(a, a, out=out)


def _shortest(call: Callable[[], object]) -> float:
    call()
    best, end = float("inf"), time.perf_counter() + _LEAST
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{platform.machine()} {next(named, platform.processor())}"


class Unknown(Exception):
    """A count depends on more than what is known."""


class Counts:
    """The counts of a function.

    Args:
        work: its record.
        arguments: as far as they are known.
        assumed: in an estimate, the value of sizes and numbers that are not known.
    """

    def __init__(self, work: Work, arguments: Sequence[Argument], assumed: int | None = None) -> None:
        self._work = work
        self._sizes = _InLoops(work["expressions"], arguments, assumed)
        self._keys = _ARITHMETIC

    def operations(self, kernel: Kernel) -> Counter[str] | None:
        """Floating-point operations by element type, and functions by name and element type.

        Returns:
            None where the number of iterations is not known.
        """
        return self._total(kernel, _ARITHMETIC)

    def moved(self, kernel: Kernel) -> Number:
        """Bytes that loads, stores and copies move, an element as often as that happens: what `bytes` counts
        once, and copies in loops. Those in functions that are called are not counted.

        Returns:
            None where the number of iterations is not known.
        """
        found = self._total(kernel, _MOVES)
        return None if found is None else found.total()

    def _total(self, kernel: Kernel, keys: tuple[Key, ...]) -> Counter[str] | None:
        self._keys = keys
        try:
            return self._block(kernel["body"])
        except Unknown:
            return None

    def unknown(self, kernel: Kernel) -> list[str]:
        """Functions that are called in a kernel and have no counts."""
        return sorted(set(_unknown(kernel["body"])))

    def expanded(self, operations: Counter[str]) -> Counter[str]:
        """Operations by element type, with those of the inline code of functions. Others count as one."""
        found: Counter[str] = Counter()
        for name, count in operations.items():
            _, _, element = name.rpartition(" ")
            found[element] += count * (self._work["weights"].get(name, 1) if " " in name else 1)
        return found

    def bytes(self, kernel: Kernel) -> Number:
        """Bytes that a kernel reads and writes; None where sizes are not known."""
        total = 0
        for write in (False, True):
            places: dict[int, list[Place]] = {}
            for place in kernel["places"]:
                if place["written"] == write:
                    places.setdefault(place["root"], []).append(place)
            for root, found in places.items():
                count = self._elements(root, found)
                if count is None:
                    return None
                total += count * max(place["item"] for place in found)
        return total

    def _elements(self, root: int, places: list[Place]) -> Number:
        """Elements of a buffer that its places cover, at most all of it."""
        whole = self._sizes.product(self._work["roots"][root])
        try:
            found = sum(self._iterations(place["loops"]) * self._product(place["count"]) for place in places)
        except Unknown:
            return whole
        return found if whole is None else min(found, whole)

    def _product(self, numbers: list[int]) -> int:
        value = self._sizes.product(numbers)
        if value is None:
            raise Unknown
        return value

    def _iterations(self, loops: list[list[int]]) -> int:
        """Executions of the body of nested loops."""
        if not loops:
            return 1
        (variable, *bounds), *inner = loops
        numbers = [bound for loop in inner for bound in loop[1:]]
        return sum(times * self._iterations(inner) for times in self._turns(variable, bounds, numbers))

    def _turns(self, variable: int, bounds: list[int], numbers: Sequence[int]) -> Iterator[int]:
        """Gives a loop's variable its values, and how many iterations are like the one at a value: all where
        no expression of the body depends on it.
        """
        trips = self._trips(bounds)
        if not any(variable in self._sizes.uses(number) for number in numbers):
            yield from (len(trips),) if trips else ()
            return
        for value in _few(trips):
            self._sizes.variables[variable] = value
            yield 1
        self._sizes.variables.pop(variable, None)

    def _trips(self, bounds: list[int]) -> range:
        """The values of a loop's variable: of two ends between which data decide, up to the later one."""
        first, end, step = bounds
        return range(self._value(first), self._latest(end), self._value(step))

    def _latest(self, number: int) -> int:
        name, *operands = self._work["expressions"][number]
        if name != "select" or self._sizes.value(number) is not None:
            return self._value(number)
        return max(self._latest(int(side)) for side in operands[1:])

    def _value(self, number: int) -> int:
        value = self._sizes.value(number)
        if value is None:
            raise Unknown
        return value

    def _block(self, block: Block) -> Counter[str]:
        found = self._own(block)
        for part in block.get("parts", ()):
            found.update(self._part(part))
        return found

    def _own(self, block: Block) -> Counter[str]:
        found: Counter[str] = Counter()
        for key in self._keys:
            found.update(block.get(key, {}))
        return found

    def _part(self, part: Block) -> Counter[str]:
        if "repeated" in part:
            if self._block(part["repeated"]):
                raise Unknown
            return Counter()
        if "either" in part:
            counted = [self._block(block) for block in part["either"]]
            return max(counted, key=Counter.total, default=Counter())
        if "times" in part:
            return _times(self._own(part), self._product(part["times"]))
        if "loop" in part:
            return self._loop(part)
        return Counter()

    def _loop(self, part: Block) -> Counter[str]:
        body, variable = part["body"], part["loop"]
        if not self._counts_anything(body):
            return Counter()
        total: Counter[str] = Counter()
        for times in self._turns(variable, part["bounds"], _numbers(body)):
            total.update(_times(self._block(body), times))
        return total

    def _counts_anything(self, block: Block) -> bool:
        return any(block.get(key) for key in self._keys) or any(map(self._counts_anything, parts_of(block)))


class _InLoops(Recorded):
    """Recorded whose expressions may have variables of loops.

    Attributes:
        variables: their values.
    """

    def __init__(
        self, nodes: Sequence[Sequence[int | str]], arguments: Sequence[Argument], assumed: int | None
    ) -> None:
        super().__init__(nodes, arguments)
        self._assumed = assumed
        self.variables: dict[int, int] = {}
        self._uses: dict[int, frozenset[int]] = {}

    def value(self, number: int) -> Number:
        return self._value(number) if self.uses(number) else super().value(number)

    def _leaf(self, name: str, operands: Sequence[int]) -> Number:
        known = super()._leaf(name, operands)
        return self._assumed if known is None else known

    def uses(self, number: int) -> frozenset[int]:
        """The variables of loops that an expression depends on."""
        if number not in self._uses:
            name, *operands = self._nodes[number]
            if name == "variable":
                found = frozenset({int(operands[0])})
            elif name in ("const", "dim", "value", "?"):
                found = frozenset()
            else:
                inner = operands[1:] if name == "cmpi" else operands
                found = frozenset[int]().union(*map(self.uses, inner))
            self._uses[number] = found
        return self._uses[number]

    def _value(self, number: int) -> Number:
        name, *operands = self._nodes[number]
        return self.variables.get(operands[0]) if name == "variable" else super()._value(number)


def _few(trips: range) -> range:
    if len(trips) > _MOST:
        raise Unknown
    return trips


def _times(counts: Counter[str], factor: int) -> Counter[str]:
    return Counter({name: count * factor for name, count in counts.items()})


def _numbers(block: Block) -> list[int]:
    """The expressions in a block."""
    own = [*block.get("bounds", ()), *block.get("times", ())]
    return own + [number for inner in parts_of(block) for number in _numbers(inner)]


def _unknown(block: Block) -> list[str]:
    own = [block["unknown"]] if "unknown" in block else []
    return own + [name for inner in parts_of(block) for name in _unknown(inner)]


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
        """True if counters of ``profile=True`` have its time: not that of scalars, nor of tiny products."""
        return self.what != "scalars" and "block" not in self.what

    @property
    def intensity(self) -> float | None:
        """Operations, with those of functions, for each byte; None where there are no bytes or no count."""
        return sum(self.expanded.values()) / self.bytes if self.bytes and self.flops is not None else None

    @property
    def arithmetic_seconds(self) -> float:
        """Time of the operations at the rate of a matrix product."""
        return sum(count / self.limits.rate(element) for element, count in self.expanded.items())

    @property
    def copy_seconds(self) -> float:
        """Time of the bytes at the rate of a copy."""
        return (self.bytes or 0) / self.limits.bandwidth

    @property
    def least_seconds(self) -> float:
        """The larger of both: the roof."""
        return max(self.arithmetic_seconds, self.copy_seconds)

    @property
    def bound(self) -> str:
        """The limiting resource: "arithmetic" or "memory"."""
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
        """Evaluations of each function, by name."""
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
        """Time of the kernels one after the other at the machine's limits."""
        return sum(row.least_seconds for row in self.rows)

    @property
    def share(self) -> float | None:
        """The share of the limit that a call reaches; None without a time."""
        return self.least_seconds / self.seconds if self.seconds else None

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        head, limits, *_ = str(self).splitlines()
        rows = ((*_cells(row), _origin(row)) for row in self.rows)
        return f"<p>{escape(head)}<br>{escape(limits)}</p>{html_table((*_HEAD, 'operation'), rows)}"

    def __str__(self) -> str:
        least = f"at least {_time(self.least_seconds)}"
        if self.seconds is not None:
            least += f", a call takes {_time(self.seconds)}: {_percent(self.share)} of the limit"
        lines = [
            f"roofline of {self.name}: {_count(self.flops)} flops, {_count(self.bytes)} bytes, {least}",
            f"machine: {self.limits}",
        ]
        rows = [(*_HEAD, "operation"), *((*_cells(row), _origin(row)) for row in self.rows)]
        lines += text_table(rows, left={len(_HEAD)})
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


def row_of(kernel: Kernel, counts: Counts, nodes: Sequence[Apply], limits: MachineLimits) -> RooflineRow:
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

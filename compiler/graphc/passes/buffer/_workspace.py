# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A workspace: the buffers of a function that share one block of memory, and the code that uses it.

Two layouts. Fixed: offsets are known when compiling, up to one factor that all sizes have in common. Table:
sizes of several kinds; the offsets are computed at run time, when sizes differ from those of the last call.

Sizes of buffers are products of values, computed before the first buffer is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from graphc.ir import build
from graphc.ir.build import const_index, declare
from graphc.ir.helpers import declare_helper
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.value import larger
from graphc.ir.walk import definition
from graphc.library import helpers as library
from graphc.library.places import ALIGNMENT, Interval, aligned, pack
from graphc.lowering.memory.layouts import address
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.ir.lifetimes import Lifetimes


# Integer arithmetic that cannot trap.
_TOTAL = frozenset(
    f"arith.{name}"
    for name in (
        "constant addi subi muli maxsi minsi maxui minui select cmpi index_cast index_castui extsi extui "
        "trunci andi ori xori"
    ).split()
)
_DIVISIONS = (
    "arith.divui",
    "arith.remui",
    "arith.divsi",
    "arith.remsi",
    "arith.floordivsi",
    "arith.ceildivsi",
)
_BYTES = {"index": 8, "complex<f32>": 8, "complex<f64>": 16}


class Size(NamedTuple):
    """A number of bytes: a constant times values that are known at run time only.

    Attributes:
        units: the constant.
        factors: the values, in the order in which they were first met in the function.
    """

    units: int
    factors: tuple[Any, ...]


def item_size(element: ir.Type) -> int | None:
    """Bytes of an element in memory; None for types that no buffer has."""
    text = str(element)
    if text in _BYTES:
        return _BYTES[text]
    if text[0] in "if" and text[1:].isdigit():
        return -(-int(text[1:]) // 8)
    return None


def buffer_size(alloc: ir.Operation, item: int, numbers: dict[ir.Value, int]) -> Size:
    """The bytes of an allocation.

    Args:
        alloc: a `memref.alloc`.
        item: bytes of an element.
        numbers: the values met so far; new ones are added.
    """
    units, factors = item, []
    for size in alloc.results[0].type.shape:
        units *= size if size >= 0 else 1
    for operand in alloc.operands:
        constant, values = _product(operand)
        units *= constant
        factors += values
    for value in factors:
        numbers.setdefault(value, len(numbers))
    return Size(units, tuple(sorted(factors, key=numbers.__getitem__)))


def _product(value: ir.Value) -> tuple[int, list[ir.Value]]:
    """A value as a constant times other values."""
    number = constant_value(value)
    if number is not None:
        return max(number, 0), []
    made = definition(value, "arith.muli")
    if made is None:
        return 1, [value]
    (a, left), (b, right) = map(_product, made.operands)
    return a * b, left + right


class Mover:
    """Moves the computation of sizes to an earlier place in their block.

    Args:
        lifetimes: the positions of operations.
    """

    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._constant_arguments: dict[ir.Value, bool] = {}

    def known_from(self, value: ir.Value, memo: dict[ir.Value, float]) -> float:
        """The first position at whose operation a value is computed, or can be.

        Args:
            value: index value, or what one is computed from.
            memo: what was found before, while no operation has moved.
        """
        if value not in memo:
            memo[value] = self._known_from(value, memo)
        return memo[value]

    def _known_from(self, value: ir.Value, memo: dict[ir.Value, float]) -> float:
        op = definition(value)
        if op is None:
            return -math.inf
        if op.name == "memref.alloc":
            return math.inf  # It will be made where it is first used.
        computed = self._lifetimes.position(op) + 1
        if not self._may_move(op):
            return computed
        return min(computed, max((self.known_from(x, memo) for x in op.operands), default=-math.inf))

    def move(self, value: ir.Value, position: int) -> None:
        """Makes a value known before the operation at a position; `known_from` has allowed it."""
        op = definition(value)
        # What has no position is a view that took the place of one before it, when its buffer was placed.
        if op is None or self._lifetimes.positions.get(op, -1) < position:
            return
        for operand in op.operands:
            self.move(operand, position)
        op.move_before(self._lifetimes.operations[position])
        self._lifetimes.positions[op] = position - 1

    def _may_move(self, op: ir.Operation) -> bool:
        name = op.name
        if name in _TOTAL or name in VIEWS or name == "memref.dim":
            return True
        if name in _DIVISIONS:
            return (constant_value(op.operands[1]) or 0) > 0
        if name == "memref.load":
            # An index could be out of bounds where a check that comes first has not been made yet.
            return len(op.operands) == 1 and self._is_constant(op.operands[0])
        return False

    def _is_constant(self, memref: ir.Value) -> bool:
        """True if a memref is (a view of) an argument that the function only reads."""
        memref = root_of(memref)
        if not isinstance(memref.owner, ir.Block):
            return False
        if memref not in self._constant_arguments:
            self._constant_arguments[memref] = self._lifetimes.only_read(memref)
        return self._constant_arguments[memref]


# Bytes of one buffer above which there is no memory on any machine: sums of fewer than 2**14 stay exact.
MOST_BYTES = 1 << 48


@record()
class Buffer:
    """An allocation that is given a place.

    Attributes:
        alloc: the `memref.alloc`.
        interval: its lifetime.
        size: its bytes.
        stored: the values that are stored in it.
        offset: in a fixed layout, its place: bytes, or multiples of the rounded common factor; in the memory
            of a result, bytes.
    """

    alloc: Any
    interval: Interval
    size: Size
    stored: list[Any] = field(default_factory=list)
    offset: int = 0


@record()
class Workspace:
    """Buffers that share a block of memory.

    Attributes:
        number: of the workspace in the module.
        position: of the operation before which the memory is taken.
        buffers: in the order of their allocations.
        keys: the different products of sizes, each a tuple of values; `()` for sizes that are known.
        peak: size of the whole in a fixed layout, in the unit of the offsets.
    """

    number: int
    position: int
    buffers: list[Buffer]
    keys: list[tuple[ir.Value, ...]] = field(default_factory=list)
    peak: int = 0

    def __post_init__(self) -> None:
        self._largest: dict[tuple[ir.Value, ...], int] = {}
        for buffer in self.buffers:
            size = buffer.size
            self._largest[size.factors] = max(size.units, self._largest.get(size.factors, 0))
        self.keys = list(self._largest)
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        if self.is_fixed:
            # Offsets in units of a factor that is a multiple of the alignment are aligned themselves.
            sizes = [b.size.units if self.keys[0] else aligned(b.size.units) for b in self.buffers]
            layout = pack(sizes, [b.interval for b in self.buffers])
            for buffer, offset in zip(self.buffers, layout.offsets, strict=True):
                buffer.offset = offset
            self.peak = layout.size

    @property
    def is_fixed(self) -> bool:
        """True if the layout is known when compiling."""
        return len(self.keys) == 1

    def largest(self, key: int) -> int:
        """The largest multiple of a product that a buffer has."""
        return self._largest[self.keys[key]]

    def key(self, buffer: Buffer) -> int:
        """The number of the product that a buffer's size is a multiple of."""
        return self._numbers[buffer.size.factors]


@record(frozen=True)
class Place:
    """A call that gives a buffer its memory, where its lifetime begins: a function's name and arguments."""

    function: str
    arguments: tuple[Any, ...]


@record(frozen=True)
class _Count:
    """A product of sizes: as an index, and as a float, which does not overflow (None if it is known)."""

    value: Any
    real: Any


class Code:
    """Writes the code of workspaces.

    Args:
        module: gains declarations of the functions that are called.
    """

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._declared: set[str] = set()
        self._index = ir.IndexType.get()
        self._bytes = ir.Type.parse("memref<?xi8>")

    def take(self, workspace: Workspace, before: ir.Operation) -> list[Place]:
        """Takes the memory of a workspace before an operation; returns a place for each buffer."""
        with ir.InsertionPoint(before), before.location:
            counts = [self._count(key) for key in workspace.keys]
            return self._fixed(workspace, counts[0]) if workspace.is_fixed else self._table(workspace, counts)

    def scratch(self, result: ir.Value, buffers: Sequence[Buffer], before: ir.Operation) -> list[Place]:
        """Takes the memory of a result before an operation; returns a place for each buffer."""
        with ir.InsertionPoint(before), before.location:
            begin = address(result)
            numbers = [(const_index(b.offset), const_index(b.size.units)) for b in buffers]
            return [Place("graphc_scratch", (begin, offset, size)) for offset, size in numbers]

    def begin(self, buffer: Buffer, place: Place, before: ir.Operation) -> ir.Value:
        """Replaces an allocation by a view of its place, made before an operation; returns the place."""
        alloc = buffer.alloc
        with ir.InsertionPoint(before), alloc.location:
            memory: ir.Value = self._call(place.function, [self._bytes], place.arguments).result
            operands = [memory, const_index(0), *alloc.operands]
            view = build.create("memref.view", [alloc.results[0].type], operands).result
        alloc.results[0].replace_all_uses_with(view)
        alloc.erase()
        return memory

    def end(self, memory: ir.Value, last: ir.Operation, location: ir.Location) -> None:
        """Marks the end of a lifetime: what uses the place next must not be moved before it."""
        before = last.name in ("func.return", "scf.yield")
        with ir.InsertionPoint(last) if before else ir.InsertionPoint.after(last), location:
            self._call("graphc_end", [], [memory])

    def _fixed(self, workspace: Workspace, count: _Count) -> list[Place]:
        if count.real is None:
            total = const_index(min(workspace.peak, 2 * MOST_BYTES))
            scale = const_index(1)
        else:
            # The common factor, rounded up to a multiple of the alignment.
            scale = (count.value + (ALIGNMENT - 1)) & -ALIGNMENT
            total = self._checked((scale * workspace.peak), count, workspace.peak)
        memory = self._take(library.Workspace(workspace.number, planned=False), total)
        places = []
        for buffer in workspace.buffers:
            size = count.value * min(buffer.size.units, 2 * MOST_BYTES)
            offset = scale * min(buffer.offset, 2 * MOST_BYTES)
            places.append(Place("graphc_buffer", (memory, offset, size)))
        return places

    def _table(self, workspace: Workspace, counts: Sequence[_Count]) -> list[Place]:
        i64 = ir.IntegerType.get_signless(64)
        sizes = build.stack_memory(ir.MemRefType.get([len(counts)], i64))
        for number, count in enumerate(counts):
            value = self._checked(count.value, count, workspace.largest(number))
            sizes[number] = build.create("arith.index_cast", [i64], [value]).result
        plain = build.create("memref.cast", [ir.Type.parse("memref<?xi64>")], [sizes]).result
        memory = self._take(library.Workspace(workspace.number, planned=True), plain)
        places = []
        for number, buffer in enumerate(workspace.buffers):
            count = counts[workspace.key(buffer)]
            size = count.value * min(buffer.size.units, 2 * MOST_BYTES)
            places.append(Place("graphc_planned_buffer", (memory, const_index(len(counts) + number), size)))
        return places

    def _count(self, factors: tuple[ir.Value, ...]) -> _Count:
        """The product of sizes; one that is negative, because its check comes later, counts as 0."""
        value, real = const_index(1), None
        for factor in factors:
            size = larger(factor, 0)
            word = build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [size]).result
            number = build.as_f64(word)
            value = size if real is None else value * size
            real = number if real is None else real * number
        return _Count(value, real)

    def _checked(self, value: Any, count: _Count, factor: int) -> Any:
        """The value, or -1 if `factor` times the count is more than any memory."""
        if count.real is None:
            return value if factor <= MOST_BYTES else const_index(-1)
        return build.select(count.real <= MOST_BYTES / max(factor, 1), value, -1)

    def _take(self, workspace: library.Workspace, operand: Any) -> Any:
        declare_helper(self._module, workspace, [operand.type], [self._index])
        return build.call(workspace.symbol, [self._index], [operand]).result

    def _call(self, name: str, results: list[ir.Type], operands: Sequence[ir.Value]) -> Any:
        if name not in self._declared:
            self._declared.add(name)
            declare(self._module, name, [x.type for x in operands], results)
        return build.call(name, results, operands)

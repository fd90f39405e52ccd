# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A workspace: the buffers of a function that share one block of memory, and the code that uses it.

Two layouts. Fixed: offsets are known when compiling, up to one factor that all sizes have in common. Table:
sizes of several kinds; the offsets are computed at run time, when sizes differ from those of the last call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from graphc.ir.build import declare
from graphc.ir.helpers import declare_helper
from graphc.ir.value import larger
from graphc.library import helpers as library
from graphc.library.memory.places import ALIGNMENT, Interval, aligned, pack
from graphc.lowering.pointers import address
from graphc.passes.buffer.memory._buffer_sizes import Size
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Bytes of one buffer above which there is no memory on any machine: sums of fewer than 2**14 stay exact.
MOST_BYTES = 1 << 48
_ORDERED_LESS_OR_EQUAL = 5  # arith.cmpf "ole"


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
        self._i64 = ir.IntegerType.get_signless(64)
        self._f64 = ir.F64Type.get()
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
            numbers = [(self._constant(b.offset), self._constant(b.size.units)) for b in buffers]
            return [Place("graphc_scratch", (begin, offset, size)) for offset, size in numbers]

    def begin(self, buffer: Buffer, place: Place, before: ir.Operation) -> ir.Value:
        """Replaces an allocation by a view of its place, made before an operation; returns the place."""
        alloc = buffer.alloc
        with ir.InsertionPoint(before), alloc.location:
            memory = self._call(place.function, [self._bytes], place.arguments)
            operands = [memory, self._constant(0), *alloc.operands]
            view = self._create("memref.view", [alloc.results[0].type], operands)
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
            total = self._constant(min(workspace.peak, 2 * MOST_BYTES))
            scale = self._constant(1)
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
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        kind = ir.MemRefType.get([len(counts)], self._i64)
        sizes = self._create("memref.alloca", [kind], [], operandSegmentSizes=segments)
        for number, count in enumerate(counts):
            value = self._checked(count.value, count, workspace.largest(number))
            word = self._create("arith.index_cast", [self._i64], [value])
            self._create("memref.store", [], [word, sizes, self._constant(number)])
        plain = self._create("memref.cast", [ir.Type.parse("memref<?xi64>")], [sizes])
        memory = self._take(library.Workspace(workspace.number, planned=True), plain)
        places = []
        for number, buffer in enumerate(workspace.buffers):
            count = counts[workspace.key(buffer)]
            size = count.value * min(buffer.size.units, 2 * MOST_BYTES)
            places.append(
                Place("graphc_planned_buffer", (memory, self._constant(len(counts) + number), size))
            )
        return places

    def _count(self, factors: tuple[ir.Value, ...]) -> _Count:
        """The product of sizes; one that is negative, because its check comes later, counts as 0."""
        value, real = self._constant(1), None
        for factor in factors:
            size = larger(factor, 0)
            word = self._create("arith.index_cast", [self._i64], [size])
            number = self._create("arith.sitofp", [self._f64], [word])
            value = size if real is None else value * size
            real = number if real is None else real * number
        return _Count(value, real)

    def _checked(self, value: Any, count: _Count, factor: int) -> Any:
        """The value, or -1 if `factor` times the count is more than any memory."""
        if count.real is None:
            return value if factor <= MOST_BYTES else self._constant(-1)
        limit = ir.FloatAttr.get(self._f64, MOST_BYTES / max(factor, 1))
        most = self._create("arith.constant", [self._f64], [], value=limit)
        predicate = ir.IntegerAttr.get(self._i64, _ORDERED_LESS_OR_EQUAL)
        truth = ir.IntegerType.get_signless(1)
        fits = self._create("arith.cmpf", [truth], [count.real, most], predicate=predicate)
        return self._create("arith.select", [self._index], [fits, value, self._constant(-1)])

    def _create(
        self, name: str, results: list[ir.Type], operands: Sequence[ir.Value], **attributes: Any
    ) -> Any:
        op = ir.Operation.create(name, results, list(operands), attributes)
        return op.result if results else None

    def _constant(self, value: int) -> Any:
        return self._create("arith.constant", [self._index], [], value=ir.IntegerAttr.get(self._index, value))

    def _take(self, workspace: library.Workspace, operand: Any) -> Any:
        declare_helper(self._module, workspace, [operand.type], [self._index])
        callee = ir.FlatSymbolRefAttr.get(workspace.symbol)
        return self._create("func.call", [self._index], [operand], callee=callee)

    def _call(self, name: str, results: list[ir.Type], operands: Sequence[ir.Value]) -> Any:
        if name not in self._declared:
            self._declared.add(name)
            declare(self._module, name, [x.type for x in operands], results)
        return self._create("func.call", results, operands, callee=ir.FlatSymbolRefAttr.get(name))

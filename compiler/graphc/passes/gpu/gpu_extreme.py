# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of extremes of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.lowering.carried import carry, loop
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._kernel import Kernel, allocate, at_most, blocks_for, position
from graphc.passes.gpu._keys import ABOVE, EQUAL, Keys
from graphc.passes.gpu._prefix import THREADS, BlockPrefix
from graphc.passes.gpu._reduce import on_first_thread
from graphc.passes.gpu._rows import product, split
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_BELOW, _LATEST = 6, (1 << 63) - 1
_PARTS, _BLOCKS = 1024, 1 << 20
Pair = list[ir.Value]


@record()
class GpuExtreme(Pass):
    """Makes two kernels of each call that finds the first largest, or smallest, element of rows.

    Numbers become unsigned integers in the same order, with NaN, which wins, last. Blocks of threads find the
    extreme of parts of rows and its position, and then a block for each row that of its parts. From 512 rows
    on, they have one part each. Complex numbers are left to others.

    Attributes:
        each: elements of a part, at least.
    """

    each: int = 16384

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("arg_extreme",)):
            if call.dtypes[0].kind == "c":
                continue
            _Kernels(call, self.each).lower()
            call.erase()
            self.count("calls")


class _Later:
    """Of two pairs of a key and a position the one with the larger key; of equal ones the first."""

    parts = 2

    @property
    def type(self) -> ir.Type:
        """Of both numbers."""
        return ir.IntegerType.get_signless(64)

    def neutral(self) -> Pair:
        """What any element wins over."""
        return [_constant(0), _constant(_LATEST)]

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> Pair:
        """The winner."""
        bit = ir.IntegerType.get_signless(1)
        first = [
            build.compare_index(EQUAL, left[0], right[0]),
            build.compare_index(_BELOW, right[1], left[1]),
        ]
        both = build.create("arith.andi", [bit], first).result
        wins = build.create("arith.ori", [bit], [build.compare_index(ABOVE, right[0], left[0]), both]).result
        return [build.select(wins, x, y) for x, y in zip(right, left, strict=True)]


class _Kernels:
    """The kernels of a call."""

    def __init__(self, call: LibraryCall, each: int) -> None:
        self._op = call.op
        self._source, self._result = call.buffers[:2]
        self._smallest, self._is_float = bool(call.attribute("smallest")), call.dtypes[0].kind == "f"
        self._keys = Keys(call.dtypes[0], exact=False)
        self._first, self._second = Kernel(call.op, "extremes"), Kernel(call.op, "extreme")
        with self._first.host():
            one = build.const_index(1)
            *self._sizes, self._n = build.dims(self._source)
            self._rows = product(self._sizes)
            parts = build.index_op("maxsi", blocks_for(self._n, build.const_index(each), _PARTS), one)
            many = build.compare_index(5, self._rows, build.const_index(512))
            self._parts = build.select(many, one, parts)
            self._chunk = build.index_op("ceildivsi", self._n, self._parts)
            self._found = [allocate([self._rows, self._parts], _Later().type) for _ in range(2)]

    def lower(self) -> None:
        """The kernels, their launches, and whether there is an element at all."""
        self._write(self._first, self._part)
        self._write(self._second, self._whole)
        with self._first.host():
            rows, one, threads = (
                at_most(self._rows, _BLOCKS),
                build.const_index(1),
                build.const_index(THREADS),
            )
        self._first.launch([rows, self._parts], [threads])
        self._second.launch([rows, one], [threads])
        with ir.InsertionPoint(self._op), self._op.location:
            empty = build.compare_index(0, self._n, build.const_index(0))
            status = build.create("arith.extui", [_Later().type], [empty]).result
        self._op.results[0].replace_all_uses_with(status)

    def _write(self, kernel: Kernel, work: Callable[[BlockPrefix, ir.Value], None]) -> None:
        with kernel.body():
            prefix = BlockPrefix(kernel, _Later())
            start, stride = position("block_id"), position("grid_dim")
            _, block = loop(self._rows, [], start=start, step=stride)
            with ir.InsertionPoint(block):
                work(prefix, block.arguments[0])
                build.create("scf.yield", [], [])

    def _part(self, prefix: BlockPrefix, row: ir.Value) -> None:
        """Writes the extreme of the block's part of a row."""
        part, indices = position("block_id", 1), split(row, self._sizes)
        first = build.index_op("muli", part, self._chunk)
        stop = build.index_op("minsi", build.index_op("addi", first, self._chunk), self._n)
        element = ir.MemRefType(self._source.type).element_type

        def take(place: ir.Value, carried: Pair) -> Pair:
            value = build.create("memref.load", [element], [self._source, *indices, place]).result
            return _Later().combine(carried, [self._key(value), _number(place)])

        found = self._reduced(prefix, first, stop, take)
        with on_first_thread():
            for value, buffer in zip(found, self._found, strict=True):
                build.create("memref.store", [], [value, buffer, row, part])

    def _whole(self, prefix: BlockPrefix, row: ir.Value) -> None:
        """Writes the position of the extreme of all parts of a row."""
        kind = _Later().type

        def take(part: ir.Value, carried: Pair) -> Pair:
            pair = [build.create("memref.load", [kind], [b, row, part]).result for b in self._found]
            return _Later().combine(carried, pair)

        found = self._reduced(prefix, build.const_index(0), self._parts, take)
        with on_first_thread():
            place = [self._result, *split(row, self._sizes)]
            build.create("memref.store", [], [found[1], *place])

    def _reduced(
        self, prefix: BlockPrefix, first: ir.Value, stop: ir.Value, take: Callable[[ir.Value, Pair], Pair]
    ) -> Pair:
        """What a range comes to, shared by the threads of the block."""
        start = build.index_op("addi", first, position("thread_id"))
        own = carry(stop, _Later().neutral(), take, start=start, step=position("block_dim"))
        return prefix.before(own)[1]

    def _key(self, value: ir.Value) -> ir.Value:
        """A key of 64 bits, the largest of which wins."""
        key, last = self._keys.of(value), self._keys.last()
        if self._smallest:
            turned = build.create("arith.xori", [self._keys.type], [key, last]).result
            key = (
                build.select(build.compare_index(EQUAL, key, last), key, turned) if self._is_float else turned
            )
        if self._keys.width == 64:
            return key
        wide: ir.Value = build.create("arith.extui", [_Later().type], [key]).result
        return wide


def _constant(number: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(64)
    found: ir.Value = build.create(
        "arith.constant", [kind], [], value=ir.IntegerAttr.get(kind, number)
    ).result
    return found


def _number(place: ir.Value) -> ir.Value:
    found: ir.Value = build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [place]).result
    return found

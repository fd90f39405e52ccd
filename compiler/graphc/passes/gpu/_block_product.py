# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A few rows times a matrix, by one block of threads."""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.lowering.carried import carry, loop
from graphc.lowering.partial_reductions import constant
from graphc.passes.gpu._kernel import Kernel, barrier, position
from graphc.passes.gpu._nest import Nest, Operand, load
from graphc.passes.gpu._reduce import on_condition
from graphc_dialects._mlir import ir

_PRODUCTS = (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"])
# How much of the rows is in shared memory at a time, and how much of the matrix a thread reads at once.
_DEPTH, _AHEAD = 256, 8
# Bytes of a load from shared memory.
_WIDTH = 16
# Takes the row, the column and what the product is there.
Finish = Callable[[ir.Value, ir.Value, ir.Value], None]


def is_product(nest: Nest) -> bool:
    """Whether a nest is a product of rows, along its first dimension, with a matrix."""
    if [op.name for op in nest.body] not in _PRODUCTS or nest.rank != 3 or len(nest.inputs) != 2:
        return False
    if nest.reduction != [False, False, True] or nest.indexed:
        return False
    left, right = sides(nest)
    return sorted(left.axes, key=str) == [0, 2] and sorted(right.axes, key=str) == [1, 2]


def sides(nest: Nest) -> tuple[Operand, Operand]:
    """The rows and the matrix."""
    first, second = nest.inputs
    return (first, second) if 0 in first.axes else (second, first)


class BlockProduct:
    """Products of a kernel whose blocks have threads along x and `rows` groups of them along y.

    A group has a part of the additions of all columns, for all rows: an element of the matrix is read once a
    block. The rows are in shared memory. The parts are added up in order.

    Args:
        kernel: it gets shared memory for each element type.
        rows: of a block.
        columns: the most threads along x.
    """

    def __init__(self, kernel: Kernel, rows: int, columns: int) -> None:
        self._kernel, self._rows, self._columns = kernel, rows, columns
        self._buffers: dict[str, tuple[ir.Value, ir.Value]] = {}

    def write(self, nest: Nest, right: Operand, first: ir.Value, finish: Finish) -> None:
        """The product, of rows from `first` on, at the insertion point.

        Args:
            nest: a product.
            right: the matrix, as the nest or otherwise.
            first: the block's first row.
            finish: writes what takes an element's sum; one thread does for each element.
        """
        kind = nest.outputs[0].argument.type
        if str(kind) not in self._buffers:
            left = self._kernel.shared([self._rows, _DEPTH], kind, alignment=_WIDTH)
            parts = self._kernel.shared([self._rows, self._rows, self._columns], kind)
            self._buffers[str(kind)] = left, parts
        _Writer(nest, right, first, self._rows, self._buffers[str(kind)]).write(finish)


class _Writer:
    """One product."""

    def __init__(
        self, nest: Nest, right: Operand, first: ir.Value, rows: int, buffers: tuple[ir.Value, ir.Value]
    ) -> None:
        self._nest, self._right, self._first, self._rows = nest, right, first, rows
        self._left = sides(nest)[0]
        self._staged, self._parts = buffers
        self._kind = nest.outputs[0].argument.type
        self._lanes = max(_WIDTH // int(dtype_of(self._kind).itemsize), 1)
        self._sizes = [nest.extent(axis) for axis in range(3)]
        self._tx, self._ty = position("thread_id", 0), position("thread_id", 1)
        self._width = position("block_dim", 0)

    def write(self, finish: Finish) -> None:
        """The product, in blocks of columns."""
        _, block = loop(self._sizes[1], [], step=self._width)
        with ir.InsertionPoint(block):
            column = build.index_op("addi", block.arguments[0], self._tx)
            last = build.index_op("subi", self._sizes[1], build.const_index(1))
            self._column = build.index_op("minsi", column, last)
            zeros = [self._zero()] * self._rows
            sums = carry(self._sizes[2], zeros, self._chunk, step=build.const_index(_DEPTH))
            for row, value in enumerate(sums):
                place = [self._ty, build.const_index(row), self._tx]
                build.create("memref.store", [], [value, self._parts, *place])
            barrier()
            row = build.index_op("addi", self._first, self._ty)
            inside = [
                build.compare_index(2, row, self._sizes[0]),
                build.compare_index(2, column, self._sizes[1]),
            ]
            with on_condition(build.create("arith.andi", [inside[0].type], inside).result):
                finish(row, column, self._total())
            barrier()
            build.create("scf.yield", [], [])

    def _total(self) -> ir.Value:
        """The sum of the groups' parts."""
        total: ir.Value | None = None
        for group in range(self._rows):
            place = [build.const_index(group), self._ty, self._tx]
            part = build.create("memref.load", [self._kind], [self._parts, *place]).result
            total = part if total is None else self._sum(total, part)
        assert total is not None
        return total

    def _chunk(self, start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one part of the rows."""
        self._stage(start)
        barrier()
        share = build.const_index(_DEPTH // self._rows)
        own = build.index_op("muli", self._ty, share)
        begin = build.index_op("addi", start, own)
        left = build.index_op("subi", self._sizes[2], begin)
        count = build.index_op("minsi", build.index_op("maxsi", left, build.const_index(0)), share)
        ahead = build.const_index(_AHEAD)
        whole = build.index_op("muli", build.index_op("divui", count, ahead), ahead)

        def several(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            deep = [build.index_op("addi", at, build.const_index(i)) for i in range(_AHEAD)]
            matrix = [self._matrix(build.index_op("addi", begin, i)) for i in deep]
            lefts = [self._row_part(row, build.index_op("addi", own, at)) for row in range(self._rows)]
            for i, right in enumerate(matrix):
                sums = [self._add(part[i], right, total) for part, total in zip(lefts, sums, strict=True)]
            return sums

        def one(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            right, place = self._matrix(build.index_op("addi", begin, at)), build.index_op("addi", own, at)
            lefts = [self._staged_at(row, place) for row in range(self._rows)]
            return [self._add(left, right, total) for left, total in zip(lefts, sums, strict=True)]

        sums = carry(whole, sums, several, step=ahead)
        sums = carry(count, sums, one, start=whole)
        barrier()
        return sums

    def _stage(self, start: ir.Value) -> None:
        """Copies a part of the rows to shared memory, with zeros where there are none."""
        depth = build.const_index(_DEPTH)
        thread = build.index_op("addi", build.index_op("muli", self._ty, self._width), self._tx)
        threads = build.index_op("muli", self._width, build.const_index(self._rows))
        _, block = loop(build.const_index(self._rows * _DEPTH), [], start=thread, step=threads)
        with ir.InsertionPoint(block):
            element = block.arguments[0]
            r, k = build.index_op("divui", element, depth), build.index_op("remui", element, depth)
            row, deep = build.index_op("addi", self._first, r), build.index_op("addi", start, k)
            inside = [
                build.compare_index(2, row, self._sizes[0]),
                build.compare_index(2, deep, self._sizes[2]),
            ]
            both = build.create("arith.andi", [inside[0].type], inside).result
            build.create("memref.store", [], [self._zero(), self._staged, r, k])
            with on_condition(both):
                value = load(self._left, [row, row, deep])
                build.create("memref.store", [], [value, self._staged, r, k])
            build.create("scf.yield", [], [])

    def _inside(self, *places: tuple[ir.Value, ir.Value]) -> ir.Value:
        """Whether two indices are below their limits."""
        conditions = [build.compare_index(2, index, limit) for index, limit in places]
        found: ir.Value = build.create("arith.andi", [conditions[0].type], conditions).result
        return found

    def _matrix(self, deep: ir.Value) -> ir.Value:
        return load(self._right, [self._column, self._column, deep])

    def _row_part(self, row: int, at: ir.Value) -> list[ir.Value]:
        """Neighbouring elements of a row in shared memory."""
        kind = ir.VectorType.get([self._lanes], self._kind)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _WIDTH)
        found: list[ir.Value] = []
        for start in range(0, _AHEAD, self._lanes):
            place = build.index_op("addi", at, build.const_index(start))
            operands = [self._staged, build.const_index(row), place]
            vector = build.create("vector.load", [kind], operands, alignment=alignment).result
            for lane in range(min(self._lanes, _AHEAD)):
                where = ir.DenseI64ArrayAttr.get([lane])
                found.append(
                    build.create("vector.extract", [self._kind], [vector], static_position=where).result
                )
        return found[:_AHEAD]

    def _staged_at(self, row: int, at: ir.Value) -> ir.Value:
        return build.create("memref.load", [self._kind], [self._staged, build.const_index(row), at]).result

    def _add(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        nest = self._nest
        values = {self._left.argument: left, self._right.argument: right, nest.outputs[0].argument: total}
        return nest.compute(nest.yields, values, [])[0]

    def _sum(self, a: ir.Value, b: ir.Value) -> ir.Value:
        name = "arith.addi" if isinstance(self._kind, ir.IntegerType) else "arith.addf"
        found: ir.Value = build.create(name, [a.type], [a, b]).result
        return found

    def _zero(self) -> ir.Value:
        found: ir.Value = constant(self._kind, 0 if isinstance(self._kind, ir.IntegerType) else 0.0)
        return found

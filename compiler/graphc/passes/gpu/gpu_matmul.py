# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products through shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.ir import build
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry, loop
from graphc.lowering.partial_reductions import constant
from graphc.passes.gpu._kernel import Kernel, at_most, barrier, blocks_for, position
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._reduce import on_condition
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir

_BLOCKS = 65535
_PRODUCTS = (
    ["arith.mulf", "arith.addf"],
    ["arith.muli", "arith.addi"],
    ["complex.mul", "complex.add"],
)
# Rows and columns of the result that a thread has.
_EACH = 4


@dataclass
class GpuMatmul(Pass):
    """Makes a tiled kernel of each matrix product, batched or not.

    A block computes a square of `tile` rows and columns with a quarter as many threads along each axis: the
    rows of the left side and the columns of the right one that a step of `depth` needs are copied to shared
    memory, and each thread keeps 4 by 4 sums in registers. Sums are made in the order of the rows, so that
    equal calls give equal bits. Edges are filled with zeros. Any strides will do: transposed operands are
    read as they are. Products with a vector are left to the passes for reductions. Method: the blocked
    product at the first level of CUTLASS; tensor cores are not used.

    Attributes:
        tile: rows and columns of a block; a multiple of 4.
        depth: how much of the reduced dimension is in shared memory at a time.
    """

    tile: int = 64
    depth: int = 16

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                product = _product(Nest(op))
                if product is not None:
                    _Writer(product, self.tile, self.depth).lower()
                    op.erase()
                    self.count("kernels")


@dataclass
class _Product:
    """A product, and which dimensions of its nest are what."""

    nest: Nest
    batch: list[int]
    row: int
    column: int
    inner: int


def _product(nest: Nest) -> _Product | None:
    """The product that a nest is; None if it is something else, or a side is a vector."""
    names = [op.name for op in nest.body]
    if names not in _PRODUCTS:
        return None
    if len(nest.inputs) != 2 or len(nest.outputs) != 1 or nest.indexed or sum(nest.reduction) != 1:
        return None
    left, right = (set(operand.axes) for operand in nest.inputs)
    result = set(nest.outputs[0].axes)
    axes = range(nest.rank)
    rows = [axis for axis in axes if axis in left & result - right]
    columns = [axis for axis in axes if axis in right & result - left]
    batch = [axis for axis in axes if axis in left & right & result]
    inner = nest.reduction.index(True)
    if len(rows) != 1 or len(columns) != 1 or len(batch) > 1 or inner not in left & right:
        return None
    return _Product(nest, batch, rows[0], columns[0], inner)


class _Writer:
    """Writes the kernel of a product."""

    def __init__(self, product: _Product, tile: int, depth: int) -> None:
        self._product, self._nest = product, product.nest
        self._tile, self._depth, self._side = tile, depth, tile // _EACH
        self._kernel = Kernel(self._nest.op, "product")

    def lower(self) -> None:
        """The kernel and its launch."""
        product, nest = self._product, self._nest
        with self._kernel.host():
            self._sizes = [nest.extent(axis) for axis in range(nest.rank)]
            tile, side = build.const_index(self._tile), build.const_index(self._side)
            grid = [
                blocks_for(self._sizes[product.column], tile, 1 << 30),
                blocks_for(self._sizes[product.row], tile, _BLOCKS),
                *(at_most(self._sizes[axis], _BLOCKS) for axis in product.batch),
            ]
        # One element more in a row: threads that write a column do not meet in one bank.
        self._shared = [
            self._kernel.shared([self._depth, self._tile + 1], operand.argument.type)
            for operand in nest.inputs
        ]
        with self._kernel.body():
            self._place = [build.const_index(0)] * nest.rank
            self._threads = position("thread_id", 0), position("thread_id", 1)
            self._batch()
        self._kernel.launch(grid, [side, side])

    def _batch(self) -> None:
        if not self._product.batch:
            self._rows()
            return
        axis = self._product.batch[0]
        start, step = position("block_id", 2), position("grid_dim", 2)
        _, block = loop(self._sizes[axis], [], start=start, step=step)
        with ir.InsertionPoint(block):
            self._place[axis] = block.arguments[0]
            self._rows()
            build.create("scf.yield", [], [])

    def _rows(self) -> None:
        """The blocks of rows that a block of threads has."""
        tile = build.const_index(self._tile)
        column = build.index_op("muli", position("block_id", 0), tile)
        start = build.index_op("muli", position("block_id", 1), tile)
        step = build.index_op("muli", position("grid_dim", 1), tile)
        _, block = loop(self._sizes[self._product.row], [], start=start, step=step)
        with ir.InsertionPoint(block):
            self._square(block.arguments[0], column)
            build.create("scf.yield", [], [])

    def _square(self, row: ir.Value, column: ir.Value) -> None:
        """A square of the result."""
        product, nest = self._product, self._nest
        kind = nest.outputs[0].argument.type
        zero = _zero(kind)

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for operand, buffer, axis, first in zip(
                nest.inputs, self._shared, (product.row, product.column), (row, column), strict=True
            ):
                self._copy(operand, buffer, axis, first, start)
            barrier()
            sums = carry(build.const_index(self._depth), sums, self._step)
            barrier()
            return sums

        depth = build.const_index(self._depth)
        sums = carry(self._sizes[product.inner], [zero] * _EACH**2, body, step=depth)
        self._store(row, column, sums)

    def _copy(self, operand: Operand, buffer: ir.Value, axis: int, first: ir.Value, start: ir.Value) -> None:
        """The part of an operand that a step needs, with zeros past its edges.

        Neighbouring threads read along the operand's last dimension.
        """
        tx, ty = self._threads
        inner = self._product.inner
        along_inner = operand.axes[-1] == inner
        width = build.const_index(self._depth if along_inner else self._tile)
        thread = build.index_op("addi", build.index_op("muli", ty, build.const_index(self._side)), tx)
        for number in range(self._depth * self._tile // self._side**2):
            element = build.index_op("addi", thread, build.const_index(number * self._side**2))
            fast = build.index_op("remui", element, width)
            slow = build.index_op("divui", element, width)
            deep, wide = (fast, slow) if along_inner else (slow, fast)
            place = list(self._place)
            inside = []
            for dimension, origin, offset in ((inner, start, deep), (axis, first, wide)):
                at = build.index_op("addi", origin, offset)
                last = build.index_op("subi", self._sizes[dimension], build.const_index(1))
                inside.append(build.compare_index(3, at, last))
                place[dimension] = build.index_op("minsi", at, last)
            both = build.create("arith.andi", [inside[0].type], inside).result
            value = build.select(both, load(operand, place), _zero(operand.argument.type))
            build.create("memref.store", [], [value, buffer, deep, wide])

    def _step(self, deep: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one row of the left part and one of the right part."""
        nest = self._nest
        sides = [
            [self._read(buffer, deep, self._own(thread, number)) for number in range(_EACH)]
            for buffer, thread in zip(self._shared, reversed(self._threads), strict=True)
        ]
        arguments = [operand.argument for operand in nest.operands]
        found = []
        for number, total in enumerate(sums):
            i, j = divmod(number, _EACH)
            values = dict(zip(arguments, (sides[0][i], sides[1][j], total), strict=True))
            found += nest.compute(nest.yields, values, [])
        return found

    def _read(self, buffer: ir.Value, deep: ir.Value, wide: ir.Value) -> ir.Value:
        element = ir.MemRefType(buffer.type).element_type
        return build.create("memref.load", [element], [buffer, deep, wide]).result

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """A row or column of the square that a thread has."""
        return build.index_op("addi", thread, build.const_index(number * self._side))

    def _store(self, row: ir.Value, column: ir.Value, sums: list[ir.Value]) -> None:
        """Adds the sums to the result, within its edges."""
        product, nest = self._product, self._nest
        operand = nest.outputs[0]
        tx, ty = self._threads
        for number, total in enumerate(sums):
            i, j = divmod(number, _EACH)
            place = list(self._place)
            place[product.row] = build.index_op("addi", row, self._own(ty, i))
            place[product.column] = build.index_op("addi", column, self._own(tx, j))
            inside = [
                build.compare_index(2, place[axis], self._sizes[axis])
                for axis in (product.row, product.column)
            ]
            with on_condition(build.create("arith.andi", [inside[0].type], inside).result):
                store(_sum(load(operand, place), total), operand, place)


def _zero(kind: ir.Type) -> ir.Value:
    return constant(kind, 0 if isinstance(kind, ir.IntegerType) else 0.0)


def _sum(a: ir.Value, b: ir.Value) -> ir.Value:
    name = {ir.IntegerType: "arith.addi", ir.ComplexType: "complex.add"}.get(type(a.type), "arith.addf")
    return build.create(name, [a.type], [a, b]).result

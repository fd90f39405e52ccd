# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of large matrices: many sums a thread, and the next part is read while this one is added up."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.ir.value import all_of, smaller
from graphc.lowering.carried import carry, when
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Operand, load
from graphc.passes.gpu._notation import barrier, thread_id
from graphc.passes.gpu._product import Product, add_to_result, each_part, zero
from graphc_dialects._mlir import ir

# Rows and columns of a block; neighbouring ones of a thread, which are one load of 16 bytes.
TILES, _VECTOR = (128, 64), 4
# Threads along each side, and rows and columns of a thread.
_SIDE = 16
_EACH = tuple(tile // _SIDE for tile in TILES)
_THREADS = _SIDE * _SIDE
_DEPTH, _UNROLLED = 16, 2


def is_large(product: Product) -> bool:
    """True if the sums of a thread fit into its registers, and four elements into 16 bytes."""
    kind, *others = {
        str(operand.argument.type): operand.argument.type for operand in product.nest.operands
    }.values()
    return not others and not isinstance(kind, ir.ComplexType) and dtype_of(kind).itemsize == 4


class LargeProduct:
    """Writes the kernel of a product.

    Args:
        kernel: where to.
        product: what.
        sizes: of the dimensions of its nest.
    """

    def __init__(self, kernel: Kernel, product: Product, sizes: list[ir.Value]) -> None:
        self._kernel, self._product, self._sizes = kernel, product, sizes
        kind = product.nest.outputs[0].argument.type
        # Four elements more in a row, so that rows begin at multiples of 16 bytes.
        self._shared = [kernel.shared([2, _DEPTH, tile + _VECTOR], kind, alignment=16) for tile in TILES]

    def threads(self) -> list[ir.Value]:
        """Threads of a block."""
        return [build.const_index(_SIDE)] * 2

    def write(self) -> None:
        """The body."""
        with self._kernel.body():
            self._tx, self._ty = thread_id(), thread_id(1)
            each_part(self._product, self._sizes, TILES, self._square)

    def _square(self, place: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """A square of the result."""
        product = self._product
        self._place = place
        self._first = {product.row: row, product.column: column}
        depth, one, unrolled = (build.const_index(number) for number in (_DEPTH, 1, _UNROLLED))
        inner = self._sizes[product.inner]
        with when(inner > 0):
            first = build.const_index(0)
            self._put(self._fetch(first), first)
        barrier()

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            half = (start // depth) & one
            fetched = self._fetch(start + depth)
            sums = carry(depth, sums, lambda deep, sums: self._steps(half, deep, sums), step=unrolled)
            self._put(fetched, one - half)
            barrier()
            return sums

        kind = product.nest.outputs[0].argument.type
        sums = carry(inner, [zero(kind)] * (_EACH[0] * _EACH[1]), body, step=depth)
        for number, total in enumerate(sums):
            i, j = divmod(number, _EACH[1])
            place = list(self._place)
            place[product.row] = row + self._own(self._ty, i)
            place[product.column] = column + self._own(self._tx, j)
            add_to_result(product, self._sizes, place, total)

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """A row or column of the square that a thread has: neighbours, and others half a square away."""
        group, lane = divmod(number, _VECTOR)
        return thread * _VECTOR + (group * _SIDE * _VECTOR + lane)

    def _fetch(self, start: ir.Value) -> list[list[ir.Value]]:
        """The thread's elements of the parts of both sides from a depth on, with zeros past the edges."""
        product = self._product
        sides = zip(product.nest.inputs, (product.row, product.column), TILES, strict=True)
        return [
            [
                self._read(operand, axis, *self._element(operand, tile, number), start)
                for number in range(_DEPTH * tile // _THREADS)
            ]
            for operand, axis, tile in sides
        ]

    def _element(self, operand: Operand, tile: int, number: int) -> tuple[ir.Value, ir.Value]:
        """Depth and width of an element; neighbouring threads read along the operand's last dimension."""
        along_inner = operand.axes[-1] == self._product.inner
        width = build.const_index(_DEPTH if along_inner else tile)
        thread = self._ty * _SIDE
        thread = thread + self._tx
        element = thread + number * _THREADS
        fast, slow = element % width, element // width
        return (fast, slow) if along_inner else (slow, fast)

    def _read(self, operand: Operand, axis: int, deep: ir.Value, wide: ir.Value, start: ir.Value) -> ir.Value:
        place, inside = list(self._place), []
        for dimension, origin, offset in (
            (self._product.inner, start, deep),
            (axis, self._first[axis], wide),
        ):
            at = origin + offset
            last = self._sizes[dimension] - 1
            inside.append(at <= last)
            place[dimension] = smaller(at, last)
        both = all_of(inside)
        return build.select(both, load(operand, place), zero(operand.argument.type))

    def _put(self, fetched: list[list[ir.Value]], half: ir.Value) -> None:
        """Writes what was fetched to one half of shared memory."""
        sides = zip(self._product.nest.inputs, TILES, self._shared, fetched, strict=True)
        for operand, tile, buffer, values in sides:
            for number, value in enumerate(values):
                place = [half, *self._element(operand, tile, number)]
                buffer[place] = value

    def _steps(self, half: ir.Value, first: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of a few rows of both parts."""
        for number in range(_UNROLLED):
            sums = self._step(half, first + number, sums)
        return sums

    def _step(self, half: ir.Value, deep: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one row of the left part and one of the right part."""
        nest = self._product.nest
        left, right = (
            self._vectors(buffer, half, deep, thread, each)
            for buffer, thread, each in zip(self._shared, (self._ty, self._tx), _EACH, strict=True)
        )
        arguments = [operand.argument for operand in nest.operands]
        found = []
        for number, total in enumerate(sums):
            i, j = divmod(number, _EACH[1])
            values = dict(zip(arguments, (left[i], right[j], total), strict=True))
            found += nest.compute(nest.yields, values, [])
        return found

    def _vectors(
        self, buffer: ir.Value, half: ir.Value, deep: ir.Value, thread: ir.Value, each: int
    ) -> list[ir.Value]:
        """The thread's rows or columns at a depth."""
        element = ir.MemRefType(buffer.type).element_type
        kind = ir.VectorType.get([_VECTOR], element)
        alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 16)
        found = []
        for start in range(0, each, _VECTOR):
            place = [half, deep, self._own(thread, start)]
            vector = build.create("vector.load", [kind], [buffer, *place], alignment=alignment).result
            for lane in range(_VECTOR):
                where = ir.DenseI64ArrayAttr.get([lane])
                found.append(
                    build.create("vector.extract", [element], [vector], static_position=where).result
                )
        return found

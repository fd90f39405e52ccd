# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products on tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphc.ir import build
from graphc.lowering.carried import carry, loop
from graphc.passes.gpu import _async_copy as asynchronous
from graphc.passes.gpu._fragments import DOUBLE, HALF, TF32, Fragments, Instruction, Side
from graphc.passes.gpu._kernel import Kernel, barrier, position
from graphc.passes.gpu._nest import Operand
from graphc.passes.gpu._product import Product, add_to_result, each_part, zero
from graphc.passes.gpu._reduce import on_condition
from graphc.passes.gpu._shuffle import WARP
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record(frozen=True)
class Shape:
    """How a product is divided.

    Attributes:
        instruction: what a warp does at once.
        tiles: rows and columns of a block.
        warps: how many of them are side by side along the rows and along the columns of a block.
        depth: how much of the summed dimension is in one half of shared memory.
    """

    instruction: Instruction
    tiles: tuple[int, int]
    warps: tuple[int, int]
    depth: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps[0] * self.warps[1] * WARP


# Threads of a multiprocessor, each of which has 128 registers then.
_RESIDENT = 512
_NOT_UNROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"
_LARGE, _SMALL = ((128, 128), (2, 4)), ((64, 64), (2, 2))
# Sums in float64 fill twice the registers, and tiles twice the shared memory.
_SHAPES = {
    "f16": [Shape(HALF, *_SMALL, 32), Shape(HALF, *_LARGE, 32)],
    "f32": [Shape(TF32, *_SMALL, 16), Shape(TF32, *_LARGE, 16)],
    "f64": [Shape(DOUBLE, *_SMALL, 16)],
}


def shapes_of(product: Product, precision: str) -> list[Shape]:
    """Ways to divide a product among tensor cores, for larger ones last; none if they are not for it.

    Args:
        product: what is multiplied.
        precision: of float32: "float32", or "tf32" if factors may be rounded to 10 bits.
    """
    element, *others = [str(operand.argument.type) for operand in product.nest.operands]
    found = _SHAPES.get(element, [])
    if not found or others != [element, found[0].instruction.total]:
        return []
    return [] if found[0].instruction.rounds and precision != "tf32" else found


class TensorProduct:
    """Writes the kernel of a product.

    While a half of shared memory is multiplied, the next part of both sides is copied to the other one: 16
    bytes at once where rows begin at such addresses, else element by element.

    Args:
        kernel: where to.
        product: what.
        sizes: of the dimensions of its nest.
        shape: how.
    """

    def __init__(self, kernel: Kernel, product: Product, sizes: list[ir.Value], shape: Shape) -> None:
        self._kernel, self._product, self._sizes, self._shape = kernel, product, sizes, shape
        kernel.limit(shape.threads, _RESIDENT // shape.threads)
        self._axes = (product.row, product.column)
        self._sides = [
            self._side(operand, tile) for operand, tile in zip(product.nest.inputs, shape.tiles, strict=True)
        ]

    def _side(self, operand: Operand, tile: int) -> Side:
        """Memory for one side.

        Rows are longer by so much that the lanes of a warp read from different banks.
        """
        deep_last = operand.axes[-1] == self._product.inner
        size = self._itemsize(operand)
        instruction = self._shape.instruction
        more = asynchronous.BYTES * (1 if instruction.pairs or (deep_last and size == 4) else 2) // size
        tail = [self._shape.depth + more] if deep_last else [tile + more]
        head = [2, tile] if deep_last else [2, self._shape.depth]
        buffer = self._kernel.shared([*head, *tail], operand.argument.type, alignment=asynchronous.BYTES)
        return Side(buffer, deep_last)

    def _itemsize(self, operand: Operand) -> int:
        return int(operand.argument.type.width) // 8

    def write(self) -> None:
        """The body."""
        with self._kernel.body():
            self._fragments = Fragments(self._shape.instruction)
            self._aligned = [asynchronous.is_aligned(operand.buffer) for operand in self._product.nest.inputs]
            each_part(self._product, self._sizes, self._shape.tiles, self._part)

    def _part(self, place: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """The part of the result that a block has."""
        product, shape = self._product, self._shape
        self._place, self._first = place, (row, column)
        depth, one = build.const_index(shape.depth), build.const_index(1)
        inner = self._sizes[product.inner]
        none = build.const_index(0)
        # Of the part before, all have read what is in shared memory.
        barrier()
        with on_condition(build.compare_index(4, inner, none)):
            self._fetch(none, none)

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            half = build.index_op("andi", build.index_op("divui", start, depth), one)
            asynchronous.arrived()
            barrier()
            following = build.index_op("addi", start, depth)
            with on_condition(build.compare_index(2, following, inner)):
                self._fetch(following, build.index_op("subi", one, half))
            return self._multiply(half, sums)

        rows, columns = self._counts()
        nothing = [self._fragments.nothing()] * (rows * columns)
        self._store(carry(inner, nothing, body, step=depth))

    def _counts(self) -> tuple[int, int]:
        """How many matrices of an instruction a warp has along the rows and along the columns."""
        shape = self._shape
        sizes = (shape.instruction.rows, shape.instruction.columns)
        rows, columns = (
            tile // warps // size for tile, warps, size in zip(shape.tiles, shape.warps, sizes, strict=True)
        )
        return rows, columns

    def _starts(self) -> tuple[list[ir.Value], list[ir.Value]]:
        """Where the matrices of the warp begin in the part of the block."""
        shape = self._shape
        across = build.const_index(shape.warps[1])
        numbers = (build.index_op(name, self._fragments.warp, across) for name in ("divui", "remui"))
        sizes = (shape.instruction.rows, shape.instruction.columns)
        rows, columns = (
            [
                build.index_op(
                    "addi",
                    build.index_op("muli", number, build.const_index(size * count)),
                    build.const_index(size * step),
                )
                for step in range(count)
            ]
            for number, size, count in zip(numbers, sizes, self._counts(), strict=True)
        )
        return rows, columns

    def _multiply(self, half: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds what is in a half of shared memory."""
        fragments = self._fragments
        rows, columns = self._starts()
        for start in range(0, self._shape.depth, self._shape.instruction.depth):
            deep = build.const_index(start)
            left = [fragments.left(self._sides[0], half, row, deep) for row in rows]
            right = [fragments.right(self._sides[1], half, column, deep) for column in columns]
            pairs = [(x, y) for x in left for y in right]
            sums = [fragments.multiply(x, y, total) for (x, y), total in zip(pairs, sums, strict=True)]
        return sums

    def _store(self, sums: list[ir.Value]) -> None:
        """Adds the sums to the result, within its edges."""
        product, fragments = self._product, self._fragments
        rows, columns = self._starts()
        starts = [(row, column) for row in rows for column in columns]
        for (row, column), total in zip(starts, sums, strict=True):
            for i, j, where in fragments.places(row, column):
                place = list(self._place)
                place[product.row] = build.index_op("addi", self._first[0], i)
                place[product.column] = build.index_op("addi", self._first[1], j)
                add_to_result(product, self._sizes, place, fragments.extract(total, where))

    # -- from global to shared memory ----------------------------------------------------------------------

    def _fetch(self, start: ir.Value, half: ir.Value) -> None:
        """Starts copies of the parts of both sides from a depth on, with zeros past the edges."""
        inputs = self._product.nest.inputs
        for number, (operand, aligned) in enumerate(zip(inputs, self._aligned, strict=True)):
            if aligned is None:
                self._elements(number, operand, start, half)
                continue
            made = ir.Operation.create("scf.if", operands=[aligned], regions=2)
            for region, write in zip(made.regions, (self._rows, self._elements), strict=True):
                with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
                    write(number, operand, start, half)
                    build.create("scf.yield", [], [])

    def _rows(self, number: int, operand: Operand, start: ir.Value, half: ir.Value) -> None:
        """16 bytes at once."""
        long = asynchronous.BYTES // self._itemsize(operand)
        with self._each(number, long) as chunk:
            place, to, left = self._where(number, operand, start, half, (chunk, long))
            wanted = build.index_op("minsi", left, build.const_index(long))
            asynchronous.copy(operand.buffer, place, self._sides[number].buffer, to, long, wanted)

    def _elements(self, number: int, operand: Operand, start: ir.Value, half: ir.Value) -> None:
        """One element after the other.

        What is smaller than a word, or of no contiguous row, cannot be copied meanwhile.
        """
        one, buffer = build.const_index(1), self._sides[number].buffer
        is_word = self._itemsize(operand) >= asynchronous.LEAST and self._aligned[number] is not None
        with self._each(number, 1) as chunk:
            place, to, left = self._where(number, operand, start, half, (chunk, 1))
            if is_word:
                wanted = build.index_op("minsi", left, one)
                asynchronous.copy(operand.buffer, place, buffer, to, 1, wanted)
                return
            inside = build.compare_index(4, left, build.const_index(0))
            kind = operand.argument.type
            element = build.create("memref.load", [kind], [operand.buffer, *place]).result
            value = build.select(inside, element, zero(kind))
            build.create("memref.store", [], [value, buffer, *to])

    @contextmanager
    def _each(self, number: int, long: int) -> Iterator[ir.Value]:
        """Loops over the parts of rows, of so many elements, that a thread copies.

        Unrolled, the addresses of all of them would be kept in registers throughout the kernel.
        """
        shape = self._shape
        count = shape.depth * shape.tiles[number] // long // shape.threads
        made, block = loop(build.const_index(count), [])
        made.attributes["loop_annotation"] = ir.Attribute.parse(_NOT_UNROLLED)
        with ir.InsertionPoint(block):
            yield block.arguments[0]
            build.create("scf.yield", [], [])

    def _where(
        self, number: int, operand: Operand, start: ir.Value, half: ir.Value, which: tuple[ir.Value, int]
    ) -> tuple[list[ir.Value], list[ir.Value], ir.Value]:
        """Indices in the operand and in shared memory, and how many elements are left of the row.

        Neighbouring threads have neighbouring parts of rows.

        Args:
            which: the number of the part among those of the thread, and the elements of a part.
        """
        side, none = self._sides[number], build.const_index(0)
        chunk, long = which
        row = self._shape.depth if side.deep_last else self._shape.tiles[number]
        width = build.const_index(row // long)
        chunk = build.index_op("muli", chunk, build.const_index(self._shape.threads))
        chunk = build.index_op("addi", chunk, position("thread_id"))
        slow = build.index_op("divui", chunk, width)
        fast = build.index_op("muli", build.index_op("remui", chunk, width), build.const_index(long))
        inner, axis = self._product.inner, self._axes[number]
        origins = {inner: start, axis: self._first[number]}
        along, across = (inner, axis) if side.deep_last else (axis, inner)
        at = {along: build.index_op("addi", origins[along], fast)}
        at[across] = build.index_op("addi", origins[across], slow)
        left = build.index_op("subi", self._sizes[along], at[along])
        left = build.index_op("maxsi", left, none)
        inside = build.compare_index(2, at[across], self._sizes[across])
        left = build.select(inside, left, none)
        some = build.compare_index(4, left, none)
        place = list(self._place)
        for dimension in (along, across):
            place[dimension] = build.select(some, at[dimension], none)
        indices = [none if dimension is None else place[dimension] for dimension in operand.axes]
        return indices, [half, slow, fast], left

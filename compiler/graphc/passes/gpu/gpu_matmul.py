# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products: through shared memory, and on tensor cores.

Tensor cores multiply small matrices that the lanes of a warp hold in parts. Which lane has which elements is
in the PTX ISA, "Matrix multiply-accumulate operation using mma instruction": with `g` = lane / 4 and `t` =
lane % 4, rows go with `g`, columns of sums and the summed dimension with `t`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.value import all_of, as_index, bits_as, larger, parts_of, smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product as number_of
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.loops import Operand
from graphc.lowering.matmul import with_fills
from graphc.lowering.memory.layouts import address
from graphc.passes import Pass
from graphc.passes.gpu._host import mark
from graphc.passes.gpu._kernel import GRID_ROWS, Kernel, blocks_for
from graphc.passes.gpu._nest import Nest, is_wide, layout, load, store
from graphc.passes.gpu._notation import (
    BYTES,
    LEAST,
    WARP,
    arrived,
    barrier,
    block_id,
    copy,
    extract,
    grid_dim,
    itemsize,
    read_vector,
    split,
    thread_id,
    vector_of,
    zero,
)
from graphc_dialects._mlir import ir
from graphc_runtime.cuda.gemm import KINDS, is_small
from graphc_runtime.record import record

# -- which nests are products ------------------------------------------------------------------------------

_LETTERS = [letter for letter in string.ascii_lowercase if letter not in "ijk"]
# Indices of the nest, of which those of the batch are set; first row and column of a part of the result.
Part: TypeAlias = "Callable[[list[ir.Value], ir.Value, ir.Value], None]"

_PARTS = [f"arith.{name}" for name in "mulf mulf subf mulf mulf addf".split()]
_PRODUCTS = (
    ["arith.mulf", "arith.addf"],
    ["arith.extf", "arith.extf", "arith.mulf", "arith.addf"],
    ["arith.muli", "arith.addi"],
    ["complex.mul", "complex.add"],
    # Complex numbers, multiplied by their parts.
    [*["complex.re", "complex.im"] * 2, *_PARTS, "complex.create", "complex.add"],
)


@record()
class Product:
    """A product, and which dimensions of its nest are what.

    Attributes:
        nest: of the product.
        batch, row, column, inner: dimensions.
        adds: whether it is added to what there is; else that counts as zeros.
    """

    nest: Nest
    batch: list[int]
    row: int
    column: int
    inner: int
    adds: bool = True


def as_product(nest: Nest) -> Product | None:
    """The product that a nest is; None if it is something else, or a side is a vector."""
    names = [op.name for op in nest.body]
    if names not in _PRODUCTS:
        return None
    if len(nest.inputs) != 2 or len(nest.outputs) != 1 or nest.indexed or sum(nest.reduction) != 1:
        return None
    left, right = (set(operand.axes) for operand in nest.inputs)
    result = set(nest.outputs[0].axes)
    axes = range(nest.rank)
    rows = [axis for axis in axes if axis in left & (result - right)]
    columns = [axis for axis in axes if axis in right & (result - left)]
    batch = [axis for axis in axes if axis in left & right & result]
    inner = nest.reduction.index(True)
    if len(rows) != 1 or len(columns) != 1 or inner not in left & right:
        return None
    return Product(nest, batch, rows[0], columns[0], inner)


def each_part(product: Product, sizes: list[ir.Value], tiles: tuple[int, int], write: Part) -> None:
    """Loops over the parts of the result that a block of threads has, in the grid of `gpu_matmul`."""
    place = [build.const_index(0)] * product.nest.rank

    def each_row() -> None:
        rows, columns = (build.const_index(tile) for tile in tiles)
        column, start = block_id() * columns, block_id(1) * rows
        with span(sizes[product.row], start=start, step=grid_dim(1) * rows) as number:
            write(place, number, column)

    if not product.batch:
        each_row()
        return
    batch = [sizes[axis] for axis in product.batch]
    with span(number_of(batch), start=block_id(2), step=grid_dim(2)) as number:
        for axis, index in zip(product.batch, split(number, batch), strict=True):
            place[axis] = index
        each_row()


def add_to_result(product: Product, sizes: list[ir.Value], place: list[ir.Value], total: ir.Value) -> None:
    """Adds a sum to an element of the result, or stores it there, if that is within the edges."""
    inside = [place[axis] < sizes[axis] for axis in (product.row, product.column)]
    operand = product.nest.outputs[0]
    with when(all_of(inside)):
        if product.adds:
            before = load(operand, place)
            is_complex = isinstance(total.type, ir.ComplexType)
            given = [before, total]
            total = build.create("complex.add", [total.type], given).result if is_complex else before + total
        store(total, operand, place)


def form_of(product: Product) -> str | None:
    """The axes of a product; None if no library takes it, or it is known to be too small for one."""
    nest = product.nest
    left, right, target = (dtype_of(operand.argument.type).name for operand in nest.operands)
    if left != right or (left, target) not in KINDS or len(product.batch) > len(_LETTERS):
        return None
    if (size := nest.static_size(range(nest.rank))) is not None and is_small(size):
        return None
    names: dict[int | None, str] = {None: ".", product.row: "i", product.column: "j", product.inner: "k"}
    names.update(zip(product.batch, _LETTERS, strict=False))
    one, two, three = ("".join(names[axis] for axis in operand.axes) for operand in nest.operands)
    return f"{one},{two}->{three}"


# -- on tensor cores --------------------------------------------------------------------------------------

# Rows, or columns, that a warp has in one register of a lane.
_GROUP = 8


@record(frozen=True)
class Instruction:
    """An instruction of tensor cores, and the division of products among blocks, the larger one last.

    Attributes:
        sizes: rows and columns of the result.
        depth: of what is summed.
        total: type of sums, as text.
        step: how much of the summed dimension is in one half of shared memory.
        shapes: rows and columns of a block; warps that are side by side along them.
        pairs: whether a lane has elements in pairs along the depth, which are loaded as whole matrices.
        rounds: whether elements are rounded to the digits that are multiplied.
    """

    sizes: tuple[int, int]
    depth: int
    total: str
    step: int
    shapes: Sequence[tuple[tuple[int, int], tuple[int, int]]]
    pairs: bool = False
    rounds: bool = False


_BY_SIZE = ((64, 64), (2, 2)), ((128, 128), (2, 4))
# By what is multiplied. Sums in float64 fill twice the registers, and tiles twice the shared memory.
_INSTRUCTIONS = {
    "f16": Instruction((16, 8), 16, "f32", 32, _BY_SIZE, pairs=True),
    "f32": Instruction((16, 8), 8, "f32", 16, _BY_SIZE, rounds=True),
    "f64": Instruction((8, 8), 4, "f64", 16, _BY_SIZE[:1]),
}
# Threads of a multiprocessor, each of which has 128 registers then.
_RESIDENT = 512


def _instruction_for(product: Product, precision: str) -> Instruction | None:
    """The instruction that multiplies a product; None if it is not for tensor cores.

    Args:
        product: what is multiplied.
        precision: of float32: "float32", or "tf32" if factors may be rounded to 10 bits.
    """
    element, *others = [str(operand.argument.type) for operand in product.nest.operands]
    found = _INSTRUCTIONS.get(element)
    if found is None or others != [element, found.total] or (found.rounds and precision != "tf32"):
        return None
    return found


class _Side:
    """One operand of a product in shared memory, in two halves.

    Attributes:
        buffer: of three axes: the half, then either what is summed over or the rows (columns) of the result.
        deep_last: whether the last axis is the one that is summed over.
        is_aligned: a flag for rows of the operand that begin at multiples of 16 bytes; None if elements of a
            row do not lie side by side.
        starts: the first rows (columns) of the matrices of an instruction that the warp has.
    """

    def __init__(self, kernel: Kernel, product: Product, of: Instruction, shape: int, number: int) -> None:
        self.number, self.operand, self._of = number, product.nest.inputs[number], of
        self.axis, self.inner = (product.row, product.column)[number], product.inner
        self.tile, self._warps = of.shapes[shape][0][number], of.shapes[shape][1]
        self.deep_last = self.operand.axes[-1] == product.inner
        self.size = int(self.operand.argument.type.width) // 8
        # Rows are longer by so much that the lanes of a warp read from different banks.
        more = BYTES * (1 if of.pairs or (self.deep_last and self.size == 4) else 2) // self.size
        self.row = of.step if self.deep_last else self.tile
        lines = self.tile if self.deep_last else of.step
        self.buffer = kernel.shared([2, lines, self.row + more], self.operand.argument.type, alignment=BYTES)

    def begin(self) -> None:
        """Values that are the same throughout the kernel, at its beginning."""
        self.is_aligned = _is_aligned(self.operand.buffer)
        thread = thread_id()
        self._warp, self._lane = thread // WARP, thread % WARP
        # Rows go with one of these, columns of sums and the summed dimension with the other one.
        self.lane_row, self.lane_column = self._lane // 4, self._lane % 4

    @property
    def starts(self) -> list[ir.Value]:
        width = self._warps[1]
        number = self._warp % width if self.number else self._warp // width
        size = self._of.sizes[self.number]
        count = self.tile // self._warps[self.number] // size
        return [number * (size * count) + size * step for step in range(count)]

    def indices(self, half: ir.Value, wide: ir.Value, deep: ir.Value) -> list[ir.Value]:
        """Indices of an element."""
        return [half, wide, deep] if self.deep_last else [half, deep, wide]

    def part(self, half: ir.Value, wide: ir.Value, deep: ir.Value) -> ir.Value:
        """The lane's part of a matrix that begins at a row (column) and a depth."""
        groups = self._of.sizes[self.number] // _GROUP
        if self._of.pairs:
            return self._matrices(half, wide, deep, groups)
        found = []
        for start in range(0, self._of.depth, 4):
            for group in range(groups):
                at = wide + self.lane_row + group * _GROUP, deep + self.lane_column + start
                found.append(self._rounded(self.buffer[self.indices(half, *at)]))
        return vector_of([len(found), 1], found)

    def _rounded(self, value: ir.Value) -> ir.Value:
        """Rounded to nearest: the instruction itself would only drop digits."""
        if not self._of.rounds:
            return value
        word = ir.IntegerType.get_signless(32)
        mode = ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>")
        bits = build.create("nvvm.convert.float.to.tf32", [word], [value], rnd=mode).result
        return bits_as(bits, value.type)

    def _matrices(self, half: ir.Value, wide: ir.Value, deep: ir.Value, groups: int) -> ir.Value:
        """Matrices of 8 by 8 halves at once; each lane has the address of a row of one of them."""
        row, number = self._lane % _GROUP, self._lane // _GROUP
        first, second = number % 2 * _GROUP, number // 2 * _GROUP
        across, along = (second, first) if self.number else (first, second)
        if groups == 1:
            # Addresses of the second half of the warp are not looked at, but have to be some.
            across = as_index(0)
        wide, deep = wide + across, deep + along
        wide, deep = (wide + row, deep) if self.deep_last else (wide, deep + row)
        count = groups * self._of.depth // _GROUP
        kind = ir.VectorType.get([count, 2], ir.MemRefType(self.buffer.type).element_type)
        return build.create(
            "nvgpu.ldmatrix",
            [kind],
            [self.buffer, *self.indices(half, wide, deep)],
            numTiles=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count),
            transpose=ir.BoolAttr.get(not self.deep_last),
        ).result


def _is_aligned(buffer: ir.Value) -> ir.Value | None:
    """True if all rows of an array begin at multiples of 16 bytes; None if its rows are not contiguous."""
    if ir.MemRefType(buffer.type).get_strides_and_offset()[0][-1] != 1:
        return None
    offset, strides = layout(buffer)
    bits = reduce(or_, strides[:-1], offset) * itemsize(buffer) | address(buffer)
    return (bits & (BYTES - 1)).equals(0)


class _TensorProduct:
    """Writes the kernel of a product on tensor cores.

    While a half of shared memory is multiplied, the next part of both sides is copied to the other one: 16
    bytes at once where rows begin at such addresses, else element by element.

    It has the instruction's shape of that number; sizes are those of the nest's dimensions.
    """

    def __init__(
        self, kernel: Kernel, product: Product, sizes: list[ir.Value], of: Instruction, shape: int
    ) -> None:
        self._product, self._sizes, self._of = product, sizes, of
        tiles, warps = of.shapes[shape]
        self.threads = warps[0] * warps[1] * WARP
        kernel.limit(self.threads, _RESIDENT // self.threads)
        self._sides = [_Side(kernel, product, of, shape, number) for number in range(2)]
        with kernel.body():
            for side in self._sides:
                side.begin()
            each_part(product, sizes, tiles, self._part)

    def _part(self, place: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """The part of the result that a block has."""
        self._place, self._first = place, (row, column)
        inner, step = self._sizes[self._product.inner], self._of.step
        none = build.const_index(0)
        # Of the part before, all have read what is in shared memory.
        barrier()
        with when(inner > none):
            self._fetch(none, none)

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            half = (start // step) & 1
            arrived()
            barrier()
            following = start + step
            with when(following < inner):
                self._fetch(following, 1 - half)
            return self._multiply(half, sums)

        rows, columns = (side.starts for side in self._sides)
        total = ir.Type.parse(self._of.total)
        kind = ir.VectorType.get([self._of.sizes[0] // _GROUP, 2], total)
        value = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(total, 0.0))
        nothing = build.create("arith.constant", [kind], [], value=value).result
        self._store(carry(inner, [nothing] * (len(rows) * len(columns)), body, step=step))

    def _multiply(self, half: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds what is in a half of shared memory."""
        word, of = ir.IntegerType.get_signless(64), self._of
        shape = [ir.IntegerAttr.get(word, size) for size in (*of.sizes, of.depth)]
        attributes: dict[str, ir.Attribute] = {"mmaShape": ir.ArrayAttr.get(shape)}
        if of.rounds:
            attributes["tf32Enabled"] = ir.UnitAttr.get()
        starts = [side.starts for side in self._sides]
        for start in range(0, of.step, of.depth):
            deep = build.const_index(start)
            left, right = (
                [side.part(half, wide, deep) for wide in each]
                for side, each in zip(self._sides, starts, strict=True)
            )
            pairs = [(x, y) for x in left for y in right]
            sums = [
                build.create("nvgpu.mma.sync", [total.type], [x, y, total], **attributes).result
                for (x, y), total in zip(pairs, sums, strict=True)
            ]
        return sums

    def _store(self, sums: list[ir.Value]) -> None:
        """Adds the sums to the result, within its edges."""
        product, lane = self._product, self._sides[0]
        rows, columns = (side.starts for side in self._sides)
        starts = [(row, column) for row in rows for column in columns]
        for (row, column), total in zip(starts, sums, strict=True):
            for group in range(self._of.sizes[0] // _GROUP):
                for i in range(2):
                    place = list(self._place)
                    place[product.row] = self._first[0] + (row + lane.lane_row + group * _GROUP)
                    place[product.column] = self._first[1] + (column + lane.lane_column * 2 + i)
                    add_to_result(product, self._sizes, place, extract(total, group, i))

    # -- from global to shared memory ----------------------------------------------------------------------

    def _fetch(self, start: ir.Value, half: ir.Value) -> None:
        """Starts copies of the parts of both sides from a depth on, with zeros past the edges."""
        for side in self._sides:
            given = side, start, half
            if side.is_aligned is None:
                self._elements(*given)
            else:
                either(side.is_aligned, [], partial(self._rows, *given), partial(self._elements, *given))

    def _rows(self, side: _Side, start: ir.Value, half: ir.Value) -> None:
        """16 bytes at once."""
        long = BYTES // side.size
        with self._each(side, start, half, long) as (place, to, left):
            copy(side.operand.buffer, place, side.buffer, to, long, smaller(left, long))

    def _elements(self, side: _Side, start: ir.Value, half: ir.Value) -> None:
        """One element after the other.

        What is smaller than a word, or of no contiguous row, cannot be copied meanwhile.
        """
        with self._each(side, start, half, 1) as (place, to, left):
            if side.size >= LEAST and side.is_aligned is not None:
                copy(side.operand.buffer, place, side.buffer, to, 1, smaller(left, 1))
            else:
                nothing = zero(side.operand.argument.type)
                side.buffer[to] = build.select(left > 0, side.operand.buffer[place], nothing)

    @contextmanager
    def _each(
        self, side: _Side, start: ir.Value, half: ir.Value, long: int
    ) -> Iterator[tuple[list[ir.Value], list[ir.Value], ir.Value]]:
        """The parts of rows, of so many elements, that a thread copies, neighbouring threads neighbours.

        Unrolled, the addresses of all of them would be kept in registers throughout the kernel.

        Yields:
            indices in the operand and in shared memory, and how many elements are left of the row.
        """
        count = self._of.step * side.tile // long // self.threads
        with span(count, unrolled=False) as number:
            chunk, none = number * self.threads + thread_id(), build.const_index(0)
            slow = chunk // (side.row // long)
            fast = chunk % (side.row // long) * long
            along, across = (side.inner, side.axis) if side.deep_last else (side.axis, side.inner)
            origins = {side.inner: start, side.axis: self._first[side.number]}
            at = {along: origins[along] + fast, across: origins[across] + slow}
            left = larger(self._sizes[along] - at[along], 0)
            left = build.select(at[across] < self._sizes[across], left, none)
            place, some = list(self._place), left > none
            for dimension in (along, across):
                place[dimension] = build.select(some, at[dimension], none)
            indices = [none if dimension is None else place[dimension] for dimension in side.operand.axes]
            yield indices, [half, slow, fast], left


# -- in shared memory -------------------------------------------------------------------------------------

# Of large products: rows and columns of a block, threads along each side, depth of a step, and steps at once.
_TILES, _SIDE, _DEPTH, _UNROLLED = (128, 64), 16, 16, 2
# Neighbouring elements of a thread, which are one load.
_VECTOR = 4
# Rows and columns of the result that a thread has of other products.
_EACH = 4
_Parts: TypeAlias = "list[tuple[ir.Value, list[tuple[ir.Value, ir.Value, ir.Value]]]]"


def _is_large(product: Product) -> bool:
    """True if the sums of a thread fit into its registers, and four elements into 16 bytes."""
    kinds = {str(x.argument.type): x.argument.type for x in product.nest.operands}
    kind, *others = kinds.values()
    return not others and not isinstance(kind, ir.ComplexType) and dtype_of(kind).itemsize == 4


class _Squares:
    """The kernel of a product, of which a block computes squares of the result with threads along both sides.

    The rows of the left side and the columns of the right one that a step of `depth` needs are in shared
    memory, sums in registers. Of any product a part of both sides is copied, then added up; of large ones the
    next part is read while this one is added up, to the other half of shared memory.

    A block has `tiles` rows and columns and `side` threads along each side. Threads of large ones load
    several elements at a time.
    """

    def __init__(
        self,
        kernel: Kernel,
        product: Product,
        sizes: list[ir.Value],
        tiles: tuple[int, int],
        side: int,
        depth: int,
        *,
        is_large: bool = False,
    ) -> None:
        self._product, self._sizes, self._tiles = product, sizes, tiles
        self._side, self._depth, self._is_large = side, depth, is_large
        self._vector = _VECTOR if is_large else 1
        # Rows and columns of a thread.
        self._each = tiles[0] // side, tiles[1] // side
        # Longer rows: of large squares they begin at multiples of 16 bytes, of others threads that write a
        # column do not meet in one bank.
        shapes = [[*[2] * is_large, depth, tile + self._vector] for tile in tiles]
        self._shared = [
            kernel.shared(shape, operand.argument.type, alignment=BYTES if is_large else None)
            for shape, operand in zip(shapes, product.nest.inputs, strict=True)
        ]
        with kernel.body():
            self._tx, self._ty = thread_id(), thread_id(1)
            each_part(product, sizes, tiles, self._square)

    def _square(self, place: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """A square of the result: sums of the thread, added to the result within its edges."""
        product, each = self._product, self._each
        self._place, self._first = place, {product.row: row, product.column: column}
        nothing = [zero(product.nest.outputs[0].argument.type)] * (each[0] * each[1])
        for number, total in enumerate((self._overlapped if self._is_large else self._in_turn)(nothing)):
            i, j = divmod(number, each[1])
            to = list(place)
            to[product.row] = row + self._own(self._ty, i)
            to[product.column] = column + self._own(self._tx, j)
            add_to_result(product, self._sizes, to, total)

    def _in_turn(self, nothing: list[ir.Value]) -> list[ir.Value]:
        """The sums of the thread; a part is there before it is added up."""

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            self._put(self._parts(start))
            barrier()
            sums = carry(self._depth, sums, lambda deep, sums: self._step(sums, deep))
            barrier()
            return sums

        return carry(self._sizes[self._product.inner], nothing, body, step=self._depth)

    def _overlapped(self, nothing: list[ir.Value]) -> list[ir.Value]:
        """The sums of the thread; the next part is under way while one is added up."""
        depth, inner = self._depth, self._sizes[self._product.inner]
        with when(inner > 0):
            self._put(self._parts(as_index(0)), 0)
        barrier()

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            half = (start // depth) & 1

            def steps(first: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                for number in range(_UNROLLED):
                    sums = self._step(sums, half, first + number)
                return sums

            fetched = self._parts(start + depth)
            sums = carry(depth, sums, steps, step=_UNROLLED)
            self._put(fetched, 1 - half)
            barrier()
            return sums

        return carry(inner, nothing, body, step=depth)

    def _parts(self, start: ir.Value) -> _Parts:
        """The thread's elements of the parts of both sides from a depth on, with zeros past the edges.

        Returns:
            For each side its buffer, and depth, width and value of each element.
        """
        product, found = self._product, []
        axes = product.row, product.column
        sides = zip(self._shared, product.nest.inputs, axes, self._tiles, strict=True)
        for buffer, operand, axis, tile in sides:
            numbers = range(self._depth * tile // self._side**2)
            found.append((buffer, [self._read(operand, axis, tile, number, start) for number in numbers]))
        return found

    def _read(
        self, operand: Operand, axis: int, tile: int, number: int, start: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        """An element; neighbouring threads read along the operand's last dimension."""
        along_inner = operand.axes[-1] == self._product.inner
        width = self._depth if along_inner else tile
        element = self._ty * self._side + self._tx + number * self._side**2
        fast, slow = element % width, element // width
        deep, wide = (fast, slow) if along_inner else (slow, fast)
        place, inside = list(self._place), []
        for dimension, at in ((self._product.inner, start + deep), (axis, self._first[axis] + wide)):
            last = self._sizes[dimension] - 1
            inside.append(at <= last)
            place[dimension] = smaller(at, last)
        value = build.select(all_of(inside), load(operand, place), zero(operand.argument.type))
        return deep, wide, value

    def _put(self, parts: _Parts, *half: ir.Value | int) -> None:
        """Writes what was fetched to shared memory, of large squares to one half of it."""
        for buffer, elements in parts:
            for deep, wide, value in elements:
                buffer[(*half, deep, wide)] = value

    def _step(self, sums: list[ir.Value], *deep: ir.Value) -> list[ir.Value]:
        """Adds the products of one row of the left part and one of the right part."""
        nest = self._product.nest
        left, right = (
            self._lines(buffer, deep, thread, each)
            for buffer, thread, each in zip(self._shared, (self._ty, self._tx), self._each, strict=True)
        )
        arguments = [operand.argument for operand in nest.operands]
        pairs = [(x, y) for x in left for y in right]
        return [
            nest.compute(nest.yields, dict(zip(arguments, (x, y, total), strict=True)), [])[0]
            for (x, y), total in zip(pairs, sums, strict=True)
        ]

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """A row or column of the square that a thread has: neighbours, as many as are loaded together, and
        others as far away as there are threads.
        """
        group, lane = divmod(number, self._vector)
        return thread * self._vector + (group * self._side * self._vector + lane)

    def _lines(
        self, buffer: ir.Value, deep: Sequence[ir.Value], thread: ir.Value, each: int
    ) -> list[ir.Value]:
        """The thread's rows or columns at a depth."""
        if not self._is_large:
            return [buffer[(*deep, self._own(thread, number))] for number in range(each)]
        found: list[ir.Value] = []
        for start in range(0, each, _VECTOR):
            vector = read_vector(buffer, [*deep, self._own(thread, start)], _VECTOR, BYTES)
            found += [extract(vector, lane) for lane in range(_VECTOR)]
        return found


@record()
class GpuMatmul(Pass):
    """Makes a tiled kernel of each matrix product, batched or not.

    A block computes a square of `tile` rows and columns with a quarter as many threads along each axis: the
    rows of the left side and the columns of the right one that a step of `depth` needs are copied to shared
    memory, and each thread keeps 4 by 4 sums in registers. Sums are made in the order of the rows, so that
    equal calls give equal bits. Edges are filled with zeros. Any strides will do: transposed operands are
    read as they are. A result that is filled with zeros before is stored instead. Products with a vector are
    left to the passes for reductions.

    Large products of numbers of 32 bits have another kernel: parts of 128 by 64, 8 by 4 sums a thread, loads
    of 16 bytes from shared memory, and two halves of it, of which one is filled while the other one is added
    up. Which of the two is launched follows from the sizes.

    Products of halves with sums in float32, and of float64, are for tensor cores, as are those of float32 if
    `precision` says that factors may be rounded to 10 bits. A block computes 64 by 64 elements with 4 warps,
    or, of large matrices of halves or float32, 128 by 128 with 8. While a half of shared memory is
    multiplied, the next part of both sides is copied to the other one without passing through registers, 16
    bytes at once where rows begin at such addresses.

    Where a library for products may be there when kernels run, it computes large ones of floats and complex
    numbers: their launches are marked with `graphc.product`.

    Method: the blocked product of CUTLASS; V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear
    algebra" (2008).

    Attributes:
        tile: rows and columns of a block without tensor cores; a multiple of 4.
        depth: how much of the reduced dimension is in shared memory at a time then.
        parts: as large as the larger kernel's, about, from which products are large.
        precision: of float32, "float32" or "tf32".
    """

    tile: int = 64
    depth: int = 16
    parts: int = 128
    precision: str = "float32"

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op, fill in list(with_fills(walk(function))):
                product = as_product(Nest(op))
                if product is None or _is_of_rows(product):
                    continue
                if fill is not None and None not in product.nest.outputs[0].axes:
                    product = replace(product, adds=False)
                    fill.erase()
                    self.count("fills")
                launches, form = self._lower(product), form_of(product)
                if form is not None:
                    number = self.statistics.get("products", 0)
                    arrays = [operand.buffer for operand in product.nest.operands]
                    short = self.precision == "tf32"
                    mark(launches, arrays, number=number, form=form, short=short, adds=product.adds)
                op.erase()
                self.count("products")

    def _lower(self, product: Product) -> list[ir.Operation]:
        """One kernel for any size, and one for large matrices, of which one is launched: both launches."""
        nest, of = product.nest, _instruction_for(product, self.precision)
        tiles, name = [(self.tile, self.tile)], "product" if of is None else "tensor_product"
        if of is not None:
            tiles = [tile for tile, _ in of.shapes]
        elif _is_large(product):
            tiles.append(_TILES)
        kernel, launches = Kernel(nest.op, name), []
        with kernel.host():
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            enough = self._are_enough(product, sizes, tiles[1]) if len(tiles) > 1 else None
        kernels = [kernel] if enough is None else [kernel, Kernel(nest.op, f"large_{name}")]
        for is_large, kernel in enumerate(kernels):
            if of is not None:
                threads = [_TensorProduct(kernel, product, sizes, of, is_large).threads]
            else:
                threads = [_SIDE if is_large else self.tile // _EACH] * 2
                depth = _DEPTH if is_large else self.depth
                _Squares(kernel, product, sizes, tiles[is_large], threads[0], depth, is_large=bool(is_large))
            with kernel.host():
                grid = _grid(product, sizes, tiles[is_large])
                if enough is not None:
                    grid[0] = build.select(enough, *((grid[0], 0) if is_large else (0, grid[0])))
            launches.append(kernel.launch(grid, threads))
        return launches

    def _are_enough(self, product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> ir.Value | None:
        """True if there are enough squares of the larger kind for a device; None if there never are."""
        count = build.const_index(1)
        for axis, tile in zip((product.row, product.column), tiles, strict=True):
            # Narrow matrices would leave most of a part empty.
            count = count * parts_of(sizes[axis] // (tile // 2), 2)
        enough = number_of([count, *(sizes[axis] for axis in product.batch)]) >= self.parts
        return None if build.constant_value(enough) == 0 else enough


def _is_of_rows(product: Product) -> bool:
    """True if a matrix whose rows lie side by side meets one of a single column: a reduction of rows."""
    nest, others = product.nest, (product.column, product.row)
    pairs = zip(nest.inputs, others, strict=True)
    return any(nest.is_unit(other) and is_wide(operand, product.inner) for operand, other in pairs)


def _grid(product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> list[ir.Value]:
    """Blocks for the parts of a product with some rows and columns."""
    return [
        blocks_for(sizes[product.column], tiles[1], 1 << 30),
        blocks_for(sizes[product.row], tiles[0], GRID_ROWS),
        smaller(number_of([sizes[axis] for axis in product.batch]), GRID_ROWS),
    ]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.value import all_of, as_index, parts_of, smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product as number_of
from graphc.lowering.carried import carry, when
from graphc.lowering.matmul import with_fills
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel, blocks_for
from graphc.passes.gpu._nest import Nest, Operand, is_wide, load
from graphc.passes.gpu._notation import barrier, extract, read_vector, thread_id
from graphc.passes.gpu._product import Product, add_to_result, as_product, each_part, form_of, mark, zero
from graphc.passes.gpu._tensor_product import Shape, TensorProduct, shapes_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Of large products: rows and columns of a block, threads along each side, depth of a step, and steps at once.
_TILES, _SIDE, _DEPTH, _UNROLLED = (128, 64), 16, 16, 2
# Neighbouring elements of a thread, which are one load, and its bytes.
_VECTOR, _WIDTH = 4, 16
_BLOCKS = 65535
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
    memory, sums in registers.

    Args:
        kernel: where to.
        product: what.
        sizes: of the dimensions of its nest.
        tiles: rows and columns of a block.
        side: threads along each side.
        depth: of a step.
    """

    def __init__(
        self,
        kernel: Kernel,
        product: Product,
        sizes: list[ir.Value],
        tiles: tuple[int, int],
        side: int,
        depth: int,
    ) -> None:
        self._product, self._sizes, self._tiles = product, sizes, tiles
        self._side, self._depth = side, depth
        # Rows and columns of a thread.
        self._each = tiles[0] // side, tiles[1] // side
        kinds = [operand.argument.type for operand in product.nest.inputs]
        self._shared = [self._memory(kernel, tile, kind) for tile, kind in zip(tiles, kinds, strict=True)]
        with kernel.body():
            self._tx, self._ty = thread_id(), thread_id(1)
            each_part(product, sizes, tiles, self._square)

    def _square(self, place: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """A square of the result: sums of the thread, added to the result within its edges."""
        product, each = self._product, self._each
        self._place, self._first = place, {product.row: row, product.column: column}
        nothing = zero(product.nest.outputs[0].argument.type)
        for number, total in enumerate(self._sums([nothing] * (each[0] * each[1]))):
            i, j = divmod(number, each[1])
            to = list(place)
            to[product.row] = row + self._own(self._ty, i)
            to[product.column] = column + self._own(self._tx, j)
            add_to_result(product, self._sizes, to, total)

    def _parts(self, start: ir.Value) -> _Parts:
        """The thread's elements of the parts of both sides from a depth on, with zeros past the edges.

        Returns:
            For each side its buffer, and depth, width and value of each element.
        """
        product = self._product
        sides = zip(
            product.nest.inputs, (product.row, product.column), self._tiles, self._shared, strict=True
        )
        return [
            (
                buffer,
                [
                    self._read(operand, axis, *self._element(operand, tile, number), start)
                    for number in range(self._depth * tile // self._side**2)
                ],
            )
            for operand, axis, tile, buffer in sides
        ]

    def _element(self, operand: Operand, tile: int, number: int) -> tuple[ir.Value, ir.Value]:
        """Depth and width of an element; neighbouring threads read along the operand's last dimension."""
        along_inner = operand.axes[-1] == self._product.inner
        width = self._depth if along_inner else tile
        element = self._ty * self._side + self._tx + number * self._side**2
        fast, slow = element % width, element // width
        return (fast, slow) if along_inner else (slow, fast)

    def _read(
        self, operand: Operand, axis: int, deep: ir.Value, wide: ir.Value, start: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        place, inside = list(self._place), []
        for dimension, at in ((self._product.inner, start + deep), (axis, self._first[axis] + wide)):
            last = self._sizes[dimension] - 1
            inside.append(at <= last)
            place[dimension] = smaller(at, last)
        value = build.select(all_of(inside), load(operand, place), zero(operand.argument.type))
        return deep, wide, value

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

    def _memory(self, kernel: Kernel, tile: int, kind: ir.Type) -> ir.Value:
        """Shared memory for the part of a side."""
        raise NotImplementedError

    def _sums(self, nothing: list[ir.Value]) -> list[ir.Value]:
        """The sums of the thread."""
        raise NotImplementedError

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """A row or column of the square that a thread has."""
        raise NotImplementedError

    def _lines(
        self, buffer: ir.Value, deep: Sequence[ir.Value], thread: ir.Value, each: int
    ) -> list[ir.Value]:
        """The thread's rows or columns at a depth."""
        raise NotImplementedError


class _SmallSquares(_Squares):
    """Squares of any product: a part of both sides is copied, then added up."""

    def _memory(self, kernel: Kernel, tile: int, kind: ir.Type) -> ir.Value:
        # One element more in a row: threads that write a column do not meet in one bank.
        return kernel.shared([self._depth, tile + 1], kind)

    def _sums(self, nothing: list[ir.Value]) -> list[ir.Value]:
        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for buffer, elements in self._parts(start):
                for deep, wide, value in elements:
                    buffer[deep, wide] = value
            barrier()
            sums = carry(self._depth, sums, lambda deep, sums: self._step(sums, deep))
            barrier()
            return sums

        return carry(self._sizes[self._product.inner], nothing, body, step=self._depth)

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        return thread + number * self._side

    def _lines(
        self, buffer: ir.Value, deep: Sequence[ir.Value], thread: ir.Value, each: int
    ) -> list[ir.Value]:
        return [buffer[(*deep, self._own(thread, number))] for number in range(each)]


class _LargeSquares(_Squares):
    """Squares of large matrices: the next part of both sides is read while this one is added up."""

    def _memory(self, kernel: Kernel, tile: int, kind: ir.Type) -> ir.Value:
        # Four elements more in a row, so that rows begin at multiples of 16 bytes.
        return kernel.shared([2, self._depth, tile + _VECTOR], kind, alignment=_WIDTH)

    def _sums(self, nothing: list[ir.Value]) -> list[ir.Value]:
        depth, inner = self._depth, self._sizes[self._product.inner]
        with when(inner > 0):
            self._put(self._parts(as_index(0)), 0)
        barrier()

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            half = (start // depth) & 1
            fetched = self._parts(start + depth)
            sums = carry(depth, sums, lambda deep, sums: self._steps(half, deep, sums), step=_UNROLLED)
            self._put(fetched, 1 - half)
            barrier()
            return sums

        return carry(inner, nothing, body, step=depth)

    def _put(self, parts: _Parts, half: ir.Value | int) -> None:
        """Writes what was fetched to one half of shared memory."""
        for buffer, elements in parts:
            for deep, wide, value in elements:
                buffer[half, deep, wide] = value

    def _steps(self, half: ir.Value, first: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of a few rows of both parts."""
        for number in range(_UNROLLED):
            sums = self._step(sums, half, first + number)
        return sums

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """Neighbours, and others half a square away."""
        group, lane = divmod(number, _VECTOR)
        return thread * _VECTOR + (group * self._side * _VECTOR + lane)

    def _lines(
        self, buffer: ir.Value, deep: Sequence[ir.Value], thread: ir.Value, each: int
    ) -> list[ir.Value]:
        found: list[ir.Value] = []
        for start in range(0, each, _VECTOR):
            vector = read_vector(buffer, [*deep, self._own(thread, start)], _VECTOR, _WIDTH)
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
                    mark(launches, product, form, number=number, short=self.precision == "tf32")
                op.erase()
                self.count("products")

    def _lower(self, product: Product) -> list[ir.Operation]:
        """One kernel for any size, and one for large matrices, of which one is launched: both launches."""
        shapes = shapes_of(product, self.precision)
        if shapes:
            return self._on_tensor_cores(product, shapes)
        nest = product.nest
        kernel = Kernel(nest.op, "product")
        with kernel.host():
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            enough = self._are_enough(product, sizes, _TILES) if _is_large(product) else None
            tiles = self.tile, self.tile
            grid = _grid(product, sizes, tiles)
            if enough is not None:
                grid[0] = build.select(enough, 0, grid[0])
        launches = []
        if enough is not None:
            large = Kernel(nest.op, "large_product")
            _LargeSquares(large, product, sizes, _TILES, _SIDE, _DEPTH)
            with large.host():
                first, *rest = _grid(product, sizes, _TILES)
                first = build.select(enough, first, 0)
            launches.append(large.launch([first, *rest], [_SIDE, _SIDE]))
        side = self.tile // _EACH
        _SmallSquares(kernel, product, sizes, tiles, side, self.depth)
        return [kernel.launch(grid, [side, side]), *launches]

    def _on_tensor_cores(self, product: Product, shapes: list[Shape]) -> list[ir.Operation]:
        """A kernel for each way to divide the product."""
        nest = product.nest
        small, *larger = shapes
        first = Kernel(nest.op, "tensor_product")
        with first.host():
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            enough = self._are_enough(product, sizes, larger[0].tiles) if larger else None
        ways = [(first, small)]
        if enough is not None:
            ways.append((Kernel(nest.op, "large_tensor_product"), larger[0]))
        launches = []
        for kernel, shape in ways:
            TensorProduct(kernel, product, sizes, shape).write()
            with kernel.host():
                grid, none = _grid(product, sizes, shape.tiles), as_index(0)
                if enough is not None:
                    grid[0] = build.select(enough, *((none, grid[0]) if shape is small else (grid[0], none)))
            launches.append(kernel.launch(grid, [shape.threads]))
        return launches

    def _are_enough(self, product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> ir.Value | None:
        """True if there are enough squares of the larger kind for a device; None if there never are."""
        nest = product.nest
        sides = list(zip((product.row, product.column), tiles, strict=True))
        known = [(nest.static_extent(axis), tile) for axis, tile in sides]
        if any(size is not None and size < tile // 2 for size, tile in known):
            return None
        count = build.const_index(1)
        for axis, tile in sides:
            # Narrow matrices would leave most of a part empty.
            count = count * parts_of(sizes[axis] // (tile // 2), 2)
        return number_of([count, *(sizes[axis] for axis in product.batch)]) >= self.parts


def _is_of_rows(product: Product) -> bool:
    """True if a matrix whose rows lie side by side meets one of a single column: a reduction of rows."""
    nest, others = product.nest, (product.column, product.row)
    pairs = zip(nest.inputs, others, strict=True)
    return any(nest.is_unit(other) and is_wide(operand, product.inner) for operand, other in pairs)


def _grid(product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> list[ir.Value]:
    """Blocks for the parts of a product with some rows and columns."""
    return [
        blocks_for(sizes[product.column], tiles[1], 1 << 30),
        blocks_for(sizes[product.row], tiles[0], _BLOCKS),
        smaller(number_of([sizes[axis] for axis in product.batch]), _BLOCKS),
    ]

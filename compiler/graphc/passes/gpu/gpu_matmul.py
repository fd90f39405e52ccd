# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products through shared memory."""

from __future__ import annotations

from dataclasses import replace

from graphc.ir import build
from graphc.ir.value import all_of, parts_of, smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry
from graphc.lowering.matmul import with_fills
from graphc.passes.gpu._kernel import Kernel, blocks_for
from graphc.passes.gpu._large_product import TILES, LargeProduct, is_large
from graphc.passes.gpu._library import form_of, mark
from graphc.passes.gpu._nest import Nest, Operand, load
from graphc.passes.gpu._notation import barrier, thread_id
from graphc.passes.gpu._product import Product, add_to_result, as_product, each_part, zero
from graphc.passes.gpu._rows import product as number_of
from graphc.passes.gpu._tensor_product import Shape, TensorProduct, shapes_of
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_BLOCKS = 65535
# Rows and columns of the result that a thread has.
_EACH = 4


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
                if product is None:
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
            enough = self._is_large(product, sizes, TILES) if is_large(product) else None
        launches = []
        if enough is not None:
            large = Kernel(nest.op, "large_product")
            writer = LargeProduct(large, product, sizes)
            writer.write()
            with large.host():
                grid, threads = _grid(product, sizes, TILES), writer.threads()
                grid[0] = build.select(enough, grid[0], 0)
            launches.append(large.launch(grid, threads))
        return [_Writer(product, kernel, sizes, self.tile, self.depth).lower(enough), *launches]

    def _on_tensor_cores(self, product: Product, shapes: list[Shape]) -> list[ir.Operation]:
        """A kernel for each way to divide the product."""
        nest = product.nest
        small, *larger = shapes
        first = Kernel(nest.op, "tensor_product")
        with first.host():
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            enough = self._is_large(product, sizes, larger[0].tiles) if larger else None
        ways = [(first, small)]
        if enough is not None:
            ways.append((Kernel(nest.op, "large_tensor_product"), larger[0]))
        launches = []
        for kernel, shape in ways:
            TensorProduct(kernel, product, sizes, shape).write()
            with kernel.host():
                grid, none = _grid(product, sizes, shape.tiles), build.const_index(0)
                if enough is not None:
                    grid[0] = build.select(enough, *((none, grid[0]) if shape is small else (grid[0], none)))
            launches.append(kernel.launch(grid, [shape.threads]))
        return launches

    def _is_large(self, product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> ir.Value | None:
        """True if there are enough squares of the larger kind for a device; None if there never are."""
        nest = product.nest
        sides = list(zip((product.row, product.column), tiles, strict=True))
        known = [(nest.static_extent(axis), tile) for axis, tile in sides]
        if any(size is not None and size < tile // 2 for size, tile in known):
            return None
        count = build.const_index(1)
        for axis, tile in sides:
            # Narrow matrices would leave most of a part empty.
            halves = build.index_op("floordivsi", sizes[axis], build.const_index(tile // 2))
            count = count * parts_of(halves, 2)
        for axis in product.batch:
            count = count * sizes[axis]
        return count >= self.parts


def _grid(product: Product, sizes: list[ir.Value], tiles: tuple[int, int]) -> list[ir.Value]:
    """Blocks for the parts of a product with some rows and columns."""
    rows, columns = (build.const_index(tile) for tile in tiles)
    return [
        blocks_for(sizes[product.column], columns, 1 << 30),
        blocks_for(sizes[product.row], rows, _BLOCKS),
        smaller(number_of([sizes[axis] for axis in product.batch]), _BLOCKS),
    ]


class _Writer:
    """Writes the kernel of a product."""

    def __init__(
        self, product: Product, kernel: Kernel, sizes: list[ir.Value], tile: int, depth: int
    ) -> None:
        self._product, self._nest, self._kernel, self._sizes = product, product.nest, kernel, sizes
        self._tile, self._depth, self._side = tile, depth, tile // _EACH

    def lower(self, otherwise: ir.Value | None) -> ir.Operation:
        """The kernel and its launch, if another one is not launched."""
        nest = self._nest
        with self._kernel.host():
            grid = _grid(self._product, self._sizes, (self._tile, self._tile))
            if otherwise is not None:
                grid[0] = build.select(otherwise, 0, grid[0])
        # One element more in a row: threads that write a column do not meet in one bank.
        self._shared = [
            self._kernel.shared([self._depth, self._tile + 1], operand.argument.type)
            for operand in nest.inputs
        ]
        with self._kernel.body():
            self._threads = (thread_id(), thread_id(1))
            each_part(self._product, self._sizes, (self._tile, self._tile), self._square)
        return self._kernel.launch(grid, [self._side, self._side])

    def _square(self, origin: list[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """A square of the result."""
        product, nest = self._product, self._nest
        self._place = origin
        kind = nest.outputs[0].argument.type
        nothing = zero(kind)

        def body(start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for operand, buffer, axis, first in zip(
                nest.inputs, self._shared, (product.row, product.column), (row, column), strict=True
            ):
                self._copy(operand, buffer, axis, first, start)
            barrier()
            sums = carry(self._depth, sums, self._step)
            barrier()
            return sums

        sums = carry(self._sizes[product.inner], [nothing] * _EACH**2, body, step=self._depth)
        self._store(row, column, sums)

    def _copy(self, operand: Operand, buffer: ir.Value, axis: int, first: ir.Value, start: ir.Value) -> None:
        """The part of an operand that a step needs, with zeros past its edges.

        Neighbouring threads read along the operand's last dimension.
        """
        tx, ty = self._threads
        inner = self._product.inner
        along_inner = operand.axes[-1] == inner
        width = build.const_index(self._depth if along_inner else self._tile)
        thread = ty * self._side + tx
        for number in range(self._depth * self._tile // self._side**2):
            element = thread + number * self._side**2
            fast = element % width
            slow = element // width
            deep, wide = (fast, slow) if along_inner else (slow, fast)
            place = list(self._place)
            inside = []
            for dimension, origin, offset in ((inner, start, deep), (axis, first, wide)):
                at = origin + offset
                last = self._sizes[dimension] - 1
                inside.append(at <= last)
                place[dimension] = smaller(at, last)
            both = all_of(inside)
            value = build.select(both, load(operand, place), zero(operand.argument.type))
            buffer[deep, wide] = value

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
        return buffer[deep, wide]

    def _own(self, thread: ir.Value, number: int) -> ir.Value:
        """A row or column of the square that a thread has."""
        return thread + number * self._side

    def _store(self, row: ir.Value, column: ir.Value, sums: list[ir.Value]) -> None:
        """Adds the sums to the result, within its edges."""
        product = self._product
        tx, ty = self._threads
        for number, total in enumerate(sums):
            i, j = divmod(number, _EACH)
            place = list(self._place)
            place[product.row] = row + self._own(ty, i)
            place[product.column] = column + self._own(tx, j)
            add_to_result(product, self._sizes, place, total)

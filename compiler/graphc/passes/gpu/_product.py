# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products among nests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import all_of
from graphc.lowering.carried import span, when
from graphc.lowering.partial_reductions import constant
from graphc.passes.gpu._nest import Nest, load, store
from graphc.passes.gpu._notation import block_id, grid_dim
from graphc.passes.gpu._rows import product as number_of
from graphc.passes.gpu._rows import split
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

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
    if not product.batch:
        _each_row(product, sizes, tiles, place, write)
        return
    batch = [sizes[axis] for axis in product.batch]
    with span(number_of(batch), start=block_id(2), step=grid_dim(2)) as number:
        for axis, index in zip(product.batch, split(number, batch), strict=True):
            place[axis] = index
        _each_row(product, sizes, tiles, place, write)


def _each_row(
    product: Product, sizes: list[ir.Value], tiles: tuple[int, int], place: list[ir.Value], write: Part
) -> None:
    rows, columns = (build.const_index(tile) for tile in tiles)
    column = block_id() * columns
    start = block_id(1) * rows
    with span(sizes[product.row], start=start, step=grid_dim(1) * rows) as number:
        write(place, number, column)


def zero(kind: ir.Type) -> ir.Value:
    """The number 0."""
    return constant(kind, 0 if isinstance(kind, ir.IntegerType) else 0.0)


def add_to_result(product: Product, sizes: list[ir.Value], place: list[ir.Value], total: ir.Value) -> None:
    """Adds a sum to an element of the result, or stores it there, if that is within the edges."""
    inside = [place[axis] < sizes[axis] for axis in (product.row, product.column)]
    operand = product.nest.outputs[0]
    names = {ir.IntegerType: "arith.addi", ir.ComplexType: "complex.add"}
    name = names.get(type(total.type), "arith.addf")
    with when(all_of(inside)):
        if product.adds:
            before = load(operand, place)
            total = build.create(name, [total.type], [before, total]).result
        store(total, operand, place)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products among nests, and those that a library may compute: marks on their launches."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.value import all_of
from graphc.lowering.calls import product as number_of
from graphc.lowering.carried import span, when
from graphc.lowering.partial_reductions import constant
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._notation import block_id, grid_dim
from graphc.passes.gpu._rows import split
from graphc_dialects._mlir import ir
from graphc_runtime.cuda.gemm import KINDS, is_small
from graphc_runtime.record import record

_ATTRIBUTE = "graphc.product"
# Sizes of grids and blocks are the first operands of launches.
_SIZES = 6
_BATCH = [letter for letter in string.ascii_lowercase if letter not in "ijk"]


@record(frozen=True)
class LibraryProduct:
    """A product that some launches compute, one after the other.

    Attributes:
        number: which one it is.
        launches: how many there are.
        form: its axes, see `graphc_runtime.cuda.gemm.axes_of`.
        short: whether factors of float32 may be rounded to 10 bits.
        adds: whether the result is added to what there is.
        arrays: left side, right side and result.
    """

    number: int
    launches: int
    form: str
    short: bool
    adds: bool
    arrays: tuple[ir.Value, ir.Value, ir.Value]


def form_of(product: Product) -> str | None:
    """The axes of a product; None if no library takes it, or it is known to be too small for one."""
    nest = product.nest
    left, right, target = (dtype_of(operand.argument.type).name for operand in nest.operands)
    if left != right or (left, target) not in KINDS or len(product.batch) > len(_BATCH):
        return None
    sizes = [nest.static_extent(axis) for axis in range(nest.rank)]
    known = [size for size in sizes if size is not None]
    if len(known) == nest.rank and is_small(math.prod(known)):
        return None
    names = dict(zip(product.batch, _BATCH, strict=False))
    names |= {product.row: "i", product.column: "j", product.inner: "k"}
    one, two, three = (_axes(operand, names) for operand in nest.operands)
    return f"{one},{two}->{three}"


def _axes(operand: Operand, names: dict[int, str]) -> str:
    return "".join("." if axis is None else names[axis] for axis in operand.axes)


def mark(launches: Sequence[ir.Operation], product: Product, form: str, *, number: int, short: bool) -> None:
    """Notes on launches that they compute a product."""
    wide, flag = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
    buffers = [operand.buffer for operand in product.nest.operands]
    for launch in launches:
        given = list(launch.operands)[_SIZES:]
        places = [given.index(buffer) for buffer in buffers]
        launch.attributes[_ATTRIBUTE] = ir.DictAttr.get(
            {
                "number": ir.IntegerAttr.get(wide, number),
                "launches": ir.IntegerAttr.get(wide, len(launches)),
                "form": ir.StringAttr.get(form),
                "short": ir.IntegerAttr.get(flag, short),
                "adds": ir.IntegerAttr.get(flag, product.adds),
                "arrays": ir.DenseI64ArrayAttr.get(places),
            }
        )


def unmark(attributes: dict[str, ir.Attribute]) -> None:
    """Takes the note away, from launches whose arguments become other ones."""
    attributes.pop(_ATTRIBUTE, None)


def product_of(launch: ir.Operation) -> LibraryProduct | None:
    """The product that a launch is a part of, if a library may compute it."""
    if launch.name != "gpu.launch_func" or _ATTRIBUTE not in launch.attributes:
        return None
    noted = ir.DictAttr(launch.attributes[_ATTRIBUTE])
    given = list(launch.operands)[_SIZES:]
    a, b, c = (given[place] for place in ir.DenseI64ArrayAttr(noted["arrays"]))
    number, launches = (ir.IntegerAttr(noted[name]).value for name in ("number", "launches"))
    short, adds = (bool(ir.IntegerAttr(noted[name]).value) for name in ("short", "adds"))
    return LibraryProduct(number, launches, ir.StringAttr(noted["form"]).value, short, adds, (a, b, c))


def groups(operations: Sequence[ir.Operation]) -> dict[ir.Operation, list[ir.Operation]]:
    """For the last launch of each product in a block all of its launches, and nothing for the others.

    Launches between which something else is asked of the device stay what they are.
    """
    found: dict[ir.Operation, list[ir.Operation]] = {}
    open_: list[ir.Operation] = []
    for op in operations:
        product = product_of(op)
        if product is None:
            if not op.name.startswith("arith.") and op.name not in _PURE:
                open_ = []
            continue
        first = product_of(open_[0]) if open_ else None
        if first is None or (first.number, first.form, first.arrays) != (
            product.number,
            product.form,
            product.arrays,
        ):
            open_ = []
        open_.append(op)
        if len(open_) == product.launches:
            found |= {launch: [] for launch in open_}
            found[op] = open_
            open_ = []
    return found


_PURE = frozenset(("memref.dim", "memref.reinterpret_cast", "memref.cast", "memref.extract_strided_metadata"))


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

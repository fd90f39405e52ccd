# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products among nests: those that a library may compute, as marks on their launches, and those of a
few rows by one block of threads.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import TypeAlias

from graphc.ir import build, plain
from graphc.ir.build import dtype_of
from graphc.ir.value import all_of, larger, smaller
from graphc.lowering.calls import product as number_of
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.partial_reductions import constant
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._notation import (
    barrier,
    block_dim,
    block_id,
    extract,
    grid_dim,
    read_vector,
    split,
    thread_id,
)
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
    names: dict[int | None, str] = {None: ".", product.row: "i", product.column: "j", product.inner: "k"}
    names.update(zip(product.batch, _BATCH, strict=False))
    one, two, three = ("".join(names[axis] for axis in operand.axes) for operand in nest.operands)
    return f"{one},{two}->{three}"


def mark(launches: Sequence[ir.Operation], product: Product, form: str, *, number: int, short: bool) -> None:
    """Notes on launches that they compute a product."""
    said = {"number": number, "launches": len(launches), "form": form, "short": short, "adds": product.adds}
    for launch in launches:
        given = list(launch.operands)[_SIZES:]
        places = [given.index(operand.buffer) for operand in product.nest.operands]
        launch.attributes[_ATTRIBUTE] = plain.write({**said, "arrays": places})


def unmark(attributes: dict[str, ir.Attribute]) -> None:
    """Takes the note away, from launches whose arguments become other ones."""
    attributes.pop(_ATTRIBUTE, None)


def product_of(launch: ir.Operation) -> LibraryProduct | None:
    """The product that a launch is a part of, if a library may compute it."""
    if launch.name != "gpu.launch_func" or _ATTRIBUTE not in launch.attributes:
        return None
    noted = plain.read(launch.attributes[_ATTRIBUTE])
    a, b, c = (launch.operands[_SIZES + place] for place in noted.pop("arrays"))
    return LibraryProduct(**noted, arrays=(a, b, c))


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
        if open_ and product_of(open_[0]) != product:
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


def zero(kind: ir.Type) -> ir.Value:
    """The number 0."""
    return constant(kind, 0 if isinstance(kind, ir.IntegerType) else 0.0)


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


# -- rows of a batch times a matrix, by one block ----------------------------------------------------------

_ROW_PRODUCTS = (["arith.mulf", "arith.addf"], ["arith.muli", "arith.addi"])
# How much of the rows is in shared memory at a time, and how much of the matrix a thread reads at once.
DEPTH, _AHEAD = 256, 8


@record(frozen=True)
class Form:
    """Division of a product among the threads of a block.

    Attributes:
        rows: of a block.
        groups: of threads, each of which has a part of the additions of all columns, for all rows.
        columns: threads of a group, at most.
        kept: elements of the matrix that a thread has in registers from step to step.
    """

    rows: int
    groups: int
    columns: int
    kept: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block, at most."""
        return self.groups * self.columns


# A matrix that is read in every step is read for some rows; one that stays in registers, and for the rest in
# the cache of the multiprocessor, leaves a row to each of these.
STREAMED, KEPT = Form(4, 4, 128), Form(1, 2, 256, 48)
# Bytes of a load from shared memory.
_WIDTH = 16
# Takes the row, the column, what the product is there, and what was asked for before it.
Finish: TypeAlias = Callable[[ir.Value, ir.Value, ir.Value, "list[ir.Value]"], None]
# Takes the row and the column; gives values that `Finish` needs.
Ahead: TypeAlias = Callable[[ir.Value, ir.Value], "list[ir.Value]"]


def is_row_product(nest: Nest) -> bool:
    """True if a nest is a product of rows, along its first dimension, with a matrix."""
    if [op.name for op in nest.body] not in _ROW_PRODUCTS or nest.rank != 3 or len(nest.inputs) != 2:
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
    """Products of a kernel whose blocks have threads along x and groups of them along y.

    An element of the matrix is read once a block, or once and for all. The rows are in shared memory. The
    parts of the groups are added up in order.

    Args:
        kernel: it gets shared memory for each element type.
        form: of its blocks.
    """

    def __init__(self, kernel: Kernel, form: Form) -> None:
        self._kernel, self._form = kernel, form
        self._buffers: dict[str, tuple[ir.Value, ir.Value]] = {}

    def keep(self, right: Operand) -> list[ir.Value]:
        """The elements of a matrix that a thread keeps, at the insertion point, which is before the loop."""
        depth, columns = (build.dim(right.buffer, right.axes.index(axis)) for axis in (2, 1))
        column = smaller(thread_id(), columns - 1)
        own = thread_id(1) * (DEPTH // self._form.groups)
        found: list[ir.Value] = []
        for number in range(self._form.kept):
            deep = own + number
            value = load(right, [column, column, smaller(deep, depth - 1)])
            found.append(build.select(deep < depth, value, constant(value.type, 0.0)))
        return found

    def write(
        self,
        nest: Nest,
        right: Operand,
        kept: list[ir.Value],
        first: ir.Value,
        finish: Finish,
        ahead: tuple[Sequence[ir.Type], Ahead],
    ) -> None:
        """The product, of rows from `first` on, at the insertion point.

        Args:
            nest: a product.
            right: the matrix, as the nest or otherwise; `kept` is what the thread has of it.
            first: the block's first row.
            finish: writes what takes an element's sum; one thread does for each element.
            ahead: types of values, and what asks for them; it takes as long as the product, so that the
                thread need not wait.
        """
        form, (kinds, ask) = self._form, ahead
        self._nest, self._right, self._first, self._kept = nest, right, first, kept
        self._left, self._kind = sides(nest)[0], nest.outputs[0].argument.type
        if str(self._kind) not in self._buffers:
            left = self._kernel.shared([form.rows, DEPTH], self._kind, alignment=_WIDTH)
            parts = self._kernel.shared([form.groups, form.rows, form.columns], self._kind)
            self._buffers[str(self._kind)] = left, parts
        self._staged, self._parts = self._buffers[str(self._kind)]
        self._lanes = max(_WIDTH // int(dtype_of(self._kind).itemsize), 1)
        self._sizes = [nest.extent(axis) for axis in range(3)]
        self._tx, self._ty, self._width = thread_id(), thread_id(1), block_dim()
        with span(self._sizes[1], step=self._width) as start:
            column = start + self._tx
            self._column = smaller(column, self._sizes[1] - 1)
            row = self._first + self._ty
            conditions = [row < self._sizes[0], column < self._sizes[1]]
            if form.rows < form.groups:
                conditions.append(self._ty < form.rows)
            inside = all_of(conditions)
            values = either(inside, kinds, lambda: ask(row, column), lambda: list(map(zero, kinds)))
            zeros = [zero(self._kind)] * form.rows
            sums = carry(self._sizes[2], zeros, self._chunk, step=DEPTH)
            for number, value in enumerate(sums):
                self._parts[self._ty, number, self._tx] = value
            barrier()
            with when(inside):
                sums = [self._parts[group, self._ty, self._tx] for group in range(form.groups)]
                finish(row, column, reduce(add, sums), values)
            barrier()

    def _chunk(self, start: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds the products of one part of the rows."""
        self._stage(start)
        barrier()
        own = self._ty * (DEPTH // self._form.groups)
        begin = start + own
        left = self._sizes[2] - begin
        count = smaller(larger(left, 0), DEPTH // self._form.groups)
        whole = count // _AHEAD * _AHEAD
        kept = len(self._kept)

        def added(place: ir.Value, matrix: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            lefts = [self._row_part(row, place) for row in range(self._form.rows)]
            for i, right in enumerate(matrix):
                sums = [self._add(part[i], right, total) for part, total in zip(lefts, sums, strict=True)]
            return sums

        def several(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return added(own + at, [matrix(begin + (at + i)) for i in range(_AHEAD)], sums)

        def one(at: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            right, place = matrix(begin + at), own + at
            lefts = [self._staged[row, place] for row in range(self._form.rows)]
            return [self._add(left, right, total) for left, total in zip(lefts, sums, strict=True)]

        def matrix(deep: ir.Value) -> ir.Value:
            return load(self._right, [self._column, self._column, deep])

        for first in range(0, kept, _AHEAD):
            sums = added(own + first, self._kept[first : first + _AHEAD], sums)
        sums = carry(whole, sums, several, start=kept, step=_AHEAD)
        sums = carry(count, sums, one, start=larger(whole, kept) if kept else whole)
        barrier()
        return sums

    def _stage(self, start: ir.Value) -> None:
        """Copies a part of the rows to shared memory, with zeros where there are none."""
        thread = self._ty * self._width + self._tx
        threads = self._width * self._form.groups
        with span(self._form.rows * DEPTH, start=thread, step=threads) as element:
            r, k = element // DEPTH, element % DEPTH
            row, deep = self._first + r, start + k
            self._staged[r, k] = zero(self._kind)
            with when((row < self._sizes[0]) & (deep < self._sizes[2])):
                self._staged[r, k] = load(self._left, [row, row, deep])

    def _row_part(self, row: int, at: ir.Value) -> list[ir.Value]:
        """Neighbouring elements of a row in shared memory."""
        found: list[ir.Value] = []
        for start in range(0, _AHEAD, self._lanes):
            vector = read_vector(self._staged, [row, at + start], self._lanes, _WIDTH)
            found += [extract(vector, lane) for lane in range(self._lanes)]
        return found[:_AHEAD]

    def _add(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        nest = self._nest
        values = {self._left.argument: left, self._right.argument: right, nest.outputs[0].argument: total}
        return nest.compute(nest.yields, values, [])[0]

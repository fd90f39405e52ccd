# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products on buffers: the calls that do them, and what is left to loops.

A matrix that a loop multiplies vectors with, where loads of vectors do not cross lines of the cache.

NumPy's arrays begin 16 bytes after a line, so that every second vector of 32 bytes, and each one of 64, would
be loaded in two parts. 300 steps of a recurrence in float64 with 100, 150 and 301 units took 391, 898 and
3642 us with rows where they were, and take 268, 547 and 2117 (AVX-512, one thread).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.diagnostics import fail
from graphc.ir.helpers import declare_helper
from graphc.ir.walk import ancestors
from graphc.library.helpers import BlockProduct, Gemm, Helper
from graphc.lowering import calls
from graphc.lowering.carried import either, spans
from graphc.lowering.memory.layouts import address, at, is_contiguous, metadata
from graphc.lowering.partial_reductions import nest
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.lowering.scans.buffers import allocate
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Bytes of matrices that stay in a core's own caches, from where reading twice as many lines takes time.
_LEAST, _MOST = 2 << 10, 2 << 20
# A copy takes as long as one or two steps, and saves a tenth to a fifth of each with vectors of 32 bytes,
# two fifths with vectors of 64.
_STEPS = 32
_LINE = 64


class Place(NamedTuple):
    """A place at which a matrix is read.

    Attributes:
        pointer: to its first element.
        stride: from row to row, in elements, an i64.
    """

    pointer: ir.Value
    stride: ir.Value


class AlignedMatrices:
    """Places of matrices in a function, each made once for a loop.

    NumPy's arrays begin 16 bytes after a line, so that every second vector of 32 bytes, and each one of 64,
    crosses into the next line and is loaded in two parts. So do vectors of rows that are no multiple of a
    line. Such an argument is copied before a loop that has enough steps: each row begins with a line there.

    Args:
        operations: of a module; before any product becomes a call, as nobody sees what a call writes.
    """

    def __init__(self, operations: Iterable[ir.Operation]) -> None:
        functions = [op for op in operations if op.name == "func.func"]
        blocks = [block for op in functions for block in op.regions[0].blocks]
        self._arguments = {value for block in blocks for value in block.arguments if _is_copied(value)}
        self._made: dict[tuple[ir.Value, ir.Value], Place] = {}

    def place(self, product: ir.Operation, matrix: ir.Value) -> Place | None:
        """Place at which a product of a vector reads its matrix; None where that is as well read where it is.

        Args:
            product: the operation, still in its place.
            matrix: its operand.
        """
        loop = _recurrence(product)
        if loop is None or matrix not in self._arguments:
            return None
        # A loop is known by its first result.
        key = (matrix, loop.results[0])
        if key not in self._made:
            with ir.InsertionPoint(loop), loop.location:
                self._made[key] = _copied(matrix, loop)
        return self._made[key]


def _recurrence(op: ir.Operation) -> ir.Operation | None:
    """The loop of the function's block that an operation is in, if it counts and carries values."""
    *_, op = ancestors(op)
    return op if op.parent is not None and op.name == "scf.for" and len(op.results) else None


def _is_copied(argument: ir.Value) -> bool:
    """True if an argument is a matrix that is only read, and of a size for which a copy pays."""
    if not isinstance(argument.type, ir.MemRefType):
        return False
    memref = ir.MemRefType(argument.type)
    if memref.rank != 2 or not memref.has_static_shape or not is_contiguous(argument):
        return False
    size = memref.shape[0] * memref.shape[1] * dtype_of(memref.element_type).itemsize
    return _LEAST <= size <= _MOST and all(_reads(use) for use in argument.uses)


def _reads(use: ir.OpOperand) -> bool:
    op = use.owner
    if op.name == "linalg.generic":
        return bool(use.operand_number < ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0])
    return op.name in ("memref.dim", "memref.load") or (op.name == "memref.copy" and use.operand_number == 0)


def _copied(matrix: ir.Value, loop: ir.Operation) -> Place:
    """The place of the matrix, or of a copy where that pays in this call."""
    memref = ir.MemRefType(matrix.type)
    rows, columns = memref.shape
    item = dtype_of(memref.element_type).itemsize
    padded = -(-columns * item // _LINE) * _LINE // item
    copy = allocate(ir.MemRefType.get([rows, padded], memref.element_type), [rows, padded])
    place = address(matrix)
    steps = loop.operands[1] - loop.operands[0]
    stays = build.compare_index(2, steps, build.const_index(_STEPS))
    if padded == columns:
        beside = place & (_LINE - 1)
        even = build.compare_index(0, beside, build.const_index(0))
        stays = even | stays
    either(stays, [], lambda: None, lambda: _copy(matrix, copy))
    start = at(build.select(stays, place, address(copy)))
    strides = (build.const_index(size) for size in (columns, padded))
    return Place(start, calls.number(build.select(stays, *strides)))


def _copy(matrix: ir.Value, copy: ir.Value) -> None:
    """Copies elements to the beginning of rows that may be longer."""
    rows, columns = ir.MemRefType(matrix.type).shape
    if [rows, columns] == list(ir.MemRefType(copy.type).shape):
        build.create("memref.copy", [], [matrix, copy])
        return
    with spans([rows, columns]) as place:
        copy[place] = matrix[place]


# The attribute of a `linalg.generic` that is a product of matrices: which operands are transposed.
IS_PRODUCT = "graphc.matmul"
# What may stand between the fill of a result and its product: operations that read no elements (the body of
# the fill itself among them).
_TRANSPARENT = (
    "arith.",
    "linalg.fill",
    "linalg.yield",
    "memref.alloc",
    "memref.cast",
    "memref.collapse_shape",
    "memref.dim",
    "memref.expand_shape",
    "memref.subview",
)


def contraction(
    a: ir.Value,
    b: ir.Value,
    start: ir.Value,
    axes: tuple[list[int], list[int]],
    dtype: np.dtype,
    flags: list[bool],
) -> ir.Value:
    """`sum_k a * b` into `start`; `axes` gives the loop dimension of each operand dimension.

    Both sides may be halves where `dtype`, that of `start`, is float32.
    """
    rank = ir.RankedTensorType(start.type).rank + 1
    work = np.dtype("uint8") if dtype == np.bool_ else dtype
    kinds = [x.type.element_type for x in (a, b, start)]
    given = [np.dtype("float16") if kind != kinds[2] else work for kind in kinds]

    def body(values: list[ir.Value]) -> list[ir.Value]:
        s = ScalarBuilder(ir)
        sides = [Scalar(value, kind) for value, kind in zip(values, given, strict=True)]
        x, y, total = (s.cast(side, work) for side in sides)
        return [(s.or_(total, s.and_(x, y)) if dtype == np.bool_ else s.add(total, s.mul(x, y))).value]

    sides = list(zip((a, b), axes, strict=True))
    reduced = [*[False] * (rank - 1), True]
    outputs = [(start, range(rank - 1))]
    return nest(sides, outputs, reduced, body, **{IS_PRODUCT: ir.DenseBoolArrayAttr.get(flags)}).results[0]


def with_fills(operations: Iterable[ir.Operation]) -> Iterator[tuple[ir.Operation, ir.Operation | None]]:
    """The generics on buffers among operations, each with the fill with zeros that serves it alone."""
    fills: dict[ir.Value, ir.Operation] = {}
    for op in operations:
        if op.name == "linalg.generic":
            yield op, fills.get(op.operands[-1])
        # Whatever opens or ends a block clears too.
        if not op.name.startswith(_TRANSPARENT):
            fills.clear()
        elif op.name == "linalg.fill" and _is_zero(op.operands[0]):
            fills[op.operands[1]] = op


def _is_zero(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "arith.constant":
        attribute = owner.attributes["value"]
        return isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and attribute.value == 0
    return owner.name == "complex.create" and all(map(_is_zero, owner.operands))


# Largest size of a product that gets a function of its own.
_BLOCK = 16
_SUFFIXES = {"f32": "s", "f64": "d", "complex<f32>": "c", "complex<f64>": "z"}
# Pointers to matrices that a product of known sizes reads, and to the one that it writes.
_READ = "!llvm.ptr {llvm.noalias, llvm.readonly}"
_APART = [_READ, _READ, "!llvm.ptr {llvm.noalias}"]
_TAKES_INDEX = -(2**31)  # in rawConstantIndices of llvm.getelementptr


@record()
class Product:
    """A `linalg.generic` on buffers with the attribute `graphc.matmul` = (transpose a, transpose b).

    Args:
        op: the generic, whose result buffer holds what the product is added to.
        aligned: places of matrices that vectors are multiplied with.
        fill: the operation that fills the result buffer with zeros for this product only, if one does.
    """

    op: Any
    aligned: AlignedMatrices
    fill: Any = None

    def lower(self, threshold: int) -> str | None:
        """Replaces the generic by a call; returns what the call is, or None where loops are better."""
        matrices = self._matrices()
        if matrices is None:
            return None
        a, b, c = matrices
        self._suffix = _SUFFIXES[str(ir.MemRefType(c.buffer.type).element_type)]
        m, n, k = c.static_size(0), c.static_size(1), a.static_size(0 if a.transposed else 1)
        if k == 1 or (m == 1 and n == 1) or 0 in (m, n, k):
            return None  # an outer product, a dot product, nothing: simple loops, which LLVM vectorises
        block = None
        if m is not None and n is not None and k is not None and m * n * k <= threshold:
            if self._suffix in "cz":
                return None
            if max(m, n, k) <= _BLOCK:
                block = BlockProduct(self._suffix, (m, n, k), (a.transposed, b.transposed))
        with ir.InsertionPoint(self.op), self.op.location:
            if block is not None:
                self._call(block, [], matrices)
            else:
                sizes = [c.size(0), c.size(1), a.size(0 if a.transposed else 1)]
                numbers = [
                    build.const_i64(int(a.transposed)),
                    build.const_i64(int(b.transposed)),
                    *map(calls.number, sizes),
                ]
                self._call(Gemm(self._suffix, b.transposed), numbers, matrices)
        if self.fill is not None:
            self.fill.erase()
        self.op.erase()
        return "gemm calls" if block is None else "block products"

    def _matrices(self) -> tuple[_Matrix, _Matrix, _Matrix] | None:
        """The operands, if BLAS has the element type and their layouts can be described to it."""
        a, b, c = self.op.operands
        element = str(ir.MemRefType(c.type).element_type)
        if element not in _SUFFIXES:
            return None
        if element.startswith("complex") and not all(map(is_contiguous, (a, b, c))):
            return None
        flags = self.op.attributes[IS_PRODUCT]
        if not isinstance(flags, ir.DenseBoolArrayAttr) or len(flags) != 2:
            fail(
                self.op, f"'{IS_PRODUCT}' must be array<i1: ...> of two flags: whether a and b are transposed"
            )
        is_column = ir.MemRefType(b.type).rank == 1
        x, y = _Matrix.of(a, flags[0], False), _Matrix.of(b, flags[1], True)
        z = _Matrix.of(c, False, is_column)
        if x is None or y is None or z is None or z.transposed:
            return None
        return x, y, z

    def _call(self, helper: Helper, numbers: list[ir.Value], matrices: tuple[_Matrix, ...]) -> None:
        accumulate = build.create(
            "arith.constant",
            [ir.IntegerType.get_signless(1)],
            [],
            value=ir.BoolAttr.get(self.fill is None),
        ).result
        # Of a vector and a matrix, the matrix: each of its elements is read in every step of a loop.
        row, column = matrices[2].static_size(0) == 1, matrices[2].static_size(1) == 1
        places = [
            self.aligned.place(self.op, matrix.buffer) if used else None
            for matrix, used in zip(matrices, (column and not row, row, False), strict=True)
        ]
        layouts = [_Layout(matrix.buffer, place) for matrix, place in zip(matrices, places, strict=True)]
        pointers = _APART if isinstance(helper, BlockProduct) else ["!llvm.ptr"] * 3
        types = ["i64"] * len(numbers) + [kind for pointer in pointers for kind in (pointer, "i64")] + ["i1"]
        declare_helper(self.op, helper, types, [])

        result = matrices[2].buffer
        with spans([build.dim(result, axis) for axis in range(ir.MemRefType(result.type).rank - 2)]) as batch:
            operands = list(numbers)
            for matrix, layout in zip(matrices, layouts, strict=True):
                operands += [layout.address(batch), layout.stride(matrix.axes[0])]
            build.call(helper.symbol, [], [*operands, accumulate])


@record()
class _Matrix:
    """A buffer whose last two dimensions are a matrix with contiguous rows, or a vector as a row or column.

    Attributes:
        axes: the dimension that numbers the rows, and the one along them; None is a size of 1.
        transposed: whether the product takes the transpose of this matrix.
    """

    buffer: Any
    axes: tuple[int | None, int | None]
    transposed: bool

    @classmethod
    def of(cls, buffer: ir.Value, transposed: bool, is_column: bool) -> _Matrix | None:
        """A buffer seen as such a matrix, or None if neither dimension is contiguous.

        Args:
            buffer: the operand.
            transposed: whether the product takes the transpose of this matrix.
            is_column: whether a vector is a column of the product, and not a row.
        """
        memref = ir.MemRefType(buffer.type)
        strides = memref.get_strides_and_offset()[0]
        if memref.rank == 1:
            if is_column or strides[0] != 1:
                return cls(buffer, (0, None), not is_column)
            return cls(buffer, (None, 0), False)
        rows, columns = memref.rank - 2, memref.rank - 1
        if strides[columns] == 1 or memref.shape[columns] == 1:
            return cls(buffer, (rows, columns), transposed)
        if strides[rows] == 1 or memref.shape[rows] == 1:
            return cls(buffer, (columns, rows), not transposed)
        return None

    def size(self, which: int) -> Any:
        """An index value."""
        axis = self.axes[which]
        return build.const_index(1) if axis is None else build.dim(self.buffer, axis)

    def static_size(self, which: int) -> int | None:
        axis = self.axes[which]
        size = 1 if axis is None else ir.MemRefType(self.buffer.type).shape[axis]
        return size if size >= 0 else None


class _Layout:
    """Address and strides of a buffer, as values.

    Args:
        buffer: the buffer.
        place: where its elements are read instead, if it is a matrix with contiguous rows.
    """

    def __init__(self, buffer: ir.Value, place: Place | None = None) -> None:
        memref = ir.MemRefType(buffer.type)
        self._element = memref.element_type
        self._strides, offset = memref.get_strides_and_offset()
        self._dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        if offset == self._dynamic or self._dynamic in self._strides:
            buffer, position, self._values = metadata(buffer)
        self._place = place
        self._base = at(address(buffer)) if place is None else place.pointer
        if offset:
            self._base = self._element_at(
                calls.number(position) if offset == self._dynamic else build.const_i64(offset)
            )

    def stride(self, axis: int | None) -> ir.Value:
        """The distance of elements along a dimension, an i64."""
        if axis is None:
            return build.const_i64(1)
        if self._place is not None and axis == 0:
            return self._place.stride
        known = self._strides[axis]
        return calls.number(self._values[axis]) if known == self._dynamic else build.const_i64(known)

    def address(self, batch: list[ir.Value]) -> ir.Value:
        """Address of the matrix at a position of the leading dimensions."""
        total = None
        for axis, position in enumerate(batch):
            part = calls.number(position) * self.stride(axis)
            total = part if total is None else total + part
        return self._base if total is None else self._element_at(total)

    def _element_at(self, offset: ir.Value) -> ir.Value:
        return build.create(
            "llvm.getelementptr",
            [self._base.type],
            [self._base, offset],
            elem_type=ir.TypeAttr.get(_llvm_type(self._element)),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([_TAKES_INDEX]),
        ).result


def _llvm_type(element: ir.Type) -> ir.Type:
    """The element as the llvm dialect has it: a complex number is a pair."""
    text = str(element)
    if text.startswith("complex"):
        part = text[len("complex<") : -1]
        return ir.Type.parse(f"!llvm.struct<({part}, {part})>")
    return element

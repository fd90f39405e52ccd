# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix that a loop multiplies vectors with, where loads of vectors do not cross lines of the cache.

NumPy's arrays begin 16 bytes after a line, so that every second vector of 32 bytes, and each one of 64, would
be loaded in two parts. 300 steps of a recurrence in float64 with 100, 150 and 301 units took 391, 898 and
3642 us with rows where they were, and take 268, 547 and 2117 (AVX-512, one thread).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.lowering import calls, pointers
from graphc.lowering.carried import either
from graphc.lowering.carried import loop as count
from graphc.lowering.memory.layouts import is_contiguous
from graphc.lowering.scans.buffers import allocate
from graphc_dialects._mlir import ir

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
    while op.parent is not None and op.parent.name != "func.func":
        op = op.parent.operation
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
    place = pointers.address(matrix)
    steps = loop.operands[1] - loop.operands[0]
    stays = build.compare_index(2, steps, build.const_index(_STEPS))
    if padded == columns:
        beside = place & (_LINE - 1)
        even = build.compare_index(0, beside, build.const_index(0))
        stays = build.create("arith.ori", [even.type], [even, stays]).result
    either(stays, [], list, lambda: _copy(matrix, copy))
    start = pointers.at(build.select(stays, place, pointers.address(copy)))
    strides = (build.const_index(size) for size in (columns, padded))
    return Place(start, calls.number(build.select(stays, *strides)))


def _copy(matrix: ir.Value, copy: ir.Value) -> list[ir.Value]:
    """Copies elements to the beginning of rows that may be longer; gives no values."""
    memref = ir.MemRefType(matrix.type)
    if list(memref.shape) == list(ir.MemRefType(copy.type).shape):
        build.create("memref.copy", [], [matrix, copy])
        return []
    _, rows = count(build.const_index(memref.shape[0]), [])
    with ir.InsertionPoint(rows):
        _, row = count(build.const_index(memref.shape[1]), [])
        with ir.InsertionPoint(row):
            place = [rows.arguments[0], row.arguments[0]]
            element = build.create("memref.load", [memref.element_type], [matrix, *place]).result
            build.create("memref.store", [], [element, copy, *place])
            build.create("scf.yield", [], [])
        build.create("scf.yield", [], [])
    return []

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix that a loop multiplies vectors with, where loads of vectors do not cross lines of the cache."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.ir import build
from graphc.ir.types import dtype_of
from graphc.lowering import pointers
from graphc.lowering.layouts import is_contiguous
from graphc.lowering.scan_buffers import allocate
from graphc_dialects._mlir import ir

# Bytes of matrices that stay in the nearest caches, from where reading twice as many lines takes time.
_LEAST, _MOST = 2 << 10, 128 << 10
# A copy takes as long as one or two steps, and saves a tenth to a fifth of each.
_STEPS = 32
_LINE = 64


class AlignedMatrices:
    """Addresses of matrices in a function, each made once for a loop.

    NumPy's arrays begin 16 bytes after a line, so that every second vector of 32 bytes crosses into the next
    line and is loaded in two parts. Such an argument is copied before a loop that has enough steps.

    Args:
        operations: of a module; before any product becomes a call, as nobody sees what a call writes.
    """

    def __init__(self, operations: Iterable[ir.Operation]) -> None:
        functions = [op for op in operations if op.name == "func.func"]
        blocks = [block for op in functions for block in op.regions[0].blocks]
        self._arguments = {value for block in blocks for value in block.arguments if _is_copied(value)}
        self._made: dict[tuple[ir.Value, ir.Value], ir.Value] = {}

    def pointer(self, product: ir.Operation, matrix: ir.Value) -> ir.Value | None:
        """Where a product of a vector reads its matrix; None where that is as well read where it is.

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
    """Whether an argument is a matrix that is only read, and of a size for which a copy pays."""
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


def _copied(matrix: ir.Value, loop: ir.Operation) -> ir.Value:
    """The address of the matrix, or of a copy where that pays in this call."""
    memref = ir.MemRefType(matrix.type)
    copy = allocate(memref, list(memref.shape))
    place = pointers.address(matrix)
    beside = build.index_op("andi", place, build.const_index(_LINE - 1))
    even = build.compare_index(0, beside, build.const_index(0))
    steps = build.index_op("subi", loop.operands[1], loop.operands[0])
    few = build.compare_index(2, steps, build.const_index(_STEPS))
    stays = build.create("arith.ori", [even.type], [even, few]).result
    choice = ir.Operation.create("scf.if", operands=[stays], regions=2)
    for region, copies in zip(choice.regions, (False, True), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            if copies:
                build.create("memref.copy", [], [matrix, copy])
            build.create("scf.yield", [], [])
    return pointers.at(build.select(stays, place, pointers.address(copy)))

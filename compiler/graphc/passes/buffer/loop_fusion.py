# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighbouring loop nests over the same rows become one."""

from __future__ import annotations

import math
from typing import Any

from graphc.ir.lifetimes import Lifetimes
from graphc.ir.walk import blocks_outside_loops, functions
from graphc.passes.buffer.memory._buffer_sizes import item_size
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Operations that may stand between two loops: they touch no memory that a loop writes.
_TRANSPARENT = (
    "arith.",
    "memref.alloc",
    "memref.dim",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.extract_strided_metadata",
)
_VIEWS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.subview",
    "memref.reinterpret_cast",
    "memref.extract_strided_metadata",
)


@record()
class LoopFusion(Pass):
    """Fuses neighbouring `scf.for` nests whose iteration i needs only iteration i of the one before.

    Both nests have equal bounds. Row-wise work such as a softmax (a maximum, a sum of exponentials, a
    division per row) then visits each row while it is in the first-level cache instead of sweeping the whole
    array three times.

    Two nests are fused if both carry no values, at least one contains another loop, and every buffer that one
    of them writes and both access is always indexed by the outer induction variable in the same position.
    Nests in regions of conditionals count too, unless they are in a loop.
    Distinct allocations and function arguments do not overlap (the entry point guarantees it for arguments);
    buffers reached through views are left alone.

    Options:
        overlap: where memory is scarce, the bytes of buffers that may be in use together after two nests are
            fused and were not before: some are used last in the first nest, others first in the second.
            Sizes that are not known count as 0. -1 for any number.

    Source: Kennedy and McKinley, "Maximizing loop parallelism and improving data locality via loop fusion"
    (1993).
    """

    overlap: int = -1

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for block in blocks_outside_loops(function):
                self._fuse_block(block)

    def _fuse_block(self, block: ir.Block) -> None:
        previous: Any = None
        ends = None if self.overlap < 0 else _Ends(block)
        for op in [op.operation for op in block.operations]:
            if op.name == "scf.for" and not len(op.results):
                if previous is not None and _can_fuse(previous, op) and self._may_fuse(ends, previous, op):
                    if ends is not None:
                        ends.fuse(previous, op)
                    _fuse(previous, op)
                    self.count("fused loops")
                previous = op
            elif not op.name.startswith(_TRANSPARENT):
                previous = None

    def _may_fuse(self, ends: _Ends | None, first: ir.Operation, second: ir.Operation) -> bool:
        return ends is None or ends.overlap(first, second) <= self.overlap


class _Ends:
    """The bytes of buffers that each operation of a block is the first, or the last, to access."""

    def __init__(self, block: ir.Block) -> None:
        self._lifetimes = lifetimes = Lifetimes(block)
        operations = lifetimes.operations
        self._first, self._last = [0] * len(operations), [0] * len(operations)
        for alloc in [op for op in operations if op.name == "memref.alloc"]:
            accesses = lifetimes.accesses(lifetimes.uses(alloc.results[0]))
            if accesses:
                self._first[min(accesses)] += _bytes(alloc)
                self._last[max(accesses)] += _bytes(alloc)

    def overlap(self, first: ir.Operation, second: ir.Operation) -> int:
        """The bytes that are in use together only if two neighbouring nests are one."""
        positions = self._lifetimes.positions
        return min(self._last[positions[first]], self._first[positions[second]])

    def fuse(self, first: ir.Operation, second: ir.Operation) -> None:
        """Says that one nest becomes part of the one after it."""
        at, into = self._lifetimes.positions[first], self._lifetimes.positions[second]
        self._first[into] += self._first[at]
        self._last[into] += self._last[at]


def _bytes(alloc: ir.Operation) -> int:
    """The bytes of an allocation; 0 where they are not known."""
    kind = alloc.results[0].type
    sizes = list(kind.shape)
    return 0 if min(sizes, default=0) < 0 else math.prod(sizes) * (item_size(kind.element_type) or 0)


def _can_fuse(first: ir.Operation, second: ir.Operation) -> bool:
    if list(first.operands) != list(second.operands):
        return False
    left, right = _Accesses(first), _Accesses(second)
    if left.opaque or right.opaque or not (left.nested or right.nested):
        return False
    shared = (left.written & right.touched) | (right.written & left.touched)
    for root in shared:
        positions = left.positions(root) & right.positions(root)
        if not positions:
            return False
    return True


class _Accesses:
    """Accesses of a loop nest: the buffers that it reads and writes, and the positions of its induction
    variable in the indices.
    """

    def __init__(self, loop: ir.Operation) -> None:
        self.opaque = False
        self.nested = False
        self.written: set[ir.Value] = set()
        self.touched: set[ir.Value] = set()
        self._positions: dict[ir.Value, set[int]] = {}
        self._variable = loop.regions[0].blocks[0].arguments[0]
        self._collect(loop)

    def positions(self, root: ir.Value) -> set[int]:
        """Index positions that hold the induction variable in every access of the buffer."""
        return self._positions[root]

    def _collect(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self._visit(inner.operation)

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "memref.load":
            self._access(op.operands[0], list(op.operands)[1:])
        elif op.name == "memref.store":
            self._access(op.operands[1], list(op.operands)[2:])
            self.written.add(_root(op.operands[1]))
        elif op.name in ("scf.for", "scf.if"):
            self.nested = self.nested or op.name == "scf.for"
            self._collect(op)
        elif not op.name.startswith(("arith.", "math.", "complex.", "scf.yield", "memref.dim")):
            self.opaque = True

    def _access(self, buffer: ir.Value, indices: list[ir.Value]) -> None:
        root = _root(buffer)
        self.touched.add(root)
        found = {position for position, index in enumerate(indices) if index == self._variable}
        if root != buffer:
            found = set()
        self._positions[root] = self._positions.get(root, found) & found


def _root(buffer: ir.Value) -> ir.Value:
    """The buffer that a chain of views shows."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _VIEWS:
        buffer = buffer.owner.operands[0]
    return buffer


def _fuse(first: ir.Operation, second: ir.Operation) -> None:
    """Moves the body of the first loop to the start of the second and erases the first."""
    source, target = first.regions[0].blocks[0], second.regions[0].blocks[0]
    source.arguments[0].replace_all_uses_with(target.arguments[0])
    anchor = target.operations[0].operation
    for op in [op.operation for op in source.operations][:-1]:
        op.move_before(anchor)
    first.erase()

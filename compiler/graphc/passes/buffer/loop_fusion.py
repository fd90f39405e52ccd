# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Neighbouring loop nests over the same rows become one."""

from __future__ import annotations

import math
from collections.abc import Container

from graphc.ir import build
from graphc.ir.lifetimes import ROW, VIEWS, Lifetimes
from graphc.ir.walk import (
    blocks_outside_loops,
    functions,
    named_attributes,
    seen_through,
    static_steps,
    walk,
    within,
)
from graphc.passes import Pass
from graphc.passes.buffer._workspace import item_size
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Nests that one is compared with, the nearest ones: a long function has hundreds.
_LOOK_BACK = 8
# Elements of a row, and rows that are few. A sweep over so many elements, of which some arrays fit a cache of
# the second level, costs less than functions of single numbers, which are other ones than these.
_SHORT, _FEW, _SWEPT = 64, 8, 1 << 13
_CHEAP = frozenset(("math.absf", "math.absi", "math.fma", "math.sqrt"))
# What is larger leaves no room for other rows in a first-level cache.
_ROW_BYTES = 16 << 10
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
_VIEWS = frozenset({*VIEWS, "memref.extract_strided_metadata"})


@record()
class LoopFusion(Pass):
    """Fuses `scf.for` nests whose iteration i needs only iteration i of one before.

    Both nests have equal bounds. Row-wise work such as a softmax (a maximum, a sum of exponentials, a
    division per row) then visits each row while it is in the first-level cache instead of sweeping the whole
    array three times.

    Two nests are fused if both carry no values, at least one contains another loop, and every buffer that one
    of them writes and both access is always indexed by the outer induction variable in the same position.
    The first one moves to the second: past nests between them that touch nothing that it writes and write
    nothing that it touches, if the second one reads what the first one writes.
    Nests in regions of conditionals count too, unless they are in a loop.
    Distinct allocations and function arguments do not overlap (the entry point guarantees it for arguments);
    buffers reached through views are left alone.

    Nests over a known number of rows of at most 64 elements, of which one has elementary functions, stay
    apart while their arrays fit the cache: LLVM makes vectors over the rows, or over elements, of a loop that
    has no more than one in it, and of functions of one number a row.

    An allocation that is only accessed in one nest then, in the row of the iteration, is contracted to that
    row: the iteration has written all that it reads of it. Such memory is on the stack, an `alloca` with the
    attribute `graphc.row`, of which every thread has its own.

    Options:
        overlap: where memory is scarce, the bytes of buffers that may be in use together after two nests are
            fused and were not before: some are used last in the first nest, others first in the second.
            Sizes that are not known count as 0. -1 for any number.

    Source: Kennedy and McKinley, "Maximizing loop parallelism and improving data locality via loop fusion"
    (1993); Gao, Olsen, Sarkar and Thekkath, "Collective loop fusion for array contraction" (1992).
    """

    overlap: int = -1

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for block in blocks_outside_loops(function):
                self._fuse_block(block)

    def _fuse_block(self, block: ir.Block) -> None:
        nests: list[_Accesses] = []
        fused: dict[ir.Operation, None] = {}
        ends = None if self.overlap < 0 else _Ends(block)
        for op in [op.operation for op in block.operations]:
            if op.name == "scf.for" and not len(op.results):
                nest = _Accesses(op)
                while (found := self._partner(nests, nest, ends)) is not None:
                    first = nests.pop(found)
                    if ends is not None:
                        ends.fuse(first.loop, op)
                    fused.pop(first.loop, None)
                    fused[op] = None
                    _fuse(first.loop, op)
                    nest = _Accesses(op)
                    self.count("fused loops")
                nests.append(nest)
            elif not op.name.startswith(_TRANSPARENT):
                nests.clear()
        if fused:
            self._contract(block, fused)

    def _partner(self, nests: list[_Accesses], second: _Accesses, ends: _Ends | None) -> int | None:
        """The position of a nest that can be fused with one after all of them, the last one first."""
        for back in range(1, min(len(nests), _LOOK_BACK) + 1):
            first, between = nests[-back], nests[len(nests) - back + 1 :]
            if back > 1 and not first.written & second.touched:
                continue
            if any(first.conflicts(other) for other in between):
                continue
            if _can_fuse(first, second) and self._may_fuse(ends, first.loop, second.loop):
                return len(nests) - back
        return None

    def _contract(self, block: ir.Block, nests: Container[ir.Operation]) -> None:
        """Keeps one row of what only one nest accesses."""
        for alloc in [op.operation for op in block.operations if op.operation.name == "memref.alloc"]:
            nest = _row_of(alloc, nests)
            if nest is not None:
                _keep_row(alloc, nest)
                self.count("contracted buffers")

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


def _can_fuse(first: _Accesses, second: _Accesses) -> bool:
    if list(first.loop.operands) != list(second.loop.operands):
        return False
    if first.opaque or second.opaque or not (first.nested or second.nested):
        return False
    if (first.computes or second.computes) and _has_short_rows(first.loop) and _has_short_rows(second.loop):
        return False
    shared = (first.written & second.touched) | (second.written & first.touched)
    return all(first.positions(root) & second.positions(root) for root in shared)


def _has_short_rows(nest: ir.Operation) -> bool:
    """True if LLVM makes vectors over an outermost loop or over the short ones in it, kept by themselves."""
    inner = [op.operation for op in nest.regions[0].blocks[0].operations if op.operation.name == "scf.for"]
    rows, *steps = (static_steps(loop) or math.inf for loop in (nest, *inner))
    row = max(steps, default=1)
    return row <= _SHORT and rows > _FEW and rows * row <= _SWEPT


class _Accesses:
    """Accesses of a loop nest: the buffers that it reads and writes, and the positions of its induction
    variable in the indices.
    """

    def __init__(self, loop: ir.Operation) -> None:
        self.loop = loop
        self.opaque = False
        self.nested = self.computes = False
        self.written: set[ir.Value] = set()
        self.touched: set[ir.Value] = set()
        self._positions: dict[ir.Value, set[int]] = {}
        self._variable = loop.regions[0].blocks[0].arguments[0]
        for op in walk(loop):
            self._visit(op)

    def conflicts(self, other: _Accesses) -> bool:
        """True if two nests may not change places."""
        if self.opaque or other.opaque:
            return True
        return not (self.written.isdisjoint(other.touched) and other.written.isdisjoint(self.touched))

    def positions(self, root: ir.Value) -> set[int]:
        """Index positions that hold the induction variable in every access of the buffer."""
        return self._positions[root]

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "memref.load":
            self._access(op.operands[0], list(op.operands)[1:])
        elif op.name == "memref.store":
            self.written.add(self._access(op.operands[1], list(op.operands)[2:]))
        elif op.name == "scf.for":
            self.nested = True
        elif op.name.startswith("math."):
            self.computes = self.computes or op.name not in _CHEAP
        elif not op.name.startswith(("arith.", "complex.", "scf.if", "scf.yield", "memref.dim")):
            self.opaque = True

    def _access(self, buffer: ir.Value, indices: list[ir.Value]) -> ir.Value:
        root = seen_through(buffer, _VIEWS)
        self.touched.add(root)
        found = {position for position, index in enumerate(indices) if index == self._variable}
        if root != buffer:
            found = set()
        self._positions[root] = self._positions.get(root, found) & found
        return root


def _row_of(alloc: ir.Operation, nests: Container[ir.Operation]) -> ir.Operation | None:
    """The nest each of whose iterations alone accesses its row of an allocation; None if there is none."""
    kind = ir.MemRefType(alloc.results[0].type)
    rows = list(kind.shape)[1:]
    size = item_size(kind.element_type)
    if not kind.rank or min(rows, default=0) < 0 or size is None or math.prod(rows) * size > _ROW_BYTES:
        return None
    found: ir.Operation | None = None
    for use in alloc.results[0].uses:
        user = use.owner.operation
        position = {"memref.load": 0, "memref.store": 1}.get(user.name)
        if position is None or use.operand_number != position:
            return None
        nest = within(user, alloc.block)
        if nest not in nests or (found is not None and found != nest):
            return None
        if user.operands[position + 1] != nest.regions[0].blocks[0].arguments[0]:
            return None
        found = nest
    return found


def _keep_row(alloc: ir.Operation, nest: ir.Operation) -> None:
    """Replaces an allocation by one row of it on the stack, where LLVM takes single elements for values."""
    kind = ir.MemRefType(alloc.results[0].type)
    with alloc.location:
        aligned = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
        row_kind = ir.MemRefType.get(list(kind.shape)[1:], kind.element_type)
        row = build.stack_memory(row_kind, nest, alignment=aligned, **{ROW: ir.UnitAttr.get()})
    for use in list(alloc.results[0].uses):
        user, position = use.owner.operation, use.operand_number
        operands = list(user.operands)
        operands[position : position + 2] = [row]
        with ir.InsertionPoint(user), user.location:
            made = build.create(user.name, [r.type for r in user.results], operands, **named_attributes(user))
        for old, new in zip(user.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        user.erase()
    alloc.erase()


def _fuse(first: ir.Operation, second: ir.Operation) -> None:
    """Moves the body of the first loop to the start of the second and erases the first."""
    source, target = first.regions[0].blocks[0], second.regions[0].blocks[0]
    source.arguments[0].replace_all_uses_with(target.arguments[0])
    anchor = target.operations[0].operation
    for op in [op.operation for op in source.operations][:-1]:
        op.move_before(anchor)
    first.erase()

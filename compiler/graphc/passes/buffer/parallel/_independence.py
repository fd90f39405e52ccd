# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Independence of the iterations of a loop, which may then run in any order, or at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphc.ir import build
from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import ROW, VIEWS
from graphc.ir.walk import walk
from graphc.library.helpers import BlockProduct, Gemm, Helper
from graphc.library.memory.access import PLACES
from graphc.passes.buffer.parallel._loop_cost import minimum_of
from graphc_dialects._mlir import ir

_HARMLESS = ("arith.", "math.", "complex.", "scf.for", "scf.if", "scf.yield", "memref.dim")
_STEP = "llvm.getelementptr"
_ADDRESSES = ("memref.extract_aligned_pointer_as_index", "arith.index_cast", "llvm.inttoptr", _STEP)
_ALL_VIEWS = frozenset({*VIEWS, "memref.view", "memref.extract_strided_metadata"})
# A position of an index and an expression that differs from iteration to iteration.
_Key = tuple[Any, ...]
_Places = frozenset[tuple[int, _Key]]


def is_independent(loop: ir.Operation, helpers: Mapping[str, Helper]) -> bool:
    """True if no iteration touches what another one writes.

    That is so if the loop carries no values, contains nothing but arithmetic, loops and accesses of memory
    whose origin is known (arguments, allocations, places of a workspace: these do not overlap), and every
    buffer that it writes, but for rows that belong to one iteration, is always indexed, in one position, by
    the induction variable: itself, plus something that is the same in all iterations, or the variable of a
    loop over the positions up to the next value, or over a part of as many positions in each iteration.

    Args:
        loop: an `scf.for`.
        helpers: by name, what the module declares.
    """
    return not len(loop.results) and _Accesses(loop, helpers).independent


def is_view(op: ir.Operation) -> bool:
    """True if an operation gives an address in its first operand's memory, and does nothing else."""
    return op.name in _ALL_VIEWS


class _Accesses:
    """The memory that a loop reads and writes."""

    def __init__(self, loop: Any, helpers: Mapping[str, Helper]) -> None:
        self._loop, self._helpers = loop, helpers
        inside = walk(loop)
        block = loop.regions[0].blocks[0]
        self._inside = {result for op in inside for result in op.results}
        for op in [loop, *inside]:
            self._inside.update(a for region in op.regions for b in region.blocks for a in b.arguments)
        self._variable = block.arguments[0]
        self._keys: dict[ir.Value, _Key] = {self._variable: ()}
        self._multiples: dict[ir.Value, int] = {}
        # Variables of loops over a part of the positions, and the upper bounds of these loops.
        self._ends: dict[ir.Value, ir.Value] = {}
        # A loop accesses memory through pointers of products, or through memrefs, which do not alias them.
        self._ways: set[str] = set()
        self._step = build.constant_value(loop.operands[2])
        self._written: set[Any] = set()
        self._accesses: dict[ir.Value, list[tuple[Any, _Places]]] = {}
        self.independent = all(self._visit(op) for op in inside) and self._disjoint()

    def _disjoint(self) -> bool:
        if len(self._ways) > 1:
            return False
        for root in self._written:
            accesses = self._accesses[root]
            if len({base for base, _ in accesses}) > 1:
                return False
            if not frozenset.intersection(*(places for _, places in accesses)):
                return False
        return True

    def _visit(self, op: ir.Operation) -> bool:
        """Notes what an operation does; False if it is not understood."""
        name = op.name
        if name == "memref.load":
            return self._access(op.operands[0], list(op.operands)[1:], writes=False)
        if name == "memref.store":
            return self._access(op.operands[1], list(op.operands)[2:], writes=True)
        if name == "memref.copy":
            return self._access(op.operands[0], [], writes=False) and self._access(
                op.operands[1], [], writes=True
            )
        if name == "scf.for":
            self._enter(op)
        elif name in ("arith.addi", "arith.subi"):
            self._shift(op)
        elif name == "arith.index_cast" and op.operands[0] in self._keys:
            if str(op.results[0].type) in ("index", "i64"):  # a narrower type has fewer values
                self._keys[op.results[0]] = self._keys[op.operands[0]]
        elif name == "arith.muli":
            self._scale(op)
        elif name == "func.call":
            return self._product(op)
        elif name == _STEP:
            return True
        return name.startswith(_HARMLESS) or name in _ALL_VIEWS

    def _enter(self, loop: ir.Operation) -> None:
        """A loop over the positions between two values of the induction variable, or in a part of them."""
        lower, bounds = loop.operands[0], minimum_of(loop.operands[1])
        variable = loop.regions[0].blocks[0].arguments[0]
        if lower == self._variable:
            if any(self._is_next(x) for x in bounds):
                self._keys[variable] = ()
        elif lower in self._ends:
            if self._ends[lower] in bounds:
                self._keys[variable], self._ends[variable] = self._keys[lower], loop.operands[1]
        else:
            length = self._other(lower, "arith.muli", self._variable)
            if length is None or length in self._inside:
                return
            if length in [y for x in bounds if (y := self._other(x, "arith.addi", lower)) is not None]:
                self._keys[variable], self._ends[variable] = ("part", length), loop.operands[1]

    def _other(self, value: ir.Value, name: str, operand: ir.Value) -> ir.Value | None:
        """The other operand of the operation of this name that makes a value from one."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != name:
            return None
        a, b = owner.operands
        return b if a == operand else a if b == operand else None

    def _is_next(self, value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.addi":
            return False
        others = [x for x in owner.operands if x != self._variable]
        return len(others) == 1 and self._step is not None and build.constant_value(others[0]) == self._step

    def _shift(self, op: ir.Operation) -> None:
        a, b = op.operands
        if a in self._keys and b not in self._inside:
            self._keys[op.results[0]] = (*self._keys[a], op.name, b)
        elif b in self._keys and a not in self._inside and op.name == "arith.addi":
            self._keys[op.results[0]] = (*self._keys[b], op.name, a)

    def _scale(self, op: ir.Operation) -> None:
        a, b = op.operands
        factor = build.constant_value(b)
        if factor is not None and self._keys.get(a) == ():
            self._multiples[op.results[0]] = factor

    def _product(self, call: ir.Operation) -> bool:
        """A product of matrices, one in each iteration of a loop over a batch."""
        self._ways.add("pointers")
        helper = self._helpers.get(callee_of(call))
        if isinstance(helper, BlockProduct):
            return self._block_product(call, helper.sizes)
        if not isinstance(helper, Gemm):
            return False
        a, b, c = call.operands[5], call.operands[7], call.operands[9]
        target = self._matrix(c)
        # No two positions in the leading dimensions of a buffer are the same memory.
        apart = target is not None and target[1] is not None and self._moves(target[1])
        return apart and target is not None and self._note_matrices(a, b, target[0])

    def _moves(self, offset: ir.Value) -> bool:
        """True if an offset is a sum of which one part is a multiple of the induction variable."""
        owner = offset.owner
        if isinstance(owner, ir.Block):
            return False
        if owner.name == "arith.addi":
            return any(self._moves(part) for part in owner.operands)
        a = owner.operands[0] if owner.name == "arith.muli" else offset
        return self._keys.get(a) == ()

    def _block_product(self, call: ir.Operation, sizes: tuple[int, int, int]) -> bool:
        a, _, b, _, c, row, _ = call.operands
        columns = build.constant_value(row)
        target = self._matrix(c)
        if columns is None or target is None or target[1] is None:
            return False
        buffer, distance = target[0], self._multiples.get(target[1])
        shape = ir.MemRefType(buffer.type).shape
        apart = (sizes[0] - 1) * columns + sizes[1] <= (distance or 0) == math.prod(shape[1:])
        return apart and min(shape[1:]) > 0 and self._note_matrices(a, b, buffer)

    def _note_matrices(self, a: ir.Value, b: ir.Value, target: ir.Value) -> bool:
        for pointer in (a, b):
            found = self._matrix(pointer)
            if found is None or not self._note(found[0], frozenset(), writes=False):
                return False
        return self._note(target, frozenset({(0, ())}), writes=True)

    def _matrix(self, pointer: ir.Value) -> tuple[Any, Any | None] | None:
        """The memref that a pointer points into, and the offset that depends on the iteration."""
        offset = None
        op = pointer.owner
        while not isinstance(op, ir.Block) and op.name in _ADDRESSES:
            if op.name == _ADDRESSES[0]:
                return op.operands[0], offset
            if op.name == _STEP and op.results[0] in self._inside:
                if offset is not None or len(op.operands) != 2:
                    return None
                offset = op.operands[1]
            op = op.operands[0].owner
        return None

    def _note(self, buffer: ir.Value, places: _Places, *, writes: bool) -> bool:
        root = root_of(buffer)
        if root is None or buffer in self._inside:
            return False
        if not isinstance(root.owner, ir.Block) and ROW in root.owner.attributes:
            return True
        self._accesses.setdefault(root, []).append((buffer, places))
        if writes:
            self._written.add(root)
        return True

    def _access(self, buffer: ir.Value, indices: list[ir.Value], *, writes: bool) -> bool:
        self._ways.add("memrefs")
        places = {(i, self._keys[x]) for i, x in enumerate(indices) if x in self._keys}
        while buffer in self._inside:
            owner = buffer.owner
            if isinstance(owner, ir.Block) or owner.name not in ("memref.cast", "memref.subview"):
                return False
            if owner.name == "memref.subview":
                places = self._through_subview(owner.operation, places)
            buffer = owner.operands[0]
        return self._note(buffer, frozenset(places), writes=writes)

    def _through_subview(self, op: ir.Operation, places: set[tuple[int, _Key]]) -> set[tuple[int, _Key]]:
        """Positions in the source of a subview; kept are those where the subview has one row."""
        offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
        sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = iter(list(op.operands)[1 : 1 + counts[1]])
        found = set()
        for position, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            value = next(operands) if offset == build.DYNAMIC else None
            if size == 1 and value in self._keys:
                found.add((position, self._keys[value]))
        kept = len(sizes) == len(ir.MemRefType(op.results[0].type).shape) and not any(offsets)
        return found | (places if kept and _unit_strides(op) else set())


def _unit_strides(op: ir.Operation) -> bool:
    return all(stride == 1 for stride in ir.DenseI64ArrayAttr(op.attributes["static_strides"]))


def root_of(buffer: ir.Value) -> ir.Value | None:
    """The memory that a chain of views shows, or None if it might be that of several values."""
    while True:
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            return buffer if owner.owner.operation.name == "func.func" else None
        if owner.name in _ALL_VIEWS:
            buffer = owner.operands[0]
            continue
        if owner.name in ("memref.alloc", "memref.alloca", "memref.get_global"):
            return buffer
        if owner.name == "func.call":
            callee = callee_of(owner)
            return buffer if callee in PLACES else None
        return None

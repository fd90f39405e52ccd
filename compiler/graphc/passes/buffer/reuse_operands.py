# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over elements compute in the memory of an operand that nobody reads afterwards."""

from __future__ import annotations

from graphc.ir.lifetimes import VIEWS, Lifetimes
from graphc.ir.walk import definition, functions
from graphc.passes import Pass
from graphc.passes.buffer.outline_loops import minimum_of
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir

# By name, which operand of an access is the buffer.
_ACCESSES = {"memref.load": 0, "memref.store": 1}
_OTHER = "other"
# A load or a store, and the form of the buffer.
_Access = tuple[ir.Operation, str]


class ReuseOperands(Pass):
    """Gives what a loop nest computes the memory of a buffer that the nest is the last to read.

    The new buffer is replaced by the old one, so that one is enough where two were alive during the nest:
    `tanh` of a matrix product is computed where the product lies.

    Both are allocations of one type and of equal sizes. In the nest, the old one is read, and the new one
    written, at one position only: the variables of all loops around, so that no other iteration touches the
    element, and in an iteration the read comes first. Loops that give an inner loop ranges which do not
    overlap need not be in the position. Nobody uses the new one before, nor the old one after the nest, and
    neither is used in it through a view, unless both are through one that makes axes one.

    Runs after loops were fused, and before places in the workspace are decided.

    Source: in-place operations of PyTensor (`inplace_elemwise`); buffer reuse in XLA's buffer assignment.
    """

    stage = "buffer"
    acts_on = frozenset({"memref.alloc"})

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            if len(function.regions[0].blocks) == 1:
                self._in_block(function.regions[0].blocks[0])

    def _in_block(self, block: ir.Block) -> None:
        lives = _Lives(block)
        for position, op in enumerate(lives.operations):
            if op.name != "scf.for":
                continue
            for new in lives.first_used_at(position):
                ending = (x for x in lives.last_used_at(position) if lives.stands_before(x, new))
                old = next((x for x in ending if _fits(lives, x, new, position)), None)
                if old is not None:
                    lives.merge(position, old, new)
                    new.results[0].replace_all_uses_with(old.results[0])
                    new.erase()
                    self.count("buffers")


class _Lives:
    """First and last uses of the allocations of a block."""

    def __init__(self, block: ir.Block) -> None:
        lifetimes = Lifetimes(block)
        self.operations, self._positions = lifetimes.operations, lifetimes.positions
        self._first: dict[int, list[ir.Operation]] = {}
        self._last: dict[int, list[ir.Operation]] = {}
        self._end: dict[ir.Operation, int] = {}
        self._named: dict[ir.Operation, int] = {}
        self._accesses: dict[ir.Operation, dict[int, list[_Access]]] = {}
        for op in self.operations:
            if op.name != "memref.alloc":
                continue
            uses = lifetimes.uses(op.results[0])
            if uses.positions and not (uses.escapes or uses.returned or uses.deallocations):
                accesses = (i for i in uses.positions if self.operations[i].name not in VIEWS)
                self._first.setdefault(min(accesses, default=-1), []).append(op)
                last = max(uses.positions)
                self._last.setdefault(last, []).append(op)
                self._end[op] = last
                self._named[op] = min(uses.positions)
                self._accesses[op] = self._find_accesses(lifetimes, op.results[0])

    def first_used_at(self, position: int) -> list[ir.Operation]:
        """The allocations that an operation is the first to use."""
        return self._first.get(position, [])

    def last_used_at(self, position: int) -> list[ir.Operation]:
        """The allocations that an operation is the last to use."""
        return self._last.get(position, [])

    def stands_before(self, old: ir.Operation, new: ir.Operation) -> bool:
        """True if a buffer is there where another one is first named."""
        return self._positions[old] < self._named[new]

    def merge(self, position: int, old: ir.Operation, new: ir.Operation) -> None:
        """Says that the operation at a position writes one buffer into another, which takes its place."""
        self._last[position].remove(old)
        ended = self._last[self._end[new]]
        ended[ended.index(new)] = old
        self._end[old] = self._end[new]
        # What comes is done to the new one; what was done before would be looked at for all that follow.
        self._accesses[old] = self._accesses.pop(new)

    def accesses(self, buffer: ir.Operation, position: int) -> list[_Access]:
        """The loads and stores of a buffer in a loop nest, each with the form that the buffer has there: as
        it is, or with some axes as one. None if it is used there in another way.
        """
        return self._accesses[buffer].get(position, [])

    def _find_accesses(self, lifetimes: Lifetimes, buffer: ir.Value) -> dict[int, list[_Access]]:
        found: dict[int, list[_Access]] = {}
        otherwise = set()
        waiting = [(buffer, "")]
        while waiting:
            value, form = waiting.pop()
            for use in value.uses:
                op = use.owner.operation
                if op.name == "memref.dim":
                    continue  # else all that has this size would be looked at
                if len(op.regions) or op.name == "scf.yield":
                    return {}
                position = lifetimes.position(op)
                if op != self.operations[position]:
                    if form == _OTHER or use.operand_number != _ACCESSES.get(op.name):
                        otherwise.add(position)
                    found.setdefault(position, []).append((op, form))
                elif op.name not in _ACCESSES:
                    is_flat = op.name == "memref.collapse_shape" and not form
                    inner = str(op.attributes["reassociation"]) if is_flat else _OTHER
                    waiting += [(result, inner) for result in op.results]
        return {position: each for position, each in found.items() if position not in otherwise}


def _fits(lives: _Lives, old: ir.Operation, new: ir.Operation, position: int) -> bool:
    """True if a nest can write one buffer into another that it reads."""
    if old == new or old.results[0].type != new.results[0].type or list(old.operands) != list(new.operands):
        return False
    loop = lives.operations[position]
    reads, writes = lives.accesses(old, position), lives.accesses(new, position)
    if not reads or len(writes) != 1:
        return False
    write, view = writes[0]
    address = list(write.operands)[2:]
    if write.name != "memref.store" or not _is_one_for_each_iteration(address, write, loop):
        return False
    return all(
        read.name == "memref.load"
        and form == view
        and list(read.operands)[1:] == address
        and _comes_before(read, write)
        for read, form in reads
    )


def _comes_before(first: ir.Operation, second: ir.Operation) -> bool:
    """True if an operation stands in the block of another one, before it."""
    if first.block != second.block:
        return False
    for op in first.block.operations:
        if op.operation == first:
            return True
        if op.operation == second:
            return False
    return False


def _is_one_for_each_iteration(address: list[ir.Value], write: ir.Operation, loop: ir.Operation) -> bool:
    """True if no two iterations have the same positions: these are the variables of all loops around, less
    those of loops over ranges that do not overlap.
    """
    loops = [write.parent.operation]
    while loops[-1] != loop and loops[-1].name == "scf.for":
        loops.append(loops[-1].parent.operation)
    if any(each.name != "scf.for" for each in loops):
        return False
    free = set(address)
    if len(free) != len(address):
        return False
    inner = None
    for each in loops:
        variable = each.regions[0].blocks[0].arguments[0]
        if variable in free:
            free.discard(variable)
            inner = each
        elif inner is None or not _is_range_of(inner, each, variable):
            return False
        else:
            inner = each
    return not free


def _is_range_of(inner: ir.Operation, outer: ir.Operation, variable: ir.Value) -> bool:
    """True if iterations of a loop give another one ranges that do not overlap."""
    lower, upper = inner.operands[0], inner.operands[1]
    width: ir.Value | None = None
    if lower == variable:
        width = outer.operands[2]
    elif constant_value(outer.operands[2]) == 1 and _is_made_by(lower, "arith.muli", variable):
        width = next((x for x in lower.owner.operands if x != variable), None)
    else:
        return False
    return any(
        _is_made_by(end, "arith.addi", lower) and width in end.owner.operands for end in minimum_of(upper)
    )


def _is_made_by(value: ir.Value, name: str, operand: ir.Value) -> bool:
    made = definition(value, name)
    return made is not None and operand in made.operands

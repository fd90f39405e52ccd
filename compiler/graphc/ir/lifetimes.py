# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lifetimes of the buffers of a function.

A use of a buffer is a use of its memref or of anything that may hold its address: views, the results of
`arith.select` and of loops that it goes through, integers and pointers made from it. A use inside the region
of an operation counts for the operation of the function's block that contains it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.ir.walk import blocks_of, seen_through
from graphc.library.places import Interval
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Operations whose results are elements or sizes, never addresses.
_DATA = (
    "memref.load",
    "memref.store",
    "memref.dim",
    "memref.rank",
    "memref.copy",
    "linalg.",
    "vector.load",
    "vector.store",
    "vector.transfer_",
    "vector.mask",
    "vector.gather",
    "llvm.load",
)
# Their results are other names of their operand's memory.
VIEWS = frozenset(
    f"memref.{name}" for name in ("cast", "collapse_shape", "expand_shape", "subview", "reinterpret_cast")
)
# Attribute of an `alloca` that belongs to each iteration of a loop alone: it has written what it reads of it.
ROW = "graphc.row"
_READS = ("memref.load", "memref.dim")
_NO_ADDRESS = frozenset("i1 f16 f32 f64 complex<f32> complex<f64>".split())
_STORES = ("memref.store", "llvm.store")
_ONE_OF_REGIONS = ("scf.if", "scf.index_switch", "scf.execute_region")


@record()
class Uses:
    """The uses of a buffer.

    Attributes:
        positions: of the operations of the block that use it.
        stored: the values that are stored as its elements.
        deallocations: `memref.dealloc` operations, which count for nothing.
        escapes: its address is stored somewhere or used in an unknown way: it has to live until the end.
        returned: the function returns it.
    """

    positions: set[int] = field(default_factory=set)
    stored: list[Any] = field(default_factory=list)
    deallocations: list[Any] = field(default_factory=list)
    escapes: bool = False
    returned: bool = False


def root_of(buffer: ir.Value) -> ir.Value:
    """The value that a view, or a view of a view, was made of."""
    return seen_through(buffer, VIEWS)


class Lifetimes:
    """Finds the lifetimes of buffers that are allocated in a block.

    Args:
        block: the only block of a function, or of a region of a conditional.
    """

    def __init__(self, block: ir.Block) -> None:
        self.block = block
        self.operations = [op.operation for op in block.operations]
        self.positions = {op: i for i, op in enumerate(self.operations)}

    def uses(self, value: ir.Value) -> Uses:
        """Everything that uses a buffer."""
        found = Uses()
        seen = {value}
        waiting = [value]
        while waiting:
            for use in waiting.pop().uses:
                user = use.owner.operation
                if user.name == "memref.dealloc":
                    found.deallocations.append(user)
                    continue
                found.positions.add(self.position(user))
                for alias in self._aliases(user, use.operand_number, found):
                    if alias not in seen:
                        seen.add(alias)
                        waiting.append(alias)
        return found

    def accesses(self, uses: Uses) -> list[int]:
        """The positions of operations that need the elements, and not only views and sizes."""
        return [i for i in uses.positions if self.operations[i].name not in (*VIEWS, "memref.dim")]

    def interval(self, uses: Uses) -> Interval:
        """From the first to the last use; to the end of the block if the address escapes."""
        end = len(self.operations) - 1
        return Interval(min(uses.positions), end if uses.escapes else max(uses.positions))

    def position(self, op: ir.Operation) -> int:
        """The position in the block of an operation, or of the one that contains it; -1 if none does."""
        while op.block != self.block:
            op = op.parent.operation
            if op.name == "func.func":
                return -1
        return self.positions[op]

    def only_read(self, value: ir.Value) -> bool:
        """True if the elements of a memref can be read here but not be written."""
        seen = {value}
        waiting = [value]
        while waiting:
            for use in waiting.pop().uses:
                user = use.owner.operation
                if user.name in VIEWS:
                    fresh = [result for result in user.results if result not in seen]
                    seen.update(fresh)
                    waiting += fresh
                elif not (user.name in _READS or (user.name == "memref.copy" and use.operand_number == 0)):
                    return False
        return True

    def _aliases(self, user: ir.Operation, number: int, found: Uses) -> list[ir.Value]:
        """The values that operand `number` of an operation flows to, as far as they may hold an address."""
        name = user.name
        if name in _STORES and number == 0:
            found.escapes = True
            return []
        if name == "memref.store" and number == 1:
            found.stored.append(user.operands[0])
        if name.startswith(_DATA):
            return []
        if name == "func.return":
            found.returned = True
            return []
        if name == "memref.extract_strided_metadata":
            return [user.results[0]]
        if name in _FLOW:
            return [value for value in _FLOW[name](user, number) if _may_hold_address(value)]
        if len(user.regions) or name.endswith((".yield", ".return")):
            found.escapes = True
        return [result for result in user.results if _may_hold_address(result)]


def _may_hold_address(value: ir.Value) -> bool:
    return str(value.type) not in _NO_ADDRESS


def _through_for(op: ir.Operation, number: int) -> list[ir.Value]:
    if number < 3:
        return []
    return [op.regions[0].blocks[0].arguments[number - 2], op.results[number - 3]]


def _through_condition(op: ir.Operation, number: int) -> list[ir.Value]:
    if number == 0:
        return []
    loop = op.parent.operation
    return [loop.regions[1].blocks[0].arguments[number - 1], loop.results[number - 1]]


def _through_yield(op: ir.Operation, number: int) -> list[ir.Value]:
    parent = op.parent.operation
    if parent.name == "scf.for":
        return [parent.regions[0].blocks[0].arguments[number + 1], parent.results[number]]
    if parent.name == "scf.while":
        return [parent.regions[0].blocks[0].arguments[number]]
    if parent.name in _ONE_OF_REGIONS:
        return [parent.results[number]]
    arguments = [a for block in blocks_of(parent) for a in block.arguments]
    return [*parent.results, *arguments]


_FLOW = {
    "scf.for": _through_for,
    "scf.while": lambda op, number: [op.regions[0].blocks[0].arguments[number]],
    "scf.condition": _through_condition,
    "scf.yield": _through_yield,
}

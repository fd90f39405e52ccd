# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of buffers: as products of values, and computed before the first buffer is used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from graphc.ir.lifetimes import VIEWS
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.ir.lifetimes import Lifetimes

# Integer arithmetic that cannot trap.
_TOTAL = frozenset(
    f"arith.{name}"
    for name in (
        "constant addi subi muli maxsi minsi maxui minui select cmpi index_cast index_castui extsi extui "
        "trunci andi ori xori"
    ).split()
)
_DIVISIONS = (
    "arith.divui",
    "arith.remui",
    "arith.divsi",
    "arith.remsi",
    "arith.floordivsi",
    "arith.ceildivsi",
)
_BYTES = {"index": 8, "complex<f32>": 8, "complex<f64>": 16, "bf16": 2}


class Size(NamedTuple):
    """A number of bytes: a constant times values that are known at run time only.

    Attributes:
        units: the constant.
        factors: the values, in the order in which they were first met in the function.
    """

    units: int
    factors: tuple[Any, ...]


def item_size(element: ir.Type) -> int | None:
    """Bytes of an element in memory; None for types that no buffer has."""
    text = str(element)
    if text in _BYTES:
        return _BYTES[text]
    if text[0] in "if" and text[1:].isdigit():
        return -(-int(text[1:]) // 8)
    return None


def buffer_size(alloc: ir.Operation, item: int, numbers: dict[ir.Value, int]) -> Size:
    """The bytes of an allocation.

    Args:
        alloc: a `memref.alloc`.
        item: bytes of an element.
        numbers: the values met so far; new ones are added.
    """
    units, factors = item, []
    for size in alloc.results[0].type.shape:
        units *= size if size >= 0 else 1
    for operand in alloc.operands:
        constant, values = _product(operand)
        units *= constant
        factors += values
    for value in factors:
        numbers.setdefault(value, len(numbers))
    return Size(units, tuple(sorted(factors, key=numbers.__getitem__)))


def _product(value: ir.Value) -> tuple[int, list[ir.Value]]:
    """A value as a constant times other values."""
    number = constant_value(value)
    if number is not None:
        return max(number, 0), []
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "arith.muli":
        (a, left), (b, right) = map(_product, owner.operation.operands)
        return a * b, left + right
    return 1, [value]


def size_of(memref: ir.Value, axis: int) -> Any:
    """A size of a memref, as far as it can be told.

    Returns:
        A number, an index value, `(argument, axis)`, a list of these for their product, or None.
    """
    kind = memref.type
    if kind.shape[axis] >= 0:
        return kind.shape[axis]
    if isinstance(memref.owner, ir.Block):
        return (memref.arg_number, axis) if memref.owner.owner.operation.name == "func.func" else None
    op = memref.owner.operation
    if op.name in ("memref.alloc", "memref.alloca"):
        return op.operands[sum(size < 0 for size in list(kind.shape)[:axis])]
    if op.name == "memref.cast":
        return size_of(op.operands[0], axis)
    if op.name in ("memref.reinterpret_cast", "memref.subview"):
        return _given_size(op, axis)
    if op.name == "memref.collapse_shape":
        group = ir.ArrayAttr(op.attributes["reassociation"])[axis]
        return [size_of(op.operands[0], ir.IntegerAttr(source).value) for source in ir.ArrayAttr(group)]
    return None


def _given_size(op: ir.Operation, axis: int) -> ir.Value | None:
    """A size of a view that states its sizes; None if it drops dimensions."""
    static = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    if len(static) != op.results[0].type.rank:
        return None
    _, offsets, *_ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    dynamic = ir.ShapedType.get_dynamic_size()
    return op.operands[1 + offsets + static[:axis].count(dynamic)]


class Mover:
    """Moves the computation of sizes to an earlier place in their block.

    Args:
        lifetimes: the positions of operations.
    """

    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._constant_arguments: dict[ir.Value, bool] = {}

    def known_from(self, value: ir.Value, memo: dict[ir.Value, float]) -> float:
        """The first position at whose operation a value is computed, or can be.

        Args:
            value: index value, or what one is computed from.
            memo: what was found before, while no operation has moved.
        """
        if value not in memo:
            memo[value] = self._known_from(value, memo)
        return memo[value]

    def _known_from(self, value: ir.Value, memo: dict[ir.Value, float]) -> float:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return -math.inf
        op = owner.operation
        if op.name == "memref.alloc":
            return math.inf  # It will be made where it is first used.
        computed = self._lifetimes.position(op) + 1
        if not self._may_move(op):
            return computed
        return min(computed, max((self.known_from(x, memo) for x in op.operands), default=-math.inf))

    def move(self, value: ir.Value, position: int) -> None:
        """Makes a value known before the operation at a position; `known_from` has allowed it."""
        owner = value.owner
        # What has no position is a view that took the place of one before it, when its buffer was placed.
        if isinstance(owner, ir.Block) or self._lifetimes.positions.get(owner.operation, -1) < position:
            return
        op = owner.operation
        for operand in op.operands:
            self.move(operand, position)
        op.move_before(self._lifetimes.operations[position])
        self._lifetimes.positions[op] = position - 1

    def _may_move(self, op: ir.Operation) -> bool:
        name = op.name
        if name in _TOTAL or name in VIEWS or name == "memref.dim":
            return True
        if name in _DIVISIONS:
            return (constant_value(op.operands[1]) or 0) > 0
        if name == "memref.load":
            # An index could be out of bounds where a check that comes first has not been made yet.
            return len(op.operands) == 1 and self._is_constant(op.operands[0])
        return False

    def _is_constant(self, memref: ir.Value) -> bool:
        """True if a memref is (a view of) an argument that the function only reads."""
        while not isinstance(memref.owner, ir.Block):
            if memref.owner.operation.name not in VIEWS:
                return False
            memref = memref.owner.operation.operands[0]
        if memref not in self._constant_arguments:
            self._constant_arguments[memref] = self._lifetimes.only_read(memref)
        return self._constant_arguments[memref]

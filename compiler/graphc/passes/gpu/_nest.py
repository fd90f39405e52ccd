# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bufferised `linalg.generic` as kernels read it: extents, operands and a body to be copied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.walk import copy_with, definition, inputs_of, seen_through, slice_of, walk
from graphc.lowering.carried import carry
from graphc.lowering.loops import Generic, Operand, dimension_of
from graphc.lowering.memory import layouts
from graphc.lowering.memory.layouts import address, collapse, is_contiguous, is_row_major, metadata
from graphc.passes.gpu._host import is_address
from graphc.passes.gpu._notation import itemsize, read_vector, write_vector
from graphc_dialects._mlir import ir

# The widest access of a thread, in bytes.
WIDTH = 16
# They name memory, and look at none of its elements.
_OF_SIZES = ("memref.alloc", "memref.dim")
# A number, a value, or a buffer and an axis: sizes with equal keys are equal.
SizeKey: TypeAlias = "int | ir.Value | tuple[ir.Value, int]"


def size_key(buffer: ir.Value, axis: int, initial: Mapping[ir.Value, ir.Value] | None = None) -> SizeKey:
    """Key of the size of a buffer along an axis; what a loop carries has the sizes of what is `initial`."""
    size = ir.MemRefType(buffer.type).shape[axis]
    if size >= 0:
        return size
    if initial is not None and buffer in initial:
        return size_key(initial[buffer], axis, initial)
    if (view := definition(buffer, "memref.cast")) is not None:
        return size_key(view.operands[0], axis, initial)
    if (view := definition(buffer, "memref.subview", "memref.reinterpret_cast")) is not None:
        kept = layouts.kept_axes(view)
        return (buffer, axis) if kept is None else layouts.stated(view)[1][kept[axis]]
    if (alloc := definition(buffer, "memref.alloc")) is None:
        return buffer, axis
    dynamic = [other for other, known in enumerate(ir.MemRefType(buffer.type).shape) if known < 0]
    value = alloc.operands[dynamic.index(axis)]
    if (made := definition(value, "memref.dim")) is None:
        return value
    source, where = made.operands[0], build.constant_value(made.operands[1])
    # MLIR lets an axis be asked for that there is not, as long as nothing runs.
    if where is None or not 0 <= where < ir.MemRefType(source.type).rank:
        return value
    return size_key(source, where, initial)


class Nest(Generic):
    """Computation of one generic: for each dimension whether it is reduced, operands, the operations of the
    body, and what this yields to the outputs.
    """

    def __init__(self, generic: ir.Operation) -> None:
        super().__init__(generic)
        self.yields = list(self.end.operands)
        # Where the dimensions of the operation are, once some are merged.
        self._places = list(range(self.rank))

    @property
    def gathered(self) -> list[ir.Value]:
        """Buffers that the body itself reads, anywhere."""
        loads = [op for outer in self.body for op in [outer, *walk(outer)] if op.name == "memref.load"]
        return [op.operands[0] for op in loads]

    @property
    def rank(self) -> int:
        return len(self.reduction)

    def extent(self, axis: int) -> ir.Value:
        """The size of a dimension at the insertion point: a constant if an operand knows it.

        Results come before inputs: a size of them is known to be all of the nest's.
        """
        if (known := self.static_extent(axis)) is not None:
            return build.const_index(known)
        # Every dimension indexes some operand.
        operand = next(o for o in [*self.outputs, *self.inputs] if axis in o.axes)
        return build.dim(operand.buffer, operand.axes.index(axis))

    def static_extent(self, axis: int) -> int | None:
        """The size of a dimension, if an operand knows it."""
        sizes = (
            ir.MemRefType(operand.buffer.type).shape[place]
            for operand in self.operands
            for place, other in enumerate(operand.axes)
            if other == axis
        )
        return next((size for size in sizes if size >= 0), None)

    def static_size(self, axes: Sequence[int]) -> int | None:
        """The product of the sizes of some dimensions, if all are known."""
        known = [size for axis in axes if (size := self.static_extent(axis)) is not None]
        return math.prod(known) if len(known) == len(axes) else None

    def is_unit(self, axis: int) -> bool:
        """True if a dimension is known to have size 1."""
        return self.static_extent(axis) == 1

    def depends_on(self, value: ir.Value, arguments: Sequence[ir.Value]) -> bool:
        """True if a value of the body is computed from any of its arguments."""
        used = [x for op in slice_of(self.body, [value]) for x in inputs_of(op)]
        return any(x in arguments for x in [value, *used])

    def compute(
        self, wanted: Sequence[ir.Value], values: Mapping[ir.Value, ir.Value], indices: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Copies what some values of the body need to the insertion point, where its arguments, and perhaps
        some of its results, have known values; indices of the dimensions are for `linalg.index`.
        """
        new = dict(values)
        for op in slice_of(self.body, wanted, values):
            if op.name == "linalg.index":
                new[op.results[0]] = indices[self._places[dimension_of(op)]]
            else:
                copy_with(op, new)
        return [new.get(value, value) for value in wanted]

    def needed(self, wanted: Sequence[ir.Value]) -> list[Operand]:
        """The operands that some values of the body are computed from."""
        used = {x for op in slice_of(self.body, wanted) for x in inputs_of(op)} | set(wanted)
        return [operand for operand in self.operands if operand.argument in used]

    def read(
        self, indices: Sequence[ir.Value], known: Mapping[ir.Value, ir.Value] | None = None
    ) -> dict[ir.Value, ir.Value]:
        """The arguments of the body at indices: what is known of them, and loads of others that it needs."""
        values = dict(known or {})
        for operand in self.needed(self.yields):
            if operand.argument not in values:
                values[operand.argument] = load(operand, indices)
        return values

    def reduce_at(
        self, indices: Sequence[ir.Value], sizes: Sequence[ir.Value], values: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Values of the outputs without reduced dimensions, from initial ones on, by loops of one thread;
        others are stored. Indices of reduced dimensions are of no account.
        """
        reduced = [axis for axis in range(self.rank) if self.reduction[axis]]
        kept = [o for o in self.outputs if not any(axis in o.axes for axis in reduced)]
        place = list(indices)

        def run(axes: list[int], values: list[ir.Value]) -> list[ir.Value]:
            if axes:

                def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                    place[axes[0]] = number
                    return run(axes[1:], carried)

                return carry(sizes[axes[0]], values, body)
            given = {operand.argument: value for operand, value in zip(kept, values, strict=True)}
            found = self.compute(self.yields, self.read(place, given), place)
            for operand, value in zip(self.outputs, found, strict=True):
                if operand not in kept:
                    store(value, operand, place)
            return [value for operand, value in zip(self.outputs, found, strict=True) if operand in kept]

        return run(reduced, list(values))

    def collapse(self) -> None:
        """Sees neighbouring dimensions as one where every operand walks them contiguously."""
        axis = 0
        while axis + 1 < self.rank:
            if self._mergeable(axis):
                self._merge(axis)
            else:
                axis += 1

    def interchange(self, left: int) -> None:
        """Sees a dimension and the next one in the other order."""
        new = {left: left + 1, left + 1: left}
        for operand in self.operands:
            operand.axes = [axis if axis is None else new.get(axis, axis) for axis in operand.axes]
        self.reduction[left : left + 2] = reversed(self.reduction[left : left + 2])
        self.indexed = {new.get(axis, axis) for axis in self.indexed}
        self._places = [new.get(axis, axis) for axis in self._places]

    def _mergeable(self, left: int) -> bool:
        if self.reduction[left] != self.reduction[left + 1] or {left, left + 1} & self.indexed:
            return False
        for operand in self.operands:
            axes = operand.axes
            if left in axes and left + 1 in axes:
                if axes.index(left + 1) != axes.index(left) + 1 or not is_row_major(operand.buffer):
                    return False
            elif left in axes or left + 1 in axes:
                return False
        return True

    def _merge(self, left: int) -> None:
        for operand in self.operands:
            if left in operand.axes:
                place = operand.axes.index(left)
                rank = len(operand.axes)
                groups = [[i] for i in range(place)] + [[place, place + 1]]
                groups += [[i] for i in range(place + 2, rank)]
                operand.buffer = collapse(operand.buffer, groups)
                del operand.axes[place + 1]
            operand.axes = [x - 1 if x is not None and x > left else x for x in operand.axes]
        del self.reduction[left]
        self.indexed = {x - 1 if x > left else x for x in self.indexed}
        # The operation stays as it is: whoever looks at it may leave it to another pass.
        self._places = [x - 1 if x > left else x for x in self._places]


class Effects(NamedTuple):
    """The memory that operations read and write, each by the array that it is a part of.

    Passes move work to where other work is, over what stands between: it may pass an operation if it
    `commutes` with that. This is the only place that says what an operation touches. What is not known reads
    and writes all memory that it names, in its regions, too, and by the pointers of calls.
    """

    read: frozenset[ir.Value] = frozenset()
    written: frozenset[ir.Value] = frozenset()

    @classmethod
    def of(cls, op: ir.Operation) -> Effects:
        """Those of an operation, and of what is in its regions."""
        if op.name == "linalg.generic":
            return cls.of_nest(Nest(op))
        if op.name in _OF_SIZES or (op.name in VIEWS and not len(op.regions)):
            return cls()
        named = [x for inner in ([op, *walk(op)] if len(op.regions) else [op]) for x in inner.operands]
        named += [x.owner.operands[0] for x in named if is_address(x)]
        memory = frozenset(root_of(x) for x in named if isinstance(x.type, ir.MemRefType))
        return cls(memory) if op.name == "memref.load" else cls(memory, memory)

    @classmethod
    def of_nest(cls, nest: Nest) -> Effects:
        """Those of a nest."""
        read = [*(operand.buffer for operand in nest.operands), *nest.gathered]
        written = [operand.buffer for operand in nest.outputs]
        return cls(frozenset(map(root_of, read)), frozenset(map(root_of, written)))

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.read | other.read, self.written | other.written)

    def commutes(self, other: Effects) -> bool:
        """True if neither writes what the other one touches."""
        touched, others = self.read | self.written, other.read | other.written
        return not (self.written & others or other.written & touched)


def is_read_elsewhere(buffer: ir.Value, inside: list[ir.Operation]) -> bool:
    """True if anything but some nests uses an array's memory."""
    if definition(buffer, "memref.alloc") is None:
        return True
    return any(use.owner.operation not in inside and use.owner.name != "memref.dim" for use in buffer.uses)


def keeps_apart(
    operands: Iterable[tuple[Operand, bool]], others: Iterable[ir.Value], written: Iterable[ir.Value]
) -> bool:
    """True if memory that is written is read and written at its own place only, and under one name.

    Args:
        operands: of nests, and whether each is at the place, or in the row, at hand.
        others: buffers that are read or written at any place.
        written: buffers.
    """
    names: dict[ir.Value, ir.Value] = {}
    if any(names.setdefault(root_of(buffer), buffer) != buffer for buffer in written):
        return False
    pairs = [(names.get(root_of(operand.buffer)), operand.buffer, own) for operand, own in operands]
    return not any(root_of(buffer) in names for buffer in others) and all(
        same is None or (own and same == buffer) for same, buffer, own in pairs
    )


def exact(array: ir.Value) -> ir.Value:
    """An array without casts, whose type says most of where its elements are."""
    return seen_through(array, ("memref.cast",))


def whole(buffer: ir.Value) -> Operand:
    """A buffer as an operand that has an element for each place of a nest."""
    return Operand(buffer, list(range(ir.MemRefType(buffer.type).rank)), buffer)


def where(operand: Operand, indices: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices of an operand's element."""
    return [build.const_index(0) if axis is None else indices[axis] for axis in operand.axes]


def load(operand: Operand, indices: Sequence[ir.Value]) -> ir.Value:
    """The element of an operand at indices of the nest."""
    return operand.buffer[where(operand, indices)]


def store(value: ir.Value, operand: Operand, indices: Sequence[ir.Value]) -> None:
    """Writes the element of an operand at indices of the nest."""
    operand.buffer[where(operand, indices)] = value


def is_wide(operand: Operand, last: int) -> bool:
    """True if elements with neighbouring indices of a dimension lie side by side, wherever rows begin."""
    if not operand.axes or operand.axes[-1] != last or last in operand.axes[:-1]:
        return False
    return bool(ir.MemRefType(operand.buffer.type).get_strides_and_offset()[0][-1] == 1)


def wide_operands(nests: Sequence[Nest]) -> list[Operand]:
    """The operands of nests whose neighbouring elements can be loaded together."""
    return [o for nest in nests for o in nest.operands if nest.rank and is_wide(o, nest.rank - 1)]


def lanes_of(operands: Sequence[Operand]) -> int:
    """Elements of a thread at a time: 16 bytes of the widest operand; 1 for types without vectors."""
    if any(isinstance(ir.MemRefType(o.buffer.type).element_type, ir.ComplexType) for o in operands):
        return 1
    return WIDTH // max(itemsize(o.buffer) for o in operands) if operands else 1


def are_aligned(operands: Sequence[Operand], lanes: int) -> ir.Value:
    """True if the rows of all operands, which are `is_wide`, begin at a multiple of a vector.

    The rows of one that `is_contiguous` do if its memory does, and they are multiples of a vector themselves.
    """
    bits = build.const_index(0)
    for operand in {operand.buffer: operand for operand in operands}.values():
        bits = bits | _misplaced(operand, lanes)
    return bits.equals(0)


def _misplaced(operand: Operand, lanes: int) -> ir.Value:
    """Bytes between a multiple of a vector and where rows begin; not 0 if any does not begin there."""
    size, places = itemsize(operand.buffer), [address(operand.buffer)]
    if not is_contiguous(operand.buffer):
        offset, strides = layout(operand.buffer)
        places = [places[0] + offset * size, *(stride * size for stride in strides[:-1])]
    bits = [place & (lanes * size - 1) for place in places]
    return reduce(or_, bits)


def layout(buffer: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
    """The offset and the strides of a buffer, in elements."""
    return metadata(buffer)[1:]


def behind_vector(operands: Sequence[Operand], lanes: int) -> ir.Value:
    """Elements between the address of a vector and the memory of all operands, which are `is_wide`.

    It is `lanes` if they differ, or if some have rows that begin elsewhere.
    """
    found = []
    for operand in {operand.buffer: operand for operand in operands}.values():
        bits = _misplaced(operand, lanes)
        elsewhere = build.select(bits.equals(0), build.const_index(0), lanes)
        found.append(bits // itemsize(operand.buffer) if is_contiguous(operand.buffer) else elsewhere)
    for other in found[1:]:
        found[0] = build.select(other.equals(found[0]), found[0], lanes)
    return found[0]


def load_vector(operand: Operand, indices: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Neighbouring elements of an operand, from indices of the nest on."""
    return read_vector(operand.buffer, where(operand, indices), lanes, lanes * itemsize(operand.buffer))


def store_vector(values: Sequence[ir.Value], operand: Operand, indices: Sequence[ir.Value]) -> None:
    """Writes neighbouring elements of an operand, from indices of the nest on."""
    write_vector(values, operand.buffer, where(operand, indices), len(values) * itemsize(operand.buffer))

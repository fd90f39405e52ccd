# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memrefs as regions of memory, and two regions that have an element in common for certain.

Nothing here knows why a value was placed somewhere: everything is read from the operations of the module.
Positions are polynomials of index values. What cannot be told apart is not in common: two parts of a buffer
are, where they begin at the same element, where one was cut out of the other, or where numbers say so. What a
loop carries is one memory in one iteration, and any of those that come there in all iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any

from graphc.ir.size import Size
from graphc.ir.walk import incoming, is_inside, static_steps
from graphc.lowering.memory.layouts import Sizes, kept_axes, stated
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Size and stride of each axis. Names are index values, or the size of an axis of what is named first.
Dims = tuple[tuple[Size, Size], ...]
LOOPS = ("scf.for", "scf.while")
_CASTS = ("memref.cast", "memref.memory_space_cast")
_MANY = 10_000


@record(frozen=True)
class Slot:
    """A value among those that a loop carries: in each iteration, or after the last one."""

    loop: ir.Operation
    number: int
    is_result: bool = False


@record(frozen=True)
class Region:
    """Elements of one memory.

    Attributes:
        root: what names the memory: a memref, a tensor that is computed in memory of its own, or a slot.
        offset: of the first element, None if unknown. dims: size and stride of each axis.
        around: another region that it was cut out of.
        is_whole: whether it is all of the memory.
    """

    root: ir.Value | Slot
    offset: Size | None = None
    dims: Dims = ()
    around: Region | None = None
    is_whole: bool = False


class Regions(Sizes):
    """The regions of memrefs of one function.

    Args:
        of_tensor: the regions in which a tensor lies.
        order: positions of operations, in which loops come before what they contain.
    """

    def __init__(self, of_tensor: Callable[[ir.Value], list[Region]], order: dict[ir.Operation, int]) -> None:
        self._of_tensor = of_tensor
        self._order = order
        self._found: dict[ir.Value, list[Region]] = {}
        self._starts: dict[Slot, list[Region]] = {}

    def untold(self, x: ir.Value, axis: int) -> Size:
        """A size that no operation tells: what a loop carries is as long as what it starts with."""
        if isinstance(x.owner, ir.Block):
            loop = x.owner.owner.operation
            if loop.name in LOOPS and slot_of(x) >= 0:
                return self.size(start_of(loop, slot_of(x)), axis)
        return super().untold(x, axis)

    # -- regions ---------------------------------------------------------------------------------------------

    def of(self, memref: ir.Value) -> list[Region]:
        """The regions that a memref may be."""
        if memref not in self._found:
            self._found[memref] = self._of(memref)
        return self._found[memref]

    def _of(self, memref: ir.Value) -> list[Region]:
        if isinstance(memref.owner, ir.Block):
            loop = memref.owner.owner.operation
            is_carried = loop.name in LOOPS and slot_of(memref) >= 0
            return [self._whole(Slot(loop, slot_of(memref)) if is_carried else memref, memref)]
        op = memref.owner.operation
        name = op.name
        if name in LOOPS and slot_of(memref) >= 0:
            return [self._whole(Slot(op, slot_of(memref), True), memref)]
        if name == "bufferization.to_buffer":
            return self._of_tensor(op.operands[0])
        if name in ("arith.select", "scf.if"):
            return [region for x in incoming(memref) for region in self.of(x)]
        if name in _CASTS:
            return self.of(op.operands[0])
        if name == "memref.extract_strided_metadata":
            return [Region(region.root) for region in self.of(op.operands[0])]
        if name == "memref.reinterpret_cast":
            offsets, sizes, strides = ([self.value(x) for x in listed] for listed in stated(op))
            dims = tuple(zip(sizes, strides, strict=True))
            return [self._recast(region, offsets[0], dims) for region in self.of(op.operands[0])]
        if name in VIEWS:
            return [self.seen(op, region) for region in self.of(op.operands[0])]
        return [self._whole(memref, memref)]

    def seen(self, op: ir.Operation, region: Region) -> Region:
        """The region of a view, of a memref or of a tensor, of one that lies in a region."""
        if op.name.endswith(".cast"):
            return region
        if not op.name.endswith(("subview", "extract_slice")):  # another shape of the same elements
            return Region(region.root, region.offset, (), region, region.is_whole)
        offsets, sizes, strides = stated(op)
        kept = kept_axes(op)
        if kept is None or len(region.dims) != len(offsets):
            return Region(region.root, None, (), region)
        offset = self._at(region, offsets)
        dims = tuple(
            (self.value(sizes[axis]), region.dims[axis][1] * self.value(strides[axis])) for axis in kept
        )
        return Region(region.root, offset, dims, region)

    def element(self, op: ir.Operation, shaped: ir.Value, region: Region) -> Region:
        """The region of the element of an operation whose last operands are its position."""
        rank = ir.ShapedType(shaped.type).rank
        if len(region.dims) != rank:
            return Region(region.root, None, (), region)
        return Region(region.root, self._at(region, list(op.operands)[len(op.operands) - rank :]), (), region)

    def _at(self, region: Region, positions: Iterable[ir.Value | int]) -> Size | None:
        offset = region.offset
        if offset is None:
            return None
        for position, (_, stride) in zip(positions, region.dims, strict=True):
            offset += self.value(position) * stride
        return offset

    def _whole(self, root: ir.Value | Slot, memref: ir.Value) -> Region:
        """All of a memory. Where its elements lie is known if they lie side by side."""
        kind = ir.MemRefType(memref.type)
        strides = list(kind.get_strides_and_offset()[0])
        if kind.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank)) or (
            isinstance(root, Slot) and strides in ([], [1])
        ):
            return Region(root, Size(), _row_major(self.sizes(memref)), None, True)
        return Region(root, Size() if isinstance(root, Slot) else None, (), None, True)

    def _recast(self, region: Region, offset: Size, dims: Dims) -> Region:
        """A region at an offset from the beginning of an allocation, which of a slot is not known."""
        if isinstance(region.root, Slot):
            return Region(region.root, None, dims, region if region.is_whole else None)
        is_whole = region.is_whole and offset == 0 and dims == _row_major([size for size, _ in dims])
        is_whole = is_whole and _elements(dims) == _elements(region.dims)
        around = region if region.is_whole else None
        return Region(region.root, offset, dims, around, is_whole)

    # -- loops -----------------------------------------------------------------------------------------------

    def starts(self, slot: Slot) -> list[Region]:
        """The regions, seen from outside of a loop, that come to a slot in some iteration."""
        if slot not in self._starts:
            numbers, number, trips = [slot.number], slot.number, trips_of(slot.loop)
            found = [self.of(start_of(slot.loop, number))]
            most = None if trips is None else trips + slot.is_result
            while most is None or len(found) < most:
                end = end_of(slot.loop, number)
                if not (isinstance(end.owner, ir.Block) and end.owner == body_of(slot.loop)):
                    found.append([self.any_iteration(x, slot.loop) for x in self.of(end)])
                    break
                number = slot_of(end)
                if number in numbers:
                    break
                numbers.append(number)
                found.append(self.of(start_of(slot.loop, number)))
            self._starts[slot] = [region for regions in found for region in regions]
        return self._starts[slot]

    def roots(self, region: Region) -> list[ir.Value | Slot]:
        """The memories that a region may be in, those of slots too."""
        found: list[ir.Value | Slot] = [region.root]
        for root in found:
            if isinstance(root, Slot):
                found += [x.root for x in self.starts(root) if x.root not in found]
        return found

    def any_iteration(self, region: Region, loop: ir.Operation) -> Region:
        """A region as it is in some other iteration of a loop: what changes is not known."""
        around = None if region.around is None else self.any_iteration(region.around, loop)
        if any(is_inside(name[0] if isinstance(name, tuple) else name, loop) for name in _names(region)):
            return Region(region.root, None, (), around)
        return Region(region.root, region.offset, region.dims, around, region.is_whole)

    def in_other_iterations(self, region: Region, loop: ir.Operation) -> Iterator[Region]:
        """The regions that a region may be in other iterations of a loop."""
        region = self.any_iteration(region, loop)
        root = region.root
        if isinstance(root, Slot) and root.loop == loop and not root.is_result:
            yield from (_moved(start, region) for start in self.starts(root))
        else:
            yield region

    # -- comparing -------------------------------------------------------------------------------------------

    def meet(self, a: Region, b: Region, opened: tuple[Slot, ...] = ()) -> bool:
        """True if two regions have an element in common for certain, where slots are any of their starts."""
        if a.root == b.root:
            return _meet(a, b)
        if not isinstance(a.root, Slot) or (isinstance(b.root, Slot) and self._is_later(b.root, a.root)):
            a, b = b, a
        slot = a.root
        if not isinstance(slot, Slot) or slot in opened:
            return False
        if isinstance(b.root, Slot) and (b.root.loop, b.root.is_result) == (slot.loop, slot.is_result):
            return False  # what else the loop carries is not the same memory, as far as is known
        return any(self.meet(_moved(start, a), b, (*opened, slot)) for start in self.starts(slot))

    def _is_later(self, a: Slot, b: Slot) -> bool:
        """True if a slot may be made of another one, and not the other way round."""
        if a.loop == b.loop:
            return a.is_result
        return self._order[a.loop] > self._order[b.loop]


def _meet(a: Region, b: Region) -> bool:
    """True if two regions of one memory have an element in common for certain."""
    if _is_empty(a) or _is_empty(b):
        return False
    if a.is_whole or b.is_whole:
        return True
    for inner, outer in ((a, b), (b, a)):
        around = inner.around
        while around is not None:
            if around.offset is not None and (around.offset, around.dims) == (outer.offset, outer.dims):
                return True
            around = around.around
    if a.offset is None or b.offset is None:
        return False
    if a.offset == b.offset:
        return True
    one, other = _numbers(a), _numbers(b)
    return one is not None and other is not None and not one.isdisjoint(other)


def _moved(start: Region, region: Region) -> Region:
    """A region of a slot's memory, where that is one that the slot may be."""
    if region.is_whole:
        return start
    if start.offset is None or region.offset is None:
        return Region(start.root, None, (), start)
    return Region(start.root, start.offset + region.offset, region.dims, start)


def _row_major(sizes: list[Size]) -> Dims:
    dims: list[tuple[Size, Size]] = []
    step = Size(1)
    for size in reversed(sizes):
        dims.insert(0, (size, step))
        step = step * size
    return tuple(dims)


def _elements(dims: Dims) -> Size:
    return prod((size for size, _ in dims), start=Size(1))


def _is_empty(region: Region) -> bool:
    return any(size == 0 for size, _ in region.dims)


def _names(region: Region) -> set[Any]:
    sizes = (region.offset or Size(), *(size for dim in region.dims for size in dim))
    return {name for size in sizes for product in size.terms for name in product}


def _numbers(region: Region) -> set[int] | None:
    """The positions of all elements, at most some thousands; None if they are not known."""
    if _names(region) or (not region.dims and region.around is not None):
        return None
    found = {(region.offset or Size()).constant}
    for size, stride in region.dims:
        if len(found) * size.constant > _MANY:
            return None
        found = {start + i * stride.constant for start in found for i in range(size.constant)}
    return found


# -- operations ----------------------------------------------------------------------------------------------

VIEWS = ("memref.subview", "memref.collapse_shape", "memref.expand_shape")


def body_of(loop: ir.Operation) -> ir.Block:
    """The block that a loop repeats, as far as it computes something."""
    return loop.regions[-1].blocks[0]


def trips_of(loop: ir.Operation) -> int | None:
    """The number of iterations, None if unknown."""
    return static_steps(loop) if loop.name == "scf.for" else None


def slot_of(value: ir.Value) -> int:
    """The number among what a loop carries of an argument of a block of it, or of a result; -1 for what the
    condition of a loop computes, and for the number of an iteration.
    """
    is_argument = isinstance(value.owner, ir.Block)
    loop = (value.owner.owner if is_argument else value.owner).operation
    first = loop.regions[0].blocks[0]
    if loop.name == "scf.while" and value.owner != first:
        passed = incoming(value)[0]
        return slot_of(passed) if passed.owner == first else -1
    number = int(ir.BlockArgument(value).arg_number if is_argument else ir.OpResult(value).result_number)
    return number - (is_argument and loop.name == "scf.for")


def start_of(loop: ir.Operation, slot: int) -> ir.Value:
    """The value with which a loop starts."""
    return loop.operands[slot + (3 if loop.name == "scf.for" else 0)]


def end_of(loop: ir.Operation, slot: int) -> ir.Value:
    """The value that an iteration hands on."""
    return body_of(loop).operations[-1].operands[slot]

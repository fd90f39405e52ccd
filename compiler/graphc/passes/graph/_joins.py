# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins that are found, made smaller, or removed. The checks of all operations must have been inserted."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any

from graphc.ir.kinds import SUMS, reduce, reduced_axes
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.size import Size, SizesOf
from graphc.ir.views import (
    JOINS,
    REPEATS,
    SAME_ARRAY,
    TAKES_PART,
    UPDATES_PART,
    Bound,
    accumulates,
    axis_of,
    bounds_of,
    joined,
    part_of,
)
from graphc.ir.walk import is_used_once
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

MAX_TILES = 64


@record(frozen=True)
class Tile:
    """A block.

    Attributes:
        offsets: where it begins, along each axis. sizes: along each axis.
        value: what is there.
    """

    offsets: Sequence[Size]
    sizes: Sequence[Size]
    value: ir.Value

    def end(self, axis: int) -> Size:
        """End of the interval."""
        return self.offsets[axis] + self.sizes[axis]


@record(frozen=True)
class Joined:
    """Parts side by side along an axis."""

    axis: int
    parts: list[Joined | Tile]


def arrange(
    known: SizesOf, offsets: list[Size], sizes: list[Size], tiles: list[Tile]
) -> Joined | Tile | None:
    """Arrangement of blocks that fills a region, with straight cuts only. None if there is none, or if it is
    not certain.

    Args:
        known: compares sizes.
        offsets: where the region begins. sizes: of the region.
        tiles: blocks in the region.
    """
    if len(tiles) == 1:
        tile = tiles[0]
        return tile if list(tile.offsets) == offsets and list(tile.sizes) == sizes else None
    for axis in range(len(sizes)):
        bands = _bands(known, (offsets[axis], offsets[axis] + sizes[axis]), axis, tiles)
        if bands is None or len(bands) < 2:
            continue
        parts = []
        for start, size, inside in bands:
            part = arrange(
                known,
                [*offsets[:axis], start, *offsets[axis + 1 :]],
                [*sizes[:axis], size, *sizes[axis + 1 :]],
                inside,
            )
            if part is None:
                break
            parts.append(part)
        else:
            return Joined(axis, parts)
    return None


def _bands(
    known: SizesOf, region: tuple[Size, Size], axis: int, tiles: list[Tile]
) -> list[tuple[Size, Size, list[Tile]]] | None:
    """Cuts across an axis that go through no block: start and size of each band, and the blocks in it."""
    position, end = region
    bands = []
    rest = list(tiles)
    while rest:
        found = None
        for size in dict.fromkeys(tile.sizes[axis] for tile in rest if tile.offsets[axis] == position):
            stop = position + size
            inside = [
                tile
                for tile in rest
                if known.at_most(position, tile.offsets[axis]) and known.at_most(tile.end(axis), stop)
            ]
            after = [tile for tile in rest if known.at_most(stop, tile.offsets[axis])]
            if len(inside) + len(after) == len(rest) and not any(x is y for x in inside for y in after):
                found = stop, size, inside, after
                break
        if found is None:
            return None
        stop, size, inside, after = found
        bands.append((position, size, inside))
        position, rest = stop, after
    return bands if position == end else None


class JoinRules:
    """The rules, for one sweep over one function."""

    def __init__(self) -> None:
        self._known: SizesOf | None = None
        self._tiles: dict[ir.Operation, Tile | None] = {}

    def table(self) -> RuleTable:
        """The rules by operation."""
        return {
            **{name: [self.trivial_join, self.join_of_joins, self.join_of_slices] for name in JOINS},
            **{name: [self.slice_of_join] for name in TAKES_PART},
            **{name: [self.sum_of_join] for name in SUMS},
            **{name: [self.updates_as_join] for name in UPDATES_PART},
            **{name: [self.useless_broadcast] for name in REPEATS},
        }

    def _sizes(self, rw: Rewriter) -> SizesOf:
        if self._known is None:
            self._known = SizesOf(rw)
        return self._known

    # -- joins -----------------------------------------------------------------------------------------------

    def trivial_join(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Of one operand; operands without elements along the axis go."""
        axis = axis_of(op)
        operands = [uncast(rw, x) for x in op.operands]
        if len(operands) == 1:
            return operands[0]
        full = [x for x in operands if x.type.shape[axis] != 0] or operands[:1]
        return None if len(full) == len(operands) else join(rw, full, axis, op.results[0].type)

    def join_of_joins(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Along one axis, where nothing else needs the inner one."""
        axis, parts, found = axis_of(op), [], False
        for operand in op.operands:
            value = uncast(rw, operand)
            inner = rw.defined_by(value, JOINS)
            only = is_used_once(value) and (value == operand or is_used_once(operand))
            if inner is not None and axis_of(inner) == axis and only and inner.block == op.block:
                parts += list(inner.operands)
                found = True
            else:
                parts.append(value)
        return join(rw, [uncast(rw, x) for x in parts], axis, op.results[0].type) if found else None

    def join_of_slices(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Neighbouring slices of one array are a slice."""
        axis, sizes = axis_of(op), self._sizes(rw)
        made = (rw.defs.get(uncast(rw, x)) for x in op.operands)
        slices = [part for part in made if part is not None and part.name in TAKES_PART]
        if len(slices) < len(op.operands):
            return None
        source, first = slices[0].operands[0], bounds_of(slices[0])
        position, total = None, None
        for each in slices:
            bounds = bounds_of(each)
            start = sizes.of(sizes.without_empty(bounds[axis].offset, bounds[axis].size))
            if each.operands[0] != source or rw.constant(bounds[axis].stride) != 1:
                return None
            if not self._same_elsewhere(rw, bounds, first, axis) or position not in (None, start):
                return None
            size = bounds[axis].size
            position = start + sizes.of(size)
            total = size if total is None else rw.build(add, total, size)
        offset = sizes.without_empty(first[axis].offset, first[axis].size)
        return self._slice(rw, source, _replaced(first, axis, offset, total), op.results[0].type)

    def _same_elsewhere(self, rw: Rewriter, a: list[Bound], b: list[Bound], axis: int) -> bool:
        sizes = self._sizes(rw)
        return all(
            sizes.of(x) == sizes.of(y)
            for dim, bounds in enumerate(zip(a, b, strict=True))
            if dim != axis
            for x, y in zip(*bounds, strict=True)
        )

    def _slice(self, rw: Rewriter, source: ir.Value, bounds: list[Bound], kind: ir.Type) -> ir.Value:
        """A slice, or the array itself where it is all of it."""
        if self._is_whole(rw, source, bounds):
            return source
        return part_of(source, bounds, kind, rw.create)

    def _is_whole(self, rw: Rewriter, source: ir.Value, bounds: list[Bound], but: int | None = None) -> bool:
        """True if all of an array is taken, along all axes but one if it is given."""
        sizes = self._sizes(rw)
        return all(
            sizes.of(offset) == 0
            and rw.constant(stride) == 1
            and sizes.of(size) == sizes.of_dim(source, axis)
            for axis, (offset, size, stride) in enumerate(bounds)
            if axis != but
        )

    # -- readers of joins ------------------------------------------------------------------------------------

    def slice_of_join(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Within one operand."""
        value = op.operands[0]
        while rw.defined_by(value, SAME_ARRAY):
            value = rw.defs[value].operands[0]
        source = rw.defined_by(value, JOINS)
        if source is None:
            return None
        axis, sizes = axis_of(source), self._sizes(rw)
        bounds = bounds_of(op)
        if rw.constant(bounds[axis].stride) != 1:
            return None
        offset = sizes.without_empty(bounds[axis].offset, bounds[axis].size)
        start, size = sizes.of(offset), sizes.of(bounds[axis].size)
        position = Size()
        for operand in source.operands:
            x = uncast(rw, operand)
            end = position + sizes.of_dim(x, axis)
            if sizes.at_most(position, start) and sizes.at_most(start + size, end):
                return self._part(rw, op, x, axis, (bounds, offset, start - position))
            position = end
        return None

    def _part(
        self,
        rw: Rewriter,
        op: ir.Operation,
        x: ir.Value,
        axis: int,
        at: tuple[list[Bound], ir.Value, Size],
    ) -> Any:
        """The slice in terms of the operand it is within."""
        bounds, offset, inside = at
        sizes = self._sizes(rw)
        whole = self._is_whole(rw, op.operands[0], bounds, axis)
        if whole and inside == 0 and sizes.of(bounds[axis].size) == sizes.of_dim(x, axis):
            return x
        if inside.terms or offset != bounds[axis].offset:
            return None
        moved = _replaced(bounds, axis, rw.index(inside.constant), bounds[axis].size)
        return part_of(x, moved, op.results[0].type, rw.create)

    def sum_of_join(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """Sums of the operands, added or joined, where the join is only summed."""
        value = op.operands[0]
        source = rw.defined_by(value, JOINS)
        if source is None or any(use.owner.name not in SUMS for use in value.uses):
            return None
        axis, axes, kind = axis_of(source), list(reduced_axes(op)), op.results[0].type
        parts = [uncast(rw, x) for x in source.operands]
        if axis in axes:
            sums = [reduce("sum", x, axes, kind, rw.create) for x in parts]
            total = sums[0]
            for each in sums[1:]:
                total = rw.create("graphc.add", [total, each], kind)
            return total
        kept = [dim for dim in range(len(value.type.shape)) if dim not in axes]
        loose = list(kind.shape)
        loose[kept.index(axis)] = -1
        loose_kind = tensor_type(loose, kind.element_type)
        sums = [reduce("sum", x, axes, loose_kind, rw.create) for x in parts]
        return join(rw, sums, kept.index(axis), kind)

    def useless_broadcast(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """To the sizes that the operand has, as assignments to slices ask for."""
        x, *targets = op.operands
        if len(x.type.shape) != len(targets):
            return None
        sizes = self._sizes(rw)
        same = all(sizes.of(size) == sizes.of_dim(x, axis) for axis, size in enumerate(targets))
        return x if same else None

    # -- joins in other forms --------------------------------------------------------------------------------

    def updates_as_join(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """A chain of updates that sets every element is a join, whatever it started from. So is one that adds
        to every element once, if it started from zeros; else it is the sum of that and the join.
        """
        return None if accumulates(op) and _is_continued(op) else self._joined(rw, op)

    def _joined(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        tiles: list[Tile] = []
        value = op.results[0]
        update: ir.Operation | None = op
        sizes, rank = self._sizes(rw), len(op.results[0].type.shape)
        whole = [sizes.of_dim(value, axis) for axis in range(rank)]
        first = last = False
        adds = accumulates(op)
        while update is not None and accumulates(update) == adds and len(tiles) < MAX_TILES:
            if update not in self._tiles:  # each update of a chain is looked at for all that come after it
                self._tiles[update] = self._tile(rw, update)
            tile = self._tiles[update]
            if tile is None:
                return None
            tiles.insert(0, tile)
            # Arranging takes long: not before there are blocks in the first and in the last corner.
            first = first or all(offset == 0 for offset in tile.offsets)
            last = last or all(tile.end(axis) == whole[axis] for axis in range(rank))
            found = arrange(sizes, [Size()] * rank, whole, tiles) if first and last else None
            inner = update.operands[0]
            if isinstance(found, Joined):
                whole_join = self._emit(rw, found, value.type)
                if not adds or rw.splat(inner) == 0:
                    return whole_join
                before = rw.defined_by(inner, UPDATES_PART) if is_used_once(inner) else None
                rest = None if before is None or not accumulates(before) else self._joined(rw, before)
                return rw.create("graphc.add", [inner if rest is None else rest, whole_join], value.type)
            update = rw.defined_by(inner, UPDATES_PART) if is_used_once(inner) else None
        return None

    def _tile(self, rw: Rewriter, update: ir.Operation) -> Tile | None:
        y = update.operands[1]
        sizes, bounds = self._sizes(rw), bounds_of(update, 2)
        if any(rw.constant(bound.stride) != 1 for bound in bounds):
            return None
        offsets = [sizes.without_empty(bound.offset, bound.size) for bound in bounds]
        return Tile([sizes.of(x) for x in offsets], [sizes.of(bound.size) for bound in bounds], y)

    def _emit(self, rw: Rewriter, found: Any, kind: ir.Type | None) -> Any:
        if isinstance(found, Tile):
            return found.value
        parts = [self._emit(rw, part, None) for part in found.parts]
        if kind is None:
            kind = _common_type(parts, found.axis)
        return join(rw, parts, found.axis, kind)


def _is_continued(update: ir.Operation) -> bool:
    """True if another update adds to what an update makes: the chain is looked at from its end."""
    if not is_used_once(update.results[0]):
        return False
    use = next(iter(update.results[0].uses))
    return use.owner.name in UPDATES_PART and use.operand_number == 0 and accumulates(use.owner)


def _replaced(bounds: list[Bound], axis: int, offset: Any, size: Any) -> list[Bound]:
    """With another offset and size along an axis."""
    return [*bounds[:axis], Bound(offset, size, bounds[axis].stride), *bounds[axis + 1 :]]


def uncast(rw: Rewriter, value: ir.Value) -> ir.Value:
    """The tensor before casts of its static shape."""
    while rw.defining(value, "tensor.cast") is not None:
        value = rw.defs[value].operands[0]
    return value


def join(rw: Rewriter, values: list[ir.Value], axis: int, kind: ir.Type) -> ir.Value:
    """`graphc.join`, of operands cast to one type."""
    common = _common_type(values, axis)
    operands = [rw.cast_static(value, common) for value in values]
    return joined(operands, axis, kind, rw.create)


def _common_type(values: list[ir.Value], axis: int) -> ir.Type:
    shapes = [list(value.type.shape) for value in values]
    shape = [sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True)]
    shape[axis] = -1
    return tensor_type(shape, values[0].type.element_type)

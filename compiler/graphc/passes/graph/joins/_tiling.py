# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that make up a whole: which joins put them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.ir.size import Size, SizesOf
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

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

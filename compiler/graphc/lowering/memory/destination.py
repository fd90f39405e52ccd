# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The geometry of a destination: which elements of a buffer it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphc.ir import build
from graphc.lowering.memory.layouts import reinterpret
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

Size = Any  # an int, or an index value


@record(frozen=True)
class Destination:
    """Part of a buffer.

    Attributes:
        base: a memref; only its address and element type count.
        offset: the distance of elements from there to the first one.
        sizes: of each dimension.
        strides: of each dimension, in elements.
        contiguous: whether the elements lie side by side, in row-major order.
        is_lent: whether it must not be written earlier than here: an argument lives there until its last
            reader has run, or a check comes before.
        is_whole: whether it is all of the base, as that has it.
    """

    base: ir.Value
    offset: Size
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    contiguous: bool
    is_lent: bool = False
    is_whole: bool = False

    @classmethod
    def whole(
        cls, memref: ir.Value, sizes: Sequence[Size] | None = None, *, is_lent: bool = False
    ) -> Destination:
        """All of a contiguous buffer, which may begin anywhere."""
        kind = ir.MemRefType(memref.type)
        if sizes is None:
            sizes = build.dims(memref)
        offset: Size = kind.get_strides_and_offset()[1]
        is_whole = offset == 0
        if offset == ir.ShapedType.get_dynamic_stride_or_offset():
            base = ir.MemRefType.get([], kind.element_type)
            kinds = [base, *[build.index_type()] * (1 + 2 * kind.rank)]
            memref, offset, *_ = build.create("memref.extract_strided_metadata", kinds, [memref]).results
        return cls(memref, offset, tuple(sizes), _row_major(sizes), True, is_lent, is_whole)

    def part(self, axis: int, position: Size, size: Size) -> Destination:
        """`size` elements along an axis, from `position` on."""
        offset = self.offset + position * self.strides[axis]
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        contiguous = self.contiguous and all(_known(x) == 1 for x in self.sizes[:axis])
        return replace(self, offset=offset, sizes=sizes, contiguous=contiguous, is_whole=False)

    @property
    def is_empty(self) -> bool:
        """True if it is known to have no elements; upstream refuses views of such memory."""
        return any(_known(size) == 0 for size in self.sizes)

    @property
    def has_rows(self) -> bool:
        """True if neighbours in the last dimension, of those longer than 1, are neighbours in memory."""
        long = [i for i, size in enumerate(self.sizes) if _known(size) != 1]
        return not long or _known(self.strides[long[-1]]) == 1

    def reshaped(self, sizes: Sequence[Size]) -> Destination:
        """A contiguous part with another shape."""
        assert self.contiguous, "only contiguous parts are reshaped"
        return replace(self, sizes=tuple(sizes), strides=_row_major(sizes), is_whole=False)

    def permuted(self, order: Sequence[int]) -> Destination:
        """With axes as `dimshuffle` has them."""
        sizes = tuple(self.sizes[axis] if axis >= 0 else 1 for axis in order)
        strides = tuple(self.strides[axis] if axis >= 0 else 1 for axis in order)
        long = [axis for axis in order if axis >= 0 and _known(self.sizes[axis]) != 1]
        contiguous = self.contiguous and long == sorted(long)
        return replace(self, sizes=sizes, strides=strides, contiguous=contiguous, is_whole=False)

    def memref(self, shape: Sequence[int | None]) -> Any:
        """The part as a memref; `shape` has the sizes that are known of what is computed there."""
        sizes = [known if known is not None else size for size, known in zip(self.sizes, shape, strict=True)]
        strides = _row_major(sizes) if self.contiguous else self.strides
        return reinterpret(self.base, self.offset, sizes, list(strides))


def _known(size: Size) -> int | None:
    return size if isinstance(size, int) else build.constant_value(size)


def _row_major(sizes: Sequence[Size]) -> tuple[Size, ...]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        known = _known(size)
        step = step * (size if known is None else known)
    return tuple(strides)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies from global to shared memory that go on while threads compute (`cp.async`)."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.lowering.pointers import address
from graphc_dialects._mlir import ir

# Bytes of a copy, at most and at least.
BYTES, LEAST = 16, 4


def copy(
    source: ir.Value,
    place: Sequence[ir.Value],
    target: ir.Value,
    to: Sequence[ir.Value],
    elements: int,
    wanted: ir.Value,
) -> None:
    """Starts a copy of the thread's; `arrived` waits for it.

    Args:
        source, place: the array, and the indices of the first element; they have to be some of its own even
            if nothing is wanted.
        target, to: in shared memory.
        elements: how many are written in a row: 4, 8 or 16 bytes, at addresses that are multiples of that.
        wanted: how many are read; the others are 0.
    """
    width = _itemsize(source) * elements
    segments = [1, len(to), 1, len(place), 1]
    attributes = {
        "dstElements": ir.IntegerAttr.get(build.index_type(), elements),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
    }
    if width == BYTES:
        # What a block reads once needs no place in the first-level cache.
        attributes["bypassL1"] = ir.UnitAttr.get()
    token = ir.Type.parse("!nvgpu.device.async.token")
    build.create("nvgpu.device_async_copy", [token], [target, *to, source, *place, wanted], **attributes)


def arrived() -> None:
    """The thread waits for all copies that it has started; other threads see them after a barrier."""
    token = ir.Type.parse("!nvgpu.device.async.token")
    group = build.create("nvgpu.device_async_create_group", [token], []).result
    none = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    build.create("nvgpu.device_async_wait", [], [group], numGroups=none)


def is_aligned(buffer: ir.Value) -> ir.Value | None:
    """Whether all rows of an array begin at multiples of 16 bytes; None if its rows are not contiguous."""
    memref = ir.MemRefType(buffer.type)
    strides, _ = memref.get_strides_and_offset()
    if strides[-1] != 1:
        return None
    base = ir.MemRefType.get([], memref.element_type, memory_space=memref.memory_space)
    kinds = [base, *[build.index_type()] * (1 + 2 * memref.rank)]
    _, offset, *rest = build.create("memref.extract_strided_metadata", kinds, [buffer]).results
    bits = offset
    for stride in rest[memref.rank : -1]:
        bits = build.index_op("ori", bits, stride)
    bits = build.index_op(
        "ori", build.index_op("muli", bits, build.const_index(_itemsize(buffer))), address(buffer)
    )
    rest_of = build.index_op("andi", bits, build.const_index(BYTES - 1))
    return build.compare_index(0, rest_of, build.const_index(0))


def _itemsize(buffer: ir.Value) -> int:
    return int(ir.MemRefType(buffer.type).element_type.width) // 8

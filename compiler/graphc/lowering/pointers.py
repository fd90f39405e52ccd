# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Raw pointers. Only passes after bufferisation, which see the layouts of buffers, may make them: here."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc_dialects._mlir import ir


def address(buffer: ir.Value) -> ir.Value:
    """The address of the memory of a memref, before its offset; an index."""
    return build.create("memref.extract_aligned_pointer_as_index", [build.index_type()], [buffer]).result


def aligned(buffer: ir.Value) -> ir.Value:
    """A pointer to the memory of a memref, before its offset."""
    return at(address(buffer))


def first(buffer: Any) -> Any:
    """A pointer to the first element of a memref."""
    memref = ir.MemRefType(buffer.type)
    start = memref.get_strides_and_offset()[1]
    if not start:
        return aligned(buffer)
    index = build.index_type()
    if start == ir.ShapedType.get_dynamic_stride_or_offset():
        kinds = [ir.MemRefType.get([], memref.element_type), *[index] * (1 + 2 * memref.rank)]
        start = build.create("memref.extract_strided_metadata", kinds, [buffer]).results[1]
    else:
        start = build.const_index(start)
    width = build.const_index(dtype_of(memref.element_type).itemsize)
    return at(address(buffer) + start * width)


def at(position: ir.Value) -> ir.Value:
    """A pointer to an address, an index."""
    number = build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [position]).result
    return build.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr")], [number]).result

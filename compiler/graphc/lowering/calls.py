# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions that code generation defines: pointers to buffers, numbers."""

from __future__ import annotations

from typing import Any

from graphc.lowering import build
from graphc.lowering.contiguous import is_contiguous
from graphc.lowering.scan_buffers import allocate
from graphc.lowering.types import dtype_of
from graphc_dialects._mlir import ir


def place(context: Any, value: Any, sizes: list[Any]) -> Any:
    """The contiguous memory where a value is wanted, or new memory."""
    return context.destinations.buffer(value) or allocate(build.storage_type(value.type), sizes)


def readable(tensor: Any) -> Any:
    """A contiguous buffer with the elements of a tensor, which nobody may write to."""
    if not is_contiguous(tensor):
        copied = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0])}
        tensor = build.create("bufferization.alloc_tensor", [tensor.type], [tensor], **copied).result
    kind = ir.RankedTensorType(tensor.type)
    # Every buffer converts to a type with unknown strides; to another one, only by a copy.
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, [unknown] * kind.rank)
    memref = ir.MemRefType.get(kind.shape, kind.element_type, layout)
    return build.create("bufferization.to_buffer", [memref], [tensor], read_only=ir.UnitAttr.get()).result


def address(buffer: Any) -> Any:
    """A pointer to the first element."""
    memref = ir.MemRefType(buffer.type)
    index = build.index_type()
    position = build.create("memref.extract_aligned_pointer_as_index", [index], [buffer]).result
    start = memref.get_strides_and_offset()[1]
    if start:
        width = build.const_index(dtype_of(memref.element_type).itemsize)
        if start == ir.ShapedType.get_dynamic_stride_or_offset():
            kinds = [ir.MemRefType.get([], memref.element_type), *[index] * (1 + 2 * memref.rank)]
            offset = build.create("memref.extract_strided_metadata", kinds, [buffer]).results[1]
        else:
            offset = build.const_index(start)
        position = build.index_op("addi", position, build.index_op("muli", offset, width))
    return build.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr")], [number(position)]).result


def number(index: Any) -> Any:
    """An index as an i64."""
    return build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [index]).result


def product(sizes: list[Any]) -> Any:
    """The number of elements, an index."""
    count = build.const_index(1)
    for size in sizes:
        count = build.index_op("muli", count, size)
    return count


def call(op: Any, symbol: str, arguments: list[Any], results: list[Any] | None = None) -> Any:
    """Calls a function of the module of an operation, which is declared there if it is not yet."""
    build.declare(op, symbol, [x.type for x in arguments], results or [])
    callee = ir.FlatSymbolRefAttr.get(symbol)
    return build.create("func.call", results or [], arguments, callee=callee)

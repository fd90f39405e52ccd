# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Known layouts of the elements of buffers, and raw pointers to these.

Only passes after bufferisation, which see the layouts of buffers, may make pointers: here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.walk import definition
from graphc_dialects._mlir import ir

Factors = Counter[Any]  # how often each value is a factor; constants are counted as numbers
Product = tuple[int, Factors]


def is_contiguous(buffer: ir.Value) -> bool:
    """True if the type says that the elements lie side by side, from the start of the memory on."""
    memref = ir.MemRefType(buffer.type)
    return bool(memref.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(memref.rank)))


def is_row_major(buffer: ir.Value) -> bool:
    """True if the elements lie side by side, wherever they begin; the operands of a view may tell."""
    if is_contiguous(buffer):
        return True
    sizes, strides = _sizes_and_strides(buffer)
    number, factors = 1, Factors()
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if (number, factors) != product_of(stride):
            return False
        more, others = product_of(size)
        number, factors = number * more, factors + others
    return True


def _sizes_and_strides(buffer: ir.Value) -> tuple[list[Any], list[Any]]:
    """Numbers where they are static; index values, or None where nothing tells them."""
    memref = ir.MemRefType(buffer.type)
    sizes = [size if size >= 0 else None for size in memref.shape]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [None if x == unknown else x for x in memref.get_strides_and_offset()[0]]
    cast = definition(buffer, "memref.reinterpret_cast")
    if cast is None:
        return sizes, strides
    counts = list(ir.DenseI32ArrayAttr(cast.attributes["operandSegmentSizes"]))
    operands = list(cast.operands)[sum(counts[:2]) :]
    found = []
    for name, values in (("static_sizes", sizes), ("static_strides", strides)):
        static = list(ir.DenseI64ArrayAttr(cast.attributes[name]))
        given = [operands.pop(0) if x == build.DYNAMIC else x for x in static]
        found.append([x if x is not None else y for x, y in zip(values, given, strict=True)])
    return found[0], found[1]


def product_of(value: ir.Value | int | None) -> Product:
    """A size or stride as a number times other factors."""
    if value is None:
        return 1, Factors({object(): 1})  # equal to nothing else
    if isinstance(value, int):
        return value, Factors()
    constant = build.constant_value(value)
    if constant is not None:
        return constant, Factors()
    made = definition(value, "arith.muli")
    if made is None:
        return 1, Factors({value: 1})
    (a, some), (b, others) = (product_of(x) for x in made.operands)
    return a * b, some + others


def collapse(buffer: ir.Value, groups: list[list[int]]) -> ir.Value:
    """A row-major buffer with neighbouring dimensions seen as one."""
    memref = ir.MemRefType(buffer.type)
    cast = definition(buffer, "memref.reinterpret_cast")
    if cast is not None and not is_contiguous(buffer):
        return _cast_again(cast, groups)
    shape = []
    for group in groups:
        sizes = [memref.shape[position] for position in group]
        shape.append(prod(sizes) if all(size >= 0 for size in sizes) else build.DYNAMIC)
    i64 = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, position) for position in group]) for group in groups]
    )
    strides, offset = memref.get_strides_and_offset()
    layout = None if is_contiguous(buffer) else strided([strides[group[-1]] for group in groups], offset)
    target = ir.MemRefType.get(shape, memref.element_type, layout)
    return build.create("memref.collapse_shape", [target], [buffer], reassociation=reassociation).result


def _cast_again(cast: ir.Operation, groups: list[list[int]]) -> ir.Value:
    """Another cast of the same memory; upstream does not know that a collapse of the first were possible."""
    sizes, strides = _sizes_and_strides(cast.results[0])
    offset = next(iter(cast.attributes["static_offsets"]))
    if offset == build.DYNAMIC:
        offset = cast.operands[1]
    return reinterpret(
        cast.operands[0],
        offset,
        [_all(sizes[axis] for axis in group) for group in groups],
        [strides[group[-1]] for group in groups],
    )


def _all(sizes: Iterable[Any]) -> ir.Value | int:
    """The product of sizes."""
    factors = list(sizes)
    values: list[Any] = [size for size in factors if not isinstance(size, int)]
    return prod([*values, prod(size for size in factors if isinstance(size, int))])


def reinterpret(
    base: ir.Value, offset: ir.Value | int, sizes: list[ir.Value | int], strides: list[ir.Value | int]
) -> ir.Value:
    """`memref.reinterpret_cast`; everything is a number or an index value, constants become numbers."""
    groups = [[_number(x) for x in group] for group in ([offset], sizes, strides)]
    dynamic = [[x for x in group if not isinstance(x, int)] for group in groups]
    static = [[x if isinstance(x, int) else build.DYNAMIC for x in group] for group in groups]
    element = ir.MemRefType(base.type).element_type
    return build.create(
        "memref.reinterpret_cast",
        [ir.MemRefType.get(static[1], element, strided(static[2], static[0][0]))],
        [base, *dynamic[0], *dynamic[1], *dynamic[2]],
        static_offsets=build.index_array(static[0]),
        static_sizes=build.index_array(static[1]),
        static_strides=build.index_array(static[2]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, *map(len, dynamic)]),
    ).result


def _number(value: ir.Value | int) -> ir.Value | int:
    known = value if isinstance(value, int) else build.constant_value(value)
    return value if known is None else known


def strided(strides: Iterable[int], offset: int) -> ir.Attribute:
    """The layout attribute; what is dynamic is given as the bindings have it."""
    unknown = (build.DYNAMIC, ir.ShapedType.get_dynamic_stride_or_offset())
    text = ", ".join("?" if x in unknown else str(x) for x in strides)
    return ir.Attribute.parse(f"strided<[{text}], offset: {'?' if offset in unknown else offset}>")


def metadata(buffer: ir.Value) -> tuple[ir.Value, ir.Value, list[ir.Value]]:
    """Base, offset and strides of a buffer, in elements."""
    memref = ir.MemRefType(buffer.type)
    base = ir.MemRefType.get([], memref.element_type, memory_space=memref.memory_space)
    kinds = [base, *[build.index_type()] * (1 + 2 * memref.rank)]
    memory, offset, *rest = build.create("memref.extract_strided_metadata", kinds, [buffer]).results
    return memory, offset, rest[memref.rank :]


def address(buffer: ir.Value) -> ir.Value:
    """The address of the memory of a memref, before its offset; an index."""
    return build.create("memref.extract_aligned_pointer_as_index", [build.index_type()], [buffer]).result


def first(buffer: ir.Value) -> ir.Value:
    """A pointer to the first element of a memref."""
    memref = ir.MemRefType(buffer.type)
    start = memref.get_strides_and_offset()[1]
    if not start:
        return at(address(buffer))
    offset = metadata(buffer)[1] if start == ir.ShapedType.get_dynamic_stride_or_offset() else start
    return at(address(buffer) + offset * build.const_index(dtype_of(memref.element_type).itemsize))


def at(position: ir.Value) -> ir.Value:
    """A pointer to an address, an index."""
    number = build.create("arith.index_cast", [ir.IntegerType.get_signless(64)], [position]).result
    return build.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr")], [number]).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Known layouts of the elements of buffers, and raw pointers to these.

Only passes after bufferisation, which see the layouts of buffers, may make pointers: here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import Any

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.size import Size
from graphc.ir.walk import definition
from graphc_dialects._mlir import ir

# Their results have the sizes of their operand.
_SAME_SIZES = frozenset(
    {
        *("memref.cast", "memref.memory_space_cast", "tensor.cast"),
        *("bufferization.to_tensor", "bufferization.to_buffer"),
    }
)


def is_contiguous(buffer: ir.Value) -> bool:
    """True if the type says that the elements lie side by side, from the start of the memory on."""
    memref = ir.MemRefType(buffer.type)
    return bool(memref.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(memref.rank)))


def is_row_major(buffer: ir.Value) -> bool:
    """True if the elements lie side by side, wherever they begin; the operands of a view may tell."""
    if is_contiguous(buffer):
        return True
    sizes, strides = _sizes_and_strides(buffer)
    # An unknown number is equal to nothing else.
    known = [[Size.of(object()) if x is None else SIZES.value(x) for x in each] for each in (sizes, strides)]
    return have_no_gaps(known[0], known[1], skipped=None)


def have_no_gaps(sizes: Sequence[Size], strides: Sequence[Size | None], skipped: int | None) -> bool:
    """True if elements with these sizes and strides lie side by side in row-major order.

    Args:
        sizes, strides: of the axes.
        skipped: the strides of axes of this size do not matter.
    """
    step = Size(1)
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != skipped:
            if stride != step:
                return False
            step *= size
    return True


def stated(view: ir.Operation) -> list[list[ir.Value | int]]:
    """Offsets, sizes and strides that a view of a tensor or buffer states: numbers, or index values."""
    counts = list(ir.DenseI32ArrayAttr(view.attributes["operandSegmentSizes"]))
    dynamic = iter(list(view.operands)[counts[0] :])
    names = ("static_offsets", "static_sizes", "static_strides")
    listed = (ir.DenseI64ArrayAttr(view.attributes[name]) for name in names)
    return [[next(dynamic) if x == build.DYNAMIC else x for x in numbers] for numbers in listed]


def expanded_sizes(view: ir.Operation) -> list[ir.Value | int]:
    """The sizes that a view with further axes states: numbers, or index values."""
    dynamic = iter(list(view.operands)[1:])
    shape = ir.DenseI64ArrayAttr(view.attributes["static_output_shape"])
    return [next(dynamic) if size == build.DYNAMIC else size for size in shape]


def kept_axes(part: ir.Operation) -> list[int] | None:
    """The axes of the source of a part that its result has; those that are dropped have size 1."""
    sizes = list(ir.DenseI64ArrayAttr(part.attributes["static_sizes"]))
    shape = list(part.results[0].type.shape)
    single = [axis for axis, size in enumerate(sizes) if size == 1]
    for dropped in combinations(single, len(sizes) - len(shape)):
        kept = [axis for axis in range(len(sizes)) if axis not in dropped]
        if [sizes[axis] for axis in kept] == shape:
            return kept
    return None


def _sizes_and_strides(buffer: ir.Value) -> tuple[list[Any], list[Any]]:
    """Numbers where they are static; index values, or None where nothing tells them."""
    memref = ir.MemRefType(buffer.type)
    sizes = [size if size >= 0 else None for size in memref.shape]
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides = [None if x == unknown else x for x in memref.get_strides_and_offset()[0]]
    cast = definition(buffer, "memref.reinterpret_cast")
    if cast is None:
        return sizes, strides
    pairs = zip((sizes, strides), stated(cast)[1:], strict=True)
    first, second = (
        [x if x is not None else y for x, y in zip(values, given, strict=True)] for values, given in pairs
    )
    return first, second


def size_of(x: ir.Value, axis: int) -> Any:
    """A size of a memref or tensor, as the operation that made it tells.

    Returns:
        A number, an index value, a list of such sizes for their product, or a value and its axis where no
        operation tells more.
    """
    shape = x.type.shape
    if shape[axis] >= 0:
        return shape[axis]
    op = definition(x)
    if op is None:
        return x, axis
    if op.name in ("memref.alloc", "memref.alloca", "tensor.empty"):
        return op.operands[sum(size < 0 for size in shape[:axis])]
    if op.name in _SAME_SIZES:
        return size_of(op.operands[0], axis)
    if op.name == "memref.reinterpret_cast":
        return stated(op)[1][axis]
    if op.name in ("memref.subview", "tensor.extract_slice"):
        kept = kept_axes(op)
        return (x, axis) if kept is None else stated(op)[1][kept[axis]]
    if op.name == "memref.expand_shape":
        return expanded_sizes(op)[axis]
    if op.name == "memref.collapse_shape":
        group = ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[axis])
        return [size_of(op.operands[0], ir.IntegerAttr(source).value) for source in group]
    return x, axis


class Sizes:
    """Index values and sizes as sums of products. What no operation tells has a name."""

    def value(self, value: ir.Value | int) -> Size:
        """An index value; sums of many sizes are as deep as there are operands."""
        total = Size()
        left = [(value, 1)]
        while left:
            term, sign = left.pop()
            op = None if isinstance(term, int) else definition(term, "arith.addi", "arith.subi")
            if op is None:
                total += self._term(term) * sign
            else:
                a, b = op.operands
                left += [(a, sign), (b, sign if op.name == "arith.addi" else -sign)]
        return total

    def _term(self, value: ir.Value | int) -> Size:
        if isinstance(value, int):
            return Size(value)
        known = build.constant_value(value)
        if known is not None:
            return Size(known)
        op = definition(value, "arith.muli", "memref.dim", "tensor.dim")
        if op is None:
            return Size.of(value)
        if op.name == "arith.muli":
            a, b = map(self.value, op.operands)
            return a * b
        axis = build.constant_value(op.operands[1])
        return Size.of(value) if axis is None else self.size(op.operands[0], axis)

    def size(self, x: ir.Value, axis: int) -> Size:
        """A size of a memref or tensor."""
        return self._told(size_of(x, axis))

    def _told(self, told: Any) -> Size:
        if isinstance(told, list):
            return prod(map(self._told, told), start=Size(1))
        return self.untold(*told) if isinstance(told, tuple) else self.value(told)

    def untold(self, x: ir.Value, axis: int) -> Size:
        """A size that no operation tells."""
        return Size.of((x, axis))

    def sizes(self, x: ir.Value) -> list[Size]:
        """All sizes of a memref or tensor."""
        return [self.size(x, axis) for axis in range(len(x.type.shape))]


SIZES = Sizes()


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
    strides, offset = memref.get_strides_and_offset()
    layout = None if is_contiguous(buffer) else strided([strides[group[-1]] for group in groups], offset)
    target = ir.MemRefType.get(shape, memref.element_type, layout)
    merged = build.groups_of(groups)
    return build.create("memref.collapse_shape", [target], [buffer], reassociation=merged).result


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
    known = [[x if isinstance(x, int) else build.DYNAMIC for x in group] for group in groups]
    layout = strided(known[2], known[0][0])
    kind = ir.MemRefType.get(known[1], ir.MemRefType(base.type).element_type, layout)
    return view_of("memref.reinterpret_cast", kind, base, *groups)


def view_of(
    name: str,
    kind: ir.Type,
    source: ir.Value,
    offsets: Sequence[ir.Value | int],
    sizes: Sequence[ir.Value | int],
    strides: Sequence[ir.Value | int] | None = None,
) -> ir.Value:
    """A view that `stated` reads; strides are 1 by default."""
    groups = (offsets, sizes, [1] * len(sizes) if strides is None else strides)
    dynamic = [[x for x in group if not isinstance(x, int)] for group in groups]
    static = [
        build.index_array([x if isinstance(x, int) else build.DYNAMIC for x in group]) for group in groups
    ]
    return build.create(
        name,
        [kind],
        [source, *(x for group in dynamic for x in group)],
        static_offsets=static[0],
        static_sizes=static[1],
        static_strides=static[2],
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

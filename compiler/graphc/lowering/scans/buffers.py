# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows in memory: stacks of rows, pointers to single rows, and reading and writing them as tensors.

Bufferisation turns `tensor.expand_shape` and `tensor.collapse_shape` into views. Each group of axes holds
just one that is kept, so that this works on rows of larger arrays too, which are not contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.ir import build
from graphc.ir.kinds import static_shape
from graphc.ir.views import axes_order
from graphc.lowering.generic import GenericBuilder
from graphc.lowering.memory.layouts import strided, view_of
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.rules import Conversion


def unit_dimshuffle(context: Any, op: ir.Operation) -> ir.Value | None:
    """The tensor of a `graphc.dimshuffle` that leaves the elements where they are in memory.

    Args:
        context: the function conversion.
        op: the dimshuffle.

    Returns:
        A view of the source's tensor; None if the operation permutes axes.
    """
    order = axes_order(op)
    kept = [axis for axis in order if axis >= 0]
    if kept != sorted(kept):
        return None
    tensor = drop_axes(context.tensor_of(op.operands[0]), kept)
    if len(kept) < len(order):
        tensor = insert_axes(tensor, [axis >= 0 for axis in order])
    return build.cast(tensor, build.storage_type(op.results[0].type))


def drop_axes(tensor: ir.Value, kept: Sequence[int]) -> ir.Value:
    """A view with the kept axes, which are given in order; the others have size 1."""
    source = ir.RankedTensorType(tensor.type)
    if len(kept) == source.rank:
        return tensor
    shape = [size if axis in kept else 1 for axis, size in enumerate(source.shape)]
    tensor = build.cast(tensor, ir.RankedTensorType.get(shape, source.element_type))
    target = ir.RankedTensorType.get([shape[axis] for axis in kept], source.element_type)
    groups = _groups([axis in kept for axis in range(source.rank)])
    return build.create("tensor.collapse_shape", [target], [tensor], reassociation=groups).result


def insert_axes(tensor: ir.Value, kept: Sequence[bool]) -> ir.Value:
    """A view with an axis for each element of `kept`: the next axis of the tensor if true, else a new one."""
    source = ir.RankedTensorType(tensor.type)
    sizes = {axis: build.dim(tensor, axis) for axis, n in enumerate(source.shape) if n < 0}
    constants = {axis: build.constant_value(size) for axis, size in sizes.items()}
    known = {axis: n for axis, n in constants.items() if n is not None}
    if known:
        # Upstream makes operands that are constants part of an expansion, but not of the type of its memory.
        refined = [known.get(axis, n) for axis, n in enumerate(source.shape)]
        tensor = build.cast(tensor, ir.RankedTensorType.get(refined, source.element_type))
        source = ir.RankedTensorType(tensor.type)
    axes = iter(range(source.rank))
    old = [next(axes) if keep else None for keep in kept]
    shape = [1 if axis is None else source.shape[axis] for axis in old]
    dynamic = [sizes[axis] for axis in old if axis is not None and source.shape[axis] < 0]
    return build.create(
        "tensor.expand_shape",
        [ir.RankedTensorType.get(shape, source.element_type)],
        [tensor, *dynamic],
        reassociation=_groups(kept),
        static_output_shape=build.index_array(shape),
    ).result


def _groups(kept: Sequence[bool]) -> ir.Attribute:
    """Groups of axes with one that is kept in each; leading ones belong to the first. None is no group."""
    groups: list[list[int]] = []
    leading: list[int] = []
    for axis, keep in enumerate(kept):
        if keep:
            groups.append([*leading, axis])
            leading = []
        elif groups:
            groups[-1].append(axis)
        else:
            leading.append(axis)
    return build.groups_of(groups)


def row_pointer_type(row_type: ir.Type) -> ir.Type:
    """The type of every pointer to a row: contiguous, at any offset.

    Args:
        row_type: ranked tensor type of a row, of a storage type.
    """
    return _strided(list(row_type.shape), row_type.element_type)


def _strided(shape: list[int], element: ir.Type) -> ir.Type:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step = build.DYNAMIC if step < 0 or size < 0 else step * size
    return ir.MemRefType.get(shape, element, strided(strides, build.DYNAMIC))


class Stack:
    """A buffer of rows.

    Args:
        buffer: contiguous memref.
    """

    def __init__(self, buffer: ir.Value) -> None:
        self.buffer = buffer
        self._type = ir.MemRefType(buffer.type)

    @classmethod
    def allocate(cls, rows: Any, row_type: ir.Type, row_sizes: list[ir.Value]) -> Stack:
        """A new stack; `rows` is an int or an index value."""
        count = rows if isinstance(rows, int) else build.constant_value(rows)
        shape = [build.DYNAMIC if count is None else count, *row_type.shape]
        return cls(allocate(ir.RankedTensorType.get(shape, row_type.element_type), [rows, *row_sizes]))

    def row(self, index: Any, pointer_type: ir.Type) -> Any:
        """A pointer to one row; `index` is an int or an index value."""
        if isinstance(index, int):
            index = build.const_index(index)
        shape, element = list(self._type.shape), self._type.element_type
        is_ambiguous = _is_ambiguous(shape)
        kind = _strided([1, *shape[1:]] if is_ambiguous else shape[1:], element)
        view = _rows("memref.subview", kind, self.buffer, index)
        if is_ambiguous:
            view = _without_first_axis(view)
        if view.type == pointer_type:
            return view
        return build.create("memref.cast", [pointer_type], [view]).result

    def store(self, value: ir.Value, index: ir.Value) -> None:
        """Stores the one element of a row."""
        zeros = [build.const_index(0)] * (len(self._type.shape) - 1)
        build.create("memref.store", [], [value, self.buffer, index, *zeros])

    def tensor(
        self, tensor_type: ir.Type, offset: ir.Value | None = None, rows: ir.Value | None = None
    ) -> ir.Value:
        """The rows, or `rows` of them from `offset` on, as a tensor."""
        whole = ir.RankedTensorType.get(self._type.shape, self._type.element_type)
        value = read(self.buffer, whole)
        if rows is not None:
            value = _rows_of(value, offset, rows)
        return build.cast(value, tensor_type)


def allocate(tensor_type: ir.Type, sizes: list[int | ir.Value] | list[int] | list[ir.Value]) -> ir.Value:
    """A new buffer for a tensor of storage type; of `sizes`, one per dimension, the dynamic ones are used.

    A size may be a number where the type does not know it.
    """
    wanted = [size for size, known in zip(sizes, tensor_type.shape, strict=True) if known < 0]
    dynamic = [build.const_index(size) if isinstance(size, int) else size for size in wanted]
    return build.create(
        "memref.alloc",
        [ir.MemRefType.get(tensor_type.shape, tensor_type.element_type)],
        dynamic,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(dynamic), 0]),
        alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64),
    ).result


def writable(memref: ir.Value) -> ir.Value:
    """Memory without contents, as the tensor that a computation starts from; for one computation."""
    kind = ir.MemRefType(memref.type)
    unit = ir.UnitAttr.get()
    natural = ir.RankedTensorType.get(kind.shape, kind.element_type)
    return build.create("bufferization.to_tensor", [natural], [memref], restrict=unit, writable=unit).result


def read(pointer: ir.Value, tensor_type: ir.Type) -> Any:
    """Present contents of the memory, as a tensor."""
    kind = ir.MemRefType(pointer.type)
    natural = ir.RankedTensorType.get(kind.shape, kind.element_type)
    value = build.create("bufferization.to_tensor", [natural], [pointer], restrict=ir.UnitAttr.get()).result
    return build.cast(value, tensor_type)


def write(tensor: ir.Value, pointer: ir.Value) -> None:
    """Puts a tensor into memory; what computes it is then computed there."""
    kind = ir.MemRefType(pointer.type)
    unit = ir.UnitAttr.get()
    value = build.cast(tensor, ir.RankedTensorType.get(kind.shape, kind.element_type))
    build.create(
        "bufferization.materialize_in_destination", [], [value, pointer], restrict=unit, writable=unit
    )


def any_layout(tensor: ir.Value) -> ir.Value:
    """A tensor's buffer, to be read; every buffer converts to this type, wherever it lies."""
    kind = ir.RankedTensorType(tensor.type)
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(unknown, [unknown] * kind.rank)
    memref = ir.MemRefType.get(kind.shape, kind.element_type, layout)
    return build.create("bufferization.to_buffer", [memref], [tensor], read_only=ir.UnitAttr.get()).result


def write_apart(tensor: ir.Value, pointer: ir.Value) -> None:
    """Copies a tensor to memory that it must not be computed in."""
    copy(any_layout(tensor), pointer)


def copy(source: ir.Value, target: ir.Value) -> None:
    """Copies a row."""
    build.create("memref.copy", [], [source, target])


def _rows_of(tensor: Any, offset: Any, rows: Any) -> ir.Value:
    shape = list(tensor.type.shape)
    kind = ir.RankedTensorType.get([build.DYNAMIC, *shape[1:]], tensor.type.element_type)
    return _rows("tensor.extract_slice", kind, tensor, offset, rows)


def extract_row(tensor: ir.Value, index: ir.Value) -> ir.Value:
    """One row of a tensor, without a copy."""
    shape, element = list(tensor.type.shape), tensor.type.element_type
    if 0 in shape[1:]:
        # Upstream refuses parts of what has no elements.
        return build.empty(ir.RankedTensorType.get(shape[1:], element), build.dims(tensor)[1:])
    is_ambiguous = _is_ambiguous(shape)
    row = ir.RankedTensorType.get([1, *shape[1:]] if is_ambiguous else shape[1:], element)
    part = _rows("tensor.extract_slice", row, tensor, index)
    return drop_axes(part, range(1, len(shape))) if is_ambiguous else part


def _is_ambiguous(shape: list[int]) -> bool:
    """True if upstream may take another axis than the first for the one that a row has lost.

    `memref.subview` looks for an axis of size 1 that fits, and finds none where one of the unknown sizes
    becomes a constant: the process dies.
    """
    return 1 in shape[1:] and min(shape[1:]) < 0


def _without_first_axis(view: ir.Value) -> ir.Value:
    """A memref without its first axis, which has size 1."""
    kind = ir.MemRefType(view.type)
    shape, strides = list(kind.shape), kind.get_strides_and_offset()[0]
    stride = strides[0] if shape[1] == 1 else strides[1] if shape[1] > 0 else build.DYNAMIC
    layout = strided([stride, *strides[2:]], build.DYNAMIC)
    groups = [[0, 1], *([axis] for axis in range(2, len(shape)))]
    target = ir.MemRefType.get(shape[1:], kind.element_type, layout)
    return build.create(
        "memref.collapse_shape", [target], [view], reassociation=build.groups_of(groups)
    ).result


def _rows(name: str, kind: ir.Type, stack: ir.Value, first: ir.Value, count: ir.Value | int = 1) -> ir.Value:
    """The view of a name that has some rows of a tensor or buffer."""
    shape = list(stack.type.shape)[1:]
    sizes = [build.dim(stack, axis) if size < 0 else size for axis, size in enumerate(shape, 1)]
    return view_of(name, kind, stack, [first, *[0] * len(shape)], [count, *sizes])


def row_of(context: Conversion, op: ir.Operation) -> ir.Value:
    """The row that a `scan_seq` reads, as a tensor."""
    x, i = op.operands
    row = extract_row(context.tensor_of(x), context.index_of(i))
    return build.cast(row, build.storage_type(op.results[0].type))


def initial_row(context: Conversion, stack: ir.Value, position: int) -> ir.Value:
    """Row `position` of a graph-stage value; a view is read through, so that only this row is computed."""
    index = build.const_index(position)
    if context.has_tensor(stack):
        return extract_row(context.tensor_of(stack), index)
    shape = static_shape(stack)[1:]
    return GenericBuilder(context, shape, context.sizes_of(stack)[1:], []).copy_row(stack, index)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors whose elements are known to lie next to each other in memory.

Bufferisation gives the buffer of a slice strides that are not known statically, and takes them for those of
any type with unknown strides: whoever passes a pointer on has to know.
"""

from __future__ import annotations

from typing import Any

from graphc.lowering import build
from graphc_dialects._mlir import ir

_SAME = frozenset(
    {"tensor.cast", "tensor.collapse_shape", "tensor.expand_shape", "memref.cast", "bufferization.to_tensor"}
)


def is_contiguous(value: Any) -> bool:
    """Whether a tensor or memref is known to be contiguous; whole buffers and rows of stacks are."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner
        if op.name == "memref.reinterpret_cast":
            return False
        if op.name in ("tensor.extract_slice", "memref.subview"):
            if not _is_block_of_rows(op):
                return False
        elif op.name not in _SAME:
            return True
        value = op.operands[0]
    return True


def _is_block_of_rows(op: Any) -> bool:
    """A slice of size 1 along the first axes, of any size along one, and of all that follow."""
    source = op.operands[0]
    groups = _groups(op)
    rows = False
    for axis, (size, stride) in enumerate(zip(groups[1], groups[2], strict=True)):
        one = _number(size) == 1
        if rows:
            if not _is_all(source, axis, size):
                return False
        elif not one:
            rows = True
        if not one and _number(stride) != 1:
            return False
    return True


def _groups(op: Any) -> list[list[Any]]:
    """Offsets, sizes and strides: ints, or index values where they are operands."""
    dynamic = iter(list(op.operands)[1:])
    names = ("static_offsets", "static_sizes", "static_strides")
    return [
        [next(dynamic) if n == build.DYNAMIC else n for n in ir.DenseI64ArrayAttr(op.attributes[name])]
        for name in names
    ]


def _number(size: Any) -> int | None:
    return size if isinstance(size, int) else build.constant_value(size)


def _is_all(source: Any, axis: int, size: Any) -> bool:
    known = source.type.shape[axis]
    if known >= 0:
        return _number(size) == known
    if isinstance(size, int) or isinstance(size.owner, ir.Block):
        return False
    op = size.owner
    return (
        op.name in ("tensor.dim", "memref.dim")
        and op.operands[0] == source
        and build.constant_value(op.operands[1]) == axis
    )

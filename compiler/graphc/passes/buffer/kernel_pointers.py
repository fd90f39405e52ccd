# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers for calls, to memory that is proven to be contiguous.

Types alone do not tell: a row of a stack of unknown sizes has unknown strides. Where everything has its
place, after bufferisation, operations do: strides and sizes are products of the same values then. What cannot
be proven is taken for not contiguous: what a kernel reads is copied then, what it writes is refused, and so
is each cast of upstream's to a layout that is not proven. So no lowering rule asks a tensor for its layout,
which is decided last.
"""

from __future__ import annotations

from math import prod
from typing import Any

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.size import Size
from graphc.ir.walk import incoming, walk_for
from graphc.lowering.memory.layouts import (
    SIZES,
    first,
    have_no_gaps,
    is_contiguous,
    kept_axes,
    reinterpret,
    stated,
)
from graphc.lowering.scans.buffers import allocate, copy
from graphc.passes import Pass
from graphc_dialects._mlir import ir

_CASTS = ("memref.cast", "memref.memory_space_cast")
_RESHAPES = ("memref.collapse_shape", "memref.expand_shape")


def is_proven_contiguous(buffer: ir.Value) -> bool:
    """True if the elements of a memref lie side by side in row-major order, wherever they begin."""
    return _holds(buffer, frozenset())


def _holds(buffer: ir.Value, assumed: frozenset[Any]) -> bool:
    """The proof; `assumed` are values that loops carry, which hold if what flows into them does."""
    if buffer in assumed or 0 in ir.MemRefType(buffer.type).shape:
        return True
    entering = incoming(buffer)
    if entering:
        return all(_holds(value, assumed | {buffer}) for value in entering)
    op = buffer.owner
    if isinstance(op, ir.Block):
        return is_contiguous(buffer)
    if op.name in _CASTS or op.name in _RESHAPES:
        return _holds(op.operands[0], assumed)
    if op.name in ("memref.subview", "memref.reinterpret_cast"):
        return have_no_gaps(SIZES.sizes(buffer), _strides(buffer, assumed), skipped=1)
    return is_contiguous(buffer)


# -- sizes and strides -------------------------------------------------------------------------------------


def _strides(buffer: ir.Value, assumed: frozenset[ir.Value]) -> list[Size | None]:
    """The stride of each dimension, None where nothing is known."""
    op = buffer.owner
    if not isinstance(op, ir.Block):
        if op.name == "memref.reinterpret_cast":
            return [SIZES.value(x) for x in stated(op)[2]]
        if op.name in _CASTS:
            return _strides(op.operands[0], assumed)
        if op.name == "memref.subview":
            return _part_strides(op, assumed)
    if not _holds(buffer, assumed):
        return [None] * ir.MemRefType(buffer.type).rank
    sizes = SIZES.sizes(buffer)
    return [prod(sizes[axis + 1 :], start=Size(1)) for axis in range(len(sizes))]


def _part_strides(op: ir.Operation, assumed: frozenset[ir.Value]) -> list[Size | None]:
    """Strides of a subview: those of its source times its own."""
    kept = kept_axes(op)
    if kept is None:
        return [None] * ir.MemRefType(op.results[0].type).rank
    whole, steps = _strides(op.operands[0], assumed), [SIZES.value(x) for x in stated(op)[2]]
    pairs = [(whole[axis], steps[axis]) for axis in kept]
    return [None if stride is None else stride * step for stride, step in pairs]


class KernelPointers(Pass):
    """Replaces `graphc.address` by pointers, now that everything has its place.

    Kernels, random draws and whatever else is called with a bare pointer take elements side by side. A value
    that is computed in a slice of a join, or that is a view of another array, may lie otherwise, which only
    the buffer stage knows. Where types and the operations that made a buffer prove that it is contiguous, the
    address is its own; otherwise what is read is copied first, and what is written is refused.

    `memref.cast` to a type that says more than its source (upstream casts slices of unknown strides that
    begin at offset 0 to contiguous types) is refused, too, unless the source is proven to be so. No later
    pass has to doubt a type.

    A part of what is found out to have no elements becomes a `memref.reinterpret_cast`: upstream simplifies
    views to such parts, but refuses those that begin at the end of an axis.

    Source: layouts as memref types, Lattner et al., "MLIR: Scaling Compiler Infrastructure for Domain
    Specific Computation" (2021).
    """

    stage = "buffer"
    acts_on = frozenset({"graphc.address", "memref.cast", "memref.subview"})

    def run(self, module: ir.Module) -> None:
        for op in walk_for(module.operation, self.acts_on):
            buffer = op.operands[0]
            if op.name == "memref.subview":
                if 0 in ir.MemRefType(buffer.type).shape:
                    self._replace_empty(op, buffer)
                continue
            if op.name == "memref.cast":
                promises = is_contiguous(op.results[0]) and not is_contiguous(buffer)
                if promises and not is_proven_contiguous(buffer):
                    fail(op, f"{op.results[0].type} is contiguous, but {buffer.type} may not be")
                continue
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(self._pointer(op, buffer))
            op.erase()

    def _replace_empty(self, op: ir.Operation, buffer: ir.Value) -> None:
        """Replaces a part of what has no elements; upstream makes such views, and refuses them."""
        kind = ir.MemRefType(op.results[0].type)
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        strides, start = kind.get_strides_and_offset()
        kept = kept_axes(op)
        if kept is None:
            fail(op, "a part of a buffer without elements, of which no dimension tells the size")
        sizes = stated(op)[1]
        with ir.InsertionPoint(op), op.location:
            view = reinterpret(
                buffer,
                0 if start == unknown else start,
                [sizes[axis] for axis in kept],
                [1 if stride == unknown else stride for stride in strides],
            )
            view = view if view.type == kind else build.create("memref.cast", [kind], [view]).result
        op.results[0].replace_all_uses_with(view)
        op.erase()
        self.count("views without elements")

    def _pointer(self, op: ir.Operation, buffer: ir.Value) -> ir.Value:
        self.count("pointers")
        if not is_proven_contiguous(buffer):
            if ir.StringAttr(op.attributes["access"]).value != "read":
                fail(op, f"writes contiguous memory, but {buffer.type} may not be")
            self.count("copies")
            kind = ir.MemRefType(buffer.type)
            tensor = ir.RankedTensorType.get(kind.shape, kind.element_type)
            apart = buffer
            buffer = allocate(tensor, build.dims(apart))
            copy(apart, buffer)
        return first(buffer)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers for calls, to memory that is proven to be contiguous."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.walk import walk_for
from graphc.lowering import pointers
from graphc.lowering.layouts import is_contiguous, reinterpret
from graphc.lowering.scan_buffers import allocate, copy
from graphc.passes.buffer._geometry import is_proven_contiguous, kept_axes, view_operands
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir


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

    def run(self, module: ir.Module) -> None:
        for op in walk_for(module.operation, ("graphc.address", "memref.cast", "memref.subview")):
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
        sizes = view_operands(op, "static_sizes")
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
        return pointers.first(buffer)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From bufferised linalg to loops."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import spans
from graphc.lowering.checked_gathers import merge_checked_gathers
from graphc.lowering.loops import LoopNest
from graphc.lowering.memory.layouts import collapse, is_contiguous, is_row_major
from graphc.lowering.producers import Producers
from graphc.passes import Pass
from graphc_dialects._mlir import ir


def lower_fill(op: ir.Operation) -> None:
    """Lowers one `linalg.fill` on a buffer; contiguous buffers are filled by a flat loop."""
    value, buffer = op.operands
    with ir.InsertionPoint(op), op.location:
        memref = ir.MemRefType(buffer.type)
        if memref.rank > 1 and is_row_major(buffer):
            buffer = collapse(buffer, [list(range(memref.rank))])
        with spans(build.dims(buffer)) as at:
            buffer[at] = value
    op.erase()


def lower_copy(op: ir.Operation) -> None:
    """Lowers a `memref.copy` of which one side is not contiguous; others become a `memcpy` later."""
    source, target = op.operands
    if is_contiguous(source) and is_contiguous(target) and source != target:
        return
    with ir.InsertionPoint(op), op.location:
        if source != target:
            rank = ir.MemRefType(source.type).rank
            if rank > 1 and is_row_major(source) and is_row_major(target):
                source, target = (collapse(buffer, [list(range(rank))]) for buffer in (source, target))
            with spans(build.dims(target)) as at:
                target[at] = source[at]
    op.erase()


_LOWERED = ("linalg.generic", "linalg.fill", "memref.copy")


class LinalgToLoops(Pass):
    """Lowers `linalg.generic`, `linalg.fill` and strided `memref.copy` on buffers to `scf.for` nests.

    The nests are shaped for the vectoriser.

    Contiguous dimensions are collapsed, accumulators are kept in registers, loads are placed in the outermost
    loop that can hold them, and float sums are blocked (see graphc.lowering.loops for the rules). Unlike
    upstream's `convert-linalg-to-loops`, a reduction is not a load and a store per element.

    Elementwise values that one nest of loops alone reads, such as that of an update, are computed in it (see
    graphc.lowering.producers).

    What is read at the elements of a vector of indices is read in the loop that finds the smallest and the
    largest of them, where they are in range; the check of these two follows.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        merged = sum(map(merge_checked_gathers, functions(module)))
        self.count("checked gathers", merged)
        found = [op for op in walk(module.operation) if op.name in _LOWERED]
        producers = Producers()
        for op in found:
            if op.name == "linalg.fill":
                lower_fill(op)
            elif op.name == "memref.copy":
                lower_copy(op)
            elif producers.compute_where_read(op):
                self.count("values computed where they are read")
            else:
                LoopNest(op).lower()
        self.count("loop nests", len(found))

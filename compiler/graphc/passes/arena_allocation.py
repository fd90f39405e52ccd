# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heap buffers come from the call's arena."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.passes._base import Pass


@dataclass
class ArenaAllocation(Pass):
    """Replaces calls of `malloc` in kernels by `graphc_alloc(ctx, bytes)` and removes `free`.

    The context is the kernel's first argument. The entry point frees the arena when the call ends, whether
    the kernel succeeded or a check failed, so that no path leaks. A kernel that gets no memory returns -1.
    """

    stage = "llvm"

    def run(self, module: Any) -> None:
        from graphc_dialects._mlir import ir

        replaced = 0
        for function in list(module.body.operations):
            op = function.operation
            if op.name != "llvm.func" or not len(op.regions[0].blocks):
                continue
            context = op.regions[0].blocks[0].arguments[0]
            for call in reversed(_calls(op)):
                callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
                if callee == "malloc":
                    self._replace(ir, call, context)
                    replaced += 1
                elif callee == "free":
                    call.erase()
        if replaced:
            self._declare(ir, module)
        self.count("allocations", replaced)

    def _replace(self, ir: Any, call: Any, context: Any) -> None:
        with ir.InsertionPoint(call), call.location:
            new = ir.Operation.create(
                "llvm.call",
                results=[call.results[0].type],
                operands=[context, call.operands[0]],
                attributes={
                    "callee": ir.FlatSymbolRefAttr.get("graphc_alloc"),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
        call.results[0].replace_all_uses_with(new.results[0])
        call.erase()
        self._return_on_null(ir, new)

    def _return_on_null(self, ir: Any, call: Any) -> None:
        """`if (!memory) return -1;` behind an allocation of a kernel."""
        from graphc.passes._walk import split_after

        block = call.block
        if not _returns_status(ir, block.owner):
            return
        rest = split_after(call)
        failed = rest.create_after()
        i64, pointer = ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
        with ir.InsertionPoint(failed), call.location:
            minus_one = ir.Operation.create(
                "llvm.mlir.constant", results=[i64], attributes={"value": ir.IntegerAttr.get(i64, -1)}
            )
            ir.Operation.create("llvm.return", operands=[minus_one.result])
        with ir.InsertionPoint(block), call.location:
            null = ir.Operation.create("llvm.mlir.zero", results=[pointer]).result
            equal = ir.IntegerAttr.get(i64, 0)
            missing = ir.Operation.create(
                "llvm.icmp",
                results=[ir.IntegerType.get_signless(1)],
                operands=[call.result, null],
                attributes={"predicate": equal},
            ).result
            ir.Operation.create(
                "llvm.cond_br",
                operands=[missing],
                successors=[failed, rest],
                attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])},
            )

    def _declare(self, ir: Any, module: Any) -> None:
        text = "llvm.func @graphc_alloc(!llvm.ptr, i64) -> (!llvm.ptr {llvm.noalias})"
        ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(text))


def _returns_status(ir: Any, function: Any) -> bool:
    return "-> i64" in str(function.attributes["function_type"]) or "i64 (" in str(
        function.attributes["function_type"]
    )


def _calls(function: Any) -> list[Any]:
    return [
        op.operation
        for block in function.regions[0].blocks
        for op in block.operations
        if op.operation.name == "llvm.call" and "callee" in op.operation.attributes
    ]

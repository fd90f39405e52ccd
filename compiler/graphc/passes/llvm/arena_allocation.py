# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heap buffers come from the call's arena."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.ir.helpers import HELPER, attribute_of, callee_of, declared
from graphc.ir.walk import LOOPS, split_after, symbol_of, walk_for
from graphc.library.helpers import CONTEXT, Allocation
from graphc.passes import Pass
from graphc.passes.llvm._code import add_to, branch_to, call_of, compare, constant, create, word
from graphc_dialects._mlir import ir

_MOST_BYTES = 2.0**60
_ORDERED_LESS_OR_EQUAL = 5  # llvm.fcmp "ole"
_EQUAL, _NOT_EQUAL = 0, 1  # llvm.icmp


class ArenaAllocation(Pass):
    """Replaces calls of `malloc` in kernels by `graphc_alloc(ctx, bytes)` and removes `free`.

    The context is the kernel's first argument. The entry point frees the arena when the call ends, whether
    the kernel succeeded or a check failed, so that no path leaks. A kernel that gets no memory returns -1.
    Where bytes are a product of sizes that are known at run time only, a product too large for memory asks
    for -1 bytes, which `graphc_alloc` refuses: modulo 2**64 it could be a small number.

    Calls of `graphc_mark` and `graphc_release_to` (see hoist-allocations), `graphc_workspace_<n>` and
    `graphc_plan_<n>` (see plan-memory) get the context too. The last two give 0 where there is no memory.
    So do `graphc_tick` and `graphc_progress_<name>` (see poll-interrupts), whose status, if it is not 0, the
    kernel returns.

    Buffers on the stack are told to begin to live where they are made. LLVM 22.1.0 merges vectors that fill
    a buffer in another order than that of their places before they are computed, and aborts, unless
    something else than loads and stores uses it (LLVM's pull request 189680 mends it).
    """

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        replaced = 0
        with_context: dict[str, Any] = {}
        helpers = declared(module)
        for function in list(module.body.operations):
            op = function.operation
            if op.name != "llvm.func" or not len(op.regions[0].blocks):
                continue
            _begin_lifetimes(op.regions[0].blocks[0])
            # A function without arguments has no context: a loop that has nothing left to do.
            if not len(_arguments(op)):
                continue
            if symbol_of(op).startswith(LOOPS):
                continue  # Their first argument is no context, and they allocate nothing.
            context = _arguments(op)[0]
            for call in reversed(_calls(op)):
                callee = callee_of(call)
                helper = helpers.get(callee)
                if callee == "malloc":
                    self._replace(call, context)
                    replaced += 1
                elif callee == "free":
                    call.erase()
                elif isinstance(helper, CONTEXT):
                    new = with_context[callee] = _pass_context(call, context)
                    if helper.takes_memory:
                        self._return_on_null(new)
                    elif helper.gives_status:
                        self._return_on_status(new)
        if replaced:
            self._declare(module)
        self._redeclare(module, with_context)
        self.count("allocations", replaced)

    def _replace(self, call: ir.Operation, context: ir.Value) -> None:
        with ir.InsertionPoint(call), call.location:
            operands = [context, _checked_bytes(call.operands[0])]
            new = call_of(Allocation().symbol, operands, [call.results[0].type])
        call.results[0].replace_all_uses_with(new.results[0])
        call.erase()
        self._return_on_null(new)

    def _return_on_null(self, call: ir.Operation) -> None:
        """`if (!memory) return -1;` after an allocation of a kernel."""
        _return_if(call, _EQUAL, lambda: word(-1))

    def _return_on_status(self, call: ir.Operation) -> None:
        """`if (status) return status;` after a poll."""
        _return_if(call, _NOT_EQUAL, lambda: call.result)

    def _redeclare(self, module: ir.Module, calls: dict[str, ir.Operation]) -> None:
        """Gives the declarations of what takes the context that argument."""
        for op in [op.operation for op in module.body.operations]:
            name = symbol_of(op)
            call = calls.get(name)
            if call is not None:
                result = call.results[0].type if len(call.results) else "void"
                operands = ", ".join(str(operand.type) for operand in call.operands)
                kind = ir.Type.parse(f"!llvm.func<{result} ({operands})>")
                op.attributes["function_type"] = ir.TypeAttr.get(kind)

    def _declare(self, module: ir.Module) -> None:
        helper = Allocation()
        add_to(
            module,
            f"llvm.func @{helper.symbol}(!llvm.ptr, i64) -> (!llvm.ptr {{llvm.noalias}}) "
            f"attributes {{no_unwind, {HELPER} = {attribute_of(helper)}}}",
        )


def _begin_lifetimes(block: ir.Block) -> None:
    for op in [op.operation for op in block.operations]:
        if op.name == "llvm.alloca":
            with ir.InsertionPoint.after(op), op.location:
                ir.Operation.create("llvm.intr.lifetime.start", [], [op.result])


def _return_if(call: ir.Operation, predicate: int, status: Callable[[], ir.Value]) -> None:
    """Ends a kernel after a call whose result is equal, or not equal, to zero."""
    block = call.block
    if not _returns_status(block.owner):
        return
    rest = split_after(call)
    failed = rest.create_after()
    with ir.InsertionPoint(failed), call.location:
        ir.Operation.create("llvm.return", operands=[status()])
    with ir.InsertionPoint(block), call.location:
        zero = ir.Operation.create("llvm.mlir.zero", results=[call.result.type]).result
        branch_to(compare(predicate, call.result, zero), (failed, []), (rest, []))


def _pass_context(call: ir.Operation, context: ir.Value) -> ir.Operation:
    """Calls a function with the context before its other arguments; returns the new call."""
    operands = [context, *call.operands]
    with ir.InsertionPoint(call), call.location:
        new = call_of(callee_of(call), operands, [result.type for result in call.results])
    for old, result in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()
    return new


def _checked_bytes(size: ir.Value) -> ir.Value:
    """The bytes, or -1 if they are a product that overflows; computed once more in floats, which do not."""
    if getattr(size.owner, "name", "") not in ("llvm.ptrtoint", "llvm.add", "llvm.mul"):
        return size
    product = _as_float(size)
    if product is None:
        return size
    limit = constant(ir.FloatAttr.get(ir.F64Type.get(), _MOST_BYTES))
    predicate = ir.IntegerAttr.get(size.type, _ORDERED_LESS_OR_EQUAL)
    fits = create("llvm.fcmp", ir.IntegerType.get_signless(1), [product, limit], {"predicate": predicate})
    return create("llvm.select", size.type, [fits, size, word(-1)])


def _as_float(value: ir.Value) -> ir.Value | None:
    """A number of bytes or elements as a float, through the operations that multiply sizes; None if it is
    known when compiling.
    """
    op: Any = value.owner
    name, real = "" if isinstance(op, ir.Block) else op.name, ir.F64Type.get()
    if name == "llvm.mlir.constant":
        return None
    if name == "llvm.ptrtoint" and getattr(op.operands[0].owner, "name", "") == "llvm.getelementptr":
        # The address of element n after null: n times the size of an element, which is 16 at most.
        address = op.operands[0].owner
        count = _as_float(address.operands[1]) if len(address.operands) == 2 else None
        return count and create("llvm.fmul", real, [count, constant(ir.FloatAttr.get(real, 16.0))])
    if name in ("llvm.mul", "llvm.add"):
        parts = [_as_float(x) for x in op.operands]
        if all(part is None for part in parts):
            return None
        pairs = zip(parts, op.operands, strict=True)
        return create(
            f"llvm.f{name[5:]}", real, [part or create("llvm.sitofp", real, [x]) for part, x in pairs]
        )
    return create("llvm.sitofp", real, [value])


def _returns_status(function: ir.Operation) -> bool:
    kind = str(function.attributes["function_type"])
    return "-> i64" in kind or "i64 (" in kind


def _arguments(function: ir.Operation) -> Any:
    return function.regions[0].blocks[0].arguments


def _calls(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in walk_for(function, ("llvm.call",)) if "callee" in op.attributes]

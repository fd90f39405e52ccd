# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives compiled functions the kernel ABI: a context argument, a status result, checks that return early."""

from __future__ import annotations

from typing import Any

from graphc.ir.diagnostics import node_of
from graphc.ir.walk import signature_of
from graphc.passes import Pass
from graphc.passes.llvm._code import word_at
from graphc_dialects._mlir import ir
from graphc_dialects.check import NAME

# Operations that may stand in the wrapper of a function.
_SHORT = 12


class KernelAbi(Pass):
    """Makes `@main` and `@shapes` (in cf form) return a status, and each `graphc.check` a branch.

    * A context pointer becomes the first argument. The attribute `graphc.buffers` lists the positions that
      the data pointers of buffer arguments will have in the llvm dialect: they do not overlap, which the
      entry point guarantees, and `noalias-buffers` says so. (Upstream's conversion drops `llvm.noalias`.)
    * Functions with the attribute `graphc.part` (see outline-loops) are called by kernels, and only get that
      list.
    * Index results of `@shapes` are stored through a pointer that becomes its last argument. Where it has no
      branches but checks, LLVM does not optimise it: it runs once a call, in some nanoseconds. If it is
      short, it is inlined into its wrapper all the same.
    * A failed check stores what was given and expected in the context and returns its site number + 1; the
      module attribute `graphc.sites` lists message, error class and graph node of each site. Success returns
      0.
    """

    stage = "llvm"

    def run(self, module: ir.Module) -> None:
        sites: list[Any] = []
        for function in list(module.body.operations):
            op = function.operation
            if op.name == "func.func" and len(function.regions[0].blocks):
                _Function(op, sites).rewrite()
        module.operation.attributes["graphc.sites"] = ir.ArrayAttr.get(sites)
        self.statistics["checks"] = len(sites)


def _left_as_it_is(function: ir.Operation) -> tuple[str, ...]:
    """The attributes of a function that LLVM does not optimise, if it is one block."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) > 1:
        return ()
    is_long = len(list(blocks[0].operations)) > _SHORT
    return ("llvm.no_inline", "llvm.optimize_none") if is_long else ("llvm.always_inline",)


class _Function:
    """The rewrite of one function."""

    def __init__(self, op: ir.Operation, sites: list[ir.Attribute]) -> None:
        self._op = op
        self._sites = sites
        self._i64 = ir.IntegerType.get_signless(64)
        self._pointer = ir.Type.parse("!llvm.ptr")

    def rewrite(self) -> None:
        function_type = signature_of(self._op)
        if "graphc.part" in self._op.attributes:
            self._op.attributes["graphc.buffers"] = self._data_pointers(function_type.inputs)
            return
        entry = self._op.regions[0].blocks[0]
        location = self._op.location
        self._results = len(function_type.results)
        # Bindings append arguments only at the end: all old ones are re-added after the context.
        old = list(entry.arguments)
        self._context = entry.add_argument(self._pointer, location)
        for argument in old:
            argument.replace_all_uses_with(entry.add_argument(argument.type, argument.location))
        for _ in old:
            entry.erase_argument(0)
        inputs = [self._pointer, *function_type.inputs]
        if self._op.attributes["sym_name"].value == "shapes":
            for name in _left_as_it_is(self._op):
                self._op.attributes[name] = ir.UnitAttr.get()
        if self._results:
            self._out = entry.add_argument(self._pointer, location)
            inputs.append(self._pointer)
        self._op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [self._i64]))
        if "arg_attrs" in self._op.attributes:
            # Those of the old arguments; no later pass reads them.
            del self._op.attributes["arg_attrs"]
        self._op.attributes["graphc.buffers"] = self._data_pointers(inputs)
        for block in list(self._op.regions[0].blocks):
            self._rewrite_block(block)

    def _data_pointers(self, inputs: list[ir.Type]) -> ir.Attribute:
        """Positions, once each memref is two pointers, an offset, sizes and strides."""
        positions = []
        at = 0
        for kind in inputs:
            is_buffer = isinstance(kind, ir.MemRefType)
            if is_buffer:
                positions.append(at + 1)
            at += 3 + 2 * ir.MemRefType(kind).rank if is_buffer else 1
        return ir.DenseI32ArrayAttr.get(positions)

    def _rewrite_block(self, block: ir.Block) -> None:
        """Splits the block after each check, last check first, so that every operation moves once."""
        last = block.operations[-1].operation
        if last.name == "func.return":
            self._return(last)
        after: list[ir.Operation] = []  # last one first
        for op in reversed([op.operation for op in block.operations]):
            if op.name != NAME:
                after.append(op)
                continue
            rest = block.create_after()
            for other in reversed(after):
                rest.append(other)
            after = [self._branch(op, rest)]

    def _return(self, op: ir.Operation) -> None:
        with ir.InsertionPoint(op), op.location:
            for position, value in enumerate(op.operands):
                self._store(value, self._out, position)
            self._give_back(0)
        op.erase()

    def _branch(self, check: ir.Operation, rest: ir.Block) -> ir.Operation:
        """Goes on in a block, or returns, instead of a check; the operation that does."""
        condition, given, expected = check.operands
        failed = rest.create_after()
        self._sites.append(self._site(check))
        with ir.InsertionPoint(failed), check.location:
            for position, value in enumerate((given, expected)):
                self._store(value, self._context, position + 1)
            self._give_back(len(self._sites))
        with ir.InsertionPoint(check), check.location:
            branch = ir.Operation.create(
                "cf.cond_br",
                operands=[condition],
                successors=[rest, failed],
                attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])},
            )
        check.erase()
        return branch

    def _site(self, check: ir.Operation) -> ir.Attribute:
        attributes = {name: check.attributes[name] for name in ("message", "error")}
        attributes["node"] = ir.StringAttr.get(node_of(check))
        return ir.DictAttr.get(attributes)

    def _give_back(self, status: int) -> None:
        attributes = {"value": ir.IntegerAttr.get(self._i64, status)}
        number = ir.Operation.create("arith.constant", [self._i64], [], attributes).result
        ir.Operation.create("func.return", [], [number])

    def _store(self, index: ir.Value, pointer: ir.Value, position: int) -> None:
        """`((int64_t *)pointer)[position] = index`."""
        value = ir.Operation.create("arith.index_cast", [self._i64], [index]).result
        ir.Operation.create("llvm.store", [], [value, word_at(pointer, position) if position else pointer])

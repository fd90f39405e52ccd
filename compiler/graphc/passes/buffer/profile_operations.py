# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counters of time in generated code, for ``graphc.function(..., profile=True)``."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.diagnostics import node_of
from graphc.ir.helpers import callee_of, declare_helper, declared
from graphc.ir.walk import blocks_of, functions, symbol_of, walk
from graphc.library.helpers import Draws, Gemm, Helper, KernelCall, ProfileCall, Split
from graphc.passes import Pass
from graphc_dialects._mlir import ir

SLOTS = "graphc.profile"
_LOOPS = ("scf.for", "scf.while", "scf.parallel")
_MEASURED = (*_LOOPS, "memref.copy", "linalg.generic", "linalg.copy")
_CALLS = (Gemm, KernelCall, Draws, Split)


class ProfileOperations(Pass):
    """Has `@main` count the time that each of its loop nests and calls takes, inside loops too.

    A counter belongs to a slot, slot 0 to all that has none of its own. `@graphc_profile_enter(n)` charges
    the time since the last of these calls to the slot that was entered then, and enters slot n;
    `@graphc_profile_leave(n)` does so without counting a run of it. So each slot has its own time, less that
    of what is in it.

    A loop whose body has loops or calls of other operations, such as that of a scan, is measured inside. One
    over elements is not: its slot stands for all that was fused into it. The module attribute
    `graphc.profile` lists for each slot its graph nodes, what it is, and the slot that it is in.

    Runs after parallel-loops: what several threads share is one call here.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        main = next((f for f in functions(module) if symbol_of(f) == "main"), None)
        if main is None:
            return
        work = _Slots(module)
        block = main.regions[0].blocks[0]
        first = next(iter(block.operations)).operation
        work.visit(block, 0)
        work.call(first, "begin")
        work.call(list(main.regions[0].blocks)[-1].operations[-1].operation, "leave", 0)
        work.finish()
        self.count("slots", len(work.slots))


class _Slots:
    """Finds what is measured, and puts the calls there."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._helpers = declared(module)
        self._functions = {symbol_of(f): f for f in functions(module)}
        self.slots: list[tuple[dict[str, None], str, int]] = [({}, "function", 0)]

    def visit(self, block: ir.Block, parent: int) -> None:
        """Measures what stands in a block, whose time belongs to a slot."""
        for op in [each.operation for each in block.operations]:
            if op.name == "scf.if":
                for inner in blocks_of(op):
                    self.visit(inner, parent)
            elif self._is_measured(op):
                slot = len(self.slots)
                inside = self._is_measured_inside(op)
                what = "loop" if op.name in _LOOPS else callee_of(op) or op.name
                self.slots.append(({} if inside else self._nodes(op), what, parent))
                self.slots[slot][0].update(dict.fromkeys(filter(None, [node_of(op)])))
                following = list(block.operations)
                after = following[[each.operation for each in following].index(op) + 1].operation
                self.call(op, "enter", slot)
                self.call(after, "leave", parent)
                if inside:
                    for inner in blocks_of(op):
                        self.visit(inner, slot)

    def _is_measured(self, op: ir.Operation) -> bool:
        return op.name in _MEASURED or isinstance(self._helper(op), _CALLS)

    def _is_measured_inside(self, op: ir.Operation) -> bool:
        own = node_of(op)
        found = [each.operation for block in blocks_of(op) for each in block.operations]
        return any(self._is_measured(each) and node_of(each) not in ("", own) for each in found)

    def _helper(self, op: ir.Operation) -> Helper | None:
        return self._helpers.get(callee_of(op)) if op.name == "func.call" else None

    def _nodes(self, op: ir.Operation) -> dict[str, None]:
        """The nodes of all that an operation does, in another function too."""
        helper = self._helper(op)
        found = walk(self._functions[helper.body]) if isinstance(helper, Split) else walk(op)
        return dict.fromkeys(filter(None, map(node_of, found)))

    def call(self, before: ir.Operation, name: str, slot: int | None = None) -> None:
        """Puts a call before an operation."""
        with ir.InsertionPoint(before), before.location:
            operands = [] if slot is None else [build.const_i64(slot)]
            build.call(ProfileCall(name, 0).symbol, [], operands)

    def finish(self) -> None:
        """Declares what is called, and lists the slots."""
        i64 = ir.IntegerType.get_signless(64)
        for name, types in (("begin", []), ("enter", [i64]), ("leave", [i64])):
            declare_helper(self._module, ProfileCall(name, len(self.slots)), types, [])
        listed = [
            ir.DictAttr.get(
                {
                    "nodes": ir.ArrayAttr.get([ir.StringAttr.get(node) for node in nodes]),
                    "what": ir.StringAttr.get(what),
                    "parent": ir.IntegerAttr.get(i64, parent),
                }
            )
            for nodes, what, parent in self.slots
        ]
        self._module.operation.attributes[SLOTS] = ir.ArrayAttr.get(listed)


def attached(module: ir.Module) -> list[dict[str, object]]:
    """The slots of a module as records for the manifest; none where nothing is measured."""
    attributes = module.operation.attributes
    if SLOTS not in attributes:
        return []
    return [
        {
            "nodes": [ir.StringAttr(node).value for node in slot["nodes"]],
            "what": ir.StringAttr(slot["what"]).value,
            "parent": ir.IntegerAttr(slot["parent"]).value,
        }
        for slot in attributes[SLOTS]
    ]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives long inner loops of large kernels functions of their own.

A sum over the elements of arrays is a nest of three loops: parts, blocks, elements. LLVM's loop strength
reduction gives each array induction variables in all of them, three times over, as the vectoriser makes three
loops of one: half of the code of a loop over a dozen arrays. In a function of its own the inner loop has none
around it. A call costs some ten nanoseconds; a block has thousands of elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphc.ir.walk import definition, symbol_of
from graphc.passes.llvm._code import (
    Counted,
    branch_to,
    call_of,
    counted,
    go,
    inner_loops,
    last_of,
    part_of,
    struct_of,
)
from graphc_dialects._mlir import ir

# Loops with at least as many instructions get functions, and are vectorised without a second copy.
_WORTH_A_CALL, _LONG_BODY = 4, 16
# Iterations of blocks (see `graphc.lowering.partial_reductions`).
_BLOCK = 4096
_ANNOTATION, ONCE = "loop_annotation", "#llvm.loop_annotation<interleave = <count = 1 : i32>>"
# Operations that print nothing: LLVM has constants where they are used.
CONSTANTS = frozenset(
    ("llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.poison", "llvm.mlir.undef", "llvm.mlir.addressof")
)


def outline_blocks(function: ir.Operation, module_body: ir.Block) -> None:
    """Moves the inner loops of blocks to functions after it in a module.

    The function is inlined into its callers then, as little is left of it. Its long loops are vectorised
    without a second copy of the vectorised body, which hides latencies of short bodies, and only makes more
    code of long ones.
    """
    found = []
    for blocks, _ in inner_loops(function):
        size = sum(op.name not in CONSTANTS for op in blocks[-1].operations) - 1
        loop = counted(blocks) if size >= _WORTH_A_CALL else None
        if loop is not None and size >= _LONG_BODY:
            last_of(loop.body).attributes[_ANNOTATION] = ir.Attribute.parse(ONCE)
        if loop is not None and loop.ends_block(_BLOCK):
            found.append(loop)
    name = symbol_of(function)
    for number, loop in enumerate(found):
        _Outlining(function, loop, f"{name}_inner_{number}").move(module_body)
    if found:
        function.attributes["always_inline"] = ir.UnitAttr.get()
        if "no_inline" in function.attributes:
            del function.attributes["no_inline"]


def apart_from_others(function: ir.Operation) -> set[ir.Value]:
    """A function's parameters that do not overlap others."""
    blocks = list(function.regions[0].blocks)
    if not blocks or "arg_attrs" not in function.attributes:
        return set()
    given = zip(blocks[0].arguments, function.attributes["arg_attrs"], strict=True)
    return {value for value, attributes in given if "llvm.noalias" in attributes}


class _Outlining:
    """Makes a loop a function.

    Args:
        function: that it is in.
        loop: the loop.
        name: of the new function.
    """

    def __init__(self, function: Any, loop: Counted, name: str) -> None:
        self._function, self._loop, self._name = function, loop, name
        self._header, self._body = loop.header, loop.body
        compare, branch = (op.operation for op in loop.header.operations)
        self._compare, self._branch = compare, branch
        self._own = {*self._header.arguments, *compare.results}
        self._own.update(result for op in self._body.operations for result in op.operation.results)
        self._captured, self._constants = self._outside()
        self._results = [value for value in self._header.arguments if self._is_read_after(value)]

    def _outside(self) -> tuple[list[Any], list[Any]]:
        """Values from outside that the loop needs: what is passed, and what is made again."""
        passed: dict[Any, None] = {}
        constants: dict[Any, None] = {}
        for op in [self._compare, *(op.operation for op in self._body.operations)]:
            for value in op.operands:
                if value not in self._own:
                    (passed if definition(value, *CONSTANTS) is None else constants)[value] = None
        return list(passed), list(constants)

    def _is_read_after(self, value: ir.Value) -> bool:
        inside = (self._header, self._body)
        return any(use.owner.operation.block not in inside or use.owner == self._branch for use in value.uses)

    def move(self, module_body: ir.Block) -> None:
        """Moves the loop after the function, and calls it in its place."""
        initial = list(self._header.arguments)
        kinds = [str(value.type) for value in (*self._captured, *initial)]
        result = self._result()
        made = self._define(module_body, kinds, result)
        with self._function.location:
            with ir.InsertionPoint(self._compare):
                operands = [*self._captured, *initial]
                call = call_of(self._name, operands, [] if result is None else [result])
                results = self._taken_apart(call)
            exit_operands = list(self._branch.operands)[1:]
            replaced = dict(zip(self._results, results, strict=True))
            with ir.InsertionPoint(self._branch):
                passed = [replaced.get(value, value) for value in exit_operands]
                go(self._branch.successors[1], passed)
        self._fill(made, initial)
        for old, new in replaced.items():
            old.replace_all_uses_except(new, call)

    def _result(self) -> ir.Type | None:
        """The type that the new function returns, or None."""
        kinds = [value.type for value in self._results]
        if len(kinds) < 2:
            return kinds[0] if kinds else None
        return ir.Type.parse(f"!llvm.struct<({', '.join(map(str, kinds))})>")

    def _define(self, module_body: ir.Block, kinds: list[str], result: Any) -> ir.Operation:
        """The new function, empty; what does not overlap does not there either."""
        noalias = apart_from_others(self._function)
        parameters = [
            f"{kind} {{llvm.noalias}}" if i < len(self._captured) and self._captured[i] in noalias else kind
            for i, kind in enumerate(kinds)
        ]
        returns = "" if result is None else f" -> {result}"
        text = f"llvm.func @{self._name}({', '.join(parameters)}){returns} attributes {{no_inline}}"
        made = ir.Operation.parse(text)
        ir.InsertionPoint(module_body).insert(made)
        return made

    def _taken_apart(self, call: ir.Operation) -> Iterator[Any]:
        if len(self._results) < 2:
            return iter(call.results)
        return iter([part_of(call.result, [i], value.type) for i, value in enumerate(self._results)])

    def _fill(self, made: ir.Operation, initial: list[ir.Value]) -> None:
        """Moves the loop into the new function."""
        types = [value.type for value in (*self._captured, *initial)]
        entry = ir.Block.create_at_start(made.regions[0], types)
        header = entry.create_after(*[value.type for value in initial])
        self._body.append_to(made.regions[0])
        body = self._body
        end = body.create_after()
        new = dict(zip(self._captured, entry.arguments, strict=False))
        with made.location:
            with ir.InsertionPoint(entry):
                for value in self._constants:
                    new[value] = value.owner.operation.clone().results[0]
                go(header, list(entry.arguments)[len(self._captured) :])
            new.update(zip(initial, header.arguments, strict=True))
            header.append(self._compare)
            with ir.InsertionPoint(header):
                branch_to(self._compare.result, (body, []), (end, []))
            branch = last_of(body)
            with ir.InsertionPoint(branch):
                again = go(header, list(branch.operands))
                if _ANNOTATION in branch.attributes:
                    again.attributes[_ANNOTATION] = branch.attributes[_ANNOTATION]
            branch.erase()
            with ir.InsertionPoint(end):
                self._return([new[value] for value in self._results])
        for op in [self._compare, *(op.operation for op in body.operations)]:
            for i, value in enumerate(op.operands):
                if value in new:
                    op.operands[i] = new[value]
        self._branch.erase()
        made.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")

    def _return(self, values: list[ir.Value]) -> None:
        kind = self._result()
        if len(values) > 1 and kind is not None:
            values = [struct_of(kind, (([i], value) for i, value in enumerate(values)))]
        ir.Operation.create("llvm.return", [], values)

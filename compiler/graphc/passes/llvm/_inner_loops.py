# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives long inner loops of large kernels functions of their own.

A sum over the elements of arrays is a nest of three loops: parts, blocks, elements. LLVM's loop strength
reduction gives each array induction variables in all of them, three times over, as the vectoriser makes three
loops of one: half of the code of a loop over a dozen arrays. In a function of its own the inner loop has none
around it. A call costs some ten nanoseconds; a block has thousands of elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphc.ir.build import constant_value, predicate_of
from graphc.ir.walk import symbol_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Loops with at least as many instructions get functions, and are vectorised without a second copy.
_WORTH_A_CALL, _LONG_BODY = 4, 16
# Iterations of blocks (see `graphc.lowering.partial_reductions`).
_BLOCK = 4096
_SLT = 2  # llvm.icmp
_ANNOTATION, ONCE = "loop_annotation", "#llvm.loop_annotation<interleave = <count = 1 : i32>>"
# Operations that print nothing: LLVM has constants where they are used.
CONSTANTS = frozenset(
    ("llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.poison", "llvm.mlir.undef", "llvm.mlir.addressof")
)


@record()
class Counted:
    """A loop of two blocks over the numbers below a bound.

    Attributes:
        before: leads to the header.
        header: compares the number with the bound.
        body: does one iteration, without branches.
        bound: where it ends.
    """

    before: Any
    header: Any
    body: Any
    bound: Any

    def ends_block(self, least: int) -> bool:
        """True if it ends where a block of so many iterations does: the loop around it counts for little."""
        end = self.bound.owner
        if isinstance(end, ir.Block) or end.name != "llvm.intr.smin":
            return False
        after = end.operands[0].owner
        is_sum = not isinstance(after, ir.Block) and after.name == "llvm.add"
        return is_sum and (constant_of(after.operands[1]) or 0) >= least


def inner_loops(function: ir.Operation) -> list[tuple[list[Any], bool]]:
    """The blocks of each loop that has no others in it, the header first, and whether it is in another."""
    blocks = list(function.regions[0].blocks)
    numbers = {block: number for number, block in enumerate(blocks)}
    spans = [
        (numbers[first], last)
        for last, block in enumerate(blocks)
        for first in last_of(block).successors
        if numbers[first] <= last and _leads_to(first, block)
    ]

    def within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
        return outer[0] < inner[0] <= outer[1]  # the header, which may also be the end of the other one

    return [
        (blocks[span[0] : span[1] + 1], any(within(span, other) for other in spans))
        for span in spans
        if not any(within(other, span) for other in spans)
    ]


def _leads_to(first: ir.Block, last: ir.Block) -> bool:
    """True if there is a way from a block to another one: not each branch to a block above closes a loop."""
    seen, left = {first}, [first]
    while left and last not in seen:
        left = [block for block in last_of(left.pop()).successors if block not in seen] + left
        seen.update(left)
    return last in seen


def counted(blocks: list[Any]) -> Counted | None:
    """A loop over numbers one after the other, if these blocks are one."""
    header, body = blocks[0], blocks[-1]
    outside = [block for block in header.predecessors if block != body]
    branch, again = last_of(header), last_of(body)
    if len(blocks) != 2 or len(outside) != 1 or branch.name != "llvm.cond_br":
        return None
    test, *others = (op.operation for op in header.operations)
    is_loop = (
        test.name == "llvm.icmp"
        and predicate_of(test) == _SLT
        and test.operands[0] == header.arguments[0]
        and test.operands[1].owner != header
        and branch.operands[0] == test.results[0]
        and len(others) == 1
        and branch.successors[0] == body
        and not len(body.arguments)
        and list(body.predecessors) == [header]
        and last_of(outside[0]).name == again.name == "llvm.br"
    )
    return Counted(outside[0], header, body, test.operands[1]) if is_loop else None


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


def last_of(block: ir.Block) -> Any:
    """The operation at the end of a block."""
    return block.operations[-1].operation


def constant_of(value: ir.Value) -> int | None:
    """The number that a value is, if it is known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.mlir.constant":
        return constant_value(value)
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def call_of(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()) -> ir.Operation:
    """A call, at the insertion point."""
    attributes = {
        "callee": ir.FlatSymbolRefAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return ir.Operation.create("llvm.call", list(results), list(operands), attributes)


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
                    owner = value.owner
                    again = not isinstance(owner, ir.Block) and owner.name in CONSTANTS
                    (constants if again else passed)[value] = None
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
                self._jump(self._branch.successors[1], passed)
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
        return iter(
            [
                ir.Operation.create(
                    "llvm.extractvalue",
                    [value.type],
                    [call.result],
                    {"position": ir.DenseI64ArrayAttr.get([position])},
                ).result
                for position, value in enumerate(self._results)
            ]
        )

    def _jump(self, block: ir.Block, operands: list[Any]) -> ir.Operation:
        return ir.Operation.create("llvm.br", [], operands, {}, [block])

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
                self._jump(header, list(entry.arguments)[len(self._captured) :])
            new.update(zip(initial, header.arguments, strict=True))
            header.append(self._compare)
            with ir.InsertionPoint(header):
                ir.Operation.create(
                    "llvm.cond_br",
                    [],
                    [self._compare.result],
                    {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])},
                    [body, end],
                )
            branch = last_of(body)
            with ir.InsertionPoint(branch):
                again = self._jump(header, list(branch.operands))
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
            whole = ir.Operation.create("llvm.mlir.poison", [kind]).result
            for position, value in enumerate(values):
                at = {"position": ir.DenseI64ArrayAttr.get([position])}
                whole = ir.Operation.create("llvm.insertvalue", [kind], [whole, value], at).result
            values = [whole]
        ir.Operation.create("llvm.return", [], values)

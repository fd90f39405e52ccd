# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of `@main` as a function of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.ir import build
from graphc.ir.constants import CONSTANTS
from graphc.ir.copies import copy_with
from graphc.ir.locations import node_of
from graphc.ir.walk import inputs_of, walk
from graphc_dialects._mlir import ir

# The beginning of the names of functions of the host, and the attribute that they have.
HOST = "graphc_host"
WORK = "graphc.host"
_SCALAR = ("arith.", "tensor.dim", "tensor.from_elements", *CONSTANTS)


def outline(
    main: ir.Operation, operations: Sequence[ir.Operation], name: str, reasons: Mapping[ir.Operation, str]
) -> None:
    """Replaces operations by a call, in the place of the first one.

    Args:
        main: the function around them.
        operations: in an order in which they can run; all values from outside exist before the first one,
            and all users come after it.
        name: of the new function.
        reasons: why operations have no kernel; empty for those that have one.
    """
    body = _Body(operations)
    wanted = [r for op in operations for r in op.results if _is_used_outside(r, body)]
    arguments = list(body.arguments)
    with ir.InsertionPoint(main), main.location:
        function = _declare(name, [x.type for x in arguments], [x.type for x in wanted])
    work = [
        ir.ArrayAttr.get([ir.StringAttr.get(x) for x in (op.name, reasons[op], node_of(op))])
        for op in operations
        if reasons.get(op)
    ]
    function.attributes[WORK] = ir.ArrayAttr.get(work)
    block = ir.Block.create_at_start(function.regions[0], [x.type for x in arguments])
    with ir.InsertionPoint(operations[0]), operations[0].location:
        callee = ir.FlatSymbolRefAttr.get(name)
        call = build.create("func.call", [x.type for x in wanted], arguments, callee=callee)
    new: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(block), operations[0].location:
        new.update(zip(arguments, block.arguments, strict=True))
        for op in body.operations:
            copy_with(op, new)
        build.create("func.return", [], [new[x] for x in wanted])
    for old, result in zip(wanted, call.results, strict=True):
        old.replace_all_uses_with(result)
    for op in reversed(operations):
        op.erase()


class _Body:
    """Body of a function of the host: operations, and the numbers and constants that they need.

    Attributes:
        operations: all of it, in order.
        arguments: values from outside.
    """

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self.own = set(operations)
        self.arguments: dict[ir.Value, None] = {}
        self.operations: dict[ir.Operation, None] = {}
        for op in operations:
            for value in inputs_of(op):
                if isinstance(value.type, ir.RankedTensorType):
                    self._need(value)
        for op in operations:
            for value in inputs_of(op):
                self._need(value)
            self.operations[op] = None

    def _need(self, value: ir.Value) -> None:
        if isinstance(value.owner, ir.Block):
            self.arguments[value] = None
            return
        owner = value.owner.operation
        if owner in self.own or owner in self.operations:
            return
        if not self._is_computed(owner):
            self.arguments[value] = None
            return
        for operand in owner.operands:
            self._need(operand)
        self.operations[owner] = None

    def _is_computed(self, op: ir.Operation) -> bool:
        """True if the function computes it itself: constants, and numbers from sizes that it knows."""
        if not op.name.startswith(_SCALAR):
            return False
        if op.name == "tensor.dim":
            array = op.operands[0]
            is_own = not isinstance(array.owner, ir.Block) and array.owner.operation in self.own
            return is_own or array in self.arguments
        if op.name == "tensor.from_elements":
            return True
        return all(
            not isinstance(x.owner, ir.Block) and self._is_computed(x.owner.operation) for x in op.operands
        )


def _is_used_outside(value: ir.Value, body: _Body) -> bool:
    inside = {inner for op in body.own for inner in [op, *walk(op)]}
    return any(use.owner.operation not in inside for use in value.uses)


def _declare(name: str, inputs: Sequence[ir.Type], results: Sequence[ir.Type]) -> ir.Operation:
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
    }
    return ir.Operation.create("func.func", attributes=attributes, regions=1)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes rely on in the modules they are given, beyond what verifiers check.

Verifiers let through whatever upstream's operations allow: other element types, sizes that no memory has,
attributes that the bindings cannot show. Passes need not ask for each of these: `check_entry` refuses them.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.ir.constants import CONSTANTS, ELEMENTS, element_dtype
from graphc.ir.diagnostics import fail
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir

# As the planner of memory has it: more bytes than an address can reach.
_MOST_BYTES = 2**48
# Literals with elements of their own are read into arrays; a splat of more than this would fill the memory.
_MOST_ELEMENTS = 2**24


def check_entry(module: ir.Module) -> None:
    """Raises PassError, with a diagnostic at the operation, for what passes do not take."""
    accepted: set[ir.Value] = set()
    problems: list[tuple[Any, str]] = []

    def visit(op: Any) -> Any:
        op = op.operation
        problem = _attribute_problem(op) or _literal_problem(op) or _axis_problem(op)
        values = [*op.results, *(a for region in op.regions for block in region for a in block.arguments)]
        for type_ in {value.type for value in values} - accepted if problem is None else ():
            problem = problem or _type_problem(type_)
            accepted.add(type_)
        if problem is None:
            return ir.WalkResult.ADVANCE
        problems.append((op, problem))
        return ir.WalkResult.INTERRUPT

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op, problem in problems:
        fail(op, f"'{op.name}' {problem}")


def _attribute_problem(op: ir.Operation) -> str | None:
    for name in op.attributes:
        if name == "value" and op.name in CONSTANTS:
            continue  # `constant_value` reads literals, also those for which the bindings have no class
        try:
            op.attributes[name]
        except TypeError:
            return f"has an attribute '{name}' of a form that passes do not read"
    return None


def _literal_problem(op: ir.Operation) -> str | None:
    if op.name not in CONSTANTS or not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    count = math.prod(op.results[0].type.shape)
    if count <= _MOST_ELEMENTS:
        return None
    return f"is a literal of {count} elements; {_MOST_ELEMENTS} are the most that passes read"


def _axis_problem(op: ir.Operation) -> str | None:
    if op.name != "tensor.dim" or not isinstance(op.operands[0].type, ir.RankedTensorType):
        return None
    axis, rank = constant_value(op.operands[1]), len(op.operands[0].type.shape)
    if axis is None or 0 <= axis < rank:
        return None
    return f"asks for the size of dimension {axis} of a tensor of {rank} dimensions"


def _type_problem(type_: ir.Type) -> str | None:
    if isinstance(type_, ir.RankedTensorType):
        kind = "tensor"
    elif isinstance(type_, ir.MemRefType) and not _is_position(type_.element_type):
        kind = "buffer"
    else:
        return None
    try:
        size = element_dtype(type_.element_type).itemsize
    except TypeError:
        known = ", ".join(ELEMENTS)
        return (
            f"has a {kind} whose element type {type_.element_type} is not supported; expected one of {known}"
        )
    count = math.prod(extent for extent in type_.shape if extent >= 0) * size
    return f"has a {kind} of {count} bytes, more than any memory: {type_}" if count > _MOST_BYTES else None


def _is_position(element: ir.Type) -> bool:
    """Whether it is what buffers hold besides numbers: indices, and types of dialects, such as pointers."""
    return isinstance(element, ir.IndexType) or str(element).startswith("!")

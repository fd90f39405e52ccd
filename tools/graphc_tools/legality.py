# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of modules around each pass: what a stage allows, and what no pass takes.

Operations of dialects that are not listed at all (test dialects) are left alone.

Verifiers let through whatever upstream's operations allow: other element types, sizes that no memory has,
attributes that the bindings cannot show. Passes need not ask for each of these: `check_entry` refuses them.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.ir.constants import CONSTANTS, DTYPES, element_dtype
from graphc.ir.diagnostics import fail
from graphc.passes import STAGES, Pass, Stage
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
        problem = _attribute_problem(op) or _literal_problem(op) or _axis_problem(op) or _index_problem(op)
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
    kind = _WITH_AXES.get(op.name)
    if kind is None or not isinstance(op.operands[0].type, kind):
        return None
    axis, rank = constant_value(op.operands[1]), len(op.operands[0].type.shape)
    if axis is None or 0 <= axis < rank:
        return None
    what = op.name.partition(".")[0].replace("memref", "buffer")
    return f"asks for the size of dimension {axis} of a {what} of {rank} dimensions"


_WITH_AXES: dict[str, type] = {"tensor.dim": ir.RankedTensorType, "memref.dim": ir.MemRefType}


def _index_problem(op: ir.Operation) -> str | None:
    """Tensors of indices are sizes, which no operation of ours computes with."""
    if not op.name.startswith("graphc."):
        return None
    for value in (*op.operands, *op.results):
        if isinstance(value.type, ir.RankedTensorType) and isinstance(value.type.element_type, ir.IndexType):
            return "computes with a tensor whose element type index is not supported"
    return None


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
        known = ", ".join((*DTYPES, "index"))
        return (
            f"has a {kind} whose element type {type_.element_type} is not supported; expected one of {known}"
        )
    count = math.prod(extent for extent in type_.shape if extent >= 0) * size
    return f"has a {kind} of {count} bytes, more than any memory: {type_}" if count > _MOST_BYTES else None


def _is_position(element: ir.Type) -> bool:
    """True if it is what buffers hold besides numbers: indices, and types of dialects, such as pointers."""
    return isinstance(element, ir.IndexType) or str(element).startswith("!")


_COMMON = ("builtin", "func", "arith.constant")
_INDEX_CODE = ("arith", "tensor.dim", "tensor.extract", "tensor.cast", "tensor.from_elements")
# `tensor.empty` stands for a result of the region of `scf.if` that nobody reads.
_CONDITIONALS = ("scf.if", "scf.yield", "tensor.empty")
_LOOPS = ("arith", "math", "complex", "index", "scf", "cf", "affine", "vector", "ub")

# A dialect name allows all of its operations, a full name only that one.
ALLOWED: dict[Stage, frozenset[str]] = {
    "graph": frozenset({*_COMMON, *_INDEX_CODE, *_CONDITIONALS, "graphc"}),
    "tensor": frozenset({*_COMMON, *_LOOPS, "graphc", "tensor", "linalg", "bufferization", "memref"}),
    "buffer": frozenset(
        # An address is what a library of a device is given, as what a kernel of ours is.
        {
            *_COMMON,
            *_LOOPS,
            "graphc.check",
            "graphc.address",
            "memref",
            "linalg",
            "bufferization",
            "llvm",
            "gpu",
        }
    ),
    "llvm": frozenset({*_COMMON, *_LOOPS, "graphc.check", "memref", "llvm"}),
}
# Raw pointers: nobody knows before bufferization where a value is going to lie.
_FORBIDDEN: dict[Stage, frozenset[str]] = {"tensor": frozenset({"memref.extract_aligned_pointer_as_index"})}
_KNOWN = frozenset(name.partition(".")[0] for names in ALLOWED.values() for name in names)


def is_legal(name: str, stage: Stage) -> bool:
    """True if an operation such as `graphc.add` may occur in a stage."""
    dialect = name.partition(".")[0]
    allowed = ALLOWED[stage]
    if name in _FORBIDDEN.get(stage, ()):
        return False
    return dialect in allowed or name in allowed or dialect not in _KNOWN


def illegal_operation(module: ir.Module, stages: tuple[Stage, ...]) -> ir.Operation | None:
    """The first operation that none of the stages allows, or None."""
    verdicts: dict[str, bool] = {}
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.Operation:
        name = op.name
        if name not in verdicts:
            verdicts[name] = any(is_legal(name, stage) for stage in stages)
        if verdicts[name]:
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.INTERRUPT

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else None


def check(module: ir.Module, step: Pass, before: bool) -> None:
    """Raises PassError, with a diagnostic at the operation, if the module is not of the pass's stage, or
    holds what passes do not take.

    Args:
        module: the module.
        step: the pass about to run, or that has run.
        before: accept the previous stage too.
    """
    position = STAGES.index(step.stage)
    stages = STAGES[max(position - 1, 0) : position + 1] if before else (step.stage,)
    op = illegal_operation(module, stages)
    if op is not None:
        moment = "before" if before else "after"
        fail(op, f"'{op.name}' is not legal {moment} the {step.stage} pass {step.flag()}")
    if before:
        check_entry(module)

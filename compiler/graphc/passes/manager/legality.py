# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations each stage allows.

A pass takes modules of its own stage, or of the stage before if it is one of those that lead over, and leaves
a module of its own stage. `check` is run around every pass in tests and in `graphc-opt`: a pass at the wrong
place is refused instead of silently doing nothing or harm. Operations of dialects that are not listed at all
(test dialects) are left alone.
"""

from __future__ import annotations

from graphc.ir.diagnostics import fail
from graphc.passes.manager.base import STAGES, Pass, Stage
from graphc.passes.manager.entry import check_entry
from graphc_dialects._mlir import ir

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
        {*_COMMON, *_LOOPS, "graphc.check", "memref", "linalg", "bufferization", "llvm", "gpu"}
    ),
    "llvm": frozenset({*_COMMON, *_LOOPS, "graphc.check", "memref", "llvm"}),
}
# Raw pointers: nobody knows before bufferization where a value is going to lie.
_FORBIDDEN: dict[Stage, frozenset[str]] = {"tensor": frozenset({"memref.extract_aligned_pointer_as_index"})}
_KNOWN = frozenset(name.partition(".")[0] for names in ALLOWED.values() for name in names)


def is_legal(name: str, stage: Stage) -> bool:
    """Whether an operation such as `graphc.add` may occur in a stage."""
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


def check(module: ir.Module, step: Pass, *, before: bool) -> None:
    """Raises PassError, with a diagnostic at the operation, if the module is not of the pass's stage, or
    holds what passes do not take (see `graphc.passes.manager.entry`).

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

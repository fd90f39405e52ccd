# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs pipelines, in whose texts our passes and upstream's are mixed, and checks modules around each pass.

A pass takes modules of its own stage, or of the stage before if it is one of those that lead over, and leaves
a module of its own stage. `check` is run around every pass in tests and in `graphc-opt`: a pass at the wrong
place is refused instead of silently doing nothing or harm. Operations of dialects that are not listed at all
(test dialects) are left alone.

Verifiers let through whatever upstream's operations allow: other element types, sizes that no memory has,
attributes that the bindings cannot show. Passes need not ask for each of these: `check_entry` refuses them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import field, replace
from functools import cache
from time import perf_counter
from typing import Any, Protocol

from graphc.ir.constants import CONSTANTS, ELEMENTS, element_dtype
from graphc.ir.diagnostics import fail
from graphc.passes import STAGES, Pass, Stage, discover, find
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir, passmanager
from graphc_runtime import steps
from graphc_runtime.record import record
from graphc_runtime.worker import checkpoint

Entry = Pass | str | tuple[str, str]
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}


def split_top_level(text: str) -> list[str]:
    """Splits at commas that are outside brackets and quotes.

    Raises:
        ValueError: the brackets do not match.
    """
    parts, start, closing, quote = [], 0, [], ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif character in ")}]>":
            if not closing or closing.pop() != character:
                raise ValueError(
                    f"unmatched '{character}' in the pass pipeline at column {position + 1}: {text}"
                )
        elif character == "," and not closing:
            parts.append(text[start:position].strip())
            start = position + 1
    if closing or quote:
        raise ValueError(f"expected '{quote or closing[-1]}' at the end of the pass pipeline: {text}")
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def parse_pipeline(text: str) -> list[Pass | str]:
    """Entries of a pipeline such as `builtin.module(graphc-fusion{max-inputs=4},func.func(cse))`.

    Returns:
        Pass objects for ours, texts of single (possibly nested) passes for upstream's.

    Raises:
        ValueError: the text is malformed, a pass of ours is unknown, or its options are wrong.
    """
    text = text.strip()
    if text.startswith("builtin.module(") and text.endswith(")"):
        text = text[len("builtin.module(") : -1]
    entries: list[Pass | str] = []
    for part in split_top_level(text):
        match = _NAME.match(part.removeprefix("--"))
        if match is None:
            raise ValueError(f"expected the name of a pass, but found '{part}'")
        if match[0] == "any" or match[0].startswith("builtin.module"):
            entries.extend(parse_pipeline(part))
        else:
            entries.append(_parse_one(part.removeprefix("--"), match[0]))
    return entries


def _parse_one(part: str, name: str) -> Pass | str:
    if name in discover():
        rest = part[len(name) :].strip()
        if rest and not (rest.startswith("{") and rest.endswith("}")):
            raise ValueError(
                f"options of pass {name} must be written as {{key=value ...}}, but found '{rest}'"
            )
        return find(name).from_options(rest[1:-1])
    if name.startswith("graphc-"):
        find(name)
    nested = re.search(r"\bgraphc-[\w-]+", part[len(name) :])
    if nested and "(" in part:
        raise ValueError(f"pass {nested[0]} runs on modules and cannot be nested inside {name}(...)")
    return part


def normalise(entries: Iterable[Entry]) -> list[Pass | str]:
    """Entries with our flags turned into passes; reasons, the second items of tuples, are dropped."""
    result: list[Pass | str] = []
    for entry in entries:
        text = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(text, Pass):
            result.append(text)
        else:
            # Every run has passes of its own, because they count what they do.
            result += [replace(step) if isinstance(step, Pass) else step for step in _parsed(text)]
    return result


@cache
def _parsed(text: str) -> tuple[Pass | str, ...]:
    """The entries of a text. Those of the pipelines are read again for each function."""
    return tuple(parse_pipeline(text))


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
        known = ", ".join(ELEMENTS)
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


def check(module: ir.Module, step: Pass, *, before: bool) -> None:
    """Raises PassError, with a diagnostic at the operation, if the module is not of the pass's stage, or
    holds what passes do not take (see `graphc.passes.run`).

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


class Instrument(Protocol):
    """Watches a pipeline. With one, upstream passes run one by one, so that each can be seen."""

    def before(self, name: str, module: ir.Module) -> None:
        """Called before each pass."""

    def after(self, name: str, module: ir.Module) -> None:
        """Called after each pass that succeeded."""

    def failed(self, name: str, module: ir.Module) -> None:
        """Called after a pass that failed."""


@record(frozen=True)
class PassRun:
    """One step of a pipeline: a pass of ours, or a run of upstream passes."""

    name: str
    seconds: float
    statistics: dict[str, int]


@record()
class PipelineReport:
    """Report of a pipeline."""

    runs: list[PassRun] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Time spent in passes."""
        return sum(run.seconds for run in self.runs)


def run_pipeline(
    module: ir.Module,
    entries: Iterable[Entry],
    *,
    instrument: Instrument | None = None,
    check_legality: bool = False,
    verify_each: bool = False,
    verify_folded: bool = True,
    managers: dict[str, object] | None = None,
) -> PipelineReport:
    """Runs passes on a module in place.

    Args:
        module: an `ir.Module` of a context that has the dialect.
        entries: passes, pipeline texts, or (text, reason) tuples as in `graphc.backends.stages`.
        instrument: told before and after each pass.
        check_legality: check the stage's legality spec before and after each pass of ours.
        verify_each: verify the module after every pass, instead of at the end and between passes of ours and
            upstream passes that simplify it: upstream's folders may crash on invalid modules.
        verify_folded: do that before each of these; else once a stage. A verification of a module of the
            graph stage takes as long as a pass.
        managers: pass managers of the module's context by pipeline text, which are kept there for the next
            module: to make one takes longer than to run it on a small module.

    Returns:
        Names, times and statistics of what ran. Adjacent upstream passes are one entry unless there is an
        instrument.

    Raises:
        PassError: a pass of ours refused the module, or a legality check failed.
        ValueError: an entry cannot be parsed.
        MLIRError: an upstream pass or the verifier failed (the bindings' own exception, with its
        diagnostics).
    """
    report = PipelineReport()
    context = module.context
    managers = {} if managers is None else managers
    changed = False  # by passes of ours since the last verification
    stage: Stage | None = None  # of the last pass of ours
    verified: Stage | None = None  # the stage of the module that was verified last
    with context:
        every = _steps(normalise(entries), single=instrument is not None)
        for number, step in enumerate(every, start=1):
            checkpoint()
            name = str(step)
            steps.step(name, number, len(every))
            if instrument is not None:
                instrument.before(name, module)
            start = perf_counter()
            try:
                if isinstance(step, Pass):
                    changed, stage = not verify_each, step.stage
                elif (
                    changed and step != "cse" and (verify_folded or stage != verified)
                ):  # which folds nothing
                    module.operation.verify()
                    changed, verified = False, stage
                _run_step(module, step, check_legality, verify_each, managers)
            except Exception:
                if instrument is not None:
                    instrument.failed(name, module)
                raise
            seconds = perf_counter() - start
            report.runs.append(
                PassRun(name, seconds, dict(step.statistics) if isinstance(step, Pass) else {})
            )
            if instrument is not None:
                instrument.after(name, module)
        if not verify_each:
            module.operation.verify()
    return report


def _steps(entries: list[Pass | str], *, single: bool) -> list[Pass | str]:
    """Joins adjacent upstream entries, which then share one pass manager."""
    joined: list[Pass | str] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if isinstance(entry, str) and isinstance(last, str) and not single:
            joined[-1] = f"{last},{entry}"
        else:
            joined.append(entry)
    return joined


def _run_step(
    module: ir.Module, step: Pass | str, check_legality: bool, verify_each: bool, managers: dict[str, Any]
) -> None:
    if isinstance(step, str):
        manager = managers.get(step)
        if manager is None:
            manager = managers[step] = passmanager.PassManager.parse(f"builtin.module({step})")
        manager.enable_verifier(verify_each)
        manager.run(module.operation)
        return
    if check_legality:
        check(module, step, before=True)
    step.statistics.clear()
    with ir.Location.unknown():
        step.run(module)
    if check_legality:
        check(module, step, before=False)
    if verify_each:
        module.operation.verify()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a pipeline on emitted text and hands the result over as LLVM IR."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphc.backends.cpu.pipeline import pipeline
from graphc.errors import CompileError


@dataclass
class Lowered:
    """A module at the end of its pipeline.

    Attributes:
        llvm_ir: text that llvmlite parses; defines `main` and perhaps `shapes`.
        sites: message, error class and node of each check.
        has_shapes: whether `shapes` is defined.
        passes: name and seconds of each pass.
        stages: name and IR text of the module after emission and after each stage, if they were asked for.
        seconds: time of each step: "load MLIR", "parse", "passes", "translate".
        memory: the memory plan of each function (see `graphc.passes.buffer.memory._record`).
        donated: pairs of an argument and the result that is computed in its memory.
        spares: pairs of an argument that nothing reads and the result that may be computed in its memory.
        kept: pairs of an argument that was offered for this and the reason why it is not used.
    """

    llvm_ir: str
    sites: list[dict[str, str]]
    has_shapes: bool
    passes: list[tuple[str, float]]
    stages: list[tuple[str, str]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    memory: list[dict[str, Any]] = field(default_factory=list)
    donated: list[tuple[int, int]] = field(default_factory=list)
    spares: list[tuple[int, int]] = field(default_factory=list)
    kept: list[tuple[int, str]] = field(default_factory=list)


class _Snapshots:
    """An instrument that keeps the IR at the end of each stage."""

    def __init__(self, module: Any) -> None:
        self.stages: list[tuple[str, str]] = [("graph", str(module))]
        self._stage = "graph"

    def before(self, name: str, module: Any) -> None:
        """A pass that leads into another stage closes the one before it."""
        stage = _ENTERED.get(name.split("{")[0], self._stage)
        if stage != self._stage:
            self.stages.append(
                (f"{self._stage} (optimised)" if self._stage == "graph" else self._stage, str(module))
            )
            self._stage = stage

    def after(self, name: str, module: Any) -> None:
        """Nothing to do: the next `before` sees the result."""

    def failed(self, name: str, module: Any) -> None:
        """Keeps what there is."""

    def finish(self, module: Any) -> list[tuple[str, str]]:
        return [*self.stages, (self._stage, str(module))]


# Contexts that wait for their next use, with their pass managers and the number of uses so far. Appending and
# popping are atomic.
_CONTEXTS: list[tuple[Any, dict[str, Any], int]] = []
_MOST_USES = 50

_ENTERED = {
    "graphc-convert-to-linalg": "tensor",
    "graphc-kernel-pointers": "buffer",
    "convert-scf-to-cf": "llvm",
}


def lower(
    text: str,
    mode: str,
    *,
    keep_stages: bool = False,
    donate: Sequence[Any] = (),
    fastmath: str = "",
) -> Lowered:
    """Compiles graph-stage text to LLVM IR.

    Args:
        text: a module with `@main`.
        mode: a key of `graphc.backends.cpu.pipeline.PIPELINES`.
        keep_stages: record the IR at each stage (slower: upstream passes run one by one).
        donate: arguments that results may be computed in (see `graphc.passes.tensor.convert_to_linalg`).
        fastmath: a level of `graphc.passes.buffer.fast_math`; empty for the flags that lowering sets.

    Raises:
        CompileError: a pass or the verifier refused the module; the message carries MLIR's diagnostics.
    """
    # Wrapping operations makes many objects, none of them in cycles: collecting would double the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _lower(text, mode, keep_stages, donate, fastmath)
    finally:
        if collecting:
            gc.enable()


def with_donations(text: str, donate: Sequence[Any]) -> str:
    """Emitted text with the module attribute that offers arguments to results."""
    if not donate:
        return text
    attribute = f"graphc.donate = {json.dumps(json.dumps(list(donate)))}"
    return f"module attributes {{{attribute}}}{text.removeprefix('module')}"


def pipeline_of(text: str, mode: str, fastmath: str) -> list[tuple[str, str]]:
    """The pipeline of a mode, without what a module has no use for."""
    has_scan, has_complex = "graphc.scan" in text, "complex<" in text
    return pipeline(mode, has_scan=has_scan, has_complex=has_complex, fastmath=fastmath)


def _lower(text: str, mode: str, keep_stages: bool, donate: Sequence[Any], fastmath: str) -> Lowered:
    from graphc.passes.manager.run import run_pipeline

    start = time.perf_counter()
    from graphc.backends.cpu.handoff import to_llvmlite
    from graphc_dialects._mlir import ir, translate_module_to_llvmir

    seconds = {"load MLIR": time.perf_counter() - start}
    start = time.perf_counter()
    context, managers, uses = _take_context()
    try:
        with context, ir.Location.unknown():
            module = ir.Module.parse(with_donations(text, donate))
            seconds["parse"] = time.perf_counter() - start
            start = time.perf_counter()
            snapshots = _Snapshots(module) if keep_stages else None
            entries = pipeline_of(text, mode, fastmath)
            report = run_pipeline(module, entries, instrument=snapshots, managers=managers)
            seconds["passes"] = time.perf_counter() - start
            start = time.perf_counter()
            llvm_ir = to_llvmlite(translate_module_to_llvmir(module.operation))
            seconds["translate"] = time.perf_counter() - start
            lowered = Lowered(
                llvm_ir,
                [_site(ir, site) for site in module.operation.attributes["graphc.sites"]],
                "@shapes(" in llvm_ir,
                [(run.name, run.seconds) for run in report.runs],
                snapshots.finish(module) if snapshots else [],
                seconds,
                _memory(ir, module),
                *_donated(ir, module),
            )
        # Only a context that has seen no error goes back, and none that others' types have piled up in.
        if uses < _MOST_USES:
            _CONTEXTS.append((context, managers, uses + 1))
        return lowered
    except ir.MLIRError as error:
        raise CompileError(
            f"the compiler rejected a module of its own making; please report this\n{error}"
        ) from error


def keep_context(context: Any) -> None:
    """Lets a later compilation use a new context."""
    _CONTEXTS.append((context, {}, 1))


def _take_context() -> tuple[Any, dict[str, Any], int]:
    """A context that no other compilation uses; making one takes longer than compiling a small graph."""
    from graphc_dialects.dialect import new_context

    try:
        return _CONTEXTS.pop()
    except IndexError:
        return new_context(), {}, 1


def _site(ir: Any, site: Any) -> dict[str, str]:
    return {name: ir.StringAttr(site[name]).value for name in ("message", "error", "node")}


def _donated(ir: Any, module: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[Any]]:
    """What became of the arguments that were offered to results."""
    if "graphc.donated" not in module.operation.attributes:
        return [], [], []
    found = json.loads(ir.StringAttr(module.operation.attributes["graphc.donated"]).value)
    pairs, spares, notes = ([tuple(item) for item in found[key]] for key in ("pairs", "spares", "notes"))
    return pairs, spares, notes


def _memory(ir: Any, module: Any) -> list[dict[str, Any]]:
    """The memory plan; empty where a pipeline was asked for that makes none."""
    attributes = module.operation.attributes
    if "graphc.memory" not in attributes:
        return []
    records: list[dict[str, Any]] = json.loads(ir.StringAttr(attributes["graphc.memory"]).value)
    return records

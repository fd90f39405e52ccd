# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs pipelines of our passes and upstream's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from time import perf_counter
from typing import Any, Protocol

from graphc.passes.manager.base import Pass
from graphc.passes.manager.legality import check
from graphc.passes.manager.parse import Entry, normalise
from graphc_dialects._mlir import ir, passmanager
from graphc_runtime import steps
from graphc_runtime.record import record
from graphc_runtime.worker import checkpoint


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
    """What a pipeline did."""

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
                if changed and isinstance(step, str) and step != "cse":  # which folds nothing
                    module.operation.verify()
                    changed = False
                _run_step(module, step, check_legality, verify_each, managers)
                changed = not verify_each and (changed or isinstance(step, Pass))
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

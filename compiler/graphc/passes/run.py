# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs pipelines, in whose texts our passes and upstream's are mixed.

A pass takes modules of its own stage, or of the stage before if it is one of those that lead over, and leaves
a module of its own stage. `graphc_tools.legality` checks that around every pass in tests and in `graphc-opt`:
a pass at the wrong place is refused instead of silently doing nothing or harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import field
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from graphc.passes import Pass, Stage, discover, find
from graphc_dialects._mlir import ir, passmanager
from graphc_dialects.walk import names_in
from graphc_runtime import steps
from graphc_runtime.record import record
from graphc_runtime.worker import checkpoint, presence

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
        for step in [text] if isinstance(text, Pass) else _PARSED.get(text) or _parsed(text):
            if isinstance(step, Pass) and step is not text:
                # Every run has passes of its own, because they count what they do.
                step = copy(step)
                step.statistics = {}
            result.append(step)
    return result


# The entries of texts. Those of the pipelines are read again for each function.
_PARSED: dict[str, list[Pass | str]] = {}


def _parsed(text: str) -> list[Pass | str]:
    _PARSED[text] = parse_pipeline(text)
    for step in _PARSED[text]:
        if isinstance(step, Pass):
            step.text = str(step)
    return _PARSED[text]


# Looks at a module before (True) or after a pass; raises PassError for what must not be there.
Check = Callable[[ir.Module, Pass, bool], None]


class Instrument(Protocol):
    """Watches a pipeline. With one, upstream passes run one by one, so that each can be seen."""

    def before(self, name: str, module: ir.Module) -> None:
        """Called before each pass."""

    def after(self, name: str, module: ir.Module) -> None:
        """Called after each pass that succeeded."""

    def failed(self, name: str, module: ir.Module) -> None:
        """Called after a pass that failed."""


class PassRun(NamedTuple):
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
    check: Check | None = None,
    verify_each: bool = False,
    verify_folded: bool = True,
    managers: dict[str, Any] | None = None,
) -> PipelineReport:
    """Runs passes on a module in place.

    Args:
        module: an `ir.Module` of a context that has the dialect.
        entries: passes, pipeline texts, or (text, reason) tuples as in `graphc.backends.stages`.
        instrument: told before and after each pass.
        check: called around each pass of ours, such as `graphc_tools.legality.check`.
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
        PassError: a pass of ours refused the module, or the check did.
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
    names: set[str] | None = None  # of the operations in the module, until a pass runs
    me = presence()
    with context:
        every = _steps(normalise(entries), single=instrument is not None)
        tell = steps.watcher()
        for number, step in enumerate(every, start=1):
            if me.is_called:
                checkpoint()
            name = step if isinstance(step, str) else step.text or str(step)
            if tell is not None:
                tell((name, number, len(every)))
            if instrument is not None:
                instrument.before(name, module)
            start = perf_counter()
            try:
                if isinstance(step, str):
                    # Which folds nothing: cse.
                    if changed and step != "cse" and (verify_folded or stage != verified):
                        module.operation.verify()
                        changed, verified = False, stage
                        start = perf_counter()
                    if step not in managers:
                        managers[step] = passmanager.PassManager.parse(f"builtin.module({step})")
                    managers[step].enable_verifier(verify_each)
                    managers[step].run(module.operation)
                    names = None
                else:
                    if check is not None:
                        check(module, step, True)
                    step.statistics.clear()
                    stage = step.stage
                    if step.acts_on is not None and names is None:
                        names = names_in(module.operation)
                    if step.acts_on is None or any(map(step.acts_on.__contains__, names or ())):
                        with ir.Location.unknown():
                            step.run(module)
                        changed, names = not verify_each, None
                    if check is not None:
                        check(module, step, False)
                    if verify_each:
                        module.operation.verify()
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

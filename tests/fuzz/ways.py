# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to evaluate a program."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
from checked import Checked, Finding, arguments, exact_values, known, said
from judging import expected, factors_what_is_none
from numpy_space import case_of
from op_runner import VIEWS
from program import Input, Program, Step, run_step
from ways_artifacts import by_artifact, by_c
from ways_derivatives import transposed
from ways_device import in_parts, on_device
from ways_differences import sloped
from ways_numpy import by_numpy
from ways_types import given, loosened, resized, substituted, tightened, vectorized

import graphc
from graphc.backends.cpu.pipeline import PIPELINES, pipeline
from graphc.backends.stages import Entry, Request, Stage
from graphc.config import config
from graphc.immediate import Environment

# With what `verify_memory` adds, as the pipelines that are not changed have it.
FAST_RUN = pipeline("fast_run", Request(verify=True))

# Passes without which a module still compiles.
OPTIONAL = (
    "graphc-constant-folding",
    "graphc-stabilize",
    "graphc-algebraic-simplification",
    "graphc-linear-systems",
    "graphc-blas-recognition",
    "graphc-shape-simplification",
    "graphc-join-buffer-elimination",
    "graphc-fusion",
    "graphc-matmul-to-blas",
    "graphc-hoist-allocations",
    "graphc-loop-fusion",
    "graphc-plan-memory{record=true}",
    "graphc-parallel-loops",
    "graphc-outline-loops",
    "graphc-expand-math",
    "eliminate-empty-tensors",
    "func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=256})",
    "graphc-scan-remove-constants-and-unused-inputs",
    *(
        f"graphc-scan-{name}"
        for name in ("merge-inouts", "merge", "push-out-non-seq", "push-out-seq", "to-map")
    ),
    *(
        f"graphc-scan-{name}"
        for name in ("push-out-dot1", "push-out-output", "to-reduce", "unroll", "save-mem")
    ),
    *("graphc-scan-to-associative", "graphc-scan-inplace"),
)

# The first pass after those on graphs.
_TENSORS = "graphc-convert-to-linalg"

# Those that can be left out all at once.
EASY = OPTIONAL[:10]

# Compiled -------------------------------------------------------------------------------------------


def _mode(mode: str) -> Callable[[Checked], Iterator[Finding]]:
    def run(c: Checked) -> list[Any]:
        f = c.function(mode)
        fallen = [each for each in f.report.fallbacks if mode != "reference" and not _is_allowed(each)]
        python = any(_in_python(step) for step in c.program.steps)
        # What a line that is known not to compile made, and conditionals that decide about it.
        reasons = ("emit", "in Python", "a Python function") if python else ()
        fallen = [each for each in fallen if not any(reason in each.reason for reason in reasons)]
        assert not fallen, f"not native: {[str(each) for each in fallen]}"
        return c.call(f)

    return lambda c: c.compare(mode, lambda: run(c))


def _is_allowed(fallback: Any) -> bool:
    """Whether it is a conditional that no order of one function suits, as the report says why."""
    orders = ("depends on", "not known in time", "too many combinations")
    return bool(
        fallback.op == "IfElse"
        and any(why in fallback.reason for why in (*orders, "compiled for themselves"))
    )


def _in_python(step: Step) -> bool:
    """Whether a line is known not to compile."""
    return step.kind.startswith("users_") or bool(step.operands and case_of(step.kind).python)


def _changed(name: str, change: Callable[[Entry], Entry | None]) -> Callable[[Checked], Iterator[Finding]]:
    """The pipeline of fast_run with other entries, or without some; graph passes are interpreted, too."""
    pipeline = [new for entry in FAST_RUN if (new := change(entry)) is not None]
    before, after = (list(takewhile(lambda e: e[0] != _TENSORS, each)) for each in (FAST_RUN, pipeline))
    modes = ["fast_run"] if before == after else ["fast_run", "interpret"]

    def way(c: Checked) -> Iterator[Finding]:
        with entries(pipeline):
            for mode in modes:
                yield from c.compare(name, lambda mode=mode: c.call(c.function(mode)))

    return way


def _without(*flags: str) -> Callable[[Entry], Entry | None]:
    return lambda entry: None if entry[0] in flags else entry


def _with(flag: str, options: str) -> Callable[[Entry], Entry | None]:
    return lambda entry: (f"{flag}{{{options}}}", entry[1]) if entry[0] == flag else entry


@contextmanager
def entries(pipeline: list[Entry]) -> Iterator[None]:
    """Another pipeline in the place of fast_run's; nothing of it is kept on the disk."""
    before = PIPELINES["fast_run"]
    PIPELINES["fast_run"] = (Stage.of("changed", pipeline),)
    try:
        with config.change_flags(cache_dir=""):
            yield
    finally:
        PIPELINES["fast_run"] = before


def _poisoned(c: Checked) -> Iterator[Finding]:
    """Memory holds NaN where its lifetime begins and ends, also that of buffers else on the stack."""
    with config.change_flags(poison_memory=True):
        yield from c.compare("poisoned", lambda: c.call(c.function("fast_run")))
        with entries([entry for entry in FAST_RUN if "promote-buffers-to-stack" not in entry[0]]):
            yield from c.compare("poisoned", lambda: c.call(c.function("fast_run")))


def _threaded(c: Checked) -> Iterator[Finding]:
    """Results do not depend on the number of threads, bit for bit."""

    def run() -> list[Any]:
        f, found = c.function("fast_run"), []
        for count in (1, 2, 3):
            with graphc.threads(count):
                found.append(c.call(f))
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                same = (
                    np.asarray(a).tobytes() == np.asarray(b).tobytes() if isinstance(a, np.ndarray) else True
                )
                assert same, "threads change results"
        return found[0]

    yield from c.compare("threads", run)


def _alone(c: Checked) -> Iterator[Finding]:
    """Each result in a function of its own."""

    def run() -> list[Any]:
        options = {"mode": "fast_run", "on_unused_input": "ignore"}
        return [y for v in c.targets for y in c.call(graphc.function(c.built.inputs, [v], **options))[:1]]

    yield from c.compare("alone", run)


def _in_turns(c: Checked) -> Iterator[Finding]:
    """Functions that share variables, called in turns: two of the program, and one that turns rows round."""
    if not c.program.updates or c.error is not None:
        return
    shared = [c.built.variables[x.name] for x in c.program.inputs if x.shared]
    turned = graphc.function([], shared, updates={s: s[::-1] if s.type.ndim else s + s for s in shared})
    functions = [c.function(mode) for mode in ("fast_run", "fast_compile")]
    yield from c.compare("in turns", lambda: c.call(functions[0]))
    for f in reversed(functions):
        found, after = turned(), copy.copy(c)
        now = {x: x.get_value() for x in shared}
        try:
            after.expected = expected(c.targets, known(c.built) | now, exact=exact_values(c.built))
        except Exception:
            return  # on these values the program fails

        def run(f: Any = f, found: list[Any] = found, now: dict[Any, Any] = now) -> list[Any]:
            for old, x in zip(found, shared, strict=True):
                new = old[::-1] if old.ndim else old + old
                assert new.tobytes() == now[x].tobytes(), f"{x} was {old}, and is {now[x]}"
            results = f(*arguments(c.program))
            return [*results, *(c.built.variables[old].get_value() for old, _ in c.program.updates)]

        yield from after.compare("in turns", run)


# Memory ---------------------------------------------------------------------------------------------


def _donated(c: Checked) -> Iterator[Finding]:
    def run() -> list[Any]:
        donate = [v for v, x in _plain_inputs(c)]
        f = c.function("fast_run", donate=donate)
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments(c.program)]
        for x in c.program.inputs:
            if x.shared:
                c.built.variables[x.name].set_value(x.value.copy())
        results = f(*given)
        arrays = [y for y in results if isinstance(y, np.ndarray) and y.size]
        for i, y in enumerate(arrays):
            assert not any(np.shares_memory(y, z) for z in arrays[i + 1 :]), "results share memory"
        return [*results, *(c.built.variables[old].get_value() for old, _ in c.program.updates)]

    yield from c.compare("donated", run)


def _plain_inputs(c: Checked) -> list[tuple[Any, Input]]:
    return [(c.built.variables[x.name], x) for x in c.program.inputs if not x.shared and not x.generator]


def _out(c: Checked) -> Iterator[Finding]:
    def run() -> list[Any]:
        f = c.function("fast_run")
        given = [np.full(e.value.shape, 7, e.value.dtype) for e in c.expected]
        out = given[: len(c.program.outputs)]
        results = c.call(f, out=out)
        assert all(a is b for a, b in zip(out, results, strict=False) if a is not None), "not in given memory"
        return results

    if c.error is None:
        yield from c.compare("out", run)


# Immediate --------------------------------------------------------------------------------------------


@cache
def environment(lazy: bool) -> Environment:
    """One environment each, so that programs share executables."""
    return Environment(name="lazy" if lazy else "eager", lazy=lazy)


def _immediate(name: str, lazy: bool) -> Callable[[Checked], Iterator[Finding]]:
    def way(c: Checked) -> Iterator[Finding]:
        if any(x.shared or x.generator for x in c.program.inputs) or any(
            s.numpy == "" or "OpFromGraph" in s.text for s in c.program.steps
        ):
            return
        env = environment(lazy)

        def run() -> list[Any]:
            names: dict[str, Any] = {
                x.name: env.numpy_to_tensor(VIEWS[x.layout](x.value)) for x in c.program.inputs
            }
            for step in c.program.steps:
                run_step(step, names, {"pt": env, "graphc": env, "np": np})
            return [np.asarray(names[name]) for name in c.program.wanted]

        yield from c.compare(name, run)

    return way


WAYS: dict[str, Callable[[Checked], Iterator[Finding]]] = {
    "numpy": by_numpy,
    "reference": _mode("reference"),
    "fast_run": _mode("fast_run"),
    "fast_compile": _mode("fast_compile"),
    "interpret": _mode("interpret"),
    "poisoned": _poisoned,
    "alone": _alone,
    "in turns": _in_turns,
    "donated": _donated,
    "out": _out,
    "tightened": given("tightened", tightened),
    "loosened": given("loosened", loosened),
    "resized": resized,
    "substituted": substituted,
    "vectorized": vectorized,
    "eager": _immediate("eager", False),
    "lazy": _immediate("lazy", True),
    "threads": _threaded,
    "transposed": transposed,
    "sloped": sloped,
    "artifact": by_artifact,
    "c": by_c,
    "device": on_device,
    "device in parts": in_parts,
    "small clusters": _changed("small clusters", _with("graphc-fusion", "max-inputs=2")),
    "products by gemm": _changed("products by gemm", _with("graphc-matmul-to-blas", "threshold=0")),
    "without all": _changed("without all", _without(*EASY)),
    **{f"without {flag}": _changed(f"without {flag}", _without(flag)) for flag in OPTIONAL},
}


# Those that may compute a line as it is written, though it has a stable form; as may all without a pass.
AS_WRITTEN = {"reference", "eager", "lazy", "vectorized", "loosened"}


def found_in(way: str, c: Checked) -> list[Finding]:
    """What is found in a way, where that is the measure of the program's lines."""
    as_written = way in AS_WRITTEN or way.startswith("without")
    if as_written and any(step.exact for step in c.program.steps):
        return []
    found = list(WAYS[way](c))
    if any(finding.message.startswith("LinAlgError: cholesky") for finding in found) and not c.error:
        if factors_what_is_none(c.targets, known(c.built)):
            return []
    return found


def check(program: Program, ways: Sequence[str]) -> list[Finding]:
    """What is found in some ways."""
    checked = Checked(program)
    if checked.error is not None and not program.raises:
        return [Finding("interpreter", "error", said(checked.error))]
    return [finding for way in ways for finding in found_in(way, checked)]

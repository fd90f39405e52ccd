# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with their graphs, what these should compute, and how ways to evaluate them compare.

The measure is a plain interpreter of the graph as written (`judging.interpret`): each node's ``perform``,
nothing rewritten.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from judging import Exact, Expectation, expected, interpret, raises_anyway
from numpy_space import run_numpy
from op_runner import VIEWS
from program import Built, Input, Program, Step, build

import graphc
import graphc.tensor as pt


@dataclass(frozen=True)
class Finding:
    """A way that does not agree.

    Attributes:
        way: its name.
        kind: "mismatch", "error", "no error", "crash", "hang".
        message: one or a few lines.
    """

    way: str
    kind: str
    message: str

    @property
    def signature(self) -> tuple[str, str]:
        """What a shrunk program must still show: the way, and the kind with the class of an exception."""
        return self.way, f"{self.kind} {self.message.split(':')[0] if self.kind == 'error' else ''}".strip()


def arguments(program: Program, wanted: Callable[[Input], bool] = lambda x: True) -> list[Any]:
    """Values of the inputs that are no shared variables, in their layouts."""
    given: list[Any] = []
    for x in program.inputs:
        if x.shared or not wanted(x):
            continue
        value = np.random.default_rng(int(x.value)) if x.generator else VIEWS[x.layout](x.value)
        given.append(value)
    return given


def known(built: Built) -> dict[Any, Any]:
    """Values by variables, for the interpreter."""
    found = {}
    for x in built.program.inputs:
        value: Any = x.value.copy()
        if x.generator:
            value = pt.random.state_of(np.random.default_rng(int(x.value)))
        found[built.variables[x.name]] = value
    return found


def exact_values(built: Built) -> list[Exact]:
    """The lines that NumPy's text says what they are, in dtypes of the graph. A closed form is computed in 64
    bits: what rounding narrow numbers does to it says nothing of the graph.
    """

    def form(step: Step, values: Sequence[Any]) -> list[np.ndarray]:
        wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in map(np.asarray, values)]
        found = run_numpy(step, dict(zip(sorted(step.reads), wide, strict=True))) or []
        types = [built.variables[name].type.numpy_dtype for name in step.names]
        return [x.astype(t) for x, t in zip(found, types, strict=True)]

    variables = built.variables
    return [
        (
            [variables[name] for name in step.names],
            [variables[name] for name in sorted(step.reads)],
            partial(form, step),
        )
        for step in built.program.steps
        if step.exact
    ]


class Checked:
    """A program, its graph, and what it should compute."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.built = build(program)
        self.targets = [self.built.variables[name] for name in program.wanted]
        self.error: Exception | None = None
        self.expected: list[Expectation] = []
        try:
            self.expected = expected(self.targets, known(self.built), exact=exact_values(self.built))
        except Exception as error:
            self.error = error
        # A size that is 1 on these values is refused, unless a way knows that it always is.
        self.broadcast = self._broadcast() if "1 only at run time" in str(self.error) else []

    def _broadcast(self) -> list[Expectation]:
        """What NumPy makes of a last line that fails since sizes of 1 are not known."""
        step, values = self.program.steps[-1], known(self.built)
        try:
            interpret([self.built.variables[name] for name in step.reads], values)
            found = run_numpy(step, operands_of(self.built, step, values)) or []
        except Exception:
            return []
        types = [self.built.variables[name].type.numpy_dtype for name in step.names]
        pairs = zip(found, types, strict=False)
        return [
            Expectation(x.astype(t), [x.astype(t) * (1 + 1e-3)]) if t.kind in "fc" else Expectation(x, [x])
            for x, t in pairs
        ]

    # -- results -----------------------------------------------------------------------------------

    def compare(self, way: str, run: Callable[[], Sequence[Any]]) -> Iterator[Finding]:
        """What is wrong with the results of a way."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = list(run())
        except Exception as error:
            if way in ("loosened", "resized") and "1 only at run time" in str(error):
                return
            if way in ("eager", "lazy") and "known" in str(error):
                return  # kinds of tensors have no sizes
            if self.error is None:
                yield Finding(way, "error", said(error))
            elif not _alike(error, self.error):
                yield Finding(way, "error", f"{said(error)}\nexpected {said(self.error)}")
            return
        if self.error is not None and not self.broadcast:
            if way in ("tightened", "substituted", "eager", "lazy") and "1 only at run time" in str(
                self.error
            ):
                return  # more is known there
            if self.program.raises and raises_anyway(self.targets, known(self.built)):
                yield Finding(way, "no error", f"expected {said(self.error)}")
            return
        for name, want, got in zip(
            self.program.wanted, self.expected or self.broadcast, results, strict=True
        ):
            if isinstance(got, np.random.Generator):
                got = pt.random.state_of(got)
            difference = want.difference(got)
            if difference:
                yield Finding(way, "mismatch", f"{name}: {difference}")
                return

    def function(self, mode: str, built: Built | None = None, **options: Any) -> Any:
        """A compiled function."""
        built = built or self.built
        # Zeros need no input, nor does each of several values of a line.
        if any("disconnected" in step.text or len(step.names) > 1 for step in self.program.steps):
            options.setdefault("on_unused_input", "ignore")
        return graphc.function(built.inputs, built.outputs, updates=built.updates, mode=mode, **options)

    def call(self, f: Any, **options: Any) -> list[Any]:
        """Results and new values of shared variables; inputs must not change, results must be apart.

        Raises:
            AssertionError: an input changed, or a result shares memory.
        """
        given = arguments(self.program)
        before = [x.copy() if isinstance(x, np.ndarray) else None for x in given]
        shared = [self.built.variables[x.name] for x in self.program.inputs if x.shared]
        for x, variable in zip([x for x in self.program.inputs if x.shared], shared, strict=True):
            variable.set_value(x.value.copy())
        results = f(*given, **options)
        for x, old in zip(given, before, strict=True):
            assert old is None or np.array_equal(x, old, equal_nan=old.dtype.kind in "fc"), (
                "an input was changed"
            )
        arrays = [x for x in (*results, *given) if isinstance(x, np.ndarray) and x.size]
        for i, x in enumerate(results):
            assert not any(np.shares_memory(x, y) for y in arrays[i + 1 :] if y is not x), (
                "results share memory"
            )
        return [*results, *(self.built.variables[old].get_value() for old, _ in self.program.updates)]


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:600]}"


def _alike(a: Exception, b: Exception) -> bool:
    """Whether one kind of error may stand for another: both are about values."""
    return (
        isinstance(a, type(b))
        or isinstance(b, type(a))
        or {type(a), type(b)} <= {ValueError, IndexError, AssertionError}
    )


def operands_of(built: Built, step: Step, values: dict[Any, Any]) -> dict[str, Any]:
    """Arrays of what a line reads."""
    return {name: np.asarray(value_of(built, name, values)) for name in step.reads}


def value_of(built: Built, name: str, values: dict[Any, Any]) -> Any:
    """The value of a name, where it is known or a constant."""
    v = built.variables[name]
    return values.get(v, getattr(v, "data", None))

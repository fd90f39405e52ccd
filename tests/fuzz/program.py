# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs: inputs with values, and lines of source that compute with them.

A program is text, so that every namespace can run it (``graphc.tensor``, an environment of immediate mode,
the NumPy stand-ins of `numpy_space`), and so that what is left of a failing one can be printed and run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# Arrays of more elements are written as repetitions of their first ones.
LARGE = 2000
# One seed in so many has a program of complex numbers.
COMPLEX_IN = 10
NAME = re.compile(r"\b[vx]\d+\b")


@dataclass(frozen=True)
class Input:
    """An input, or a shared variable, of a program.

    Attributes:
        name: ``x0``, ``x1``, ...
        value: its value.
        static: the sizes that are known, None for others.
        layout: how the array lies in memory, a key of `op_runner.LAYOUTS`.
        shared: whether it is a shared variable.
        generator: whether it is the state of a random generator; the value is its seed.
    """

    name: str
    value: np.ndarray
    static: tuple[int | None, ...]
    layout: str = "plain"
    shared: bool = False
    generator: bool = False

    def declaration(self) -> str:
        """The line that makes the variable."""
        if self.generator:
            return f'{self.name} = pt.random.RandomGeneratorType("PCG64")("{self.name}")'
        if self.shared:
            return f'{self.name} = graphc.shared({literal(self.value)}, "{self.name}", shape={self.static})'
        return f'{self.name} = pt.tensor("{self.name}", dtype="{self.value.dtype}", shape={self.static})'

    def argument(self) -> str:
        """The text of its value."""
        if self.generator:
            return f"np.random.default_rng({int(self.value)})"
        text = literal(self.value)
        return text if self.layout == "plain" else f'LAYOUTS["{self.layout}"]({text})'


@dataclass(frozen=True)
class Step:
    """One line of a program.

    Attributes:
        names: what it defines.
        text: an expression; a tuple or list where there are several names.
        kind: the recipe or the case that made it.
        operands: the arguments of a case of the table, in order.
        numpy: what NumPy computes instead: None the same text, an empty text nothing.
        helpers: sources of functions that the text calls.
        exact: whether NumPy's text says what it is, not the graph as written, which overflows or cancels.
    """

    names: tuple[str, ...]
    text: str
    kind: str
    operands: tuple[str, ...] = ()
    numpy: str | None = None
    helpers: tuple[str, ...] = ()
    exact: bool = False

    @property
    def reads(self) -> set[str]:
        """Names of variables in its text."""
        return set(NAME.findall(self.text))

    @property
    def line(self) -> str:
        """The statement."""
        return f"{', '.join(self.names)} = {self.text}"

    def renamed(self, old: str, new: str) -> Step:
        """The same with another operand."""
        pattern = re.compile(rf"\b{old}\b")
        swap = lambda text: text if text is None else pattern.sub(new, text)  # noqa: E731
        return replace(
            self,
            text=swap(self.text),
            numpy=swap(self.numpy),
            operands=tuple(new if name == old else name for name in self.operands),
        )


@dataclass(frozen=True)
class Program:
    """Inputs, lines and results.

    Attributes:
        outputs: names of results, which may repeat, or be inputs.
        updates: name of a shared variable, and of its new value.
        raises: whether the last line is expected to fail, in every way.
    """

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    updates: tuple[tuple[str, str], ...] = ()
    raises: bool = False

    @property
    def wanted(self) -> tuple[str, ...]:
        """Names of results and of new values of shared variables."""
        return (*self.outputs, *(new for _, new in self.updates))

    def pruned(self) -> Program:
        """Without lines and inputs that no result needs."""
        needed, kept = set(self.wanted) | {name for name, _ in self.updates}, []
        for step in reversed(self.steps):
            if needed & set(step.names):
                needed |= step.reads
                kept.append(step)
        inputs = tuple(x for x in self.inputs if x.name in needed)
        return replace(self, inputs=inputs, steps=tuple(reversed(kept)))

    def __str__(self) -> str:
        lines = [f"{x.declaration()}  # {x.argument()}" for x in self.inputs]
        lines += [step.line for step in self.steps]
        return "\n".join([*lines, f"outputs {', '.join(self.outputs)} updates {dict(self.updates)}"])


@dataclass
class Built:
    """The graph of a program.

    Attributes:
        variables: by name.
    """

    program: Program
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> list[Any]:
        """Variables of the inputs that are no shared variables."""
        return [self.variables[x.name] for x in self.program.inputs if not x.shared]

    @property
    def outputs(self) -> list[Any]:
        """Variables of the results."""
        return [self.variables[name] for name in self.program.outputs]

    @property
    def updates(self) -> dict[Any, Any]:
        """New values of shared variables."""
        return {self.variables[old]: self.variables[new] for old, new in self.program.updates}


def run_steps(
    steps: Sequence[Step], names: dict[str, Any], space: Mapping[str, Any]
) -> Iterator[tuple[Step, Any]]:
    """Run lines one after the other in a namespace; ``names`` gains what they define."""
    for step in steps:
        yield step, run_step(step, names, space)


def run_step(step: Step, names: dict[str, Any], space: Mapping[str, Any], text: str | None = None) -> Any:
    """Run one line.

    Raises:
        ValueError: it gives another number of results than it has names.
    """
    scope = {**space, **names}
    for source in step.helpers:
        exec(source, scope)
    result = eval(step.text if text is None else text, scope)
    found = flat(result)
    if len(found) != len(step.names):
        raise ValueError(f"{len(found)} results for {step.names}")
    names.update(zip(step.names, found, strict=True))
    return result


def flat(result: Any) -> list[Any]:
    """The results of a line."""
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, tuple | list) else [result]


def symbolic_space() -> dict[str, Any]:
    """What a program's lines see when they build a graph."""
    import graphc
    import graphc.tensor as pt

    return {"pt": pt, "graphc": graphc, "np": np}


def build(program: Program) -> Built:
    """The graph of a program."""
    import graphc
    import graphc.tensor as pt

    built = Built(program)
    space = symbolic_space()
    for x in program.inputs:
        if x.shared:
            built.variables[x.name] = graphc.shared(x.value.copy(), x.name, shape=x.static)
        elif x.generator:
            built.variables[x.name] = pt.random.RandomGeneratorType("PCG64")(x.name)
        else:
            built.variables[x.name] = pt.tensor(x.name, dtype=str(x.value.dtype), shape=x.static)
    for step in program.steps:
        run_step(step, built.variables, space)
    return built


# Printing -----------------------------------------------------------------------------------------


def literal(value: np.ndarray) -> str:
    """The text of an array."""
    if value.size == 0:
        return f'np.zeros({value.shape}, "{value.dtype}")'
    if value.size > 8 and (value == value.flat[0]).all():
        return f'np.full({value.shape}, {_number(value.flat[0])}, "{value.dtype}")'
    if value.size > LARGE:
        return (
            f'np.resize({_nested(value.ravel()[:50])}, {value.shape}).astype("{value.dtype}")  # and others'
        )
    return f'np.array({_nested(value)}, "{value.dtype}")'


def _nested(value: np.ndarray) -> str:
    if value.ndim == 0:
        return _number(value[()])
    return f"[{', '.join(_nested(row) for row in value)}]"


def _number(x: Any) -> str:
    if x.dtype.kind == "c":
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    if x.dtype.kind == "f" and not np.isfinite(x):
        return "np.nan" if np.isnan(x) else "np.inf" if x > 0 else "-np.inf"
    return repr(x.item())

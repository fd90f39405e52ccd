# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes failing programs short: greedy removal of whatever the failure does not need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from checked import known
from judging import interpret
from program import NAME, Input, Program, build, literal

Fails = Callable[[Program], bool]


class Shrinker:
    """Looks for a shorter program that still fails.

    Args:
        fails: whether a program shows the failure.
        seconds: how long to try.
    """

    def __init__(self, fails: Fails, seconds: float = 60.0) -> None:
        self.fails = fails
        self.end = time.monotonic() + seconds
        self.tried: set[str] = set()

    def run(self, program: Program) -> Program:
        """The shortest program found."""
        changed = True
        while changed:
            changed = False
            for kind in (_fewer_outputs, _inputs_for_steps, _bypassed, _simpler_inputs, _smaller_sizes):
                program, better = self._descend(program, kind)
                changed |= better
        return _renamed(program)

    def _descend(
        self, program: Program, kind: Callable[[Program], Iterator[Program]]
    ) -> tuple[Program, bool]:
        """Take the first candidate that fails, and begin again, as long as there is one."""
        better = True
        found = False
        while better:
            better = False
            for candidate in kind(program):
                if time.monotonic() > self.end:
                    return program, False
                if self._good(candidate, program):
                    program, better, found = candidate.pruned(), True, True
                    break
        return program, found

    def _good(self, candidate: Program, program: Program) -> bool:
        candidate = candidate.pruned()
        text = repr((candidate.inputs, str(candidate)))
        if text in self.tried or not candidate.wanted:
            return False
        self.tried.add(text)
        return self.fails(candidate)


def _fewer_outputs(program: Program) -> Iterator[Program]:
    if program.updates:
        yield replace(program, updates=())
    for name in dict.fromkeys(program.outputs):
        if len(program.outputs) > 1:
            yield replace(program, outputs=(name,))
    for i in range(len(program.outputs)):
        if len(program.outputs) > 1:
            yield replace(program, outputs=program.outputs[:i] + program.outputs[i + 1 :])


def values_of(program: Program) -> dict[str, np.ndarray]:
    """Values of all names, as far as they can be computed."""
    built = build(program)
    values = known(built)
    for step in program.steps:
        try:
            interpret([built.variables[name] for name in step.names], values)
        except Exception:
            break
    found = {name: values.get(v, getattr(v, "data", None)) for name, v in built.variables.items()}
    return {name: np.asarray(value) for name, value in found.items() if value is not None}


def _inputs_for_steps(program: Program) -> Iterator[Program]:
    """Inputs in the place of the first lines, then of single ones."""
    values, count = values_of(program), len(program.steps)
    cuts = sorted({count // 2, count // 4, 3 * count // 4, *range(count - 1, 0, -1)}, reverse=True)
    for cut in cuts:
        if 0 < cut < count:
            yield from _cut(program, set(range(cut)), values)
    for i in reversed(range(count)):
        if count > 1:
            yield from _cut(program, {i}, values)


def _cut(program: Program, places: set[int], values: dict[str, np.ndarray]) -> Iterator[Program]:
    gone = [program.steps[i] for i in sorted(places)]
    names = {name for step in gone for name in step.names}
    kept = tuple(step for i, step in enumerate(program.steps) if i not in places)
    needed = {name for step in kept for name in step.reads} | set(program.wanted)
    if any(name not in values for name in names & needed):
        return
    variables = build(program).variables
    statics = {name: variables[name].type.shape for name in names & needed}
    inputs = tuple(Input(name, values[name].copy(), statics[name]) for name in sorted(names & needed))
    yield replace(program, inputs=(*program.inputs, *inputs), steps=kept)


def _bypassed(program: Program) -> Iterator[Program]:
    """A line's operand in the place of its result."""
    values = values_of(program)
    for i, step in enumerate(program.steps):
        if len(step.names) != 1 or step.names[0] not in values:
            continue
        value = values[step.names[0]]
        for name in sorted(step.reads):
            other = values.get(name)
            if other is None or other.shape != value.shape or other.dtype != value.dtype:
                continue
            later = tuple(s.renamed(step.names[0], name) for s in program.steps[i + 1 :])
            outputs = tuple(name if o == step.names[0] else o for o in program.outputs)
            updates = tuple((old, name if new == step.names[0] else new) for old, new in program.updates)
            yield replace(program, steps=(*program.steps[:i], *later), outputs=outputs, updates=updates)


def _simpler_inputs(program: Program) -> Iterator[Program]:
    for i, x in enumerate(program.inputs):
        for other in _simpler(x):
            yield replace(program, inputs=(*program.inputs[:i], other, *program.inputs[i + 1 :]))


def _simpler(x: Input) -> Iterator[Input]:
    if x.layout != "plain":
        yield replace(x, layout="plain")
    if x.generator:
        return
    if x.shared:
        yield replace(x, shared=False)
    if any(s is not None for s in x.static):
        yield replace(x, static=(None,) * len(x.static))
    for value in _simpler_values(x.value):
        if value.tobytes() != x.value.tobytes() and len(literal(value)) < len(literal(x.value)):
            yield replace(x, value=value)


def _simpler_values(value: np.ndarray) -> Iterator[np.ndarray]:
    kind = value.dtype.kind
    yield np.ones_like(value)
    if kind in "fiu":
        yield (np.arange(value.size).reshape(value.shape) % 7).astype(value.dtype)
    if kind in "fc":
        with np.errstate(all="ignore"):
            yield np.round(value)
            yield np.round(value, 1).astype(value.dtype)
    if kind == "c":
        yield value.real.astype(value.dtype)


def _smaller_sizes(program: Program) -> Iterator[Program]:
    sizes = sorted({n for x in program.inputs for n in x.value.shape if n > 1}, reverse=True)
    for size in sizes:
        for smaller in sorted({1, 2, 3, size // 2, size - 1} - {0}):
            if smaller < size:
                yield replace(program, inputs=tuple(_resized(x, size, smaller) for x in program.inputs))
    for i, x in enumerate(program.inputs):
        for axis, size in enumerate(x.value.shape):
            for smaller in sorted({1, 2, size - 1} - {0}):
                if smaller < size:
                    yield replace(
                        program,
                        inputs=(*program.inputs[:i], _cut_axis(x, axis, smaller), *program.inputs[i + 1 :]),
                    )


def _resized(x: Input, size: int, smaller: int) -> Input:
    for axis, n in enumerate(x.value.shape):
        if n == size:
            x = _cut_axis(x, axis, smaller)
    return x


def _cut_axis(x: Input, axis: int, smaller: int) -> Input:
    value = np.take(x.value, range(smaller), axis=axis)
    static = tuple(smaller if i == axis and s is not None else s for i, s in enumerate(x.static))
    return replace(x, value=value, static=static)


def _renamed(program: Program) -> Program:
    """Names in order, without gaps."""
    made = [name for step in program.steps for name in step.names]
    names = {x.name: f"x{i}" for i, x in enumerate(program.inputs)} | {n: f"v{i}" for i, n in enumerate(made)}
    swap = lambda text: text if text is None else NAME.sub(lambda m: names.get(m[0], m[0]), text)  # noqa: E731
    return replace(
        program,
        inputs=tuple(replace(x, name=names[x.name]) for x in program.inputs),
        steps=tuple(
            replace(
                s,
                names=tuple(names[n] for n in s.names),
                text=swap(s.text) or "",
                numpy=swap(s.numpy),
                operands=tuple(names[n] for n in s.operands),
            )
            for s in program.steps
        ),
        outputs=tuple(names[n] for n in program.outputs),
        updates=tuple((names[old], names[new]) for old, new in program.updates),
    )

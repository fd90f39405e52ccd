# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways with other types: the same graph on inputs of which more or less is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from checked import Checked, Finding, arguments, known
from judging import interpret
from program import Input, Program

import graphc
import graphc.tensor as pt

Way = Callable[[Checked], Iterator[Finding]]


def _retyped(program: Program, static: Callable[[Input], tuple[int | None, ...]]) -> Program:
    return replace(
        program,
        inputs=tuple(x if x.shared or x.generator else replace(x, static=static(x)) for x in program.inputs),
    )


def loosened(program: Program) -> Program:
    """The same program with no size known."""
    return _retyped(program, lambda x: (None,) * x.value.ndim)


def tightened(program: Program) -> Program:
    """The same program with all sizes known."""
    return _retyped(program, lambda x: x.value.shape)


def _replaced(c: Checked, other: Program, values: Program) -> list[Any]:
    """The graph with inputs replaced by those of another program, on the values of a third."""
    pairs = {}
    for x in other.inputs:
        if not x.shared and not x.generator:
            new = pt.tensor(x.name, dtype=str(x.value.dtype), shape=x.static)
            pairs[c.built.variables[x.name]] = new
    outputs = graphc.graph_replace(c.targets, pairs, strict=False)
    inputs = [pairs.get(v, v) for v in c.built.inputs]
    f = graphc.function(inputs, outputs, mode="fast_compile", on_unused_input="ignore")
    return f(*arguments(values))


def given(name: str, retype: Callable[[Program], Program]) -> Way:
    """``givens`` puts inputs with other static sizes in the place of the program's."""

    def way(c: Checked) -> Iterator[Finding]:
        other = retype(c.program)
        if other == c.program or any(x.shared for x in c.program.inputs):
            return

        def run() -> list[Any]:
            pairs = {
                c.built.variables[x.name]: pt.tensor(x.name, dtype=str(x.value.dtype), shape=x.static)
                for x in other.inputs
                if not x.generator
            }
            inputs = [pairs.get(v, v) for v in c.built.inputs]
            options = {"givens": pairs, "rebuild_strict": False, "on_unused_input": "ignore"}
            try:
                f = graphc.function(inputs, c.built.outputs, mode="fast_run", **options)
            except (TypeError, ValueError):
                if name == "loosened":  # an axis that is dropped must be known to be 1
                    return [e.value for e in c.expected]
                raise
            return c.call(f)

        yield from c.compare(name, run)

    return way


# Forms of an input that are its values again: what is known of their sizes is found out late, or never.
SAME = (
    lambda y: pt.concatenate([y[:1], y[1:]]),
    lambda y: pt.specify_shape(y, (y.shape[0], *(None,) * (y.type.ndim - 1))),
    lambda y: y[: y.shape[0]],
    lambda y: pt.reshape(y, [y.shape[i] for i in range(y.type.ndim)]),
    lambda y: graphc.scan(lambda r: r, sequences=[y], return_updates=False),
    lambda y: pt.flip(pt.flip(y, 0), 0),
)


def _same(number: int, y: Any) -> Any:
    return SAME[number % len(SAME)](y)


def substituted(c: Checked) -> Iterator[Finding]:
    """``givens`` puts expressions in the place of inputs, of inputs whose sizes are known, and of a value."""
    if any(x.shared for x in c.program.inputs):
        return

    def run() -> list[Any]:
        pairs, inputs = {}, []
        for number, x in enumerate(c.program.inputs):
            v = c.built.variables[x.name]
            if not x.generator and x.value.ndim and x.value.shape[0]:
                static = x.value.shape if number % 2 else x.static
                y = pt.tensor(x.name, dtype=str(x.value.dtype), shape=static)
                pairs[v] = _same(number + len(c.program.steps), y)
                v = y
            inputs.append(v)
        made = [c.built.variables[name] for step in c.program.steps for name in step.names]
        if c.error is None:
            v = made[len(made) // 2]
            value = interpret([v], known(c.built))[v]
            if v.owner is not None and np.ndim(value) and len(value):
                pairs[v] = _same(len(made), graphc.graph_replace(v, pairs, strict=False))
        options = {"givens": pairs, "rebuild_strict": False, "on_unused_input": "ignore"}
        try:
            f = graphc.function(inputs, c.built.outputs, mode="fast_run", **options)
        except (TypeError, ValueError) as error:
            if "static" in str(error) or "known" in str(error):  # an axis that must be known to be 1
                return [e.value for e in c.expected]
            raise
        return c.call(f)

    yield from c.compare("substituted", run)


# Batch axes, and whether their sizes are known: fewer rows than a vector has lanes, and more.
BATCHES: tuple[tuple[tuple[int, ...], bool], ...] = (
    ((2,), False),
    ((3,), False),
    ((5,), True),
    ((1,), True),
    ((2, 3), False),
)


def vectorized(c: Checked) -> Iterator[Finding]:
    """`vectorize_graph` gives an input, or all of them, more axes; each row of results is that of its values.

    The other rows have other values, where the program takes these.
    """
    inputs = [x for x in c.program.inputs if not x.shared and not x.generator and x.value.dtype.kind in "fc"]
    unfit = any(x.generator or x.shared for x in c.program.inputs)
    if c.error is not None or not inputs or unfit:
        return
    number = len(c.program.steps)
    chosen = inputs if number % 3 == 0 else [inputs[number % len(inputs)]]
    batch, is_known = BATCHES[(number + len(inputs)) % len(BATCHES)]
    count = int(np.prod(batch))
    place = count - 1
    differ = _takes_others(c, chosen, range(-place, 0))
    pairs, many = {}, {}
    for x in chosen:
        old = c.built.variables[x.name]
        static = batch if is_known else (None,) * len(batch)
        pairs[old] = pt.tensor("many", dtype=old.type.dtype, shape=(*static, *x.static))
        rows = [_turned(x.value, k - place) if differ else x.value for k in range(count)]
        many[old] = np.stack(rows).reshape(*batch, *x.value.shape)

    def run() -> list[Any]:
        outputs = graphc.vectorize_graph(c.targets, pairs)
        inputs = [pairs.get(v, v) for v in c.built.inputs]
        mode = "fast_run" if number % 2 else "fast_compile"
        f = graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        given = zip(c.built.inputs, arguments(c.program), strict=True)
        try:
            results = f(*(many.get(v, value) for v, value in given))
        except Exception:
            if any("ifelse" in step.text for step in c.program.steps):
                return [
                    e.value for e in c.expected
                ]  # batches of conditions compute both sides, and check them
            raise
        # What does not depend on the input has no new axis.
        return [
            y[np.unravel_index(place, batch)] if out.type.ndim > v.type.ndim else y
            for y, out, v in zip(results, outputs, c.targets, strict=True)
        ]

    yield from c.compare("vectorized", run)


def _turned(value: np.ndarray, by: int) -> np.ndarray:
    """An array of the same numbers in another order; a number of the same kind."""
    return np.roll(value, by) if value.ndim else (value * 0.5**by).astype(value.dtype)


def _takes_others(c: Checked, chosen: list[Input], turns: range) -> bool:
    """Whether the program computes arrays of the same shapes of other values: a batch's rows are alike."""
    shapes = {v: np.shape(value) for v, value in interpret(c.targets, known(c.built)).items()}
    for by in turns:
        others = {c.built.variables[x.name]: _turned(x.value, by) for x in chosen}
        try:
            found = interpret(c.targets, known(c.built) | others)
        except Exception:
            return False
        if any(np.shape(value) != shapes.get(v) for v, value in found.items()):
            return False
    return True


def resized(c: Checked) -> Iterator[Finding]:
    """Inputs with known sizes are replaced by others of unknown size, whose values have other sizes."""
    sizes = {size for x in c.program.inputs for size in x.static if size is not None and size > 1}
    if not sizes or any(x.shared or x.generator for x in c.program.inputs):
        return
    for change in (lambda s: 2 * s, lambda s: s + 1):
        other = replace(
            loosened(c.program),
            inputs=tuple(
                replace(x, value=np.resize(x.value, [change(s) if s in sizes else s for s in x.value.shape]))
                for x in loosened(c.program).inputs
            ),
        )
        try:
            direct = Checked(other)
        except Exception:
            continue
        if direct.error is None:
            yield from direct.compare("resized", partial(_or_refused, direct, c, other))


def _or_refused(direct: Checked, c: Checked, other: Program) -> list[Any]:
    """Results, or what is expected where sizes that were built in are noticed."""
    try:
        return _replaced(c, other, other)
    except (ValueError, TypeError, IndexError):
        return [e.value for e in direct.expected]

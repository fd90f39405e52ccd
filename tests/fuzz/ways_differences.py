# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of a real loss agree with differences, where these agree with each other.

The convention is that of `graphc.grad`: for ``z = a + ib`` the gradient is ``dL/da + i dL/db``, so that the
loss changes by the real part of ``conj(gradient) * direction``. Directions are real, imaginary and both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from checked import Checked, Finding, known, said
from judging import Expectation, expected, interpret

import graphc
import graphc.tensor as pt
from graphc.errors import NullTypeGradError, UndefinedGradientError
from graphc.graph.traversal import ancestors

# Ops whose derivative is not that of their value, on purpose.
CHANGED = {"DisconnectedGrad", "ZeroGrad", "UndefinedGrad", "GradClip", "GradScale", "_Identity"}
WIDE = ("float64", "complex128")
NARROW = ("float16", "float32", "complex64")
STEPS = (1e-4, 1e-5)


def sloped(c: Checked) -> Iterator[Finding]:
    """The gradient of a loss of all results, as written and compiled."""
    xs = [x for x in c.program.inputs if str(x.value.dtype) in WIDE and not x.shared and not x.generator]
    exact = {c.built.variables[name] for step in c.program.steps if step.exact for name in step.names}
    ys = [y for y in c.built.outputs if y.type.dtype in WIDE and y.owner is not None]
    # The graph as written is no measure of lines that overflow or cancel, nor of their slopes.
    ys = [y for y in ys if exact.isdisjoint(ancestors([y]))]
    if c.error is not None or not xs or not ys or any(x.value.size == 0 for x in xs):
        return
    if any(v.owner is not None and _has_another_slope(v.owner.op) for v in ancestors(ys)):
        return
    if any(getattr(v.type, "dtype", "") in NARROW for v in ancestors(ys)):
        return  # steps are rounded away
    wrt = [c.built.variables[x.name] for x in xs]
    try:
        loss = _loss(c, ys)
        slopes = list(graphc.grad(loss, wrt, disconnected_inputs="ignore"))
        found = expected([loss, *slopes], known(c.built))
    except (UndefinedGradientError, NullTypeGradError, NotImplementedError, np.linalg.LinAlgError):
        return
    except Exception as error:
        yield Finding("sloped", "error", said(error))
        return
    if np.isfinite(found[0].value):
        yield from _against_differences(c, loss, slopes, wrt, found)
    yield from _compiled(c, slopes, found[1:])


def _has_another_slope(op: Any) -> bool:
    """Whether the derivative of an op is not that of its values: at ties, all elements have an extreme's."""
    return type(op).__name__ in CHANGED or getattr(op, "kind", "") in ("max", "min")


def _loss(c: Checked, ys: Sequence[Any]) -> Any:
    """A sum of real and imaginary parts with random weights."""
    rng, total = np.random.default_rng(0), pt.constant(0.0)
    values = {v: e.value for v, e in zip(c.targets, c.expected, strict=True)}
    for y in dict.fromkeys(ys):
        parts = [pt.real(y), pt.imag(y)] if y.type.dtype == "complex128" else [y]
        for part in parts:
            total = total + (part * pt.constant(rng.uniform(0.5, 1.5, values[y].shape))).sum()
    return total


def _against_differences(
    c: Checked, loss: Any, slopes: Sequence[Any], wrt: Sequence[Any], found: Sequence[Expectation]
) -> Iterator[Finding]:
    chooses = any(getattr(v.type, "dtype", "") == "bool" for v in ancestors([loss]))
    if not all(e.comparable and np.isfinite(e.value).all() for e in found):
        return  # a root of 0 on the way, whose slope is infinite
    for name, parts in (("real", (1, 0)), ("imaginary", (0, 1)), ("complex", (1, 1))):
        said = [_difference(c, loss, wrt, found[1:], parts, np.random.default_rng(seed)) for seed in (1, 2)]
        # Bends of one direction may be small by chance.
        if all(said) and chooses:
            # At a tie, as of |z| > |w| at z = w = 2, all neighbours may be on the other side.
            beside = [_beside(c, slopes, wrt, parts, seed) for seed in (1, 2)]
            said = [
                _difference(c, loss, wrt, near, parts, np.random.default_rng(seed))
                for near, seed in zip(beside, (1, 2), strict=True)
            ]
        if all(said):
            yield Finding("sloped", "mismatch", f"{name} direction: {said[0]}")
            return


def _difference(
    c: Checked,
    loss: Any,
    wrt: Sequence[Any],
    slopes: Sequence[Expectation],
    parts: tuple[int, int],
    rng: np.random.Generator,
) -> str:
    """How the slope in a random direction differs from differences, or an empty text."""
    values = known(c.built)
    directions = _directions(values, wrt, parts, rng)
    if not any(np.any(d) for d in directions.values()):
        return ""
    change = _change(loss, values, directions)
    if change is None:
        return ""
    slope, error = change
    terms = [np.real(np.conj(e.value) * directions[x]) for x, e in zip(wrt, slopes, strict=True)]
    got = float(sum(term.sum() for term in terms))
    size = max(abs(slope), float(sum(np.abs(term).sum() for term in terms)))
    noise = float(sum((e.tolerance * np.abs(directions[x])).sum() for x, e in zip(wrt, slopes, strict=True)))
    if abs(got - slope) <= 10 * error + 1e-4 * size + noise + 1e-7:
        return ""
    return f"{got!r}, differences give {slope!r} with an error of {error:.1e}"


def _directions(
    values: Mapping[Any, Any], wrt: Sequence[Any], parts: tuple[int, int], rng: np.random.Generator
) -> dict[Any, np.ndarray]:
    """A random direction for each input."""
    directions = {}
    for x in wrt:
        # Beside numbers that are small, a step is small, too.
        size = min(1.0, float(np.abs(values[x]).max(initial=0.0)) or 1.0)
        re, im = (part * size * rng.normal(size=values[x].shape) for part in parts)
        directions[x] = re + 1j * im if x.type.dtype == "complex128" else re
    return directions


def _beside(
    c: Checked, slopes: Sequence[Any], wrt: Sequence[Any], parts: tuple[int, int], seed: int
) -> list[Expectation]:
    """The slopes one step aside."""
    values = known(c.built)
    directions = _directions(values, wrt, parts, np.random.default_rng(seed))
    return expected(slopes, {**values, **{x: _step(values[x], STEPS[-1] * d) for x, d in directions.items()}})


def _change(
    loss: Any, values: Mapping[Any, Any], directions: Mapping[Any, np.ndarray]
) -> tuple[float, float] | None:
    """The change of a loss in a direction and its error; None where differences do not agree."""
    at_zero, found = _moved(loss, values, directions, 0.0), []
    for step in STEPS:
        ahead, back = (_moved(loss, values, directions, sign * step) for sign in (1, -1))
        if not np.isfinite([ahead, back]).all():
            return None
        found.append(((ahead - back) / (2 * step), (ahead - at_zero) / step, (at_zero - back) / step))
    (wide, *far), (narrow, *near) = found
    rounding = 1e-15 * abs(at_zero) / STEPS[-1]
    error = abs(wide - narrow) + rounding
    size = max(abs(narrow), 1e-3 * abs(at_zero), 1e-6)
    # Where there is a bend, slopes to both sides stay apart as steps get smaller.
    smooth = abs(near[0] - near[1]) <= 0.3 * abs(far[0] - far[1]) + 100 * rounding
    return (narrow, error) if smooth and error <= 1e-3 * size else None


def _moved(loss: Any, values: Mapping[Any, Any], directions: Mapping[Any, np.ndarray], step: float) -> float:
    moved = {**values, **{x: _step(values[x], step * d) for x, d in directions.items()}}
    try:
        with np.errstate(all="ignore"):
            return float(interpret([loss], moved)[loss])
    except Exception:
        return float("nan")


def _step(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    """x + d; parts that stay keep the signs of zeros, which choose a side of a branch cut."""
    if x.dtype.kind != "c":
        return x + d
    moved = np.array(x)
    for part in ("real", "imag"):
        if np.any(getattr(d, part)):
            setattr(moved, part, getattr(x, part) + getattr(d, part))
    return moved


def _compiled(c: Checked, slopes: Sequence[Any], found: Sequence[Expectation]) -> Iterator[Finding]:
    """Compiled code has the gradient's value."""
    try:
        f = graphc.function(c.built.inputs, slopes, mode="fast_run", on_unused_input="ignore")
        results = c.call(f)
    except Exception as error:
        yield Finding("sloped", "error", said(error))
        return
    for x, want, got in zip(c.program.inputs, found, results, strict=False):
        difference = want.difference(got)
        if difference:
            yield Finding("sloped", "mismatch", f"gradient {x.name} compiled: {difference}")
            return

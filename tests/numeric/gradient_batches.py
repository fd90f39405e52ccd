# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of several expressions against finite differences, compiled as one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import graphc
import graphc.tensor as pt
from graphc.gradient.verify import _projection, _symbolic_projection, _worst

Case = tuple[Callable[..., Any], Sequence[Any]]
STEP, TOLERANCE, PROJECTIONS = 1e-5, 1e-4, 2


def verify_grads(cases: Mapping[str, Case], mode: Any = None, seed: int = 0) -> None:
    """What `graphc.verify_grad` does for each case, at the price of one compilation.

    The points of all cases move at once: no case has an input of another one.

    Args:
        cases: expressions by name, and the float64 arrays at which they are differentiated.
        mode: mode of the compiled function.
        seed: of the random projections.

    Raises:
        AssertionError: naming each case with an element that is wrong, and the worst one of those.
    """
    rng = np.random.default_rng(seed)
    batch = [_Member(name, function, points) for name, (function, points) in cases.items()]
    inputs = [x for member in batch for x in member.inputs]
    points = [p for member in batch for p in member.points]
    values = graphc.function(inputs, [y for member in batch for y in member.outputs], mode="reference")
    for member, found in zip(batch, _parts(values(*points), [len(m.outputs) for m in batch]), strict=True):
        member.weigh([value.shape for value in found])
    weights = [w for member in batch for w in member.weights]
    results = [y for member in batch for y in (*member.outputs, *member.gradients())]
    f = graphc.function([*inputs, *weights], results, mode=mode, on_unused_input="ignore")
    for _ in range(PROJECTIONS):
        for member in batch:
            member.draw(rng)
        errors = _compare(batch, f)
        assert not errors, "\n".join(errors)


def _compare(batch: Sequence[_Member], f: Callable[..., Any]) -> list[str]:
    """What is wrong with the derivatives of the weighted sums of outputs."""
    points = [p for member in batch for p in member.points]
    drawn = [w for member in batch for w in member.drawn]
    counts = [len(member.outputs) + len(member.inputs) for member in batch]

    def run(moved: Sequence[np.ndarray]) -> list[list[Any]]:
        return _parts(f(*moved, *drawn), counts)

    analytic = [found[len(m.outputs) :] for m, found in zip(batch, run(points), strict=True)]
    numeric = _differences(batch, run)
    return [
        f"{member.name}: {error}"
        for member, a, n in zip(batch, analytic, numeric, strict=True)
        if (error := _worst(a, n, (TOLERANCE, TOLERANCE))) is not None
    ]


class _Member:
    """One case: its variables, and the weights of its outputs."""

    def __init__(self, name: str, function: Callable[..., Any], points: Sequence[Any]) -> None:
        self.name = name
        self.points = [np.array(p) for p in points]
        assert all(p.dtype == np.float64 for p in self.points), name
        self.inputs = [pt.as_tensor_variable(p).type(f"{name}, input {i}") for i, p in enumerate(self.points)]
        made = function(*self.inputs)
        self.outputs = list(made) if isinstance(made, list | tuple) else [made]
        self.weights: list[Any] = []
        self.drawn: list[np.ndarray] = []

    def weigh(self, shapes: Sequence[tuple[int, ...]]) -> None:
        # One each for real and imaginary parts.
        self.weights = [pt.tensor(dtype="float64", shape=shape) for shape in shapes for _ in range(2)]

    def draw(self, rng: np.random.Generator) -> None:
        # Away from zero, where a wrong gradient could hide.
        self.drawn = [rng.random(w.type.shape) + 0.5 for w in self.weights]

    def gradients(self) -> list[Any]:
        pairs = zip(self.outputs, self.weights[::2], self.weights[1::2], strict=True)
        cost: Any = sum(_symbolic_projection(y, pair) for y, *pair in pairs)
        return list(graphc.grad(cost, self.inputs, disconnected_inputs="ignore"))

    def project(self, values: Sequence[Any]) -> float:
        pairs = [list(pair) for pair in zip(self.drawn[::2], self.drawn[1::2], strict=True)]
        return _projection(values[: len(self.outputs)], pairs)


def _differences(
    batch: Sequence[_Member], run: Callable[[Sequence[np.ndarray]], list[list[Any]]]
) -> list[list[np.ndarray]]:
    """Central differences of the projections, for each input of each case."""
    places = [[(i, k) for i, p in enumerate(m.points) for k in np.ndindex(*p.shape)] for m in batch]
    numeric = [[np.zeros(p.shape) for p in member.points] for member in batch]
    for turn in range(max(map(len, places))):
        ends = []
        for sign in (STEP, -STEP):
            moved = [[p.copy() for p in member.points] for member in batch]
            for points, own in zip(moved, places, strict=True):
                if turn < len(own):
                    points[own[turn][0]][own[turn][1]] += sign
            found = run([p for points in moved for p in points])
            ends.append((moved, [m.project(values) for m, values in zip(batch, found, strict=True)]))
        for number, own in enumerate(places):
            if turn < len(own):
                i, k = own[turn]
                (above, high), (below, low) = ends
                distance = above[number][i][k] - below[number][i][k]
                numeric[number][i][k] = (high[number] - low[number]) / distance
    return numeric


def _parts(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """A list taken apart into lists of the given lengths."""
    rest = iter(values)
    return [[next(rest) for _ in range(count)] for count in counts]

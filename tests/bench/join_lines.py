# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workloads with joins, each written once like those of `cases.py`.

The namespace `m` has `concatenate` and `gradients` too: the gradients of a function's value by its arguments.
NumPy's is None, and the gradient is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from cases import Case

ELEMENTS = 1000  # float64 of each operand
SIZES = (64, 48, 96, 32, 64, 40, 24, 80, 16, 32, 10)  # layers of the model: 20 parameter arrays
BATCH = 32


def _operands(count: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(np.random.default_rng(count).standard_normal((count, ELEMENTS)))


def doubled(m: Any, *xs: Any) -> Any:
    """The operands, times 2 plus 1, one after the other."""
    return m.concatenate([x * 2 + 1 for x in xs])


def tanh(m: Any, *xs: Any) -> Any:
    """Their hyperbolic tangents."""
    return m.concatenate([m.tanh(x) for x in xs])


def model_inputs() -> tuple[Any, ...]:
    """Data, targets, and weights and biases of each layer."""
    rng = np.random.default_rng(8)
    parameters = []
    for n, k in pairwise(SIZES):
        parameters += [rng.standard_normal((n, k)) / np.sqrt(n), 0.1 * rng.standard_normal(k)]
    return rng.standard_normal((BATCH, SIZES[0])), rng.standard_normal((BATCH, SIZES[-1])), *parameters


def flat_gradient(m: Any, x: Any, t: Any, *parameters: Any) -> Any:
    """The gradient of a perceptron's squared error by all its parameters, as one vector."""

    def loss(*parameters: Any) -> Any:
        h = x
        for i in range(0, len(parameters), 2):
            h = m.dot(h, parameters[i]) + parameters[i + 1]
            h = m.tanh(h) if i + 2 < len(parameters) else h
        return ((h - t) ** 2).sum()

    gradients = _by_hand(x, t, parameters) if m.gradients is None else m.gradients(loss, *parameters)
    return m.concatenate([g.ravel() for g in gradients])


def _by_hand(x: Any, t: Any, parameters: tuple[Any, ...]) -> list[Any]:
    layers = [x]
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        layers.append(np.tanh(layers[-1] @ w + b))
    layers[-1] = layers[-2] @ parameters[-2] + parameters[-1]
    gradients: list[Any] = []
    d = 2 * (layers[-1] - t)
    for i in reversed(range(len(parameters) // 2)):
        gradients[:0] = [layers[i].T @ d, d.sum(axis=0)]
        d = (d @ parameters[2 * i].T) * (1 - layers[i] ** 2)
    return gradients


def _lines(name: str, what: str, expression: Any, lead: tuple[tuple[str, float], ...]) -> list[Case]:
    return [
        Case(
            f"{name}{count}", f"join of {count} times {what}, {ELEMENTS:,} float64 each", "us",
            _operands(count), expression, lead=lead,
        )
        for count in (2, 4, 8)
    ]  # fmt: skip


CASES = [
    *_lines("join", "`x * 2 + 1`", doubled, (("pytensor", 5.0), ("jax", 5.0))),
    *_lines("join_tanh", "`tanh(x)`", tanh, (("pytensor", 1.0), ("jax", 1.0))),
    Case(
        "flat_gradient", "flattened gradient by 20 parameter arrays", "us", model_inputs, flat_gradient,
        lead=(("pytensor", 1.0), ("jax", 1.0)),
    ),
]  # fmt: skip

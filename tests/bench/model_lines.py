# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose intermediate values take more memory than their parameters: time, and peak of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case

LAYERS, WIDTH, BATCH = 8, 256, 512


def _inputs() -> tuple[Any, ...]:
    """Data, targets, and weights and bias of each layer."""
    rng = np.random.default_rng(5)
    parameters = []
    for _ in range(LAYERS):
        parameters += [rng.standard_normal((WIDTH, WIDTH)) / 16, 0.1 * rng.standard_normal(WIDTH)]
    return rng.standard_normal((BATCH, WIDTH)), rng.standard_normal((BATCH, WIDTH)), *parameters


def loss(m: Any, x: Any, t: Any, *parameters: Any) -> Any:
    """The squared error of a perceptron with tanh after all layers but the last."""
    h = x
    for i in range(0, len(parameters), 2):
        h = m.dot(h, parameters[i]) + parameters[i + 1]
        h = m.tanh(h) if i + 2 < len(parameters) else h
    return ((h - t) ** 2).sum()


CASES = [
    Case(
        "perceptron", f"perceptron, {LAYERS} layers of {WIDTH}, batch {BATCH}: loss and gradient", "us",
        _inputs, loss, lead=(("pytensor", 1.0), ("jax", 1.0)), series=(), wrt=tuple(range(2, 2 + 2 * LAYERS)),
        value=True, memory_lead=(("pytensor", 2.0), ("jax", 1.0)),
    ),
    # Three arrays of a layer's size: a product reads two of them and makes the third.
    Case(
        "perceptron_budget", "the same with `memory_budget=\"3.65 MB\"`", "us",
        _inputs, loss, lead=(("pytensor", 1.0),), series=(), wrt=tuple(range(2, 2 + 2 * LAYERS)),
        value=True, memory_lead=(("pytensor", 2.0), ("jax", 1.0)), budget="3.65 MB",
    ),
]  # fmt: skip

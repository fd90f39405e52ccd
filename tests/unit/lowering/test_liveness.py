# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of a function's operations keeps little memory in use."""

from __future__ import annotations

import numpy as np

import graphc
import graphc.tensor as pt

ROWS, WIDTH, LAYERS = 64, 32, 6
LAYER_BYTES = ROWS * WIDTH * 8


def perceptron(*, static: bool):
    shape, square = ((ROWS, WIDTH), (WIDTH, WIDTH)) if static else ((None, None), (None, None))
    x = pt.tensor("x", dtype="float64", shape=shape)
    weights = [pt.tensor(f"w{i}", dtype="float64", shape=square) for i in range(LAYERS)]
    h = x
    for i, w in enumerate(weights):
        h = pt.tanh(h @ w) if i < LAYERS - 1 else h @ w
    cost = (h**2).sum()
    return [x, *weights], [cost, *graphc.grad(cost, weights)]


def arguments(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.normal(size=(ROWS, WIDTH)), *rng.normal(size=(LAYERS, WIDTH, WIDTH)) / 4]


def test_a_backward_pass_keeps_the_activations_and_two_more():
    inputs, outputs = perceptron(static=False)
    f = graphc.function(inputs, outputs)
    values = arguments(np.random.default_rng(0))
    # What the backward pass reads of each hidden layer, the cotangent of one layer and that of the next.
    assert f.memory_plan(*values).peak <= (LAYERS - 1 + 2) * LAYER_BYTES + 4096
    reference = graphc.function(inputs, outputs, mode="reference")
    for got, expected in zip(f(*values), reference(*values), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_known_sizes_make_no_difference():
    values = arguments(np.random.default_rng(1))
    known = graphc.function(*perceptron(static=True))
    unknown = graphc.function(*perceptron(static=False))
    assert known.memory_plan(*values).peak <= unknown.memory_plan(*values).peak


def test_a_long_chain_of_independent_results_is_done_in_order():
    x = pt.dvector("x")
    parts = [pt.tanh(x * float(i)) for i in range(1, 5)]
    outputs = [(p @ p) * 2.0 for p in parts]
    f = graphc.function([x], outputs)
    value = np.linspace(-1, 1, 1000)
    for i, got in enumerate(f(value), 1):
        np.testing.assert_allclose(got, 2 * np.sum(np.tanh(value * i) ** 2), rtol=1e-12)

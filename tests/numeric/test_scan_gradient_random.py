# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of random loops: first to third, forward and reverse, batched and one by one."""

from __future__ import annotations

import numpy as np
import pytest
from fuzzing import some
from gradient_batches import verify_grads
from scan_programs import random_program

import graphc
import graphc.tensor as pt
from graphc.gradient import jacobian, verify_grad

pytestmark = pytest.mark.fuzz
IGNORE = {"disconnected_inputs": "ignore"}


def derivative(program, order):
    """``program`` for order 1; else the gradient of a scalar made of the derivative of the order below."""
    if order == 1:
        return program

    def gradient(*inputs):
        values = derivative(program, order - 1)(*inputs)
        cost = sum((pt.sum(y**2) for y in values), pt.constant(0.0))
        return graphc.grad(cost, list(inputs), **IGNORE)

    return gradient


@pytest.mark.parametrize("seed", some(range(24), 12))
def test_first_derivatives(seed):
    program = random_program(seed)
    verify_grad(program, program.values, mode="reference", n_tests=1)


@pytest.mark.parametrize("first", some(range(0, 24, 6), 2))
def test_compiled_first_derivatives(first):
    programs = {f"seed {seed}": random_program(seed) for seed in range(first, first + 6)}
    verify_grads({name: (program, program.values) for name, program in programs.items()})


@pytest.mark.parametrize("options", [{}, {"rewriting": True}, {"checkpoint": 2}, {"stopping": True}])
@pytest.mark.parametrize("seed", some(range(100, 112), 6))
def test_second_derivatives(seed, options):
    program = random_program(seed, **options)
    verify_grad(derivative(program, 2), program.values, mode="reference", n_tests=1)


@pytest.mark.parametrize("options", [{}, {"rewriting": True}])
@pytest.mark.parametrize("seed", some(range(200, 204), 2))
def test_third_derivatives(seed, options):
    program = random_program(seed, max_steps=3, **options)
    verify_grad(derivative(program, 3), program.values, mode="reference", n_tests=1)


@pytest.mark.parametrize("seed", some(range(300, 320), 10))
def test_rows_that_are_rewritten(seed):
    program = random_program(seed, rewriting=True)
    verify_grad(program, program.values, mode="reference", n_tests=1)


@pytest.mark.parametrize("seed", some(range(400, 410), 5))
def test_checkpoints_change_nothing(seed):
    gradients = []
    for checkpoint in (None, 1, 2, 3, 10):
        program = random_program(seed, max_steps=7, checkpoint=checkpoint)
        inputs = [pt.as_tensor_variable(v).type() for v in program.values]
        cost = sum((pt.sum(y**2) for y in program(*inputs)), pt.constant(0.0))
        f = graphc.function(
            inputs, graphc.grad(cost, inputs, **IGNORE), mode="reference", on_unused_input="ignore"
        )
        gradients.append(f(*program.values))
    for plain, *checkpointed in zip(*gradients, strict=True):
        for other in checkpointed:
            np.testing.assert_allclose(other, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rewriting", [False, True])
@pytest.mark.parametrize("seed", some(range(500, 515), 8))
def test_forward_and_reverse_mode_are_transposes(seed, rewriting):
    program = random_program(seed, rewriting=rewriting)
    inputs = [pt.as_tensor_variable(v).type() for v in program.values]
    tangents = [x.type() for x in inputs]
    y = pt.concatenate([pt.reshape(y, (-1,)) for y in program(*inputs)])
    cotangent = y.type()
    back = graphc.pullback(y, inputs, cotangent, **IGNORE)
    products = [sum((pt.sum(g * t) for g, t in zip(back, tangents, strict=True)), pt.constant(0.0))]
    for direct in (True, False):
        forward = graphc.pushforward(
            y, inputs, tangents, disconnected_outputs="ignore", use_op_pushforward=direct
        )
        products.append((forward * cotangent).sum())
    options = {"mode": "reference", "on_unused_input": "ignore"}
    size = graphc.function(inputs, y.shape[0], **options)(*program.values)
    rng = np.random.default_rng(seed)
    directions = [rng.normal(size=v.shape) for v in program.values]
    f = graphc.function([*inputs, *tangents, cotangent], products, **options)
    found = f(*program.values, *directions, rng.normal(size=size))
    np.testing.assert_allclose(found[1:], found[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", some(range(600, 615), 8))
def test_batched_jacobians_agree_with_one_gradient_a_row(seed):
    program = random_program(seed, max_steps=3, checkpoint=(None, 2)[seed % 2])
    inputs = [pt.as_tensor_variable(v).type() for v in program.values]
    y = pt.concatenate([pt.reshape(y, (-1,)) for y in program(*inputs)])
    options = {"mode": "reference", "on_unused_input": "ignore"}
    size = int(graphc.function(inputs, y.shape[0], **options)(*program.values))
    if not size:
        return
    y = pt.specify_shape(y, (size,))
    both = [jacobian(y, inputs, vectorize=vectorize, **IGNORE) for vectorize in (True, False)]
    found = graphc.function(inputs, [*both[0], *both[1]], **options)(*program.values)
    for batched, single in zip(found[: len(inputs)], found[len(inputs) :], strict=True):
        np.testing.assert_allclose(batched, single, rtol=1e-9, atol=1e-12)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Queues: what they launch and when, how they are found again, and errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from graphc.immediate import Environment


@pytest.fixture
def env():
    return Environment(lazy=True, full_tracing=True)


def launches(env):
    return [event.operations for event in env.trace()]


def test_operations_wait_until_a_value_is_needed(env):
    x = env.as_tensor([1.0, 2.0])
    y = env.exp(x) * 2 + 1
    assert launches(env) == [] and len(env._queue) == 3
    assert y.dtype == "float64" and y.ndim == 1 and launches(env) == []
    np.testing.assert_allclose(np.asarray(y), np.exp([1, 2]) * 2 + 1)
    assert launches(env) == [3] and len(env._queue) == 0
    assert y.shape == (2,) and launches(env) == [3]


def test_queueing_costs_few_calls(env):
    """The token of a tensor that waits says all: no view is looked for, and no exception raised."""
    x, raised, calls = env.as_tensor([1.0, 2.0]), [], []
    y = x * 2 + x
    (y * x - y) * 0.5  # traces the operations

    def look(frame, event, argument):
        if event == "call" and frame.f_code.co_name in ("_refresh", "is_stale"):
            calls.append(frame.f_code.co_name)

    def trace(frame, event, argument):
        if event == "exception":
            raised.append(argument[0])
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    sys.setprofile(look)
    y = (y * x - y) * 0.5
    sys.setprofile(None)
    sys.settrace(before)
    assert len(env._queue) == 8 and calls == [] and raised == []
    np.testing.assert_array_equal(y.__array__(), [0.0, 3.0])


@pytest.mark.parametrize("need", [np.asarray, repr, bool, len, lambda x: x.shape, lambda x: x.env.flush()])
def test_what_needs_a_value(env, need):
    y = env.as_tensor([1.0]) + 1
    need(y)
    assert launches(env) == [1]


def test_only_what_somebody_holds_is_computed(env):
    x = env.as_tensor([1.0, 2.0])
    env.exp(x)
    held, y = x * 3, x + 1
    y = y * 2
    assert y.tolist() == [4, 6]
    assert launches(env) == [3]
    assert held.tolist() == [3, 6] and launches(env) == [3]
    env.tanh(x)
    env.flush()
    assert launches(env) == [3]


def test_a_repeated_loop_body_compiles_once(env):
    h = env.as_tensor(np.zeros(3))
    for k in range(6):
        for _ in range(4):
            h = env.tanh(h * 0.5 + k)
        float(h[0])
    info = env.cache_info()
    assert len(env.trace()) == 6
    queues = [key for key in env._cache._entries if key[0] == "queue"]
    assert len(queues) == 1 and info.evictions == 0


def test_the_queue_is_bounded():
    env = Environment(lazy=True, full_tracing=True, queue_size=10)
    h = env.as_tensor([0.0, 1.0])
    for _ in range(35):
        h = h + 1
    assert launches(env) == [10, 10, 10] and h.tolist() == [35, 36] and launches(env) == [10, 10, 10, 5]


def test_queues_of_different_inputs_are_different(env):
    a, b = env.as_tensor([1.0, 2.0]), env.as_tensor([5.0, 7.0])
    assert (a - b).tolist() == [-4, -5] and (b - a).tolist() == [4, 5]
    assert (a - a).tolist() == [0, 0] and (a * b - a).tolist() == [4, 12] and (a * b - b).tolist() == [0, 7]
    assert env.as_tensor([[1.0, 2.0]]).T.tolist() == [[1], [2]]


def test_a_size_of_1_that_shows_late_broadcasts(env):
    x = env.as_tensor(np.arange(6.0).reshape(3, 2))
    y = x[:1] + x
    assert y.tolist() == [[0, 2], [2, 4], [4, 6]]


def test_an_error_belongs_to_its_operation(env):
    x = env.as_tensor([1.0, 2.0, 3.0])
    wrong = x + env.as_tensor([1.0, 2.0])
    after = wrong * 2
    right = x * 2
    with pytest.raises(ValueError, match="3 and 2") as caught:
        after.tolist()
    assert any("queued at" in note and "test_lazy.py" in note for note in caught.value.__notes__)
    assert right.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="3 and 2"):
        wrong.tolist()
    with pytest.raises(ValueError, match="3 and 2"):
        wrong + 1
    assert (x + 1).tolist() == [2, 3, 4]


def test_arrays_may_change_after_they_were_used(env):
    a = np.ones(3)
    y = env.exp(env.as_tensor([0.0, 0, 0])) + a
    a[:] = 100
    assert y.tolist() == [2, 2, 2]


def test_many_operations_agree_with_numpy(env):
    def program(x):
        h = x
        for k in range(25):
            h = (h * 1.01 + 0.5 - x) * (0.9 + 0.001 * k)
        return h

    a = np.linspace(-1, 1, 1001)
    np.testing.assert_allclose(np.asarray(program(env.numpy_to_tensor(a))), program(a), rtol=1e-12)
    assert launches(env) == [100]


@pytest.mark.parametrize("extra", [0, 1, 4])
def test_a_loop_that_reads_nothing_repeats_few_launches(extra):
    """Whatever the number of operations in a body, full queues end at the same place of an iteration."""
    env = Environment(lazy=True, full_tracing=True, queue_size=32)
    a = np.linspace(-1, 1, 5)
    x, kept = env.numpy_to_tensor(a), []

    def body(m, h, k):
        y = m.tanh(h * 0.5 + k)
        for _ in range(extra):
            y = y * 0.9
        return m.exp(-y * y) + h * 0.1, y

    h, expected, values = x, a, []
    for k in range(60):
        h, y = body(env, h, k * 0.01)
        expected, value = body(np, expected, k * 0.01)
        if k % 20 == 7:
            kept.append(y)
            values.append(value)
    np.testing.assert_allclose(np.asarray(h), expected, rtol=1e-12)
    np.testing.assert_allclose([np.asarray(y) for y in kept], values, rtol=1e-12)
    queues = [key for key in env._cache._entries if key[0] == "queue"]
    # The first launch, the usual one, the end; and those around values that are kept.
    assert len(queues) <= 3 + 2 * len(kept)
    assert len(launches(env)) > len(queues)


def test_errors_pass_on_to_what_stays_in_the_queue():
    env = Environment(lazy=True, full_tracing=True, queue_size=16)
    x = env.as_tensor([1.0, 2.0, 3.0])
    right, wrong = x, x + env.as_tensor([1.0, 2.0])
    for _ in range(4):
        wrong, right = env.exp(wrong * 0.5), env.tanh(right) + 1
    assert 0 < len(env._queue) < 8
    expected = np.array([1.0, 2.0, 3.0])
    for _ in range(4):
        expected = np.tanh(expected) + 1
    with pytest.raises(ValueError, match="3 and 2"):
        wrong.tolist()
    np.testing.assert_allclose(np.asarray(right), expected, rtol=1e-12)

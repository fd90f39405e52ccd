# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys, statistics and the bound of the executables; operations with attributes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.immediate import Environment


def executables(run):
    """How many executables a function of an environment makes."""
    env = Environment(mode="reference")
    run(env)
    return env.cache_info().size


def arrays(*shapes, dtype="float64"):
    return [np.ones(shape, dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("count", "run"),
    [
        (1, lambda env: [env.exp(x) for x in arrays(3, 4, 0, 1)]),
        (2, lambda env: [env.exp(x) for x in arrays(3, (4, 2))]),
        (2, lambda env: [env.exp(x) for x in [*arrays(3), *arrays(3, dtype="float32")]]),
        (2, lambda env: [env.sum(x, axis=axis) for x in arrays((2, 3), (4, 5)) for axis in (0, 1)]),
        (1, lambda env: [env.zeros((n, m)) for n in (2, 3) for m in (0, 4)]),
        (1, lambda env: [env.as_tensor([1.0]) * k for k in (0.5, 1.5, 2.5)]),
        (1, lambda env: [env.arange(n) for n in (3, 4)]),
        (1, lambda env: [env.sum(x, axis=axis) for x in arrays((2, 3)) for axis in ([0, 1], (0, 1))]),
        (1, lambda env: [env.reshape(x, (n, -1)) for x in arrays(12) for n in (2, 3, 4)]),
        # Sizes of 1 count only where they broadcast.
        (1, lambda env: [env.add(*pair) for pair in (arrays(3, 3), arrays(1, 1))]),
        (2, lambda env: [env.add(*pair) for pair in (arrays(3, 3), arrays(3, 1), arrays(4, 1))]),
    ],
)
def test_what_makes_a_new_executable(count, run):
    assert executables(run) == count


def test_statistics_count_every_call():
    env = Environment(mode="reference")
    x = env.as_tensor([1.0, 2.0])
    for _ in range(10):
        x = x + x
    info = env.cache_info()
    assert (info.hits, info.misses, info.evictions, info.size, info.maxsize) == (9, 1, 0, 1, 1024)
    env.cache_clear()
    assert env.cache_info().size == 0
    assert (x + x).shape == (2,)
    assert env.cache_info()[:2] == (0, 1)


def test_the_cache_is_bounded_and_keeps_what_is_used():
    env = Environment(cache_size=3, mode="reference")
    x = env.as_tensor([1.0, 2.0])
    _ = x + x, x * x, x - x
    for _ in range(3):
        x + x
    x / x
    info = env.cache_info()
    assert info.size == 3 and info.evictions == 1
    misses = info.misses
    x + x
    assert env.cache_info().misses == misses, "the operation used last was evicted"
    x * x
    assert env.cache_info().misses == misses + 1
    for axis in range(50):
        env.sum(np.ones((1,) * 8), axis=(axis % 8, -1 - axis % 7) if axis % 7 != 7 - axis % 8 else 0)
    assert env.cache_info().size == 3


def test_operations_have_attributes_and_inputs(env):
    total = env.operation("sum", axis=0)
    assert total(env.as_tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [4, 6]
    assert total(np.ones((3, 2))).tolist() == [3, 3] and total.name == "sum"
    assert env.operation("special.softmax", axis=-1)(np.zeros(2)).tolist() == [0.5, 0.5]
    assert "sum, axis=0" in repr(total)


def test_violations_are_explained(env):
    x = env.as_tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="no operation 'summ'"):
        env.operation("summ")
    with pytest.raises(TypeError, match=r"takes attributes by keyword, got 1 more"):
        env.operation("sum", x)
    with pytest.raises(TypeError, match=r"attribute axis of the operation sum is Tensor.*by position"):
        env.operation("sum", axis=x)
    with pytest.raises(TypeError, match=r"bytearray.*cannot be part of a key"):
        env.operation("sum", axis=bytearray(b"1"))
    with pytest.raises(TypeError, match=r"takes inputs by position, got axis=1 by keyword.*axis=0"):
        env.operation("sum", axis=0)(x, axis=1)
    with pytest.raises(TypeError, match=r"input 1 of the operation add must be a tensor.*'a'"):
        env.operation("add")(x, "a")


def test_eviction_disconnects_operators():
    env = Environment(cache_size=1, mode="reference")
    x = env.as_tensor([1.0])
    for _ in range(3):
        assert (x + x).tolist() == [2] and (x * 3.0).tolist() == [3]
    assert env.cache_info().misses == 6 and env.cache_info().size == 1


def test_the_default_float_is_part_of_the_key():
    env = Environment(mode="reference")
    assert env.zeros(3).dtype == "float64"
    with graphc.config.change_flags(floatX="float32"):
        assert env.zeros(3).dtype == "float32"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random draws: the numbers of NumPy's generators and of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.immediate import Environment


def test_generators_draw_numpys_numbers(gt):
    rng, expected = gt.random.default_rng(1), np.random.default_rng(1)
    for size in (3, 5):
        rng, x = rng.normal(0.5, 2.0, size=size)
        np.testing.assert_array_equal(np.asarray(x), expected.normal(0.5, 2.0, size=size))
    np.testing.assert_array_equal(rng.get_value().random(2), expected.random(2))
    philox = [np.random.Generator(np.random.Philox(2)) for _ in range(2)]
    x = gt.random.normal(gt.as_tensor([0.0, 100.0]), 1.0, rng=gt.random.shared_rng(philox[0]))
    np.testing.assert_array_equal(np.asarray(x), philox[1].normal([0, 100], 1.0))


def test_streams_draw_the_numbers_of_graphs(env):
    stream, symbolic = env.random.RandomStream(5), graphc.tensor.random.RandomStream(5)
    f = graphc.function([], [symbolic.uniform(size=3), symbolic.uniform(size=3)])
    found = [stream.uniform(size=3), stream.uniform(size=3)]
    np.testing.assert_array_equal([np.asarray(x) for x in found], f())
    stream.seed(5)
    np.testing.assert_array_equal(np.asarray(stream.uniform(size=3)), np.asarray(found[0]))


def test_draws_without_a_generator_follow_the_seed(env):
    a, b = Environment(seed=3), Environment(seed=3)
    first, second = (a.random.uniform(size=4) for _ in range(2))
    assert first.tolist() == b.random.uniform(size=4).tolist() != second.tolist()


def test_draws_of_other_sizes_and_parameters_share_an_executable():
    env = Environment(seed=0)
    for scale, size in [(1.0, 3), (2.5, 4)]:
        assert env.random.normal(0.0, scale, size=(size, 2)).shape == (size, 2)
    assert env.cache_info().size == 1


def test_mistakes_are_explained(env):
    with pytest.raises(TypeError, match="default_rng"):
        env.random.normal(rng=np.random.default_rng(1))
    with pytest.raises(TypeError, match="symbolic generator"):
        env.random.rng("rng")
    with pytest.raises(TypeError, match="two environments"):
        env.random.normal(rng=Environment().random.default_rng(1))
    with pytest.raises(ValueError, match="leave rng out"):
        env.random.RandomStream(1).normal(rng=env.random.default_rng(1))


@pytest.mark.parametrize(
    ("name", "parameters", "dtype"),
    [
        ("uniform", (0.0, 9.0), "float32"),
        ("normal", (1.0, 2.0), "float32"),
        ("poisson", (3.0,), "int32"),
        ("bernoulli", (0.4,), "int8"),
    ],
)
def test_draws_have_the_dtype_that_is_asked_for(env, name, parameters, dtype):
    rng = env.random.default_rng(3)
    drawn = getattr(env.random, name)(*parameters, size=4, rng=rng, dtype=dtype)
    generator = graphc.shared(np.random.default_rng(3))
    wanted = getattr(pt.random, name)(*parameters, size=4, rng=generator, dtype=dtype).eval()
    assert drawn.dtype == dtype and np.array_equal(drawn, wanted)

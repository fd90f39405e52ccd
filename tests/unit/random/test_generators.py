# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared generators, streams, and generators as inputs, results and copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.tensor import random
from graphc.tensor.random import (
    RandomGeneratorSharedVariable,
    RandomGeneratorType,
    RandomStream,
    generator_of,
    state_of,
)

BITS = {"PCG64": np.random.PCG64, "Philox": np.random.Philox}


@pytest.mark.parametrize("name", BITS)
def test_a_state_goes_both_ways(name):
    generator = np.random.Generator(BITS[name](3))
    generator.random(dtype=np.float32)
    other = generator_of(state_of(generator))
    np.testing.assert_equal(other.bit_generator.state, generator.bit_generator.state)
    assert other.normal() == generator.normal()


def test_a_shared_generator_gives_and_takes_generators():
    generator = np.random.default_rng(1)
    shared = graphc.shared(generator, name="g")
    assert isinstance(shared, RandomGeneratorSharedVariable)
    assert shared.type == RandomGeneratorType("PCG64") and shared.name == "g"
    assert shared.get_value(borrow=True).normal() == np.random.default_rng(1).normal()
    shared.set_value(np.random.default_rng(8))
    assert shared.get_value().normal() == np.random.default_rng(8).normal()
    shared.set_value(seed=8)
    assert shared.get_value().normal() == np.random.default_rng(8).normal()
    for wrong in ({}, {"new_value": generator, "seed": 8}):
        with pytest.raises(ValueError, match="not both"):
            shared.set_value(**wrong)
    assert generator.normal() == np.random.default_rng(1).normal(), "the given generator is not used up"


@pytest.mark.parametrize("name", BITS)
def test_a_borrowed_generator_is_the_object_itself(name):
    """Given with borrow, it comes back with borrow, in the present state; else it is left alone."""

    def generator(seed):
        return np.random.Generator(BITS[name](seed))

    for give in (lambda g: graphc.shared(g, borrow=True), lambda g: random.shared_rng(g, borrow=True)):
        given = generator(1)
        shared = give(given)
        next_rng, x = shared.normal()
        draw = graphc.function([], x, updates={shared: next_rng})
        expected = generator(1)
        for _ in range(2):
            assert draw() == expected.normal()
            assert shared.get_value(borrow=True) is given
            np.testing.assert_equal(state_of(given), state_of(expected))
            assert shared.get_value() is not given
        other = generator(2)
        shared.set_value(other)
        assert shared.get_value(borrow=True) is not other and shared.get_value(borrow=True) is not given
        shared.set_value(other, borrow=True)
        assert shared.get_value(borrow=True) is other and draw() == generator(2).normal()
        twin = np.random.Generator(other.bit_generator)
        assert shared.type.may_share_memory(shared.get_value(borrow=True), twin)
        assert not shared.type.may_share_memory(shared.get_value(), twin)


def test_wrong_generators_are_refused():
    shared = graphc.shared(np.random.default_rng(1))
    with pytest.raises(TypeError, match="expected a generator over PCG64, got one over Philox"):
        shared.set_value(np.random.Generator(np.random.Philox(1)))
    with pytest.raises(TypeError, match=r"need a numpy\.random\.Generator over PCG64 or Philox"):
        graphc.shared(np.random.Generator(np.random.MT19937(1)))
    with pytest.raises(TypeError, match=r"rng must be a symbolic or shared generator.*share it first"):
        random.normal(rng=np.random.default_rng(1))
    with pytest.raises(TypeError, match="rng must be a symbolic or shared generator"):
        random.normal(rng=pt.dvector())
    with pytest.raises(ValueError, match="must be one of PCG64, Philox"):
        RandomGeneratorType("MT19937")
    with pytest.raises(TypeError, match="cannot be zero"):
        shared.zero()


def test_an_update_moves_the_generator_on():
    rng = graphc.shared(np.random.default_rng(2))
    following, x = random.normal(0, 1, size=3, rng=rng).owner.outputs
    f = graphc.function([], x, updates={rng: following})
    fixed = graphc.function([], x)
    generator = np.random.default_rng(2)
    for _ in range(3):
        np.testing.assert_array_equal(f(), generator.normal(size=3))
    assert f.report.fast_call and not f.report.fallbacks
    np.testing.assert_array_equal(fixed(), fixed())
    np.testing.assert_array_equal(fixed(), generator.normal(size=3))


def test_draws_without_a_generator_differ_from_call_to_call():
    x = random.uniform(size=4)
    f = graphc.function([], x)
    assert not np.array_equal(f(), f())
    g = graphc.function([], random.permutation(50))
    assert sorted(g()) == list(range(50)) and not np.array_equal(g(), g())


def test_a_generator_is_an_input():
    rng = random.rng("rng")
    following, x = rng.normal(0, 1, size=2)
    f = graphc.function([rng], [following, x])
    state, draws = f(np.random.default_rng(5))
    generator = np.random.default_rng(5)
    np.testing.assert_array_equal(draws, generator.normal(size=2))
    np.testing.assert_array_equal(f(state)[1], generator.normal(size=2))
    generator = np.random.default_rng(5)
    generator.normal(size=2)
    assert following.type.generator(state).integers(1000) == generator.integers(1000)
    with pytest.raises(TypeError, match="Philox"):
        f(np.random.Generator(np.random.Philox(5)))


def test_givens_swap_generators():
    rng = graphc.shared(np.random.default_rng(2))
    other = graphc.shared(np.random.default_rng(3))
    x = rng.normal(size=2)[1]
    f = graphc.function([], x, givens={rng: other})
    np.testing.assert_array_equal(f(), np.random.default_rng(3).normal(size=2))
    g = graphc.function([], x).copy(swap={rng: other})
    np.testing.assert_array_equal(g(), np.random.default_rng(3).normal(size=2))


def test_pickles_and_copies_keep_the_state():
    rng = graphc.shared(np.random.default_rng(2))
    following, x = rng.gamma(2.0, size=2)
    f = graphc.function([], x, updates={rng: following})
    f()
    generator = np.random.default_rng(2)
    generator.gamma(2.0, size=2)
    expected = generator.gamma(2.0, size=2)
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        np.testing.assert_array_equal(other(), expected)
    np.testing.assert_array_equal(f(), expected)
    same = pickle.loads(pickle.dumps(rng))
    assert same.type == rng.type and same.get_value().normal() == rng.get_value().normal()
    assert pickle.loads(pickle.dumps(random.normal(rng=rng).owner.op)) == random.normal(rng=rng).owner.op


@pytest.mark.parametrize("tier", ["struct", "buffer", "python"])
def test_all_call_tiers_update_generators(tier, monkeypatch):
    monkeypatch.setenv("GRAPHC_CALL_TIER", tier)
    rng = graphc.shared(np.random.default_rng(2))
    following, x = rng.normal(size=2)
    f = graphc.function([], x, updates={rng: following})
    generator = np.random.default_rng(2)
    for _ in range(2):
        np.testing.assert_array_equal(f(), generator.normal(size=2))


def test_one_generator_twice_gives_the_same_numbers_once():
    rng = graphc.shared(np.random.default_rng(2))
    a, b = random.normal(rng=rng), random.normal(rng=rng)
    f = graphc.function([], [a, b, a - b])
    first, second, difference = f()
    assert first == second and difference == 0


def test_streams_give_pytensors_numbers():
    stream = RandomStream(seed=123)
    x, y = stream.normal(0, 1, size=(3,)), stream.uniform(size=2)
    f = graphc.function([], [x, y])
    children = np.random.SeedSequence(123).spawn(2)
    generators = [np.random.default_rng(child) for child in children]
    for _ in range(2):
        first, second = f()
        np.testing.assert_array_equal(first, generators[0].normal(size=3))
        np.testing.assert_array_equal(second, generators[1].uniform(size=2))
    assert len(stream.state_updates) == 2 == len(stream.updates())
    stream.seed(5)
    child = np.random.SeedSequence(5).spawn(2)[1]
    np.testing.assert_array_equal(f()[1], np.random.default_rng(child).uniform(size=2))


def test_streams_over_philox_and_choices():
    stream = RandomStream(1, rng_ctor=lambda seed: np.random.Generator(np.random.Philox(seed)))
    following, x = stream.gen(random.choice, 5, size=4, return_next_rng=True)
    assert following.type == RandomGeneratorType("Philox")
    (child,) = np.random.SeedSequence(1).spawn(1)
    expected = np.random.Generator(np.random.Philox(child)).choice(5, 4)
    np.testing.assert_array_equal(graphc.function([], x)(), expected)


def test_streams_explain_themselves():
    stream = RandomStream(1)
    with pytest.raises(AttributeError, match="no distribution 'normaal'"):
        _ = stream.normaal
    with pytest.raises(ValueError, match="leave rng out"):
        stream.normal(rng=random.shared_rng(seed=1))
    with pytest.raises(ValueError, match="a generator or a seed"):
        random.shared_rng(np.random.default_rng(1), seed=1)


def test_importing_tensors_loads_no_draws():
    assert "random" not in vars(pt) or pt.random is random

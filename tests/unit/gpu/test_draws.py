# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Uniform numbers of Philox that kernels draw: the numbers of NumPy, and the state after them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulation import Run, generator

import graphc
import graphc.tensor as pt
from graphc_runtime.generators import generator_of, state_of


@pytest.mark.parametrize("skip", range(5))
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (3,), (4,), (5,), (8,), (3, 5), ()])
def test_numbers_and_state(skip: int, shape: tuple[int, ...], ready: Run) -> None:
    """With some numbers of a block of four left, and with none."""
    rng = graphc.shared(generator(skip))
    after, draws = pt.random.uniform(-1, 3, size=shape, rng=rng, return_next_rng=True)
    f = ready(graphc.function([], draws, updates={rng: after}, mode="cuda"))
    assert not f.report.on_host
    expected = generator(skip)
    for _ in range(3):
        np.testing.assert_array_equal(f(), expected.uniform(-1, 3, shape))
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_counters_carry(ready: Run) -> None:
    """From the last counters of one, two and four words to the next ones."""
    rng = graphc.shared(generator())
    after, draws = pt.random.uniform(size=(9,), rng=rng, return_next_rng=True)
    f = ready(graphc.function([], draws, updates={rng: after}, mode="cuda"))
    for words in (1, 2, 4):
        state = state_of(generator(4))
        state[:4] = 5
        state[:words] = 2**64 - 1
        expected = generator_of(state.copy())
        rng.set_value(generator_of(state.copy()))
        np.testing.assert_array_equal(f(), expected.random(9))
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_sizes_and_bounds_that_are_given(ready: Run) -> None:
    low, n = pt.dvector("low"), pt.lscalar("n")
    rng = graphc.shared(generator())
    size = (low.shape[0], n)
    after, draws = pt.random.uniform(low[:, None], 3.0, size=size, rng=rng, return_next_rng=True)
    f = ready(graphc.function([low, n], draws, updates={rng: after}, mode="cuda"))
    bounds = np.array([-1.0, 0.0, 2.0])
    expected = generator()
    for columns in (5, 0, 1):
        wanted = expected.uniform(bounds[:, None], 3.0, (3, columns))
        np.testing.assert_array_equal(f(bounds, columns), wanted)
    with pytest.raises(ValueError, match="high - low < 0"):
        f(bounds + 5, 2)
    np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_loops_and_branches(ready: Run) -> None:
    def step(x, rng):
        after, draws = pt.random.uniform(size=(4,), rng=rng, return_next_rng=True)
        return x * 0.5 + draws, after

    rng, flag = graphc.shared(generator()), pt.bscalar("flag")
    rows, states = graphc.scan(step, outputs_info=[pt.zeros(4), rng], n_steps=6, return_updates=False)
    last = states if states.type.ndim == 1 else states[-1]
    f = ready(graphc.function([flag], graphc.ifelse(flag, rows, -rows), updates={rng: last}, mode="cuda"))
    assert not f.report.on_host
    expected, x, wanted = generator(), np.zeros(4), []
    for _ in range(6):
        x = x * 0.5 + expected.random(4)
        wanted.append(x)
    np.testing.assert_array_equal(f(0), -np.array(wanted))
    np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_ziggurats(ready: Run) -> None:
    """Draws that take several words, one of which is of a tail; and none. Normal ones are in `gpu_cases`."""
    words = np.random.Philox(7).random_raw(20_000)
    # Of the lowest level, and beyond what is usual there (NumPy's `ke_double[0]`).
    before = int(np.flatnonzero((words >> 3 & 255 == 0) & (words >> 56 > 0xE2))[0])
    n = pt.lscalar("n")
    rng = graphc.shared(generator(before - 5))
    after, draws = pt.random.exponential(2.0, size=(n, 2), rng=rng, return_next_rng=True)
    f = ready(graphc.function([n], draws, updates={rng: after}, mode="cuda"))
    assert not f.report.on_host
    expected = generator(before - 5)
    for rows in (10, 0):
        wanted = expected.exponential(2.0, (rows, 2))
        np.testing.assert_allclose(f(rows), wanted, rtol=1e-15)
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_positions_and_bits(ready: Run) -> None:
    """A probability of 0 takes no word of the stream."""
    p, q = pt.dmatrix("p"), pt.dscalar("q")
    results, states = [], [graphc.shared(generator()) for _ in range(2)]
    for state, mode in zip(states, ("cuda", "fast_run"), strict=True):
        after, bits = pt.random.bernoulli(q, size=(7, 3), rng=state, return_next_rng=True)
        after, rows = pt.random.categorical(p[:, None], size=(3, 40), rng=after, return_next_rng=True)
        after, bits_of_half = pt.random.bernoulli(0.25, size=(50,), rng=after, return_next_rng=True)
        after, truncated = pt.random.truncexpon(1.5, q, 2.0, size=(5,), rng=after, return_next_rng=True)
        outputs = [bits, rows, bits_of_half, truncated]
        results.append(graphc.function([p, q], outputs, updates={state: after}, mode=mode))
    device, cpu = ready(results[0]), results[1]
    assert not device.report.on_host
    given = np.array([[0.1, 0.2, 0.7], [0, 1, 0], [0.5, 0, 0.5]])
    for share in (0.7, 0.0, 1.0):
        for found, wanted in zip(device(given, share), cpu(given, share), strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-14)
        arrays = [state_of(state.get_value()) for state in states]
        np.testing.assert_array_equal(*arrays)


def test_bits_of_different_probabilities(ready: Run) -> None:
    """Those of which it is 0 take no word of the stream; nor do no bits."""
    p = pt.dmatrix("p")
    rng = graphc.shared(generator())
    after, bits = pt.random.bernoulli(p, rng=rng, return_next_rng=True)
    after, rows = pt.random.bernoulli(p[:, -1, None], size=(p.shape[0], 9), rng=after, return_next_rng=True)
    f = ready(graphc.function([p], [bits, rows], updates={rng: after}, mode="cuda"))
    assert not f.report.on_host
    expected = generator()
    for given in (
        np.array([[0, 0.3, 1, 0, 0.8], [0.5, 0.1, 0, 1, 0]]),
        np.zeros((0, 5)),
        np.full((3, 2), 0.4),
    ):
        wanted = expected.binomial(1, given), expected.binomial(1, given[:, -1:], (len(given), 9))
        for found, each in zip(f(given), wanted, strict=True):
            np.testing.assert_array_equal(found, each)
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


@pytest.mark.parametrize(
    ("names", "given"),
    [
        (("laplace", "gumbel", "logistic"), lambda x: (x, 2.0)),
        (("triangular",), lambda x: (x - 1, x, 5.0)),
    ],
)
def test_formulas(names: tuple[str, ...], given: Callable[..., tuple[object, ...]], ready: Run) -> None:
    """Of one number each; a word that stands for 0 is left out where NumPy draws again."""
    state = state_of(generator(4))
    # Of the words that have been made the last two are left; the upper bits of the first of them are 0.
    state[[8, 10]] = 5, 2
    x = pt.dvector("x")
    rng = graphc.shared(generator_of(state.copy()))
    after, outputs = rng, []
    for name in names:
        after, draws = getattr(pt.random, name)(*given(x), size=(33, 3), rng=after, return_next_rng=True)
        outputs.append(draws)
    f = ready(graphc.function([x], outputs, updates={rng: after}, mode="cuda"))
    assert not f.report.on_host
    values, expected = np.array([0.5, 1.0, 3.0]), generator_of(state.copy())
    for name, found in zip(names, f(values), strict=True):
        wanted = getattr(expected, name)(*given(values), size=(33, 3))
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


def test_integers(ready: Run) -> None:
    """Of 32 bits, halves of words that are left over among them, and of 64; with none to choose from."""
    n, high = pt.lscalar("n"), pt.lscalar("high")
    rng = graphc.shared(generator())
    after, draws = pt.random.integers(-5, high, size=(n,), rng=rng, return_next_rng=True)
    f = ready(graphc.function([n, high], draws, updates={rng: after}, mode="cuda"))
    assert not f.report.on_host
    expected = generator()
    for count, bound in (
        (3, 10),
        (0, 10),
        (4, 10),
        (1, 10),
        (5, -4),
        (300, 2**31 + 100),
        (7, 2**32 - 5),
        (200, 2**62 + 2**61),
        (2, 10),
    ):
        np.testing.assert_array_equal(f(count, bound), expected.integers(-5, bound, count))
        np.testing.assert_array_equal(state_of(rng.get_value()), state_of(expected))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("standard_gamma", ([2.0, 2.0, 3.0, 4.0],)),
        ("integers", (0, [5, 9, 5, 9])),
        ("binomial", (61, 0.5)),
        ("binomial", (0, 0.5)),
    ],
)
def test_other_draws_are_made_on_the_host(name: str, given: tuple[object, ...], ready: Run) -> None:
    """How many words they take depends on the words."""
    rng = graphc.shared(generator())
    after, draws = getattr(pt.random, name)(*given, size=(4,), rng=rng, return_next_rng=True)
    f = graphc.function([], draws * 2, updates={rng: after}, mode="cuda")
    assert [fallback.op for fallback in f.report.on_host] == ["random"]

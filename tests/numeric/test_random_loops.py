# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws in loops and branches, and what passes make of modules with draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pipelines import interpret

import graphc
import graphc.tensor as pt
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.tensor.random import RandomGeneratorType, RandomStream

MODES = ["reference", "fast_compile", "fast_run"]


def new(seed: int = 4) -> Any:
    return graphc.shared(np.random.default_rng(seed))


@pytest.fixture(params=MODES)
def mode(request: Any) -> Any:
    return request.param


def test_a_stream_is_updated_in_each_iteration(mode: str) -> None:
    stream = RandomStream(3)
    x = graphc.scan(
        lambda x: x + stream.normal(size=(2,)), outputs_info=[pt.zeros(2)], n_steps=5, return_updates=False
    )
    f = graphc.function([], x, mode=mode)
    generator = np.random.default_rng(np.random.SeedSequence(3).spawn(1)[0])
    for _ in range(2):
        np.testing.assert_allclose(f(), np.cumsum(generator.normal(size=(5, 2)), 0), rtol=1e-12)
    assert not f.report.fallbacks


def test_a_generator_is_a_state_of_which_the_last_value_is_kept(mode: str) -> None:
    rng, mu = new(), pt.dvector("mu")

    def step(m: Any, rng: Any) -> Any:
        following, x = rng.exponential(m, size=(3,))
        return x, following

    x, last = graphc.scan(step, sequences=mu, outputs_info=[None, rng], return_updates=False)
    assert isinstance(last.type, RandomGeneratorType)
    f = graphc.function([mu], x, updates={rng: last}, mode=mode)
    generator = np.random.default_rng(4)
    for length in (4, 0, 2):
        scale = np.arange(1.0, length + 1)
        expected = generator.exponential(scale[:, None], (length, 3))
        np.testing.assert_array_equal(f(scale), expected)


def test_a_generator_that_is_not_updated_repeats_itself(mode: str) -> None:
    rng = new()
    x = graphc.scan(
        lambda x: x + rng.normal(x * 0, 1)[1], outputs_info=[pt.zeros(())], n_steps=4, return_updates=False
    )
    z = np.random.default_rng(4).normal()
    np.testing.assert_allclose(graphc.function([], x, mode=mode)(), z * np.arange(1, 5), rtol=1e-13)


def test_two_generators_and_rejection_in_a_while_loop(mode: str) -> None:
    rng = new()

    def body(carry: Any) -> Any:
        count, rng, x = carry
        following, x = rng.uniform()
        return count + 1, following, x

    found = graphc.while_loop(lambda carry: carry[2] < 0.9, body, (pt.constant(0), rng, pt.zeros(())))
    f = graphc.function([], [found[0], found[2]], mode=mode)
    generator = np.random.default_rng(4)
    draws = [generator.uniform()]
    while draws[-1] < 0.9:
        draws.append(generator.uniform())
    count, x = f()
    assert (count, x) == (len(draws), draws[-1])


def test_gradients_of_loops_see_the_draws_again(mode: str) -> None:
    rng, m = new(), pt.dscalar("m")

    def step(h: Any, rng: Any) -> Any:
        following, x = rng.normal(m, 2.0)
        return h * 0.5 + x**2, following

    h, _ = graphc.scan(step, outputs_info=[pt.zeros(()), rng], n_steps=6, return_updates=False)
    f = graphc.function([m], [h[-1], graphc.grad(h[-1], m)], mode=mode)
    z, w = np.random.default_rng(4).normal(0, 2, 6), 0.5 ** np.arange(5, -1, -1)
    np.testing.assert_allclose(f(1.5), [np.sum(w * (1.5 + z) ** 2), np.sum(w * 2 * (1.5 + z))])


def test_only_the_chosen_branch_draws(mode: str) -> None:
    condition, rng = pt.bscalar("condition"), new()
    (after_normal, a), (after_gamma, b) = rng.normal(), rng.gamma(2.0)
    x, following = graphc.ifelse.ifelse(condition > 0, [a, after_normal], [b, after_gamma])
    f = graphc.function([condition], x, updates={rng: following}, mode=mode)
    generator = np.random.default_rng(4)
    for value in (1, 0, 0, 1):
        assert f(value) == (generator.normal() if value else generator.gamma(2.0))


def test_metropolis_in_one_loop(mode: str) -> None:
    """A sampler of a normal with mean 3: a proposal, a uniform number, a choice."""
    rng = new(0)

    def step(x: Any, rng: Any) -> Any:
        rng, proposal = rng.normal(x, 2.0)
        rng, u = rng.uniform()
        log_ratio = ((x - 3) ** 2 - (proposal - 3) ** 2) / 2
        return pt.switch(pt.log(u) < log_ratio, proposal, x), rng

    x, _ = graphc.scan(
        step,
        outputs_info=[pt.zeros(()), rng],
        n_steps=4000 if mode != "reference" else 200,
        return_updates=False,
    )
    found = graphc.function([], x, mode=mode)()
    generator, value, expected = np.random.default_rng(0), 0.0, []
    for _ in range(len(found)):
        proposal, u = generator.normal(value, 2.0), generator.uniform()
        if np.log(u) < ((value - 3) ** 2 - (proposal - 3) ** 2) / 2:
            value = proposal
        expected.append(value)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_modules_mean_the_same_interpreted_and_compiled() -> None:
    """Draws whose results are joined, reshaped, sums of which only some are needed, and equal ones."""
    rng, loc = new().type("rng"), pt.dmatrix("loc")
    following, x = rng.normal(loc, 1.5)
    last, n = following.multinomial(9, np.array([0.2, 0.3, 0.5]), size=loc.shape[0])
    again = rng.normal(loc, 1.5)[1]
    joined = pt.join(1, x, n.astype("float64"), again)
    outputs = [joined, last, pt.sum(rng.integers(0, 7, size=(4,))[1]), x.T[::-1]]
    values = [np.random.default_rng(11), np.arange(6.0).reshape(3, 2)]
    state = rng.type.filter(values[0])
    text = emit_module(FunctionGraph([rng, loc], outputs)).text
    expected = interpret(text, [state, values[1]])
    for mode in MODES:
        found = graphc.function([rng, loc], outputs, mode=mode)(*values)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=mode)


def test_results_go_where_they_are_wanted() -> None:
    """In the caller's array, and again at the same address."""
    rng = new()
    following, x = rng.normal(size=(3, 2))
    f = graphc.function([], x, updates={rng: following})
    out, generator = np.empty((3, 2)), np.random.default_rng(4)
    for _ in range(2):
        assert f(out=out) is out
        np.testing.assert_array_equal(out, generator.normal(size=(3, 2)))
    text = f.ir_stages()["buffer"]
    assert "memref.copy" not in text and "memref.alloc" not in text


def test_failed_calls_leave_the_generator_alone() -> None:
    rng, scale = new(), pt.dvector("scale")
    following, x = rng.normal(0, scale)
    f = graphc.function([scale], x, updates={rng: following})
    with pytest.raises(ValueError, match="scale < 0"):
        f(np.array([1.0, -1.0]))
    np.testing.assert_array_equal(f(np.ones(2)), np.random.default_rng(4).normal(size=2))

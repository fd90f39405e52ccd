# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws have the distributions that they are called after (fixed seeds; SciPy is the reference)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import graphc
from graphc.tensor import random

N = 20_000
CONTINUOUS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "exponential": ((2.0,), stats.expon(scale=2)),
    "halfnormal": ((1.0, 2.0), stats.halfnorm(1, 2)),
    "cauchy": ((1.0, 2.0), stats.cauchy(1, 2)),
    "halfcauchy": ((1.0, 2.0), stats.halfcauchy(1, 2)),
    "t": ((4.0, 1.0, 2.0), stats.t(4, 1, 2)),
    "pareto": ((3.0, 2.0), stats.pareto(3, scale=2)),
    "lomax": ((3.0,), stats.lomax(3)),
    "invgamma": ((3.0, 2.0), stats.invgamma(3, scale=2)),
    "gengamma": ((2.0, 3.0, 1.5), stats.gengamma(2 / 3, 3, scale=1.5)),
    "truncexpon": ((1.5, 1.0, 2.0), stats.truncexpon(1.5, 1, 2)),
}
COUNTS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "bernoulli": ((0.3,), stats.bernoulli(0.3)),
    "betabinom": ((12, 2.0, 3.0), stats.betabinom(12, 2, 3)),
    "integers": ((-3, 9), stats.randint(-3, 9)),
    "poisson": ((3.5,), stats.poisson(3.5)),
    "categorical": (
        (np.array([0.1, 0.2, 0.3, 0.4]),),
        stats.rv_discrete(values=(range(4), (0.1, 0.2, 0.3, 0.4))),
    ),
}


def draw(table: dict[str, tuple[tuple[Any, ...], Any]], bits: Any) -> dict[str, np.ndarray]:
    outputs = {}
    for seed, (name, (args, _)) in enumerate(table.items()):
        rng = graphc.shared(np.random.Generator(bits(seed)))
        outputs[name] = getattr(random, name)(*args, size=N, rng=rng)
    return dict(graphc.function([], outputs)())


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox])
def test_distribution_functions(bits: Any) -> None:
    for name, x in draw(CONTINUOUS, bits).items():
        assert stats.kstest(x, CONTINUOUS[name][1].cdf).pvalue > 1e-3, name


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox])
def test_frequencies(bits: Any) -> None:
    for name, x in draw(COUNTS, bits).items():
        values, counts = np.unique(x, return_counts=True)
        expected = N * COUNTS[name][1].pmf(values)
        common = expected > 5
        rest = N - counts[common].sum(), N - expected[common].sum()
        observed, wanted = counts[common], expected[common]
        if rest[1] > 5:
            observed, wanted = np.append(observed, rest[0]), np.append(wanted, rest[1])
        assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-3, name


def test_successive_draws_are_not_correlated() -> None:
    rng = graphc.shared(np.random.default_rng(0))
    x = graphc.function([], rng.standard_normal(size=100_000)[1])()
    for lag in (1, 2, 3, 64, 128):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / np.sqrt(len(x))

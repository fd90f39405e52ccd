# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users of PyMC do beside sampling, in mode GRAPHC and as PyTensor does it in Python."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytest

import graphc
from graphc.interop.pytensor.linker import StoredFunction

rng = np.random.default_rng(4)
X, Y = rng.normal(size=(50, 3)), rng.normal(size=50)
BOTH = ("GRAPHC", "FAST_COMPILE")


@pytest.fixture
def regression():
    with pm.Model() as model:
        x = pm.Data("x", X)
        mu = x @ pm.Normal("b", shape=3)
        pm.Normal("y", mu, pm.HalfNormal("s"), observed=pm.Data("seen", Y))
    return model


def test_predictions_before_and_after_the_data(regression):
    prior = [
        pm.sample_prior_predictive(10, regression, random_seed=1, compile_kwargs={"mode": mode})
        for mode in BOTH
    ]
    for group, name in (("prior", "b"), ("prior_predictive", "y")):
        ours, theirs = (found[group][name].to_numpy() for found in prior)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    after = [
        pm.sample_posterior_predictive(
            prior[0].prior, regression, random_seed=2, progressbar=False, compile_kwargs={"mode": mode}
        )
        for mode in BOTH
    ]
    ours, theirs = (found.posterior_predictive["y"].to_numpy() for found in after)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_data_of_another_length(regression):
    density, expected = (regression.compile_logp(mode=mode) for mode in BOTH)
    start = regression.initial_point()
    np.testing.assert_allclose(density(start), expected(start), rtol=1e-12)
    with regression:
        pm.set_data({"x": X[:7] * 3, "seen": Y[:7]})
    np.testing.assert_allclose(density(start), expected(start), rtol=1e-12)


def test_maximum_by_the_default_mode(regression):
    found = []
    for mode in BOTH:
        with regression, pytensor.config.change_flags(mode=mode):
            found.append(pm.find_MAP(progressbar=False)["b"])
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_variational_inference_on_parts_of_the_data():
    """The dims of the data are those of all rows: PyMC 6 allocates the densities of a part to as many."""
    x, y = pm.Minibatch(X, Y, batch_size=10)
    losses = []
    for mode in BOTH:
        with pm.Model(coords={"row": range(len(Y))}):
            mu = x @ pm.Normal("b", shape=3)
            pm.Normal("y", mu, 1, observed=y, total_size=len(Y), dims="row")
            fit = pm.fit(20, progressbar=False, random_seed=1, compile_kwargs={"mode": mode})
            losses.append(fit.hist)
    np.testing.assert_allclose(*losses, rtol=1e-8)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pm.MvNormal.dist(np.zeros(3), np.eye(3)),
        lambda: pm.LKJCorr.dist(3, 2.0),
        lambda: pm.TruncatedNormal.dist(0, 1, lower=0, shape=4),
        lambda: pm.NormalMixture.dist([0.3, 0.7], [0, 5], 1, shape=5),
        lambda: pm.AR.dist([0.5, 0.1], sigma=1.0, init_dist=pm.Normal.dist(), steps=10),
        lambda: pm.Censored.dist(pm.Normal.dist(), -1, 1, shape=5),
        lambda: pm.DirichletMultinomial.dist(10, [1, 2, 3]),
        lambda: pm.ZeroInflatedNegativeBinomial.dist(0.5, 3, 2, shape=4),
        lambda: pm.StickBreakingWeights.dist(1.0, 5),
    ],
    ids="mvnormal lkj truncated mixture ar censored dirichlet_multinomial zero_inflated stick".split(),
)
def test_draws(make):
    ours, theirs = (pm.draw(make(), 3, random_seed=3, mode=mode) for mode in BOTH)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_a_model_that_the_disk_knows(regression, tmp_path):
    """PyMC makes modes of its own around graphc's linker."""
    start = regression.initial_point()
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        first, second = (regression.compile_dlogp(mode="GRAPHC") for _ in range(2))
    assert isinstance(second.f.vm.jit_fn, StoredFunction)
    np.testing.assert_array_equal(first(start), second(start))
    with regression:
        pm.set_data({"x": X[:7] * 3, "seen": Y[:7]})
    np.testing.assert_array_equal(first(start), second(start))

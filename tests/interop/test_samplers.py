# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws of PyMC's distributions are those of PyTensor's Python; those with samplers of their own, without Python."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytensor.tensor.random.basic as random
import pytest
import scipy.sparse
from pymc.pytensorf import compile
from pytensor.compile.mode import Mode

import graphc.interop.pytensor  # noqa: F401

RNG = np.random.default_rng(3)
X = np.linspace(-2, 3, 12)
PDF = np.exp(-(X**2) / 2) + 0.1
PDF[3:6] = 0.7  # flat in a part
A = np.array([0.5, 1.0, 4.0])
PATH = np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
SPREAD = np.eye(12)[[7, 2, 9, 0, 11, 4, 1, 10, 3, 8, 5, 6]]
WEIGHTS = SPREAD @ (PATH + 2.0 * np.diag(np.ones(8), 4) + 2.0 * np.diag(np.ones(8), -4)) @ SPREAD.T
SCALE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.7]])
DISTRIBUTIONS = {
    "skew_normal": lambda: pm.SkewNormal.dist(mu=A, sigma=2.0, alpha=[-3, 0, 5]),
    "skew_normal_sized": lambda: pm.SkewNormal.dist(mu=A, sigma=2.0, alpha=1.5, size=(4, 3)),
    "rice": lambda: pm.Rice.dist(nu=A, sigma=1.5),
    "rice_sized": lambda: pm.Rice.dist(nu=1.0, sigma=1.5, size=5),
    "moyal": lambda: pm.Moyal.dist(A, 0.5, size=(2, 3)),
    "skew_student": lambda: pm.SkewStudentT.dist(a=A, b=2.0, mu=1.0, sigma=3.0),
    "truncated_normal": lambda: pm.TruncatedNormal.dist(
        [0.0, 3.0, -9.0, 0.5, 9.0],
        1.5,
        lower=[-1, 5, -8, -np.inf, 0],
        upper=[2.0, np.inf, 9, 0.0, 1],
        size=(3, 5),
    ),
    "truncated_normal_scalar": lambda: pm.TruncatedNormal.dist(0.0, 1.0, lower=0.0),
    "matrix_normal": lambda: pm.MatrixNormal.dist(np.ones((3, 2)), rowcov=SCALE, colcov=np.eye(2) * 2),
    "mv_normal": lambda: pm.MvNormal.dist(A, SCALE, size=(2,)),
    "mv_normal_precision": lambda: pm.MvNormal.dist(A, tau=SCALE),
    "mv_normal_batch": lambda: pm.MvNormal.dist(np.ones((2, 3)), np.stack([SCALE, 2 * SCALE])),
    "mv_normal_factor": lambda: pm.MvNormal.dist(A, chol=np.linalg.cholesky(SCALE), size=(2, 2)),
    "mv_student": lambda: pm.MvStudentT.dist(nu=4.0, mu=A, scale=SCALE, size=(2,)),
    "mv_student_batch": lambda: pm.MvStudentT.dist(nu=[4.0, 9.0], mu=A, scale=SCALE),
    "kronecker_normal": lambda: pm.KroneckerNormal.dist(
        mu=np.arange(6.0), covs=[SCALE, np.eye(2)], sigma=0.3
    ),
    "kronecker_normal_sized": lambda: pm.KroneckerNormal.dist(
        mu=np.arange(6.0), covs=[SCALE, np.eye(2) * 2], sigma=0.3, size=(2,)
    ),
    "stick_breaking": lambda: pm.StickBreakingWeights.dist(alpha=A, K=4),
    "stick_breaking_sized": lambda: pm.StickBreakingWeights.dist(alpha=2.0, K=6, size=(2, 3)),
    "interpolated": lambda: pm.Interpolated.dist(X, PDF, size=(4, 50)),
    "interpolated_scalar": lambda: pm.Interpolated.dist(X, PDF),
    "car": lambda: pm.CAR.dist(mu=np.arange(12.0), W=WEIGHTS, alpha=0.7, tau=2.0),
    "car_sized": lambda: pm.CAR.dist(mu=np.arange(12.0), W=WEIGHTS, alpha=-0.4, tau=2.0, size=(2, 3)),
    "car_of_a_path": lambda: pm.CAR.dist(mu=np.zeros(12), W=SPREAD @ PATH @ SPREAD.T, alpha=0.9, tau=1.0),
    "car_sparse": lambda: pm.CAR.dist(np.ones(12), scipy.sparse.csr_matrix(WEIGHTS), 0.5, 3.0),
    "wishart": lambda: pm.Wishart.dist(nu=7, V=SCALE),
    "wishart_sized": lambda: pm.Wishart.dist(nu=7, V=SCALE, size=(4,)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_are_those_of_python(name):
    drawn = DISTRIBUTIONS[name]()
    found = []
    for mode in (Mode("py", "minimum_compile"), "GRAPHC"):
        f = compile([], [drawn], random_seed=3, mode=mode)  # seeds the generator that both modes share
        found.append([f()[0], f()[0]])
    assert f.vm.jit_fn.report.fallbacks == []
    for want, got in zip(*found, strict=True):
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 1)])
@pytest.mark.parametrize(
    "build",
    {
        "multinomial": lambda n, rng: random.multinomial(n, np.full((2, 3), 1 / 3), rng=rng),
        "binomial": lambda n, rng: random.binomial(n, [0.3, 0.6], rng=rng),
        "integers": lambda n, rng: random.integers(n - 4, n, rng=rng),
    }.items(),
    ids=lambda item: item[0],
)
def test_counts_may_be_floats(build, shape, dtype):
    """Their fractions are dropped, where one of PyTensor's own modes has such draws."""
    name, draws = build
    n, found = pt.tensor("n", dtype=dtype, shape=shape), []
    for given in (n, pt.cast(n, "int64")):
        rng = pytensor.shared(np.random.default_rng(3))
        found.append(pytensor.function([n], draws(given, rng), mode="GRAPHC"))
    values = (np.array([5.7, 6.2])[: shape[0] if shape else 1].reshape(shape)).astype(dtype)
    got, want = (f(values) for f in found)
    assert found[0].vm.jit_fn.report.fallbacks == []
    np.testing.assert_array_equal(got, want)
    if name == "multinomial":
        assert (got.sum(axis=-1) == values.astype("int64")).all()


@pytest.mark.parametrize("p", [[-0.3, 1.3], [1.3, -0.3], [[0.4, 0.6], [-2.0, 3.0]], [0.2, 0.5, 0.3]])
def test_a_negative_probability_is_none(p):
    """As in PyTensor's modes: a mixture with a weight beyond 1, as models are before anybody checks them."""
    drawn = random.categorical(np.array(p), size=(50, *np.shape(p)[:-1]), rng=pytensor.shared(RNG))
    modes = (Mode("py", "minimum_compile"), "GRAPHC")
    want, got = (pytensor.function([], drawn, mode=mode)() for mode in modes)
    np.testing.assert_array_equal(got, want)


def test_parameters_of_a_lattice_are_checked():
    alpha = pt.dscalar("alpha")
    f = compile([alpha], [pm.CAR.dist(np.zeros(12), WEIGHTS, alpha, 1.0)], mode="GRAPHC")
    assert np.isfinite(f(-0.9)[0]).all()
    with pytest.raises(ValueError, match="-1 < alpha < 1"):
        f(1.0)
    with pytest.raises(ValueError, match="valid adjacency matrix"):
        compile([], [pm.CAR.dist(np.zeros(12), np.triu(WEIGHTS), 0.5, 1.0)], mode="GRAPHC")()


S = np.array([0.2, 0.3, 0.5])
EVERY = {
    "AR": lambda: pm.AR.dist([0.5, 0.2], sigma=1.0, init_dist=pm.Normal.dist(0, 1, shape=(2,)), steps=5),
    "AsymmetricLaplace": lambda: pm.AsymmetricLaplace.dist(b=1.0, kappa=A, mu=0),
    "Bernoulli": lambda: pm.Bernoulli.dist(S),
    "Beta": lambda: pm.Beta.dist(A, 2.0),
    "BetaBinomial": lambda: pm.BetaBinomial.dist(alpha=A, beta=3.0, n=[10, 4, 0], size=(4, 3)),
    "Binomial": lambda: pm.Binomial.dist(n=[3, 10, 50], p=S, size=(2, 3)),
    "Categorical": lambda: pm.Categorical.dist(np.array([S, S[::-1]])),
    "Cauchy": lambda: pm.Cauchy.dist(A, 2.0),
    "Censored": lambda: pm.Censored.dist(pm.Normal.dist(A, 1.0), lower=0, upper=1.0),
    "ChiSquared": lambda: pm.ChiSquared.dist(A),
    "DiracDelta": lambda: pm.DiracDelta.dist(A),
    "Dirichlet": lambda: pm.Dirichlet.dist(A, size=3),
    "DirichletMultinomial": lambda: pm.DirichletMultinomial.dist(n=10, a=A, size=2),
    "DiscreteUniform": lambda: pm.DiscreteUniform.dist(0, [3, 9], size=(4, 2)),
    "DiscreteWeibull": lambda: pm.DiscreteWeibull.dist(q=0.6, beta=A),
    "EulerMaruyama": lambda: pm.EulerMaruyama.dist(
        dt=0.1, sde_fn=lambda x, r: (-r * x, 0.5), sde_pars=(2.0,), init_dist=pm.Normal.dist(0, 1), steps=5
    ),
    "ExGaussian": lambda: pm.ExGaussian.dist(mu=A, sigma=1.0, nu=2.0),
    "Exponential": lambda: pm.Exponential.dist(A),
    "GARCH11": lambda: pm.GARCH11.dist(omega=1.0, alpha_1=0.2, beta_1=0.3, initial_vol=1.0, steps=5),
    "Gamma": lambda: pm.Gamma.dist(A, 2.0),
    "GaussianRandomWalk": lambda: pm.GaussianRandomWalk.dist(0.1, 1.0, init_dist=pm.Normal.dist(0, 1), steps=5),
    "Geometric": lambda: pm.Geometric.dist(S),
    "Gumbel": lambda: pm.Gumbel.dist(A, 2.0, size=(2, 3)),
    "HalfCauchy": lambda: pm.HalfCauchy.dist(A),
    "HalfNormal": lambda: pm.HalfNormal.dist(A),
    "HalfStudentT": lambda: pm.HalfStudentT.dist(A, 2.0),
    "HurdleGamma": lambda: pm.HurdleGamma.dist(psi=0.4, alpha=A, beta=1.0),
    "HurdleLogNormal": lambda: pm.HurdleLogNormal.dist(psi=0.4, mu=A, sigma=1.0),
    "HurdleNegativeBinomial": lambda: pm.HurdleNegativeBinomial.dist(psi=0.4, mu=A, alpha=1.0),
    "HurdlePoisson": lambda: pm.HurdlePoisson.dist(psi=0.4, mu=A),
    "HyperGeometric": lambda: pm.HyperGeometric.dist(N=50, k=np.array([10, 20, 3]), n=7),
    "InverseGamma": lambda: pm.InverseGamma.dist(A + 1, 2.0),
    "KroneckerNormal": lambda: pm.KroneckerNormal.dist(mu=np.zeros(6), covs=[SCALE, np.eye(2)], sigma=0.3),
    "Kumaraswamy": lambda: pm.Kumaraswamy.dist(A, 2.0),
    "LKJCorr": lambda: pm.LKJCorr.dist(n=3, eta=2.0),
    "LKJCholeskyCov": lambda: pm.LKJCholeskyCov.dist(3.0, 3, sd_dist=pm.Exponential.dist(1.0), compute_corr=False),
    "Laplace": lambda: pm.Laplace.dist(A, 2.0),
    "LogNormal": lambda: pm.LogNormal.dist(A, 0.2),
    "Logistic": lambda: pm.Logistic.dist(A, 2.0),
    "LogitNormal": lambda: pm.LogitNormal.dist(A, 2.0),
    "Mixture": lambda: pm.Mixture.dist(S, [pm.Normal.dist(-1, 1), pm.Gumbel.dist(3, 1), pm.Cauchy.dist(2, 1)], size=4),
    "Multinomial": lambda: pm.Multinomial.dist(n=10, p=S, size=2),
    "MvNormal": lambda: pm.MvNormal.dist(A, SCALE, size=2),
    "MvStudentT": lambda: pm.MvStudentT.dist(nu=4.0, mu=A, scale=SCALE, size=2),
    "NegativeBinomial": lambda: pm.NegativeBinomial.dist(mu=A, alpha=2.0),
    "Normal": lambda: pm.Normal.dist(A, 2.0),
    "NormalMixture": lambda: pm.NormalMixture.dist(w=S, mu=A, sigma=1.0, size=4),
    "OrderedLogistic": lambda: pm.OrderedLogistic.dist(eta=A, cutpoints=[-1, 1.0]),
    "OrderedMultinomial": lambda: pm.OrderedMultinomial.dist(eta=0.3, cutpoints=[-1, 1.0], n=5),
    "OrderedProbit": lambda: pm.OrderedProbit.dist(eta=A, cutpoints=[-1, 1.0]),
    "Pareto": lambda: pm.Pareto.dist(A, 2.0),
    "Poisson": lambda: pm.Poisson.dist(A),
    "StudentT": lambda: pm.StudentT.dist(nu=A, mu=1.0, sigma=2.0),
    "Triangular": lambda: pm.Triangular.dist(0, A, A / 2),
    "Truncated": lambda: pm.Truncated.dist(pm.Gamma.dist(2.0, 1.0), lower=0.5, size=4),
    "Uniform": lambda: pm.Uniform.dist(0, A),
    "VonMises": lambda: pm.VonMises.dist(A, 2.0),
    "Wald": lambda: pm.Wald.dist(mu=A, lam=2.0, alpha=0.3),
    "Weibull": lambda: pm.Weibull.dist(A, 2.0),
    "ZeroInflatedBinomial": lambda: pm.ZeroInflatedBinomial.dist(psi=0.4, n=5, p=S),
    "ZeroInflatedNegativeBinomial": lambda: pm.ZeroInflatedNegativeBinomial.dist(psi=0.4, mu=A, alpha=2.0),
    "ZeroInflatedPoisson": lambda: pm.ZeroInflatedPoisson.dist(psi=0.4, mu=A),
    "ZeroSumNormal": lambda: pm.ZeroSumNormal.dist(1.0, shape=(3,)),
}  # fmt: skip
# Those that the table above has in several forms, and other names, bases, and what is not drawn from by itself.
ABOVE = """CAR Interpolated MatrixNormal Moyal Rice SkewNormal SkewStudentT StickBreakingWeights TruncatedNormal Wishart"""
NOT_DRAWN = """Lognormal Flat HalfFlat ICAR Distribution Continuous Discrete SymbolicRandomVariable CustomDist CustomSymbolicDistRV
    CustomDistRV Simulator PolyaGamma DensityDist Deterministic RandomWalk MvGaussianRandomWalk MvStudentTRandomWalk"""


def test_every_distribution_is_drawn_from():
    classes = {name for name in pm.distributions.__all__ if isinstance(getattr(pm.distributions, name), type)}
    assert classes - EVERY.keys() - {*ABOVE.split(), *NOT_DRAWN.split()} == set()


@pytest.mark.parametrize("part", range(6))
def test_draws_of_every_distribution(part):
    """Twenty draws, one after the other, of PyMC's distributions: NumPy's and SciPy's, as PyTensor's own."""
    names = sorted(EVERY)[part::6]
    drawn = [EVERY[name]() for name in names]
    found = []
    for mode in (Mode("py", "minimum_compile"), "GRAPHC"):
        f = compile([], drawn, random_seed=1, mode=mode)
        found.append([f() for _ in range(20)])
    for want, got in zip(*found, strict=True):
        for name, a, b in zip(names, want, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-12, err_msg=name)
            assert np.asarray(b).dtype == np.asarray(a).dtype

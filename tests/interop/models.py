# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in PyMC, each small and of another kind: what the bridge is tested and measured on.

A model is a function without arguments that returns a `pymc.Model`; data are made up with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

Builder = Callable[[], pm.Model]
MODELS: dict[str, Builder] = {}


def model(build: Callable[[np.random.Generator], None]) -> Builder:
    """Adds a model to the catalogue; ``build`` is run inside it."""

    def make() -> pm.Model:
        with pm.Model() as made:
            build(np.random.default_rng(len(build.__name__)))
        return made

    MODELS[build.__name__] = make
    return make


# --- regressions -------------------------------------------------------------------------------------------


@model
def radon(rng):
    """Varying intercepts and slopes, 85 counties."""
    county, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919)
    mu_a, mu_b = pm.Normal("mu_a", 0, 10), pm.Normal("mu_b", 0, 10)
    sigma_a, sigma_b = pm.HalfNormal("sigma_a", 5), pm.HalfNormal("sigma_b", 5)
    a = mu_a + sigma_a * pm.Normal("a", shape=85)
    b = mu_b + sigma_b * pm.Normal("b", shape=85)
    y = 1.3 + rng.normal(size=919)
    pm.Normal("y", a[county] + b[county] * floor, pm.HalfCauchy("eps", 5), observed=y)


@model
def linear(rng):
    x = rng.normal(size=(200, 5))
    beta = pm.Normal("beta", 0, 1, shape=5)
    pm.Normal("y", x @ beta + pm.Normal("a"), pm.HalfNormal("s"), observed=rng.normal(size=200))


@model
def logistic(rng):
    x = rng.normal(size=(300, 8))
    p = pm.math.dot(x, pm.Normal("beta", 0, 2, shape=8)) + pm.Normal("a")
    pm.Bernoulli("y", logit_p=p, observed=rng.integers(0, 2, 300))


@model
def robust(rng):
    x = rng.normal(size=150)
    mu = pm.Normal("a") + pm.Normal("b") * x
    pm.StudentT(
        "y", nu=pm.Gamma("nu", 2, 0.1), mu=mu, sigma=pm.HalfNormal("s"), observed=rng.standard_t(3, 150)
    )


@model
def horseshoe(rng):
    x = rng.normal(size=(80, 20))
    tau, lam = pm.HalfCauchy("tau", 1), pm.HalfCauchy("lam", 1, shape=20)
    c2 = pm.InverseGamma("c2", 2, 2)
    scale = tau * lam * pt.sqrt(c2 / (c2 + tau**2 * lam**2))
    pm.Normal("y", x @ (pm.Normal("z", shape=20) * scale), pm.HalfNormal("s"), observed=rng.normal(size=80))


@model
def poisson_offset(rng):
    x, exposure = rng.normal(size=120), rng.uniform(1, 5, 120)
    mu = pt.exp(pm.Normal("a") + pm.Normal("b") * x + np.log(exposure))
    pm.Poisson("y", mu, observed=rng.poisson(2, 120))


@model
def negbin_offset(rng):
    x, exposure = rng.normal(size=(400, 3)), rng.uniform(1, 5, 400)
    mu = exposure * pt.exp(pm.math.dot(x, pm.Normal("b", shape=3)))
    pm.NegativeBinomial("y", mu=mu, alpha=pm.Exponential("alpha", 1), observed=rng.poisson(3, 400))


@model
def zero_inflated(rng):
    x = rng.normal(size=300)
    mu = pt.exp(pm.Normal("a") + pm.Normal("b") * x)
    y = rng.poisson(2, 300) * rng.integers(0, 2, 300)
    pm.ZeroInflatedNegativeBinomial(
        "y", psi=pm.Beta("psi", 2, 2), mu=mu, alpha=pm.Exponential("s", 1), observed=y
    )


@model
def hurdle(rng):
    y = rng.gamma(2, 1, 100) * rng.integers(0, 2, 100)
    pm.HurdleGamma(
        "y", psi=pm.Beta("psi", 1, 1), alpha=pm.Exponential("a", 1), beta=pm.Exponential("b", 1), observed=y
    )


@model
def ordered_logistic(rng):
    x = rng.normal(size=200)
    cut = pm.Normal(
        "cut", 0, 2, shape=4, transform=pm.distributions.transforms.ordered, initval=[-2, -1, 1, 2]
    )
    pm.OrderedLogistic("y", eta=pm.Normal("b") * x, cutpoints=cut, observed=rng.integers(0, 5, 200))


@model
def ordered_probit(rng):
    x = rng.normal(size=(90, 2))
    cut = pm.Normal("cut", 0, 2, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])
    pm.OrderedProbit("y", eta=x @ pm.Normal("b", shape=2), cutpoints=cut, observed=rng.integers(0, 4, 90))


@model
def multinomial_logit(rng):
    x = rng.normal(size=(150, 4))
    scores = pm.math.concatenate([pt.zeros((150, 1)), x @ pm.Normal("b", shape=(4, 2))], axis=1)
    pm.Categorical("y", p=pm.math.softmax(scores, axis=1), observed=rng.integers(0, 3, 150))


@model
def beta_regression(rng):
    x = rng.normal(size=100)
    mu = pm.math.invlogit(pm.Normal("a") + pm.Normal("b") * x)
    phi = pm.Gamma("phi", 2, 0.1)
    pm.Beta("y", mu * phi, (1 - mu) * phi, observed=rng.uniform(0.05, 0.95, 100))


@model
def beta_binomial(rng):
    n = rng.integers(5, 30, 60)
    pm.BetaBinomial(
        "y", n=n, alpha=pm.Exponential("a", 0.2), beta=pm.Exponential("b", 0.2), observed=rng.binomial(n, 0.4)
    )


@model
def spline(rng):
    """A penalised B-spline with a random walk on its coefficients."""
    x, knots = np.linspace(0, 1, 120), np.linspace(0, 1, 12)
    basis = np.exp(-0.5 * ((x[:, None] - knots) / 0.08) ** 2)
    walk = pt.cumsum(pm.Normal("z", shape=12)) * pm.HalfNormal("tau", 0.3)
    pm.Normal("y", basis @ walk, pm.HalfNormal("s"), observed=np.sin(6 * x) + 0.1 * rng.normal(size=120))


# --- survival, censoring, missing data ---------------------------------------------------------------------


@model
def weibull_censored(rng):
    x, event = rng.normal(size=150), rng.integers(0, 2, 150)
    t = rng.weibull(1.5, 150) + 0.1
    alpha, eta = pm.HalfNormal("alpha", 2), pt.exp(pm.Normal("a") + pm.Normal("b") * x)
    z = (t / eta) ** alpha
    pm.Potential("y", pt.sum(event * (pt.log(alpha) - pt.log(eta) + (alpha - 1) * pt.log(t / eta)) - z))


@model
def gamma_censored(rng):
    latent = pm.Gamma.dist(pm.Exponential("a", 1), pm.Exponential("b", 1))
    pm.Censored("y", latent, lower=None, upper=2.5, observed=np.minimum(rng.gamma(2, 1, 200), 2.5))


@model
def truncated(rng):
    inner = pm.Normal.dist(pm.Normal("mu", 0, 2), pm.HalfNormal("s", 2))
    pm.Truncated("y", inner, lower=0, upper=4, observed=np.clip(rng.normal(2, 1, 100), 0.01, 3.99))


@model
def truncated_normal(rng):
    y = np.clip(rng.normal(1, 1, 90), 0.01, None)
    pm.TruncatedNormal("y", pm.Normal("mu"), pm.HalfNormal("s"), lower=0, observed=y)


@model
def imputation(rng):
    y = np.ma.masked_invalid(np.where(rng.uniform(size=80) < 0.2, np.nan, rng.normal(size=80)))
    pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("s"), observed=y)


@model
def exponential_survival(rng):
    """Piecewise exponential hazards, as a Poisson regression."""
    deaths, exposure = rng.integers(0, 2, (40, 6)), rng.uniform(0.1, 1, (40, 6))
    base = pm.Gamma("base", 1, 1, shape=6)
    rate = pt.outer(pt.exp(pm.Normal("b") * rng.normal(size=40)), base)
    pm.Poisson("y", rate * exposure + 1e-9, observed=deaths)


# --- time series -------------------------------------------------------------------------------------------


@model
def garch(rng):
    y = rng.normal(size=300)
    a0, a1, b1 = pm.HalfNormal("a0"), pm.Beta("a1", 2, 4), pm.Beta("b1", 2, 4)
    variances = pytensor.scan(
        lambda y, h, a0, a1, b1: a0 + a1 * y**2 + b1 * h,
        sequences=[pt.constant(y[:-1])],
        outputs_info=[pt.ones(())],
        non_sequences=[a0, a1, b1],
        return_updates=False,
    )
    pm.Normal("y", 0, pt.sqrt(pt.concatenate([pt.ones(1), variances])), observed=y)


@model
def garch11(rng):
    pm.GARCH11(
        "y",
        omega=pm.HalfNormal("w"),
        alpha_1=pm.Beta("a", 2, 4),
        beta_1=pm.Beta("b", 2, 4),
        initial_vol=1.0,
        observed=rng.normal(size=100),
    )


@model
def ar2(rng):
    pm.AR(
        "y",
        rho=pm.Normal("rho", 0, 0.5, shape=3),
        sigma=pm.HalfNormal("s"),
        constant=True,
        init_dist=pm.Normal.dist(0, 5),
        observed=rng.normal(size=100),
    )


@model
def random_walk(rng):
    level = pm.GaussianRandomWalk(
        "level", sigma=pm.HalfNormal("tau", 0.2), init_dist=pm.Normal.dist(0, 5), steps=99
    )
    pm.Normal("y", level, pm.HalfNormal("s"), observed=rng.normal(size=100))


@model
def stochastic_volatility(rng):
    nu, step = pm.Exponential("nu", 0.1), pm.Exponential("step", 10)
    walk = pm.GaussianRandomWalk("walk", sigma=step, init_dist=pm.Normal.dist(0, 100), steps=199)
    pm.StudentT("y", nu=nu, lam=pt.exp(-2 * walk), observed=rng.normal(size=200))


@model
def moving_average(rng):
    """MA(2) by its recursion: two taps."""
    y = rng.normal(size=120)
    mu, theta = pm.Normal("mu"), pm.Normal("theta", 0, 0.4, shape=2)
    errors = pytensor.scan(
        lambda y, e2, e1, mu, theta: y - mu - theta[0] * e1 - theta[1] * e2,
        sequences=[pt.constant(y)],
        outputs_info=[{"initial": pt.zeros(2), "taps": [-2, -1]}],
        non_sequences=[mu, theta],
        return_updates=False,
    )
    pm.Potential("y", pm.logp(pm.Normal.dist(0, pm.HalfNormal("s")), errors).sum())


@model
def hmm(rng):
    """Three hidden states, forward algorithm in logarithms."""
    y = rng.normal(size=200)
    p = pm.Dirichlet("p", np.ones((3, 3)))
    mu = pm.Normal("mu", 0, 2, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])
    emission = pm.logp(pm.Normal.dist(mu, pm.HalfNormal("s")), y[:, None])
    alphas = pytensor.scan(
        lambda e, a, logp: e + pt.logsumexp(a[:, None] + logp, axis=0),
        sequences=[emission[1:]],
        outputs_info=[emission[0] - np.log(3)],
        non_sequences=[pt.log(p)],
        return_updates=False,
    )
    pm.Potential("y", pt.logsumexp(alphas[-1]))


@model
def kalman(rng):
    """Local linear trend, two states."""
    y = rng.normal(size=100).cumsum()
    s = pm.HalfNormal("s", shape=3)
    transition, design = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    noise = pt.diag(s[:2] ** 2)

    def step(y, a, p, noise, variance):
        a, p = transition @ a, transition @ p @ transition.T + noise
        f = design @ p @ design + variance
        k = p @ design / f
        error = y - design @ a
        return a + k * error, p - pt.outer(k, k) * f, -0.5 * (pt.log(2 * np.pi * f) + error**2 / f)

    _, _, logp = pytensor.scan(
        step,
        sequences=[pt.constant(y)],
        outputs_info=[pt.zeros(2), pt.eye(2) * 10, None],
        non_sequences=[noise, s[2] ** 2],
        return_updates=False,
    )
    pm.Potential("y", logp.sum())


@model
def ode(rng):
    """Predators and prey by Runge and Kutta's method."""
    theta = pm.LogNormal("theta", -1, 0.5, shape=4)

    def slope(u, theta):
        return pt.stack([theta[0] * u[0] - theta[1] * u[0] * u[1], theta[3] * u[0] * u[1] - theta[2] * u[1]])

    def step(u, theta):
        k1 = slope(u, theta)
        k2 = slope(u + 0.05 * k1, theta)
        k3 = slope(u + 0.05 * k2, theta)
        k4 = slope(u + 0.1 * k3, theta)
        return u + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    path = pytensor.scan(
        step, outputs_info=[pt.constant([3.0, 1.0])], non_sequences=[theta], n_steps=100, return_updates=False
    )
    pm.LogNormal("y", pt.log(path[9::10]), pm.HalfNormal("s"), observed=rng.lognormal(size=(10, 2)))


@model
def var1(rng):
    y = rng.normal(size=(60, 3))
    mean = y[:-1] @ pm.Normal("a", 0, 0.5, shape=(3, 3)).T
    chol, _, _ = pm.LKJCholeskyCov("l", n=3, eta=2, sd_dist=pm.HalfNormal.dist(1))
    pm.MvNormal("y", mean, chol=chol, observed=y[1:])


# --- mixtures and other latent structure --------------------------------------------------------------------


@model
def normal_mixture(rng):
    w = pm.Dirichlet("w", np.ones(3))
    mu = pm.Normal("mu", 0, 5, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])
    pm.NormalMixture("y", w, mu, sigma=pm.HalfNormal("s", shape=3), observed=rng.normal(size=200))


@model
def mixed_families(rng):
    parts = [pm.Normal.dist(pm.Normal("m"), 1), pm.StudentT.dist(nu=3, mu=0, sigma=pm.HalfNormal("s"))]
    pm.Mixture("y", w=pm.Dirichlet("w", np.ones(2)), comp_dists=parts, observed=rng.normal(size=70))


@model
def dirichlet_process(rng):
    alpha = pm.Gamma("alpha", 1, 1)
    beta = pm.Beta("beta", 1, alpha, shape=9)
    rest = pt.concatenate([pt.ones(1), pt.cumprod(1 - beta)])
    w = pt.concatenate([beta, pt.ones(1)]) * rest
    pm.NormalMixture(
        "y",
        w / w.sum(),
        pm.Normal("mu", 0, 3, shape=10),
        tau=pm.Gamma("tau", 2, 2, shape=10),
        observed=rng.normal(size=100),
    )


@model
def stick_breaking(rng):
    w = pm.StickBreakingWeights("w", alpha=pm.Gamma("alpha", 2, 2), K=6)
    pm.Multinomial("y", n=40, p=w, observed=rng.multinomial(40, np.ones(7) / 7, size=5))


@model
def dirichlet_multinomial(rng):
    conc = pm.LogNormal("conc", 1, 1)
    frac = pm.Dirichlet("frac", np.ones(5))
    pm.DirichletMultinomial("y", n=50, a=frac * conc, observed=rng.multinomial(50, np.ones(5) / 5, size=10))


@model
def item_response(rng):
    person, item = rng.integers(0, 30, 400), rng.integers(0, 12, 400)
    ability, difficulty = pm.Normal("ability", shape=30), pm.Normal("difficulty", shape=12)
    slope = pm.LogNormal("slope", 0, 0.5, shape=12)
    pm.Bernoulli(
        "y", logit_p=slope[item] * (ability[person] - difficulty[item]), observed=rng.integers(0, 2, 400)
    )


@model
def factor_analysis(rng):
    y = rng.normal(size=(50, 6))
    loadings = pt.set_subtensor(pt.zeros((6, 2))[pt.tril_indices(6, 0, 2)], pm.Normal("l", shape=11))
    pm.MvNormal("y", 0, cov=loadings @ loadings.T + pt.diag(pm.HalfNormal("psi", shape=6) + 0.1), observed=y)


@model
def sum_of_trees(rng):
    """Three soft trees of depth one: what is left of a sum of trees when splits are smooth."""
    x = rng.uniform(size=(100, 4))
    cut, leaf = pm.Uniform("cut", 0, 1, shape=3), pm.Normal("leaf", shape=(3, 2))
    right = pm.math.invlogit(20 * (x[:, [0, 1, 2]] - cut))
    pm.Normal(
        "y",
        pt.sum(leaf[:, 0] * (1 - right) + leaf[:, 1] * right, axis=1),
        pm.HalfNormal("s"),
        observed=rng.normal(size=100),
    )


@model
def change_point(rng):
    t, y = np.arange(110), rng.poisson(3, 110)
    switch = pm.Uniform("switch", 0, 110)
    rate = pt.switch(t < switch, pm.Exponential("early", 1), pm.Exponential("late", 1))
    pm.Poisson("y", rate, observed=y)


@model
def zero_sum(rng):
    group = rng.integers(0, 8, 120)
    effect = pm.ZeroSumNormal("effect", sigma=pm.HalfNormal("s"), shape=8)
    pm.Normal("y", pm.Normal("a") + effect[group], pm.HalfNormal("e"), observed=rng.normal(size=120))


# --- multivariate, spatial, Gaussian processes --------------------------------------------------------------


@model
def lkj_mvnormal(rng):
    chol, _, _ = pm.LKJCholeskyCov("l", n=5, eta=2, sd_dist=pm.Exponential.dist(1))
    pm.MvNormal("y", pm.Normal("mu", shape=5), chol=chol, observed=rng.normal(size=(100, 5)))


@model
def mv_student(rng):
    scale = np.eye(3) + 0.2
    pm.MvStudentT(
        "y",
        nu=pm.Gamma("nu", 2, 0.1) + 2,
        mu=pm.Normal("mu", shape=3),
        scale=scale,
        observed=rng.normal(size=(40, 3)),
    )


@model
def wishart(rng):
    a = rng.normal(size=(20, 3))
    scale = pt.diag(pm.HalfNormal("s", shape=3) + 0.5)
    pm.Wishart("y", nu=20, V=scale, observed=a.T @ a)


@model
def matrix_normal(rng):
    rows = pm.HalfNormal("r", shape=4) + 0.3
    pm.MatrixNormal(
        "y", mu=np.zeros((4, 3)), rowcov=pt.diag(rows), colcov=np.eye(3), observed=rng.normal(size=(4, 3))
    )


@model
def car(rng):
    w = (rng.uniform(size=(25, 25)) < 0.2).astype(float)
    w = np.triu(w, 1) + np.triu(w, 1).T + np.diag(np.ones(24), 1) + np.diag(np.ones(24), -1)
    phi = pm.CAR(
        "phi", mu=np.zeros(25), W=np.minimum(w, 1), alpha=pm.Beta("alpha", 2, 2), tau=pm.Gamma("tau", 2, 2)
    )
    pm.Poisson("y", pt.exp(phi), observed=rng.poisson(1, 25))


@model
def gp_marginal(rng):
    x = np.linspace(0, 10, 80)[:, None]
    cov = pm.HalfNormal("eta") ** 2 * pm.gp.cov.ExpQuad(1, ls=pm.Gamma("ls", 2, 1))
    pm.gp.Marginal(cov_func=cov).marginal_likelihood("y", X=x, y=np.sin(x[:, 0]), sigma=pm.HalfNormal("s"))


@model
def gp_latent_matern(rng):
    x = np.linspace(0, 10, 50)[:, None]
    cov = pm.HalfNormal("eta") ** 2 * pm.gp.cov.Matern52(1, ls=pm.Gamma("ls", 2, 1))
    f = pm.gp.Latent(cov_func=cov).prior("f", X=x)
    pm.Bernoulli("y", logit_p=f, observed=rng.integers(0, 2, 50))


@model
def hsgp(rng):
    x = np.linspace(-1, 1, 200)[:, None]
    cov = pm.HalfNormal("eta") ** 2 * pm.gp.cov.Matern52(1, ls=pm.InverseGamma("ls", 3, 1))
    f = pm.gp.HSGP(m=[20], c=1.5, cov_func=cov).prior("f", X=x)
    pm.Normal("y", f, pm.HalfNormal("s"), observed=np.sin(3 * x[:, 0]))


@model
def von_mises(rng):
    pm.VonMises("y", mu=pm.Normal("mu"), kappa=pm.Gamma("kappa", 2, 1), observed=rng.vonmises(0, 2, 60))


@model
def skewed(rng):
    y = rng.normal(size=70)
    mu, s = pm.Normal("mu"), pm.HalfNormal("s")
    pm.SkewNormal("y", mu=mu, sigma=s, alpha=pm.Normal("alpha"), observed=y)
    pm.AsymmetricLaplace("z", kappa=pm.HalfNormal("kappa") + 0.5, mu=mu, b=1 / s, observed=y)
    pm.ExGaussian("u", mu=mu, sigma=s, nu=pm.HalfNormal("nu") + 0.1, observed=y)


@model
def extreme_values(rng):
    pm.Gumbel("y", pm.Normal("mu"), pm.HalfNormal("beta"), observed=rng.gumbel(size=60))
    pm.Wald("w", mu=pm.HalfNormal("m") + 0.1, lam=pm.HalfNormal("l") + 0.1, observed=rng.wald(1, 2, 60))
    pm.Kumaraswamy(
        "k", a=pm.HalfNormal("ka") + 0.5, b=pm.HalfNormal("kb") + 0.5, observed=rng.uniform(0.1, 0.9, 60)
    )
    pm.Rice(
        "r", nu=pm.HalfNormal("rn") + 0.5, sigma=pm.HalfNormal("rs") + 0.5, observed=rng.uniform(0.5, 3, 60)
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From model to posterior with PyMC's and nutpie's samplers, by default and on graphc: `make bench-sampling`.

Each model, sampler and backend has a fresh process with empty caches and four chains on the machine's
cores. Wall time is from the finished model to the trace, compilation included; imports are not. Results are
kept in `results/sampling.json`; a full run also writes `docs/benchmarks_sampling.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import machine
import numpy as np
from bytecode import compile_sources

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "results" / "sampling.json"
CHAINS, TUNE, DRAWS = 4, 1000, 1000
WAYS = ("pm.sample", "pm.sample graphc", "nutpie", "nutpie graphc")
PAGE = """\
# PyMC's models, sampled

Written by `make bench-sampling`: from the finished model to {draws} draws after {tune} of warm-up in each
of {chains} chains, compilation included, every row in a fresh process with empty caches. ESS is the
smallest bulk effective sample size of all variables. **Means apart**: differences of posterior means from
the sampler's row without graphc, in their common Monte Carlo errors: root mean square of all variables (1 is
expected of two samplings of one posterior) and, in brackets, the largest. The rows without graphc are PyMC's
defaults, which compile with numba in these versions.

Measured on: {ran}.

{table}
"""


def radon() -> Any:
    """Counties with intercepts of their own (not centred), sizes as in the radon data."""
    import pymc as pm

    rng = np.random.default_rng(1)
    county, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919)
    y = (1.5 + 0.3 * rng.normal(size=85))[county] - 0.7 * floor + 0.75 * rng.normal(size=919)
    with pm.Model() as model:
        a = pm.Normal("mu", 0, 10) + pm.HalfNormal("tau", 1) * pm.Normal("a", shape=85)
        pm.Normal("y", a[county] + pm.Normal("b", 0, 10) * floor, pm.HalfNormal("sigma", 5), observed=y)
    return model


def garch() -> Any:
    """GARCH(1,1), 1,000 returns, by scan."""
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt

    rng = np.random.default_rng(2)
    y, variance = np.zeros(1000), 1.0
    for t in range(1000):
        y[t] = np.sqrt(variance) * rng.normal()
        variance = 0.1 + 0.15 * y[t] ** 2 + 0.75 * variance
    with pm.Model() as model:
        omega, alpha, beta = pm.HalfNormal("omega"), pm.Beta("alpha", 2, 4), pm.Beta("beta", 4, 2)
        variances = pytensor.scan(
            lambda y, h, omega, alpha, beta: omega + alpha * y**2 + beta * h,
            sequences=[pt.constant(y[:-1])],
            outputs_info=[pt.ones(())],
            non_sequences=[omega, alpha, beta],
            return_updates=False,
        )
        pm.Normal("y", 0, pt.sqrt(pt.concatenate([pt.ones(1), variances])), observed=y)
    return model


def hmm() -> Any:
    """Three hidden states and 300 observations, forward algorithm by scan."""
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt

    rng = np.random.default_rng(3)
    chances, state, states = 0.05 + 0.85 * np.eye(3), 0, []
    for _ in range(300):
        state = rng.choice(3, p=chances[state] / chances[state].sum())
        states.append(state)
    y = np.array([-3.0, 0.0, 3.0])[states] + 0.7 * rng.normal(size=300)
    with pm.Model() as model:
        p = pm.Dirichlet("p", 1 + 4 * np.eye(3))
        ordered = pm.distributions.transforms.ordered
        mu = pm.Normal("mu", 0, 3, shape=3, transform=ordered, initval=[-3, 0, 3])
        emission = pm.logp(pm.Normal.dist(mu, pm.HalfNormal("s")), y[:, None])
        alphas = pytensor.scan(
            lambda e, a, logp: e + pt.logsumexp(a[:, None] + logp, axis=0),
            sequences=[emission[1:]],
            outputs_info=[emission[0] - np.log(3)],
            non_sequences=[pt.log(p)],
            return_updates=False,
        )
        pm.Potential("y", pt.logsumexp(alphas[-1]))
    return model


def stochastic_volatility() -> Any:
    """A volatility that is an autoregression of 400 steps, not centred, by scan."""
    import pymc as pm
    import pytensor
    import pytensor.tensor as pt

    rng = np.random.default_rng(4)
    h = np.zeros(400)
    for t in range(1, 400):
        h[t] = 0.9 * h[t - 1] + 0.4 * rng.normal()
    y = np.exp(h / 2 - 0.5) * rng.normal(size=400)
    with pm.Model() as model:
        phi, sigma = pm.Beta("phi", 20, 3), pm.HalfNormal("sigma", 0.5)
        h = pytensor.scan(
            lambda z, h, phi, sigma: phi * h + sigma * z,
            sequences=[pm.Normal("z", shape=400)],
            outputs_info=[pt.zeros(())],
            non_sequences=[phi, sigma],
            return_updates=False,
        )
        pm.Normal("y", 0, pt.exp((pm.Normal("mu", -1, 1) + h) / 2), observed=y)
    return model


MODELS = {build.__name__: build for build in (radon, garch, hmm, stochastic_volatility)}


def sample(name: str, way: str) -> dict[str, Any]:
    """One trace in this process, and what it is worth."""
    warnings.simplefilter("ignore")
    import arviz
    import nutpie
    import pymc as pm
    import pytensor.link.numba.dispatch  # noqa: F401

    from graphc.interop.nutpie import compile_pymc_model

    model, cores = MODELS[name](), min(len(os.sched_getaffinity(0)), CHAINS)
    count = {"chains": CHAINS, "cores": cores, "tune": TUNE, "draws": DRAWS}
    began = time.perf_counter()
    if way.startswith("pm.sample"):
        with model:
            trace = pm.sample(
                **count,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
                compile_kwargs={"mode": "GRAPHC"} if way.endswith("graphc") else {},
            )
        compiled = None
    else:
        density = (compile_pymc_model if way.endswith("graphc") else nutpie.compile_pymc_model)(model)
        compiled = time.perf_counter() - began
        trace = nutpie.sample(density, **count, seed=1, progress_bar=False)
    wall = time.perf_counter() - began
    names = [v.name for v in model.free_RVs]
    table = arviz.summary(trace, var_names=names, round_to="none")
    ess = float(table["ess_bulk"].min())
    return {
        "wall": wall,
        "compiled": compiled,
        "ess": ess,
        "per_second": ess / wall,
        "rhat": float(table["r_hat"].max()),
        "mean": table["mean"].tolist(),
        "error": table["mcse_mean"].tolist(),
    }


def distances(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Differences of posterior means in their common Monte Carlo errors: root mean square and maximum."""
    apart = np.abs(np.subtract(one["mean"], other["mean"])) / np.hypot(one["error"], other["error"])
    return float(np.sqrt(np.mean(apart**2))), float(np.max(apart))


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Lines of Markdown."""
    lines = [
        "| model | sampler | wall s | of it compilation | ESS | ESS per s | largest R-hat | means apart |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        for way, row in rows.items():
            if "failed" in row:
                lines.append(f"| {name} | {way} | {row['failed']} |")
                continue
            first = next(r for w, r in rows.items() if "failed" not in r and w.split()[0] == way.split()[0])
            apart = "-" if first is row else "{:.1f} ({:.1f})".format(*distances(row, first))
            compiled = "-" if row["compiled"] is None else f"{row['compiled']:.1f}"
            lines.append(
                f"| {name} | {way} | {row['wall']:.1f} | {compiled} | {row['ess']:.0f} | "
                f"{row['per_second']:.3g} | {row['rhat']:.3f} | {apart} |"
            )
    return "\n".join(lines)


def page(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """docs/benchmarks_sampling.md."""
    ran = machine.with_versions("pymc", "nutpie", "pytensor", "numba", "llvmlite")
    return PAGE.format(draws=DRAWS, tune=TUNE, chains=CHAINS, ran=ran, table=table(found))


def main() -> None:
    """Sample every model in every way, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=MODELS, metavar="MODEL")
    parser.add_argument("--here", nargs=2, metavar=("MODEL", "WAY"), help="sample in this process")
    options = parser.parse_args()
    if options.here:
        answers, sys.stdout = sys.stdout, sys.stderr  # samplers print
        print(json.dumps(sample(*options.here)), file=answers)
        return
    compile_sources()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    for name in options.only:
        for way in WAYS:
            with tempfile.TemporaryDirectory() as caches:
                flags = f"base_compiledir={caches}/pytensor"
                environment = {**os.environ, "GRAPHC_CACHE_DIR": f"{caches}/graphc", "PYTENSOR_FLAGS": flags}
                command = [sys.executable, __file__, "--here", name, way]
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
            lines = done.stderr.strip().splitlines() or ["no message"]
            row = json.loads(done.stdout) if not done.returncode else {"failed": lines[-1]}
            found.setdefault(name, {})[way] = row
            RESULTS.write_text(json.dumps(found))
        print(table({name: found[name]}), flush=True)
    if set(options.only) == set(MODELS):
        (HERE.parents[1] / "docs" / "benchmarks_sampling.md").write_text(page(found))


if __name__ == "__main__":
    main()

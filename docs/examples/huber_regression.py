# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit a robust linear regression to scikit-learn's diabetes data, with the noise scale as a parameter.

The loss is the concomitant-scale form of Huber's M-estimator (P. J. Huber, Robust Statistics, 1981, section
7.7), which `sklearn.linear_model.HuberRegressor` minimises too: quadratic for residuals below `EPSILON`
scales, linear beyond. A tenth of the responses is spoilt on purpose. The exit status is 1 if the two fits
disagree.

    python docs/examples/huber_regression.py [--mode MODE] [--show-ir] [--plot FILE.png]
"""

from __future__ import annotations

import sys
from typing import Any

import _report as report
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor, LinearRegression

import graphc
import graphc.tensor as pt

EPSILON = 1.35  # 95 % efficiency for normal noise
PENALTY = 1e-4
LOSS_TOLERANCE = 1e-7  # relative
COEFFICIENT_TOLERANCE = 1e-3  # absolute; features and response are standardised


def load() -> tuple[Any, Any, Any, list[str]]:
    """442 patients, 10 features: standardised features, responses, which are spoilt, and names."""
    bunch = load_diabetes()
    features = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    response = (bunch.target - bunch.target.mean()) / bunch.target.std()
    rng = np.random.default_rng(0)
    spoilt = rng.random(len(response)) < 0.1
    response = np.where(spoilt, response + rng.normal(6.0, 2.0, len(response)), response)
    return features, response, spoilt, [str(name) for name in bunch.feature_names]


def build(features: Any, response: Any, mode: str | None) -> Any:
    """The loss and its gradient as functions of theta = (log scale, intercept, weights...)."""
    x, y = graphc.shared(features, name="x"), graphc.shared(response, name="y")
    theta = pt.vector("theta")
    scale, intercept, weights = pt.exp(theta[0]), theta[1], theta[2:]

    residual = (y - pt.dot(x, weights) - intercept) / scale
    size = pt.abs(residual)
    cost = pt.switch(size < EPSILON, residual**2, 2 * EPSILON * size - EPSILON**2)
    loss = (scale * (1 + cost)).sum() + PENALTY * (weights**2).sum()
    return report.compile_timed("loss, gradient", [theta], [loss, graphc.grad(loss, theta)], mode)


def plot(names: list[str], fits: dict[str, Any], path: Any) -> None:
    """The weights of the three fits, side by side."""
    drawing, axes = report.figure(1, height=4.2)
    rows = np.arange(len(names))
    axes.axhline(0, color=report.GREY, linewidth=0.8)
    styles = [("s", report.GREY, 5, "full"), ("o", report.ORANGE, 9, "none"), ("o", report.BLUE, 4, "full")]
    for (label, weights), (marker, colour, size, fill) in zip(fits.items(), styles, strict=True):
        axes.plot(rows, weights, marker, color=colour, markersize=size, fillstyle=fill, label=label)
    axes.set_xticks(rows, names)
    axes.set(title="Weights with a tenth of the responses spoilt", ylabel="standardised weight")
    axes.legend()
    report.save(drawing, path)


def main() -> int:
    """Run the example; returns the exit status."""
    arguments = report.options(__doc__.splitlines()[0], "huber_regression.png").parse_args()
    features, response, spoilt, names = load()
    print(f"diabetes data: {features.shape[0]} patients, 10 features, {spoilt.sum()} responses spoilt")
    loss_and_gradient = build(features, response, arguments.mode)
    if arguments.show_ir:
        report.show_ir(loss_and_gradient)

    progress = report.Progress("L-BFGS-B", loss_and_gradient)
    best = minimize(
        progress, np.zeros(features.shape[1] + 2), jac=True, method="L-BFGS-B", callback=progress.step,
        options={"ftol": 0.0, "gtol": 1e-6, "maxcor": 30, "maxiter": 1000},
    )  # fmt: skip
    progress.finish(best)

    peer = HuberRegressor(epsilon=EPSILON, alpha=PENALTY, tol=1e-8, max_iter=10_000).fit(features, response)
    least_squares = LinearRegression().fit(features, response)
    expected = np.concatenate([[np.log(peer.scale_), peer.intercept_], peer.coef_])
    rows = zip(["log scale", "intercept", *names], best.x.tolist(), expected.tolist(), strict=True)
    print()
    report.table(
        ["parameter", "graphc", "scikit-learn", "difference"], [(*r, abs(r[1] - r[2])) for r in rows]
    )
    print()
    theirs = float(loss_and_gradient(expected)[0])
    agreed = [
        report.check("relative excess of the loss", (best.fun - theirs) / theirs, LOSS_TOLERANCE),
        report.check(
            "largest difference of a parameter", np.abs(best.x - expected).max(), COEFFICIENT_TOLERANCE
        ),
    ]
    plot(
        names,
        {"least squares": least_squares.coef_, "scikit-learn": peer.coef_, "graphc": best.x[2:]},
        arguments.plot,
    )
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())

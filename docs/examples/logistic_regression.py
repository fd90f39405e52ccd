# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit a logistic regression, written as a symbolic graph, to scikit-learn's breast cancer data.

The loss, its gradient and its Hessian-vector product are compiled once. SciPy drives them to convergence,
twice: with a quasi-Newton method that sees the gradient, and with a trust-region Newton method that also sees
the curvature. The result is compared with `sklearn.linear_model.LogisticRegression`; the exit status is 1 if
they disagree.

    python docs/examples/logistic_regression.py [--mode MODE] [--show-ir] [--plot FILE.png] [--max-steps N]
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import _report as report
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import graphc
import graphc.tensor as pt

PENALTY = 1.0  # the 1/C of scikit-learn
LOSS_TOLERANCE = 1e-8  # relative
COEFFICIENT_TOLERANCE = 1e-4  # absolute; features are standardised


class Data(NamedTuple):
    """Standardised features `(n, p)`, labels 0/1 `(n,)` and the feature names."""

    features: Any
    labels: Any
    names: list[str]


class Model(NamedTuple):
    """The compiled functions of the parameters: theta = (intercept, weights...)."""

    loss_and_gradient: Any
    hessian_product: Any


def load() -> Data:
    """569 tumours with 30 measurements each; label 1 is benign."""
    bunch = load_breast_cancer()
    features = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    return Data(features, bunch.target.astype("float64"), [str(name) for name in bunch.feature_names])


def build(data: Data, mode: str | None) -> Model:
    """Write the model as a graph and compile it."""
    x = graphc.shared(data.features, name="x")
    y = graphc.shared(data.labels, name="y")
    theta, direction = pt.vector("theta"), pt.vector("direction")

    intercept, weights = theta[0], theta[1:]
    logits = pt.dot(x, weights) + intercept
    # -log p(y | x) of a Bernoulli variable with these logits.
    negative_log_likelihood = (pt.softplus(logits) - y * logits).sum()
    loss = negative_log_likelihood + 0.5 * PENALTY * (weights**2).sum()

    gradient = graphc.grad(loss, theta)
    curvature = graphc.grad((gradient * direction).sum(), theta)
    return Model(
        report.compile_timed("loss, gradient", [theta], [loss, gradient], mode),
        report.compile_timed("Hessian product", [theta, direction], curvature, mode),
    )


def fit(model: Model, size: int, max_steps: int) -> tuple[Any, list[tuple[str, report.Progress]]]:
    """Minimise the loss from zero with both methods.

    Returns:
        The better optimum, and the progress of each method.
    """
    runs, best = [], None
    settings: list[tuple[str, dict[str, Any]]] = [
        ("L-BFGS-B", {"options": {"maxiter": max_steps, "ftol": 0.0, "gtol": 1e-6, "maxcor": 30}}),
        ("trust-ncg", {"options": {"maxiter": max_steps, "gtol": 1e-7}, "hessp": model.hessian_product}),
    ]
    for method, arguments in settings:
        progress = report.Progress(method, model.loss_and_gradient)
        outcome = minimize(
            progress, np.zeros(size), jac=True, method=method, callback=progress.step, **arguments
        )
        progress.finish(outcome)
        runs.append((method, progress))
        if best is None or outcome.fun < best.fun:
            best = outcome
    return best, runs


def compare(data: Data, model: Model, theta: Any) -> tuple[bool, Any]:
    """Fit the same model with scikit-learn and print both.

    Returns:
        Whether they agree, and scikit-learn's parameters.
    """
    start = time.perf_counter()
    peer = LogisticRegression(C=1 / PENALTY, tol=1e-10, max_iter=10_000).fit(data.features, data.labels)
    print(f"\nscikit-learn fitted in {1e3 * (time.perf_counter() - start):.1f} ms")
    expected = np.concatenate([peer.intercept_, peer.coef_[0]])
    ours, theirs = (float(model.loss_and_gradient(t)[0]) for t in (theta, expected))

    largest = np.argsort(-np.abs(theta[1:]))[:10]
    rows = [("intercept", float(theta[0]), float(expected[0]), abs(float(theta[0] - expected[0])))]
    for i in largest:
        ours_i, theirs_i = float(theta[i + 1]), float(expected[i + 1])
        rows.append((data.names[i], ours_i, theirs_i, abs(ours_i - theirs_i)))
    report.table(["ten largest weights", "graphc", "scikit-learn", "difference"], rows)

    accuracy = np.mean((data.features @ theta[1:] + theta[0] > 0) == (data.labels > 0.5))
    print(f"\nloss {ours:.8f}, scikit-learn {theirs:.8f}; training accuracy {100 * accuracy:.2f} %")
    agreed = [
        report.check("relative excess of the loss", (ours - theirs) / theirs, LOSS_TOLERANCE),
        report.check(
            "largest difference of a coefficient", np.abs(theta - expected).max(), COEFFICIENT_TOLERANCE
        ),
    ]
    return all(agreed), expected


def plot(data: Data, theta: Any, expected: Any, runs: list[tuple[str, report.Progress]], path: Any) -> None:
    """Convergence on the left, coefficients beside scikit-learn's on the right."""
    drawing, (left, right) = report.figure(2, height=6.2, ratios=(1, 1.15))
    lowest = min(min(progress.losses) for _, progress in runs)
    for (method, progress), colour, marker in zip(runs, (report.BLUE, report.ORANGE), "os", strict=True):
        gap = np.maximum(np.array(progress.losses) - lowest, 1e-10)
        left.semilogy(gap, color=colour, marker=marker, markersize=3.5, linewidth=1.3, label=method)
    left.set(title="Convergence", xlabel="step", ylabel="loss above the optimum (1e-10 at least)")
    left.legend(loc="upper right")

    order = np.argsort(theta[1:])
    rows = np.arange(len(order))
    right.axvline(0, color=report.GREY, linewidth=0.8)
    right.plot(
        expected[1:][order],
        rows,
        "o",
        color=report.ORANGE,
        markersize=8,
        fillstyle="none",
        label="scikit-learn",
    )
    right.plot(theta[1:][order], rows, "o", color=report.BLUE, markersize=3.5, label="graphc")
    right.set_yticks(rows, [data.names[i] for i in order], fontsize=7.5)
    right.set(
        title="Weights of the standardised features",
        xlabel="weight (positive: benign)",
        ylim=(-0.8, len(rows) - 0.2),
    )
    right.legend(loc="lower right")
    report.save(drawing, path)


def main() -> int:
    """Run the example; returns the exit status."""
    parser = report.options(__doc__.splitlines()[0], "logistic_regression.png")
    parser.add_argument("--max-steps", type=int, default=1000, help="limit of each optimisation")
    arguments = parser.parse_args()

    data = load()
    print(f"breast cancer data: {data.features.shape[0]} samples, {data.features.shape[1]} features")
    model = build(data, arguments.mode)
    if arguments.show_ir:
        report.show_ir(model.loss_and_gradient)
    print()
    best, runs = fit(model, data.features.shape[1] + 1, arguments.max_steps)
    agreed, expected = compare(data, model, best.x)
    plot(data, best.x, expected, runs, arguments.plot)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fit a Poisson regression by a trust-region method that is one compiled function.

The optimiser is a graph: a loop whose body differentiates the loss twice, chooses a step by nested
conditionals (`graphc.ifelse`), accepts or rejects it, and adapts the trust region, until the gradient
vanishes. Only the chosen branch of a conditional runs: the linear system of a Newton step is solved in those
iterations only that need it. The data are scikit-learn's diabetes data, whose target is a count; the result
is compared with `sklearn.linear_model.PoissonRegressor`, and the exit status is 1 if they disagree.

Source of the method: Nocedal and Wright, Numerical Optimization (2006), algorithm 4.1 with the dogleg of 4.1.

    python docs/examples/trust_region.py [--mode MODE] [--show-ir] [--plot FILE.png] [--max-steps N]
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import _report as report
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import PoissonRegressor

import graphc
import graphc.tensor as pt
from graphc import ifelse

GRADIENT_TOLERANCE = 1e-8  # of the mean loss
COEFFICIENT_TOLERANCE = 1e-7  # absolute
LARGEST_RADIUS = 10.0


class Trace(NamedTuple):
    """What each iteration did: the loss and the radius after it, and whether its step was accepted."""

    losses: Any
    radii: Any
    accepted: Any


def load() -> tuple[Any, Any]:
    """Features (442, 11), the first of them constant, and the progression of the disease, counts."""
    bunch = load_diabetes()
    features = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    return np.column_stack([np.ones(len(features)), features]), bunch.target


def length(step: Any) -> Any:
    """Euclidean norm."""
    return pt.sqrt(pt.dot(step, step))


def dogleg(gradient: Any, hessian: Any, radius: Any) -> Any:
    """The step to the lowest point on the path from here over the Cauchy point to that of Newton.

    Args:
        gradient: of the loss.
        hessian: of the loss, positive definite.
        radius: steps are at most this long.
    """
    cauchy = -pt.dot(gradient, gradient) / pt.dot(gradient, hessian @ gradient) * gradient

    def along_the_path() -> Any:
        newton = pt.linalg.solve(hessian, -gradient, assume_a="pos")
        rest = newton - cauchy
        # Where the second leg leaves the region: the positive root of |cauchy + t * rest| = radius.
        a, b, c = pt.dot(rest, rest), pt.dot(cauchy, rest), pt.dot(cauchy, cauchy) - radius**2
        t = (-b + pt.sqrt(b**2 - a * c)) / a
        return ifelse(length(newton) <= radius, newton, lambda: cauchy + t * rest)

    return ifelse(length(cauchy) >= radius, lambda: -radius / length(gradient) * gradient, along_the_path)


def build(features: Any, counts: Any, mode: str | None) -> Any:
    """The optimiser: a function of the first parameters, the first radius and the number of iterations."""
    x, y = graphc.shared(features, name="x"), graphc.shared(counts, name="y")

    def loss(theta: Any) -> Any:
        # Mean of -log p(y | x) of a Poisson variable with a log-linear rate, up to a constant.
        logits = pt.dot(x, theta)
        return (pt.exp(logits) - y * logits).mean()

    def iterate(theta: Any, radius: Any) -> Any:
        here = loss(theta)
        gradient, hessian = graphc.grad(here, theta), graphc.hessian(here, theta)
        step = dogleg(gradient, hessian, radius)
        there = loss(theta + step)
        predicted = -(pt.dot(gradient, step) + 0.5 * pt.dot(step, hessian @ step))
        ratio = (here - there) / predicted

        at_the_border = length(step) > 0.99 * radius
        wider = ifelse((ratio > 0.75) & at_the_border, pt.minimum(2 * radius, LARGEST_RADIUS), radius)
        next_radius = ifelse(ratio > 0.25, wider, 0.25 * radius)
        converged = abs(gradient).max() < GRADIENT_TOLERANCE
        # Where the loss is as low as rounding lets it be, the ratio says nothing.
        good = (ratio > 0.1) | converged
        next_theta, value = ifelse(good, (theta + step, there), (theta, here))
        return [next_theta, next_radius, value, good], graphc.until(converged)

    theta, radius, steps = pt.vector("theta"), pt.scalar("radius"), pt.lscalar("steps")
    thetas, radii, losses, accepted = graphc.scan(
        iterate, outputs_info=[theta, radius, None, None], n_steps=steps, return_updates=False
    )
    return report.compile_timed(
        "optimiser", [theta, radius, steps], [thetas[-1], losses, radii, accepted], mode
    )


def fit(optimise: Any, size: int, max_steps: int) -> tuple[Any, Trace]:
    """Minimise from zero, where the rates are far too small and a Newton step overshoots."""
    start = time.perf_counter()
    theta, *trace = optimise(np.zeros(size), 0.5, max_steps)
    seconds = time.perf_counter() - start
    found = Trace(*trace)
    rejected = int((~found.accepted).sum())
    print(
        f"trust region: {len(found.losses)} iterations, {rejected} of them rejected, "
        f"in {1e3 * seconds:.2f} ms; loss {found.losses[-1]:.10f}"
    )
    for i, (value, radius, accepted) in enumerate(zip(*found, strict=True), 1):
        if i % 5 == 0 or i == len(found.losses):
            remark = "" if accepted else "  rejected"
            print(f"  iteration {i:3d}  loss {value:16.10f}  radius {radius:8.4f}{remark}")
    return theta, found


def compare(features: Any, counts: Any, theta: Any) -> bool:
    """Print both fits and whether they agree."""
    start = time.perf_counter()
    peer = PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    peer.fit(features[:, 1:], counts)
    print(f"\nscikit-learn fitted in {1e3 * (time.perf_counter() - start):.1f} ms")
    expected = np.concatenate([[peer.intercept_], peer.coef_])
    names = ["intercept", *load_diabetes().feature_names]
    rows = [
        (n, float(a), float(b), abs(float(a - b))) for n, a, b in zip(names, theta, expected, strict=True)
    ]
    report.table(["coefficient", "graphc", "scikit-learn", "difference"], rows)
    return report.check(
        "largest difference of a coefficient", float(abs(theta - expected).max()), COEFFICIENT_TOLERANCE
    )


def plot(trace: Trace, path: Any) -> None:
    """The loss above its minimum, and the radius."""
    drawing, (left, right) = report.figure(2)
    excess = np.maximum(trace.losses - trace.losses.min(), 1e-16)
    steps = np.arange(1, len(excess) + 1)
    left.semilogy(steps, excess, color=report.BLUE)
    left.semilogy(steps[~trace.accepted], excess[~trace.accepted], "x", color=report.ORANGE, label="rejected")
    left.set(title="Loss above its minimum", xlabel="iteration")
    left.legend()
    right.semilogy(steps, trace.radii, color=report.BLUE)
    right.set(title="Radius of the trust region", xlabel="iteration")
    report.save(drawing, path)


def main() -> int:
    """Run the example; the exit status is 1 when it disagrees with scikit-learn."""
    parser = report.options(__doc__.splitlines()[0], "trust_region.png")
    parser.add_argument("--max-steps", type=int, default=100, help="iterations at most")
    arguments = parser.parse_args()
    features, counts = load()
    optimise = build(features, counts, arguments.mode)
    if arguments.show_ir:
        report.show_ir(optimise)
    theta, trace = fit(optimise, features.shape[1], arguments.max_steps)
    agreed = compare(features, counts, theta)
    plot(trace, arguments.plot)
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())

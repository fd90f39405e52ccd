# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A session as in a notebook, in immediate mode: look at data, fit it, and see what the fit is worth.

`graphc.immediate.Environment` runs the functions of `graphc.tensor` at once, so that values can be printed,
tested and looped over. The session below is ordinary Python. It runs twice, eagerly and with lazy fusion,
where operations queue up and run as one kernel when a value is needed, and gives the same numbers. Gradients
come from the tape; what has been tried out is then recorded and compiled as one function.

The data are scikit-learn's diabetes data, some of whose targets are spoilt on purpose. The least squares fit
is compared with NumPy's, the robust one with the optimum that SciPy finds; the exit status is 1 if one of
them disagrees.

    python docs/examples/immediate_session.py [--mode MODE] [--show-ir] [--plot FILE.png] [--max-steps N]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import _report as report
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes

import graphc

DELTA = 1.5  # residuals above so many standard deviations count linearly
SPOILT = 20


def load() -> tuple[Any, Any]:
    """Standardised features (442, 11), the first constant, and targets of which some are far too large."""
    bunch = load_diabetes()
    features = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    target = (bunch.target - bunch.target.mean()) / bunch.target.std()
    target[np.random.default_rng(3).choice(len(target), SPOILT, replace=False)] += 8.0
    return np.column_stack([np.ones(len(features)), features]), target


def huber(gt: Any, x: Any, y: Any, weights: Any) -> Any:
    """Mean Huber loss; `gt` is an environment or `graphc.tensor`."""
    size = gt.abs(y - gt.dot(x, weights))
    return gt.mean(gt.where(size < DELTA, 0.5 * size**2, DELTA * (size - 0.5 * DELTA)))


def descend(gt: Any, x: Any, y: Any, weights: Any, steps: int) -> tuple[Any, list[float]]:
    """Gradient descent with momentum by the tape, until the gradient vanishes."""
    speed, losses = gt.zeros_like(weights), []
    for _ in range(steps):
        with gt.tape() as tape:
            loss = huber(gt, x, y, weights)
        gradient = tape.gradient(loss, weights)
        losses.append(float(loss))
        # A value of a tensor decides in Python.
        if gt.abs(gradient).max() < 1e-7:
            break
        speed = 0.9 * speed - 0.1 * gradient
        weights = weights + speed
    return weights, losses


def session(gt: Any, features: Any, target: Any, steps: int) -> dict[str, Any]:
    """What one would type, line by line."""
    x, y = gt.numpy_to_tensor(features), gt.numpy_to_tensor(target)
    print(f"\n{gt!r}\ndata {tuple(map(int, x.shape))}, first targets {y[:3]}")

    # Which measurements go with the target? Tensors sort, index and print.
    correlation = gt.dot(x.T, y) / x.shape[0]
    order = gt.argsort(-gt.abs(correlation))
    names = ["intercept", *load_diabetes().feature_names]
    print(
        "largest correlations:", ", ".join(f"{names[int(i)]} {float(correlation[i]):+.2f}" for i in order[:4])
    )

    # Least squares, by the normal equations.
    plain = gt.linalg.solve(gt.dot(x.T, x), gt.dot(x.T, y))
    residuals = y - gt.dot(x, plain)
    far = gt.abs(residuals) > 3 * residuals.std()
    print(f"least squares: spread {float(residuals.std()):.3f}; {int(far.sum())} residuals above three of it")

    # Those should not decide: a loss that grows linearly, minimised with gradients from the tape.
    start = time.perf_counter()
    robust, losses = descend(gt, x, y, plain, steps)
    seconds = time.perf_counter() - start
    print(f"Huber loss {losses[0]:.6f} -> {losses[-1]:.6f} in {len(losses)} steps, {seconds:.2f} s")
    info = gt.cache_info()
    print(f"{info.size} executables, found again {info.hits} times; {gt.live_bytes / 1e3:.0f} kB alive")
    return {"plain": np.asarray(plain), "robust": np.asarray(robust), "losses": losses}


def compiled(features: Any, target: Any, weights: Any, mode: str | None) -> Any:
    """The loss and its gradient once more: recorded in an environment, compiled as a function of weights."""
    gt = graphc.immediate.Environment(name="recorded")
    x, y, w = (gt.numpy_to_tensor(each) for each in (features, target, weights))
    with gt.record() as recording:
        loss = huber(gt, x, y, w)
    graph = recording.graph([loss], inputs=[w])
    (weight,) = graph.inputs
    gradient = graphc.grad(graph.outputs[0], weight)
    return report.compile_timed("recorded loss", [weight], [*graph.outputs, gradient], mode)


def plot(results: dict[str, dict[str, Any]], best: float, path: Any) -> None:
    """The loss above its minimum, of both environments."""
    drawing, axis = report.figure(1)
    styles = zip(results.items(), ((report.BLUE, "-"), (report.ORANGE, "--")), strict=True)
    for (name, found), (colour, line) in styles:
        excess = np.maximum(np.array(found["losses"]) - best, 1e-16)
        axis.semilogy(excess, line, color=colour, label=name)
    axis.set(title="Huber loss above its minimum", xlabel="step")
    axis.legend()
    report.save(drawing, path)


def main() -> int:
    """Run the sessions; the exit status is 1 when results disagree."""
    parser = report.options(__doc__.splitlines()[0], "immediate_session.png")
    parser.add_argument("--max-steps", type=int, default=1500, help="steps of the descent at most")
    arguments = parser.parse_args()
    features, target = load()
    environments = {
        "eager": graphc.immediate.Environment(name="eager", mode=arguments.mode),
        "lazy": graphc.immediate.Environment(name="lazy", mode=arguments.mode, lazy=True),
    }
    results = {name: session(gt, features, target, arguments.max_steps) for name, gt in environments.items()}
    eager, lazy = results["eager"], results["lazy"]
    print()
    f = compiled(features, target, eager["robust"], arguments.mode)
    if arguments.show_ir:
        report.show_ir(f)
    value, gradient = f(eager["robust"])

    def loss(w: Any) -> Any:
        size = abs(target - features @ w)
        return np.where(size < DELTA, 0.5 * size**2, DELTA * (size - 0.5 * DELTA)).mean()

    best = minimize(loss, eager["robust"], method="BFGS", options={"gtol": 1e-9}).fun
    expected = np.linalg.lstsq(features, target)[0]
    print()
    agreed = [
        report.check("least squares against NumPy", float(abs(eager["plain"] - expected).max()), 1e-10),
        report.check("excess of the Huber loss", eager["losses"][-1] - best, 1e-9),
        report.check("lazy against eager", float(abs(lazy["robust"] - eager["robust"]).max()), 1e-10),
        report.check("the recorded loss", float(abs(value - loss(eager["robust"]))), 1e-12),
        report.check("its gradient at the optimum", float(abs(gradient).max()), 1e-5),
    ]
    plot(results, best, arguments.plot)
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sample from posteriors with Hamiltonian Monte Carlo and with Metropolis, each sampler one compiled loop.

A sampler is a graph: a `graphc.scan` over the iterations, which draws from a generator
(`graphc.tensor.random`), moves (for HMC by an inner loop of leapfrog steps along the gradient that
`graphc.grad` derives), and accepts or rejects by `graphc.ifelse`. Two models are checked against moments that
are known otherwise:

- a linear regression of scikit-learn's diabetes data with a normal prior, whose posterior is normal;
- how fast sunspot numbers return to their mean: an autoregression with an unknown coefficient and an unknown
  spread, whose posterior is integrated on a grid (a batch of the same graph, by `graphc.vectorize_graph`).

The exit status is 1 if a mean or standard deviation is further off than its Monte Carlo error explains.

    python docs/examples/hmc.py [--mode MODE] [--show-ir] [--plot FILE.png] [--draws N]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _report as report
import numpy as np
from sklearn.datasets import load_diabetes

import graphc
import graphc.tensor as pt
from graphc import ifelse

WARM_UP = 200
NOISE, PRIOR = 54.0, 30.0  # standard deviations: of the residuals, and of a coefficient before the data
SEED = 20

LogDensity = Callable[[Any], Any]


def hmc(log_density: LogDensity, steps: int) -> Callable[..., Any]:
    """One iteration of Hamiltonian Monte Carlo.

    Args:
        log_density: of a vector, up to a constant.
        steps: leapfrog steps of a proposal.

    Returns:
        A function of position, generator and step size: the next position, the next generator, and whether it
        has moved.
    """

    def gradient(position: Any) -> Any:
        return graphc.grad(log_density(position), position)

    def leapfrog(position: Any, momentum: Any, size: Any) -> tuple[Any, Any]:
        position = position + size * momentum
        return position, momentum + size * gradient(position)

    def iterate(position: Any, rng: Any, size: Any) -> tuple[Any, ...]:
        rng, momentum = rng.normal(0.0, 1.0, size=position.shape)
        # Steps of another size each time, so that no direction comes back to where it started.
        rng, jitter = rng.uniform(0.7, 1.3)
        size = size * jitter
        half = momentum + 0.5 * size * gradient(position)
        positions, momenta = graphc.scan(
            leapfrog, outputs_info=[position, half], non_sequences=size, n_steps=steps, return_updates=False
        )
        proposal, last = positions[-1], momenta[-1] - 0.5 * size * gradient(positions[-1])

        def energy(q: Any, p: Any) -> Any:
            return 0.5 * pt.dot(p, p) - log_density(q)

        rng, u = rng.uniform(0.0, 1.0)
        accepted = pt.log(u) < energy(position, momentum) - energy(proposal, last)
        return ifelse(accepted, proposal, position), rng, accepted

    return iterate


def metropolis(log_density: LogDensity) -> Callable[..., Any]:
    """One iteration of the random walk Metropolis algorithm; as `hmc`."""

    def iterate(position: Any, rng: Any, size: Any) -> tuple[Any, ...]:
        rng, noise = rng.normal(0.0, 1.0, size=position.shape)
        proposal = position + size * noise
        rng, u = rng.uniform(0.0, 1.0)
        accepted = pt.log(u) < log_density(proposal) - log_density(position)
        return ifelse(accepted, proposal, position), rng, accepted

    return iterate


def sampler(name: str, iterate: Callable[..., Any], mode: str | None) -> Any:
    """The compiled sampler: from a start, a step size and a number of draws to the positions and the share
    accepted.
    """
    start, size, count = pt.vector("start"), pt.scalar("size"), pt.lscalar("count")
    rng = graphc.shared(np.random.default_rng(SEED), name="rng")
    positions, last, accepted = graphc.scan(
        iterate, outputs_info=[start, rng, None], non_sequences=size, n_steps=count, return_updates=False
    )
    begun = time.perf_counter()
    f = graphc.function(
        [start, size, count], [positions, accepted.mean()], updates={rng: last}, mode=mode, name=name
    )
    print(f"compiled {name:<18} {1e3 * (time.perf_counter() - begun):8.1f} ms")
    return f


def draw(name: str, f: Any, start: Any, size: float, count: int) -> Any:
    """Draws after a warm-up."""
    begun = time.perf_counter()
    positions, accepted = f(start, size, WARM_UP + count)
    seconds = time.perf_counter() - begun
    print(
        f"{name:<12} {count} draws in {1e3 * seconds:.1f} ms, {100 * accepted:.0f} % accepted, "
        f"{1e6 * seconds / len(positions):.1f} us each"
    )
    return positions[WARM_UP:]


def effective(draws: Any) -> Any:
    """Effective number of independent draws of each column: autocorrelations until they are negative."""
    centred = draws - draws.mean(axis=0)
    spectrum = np.fft.rfft(centred, 2 * len(draws), axis=0)
    covariance = np.fft.irfft(abs(spectrum) ** 2, axis=0)[: len(draws)]
    correlation = covariance / covariance[0]
    counts = []
    for column in correlation.T:
        pairs = column[: len(column) // 2 * 2].reshape(-1, 2).sum(axis=1)
        end = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
        counts.append(len(draws) / max(2 * pairs[:end].sum() - 1, 1.0))
    return np.array(counts)


def compare(what: str, names: list[str], draws: Any, mean: Any, spread: Any) -> bool:
    """Print moments and known ones; whether all differ by less than five Monte Carlo standard errors."""
    size = effective(draws)
    error = spread / np.sqrt(size)
    off_mean = (draws.mean(axis=0) - mean) / error
    # Of a normal sample it varies by 1 / sqrt(2 n) of itself; squares are correlated less than values.
    off_spread = (draws.std(axis=0) / spread - 1) * np.sqrt(size)
    rows = zip(names, draws.mean(axis=0), mean, draws.std(axis=0), spread, size.astype(int), strict=True)
    print()
    report.table(
        [what, "mean", "known", "std", "known", "independent"], [[*map(_plain, row)] for row in rows]
    )
    agreed = [
        report.check("means, in standard errors", float(abs(off_mean).max()), 5.0),
        report.check("standard deviations, in standard errors", float(abs(off_spread).max()), 5.0),
    ]
    return all(agreed)


def _plain(cell: Any) -> Any:
    return float(cell) if isinstance(cell, np.floating) else cell


# The two models ---------------------------------------------------------------------------------------------


def diabetes() -> tuple[LogDensity, list[str], Any, Any]:
    """Log density of the coefficients, their names, and their exact means and standard deviations."""
    bunch = load_diabetes()
    features = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    target = bunch.target - bunch.target.mean()
    x, y = graphc.shared(features, name="features"), graphc.shared(target, name="target")

    def log_density(coefficients: Any) -> Any:
        residuals = y - pt.dot(x, coefficients)
        return (
            -0.5 * pt.dot(residuals, residuals) / NOISE**2
            - 0.5 * pt.dot(coefficients, coefficients) / PRIOR**2
        )

    precision = features.T @ features / NOISE**2 + np.eye(features.shape[1]) / PRIOR**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ (features.T @ target) / NOISE**2
    return log_density, [str(name) for name in bunch.feature_names], mean, np.sqrt(np.diag(covariance))


def sunspots() -> tuple[LogDensity, list[str], Any, Any]:
    """The same for the coefficient and the log of the spread of an autoregression."""
    table = np.loadtxt(Path(__file__).parent / "data" / "sunspots.csv", delimiter=",", skiprows=1)
    series = np.sqrt(table[:, 1])
    series = series - series.mean()
    before, after = graphc.shared(series[:-1], name="before"), graphc.shared(series[1:], name="after")

    def log_density(theta: Any) -> Any:
        coefficient, log_spread = theta[0], theta[1]
        residuals = (after - coefficient * before) * pt.exp(-log_spread)
        return -0.5 * pt.dot(residuals, residuals) - residuals.shape[0] * log_spread - 0.5 * coefficient**2

    # The same density on a grid, compiled too: a batch of the graph above.
    theta, grid = pt.vector("theta"), pt.tensor3("grid")
    density = graphc.function([grid], graphc.vectorize_graph(log_density(theta), {theta: grid}))
    a, b = np.linspace(0.6, 1.0, 301), np.linspace(0.2, 1.2, 301)
    points = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1)
    weights = density(points)
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    mean = (weights[..., None] * points).sum(axis=(0, 1))
    variance = (weights[..., None] * (points - mean) ** 2).sum(axis=(0, 1))
    return log_density, ["coefficient", "log of the spread"], mean, np.sqrt(variance)


def plot(chains: dict[str, Any], path: Path) -> None:
    """Traces of one parameter of each chain."""
    drawing, axes = report.figure(len(chains), 3.6)
    for axis, colour, (name, draws) in zip(axes, (report.BLUE, report.ORANGE), chains.items(), strict=True):
        axis.plot(draws[:500, 0], color=colour, linewidth=0.8)
        axis.set(title=name, xlabel="draw")
    report.save(drawing, path)


def main() -> int:
    """Run the example; the exit status is 1 when moments disagree."""
    parser = report.options(__doc__.splitlines()[0], "hmc.png")
    parser.add_argument("--draws", type=int, default=4000, help="draws of each sampler after the warm-up")
    arguments = parser.parse_args()

    log_density, names, mean, spread = diabetes()
    f = sampler("HMC", hmc(log_density, 20), arguments.mode)
    if arguments.show_ir:
        report.show_ir(f)
    coefficients = draw("HMC", f, np.zeros(len(names)), 1.5, arguments.draws)
    agreed = [compare("coefficient", names, coefficients, mean, spread)]
    print()

    log_density, names, mean, spread = sunspots()
    f = sampler("Metropolis", metropolis(log_density), arguments.mode)
    rates = draw("Metropolis", f, np.array([0.8, 0.7]), 0.05, 5 * arguments.draws)
    agreed.append(compare("parameter", names, rates, mean, spread))
    plot({"HMC: age": coefficients, "Metropolis: coefficient": rates}, arguments.plot)
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())

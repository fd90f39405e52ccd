# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forecast the yearly number of sunspots with an autoregression whose variance is a GARCH(1,1) process.

Two models are fitted to the years before 1987 by maximum likelihood, with gradients through `graphc.scan`:
AR(9) with constant variance, and AR(9) with the variance `omega + alpha * error**2 + beta * variance` of
T. Bollerslev (J. Econometrics 31, 1986). A third loop, which reads nine rows of its own output, forecasts the
years from 1987 on. The first model is compared with `statsmodels.tsa.ar_model.AutoReg`, the second with a
likelihood in plain Python that SciPy minimises with differences for derivatives; the exit status is 1 if they
disagree.

The series, 1700 to 2008, is in the public domain (US National Geophysical Data Center; it is `sunspots` of
`statsmodels.datasets`) and is shipped as `data/sunspots.csv`.

    python docs/examples/sunspots.py [--mode MODE] [--show-ir] [--plot FILE.png] [--max-steps N]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import _report as report
import numpy as np
from scipy.optimize import minimize

import graphc
import graphc.tensor as pt

ORDER = 9
HELD_OUT = 22  # years: two cycles of the sun
START = 0.1  # squared error and variance before the first year: about what AR(9) leaves
LOSS_TOLERANCE = 1e-7  # relative
PARAMETER_TOLERANCE = 1e-3  # absolute; the series is standardised
FORECAST_TOLERANCE = 1e-4
EQUAL = 1e-10  # relative, of the same sum in another order
LAGS = list(range(-1, -ORDER - 1, -1))


class Series(NamedTuple):
    """The whole series, and the standardised part that the models see."""

    years: Any
    counts: Any
    seen: Any
    mean: float
    deviation: float


class Models(NamedTuple):
    """The compiled functions of theta.

    Attributes:
        ar: loss and gradient with constant variance.
        garch: loss and gradient with GARCH.
        variances: the parameters of GARCH as the formula has them, and the variance of each year.
        forecast: expected values of the years held out, and responses to an error.
    """

    ar: Any
    garch: Any
    variances: Any
    forecast: Any


def load() -> Series:
    """309 years."""
    path = Path(__file__).parent / "data" / "sunspots.csv"
    years, counts = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    seen = counts[:-HELD_OUT]
    return Series(years, counts, (seen - seen.mean()) / seen.std(), float(seen.mean()), float(seen.std()))


def expected(weights: Any, intercept: Any, lags: Any) -> Any:
    """The mean of a year, given the years before it, the last one first."""
    return intercept + sum(weights[k] * lag for k, lag in enumerate(lags))


def ar_loss(theta: Any, y: Any) -> Any:
    """Negative log-likelihood of AR(9), given nine years; theta = (intercept, weights..., log sigma)."""

    def step(now: Any, *rest: Any) -> Any:
        *lags, parameters = rest
        return now - expected(parameters[1:-1], parameters[0], lags)

    errors = graphc.scan(
        step,
        sequences={"input": y, "taps": [0, *LAGS]},
        non_sequences=[theta],
        strict=True,
        name="ar",
        return_updates=False,
    )
    log_sigma = theta[-1]
    return (0.5 * np.log(2 * np.pi) + log_sigma + 0.5 * (errors * pt.exp(-log_sigma)) ** 2).sum()


def garch_parameters(theta: Any) -> tuple[Any, Any, Any]:
    """omega > 0 and alpha, beta > 0 with alpha + beta < 1, from three numbers without bounds."""
    alpha, beta = pt.exp(theta[1]), pt.exp(theta[2])
    total = 1 + alpha + beta
    return pt.exp(theta[0]), alpha / total, beta / total


def garch_loss(theta: Any, y: Any) -> tuple[Any, Any]:
    """Negative log-likelihood of AR(9)-GARCH(1,1); theta = (intercept, weights..., three for the variance).

    Returns:
        The loss, and the variance of each year: those that the likelihood sees and the one after the last.
    """
    omega, alpha, beta = garch_parameters(theta[ORDER + 1 :])

    def step(now: Any, *rest: Any) -> Any:
        # The taps of the sequence come first, then those of the states; other variables are simply read.
        *lags, error, variance = rest
        mean = expected(theta[1 : ORDER + 1], theta[0], lags)
        return now - mean, omega + alpha * error**2 + beta * variance

    errors, variances = graphc.scan(
        step,
        sequences={"input": y, "taps": [0, *LAGS]},
        outputs_info=[pt.constant(START**0.5), pt.constant(START)],
        name="garch",
        return_updates=False,
    )
    loss = 0.5 * (np.log(2 * np.pi) + pt.log(variances) + errors**2 / variances).sum()
    coming = omega + alpha * errors[-1] ** 2 + beta * variances[-1]
    return loss, pt.concatenate([variances, coming[None]])


def forecast(theta: Any, y: Any) -> list[Any]:
    """The expected values of the next years, and how much an error of the first one moves those after it."""
    weights = theta[1 : ORDER + 1]

    def step(*rows: Any) -> Any:
        lags, responses = rows[:ORDER], rows[ORDER:]
        return expected(weights, theta[0], lags), expected(weights, 0.0, responses)

    impulse = pt.constant(np.append(np.zeros(ORDER - 1), 1.0))
    return graphc.scan(
        step,
        outputs_info=[{"initial": y[-ORDER:], "taps": LAGS}, {"initial": impulse, "taps": LAGS}],
        n_steps=HELD_OUT,
        name="forecast",
        return_updates=False,
    )


def build(series: Series, mode: str | None) -> Models:
    """Write the models as graphs and compile them."""
    y, theta = graphc.shared(series.seen, name="y"), pt.vector("theta")
    ar = ar_loss(theta, y)
    garch, variances = garch_loss(theta, y)
    natural = pt.concatenate([theta[: ORDER + 1], pt.stack(garch_parameters(theta[ORDER + 1 :]))])
    return Models(
        report.compile_timed("AR loss, gradient", [theta], [ar, graphc.grad(ar, theta)], mode),
        report.compile_timed("the same of GARCH", [theta], [garch, graphc.grad(garch, theta)], mode),
        report.compile_timed("variances", [theta], [natural, variances], mode),
        report.compile_timed("forecasts", [theta], forecast(theta, y), mode),
    )


def optimise(label: str, function: Any, start: Any, max_steps: int) -> Any:
    """Minimise with L-BFGS-B, showing the progress."""
    progress = report.Progress(label, function)
    best = minimize(
        progress, start, jac=True, method="L-BFGS-B", callback=progress.step,
        options={"ftol": 0.0, "gtol": 1e-6, "maxcor": 30, "maxiter": max_steps},
    )  # fmt: skip
    progress.finish(best)
    return best


def plain_garch_loss(parameters: Any, y: Any) -> float:
    """The loss once more, in NumPy: parameters = (intercept, weights..., omega, alpha, beta)."""
    *mean, omega, alpha, beta = parameters
    windows = np.lib.stride_tricks.sliding_window_view(y[:-1], ORDER)[:, ::-1]
    errors = y[ORDER:] - mean[0] - windows @ np.array(mean[1:])
    loss, square, variance = 0.0, START, START
    for e in errors.tolist():
        variance = omega + alpha * square + beta * variance
        square = e * e
        loss += 0.5 * (np.log(2 * np.pi * variance) + square / variance)
    return loss


def compare_ar(series: Series, best: Any, forecasts: Any, deviations: Any) -> list[bool]:
    """Fit AR(9) with statsmodels, print both, and compare likelihood, parameters and forecasts."""
    from statsmodels.tsa.ar_model import AutoReg

    peer = AutoReg(series.seen, lags=ORDER).fit()
    expected_theta = np.append(peer.params, 0.5 * np.log(peer.sigma2))
    names = ["intercept", *(f"lag {k}" for k in range(1, ORDER + 1)), "log sigma"]
    print()
    report.table(
        ["AR(9)", "graphc", "statsmodels", "difference"],
        [
            (name, float(ours), float(theirs), abs(float(ours - theirs)))
            for name, ours, theirs in zip(names, best.x, expected_theta, strict=True)
        ],
    )
    last = len(series.seen)
    prediction = peer.get_prediction(last, last + HELD_OUT - 1)
    print()
    differences = [
        ("relative difference of the log-likelihood", best.fun / -peer.llf - 1, LOSS_TOLERANCE),
        ("largest difference of a parameter", best.x - expected_theta, PARAMETER_TOLERANCE),
        ("largest difference of a forecast", forecasts - prediction.predicted_mean, FORECAST_TOLERANCE),
        ("largest difference of its deviation", deviations - prediction.se_mean, FORECAST_TOLERANCE),
    ]
    return [report.check(f"AR: {what}", np.abs(found).max(), limit) for what, found, limit in differences]


def compare_garch(series: Series, best: Any, natural: Any) -> list[bool]:
    """Fit AR(9)-GARCH(1,1) with a loss in plain Python and the derivatives that SciPy estimates."""
    first = np.append(np.zeros(ORDER + 1), [0.1, 0.1, 0.1])
    bounds = [(None, None)] * (ORDER + 1) + [(1e-6, None), (0.0, 1.0), (0.0, 1.0)]
    peer = minimize(
        plain_garch_loss, first, args=(series.seen,), method="L-BFGS-B", bounds=bounds,
        jac="3-point", options={"ftol": 0.0, "gtol": 1e-5, "maxfun": 100_000, "maxiter": 1000},
    )  # fmt: skip
    names = ["intercept", *(f"lag {k}" for k in range(1, ORDER + 1)), "omega", "alpha", "beta"]
    print()
    report.table(
        ["AR(9)-GARCH(1,1)", "graphc", "NumPy, SciPy", "difference"],
        [
            (name, float(ours), float(theirs), abs(float(ours - theirs)))
            for name, ours, theirs in zip(names, natural, peer.x, strict=True)
        ],
    )
    print()
    same = best.fun / plain_garch_loss(natural, series.seen) - 1
    differences = [
        ("relative difference of the loss at our optimum", np.abs(same), EQUAL),
        ("relative excess of the loss", (best.fun - peer.fun) / peer.fun, LOSS_TOLERANCE),
        ("largest difference of a parameter", np.abs(natural - peer.x).max(), PARAMETER_TOLERANCE),
    ]
    return [report.check(f"GARCH: {what}", found, limit) for what, found, limit in differences]


def plot(series: Series, forecasts: dict[str, tuple[Any, Any]], deviations: Any, path: Any) -> None:
    """Forecasts with their 90 % intervals on the left, standard deviations on the right."""
    drawing, (left, right) = report.figure(2, height=4.2, ratios=(1.3, 1))
    shown = series.years >= 1930
    left.plot(series.years[shown], series.counts[shown], color=report.GREY, linewidth=1.2, label="observed")
    future = series.years[-HELD_OUT:]
    for (label, (values, spread)), colour in zip(
        forecasts.items(), (report.ORANGE, report.BLUE), strict=True
    ):
        centre, width = series.mean + series.deviation * values, 1.645 * series.deviation * spread
        left.fill_between(
            future, np.maximum(centre - width, 0), centre + width, color=colour, alpha=0.15, linewidth=0
        )
        left.plot(future, centre, color=colour, linewidth=1.6, label=label)
    left.axvline(future[0] - 0.5, color=report.GREY, linewidth=0.8, linestyle=":")
    left.set(title="Forecasts from 1987 on, with 90 % intervals", xlabel="year", ylabel="sunspots")
    left.legend(loc="upper left", ncols=3, fontsize=8)
    years = series.years[ORDER:-HELD_OUT]
    right.fill_between(years, series.counts[ORDER:-HELD_OUT], color="#e3e5e8", linewidth=0, label="observed")
    right.plot(years, series.deviation * deviations, color=report.BLUE, linewidth=1.1, label="GARCH")
    right.set(title="Standard deviation of the error of each year", xlabel="year", ylabel="sunspots")
    right.legend(loc="upper left", fontsize=8)
    report.save(drawing, path)


def spread(responses: Any, variances: Any) -> Any:
    """Standard deviations of the forecasts, from the variance of each coming error and what it moves."""
    effects = np.append(1.0, responses[:-1]) ** 2
    return np.sqrt(np.convolve(effects, variances)[: len(variances)])


def later_variances(natural: Any, first: float) -> Any:
    """What GARCH expects of the variances of the coming years."""
    omega, alpha, beta = natural[-3:]
    found = [first]
    for _ in range(HELD_OUT - 1):
        found.append(omega + (alpha + beta) * found[-1])
    return np.array(found)


def main() -> int:
    """Run the example; returns the exit status."""
    parser = report.options(__doc__.splitlines()[0], "sunspots.png")
    parser.add_argument("--max-steps", type=int, default=1000, help="limit of each optimisation")
    arguments = parser.parse_args()
    report.require("statsmodels", "matplotlib")

    series = load()
    print(f"sunspots: {len(series.years)} years, {HELD_OUT} held out")
    models = build(series, arguments.mode)
    if arguments.show_ir:
        report.show_ir(models.garch)
    print()
    ar = optimise("AR", models.ar, np.zeros(ORDER + 2), arguments.max_steps)
    first = np.concatenate([ar.x[:-1], np.log([0.1, 0.5, 0.5])])
    garch = optimise("AR-GARCH", models.garch, first, arguments.max_steps)

    ar_values, responses = models.forecast(ar.x)
    ar_spread = spread(responses, np.full(HELD_OUT, np.exp(2 * ar.x[-1])))
    natural, variances = models.variances(garch.x)
    garch_values, responses = models.forecast(garch.x)
    garch_spread = spread(responses, later_variances(natural, float(variances[-1])))

    agreed = compare_ar(series, ar, ar_values, ar_spread) + compare_garch(series, garch, natural)
    print(f"\nlog-likelihood: AR {-ar.fun:.3f}, AR-GARCH {-garch.fun:.3f}")
    forecasts = {"AR": (ar_values, ar_spread), "AR-GARCH": (garch_values, garch_spread)}
    plot(series, forecasts, np.sqrt(variances[:-1]), arguments.plot)
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())

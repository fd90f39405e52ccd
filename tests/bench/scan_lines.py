# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workloads with loops, each written once like those of `cases.py`.

The namespace `m` has `scan` and `iterate` too; `scan_forms.py` says what they are in each library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case

LONG = 100_000_000  # steps of the loop whose memory has to be constant
FASTER = (("pytensor", 1.0), ("jax", 1.0))


def _rng(seed: int) -> Any:
    return np.random.default_rng(seed)


# --- h = 0.9 * h + x ----------------------------------------------------------------------------------------


def recurrence(m: Any, kept: bool) -> Any:
    """The linear recurrence, with all values or the last one."""
    return lambda x, h0: m.scan(lambda x_t, h: [0.9 * h + x_t], [x], [h0], kept=kept)[0]


def _recurrence_inputs() -> tuple[Any, ...]:
    return _rng(1).standard_normal(10_000), np.array(0.5)


# --- recurrent network --------------------------------------------------------------------------------------


def rnn(m: Any, x: Any, h0: Any, w: Any, u: Any) -> Any:
    """`tanh(h @ W + x @ U)`, all hidden vectors. XLA leaves `x @ U` in the loop, so JAX gets it outside."""
    if m.pushes_out:
        return m.scan(lambda x_t, h: [m.tanh(m.dot(h, w) + m.dot(x_t, u))], [x], [h0])[0]
    return m.scan(lambda xu_t, h: [m.tanh(m.dot(h, w) + xu_t)], [m.dot(x, u)], [h0])[0]


def _rnn_inputs(hidden: int, steps: int) -> tuple[Any, ...]:
    rng = _rng(hidden)
    w, u = (rng.standard_normal((hidden, hidden)) / np.sqrt(hidden) for _ in range(2))
    return rng.standard_normal((steps, hidden)), rng.standard_normal(hidden), w, u


def _rnn_cases(hidden: int, steps: int, forward: float, backward: float) -> list[Case]:
    def inputs() -> tuple[Any, ...]:
        return _rnn_inputs(hidden, steps)

    title = f"recurrent network, H = {hidden}, T = {steps}"
    return [
        Case(
            f"rnn{hidden}", f"{title}: all `tanh(h @ W + x @ U)`", "us", inputs, rnn,
            lead=(("jax", forward),), series=(0,),
        ),
        Case(
            f"rnn{hidden}_gradient", f"{title}: gradient of the sum of squares by W, U and h0", "us", inputs,
            lambda m, *args: (rnn(m, *args) ** 2).sum(), lead=(("jax", backward),), series=(0,),
            wrt=(1, 2, 3),
        ),
    ]  # fmt: skip


# --- GARCH --------------------------------------------------------------------------------------------------


def garch(m: Any, theta: Any, r: Any) -> Any:
    """Log-likelihood of GARCH(1,1) with theta = (omega, alpha, beta), from the mean of the variance on."""
    omega, alpha, beta = theta[0], theta[1], theta[2]
    start = omega / (1 - alpha - beta)
    later = m.scan(lambda r_t, s: [omega + alpha * r_t**2 + beta * s], [r[:-1]], [start])[0]
    first = m.log(2 * np.pi * start) + r[0] ** 2 / start
    return -0.5 * (first + (m.log(2 * np.pi * later) + r[1:] ** 2 / later).sum())


def _garch_inputs() -> tuple[Any, ...]:
    rng = _rng(3)
    returns, s = np.empty(500), 1.0
    for t in range(500):
        returns[t] = np.sqrt(s) * rng.standard_normal()
        s = 0.1 + 0.1 * returns[t] ** 2 + 0.8 * s
    return np.array([0.12, 0.12, 0.75]), returns


# --- Newton's method ----------------------------------------------------------------------------------------


def newton(m: Any, a: Any) -> Any:
    """The roots of `x**5 + x = a`, until no step is larger than 1e-12."""

    def step(x: Any) -> Any:
        fourth = x * x * x * x
        change = (fourth * x + x - a) / (5 * fourth + 1)
        return x - change, m.abs(change).max() < 1e-12

    return m.iterate(step, a, 100)


# --- state space models -------------------------------------------------------------------------------------


def kalman(m: Any, y: Any, mean: Any, cov: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    """Log-likelihood of a linear state space model with two observations; the inverse is its formula."""
    dot, eye = m.dot, np.eye(2)

    def step(y_t: Any, mean: Any, cov: Any) -> Any:
        mean, cov = dot(f, mean), dot(dot(f, cov), f.T) + q
        error, s = y_t - dot(h, mean), dot(dot(h, cov), h.T) + r
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = ((s[0, 0] + s[1, 1]) * eye - s) / det
        gain = dot(dot(cov, h.T), inverse)
        log_p = -0.5 * (m.log(det) + dot(dot(error, inverse), error)) - np.log(2 * np.pi)
        return [mean + dot(gain, error), cov - dot(dot(gain, h), cov), log_p]

    return m.scan(step, [y], [mean, cov], outputs=1, kept=False)[2].sum()


def _kalman_inputs() -> tuple[Any, ...]:
    rng = _rng(5)
    f = 0.95 * np.linalg.qr(rng.standard_normal((5, 5)))[0]
    h, state, y = rng.standard_normal((2, 5)), np.zeros(5), np.empty((500, 2))
    for t in range(500):
        state = f @ state + 0.3 * rng.standard_normal(5)
        y[t] = h @ state + 0.5 * rng.standard_normal(2)
    return y, np.zeros(5), np.eye(5), f, h, 0.1 * np.eye(5), 0.3 * np.eye(2)


def hmm(m: Any, symbols: Any, start: Any, transition: Any, emission: Any) -> Any:
    """Log-probability of the symbols under a hidden Markov model: the scaled forward algorithm.

    Args:
        m: the namespace.
        symbols: `(T,)` integers.
        start: distribution of the state before the first step.
        transition: `(K, K)`, rows sum to 1.
        emission: `(S, K)`, row s is the probability of symbol s in each state.
    """

    def step(e_t: Any, alpha: Any) -> Any:
        alpha = m.dot(alpha, transition) * e_t
        total = alpha.sum()
        return [alpha / total, m.log(total)]

    return m.scan(step, [emission[symbols]], [start], outputs=1, kept=False)[1].sum()


def _hmm_inputs() -> tuple[Any, ...]:
    rng = _rng(6)
    symbols = rng.integers(0, 12, 1000)
    return (
        symbols,
        rng.dirichlet(np.ones(8)),
        rng.dirichlet(np.ones(8), 8),
        rng.dirichlet(np.ones(12), 8).T.copy(),
    )


CASES = [
    Case(
        "recurrence", "`h = 0.9*h + x`, 10,000 steps, all kept", "us", _recurrence_inputs,
        lambda m, *args: recurrence(m, True)(*args), lead=FASTER, series=(0,),
    ),
    Case(
        "recurrence_last", "the same, last value only", "us", _recurrence_inputs,
        lambda m, *args: recurrence(m, False)(*args), lead=FASTER, series=(0,),
    ),
    Case(
        "recurrence_gradient", "gradient of the last value by x and h0", "us", _recurrence_inputs,
        lambda m, *args: recurrence(m, False)(*args), lead=FASTER, series=(0,), wrt=(0, 1),
    ),
    *_rnn_cases(16, 1000, 3.0, 2.0),
    *_rnn_cases(64, 1000, 2.5, 2.0),
    *_rnn_cases(256, 200, 1.5, 2.0),
    Case(
        "garch", "GARCH(1,1), T = 500: log-likelihood and gradient", "us", _garch_inputs, garch, goal=30e-6,
        lead=FASTER, series=(1,), wrt=(0,), value=True,
    ),
    Case(
        "newton", "Newton's method until converged (while loop), 1000 equations", "us",
        lambda: (_rng(4).uniform(0.0, 10.0, 1000),), newton, lead=FASTER, series=(0,),
    ),
    Case(
        "kalman", "Kalman filter, 5 states, 2 observations, T = 500: log-likelihood", "us", _kalman_inputs,
        kalman, lead=FASTER, series=(0,),
    ),
    Case(
        "kalman_gradient", "the same and its gradient by the four matrices of the model", "us",
        _kalman_inputs, kalman, lead=FASTER, series=(0,), wrt=(3, 4, 5, 6), value=True,
    ),
    Case(
        "hmm", "hidden Markov model, 8 states, T = 1000: forward algorithm", "us", _hmm_inputs, hmm,
        lead=FASTER, series=(0,),
    ),
]  # fmt: skip

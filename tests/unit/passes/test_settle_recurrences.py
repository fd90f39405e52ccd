# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that stop computing when their state stays: results have the bits of those that go on."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

STEPS = (0, 1, 63, 64, 65, 255, 256, 257, 1000, 1217)
# The next state of one number, and the first one. Some settle early, some late, some never.
STATES = {
    "at a denormal number": (lambda h: h * 0.9, 1.0),
    "at once": (lambda h: h * h, 1.0),
    "at zero": (lambda h: h * 0.4, -1.0),
    "at an infinity": (lambda h: h * 3.0, -1.0),
    "at NaN": (lambda h: h * h - h * 1e300, 1e200),
    "at a limit": (lambda h: 2.8 * h * (1 - h), 0.3),
    "in a cycle": (lambda h: 1.0 - h, 0.25),
    "in a cycle of zeros": (lambda h: -h, 0.0),
    "in chaos": (lambda h: 3.9 * h * (1 - h), 0.3),
    "at what rounding leaves": (lambda h: 0.9 * h + 1, 0.0),
}


def bits(x: np.ndarray) -> np.ndarray:
    """The bits of numbers, but one for all NaN."""
    x = np.atleast_1d(np.where(np.isnan(x), np.nan, x).astype(x.dtype))
    return x.view(f"u{x.itemsize}")


def loop(step, starts, last=True, **options):
    """A loop without sequences, as a function of the number of steps and of its first states."""
    n = pt.lscalar("n")
    states = [pt.scalar(f"h{i}", dtype=str(start.dtype)) for i, start in enumerate(starts)]
    traces = graphc.scan(step, outputs_info=states, n_steps=n, return_updates=False)
    traces = traces if isinstance(traces, list) else [traces]
    results = [*traces, *(trace[-1] for trace in traces if last)]
    return graphc.function([n, *states], results, on_unused_input="ignore", **options)


def expected(step, starts, steps: int) -> list[np.ndarray]:
    rows, state = [], list(starts)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            state = step(*state)
            state = [np.asarray(h) for h in (state if isinstance(state, list) else [state])]
            rows.append(state)
    return [np.array([row[i] for row in rows]) for i in range(len(starts))]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_number(kind, dtype):
    step, start = STATES[kind]
    start = np.asarray(start, dtype)

    def typed(h):
        with np.errstate(all="ignore"):
            return pt.cast(step(h), dtype) if isinstance(h, pt.TensorVariable) else step(h).astype(dtype)

    f = loop(typed, [start])
    assert "scf.while" in f.ir_stages()["buffer"]
    for steps in STEPS[1:]:
        trace, last = f(steps, start)
        (rows,) = expected(typed, [start], steps)
        np.testing.assert_array_equal(bits(trace), bits(rows), err_msg=str(steps))
        np.testing.assert_array_equal(bits(last), bits(rows[-1]), err_msg=str(steps))


@pytest.mark.parametrize("steps", STEPS)
def test_states_settle_together(steps):
    def step(g, h):
        return [g * 0.5, h * 0.99 + g]

    starts = [np.asarray(1.0), np.asarray(-2.0)]
    f = loop(step, starts, last=False)
    assert "scf.while" in f.ir_stages()["buffer"]
    for trace, rows in zip(f(steps, *starts), expected(step, starts, steps), strict=True):
        np.testing.assert_array_equal(bits(trace), bits(rows.reshape(steps)))


def test_one_state_that_goes_on_keeps_the_loop_going():
    def step(g, h):
        return [g * 0.5, 1.0 - h]

    starts = [np.asarray(1.0), np.asarray(0.25)]
    f = loop(step, starts)
    for trace, rows in zip(f(2001, *starts), expected(step, starts, 2001), strict=False):
        np.testing.assert_array_equal(bits(trace), bits(rows))


@pytest.mark.parametrize("loss", ["last", "all"])
@pytest.mark.parametrize("factor", [0.9, 1.0, -0.5, 1.01])
def test_gradient_of_a_recurrence(loss, factor):
    x, h0, a = pt.dvector("x"), pt.dscalar("h0"), pt.dscalar("a")
    h = graphc.scan(
        lambda x_t, h, a: a * h + x_t,
        sequences=[x],
        outputs_info=[h0],
        non_sequences=[a],
        return_updates=False,
    )
    f = graphc.function([x, h0, a], graphc.grad(h[-1] if loss == "last" else h.sum(), [x, h0]))
    slopes, slope = f(np.ones(9000), 0.5, factor)
    rows = [1.0]
    for _ in range(9000):
        rows.append(rows[-1] * factor + (0.0 if loss == "last" else 1.0))
    np.testing.assert_array_equal(slopes, rows[:9000][::-1])
    assert slope == (rows[9000] if loss == "last" else rows[8999] * factor)


def test_denormal_numbers_that_are_flushed():
    f = loop(lambda h: h * 0.9, [np.asarray(1.0)], flush_denormals=True)
    trace, last = f(9000, 1.0)
    assert last == 0.0 and np.count_nonzero(trace) == np.count_nonzero(0.9 ** np.arange(1, 9001) > 2.3e-308)

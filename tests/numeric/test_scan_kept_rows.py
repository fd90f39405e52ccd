# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much memory loops need of which few rows, or all rows, are read: by their memory plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

ROW = 24  # rows of ROW x ROW elements
STEPS = 200


def _outcome(function: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except (ValueError, IndexError) as error:
        return type(error)


def _decay(h: Any) -> Any:
    return pt.tanh(h) * 0.9 + 0.1


def _states(n: Any, x: Any, h0: Any) -> Any:
    return graphc.scan(_decay, outputs_info=[h0], n_steps=n, return_updates=False)


def _classifier(n: Any, x: Any, h0: Any) -> Any:
    """An output of each step, from its state, by a product and what goes along rows."""

    def step(a: Any, h: Any, w: Any) -> Any:
        h = _decay(h + a)
        return h, pt.special.softmax(h @ w, axis=-1) + 1

    return graphc.scan(
        step, sequences=[x], outputs_info=[h0, None], non_sequences=[h0], return_updates=False
    )[1]


def _map(n: Any, x: Any, h0: Any) -> Any:
    return graphc.map(
        lambda a, w: (pt.exp(a) @ w).sum(axis=1) + pt.exp(a), x, non_sequences=[h0], return_updates=False
    )


def _driven(n: Any, x: Any, h0: Any) -> Any:
    return graphc.scan(lambda a, h: _decay(h + a), sequences=[x], outputs_info=[h0], return_updates=False)


# What is computed of (n, x, h0); the rows that the workspace may hold.
PROGRAMS: dict[str, tuple[Callable[[Any, Any, Any], Any], int]] = {
    "all rows, the number of steps is an input": (_states, 3),
    "two last rows": (lambda n, x, h0: _states(n, x, h0)[-2:], 8),
    "two last rows, as many steps as rows": (lambda n, x, h0: _driven(n, x, h0)[-2:], 8),
    "the last row of an output": (lambda n, x, h0: _classifier(n, x, h0)[-1], 12),
    "the last rows of an output": (lambda n, x, h0: _classifier(n, x, h0)[-2:].sum(axis=0), 20),
    "the last row of a map": (lambda n, x, h0: _map(n, x, h0)[-1], 8),
    "a map of the rows of a loop": (lambda n, x, h0: _map(n, _driven(n, x, h0), h0)[-1], 12),
    "all rows, of a start that is computed": (lambda n, x, h0: _states(n, x, pt.exp(h0)), 1),
    "all rows, of a start in several operations": (lambda n, x, h0: _states(n, x, pt.exp(h0) @ h0 + h0), 3),
    "the last row, of a start that is computed": (lambda n, x, h0: _states(n, x, pt.exp(h0))[-1], 2),
    "the last row, of a start with other axes": (
        lambda n, x, h0: _states(n, x, pt.exp(h0[0])[:, None] + pt.zeros((ROW, 1)))[-1],
        2,
    ),
    "the last row by the number of steps": (lambda n, x, h0: _states(n, x, pt.exp(h0))[n - 1], 2),
    "late rows by the number of steps": (lambda n, x, h0: _states(n, x, h0)[n - 2 :] + 1, 8),
    "some of the last rows": (lambda n, x, h0: _driven(n, x, h0)[-3:-1] * 2, 10),
}


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_peak_memory(name: str, mode: str) -> None:
    make, rows = PROGRAMS[name]
    n, x, h0 = pt.lscalar("n"), pt.dtensor3("x"), pt.dmatrix("h0")
    inputs, outputs = [n, x, h0], make(n, x, h0)
    function = graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    reference = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")
    rng = np.random.default_rng(0)
    plan = function.memory_plan(STEPS, (STEPS, ROW, ROW), (ROW, ROW))
    # Sizes that are chosen at run time have no number there; what is kept for all steps would have one.
    known = [buffer.bytes for buffer in plan.buffers if buffer.bytes is not None]
    assert sum(known) <= rows * ROW * ROW * 8, plan
    for steps in (0, 1, 2, 3, 7):
        arguments = steps, rng.normal(size=(steps, 3, 3)), rng.normal(size=(3, 3))
        have, want = _outcome(function, arguments), _outcome(reference, arguments)
        if isinstance(want, type):
            assert have is want, steps
        else:
            np.testing.assert_allclose(have, want, rtol=1e-12, err_msg=f"{steps} steps")


READERS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "a result": lambda c, h: [c, h],
    "part of a join": lambda c, h: [pt.concatenate([c, h]), pt.stack([h, c])],
    "read after the loop": lambda c, h: [h * c + c[0]],
    "the start of two loops": lambda c, h: [h, _states(3, None, c)[-1]],
    "seen by a view": lambda c, h: [c.T, h, c[::-1]],
    "a result and a constant row": lambda c, h: [pt.join(0, c, h, c)],
}


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", READERS)
def test_starts_that_are_read_elsewhere(name: str, dtype: str, steps: int) -> None:
    """A loop computes its rows where its start is only if nobody else reads that."""
    n, h0 = pt.lscalar("n"), pt.matrix("h0", dtype=dtype)
    start = pt.exp(h0)
    value = np.random.default_rng(0).normal(size=(3, 3)).astype(dtype)
    for length in (steps, n):
        for rows in (_states(length, None, start), _states(length, None, start[None])[:, 0]):
            outputs = READERS[name](start, rows[-1])
            have = graphc.function([n, h0], outputs, on_unused_input="ignore")(steps, value)
            want = graphc.function([n, h0], outputs, mode="reference", on_unused_input="ignore")(steps, value)
            for a, b in zip(have, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12 if dtype == "float64" else 1e-5)


# What is read of the rows, after as many steps, for n steps and an input m; the rows that may be kept.
ONE_ROW: dict[str, tuple[Callable[[Any, Any, Any], Any], Callable[[int, int], int], int]] = {
    "h[n - 2]": (lambda h, n, m: h[n - 2], lambda n, m: n - 1, 4),
    "h[n - 3]": (lambda h, n, m: h[n - 3], lambda n, m: n - 2, 2),
    "h[n - 20]": (lambda h, n, m: h[n - 20], lambda n, m: n - 19, 4),
    "h[len(h) - 3]": (lambda h, n, m: h[h.shape[0] - 3], lambda n, m: n - 2, 2),
    "h[n - 3] + h[n - 4]": (lambda h, n, m: (h[n - 3] + h[n - 4]) - h[n - 4], lambda n, m: n - 2, 8),
    "h[n - m]": (lambda h, n, m: h[n - m], lambda n, m: n - m + 1, 2),
    "h[-m]": (lambda h, n, m: h[-m], lambda n, m: n - m + 1, 2),
    "h[m]": (lambda h, n, m: h[m], lambda n, m: m + 1, 2),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ONE_ROW)
def test_one_row_counted_from_either_end(name: str, dtype: str) -> None:
    """One row is kept, however its position is written; values and gradients are those of a shorter loop."""
    read, needed, rows = ONE_ROW[name]
    n, m, h0 = pt.lscalar("n"), pt.lscalar("m"), pt.vector("h0", dtype=dtype)
    inputs = [n, m, h0]

    def compiled(outputs: Any, mode: str = "fast_run") -> Any:
        return graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")

    row, whole = read(_states(n, None, h0), n, m), _states(n, None, h0)[-1]
    function, reference = compiled(row), compiled(row, "reference")
    plan = function.memory_plan(500, 5, (1000,))
    row_bytes = 1000 * np.dtype(dtype).itemsize
    assert sum(buffer.bytes or 0 for buffer in plan.buffers) <= rows * row_bytes, plan
    gradient, expected = compiled(pt.grad(row.sum(), h0)), compiled(pt.grad(whole.sum(), h0))
    value = np.random.default_rng(0).normal(size=5).astype(dtype)
    close = {"rtol": 1e-12 if dtype == "float64" else 1e-5}
    for steps in (0, 1, 2, 3, 4, 25):
        for back in (-1, 0, 1, 2, 30):
            have, want = _outcome(function, (steps, back, value)), _outcome(reference, (steps, back, value))
            if isinstance(want, type):
                assert have is want is _outcome(gradient, (steps, back, value)), (steps, back)
                continue
            np.testing.assert_allclose(have, want, err_msg=f"{steps}, {back}", **close)
            run = needed(steps, back)
            if 1 <= run <= steps:
                found = gradient(steps, back, value), expected(run, 0, value)
                np.testing.assert_allclose(*found, err_msg=f"{steps}, {back}", **close)


def _pair(n: Any, x: Any, h0: Any) -> Any:
    return graphc.scan(
        lambda t, a, g, h: [pt.tanh(a + g) * t, _decay(h) + g[0]],
        sequences=[pt.arange(n), x],
        outputs_info=[h0, pt.exp(h0)],
        return_updates=False,
    )


def _earlier(n: Any, x: Any, h0: Any) -> Any:
    """By the two rows before, and by two elements of a sequence."""
    return graphc.scan(
        lambda a, b, g, h: pt.tanh(a * g + b) - 0.1 * h,
        sequences=[{"input": x, "taps": [-1, 0]}],
        outputs_info=[{"initial": pt.stack([h0, h0 * 0.5]), "taps": [-2, -1]}],
        return_updates=False,
    )


# Rows from one on that is known in the call; how many more than the m, or n - m, that are read there may be.
LATE: dict[str, tuple[Callable[..., Any], int]] = {
    "h[-m:]": (lambda n, m, x, h0: _driven(n, x, h0)[-m:], 3),
    "h[n - m:]": (lambda n, m, x, h0: _states(n, x, h0)[n - m :], 3),
    "h[-m:-1]": (lambda n, m, x, h0: _driven(n, x, h0)[-m:-1], 3),
    "of two rows before": (lambda n, m, x, h0: _earlier(n, x, h0)[-m:] * 2, 15),
    "of two states": (lambda n, m, x, h0: [h[-m:].sum(axis=0) for h in _pair(n, x, h0)], 25),
    "of one of two states": (lambda n, m, x, h0: (lambda g, h: [g[-m:], h[-1]])(*_pair(n, x, h0)), 15),
    "read twice": (
        lambda n, m, x, h0: (lambda h: [h[-m:].sum(axis=0), h[-m - 1 :].prod(axis=0)])(_driven(n, x, h0)),
        15,
    ),
    "all rows": (lambda n, m, x, h0: (lambda h: [h[-m:], h.sum(axis=0)])(_driven(n, x, h0)), STEPS),
}


@pytest.mark.parametrize("name", LATE)
def test_rows_from_a_position_that_the_call_knows(name: str) -> None:
    """Only these rows are kept, for any number of them: more than there are, none, fewer than none."""
    make, more = LATE[name]
    n, m, x, h0 = pt.lscalar("n"), pt.lscalar("m"), pt.matrix("x"), pt.vector("h0")
    inputs, outputs = [n, m, x, h0], make(n, m, x, h0)
    function = graphc.function(inputs, outputs, on_unused_input="ignore")
    reference = graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")
    rng = np.random.default_rng(0)
    values = STEPS, 5, rng.normal(size=(STEPS, 3)), rng.normal(size=3)
    assert (function.memory_plan(*values).total or 0) <= (more + 6) * 3 * 8
    for steps in (0, 1, 2, 6):
        for last in (-1, 0, 1, 2, 9):
            values = steps, last, rng.normal(size=(steps, 3)), rng.normal(size=3)
            have, want = _outcome(function, values), _outcome(reference, values)
            if isinstance(want, type):
                assert have is want, values
                continue
            many = isinstance(outputs, list)
            for a, b in zip(have if many else [have], want if many else [want], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=f"{steps}, {last}")

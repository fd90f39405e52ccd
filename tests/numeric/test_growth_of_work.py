# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of compiled programs grows as that of the algorithm: it is counted by the compiler, not timed.

Each program is compiled once, for any size. What its code does in a call is what the counter of the roofline
finds: operations, functions, and bytes that loads, stores and copies move, as often as they do. Of three
sizes, each twice the one before, the last two say by which power of the size that grows. A copy of a state in
a loop, or an array of zeros for a gradient in each step, makes it one power more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import scan
from graphc.ifelse import ifelse
from graphc.inspect import roofline_of

SIZES = (64, 128, 256)
Made = tuple[list[Any], Any, Any]  # inputs, an output, what derivatives are by

x, y = pt.vector("x"), pt.vector("y")
table = pt.matrix("table")
k, l = pt.lvector("k"), pt.lvector("l")  # noqa: E741
n = x.shape[0]
KINDS = {"x": (1, float), "y": (1, float), "table": (2, float), "k": (1, int), "l": (1, int)}


def values_of(inputs: list[Any], size: int) -> list[np.ndarray]:
    """Vectors of a size, and a table of as many rows of 4."""
    rng = np.random.default_rng(size)
    found = []
    for v in inputs:
        ndim, kind = KINDS[v.name]
        shape = (size, 4)[:ndim]
        found.append(rng.integers(size, size=shape) if kind is int else 0.1 * rng.normal(size=shape) + 0.5)
    return found


def loop(step: Callable[..., Any], sequences: list[Any], start: Any, others: tuple[Any, ...] = ()) -> Any:
    rows = scan(
        step,
        sequences=sequences,
        outputs_info=start if isinstance(start, list) else [start],
        non_sequences=list(others),
        n_steps=sequences[0].shape[0],
        return_updates=False,
    )
    return [row[-1] for row in rows] if isinstance(start, list) else rows[-1]


def over(v: Any) -> Any:
    return pt.arange(v.shape[0])


# -- programs of linear work ---------------------------------------------------------------------------------

PROGRAMS: dict[str, Callable[[], Made]] = {
    "set an element": lambda: (
        [x],
        loop(lambda t, v, b: pt.set_subtensor(b[t], v * 2), [over(x), x], pt.zeros(n)),
        x,
    ),
    "set an element from the one before": lambda: (
        [x],
        loop(lambda t, v, b: pt.set_subtensor(b[t], pt.tanh(v * b[t - 1])), [over(x), x], pt.ones(n)),
        x,
    ),
    "add to an element": lambda: (
        [x, k],
        loop(lambda i, v, b: pt.inc_subtensor(b[i], pt.sin(v)), [k, x], pt.zeros(n)),
        x,
    ),
    "add to a state that is given": lambda: (
        [x, y, k],
        loop(lambda i, v, b: pt.inc_subtensor(b[i], v * b[i]), [k, x], y),
        y,
    ),
    "histogram": lambda: (
        [x, k],
        loop(lambda i, b: pt.inc_subtensor(b[i], 1), [k], pt.zeros(n, "int64")),
        None,
    ),
    "swap": lambda: (
        [x, k, l],
        loop(lambda i, j, b: pt.set_subtensor(pt.set_subtensor(b[i], b[j])[j], b[i]), [k, l], x),
        x,
    ),
    "scaled swap": lambda: (
        [x, k, l],
        loop(
            lambda i, j, b: pt.set_subtensor(pt.set_subtensor(b[i], 0.9 * b[j])[j], pt.sin(b[i])), [k, l], x
        ),
        x,
    ),
    "choice of an element": lambda: (
        [x, y],
        loop(lambda t, v, b: pt.set_subtensor(b[t], pt.switch(v > 0.5, v, b[t - 1] * v)), [over(x), x], y),
        x,
    ),
    "choice of an update": lambda: (
        [x, y],
        loop(lambda t, v, b: pt.switch(v > 0.5, pt.set_subtensor(b[t], v * b[t - 1]), b), [over(x), x], y),
        y,
    ),
    "an update in a branch": lambda: (
        [x, y],
        loop(lambda t, v, b: ifelse(v > 0.5, pt.set_subtensor(b[t], v * b[t - 1]), b), [over(x), x], y),
        y,
    ),
    "updates in both branches": lambda: (
        [x, k],
        loop(
            lambda t, i, v, b: ifelse(
                v > 0.5, pt.inc_subtensor(b[i], v), pt.set_subtensor(b[1:4], b[t] * b[:3])
            ),
            [over(x)[1:-1], k[1:-1], x[1:-1]],
            pt.ones(n),
        ),
        x,
    ),
    "updates in branches in branches": lambda: (
        [x, k],
        loop(
            lambda i, v, b: ifelse(
                v > 0.4,
                ifelse(v > 0.6, pt.set_subtensor(b[i], v), b),
                pt.inc_subtensor(b[pt.stack([i, -1])], b[:2]),
            ),
            [k, x],
            pt.ones(n),
        ),
        x,
    ),
    "two elements a step": lambda: (
        [x, k],
        loop(
            lambda t, i, v, b: pt.inc_subtensor(pt.set_subtensor(b[t], v * b[i])[i], pt.cos(v)),
            [over(x), k, x],
            pt.ones(n),
        ),
        x,
    ),
    "two states": lambda: (
        [x, k],
        sum(
            part.sum()
            for part in loop(
                lambda t, i, v, a, b: [
                    pt.set_subtensor(a[t], v * b[i]),
                    pt.inc_subtensor(b[i], v * a[t - 1]),
                ],
                [over(x), k, x],
                [pt.ones(n), pt.zeros(n)],
            )
        ),
        x,
    ),
    "a state and a number": lambda: (
        [x, k],
        loop(
            lambda i, v, b, s: [pt.inc_subtensor(b[i], v * s), s * 0.9 + b[i]],
            [k, x],
            [pt.zeros(n), pt.constant(1.0)],
        )[0],
        x,
    ),
    "rows of a table": lambda: (
        [table, k],
        loop(lambda i, r, m: pt.set_subtensor(m[i], pt.tanh(r * m[i - 1])), [k, table], pt.ones_like(table)),
        table,
    ),
    "a column of a table": lambda: (
        [table, k],
        loop(lambda i, r, m: pt.inc_subtensor(m[i, 1], r[0] * m[i, 2]), [k, table], pt.ones_like(table)),
        table,
    ),
    "a window": lambda: (
        [x],
        loop(
            lambda t, v, b: pt.inc_subtensor(b[t - pt.arange(3)], v * b[t]), [over(x)[3:], x[3:]], pt.ones(n)
        ),
        x,
    ),
    "gathered elements": lambda: (
        [x, k, l],
        loop(
            lambda i, j, v, b: pt.inc_subtensor(b[pt.stack([i, j])], v * b[pt.stack([j, i])]),
            [k, l, x],
            pt.ones(n),
        ),
        x,
    ),
    "an old element that is returned": lambda: (
        [x, k],
        _both(
            scan(
                lambda i, v, b: [pt.set_subtensor(b[i], v), b[i] * v],
                sequences=[k, x],
                outputs_info=[pt.ones(n), None],
                n_steps=n,
                return_updates=False,
            )
        ),
        x,
    ),
    "nested loops of four": lambda: (
        [table, k],
        loop(
            lambda i, r, m: loop(
                lambda j, c, i, r: pt.set_subtensor(c[i, j], r[j] * c[i - 1, j]), [pt.arange(4)], m, (i, r)
            ),
            [k, table],
            pt.ones_like(table),
        ),
        None,
    ),
    "rows that are read": lambda: (
        [table, k],
        loop(lambda i, h, e: pt.tanh(h + e[i]), [k], pt.zeros(4), (table,)),
        table,
    ),
    "elements that are read": lambda: (
        [x, y, k],
        loop(lambda i, h, e: pt.tanh(h + e[i]), [k], pt.constant(0.0), (x,)),
        x,
    ),
    "elements that are read twice": lambda: (
        [x, k, l],
        loop(lambda i, j, h, e: pt.tanh(h + e[i] * e[j]), [k, l], pt.constant(0.0), (x,)),
        x,
    ),
    "windows that are read": lambda: (
        [x],
        loop(lambda t, h, e: pt.tanh(h + e[t - pt.arange(3)].sum()), [over(x)[3:]], pt.constant(0.0), (x,)),
        x,
    ),
    "gathered elements that are read": lambda: (
        [x, k, l],
        loop(lambda i, j, h, e: pt.tanh(h + e[pt.stack([i, j, i])].sum()), [k, l], pt.constant(0.0), (x,)),
        x,
    ),
    "a table that is read and a state that is written": lambda: (
        [table, k],
        loop(
            lambda i, b, e: pt.set_subtensor(b[i], e[i, 0] * b[i - 1]), [k], pt.ones(table.shape[0]), (table,)
        ),
        table,
    ),
    "prefix sums": lambda: ([x], loop(lambda v, s: s + v * s, [x], pt.constant(1.0)), x),
    "recurrence": lambda: ([x], loop(lambda v, h: pt.tanh(v * h), [x], pt.ones(3)), x),
    "parts": lambda: ([x], _sum_of([x[:20], x[20:40], x[40:]]), x),
    "parts that overlap": lambda: ([x], _sum_of([x[:30], x[20:40], x[10:]]), x),
    "elements": lambda: ([x], _sum_of([x[i] for i in range(12)] + [x[12:]]), x),
    "parts in other shapes": lambda: (
        [x],
        _sum_of([x[:12].reshape((3, 4)) @ x[12:16], x[16:], x[::2], x[::-1][:5]]),
        x,
    ),
    "rows": lambda: ([table], _sum_of([table[0], table[1:3], table[3:]]), table),
    "gathered": lambda: ([x, k], _sum_of([x[k], x[k[:5]], x]), x),
    "scattered": lambda: ([x, y, k], pt.inc_subtensor(x[k], y) * x, x),
    "set where": lambda: ([x, y, k], pt.set_subtensor(x[k[:7]], y[:7]) ** 2, y),
}


def _batched(name: str) -> Made:
    """The program for each column of the table."""
    inputs, found, _ = PROGRAMS[name]()
    others = [v for v in inputs if v is not x]
    return [table, *others], graphc.vectorize_graph(found, {x: table.T}), table


# Programs of which first derivatives are looked at, but not second ones.
MORE: dict[str, Callable[[], Made]] = {
    "sums of outer products": lambda: (
        [table],
        loop(lambda r, s, w: w + pt.outer(r, s), [table, table[::-1]], pt.zeros((4, 4))),
        table,
    ),
    "backwards": lambda: (
        [x, k],
        loop(lambda i, v, b: pt.inc_subtensor(b[i], v * b[i - 1]), [k[::-1], x[::-1]], pt.ones(n)),
        x,
    ),
    "two taps": lambda: (
        [x],
        loop(lambda v, a, b: pt.tanh(v * a + b), [x], {"initial": pt.ones(2), "taps": [-2, -1]}),
        x,
    ),
    "rows of two states": lambda: (
        [table, k],
        sum(
            part.sum()
            for part in loop(
                lambda i, r, a, b: [pt.set_subtensor(a[i], r * b[i]), pt.inc_subtensor(b[i - 1], a[i])],
                [k, table],
                [pt.ones_like(table), pt.zeros_like(table)],
            )
        ),
        table,
    ),
    "the last row by the number of steps": lambda: (
        [x],
        scan(
            lambda v, h: pt.tanh(v * h),
            sequences=[x],
            outputs_info=[pt.ones(3)],
            n_steps=n,
            return_updates=False,
        )[n - 1],
        x,
    ),
    "a state that starts from what is computed": lambda: (
        [x, y],
        loop(lambda t, v, b: pt.set_subtensor(b[t], v * b[t]), [over(x), x], pt.exp(y)),
        y,
    ),
    "rows by positions": lambda: ([table, k], pt.tanh(table[k]).sum(axis=1), table),
    "what is put together": lambda: ([x, y], pt.concatenate([x[:20], y[20:], pt.exp(x[::2])]), x),
    "stacked": lambda: ([x, y], pt.stack([pt.tanh(x), pt.exp(y)], axis=1), y),
    "split": lambda: ([x], _sum_of(pt.split(x, [16, 32, n - 48], n_splits=3, axis=0)), x),
    "columns": lambda: ([table], _sum_of([table[:, 0], table[:, 1:3], table[:, 3]]), table),
    "running sums": lambda: ([x], pt.cumsum(pt.sin(x)), x),
    "differences": lambda: ([x], pt.diff(x) ** 2, x),
    "a choice of parts": lambda: ([x, y], pt.where(x > 0.5, x, y)[3:], x),
    "counted": lambda: ([k], pt.bincount(k), None),
    "gathered columns": lambda: ([table], table[:, pt.constant([0, 2, 0])], table),
    "updates of parts": lambda: (
        [x, y],
        pt.set_subtensor(x[:32], y[:32] * 2) + pt.inc_subtensor(y[5:], x[5:]),
        y,
    ),
    **{
        f"batched {name}": lambda name=name: _batched(name)
        for name in (
            *("set an element", "set an element from the one before", "two states"),
            *("prefix sums", "parts", "elements"),
        )
    },
}
PROGRAMS |= MORE
# Their last rows cost what all rows do.
QUADRATIC = {
    "all rows": lambda: (
        [x],
        scan(
            lambda t, v, b: pt.set_subtensor(b[t], v),
            sequences=[over(x), x],
            outputs_info=[pt.zeros(n)],
            n_steps=n,
            return_updates=False,
        ),
        None,
    ),
    "nested loops": lambda: (
        [x, y],
        loop(
            lambda i, v, b: loop(
                lambda j, w, c, i, v: pt.set_subtensor(c[j], w * c[j] + v), [over(y), y], b, (i, v)
            ),
            [over(x), x],
            pt.ones(n),
        ),
        None,
    ),
    "a table cell by cell": lambda: (
        [x, y],
        loop(
            lambda i, v, m: loop(
                lambda j, w, c, i, v: pt.set_subtensor(c[i, j], w * c[i - 1, j] + v * c[i, j - 1]),
                [over(y), y],
                m,
                (i, v),
            ),
            [over(x), x],
            pt.ones((n, n)),
        ).sum(),
        None,
    ),
}


def _both(found: Any) -> Any:
    return found[0][-1].sum() + found[1].sum()


def _sum_of(parts: list[Any]) -> Any:
    return sum(pt.exp(0.1 * i * part).sum() for i, part in enumerate(parts, 1))


def _derivative(order: int, make: Callable[[], Made]) -> tuple[list[Any], Any]:
    inputs, found, by = make()
    for _ in range(order):
        found = graphc.grad((found**2).sum(), by)
    return inputs, found


def work(f: Any, inputs: list[Any], size: int) -> int:
    """Operations, functions and bytes of a call."""
    rows = roofline_of(f, values_of(inputs, size), seconds=1.0).rows
    total = 0
    for row in rows:
        assert row.moved is not None, f"nobody knows how often {row.what} of {row.name} runs"
        total += (row.flops or 0) + sum(row.functions.values()) + row.moved
        total += (row.bytes or 0) if row.what not in ("loop", "copy", "scalars") else 0
    return total


def assert_power(inputs: list[Any], output: Any, power: int) -> None:
    f, reference = (
        graphc.function(inputs, output, mode=mode, on_unused_input="ignore")
        for mode in ("fast_run", "reference")
    )
    values = values_of(inputs, SIZES[0])
    np.testing.assert_allclose(f(*values), reference(*values), rtol=1e-9, atol=1e-9)
    counts = [work(f, inputs, size) for size in SIZES]
    found = math.log2(counts[-1] / counts[-2])
    assert found < power + 0.25, f"the work grows by the power {found:.2f}: {counts} at {SIZES}"


def _descent(loss: Callable[[Any, Any], Any], step: Callable[[Any], Any] = lambda g: 0.01 * g) -> Made:
    """Steps along the gradient of what each iteration reads of a table."""
    rows = loop(lambda i, w: w - step(graphc.grad(loss(w, i), w)), [k], table)
    return [table, k], rows, table


def _adagrad() -> Made:
    def step(i: Any, w: Any, seen: Any) -> list[Any]:
        g = graphc.grad(pt.tanh(w[i]).sum(), w)
        seen = seen + g**2
        return [w - 0.1 * g / pt.sqrt(seen + 1e-3), seen]

    return [table, k], loop(step, [k], [table, pt.zeros_like(table)])[0], table


# Steps along gradients, and choices and sums by positions: of what is touched, as users write them.
STEPS: dict[str, Callable[[], Made]] = {
    "descent by a row": lambda: _descent(lambda w, i: (w[i].sum() - 1) ** 2),
    "descent by a cell": lambda: _descent(lambda w, i: pt.exp(w[i, i % 4])),
    "descent by gathered rows": lambda: _descent(lambda w, i: (w[pt.stack([i, i // 2])].sum(1) ** 2).sum()),
    "descent by squares": lambda: _descent(
        lambda w, i: (w[pt.stack([i, i])] ** 2).sum(), lambda g: 0.01 * g * g
    ),
    "descent by two rows": lambda: _descent(lambda w, i: pt.dot(w[i], w[i - 1]) + 0.1 * (w[i] ** 2).sum()),
    "clipped descent": lambda: _descent(lambda w, i: (w[i] ** 4).sum(), lambda g: pt.clip(g, -0.1, 0.2)),
    "descent of one length": lambda: _descent(
        lambda w, i: (w[i] ** 4).sum(), lambda g: g / pt.sqrt((g**2).sum() + 1)
    ),
    "descent by the squares seen": _adagrad,
    "an element where a position is equal": lambda: (
        [x, y],
        loop(lambda t, b, v: pt.where(pt.eq(over(v), t), v[t] * b[t - 1], b), [over(y)], x, (y,)),
        x,
    ),
    "elements where positions differ from one": lambda: (
        [x],
        loop(lambda t, b: pt.where(pt.neq(over(b), t - 1), b, 2 * b), [over(x)], x),
        x,
    ),
    "a cell where two positions are equal": lambda: (
        [table],
        loop(
            lambda t, b: pt.where(pt.eq(over(b)[:, None], t) & pt.eq(pt.arange(4), t % 4), b[t].mean(), b),
            [over(table)],
            table,
        ),
        table,
    ),
    "a number at a position": lambda: (
        [x],
        loop(lambda t, v, b: b + v * pt.eq(over(b), t - 1), [over(x), x], pt.zeros(n)),
        x,
    ),
    "positions counted": lambda: (
        [k],
        loop(lambda i, b: b + pt.eq(over(b), i), [k], pt.zeros(k.shape[0], "int64")),
        None,
    ),
}
PROGRAMS |= STEPS


# The derivative of a choice of two arrays that are updates of different sizes chooses arrays. That
# of setting gathered elements (which puts them back), of which the last counts where a position is repeated,
# looks for it in an array of positions. The derivative of a length, or of squares that are added up, is an
# array, and so is the sum of what is added at positions that may be equal, if its square is asked for.
DENSE = {
    "descent by gathered rows": (2,),
    "descent by squares": (0, 1, 2),
    "descent of one length": (1, 2),
    "descent by the squares seen": (1, 2),
    "gathered elements": (2,),
    "a window": (2,),
    "updates in both branches": (1, 2),
}
LINEAR = [
    (name, order)
    for name in PROGRAMS
    for order in range(2 if name in MORE else 3)
    if not order or PROGRAMS[name]()[2] is not None
]


@pytest.mark.parametrize(("name", "order"), LINEAR)
def test_work_is_linear(name: str, order: int) -> None:
    """Programs, their gradients, and gradients of functions of these; they are right, too."""
    power = 2 if order in DENSE.get(name, ()) else 1
    assert_power(*_derivative(order, PROGRAMS[name]), power)


@pytest.mark.parametrize("name", QUADRATIC)
def test_work_is_quadratic(name: str) -> None:
    """Where each step is asked for, or has a loop of its own."""
    inputs, output, _ = QUADRATIC[name]()
    assert_power(inputs, output, 2)


# -- shared variables ----------------------------------------------------------------------------------------

SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda w, k: (w[k].sum(axis=1) ** 2).mean(),
    "a row": lambda w, k: (w[k[0]].sum() - 1) ** 2,
    "rows beside rows": lambda w, k: ((w[k] * w[k + 1]).sum(axis=1) ** 2).sum(),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_step_along_a_gradient_costs_what_it_touches(name: str) -> None:
    """However large the table is that a shared variable holds."""
    w, rate = graphc.shared(np.zeros((2, 4))), pt.scalar("rate")
    loss = SHARED[name](w, k)
    f, reference = (
        graphc.function([k, rate], loss, updates={w: w - rate * graphc.grad(loss, w)}, mode=mode)
        for mode in ("fast_run", "reference")
    )
    counts = []
    for size in SIZES:
        (given,) = values_of([table], size)
        values, after = (np.array([3, 1, 3]), 0.1), []
        for compute in (f, reference):
            w.set_value(given)
            after += [compute(*values), w.get_value()]
        np.testing.assert_allclose(after[0], after[2], rtol=1e-12)
        np.testing.assert_allclose(after[1], after[3], rtol=1e-12)
        rows = roofline_of(f, values, seconds=1.0).rows
        counts.append(sum((row.flops or 0) + (row.moved or 0) for row in rows))
    assert counts[0] == counts[-1] > 0, counts


# -- more parts ----------------------------------------------------------------------------------------------

TAKEN_APART: dict[str, Callable[[Any, Any, list[int]], list[Any]]] = {
    "slices": lambda v, ends, known: [v[b - s : b] for s, b in zip(known, np.cumsum(known), strict=True)],
    "slices of unknown sizes": lambda v, ends, known: [
        v[ends[i - 1] if i else 0 : ends[i]] for i in range(len(known))
    ],
    "split": lambda v, ends, known: pt.split(v, known, n_splits=len(known), axis=0),
}


@pytest.mark.parametrize("order", ["a batch of gradients", "the gradient of a batch"])
@pytest.mark.parametrize("name", TAKEN_APART)
def test_parts_of_different_sizes_in_a_batch(name: str, order: str) -> None:
    """Twice as many parts of a vector twice as long cost twice as much, with a batch axis, too."""
    counts = []
    for number in (6, 12):
        known = [1 + 3 * (i % 3) for i in range(number)]
        batch, ends = np.random.default_rng(number).normal(size=(7, sum(known))), pt.lvector("ends")
        total = _sum_of(TAKEN_APART[name](x, ends, known))
        if order == "a batch of gradients":
            output = graphc.vectorize_graph(graphc.grad(total, x), {x: table})
        else:
            output = graphc.grad(graphc.vectorize_graph(total, {x: table}).sum(), table)
        f = graphc.function([table, ends], output, on_unused_input="ignore")
        values = [batch, np.cumsum(known)]
        factors = np.repeat(0.1 * np.arange(1, number + 1), known)
        np.testing.assert_allclose(f(*values), factors * np.exp(factors * batch), rtol=1e-12)
        counts.append(sum(row.moved or 0 for row in roofline_of(f, values, seconds=1.0).rows))
    assert math.log2(counts[-1] / counts[-2]) < 1.25, counts


# -- what is stored where neighbours lie apart ---------------------------------------------------------------


def _matrices(dtype: str, columns: int | None) -> tuple[Any, Any]:
    a, b = (pt.tensor(name, dtype=dtype, shape=(None, columns)) for name in "ab")
    return a, b


def _rows_of(step: Callable[..., Any], a: Any, start: Any) -> Any:
    return scan(step, sequences=[a], outputs_info=[start], return_updates=False)


# Each reads its inputs once, and stores each element of its result once.
APART: dict[str, Callable[[Any, Any], Any]] = {
    "a transposed part": lambda a, b: pt.concatenate([pt.tanh(a).T, b.T], axis=1),
    "transposed parts, one after the other": lambda a, b: pt.concatenate([pt.exp(a).T, pt.tanh(b * a).T]),
    "columns": lambda a, b: pt.stack([pt.tanh(a), pt.exp(b)], axis=2),
    "one column that is computed": lambda a, b: pt.stack([pt.tanh(a), b], axis=2),
    "parts in the middle": lambda a, b: pt.stack([pt.exp(a * b), pt.exp(a), pt.sqrt(b + 2)], axis=1),
    "extremes of rows as columns": lambda a, b: pt.stack(
        [pt.exp(a).min(axis=1), pt.tanh(b).max(axis=1)], axis=1
    ),
    "a transposed result": lambda a, b: pt.tanh(a * b).T,
    "two transposed results": lambda a, b: [pt.tanh(a * b).T, pt.exp(a - b).T],
    "a transposed result beside another one": lambda a, b: [pt.tanh(a).T, pt.tanh(a) * b],
    "axes in another order": lambda a, b: pt.stack([pt.tanh(a), pt.exp(b)]).dimshuffle(2, "x", 0, 1),
}


@pytest.mark.parametrize(
    ("name", "dtype", "columns"),
    [
        *((name, dtype, columns) for name in APART for dtype, columns in (("float64", None), ("float32", 6))),
        ("a transposed part", "complex128", None),
        ("a transposed result", "int64", None),
    ],
)
def test_what_lies_apart_is_stored_once(name: str, dtype: str, columns: int | None) -> None:
    """Parts of joins, transposed ones too, and transposed results need no memory beside the result."""
    a, b = _matrices(dtype, columns)
    made = APART[name](a, b)
    outputs = made if isinstance(made, list) else [made]
    f = graphc.function([a, b], outputs)
    # More than two strips, and less than one.
    for rows in (600, 7):
        rng = np.random.default_rng(rows)
        values = [
            (rng.uniform(-1, 1, (rows, 6)) * (1 if dtype != "int64" else 3)).astype(dtype) for _ in "ab"
        ]
        plan = f.memory_plan(*values)
        assert plan.total == 0, plan
        found = f(*values)
        expected = graphc.function([a, b], outputs, mode="reference")(*values)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5 if dtype == "float32" else 1e-12)
        stored = sum(x.nbytes for x in found)
        moved = sum(row.moved or 0 for row in roofline_of(f, values, seconds=1.0).rows)
        assert stored <= moved <= stored + 2 * sum(v.nbytes for v in values) + 64 * rows


# By the rows of its state that a loop reads, writes and keeps in each step.
ROWS_APART: dict[str, Callable[[Any, Any], Any]] = {
    "a transposed state": lambda a, b: _rows_of(lambda r, h: pt.tanh(h * r).T, a, b[:6, :6]),
    "columns of a state": lambda a, b: _rows_of(
        lambda r, h: pt.stack([pt.tanh(h[:, 0] * r), pt.exp(-h[:, 1])], axis=1), a, b[:6, :2]
    ),
    "one column of a state": lambda a, b: _rows_of(
        lambda r, h: pt.stack([pt.tanh(h[:, 0] * r), h[:, 1]], axis=1), a, b[:6, :2]
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS_APART)
def test_rows_that_lie_apart_are_stored_once(name: str, dtype: str) -> None:
    """A row is computed in its place, not beside it."""
    a, b = _matrices(dtype, 6)
    output = ROWS_APART[name](a, b)
    f = graphc.function([a, b], output)
    values = [np.random.default_rng(1).uniform(-1, 1, (40, 6)).astype(dtype) for _ in "ab"]
    found = f(*values)
    expected = graphc.function([a, b], output, mode="reference")(*values)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12)
    # The initial row, which is a part of an argument.
    assert f.memory_plan(*values).total <= found[0].nbytes
    moved = sum(row.moved or 0 for row in roofline_of(f, values, seconds=1.0).rows)
    assert moved <= 3 * found.nbytes + values[0].nbytes * 6 + 4 * found[0].nbytes


# -- what updates store --------------------------------------------------------------------------------------

z = pt.matrix("z")


def _stepwise(step: Callable[..., Any]) -> Any:
    return scan(step, [x], [y], [y * 1], return_updates=False)[-1]


# Of vectors of 12 and tables of 12 x 4: an update, and the bytes that it needs beside the result.
UPDATED: dict[str, tuple[Any, int]] = {
    "a part": (pt.set_subtensor(x[2:9], pt.exp(y[:7])), 0),
    "a part that is increased": (pt.inc_subtensor(x[2:9], pt.exp(y[:7])), 0),
    "a part of zeros": (pt.set_subtensor(pt.zeros(30)[2:9], pt.exp(y[:7])), 0),
    "a part of what is computed": (pt.set_subtensor(pt.exp(x)[2:9], pt.exp(y[:7])), 0),
    "backwards": (pt.set_subtensor(x[::-1], y * 2 + 1), 0),
    "rows": (pt.set_subtensor(table[1:4], pt.tanh(z[1:4])), 0),
    "a block": (pt.set_subtensor(table[1:4, 1:3], pt.tanh(z[1:4, :2] * z[2:5, 1:3])), 0),
    "a column": (pt.set_subtensor(table[:, 1], pt.tanh(z[:, 0])), 0),
    "every other column": (pt.set_subtensor(table[1:4, ::2], z[1:4, ::2] * 2), 0),
    "columns of the transpose": (pt.set_subtensor(table.T[1:3], pt.tanh(z.T[:2])), 0),
    "positions": (pt.inc_subtensor(x[k], y * 2), 0),
    "rows at positions": (pt.inc_subtensor(table[k], z * 2), 0),
    "positions of functions": (pt.set_subtensor(x[k], pt.exp(y)), 96),
    "flags": (pt.set_subtensor((x > 0.5)[1:4], y[:3] > 0.2), 0),
    "complex numbers": (pt.set_subtensor((x + 1j)[1:4], y[:3] * 1j), 0),
    "in a branch": (ifelse(x.sum() > 0, pt.set_subtensor(x[2:9], pt.exp(y[:7])), x), 0),
    "in a loop": (_stepwise(lambda v, b, c: pt.set_subtensor(b[3:6], pt.tanh(c[1:4] * v))), 0),
    "one after the other": (_sum_of([pt.inc_subtensor(pt.set_subtensor(x[:3], y[:3] * 2)[2:5], y[2:5])]), 96),
    # What an element is made of is overwritten by another one.
    "by itself": (pt.set_subtensor(x[1:], pt.exp(x[:-1])), 0),
    "what is computed by itself": ((lambda e: pt.set_subtensor(e[1:], e[:-1] * 2))(pt.exp(x)), 96),
    "a state by itself": (_stepwise(lambda v, b, c: pt.set_subtensor(b[1:], b[:-1] * v)), 88),
    "parts by each other": (
        (lambda b: pt.set_subtensor(b[5:10], b[:5] * 3))(pt.set_subtensor(x[:5], x[5:10] * 2)),
        96,
    ),
}


@pytest.mark.parametrize(
    ("name", "mutable"),
    [
        *((name, False) for name in UPDATED),
        *((name, True) for name in UPDATED if "by" in name or "loop" in name),
    ],
)
def test_an_update_computes_what_it_stores(name: str, mutable: bool) -> None:
    """The rest of an array is copied once and the part is written once, also in the memory of an argument."""
    output, needed = UPDATED[name]
    rng = np.random.default_rng(1)
    values = [rng.normal(size=12), rng.normal(size=12), *(rng.normal(size=(12, 4)) for _ in "tz")]
    values.append(rng.integers(12, size=12))
    inputs = [x, y, table, z, k]
    expected = graphc.function(inputs, output, mode="reference", on_unused_input="ignore")(*values)
    f = graphc.function([graphc.In(v, mutable=mutable) for v in inputs], output, on_unused_input="ignore")
    if not mutable:
        assert f.memory_plan(*values).total == needed
    np.testing.assert_allclose(f(*[value.copy() for value in values]), expected, rtol=1e-12)


# -- conditionals in conditionals ----------------------------------------------------------------------------


def _nested(depth: int, form: str) -> Any:
    """Each level changes what the one inside of it chooses."""
    found: Any = y * 1
    for level in range(depth):
        other = y if form == "an argument" else pt.cos(y)
        inner = pt.tanh(found * 1.01 + 0.5)
        if form == "joined":
            inner = pt.concatenate([found[:6] * 1.5, found[6:] + other[6:]]) - 1
        found = ifelse(x.sum() > level, inner, other)
    return found


@pytest.mark.parametrize(("form", "needed"), [("an argument", 0), ("a function", 0), ("joined", 12 * 8)])
def test_nested_conditionals_are_computed_in_one_place(form: str, needed: int) -> None:
    """However deep they are, what they choose lies where the last result is wanted."""
    for depth in (2, 5):
        output = _nested(depth, form)
        f, reference = (graphc.function([x, y], output, mode=mode) for mode in ("fast_run", "reference"))
        for level in range(-1, depth + 1):
            values = [np.full(12, (level + 0.5) / 12), np.random.default_rng(level + 1).normal(size=12)]
            np.testing.assert_allclose(f(*values), reference(*values), rtol=1e-12)
        assert (f.memory_plan(*values).total or 0) <= needed * depth


# -- sizes that only checks say to be equal ------------------------------------------------------------------

FEW = {"known": (None, 4), "unknown": (None, None)}
# Of a table with four columns.
CHECKED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rows that a loop reads": lambda t, v, i: loop(lambda j, h, e: pt.tanh(h + e[j]), [i], pt.zeros(4), (t,)),
    "rows that a loop reads, twice": lambda t, v, i: loop(
        lambda j, h, g, e: [pt.tanh(h + e[j]), g * e[j]], [i], [pt.zeros(4), pt.ones(4)], (t,)
    )[1],
    "rows that a loop reads, beside a choice": lambda t, v, i: (
        loop(lambda j, h, e: pt.tanh(h + e[j]), [i], pt.zeros(4), (t,)) + ifelse(v[0] > 0, t[0, 0], t[1, 0])
    ),
    "a column": lambda t, v, i: pt.set_subtensor((t * 2)[:, 1], pt.tanh(v)),
    "a column that is increased": lambda t, v, i: pt.inc_subtensor((t * 2)[:, 1], pt.tanh(v)),
}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", CHECKED)
def test_what_checks_say_is_known(name: str, order: int) -> None:
    """Sizes that a check compares are one: nothing is repeated to a size that it has."""
    v, i = pt.vector("v"), pt.lvector("i")
    rng = np.random.default_rng(3)
    values = [rng.normal(size=(64, 4)), rng.normal(size=64), rng.integers(64, size=64)]
    counts = {}
    for columns, shape in FEW.items():
        t = pt.tensor("t", dtype="float64", shape=shape)
        output = CHECKED[name](t, v, i)
        output = graphc.grad((output**2).sum(), t) if order else output
        f = graphc.function([t, v, i], output, on_unused_input="ignore")
        expected = graphc.function([t, v, i], output, mode="reference", on_unused_input="ignore")(*values)
        np.testing.assert_allclose(f(*values), expected, rtol=1e-9, atol=1e-9)
        counts[columns] = sum(row.moved or 0 for row in roofline_of(f, values, seconds=1.0).rows)
        if "column" not in name and columns == "unknown":
            with pytest.raises(ValueError, match="4"):
                f(rng.normal(size=(64, 5)), *values[1:])
        if "column" in name:
            with pytest.raises(ValueError, match="63"):
                f(values[0], values[1][:-1], values[2])
    assert counts["unknown"] == counts["known"]


@pytest.mark.parametrize("keep", ["all", "last"])
def test_without_an_iteration_nothing_has_to_fit(keep: str) -> None:
    """What a check of a loop says holds in its iterations, and nowhere else."""
    t, i = pt.matrix("t"), pt.lvector("i")
    rows = scan(
        lambda j, h, e: pt.tanh(h + e[j]), [i], [pt.zeros(4)], [t], n_steps=i.shape[0], return_updates=False
    )
    total = (rows if keep == "all" else rows[-1:]).sum()
    f = graphc.function([t, i], [total, graphc.grad(total, t), t.shape[1], t * 2])
    for columns in (5, 3, 0):
        value = np.ones((3, columns))
        found, slope, size, twice = f(value, [])
        assert found == 0 and size == columns
        np.testing.assert_array_equal(slope, 0 * value)
        np.testing.assert_array_equal(twice, 2 * value)
        with pytest.raises(ValueError, match="4"):
            f(value, [0])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that change a state in part have one buffer for it; all that reads an older version still reads that.

Bodies are made at random from updates (of elements, parts, gathered elements, by inner loops, in branches of
conditionals) and from what reads older and newer versions of the states, before and after an update in the
text; each is compared with the reference mode, in which every version is an array of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import fori_loop, scan, while_loop
from graphc.scan.gradient import undone

N, STEPS = 7, 9


class _Body:
    """One random body over a vector (or the rows of a matrix) and a table of positions."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def position(self, t, k, versions):
        kind = self.rng.integers(5)
        if kind == 0:
            return t % N
        if kind == 1:
            return k
        if kind == 2:
            return (t + int(self.rng.integers(N))) % N
        if kind == 3:
            return int(self.rng.integers(-N, N))
        return pt.argmax(self.pick(versions).reshape((N, -1)).sum(axis=1)) % N

    def element(self, t, k, versions, shape):
        """A value of the shape of an element or row."""
        kind = self.rng.integers(7)
        b = self.pick(versions)
        if kind == 0:
            return b[self.position(t, k, versions)]
        if kind == 1:
            return pt.tanh(b[self.position(t, k, versions)]) + 0.5 * self.pick(versions)[k]
        if kind == 2:
            return b.mean(axis=0)
        if kind == 3:
            return pt.switch(b.sum() > 0.3, b[self.position(t, k, versions)], self.pick(versions)[0] * 1)
        if kind == 4:
            return graphc.ifelse(b.sum() > 0.3, b[k], self.pick(versions)[1])
        if kind == 5:
            return pt.maximum(b, b)[self.position(t, k, versions)]
        return pt.cos(t * 0.3) + pt.zeros(shape)

    def part(self, versions, size):
        start = int(self.rng.integers(N - size + 1))
        b = self.pick(versions)
        kind = self.rng.integers(4)
        if kind == 0:
            return b[start : start + size]
        if kind == 1:
            return b[::-1][start : start + size]
        if kind == 2:
            return (b + self.pick(versions))[start : start + size] * 0.5
        return b[[int(i) for i in self.rng.integers(N, size=size)]]

    def update(self, b, t, k, versions):
        kind = self.rng.integers(10)
        if kind > 2:
            return self.plain_update(b, t, k, versions)
        condition = self.pick(versions).sum() > self.pick([-0.5, 0.3, 1.0])
        sides = [self.plain_update(b, t, k, versions), b if kind else self.update(b, t, k, versions)]
        return graphc.ifelse(condition, *self.pick([sides, sides[::-1]]))

    def plain_update(self, b, t, k, versions):
        change = self.pick([pt.set_subtensor, pt.inc_subtensor])
        kind = self.rng.integers(7)
        shape = b.shape[1:]
        if kind <= 2:
            return change(b[self.position(t, k, versions)], self.element(t, k, versions, shape))
        if kind == 3:
            size = int(self.rng.integers(1, N))
            start = int(self.rng.integers(N - size + 1))
            return change(b[start : start + size], self.part(versions, size))
        if kind == 4:
            index = [int(i) for i in self.rng.integers(N, size=3)]
            return change(b[index], self.part(versions, 3))
        if kind == 5:
            i, j = self.position(t, k, versions), self.position(t, k, versions)
            return pt.set_subtensor(pt.set_subtensor(b[i], b[j])[j], b[i])
        other = self.pick(versions)
        return scan(
            lambda s, c, o: pt.set_subtensor(c[s], 0.5 * c[(s + 1) % N] + 0.1 * o[s]),
            sequences=[pt.arange(N)],
            outputs_info=[b],
            non_sequences=[other],
            return_updates=False,
        )[-1]


def _program(seed: int, symbolic: bool, ndim: int):
    body = _Body(seed)
    x = pt.TensorType("float64", [None] * ndim if symbolic else [N, 3][:ndim])("x")
    n = pt.lscalar("n")
    ks = pt.lvector("ks")
    start = body.pick([x, pt.exp(x), pt.zeros_like(x), pt.stack([x, x])[0], x * 1, x[::-1]])
    two = body.rng.random() < 0.5
    count = int(body.rng.integers(1, 4))

    def step(t, k, b, *more):
        versions = [b]
        first = pt.tanh(body.pick(versions)).sum()
        for _ in range(count):
            versions.append(body.update(versions[-1], t, k, versions))
        outputs = [versions[-1]]
        if more:
            c = more[0]
            how = body.rng.integers(4)
            if how == 0:
                outputs.append(body.pick(versions))
            elif how == 1:
                outputs.append(body.update(c, t, k, [*versions, c]))
            elif how == 2:
                outputs.append(pt.tanh(c) * 0.5 + body.pick(versions))
            else:
                outputs.append(c * 0.9)
        last = (body.pick(versions) * 2 - body.pick(versions)).sum()
        return [*outputs, first, last]

    info = [start, x, None, None] if two else [start, None, None]
    found = scan(step, sequences=[pt.arange(n), ks], outputs_info=info, return_updates=False)
    states, rows = found[:-2], list(found[-2:])
    asked = [state[-1] for state in states] + rows[: int(body.rng.integers(3))]
    asked += [start] if body.rng.random() < 0.5 else []
    asked += [start.sum() + states[0][-1].sum()] if body.rng.random() < 0.3 else []
    return [x, n, ks], asked


def _values(seed: int, ndim: int):
    rng = np.random.default_rng(seed + 1000)
    return [rng.normal(size=(N, 3)[:ndim]), STEPS, rng.integers(N, size=STEPS)]


@pytest.mark.parametrize("seed", range(40))
def test_every_version_is_read_as_it_was(seed: int) -> None:
    """Random bodies agree with the reference."""
    ndim = 1 + seed % 2
    inputs, outputs = _program(seed, seed % 3 > 0, ndim)
    values = _values(seed, ndim)
    expected = graphc.function(inputs, outputs, mode="reference")(*values)
    mode = "fast_compile" if seed % 5 == 4 else "fast_run"
    found = graphc.function(inputs, outputs, mode=mode)(*values)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _gradients(seed: int, order: int):
    inputs, outputs = _program(seed, seed % 3 > 0, 1 + seed % 2)
    x, cost = inputs[0], sum((y**2).sum() for y in outputs)
    for _ in range(order):
        found = graphc.grad(cost, x, disconnected_inputs="ignore")
        cost = (found * pt.cos(found)).sum()
    return inputs, found


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(100, 116))
def test_gradients_undo_the_updates(seed: int, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives are those that read all rows from a trace."""
    monkeypatch.setattr(undone, "_SMALL", 1)
    inputs, found = _gradients(seed, order)
    f = graphc.function(inputs, found, on_unused_input="ignore")
    monkeypatch.setattr(undone, "_updates", lambda run, state: [])
    inputs, expected = _gradients(seed, order)
    reference = graphc.function(inputs, expected, mode="reference", on_unused_input="ignore")
    values = _values(seed, 1 + seed % 2)
    np.testing.assert_allclose(f(*values), reference(*values), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"go_backwards": True}, {"truncate_gradient": 4}, {"checkpoint_every": 3}]
)
def test_gradients_of_other_loops(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that run backwards, with a limited gradient, with checkpoints, until a condition."""
    monkeypatch.setattr(undone, "_SMALL", 1)

    def gradient():
        x, k = pt.vector("x"), pt.lvector("k")
        rows = scan(
            lambda i, t, b: pt.inc_subtensor(b[i], pt.sin(b[t]) * b[(i + 1) % N]),
            sequences=[k, pt.arange(k.shape[0]) % N],
            outputs_info=[x],
            return_updates=False,
            **options,
        )
        return [x, k], graphc.grad((rows[-1] ** 2).sum(), x)

    values = _values(3, 1)[0], _values(3, 1)[2]
    found = graphc.function(*gradient())(*values)
    monkeypatch.setattr(undone, "_updates", lambda run, state: [])
    np.testing.assert_allclose(found, graphc.function(*gradient(), mode="reference")(*values), rtol=1e-9)


def test_gradients_of_loops_that_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that is undone first is that of the last iteration that was made."""

    def gradient():
        x, k = pt.vector("x"), pt.lvector("k")
        rows = scan(
            lambda i, b: (pt.inc_subtensor(b[i], pt.sin(b[0]) * b[(i + 1) % N]), graphc.until(b.sum() > 4)),
            sequences=[k],
            outputs_info=[x],
            return_updates=False,
        )
        return [x, k], graphc.grad((rows[-1] ** 2).sum(), x)

    monkeypatch.setattr(undone, "_SMALL", 1)
    values = np.abs(_values(3, 1)[0]), _values(3, 1)[2]
    found = graphc.function(*gradient())(*values)
    monkeypatch.setattr(undone, "_updates", lambda run, state: [])
    np.testing.assert_allclose(found, graphc.function(*gradient(), mode="reference")(*values), rtol=1e-9)


# Of a position t and a state b: parts whose number of elements is not the same in all iterations.
PARTS = {
    "from the start": lambda t, b: b[: t + 1],
    "to the end": lambda t, b: b[t:],
    "clipped": lambda t, b: b[t : t + 3],
    "backwards": lambda t, b: b[t::-1],
    "with a step": lambda t, b: b[:: t + 1],
    "as long as a state says": lambda t, b: b[: pt.argmax(b) + 1],
    "positions": lambda t, b: b[pt.arange(t + 1)],
    "positions of a mask": lambda t, b: b[pt.nonzero(b > b[t])[0]],
}


@pytest.mark.parametrize("part", PARTS)
def test_gradients_of_parts_of_different_sizes(part: str) -> None:
    """What an iteration overwrites is stored only if that is as much in each of them."""
    x, v = pt.vector("x"), pt.vector("v")

    def step(t, r, b):
        first = pt.inc_subtensor(PARTS[part](t, b), r * b[-1])
        return pt.set_subtensor(first[t], pt.sin(first[0]))

    def last(x, v):
        return scan(step, sequences=[pt.arange(N), v], outputs_info=[x], return_updates=False)[-1]

    found = graphc.grad((last(x, v) ** 2).sum(), [x, v])
    if part in ("from the start", "positions"):
        found += graphc.grad(sum(pt.sin(g).sum() for g in found), [x, v])
    values = [_values(7, 1)[0] / 2, _values(8, 1)[0] / 2]
    expected = graphc.function([x, v], found, mode="reference")(*values)
    for got, want in zip(graphc.function([x, v], found)(*values), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    graphc.gradient.verify_grad(last, values, mode="reference")


def _histogram(loop_kind: str):
    x = pt.lvector("x")
    counts = pt.zeros(5, dtype="int32")
    if loop_kind == "scan":
        return [x], scan(
            lambda i, h: pt.inc_subtensor(h[i], 1), sequences=[x], outputs_info=[counts], return_updates=False
        )[-1]
    if loop_kind == "fori":
        return [x], fori_loop(0, x.shape[0], lambda i, h: pt.inc_subtensor(h[x[i]], 1), counts)
    return [x], while_loop(
        lambda state: state[0] < x.shape[0],
        lambda state: (state[0] + 1, pt.inc_subtensor(state[1][x[state[0]]], 1)),
        (pt.constant(0), counts),
    )[1]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("kind", ["scan", "fori", "while"])
def test_histograms(kind: str, mode: str) -> None:
    """Integers, in each form of a loop; also without an iteration, of which a scan has no last row."""
    inputs, counts = _histogram(kind)
    f = graphc.function(inputs, counts, mode=mode)
    for values in ([1, 4, 1, 0, 1], [3], [])[: 2 if kind == "scan" else 3]:
        found = f(np.array(values, dtype="int64"))
        np.testing.assert_array_equal(found, np.bincount(np.array(values, dtype=int), minlength=5))


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool", "uint8"])
def test_swaps(dtype: str) -> None:
    """Both values of a swap are read before either is written: a vector is reversed, and back again."""
    x = pt.TensorType(dtype, (None,))("x")
    half = x.shape[0] // 2

    def swap(i, b):
        j = b.shape[0] - 1 - i
        return pt.set_subtensor(pt.set_subtensor(b[i], b[j])[j], b[i])

    once = scan(swap, sequences=[pt.arange(half)], outputs_info=[x], return_updates=False)[-1]
    twice = scan(swap, sequences=[pt.arange(half)], outputs_info=[once], return_updates=False)[-1]
    values = (np.arange(9) % 5 * (1 + 2j if dtype == "complex128" else 1)).astype(dtype)
    found = graphc.function([x], [once, twice, x[0]])(values)
    np.testing.assert_array_equal(found[0], values[::-1])
    np.testing.assert_array_equal(found[1], values)


@pytest.mark.parametrize("donated", [False, True])
def test_shared_variables_are_read_until_the_end(donated: bool) -> None:
    """A loop that updates a shared variable, or a donated argument, that other results read as it was."""
    start = np.linspace(0.0, 1.0, 6)
    table = graphc.shared(start.copy(), "table")
    x = pt.vector("x")
    source = x if donated else table
    new = scan(
        lambda i, b, s: pt.inc_subtensor(b[i], b[5 - i] + s[0]),
        sequences=[pt.arange(6)],
        outputs_info=[source],
        non_sequences=[source],
        return_updates=False,
    )[-1]
    after = source.sum() + new[0]
    given = graphc.In(x, borrow=True, mutable=True) if donated else x
    if donated:
        f = graphc.function([given], [new, after])
    else:
        f = graphc.function([], after, updates=[(table, new)])
    expected = start.copy()
    for i in range(6):
        expected[i] += expected[5 - i] + start[0]
    found = f(start.copy()) if donated else f()
    if donated:
        np.testing.assert_allclose(found[0], expected)
    else:
        np.testing.assert_allclose(table.get_value(), expected)
    np.testing.assert_allclose(found[1] if donated else found, start.sum() + expected[0])


def test_tables_of_nested_loops() -> None:
    """A table that an inner loop fills cell by cell is one buffer for both: the edit distance."""
    a, b = pt.lvector("a"), pt.lvector("b")
    n, m = a.shape[0], b.shape[0]
    first = pt.zeros((n + 1, m + 1), dtype="int64")
    first = pt.set_subtensor(first[0], pt.arange(m + 1))
    first = pt.set_subtensor(first[:, 0], pt.arange(n + 1))

    def cell(j, d, i, a, b):
        least = pt.minimum(d[i - 1, j], d[i, j - 1]) + 1
        return pt.set_subtensor(d[i, j], pt.minimum(least, d[i - 1, j - 1] + pt.neq(a[i - 1], b[j - 1])))

    def row(i, d, a, b):
        return scan(
            cell,
            sequences=[pt.arange(1, m + 1)],
            outputs_info=[d],
            non_sequences=[i, a, b],
            return_updates=False,
        )[-1]

    table = scan(
        row, sequences=[pt.arange(1, n + 1)], outputs_info=[first], non_sequences=[a, b], return_updates=False
    )[-1]
    words = [np.array([ord(c) for c in word]) for word in ("kitten", "sitting")]
    f = graphc.function([a, b], table[-1, -1])
    assert f(*words) == 3
    (copied,) = [line for line in f.ir_stages()["tensor"].splitlines() if "memref.copy" in line]
    assert copied.endswith("to memref<i64>")


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (1, 3, 1), (3,)])
def test_rows_that_drop_axes_of_one_element(shape: tuple[int, ...], nested: bool) -> None:
    """An initial value, or the last row of an inner loop, whose memory has more axes than the state."""
    x, r = pt.tensor("x", dtype="float64", shape=shape), pt.vector("r")

    def step(t, r, h):
        h = pt.inc_subtensor(h[t : t + 2], r * r)
        if not nested:
            return h
        column = h.dimshuffle(0, "x")
        inner = scan(
            lambda k, c: pt.set_subtensor(c[k], c[k] * 2),
            sequences=[pt.arange(2)], outputs_info=[column], return_updates=False,
        )  # fmt: skip
        return inner[-1][:, 0]

    initials = [pt.exp(x).ravel(), pt.exp(x).dimshuffle([axis for axis, n in enumerate(shape) if n != 1])]
    rows = [
        scan(step, sequences=[pt.arange(2), r], outputs_info=[h], return_updates=False)[-1] for h in initials
    ]
    values = [np.arange(3.0).reshape(shape), np.array([1.0, 3.0])]
    expected = graphc.function([x, r], rows, mode="reference")(*values)
    np.testing.assert_allclose(graphc.function([x, r], rows)(*values), expected, rtol=1e-14)
    np.testing.assert_allclose(graphc.function([x, r], rows[1])(*values), expected[1], rtol=1e-14)

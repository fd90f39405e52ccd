# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are only known in the compiled graph, and sizes of 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.variable import TensorVariable

MODES = ("fast_run", "fast_compile")
Variable = TensorVariable

# Operations on `w` of two elements and a part of one element, whose size the graph as written does not know.
JOINT: dict[str, Callable[[Variable, Variable], Variable]] = {
    "mul": lambda w, a: w * a,
    "neutral": lambda w, a: w * (a * 0 + 1),
    "zero": lambda w, a: w * 0 + a,
    "where": lambda w, a: pt.switch(a > 0, w, w),
    "power": lambda w, a: w ** (a * 0 + 2),
    "ones": lambda w, a: w * pt.ones_like(a),
    "sum": lambda w, a: (w * a).sum(),
    "set": lambda w, a: pt.set_subtensor(pt.exp(w)[:], a),
    "dot": lambda w, a: pt.dot(w, a),
    "loop": lambda w, a: graphc.scan(lambda k: k * w * a, pt.ones(3), return_updates=False),
    "rows": lambda w, a: graphc.scan(lambda r: w * r, pt.stack([a, a]), return_updates=False),
    "state": lambda w, a: graphc.scan(lambda r, h: h * r, pt.stack([a, a]), w, return_updates=False)[-1],
}
PARTS: dict[str, Callable[[Variable, Variable], Variable]] = {
    "sum of rows": lambda x, n: _last_row(lambda row, h: h + row, x)[n : n + 1],
    "trace": lambda x, n: _last_row(lambda row, h: pt.tanh(h) + row, x)[n : n + 1],
    "elementwise": lambda x, n: pt.exp(x[0])[n : n + 1],
    "range": lambda x, n: pt.arange(n - 1) * 1.0,
}


def _last_row(step: Callable[[Variable, Variable], Variable], x: Variable) -> Variable:
    return graphc.scan(step, x, pt.zeros(3), return_updates=False)[-1]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_size_that_is_found_to_be_1_does_not_broadcast(mode: str, part: str) -> None:
    x, v, w = pt.tensor("x", dtype="float64", shape=(None, 3)), pt.dvector("v"), pt.dvector("w")
    narrow = pt.tensor("narrow", dtype="float64", shape=(2,))
    a = PARTS[part](x, v.shape[0])
    names = list(JOINT) if part == "sum of rows" else ["mul", "neutral", "zero"]
    for name in names:
        function = graphc.function(
            [w, x, narrow], JOINT[name](w, a), givens={v: narrow}, mode=mode, on_unused_input="ignore"
        )
        with pytest.raises(ValueError):
            function([100.0, 200.0], np.ones((2, 3)), np.zeros(2))


def _programs(x: Variable) -> list[Variable]:
    """What has to work for arrays without elements, too."""
    e, (m, n) = pt.exp(x), (x.shape[0], x.shape[1])
    options = {"return_updates": False}
    joins = [pt.concatenate([e, x, e], axis=0), pt.stack([e, x], axis=2), pt.pad(e, ((1, 2), (0, 1)))]
    sets = [pt.set_subtensor(pt.ones((m + 2, n + 1))[1:-1, :-1], e), pt.inc_subtensor(e[:, ::2], 1.0)]
    sums = [e.sum(), e.sum(axis=0), pt.prod(e, axis=1), pt.cumsum(e, axis=0), pt.special.softmax(e, axis=1)]
    kernels = [
        pt.sort(e, axis=1),
        pt.linalg.inv(e.T @ e + pt.eye(n)),
        pt.linalg.cholesky(e @ e.T + pt.eye(m)),
    ]
    shapes = [e.reshape((-1,)), e.reshape((n, m)), (e.T * 2)[::-1], pt.repeat(e, 2, axis=0), e @ e.T, e.T @ e]
    step = {"outputs_info": [x], "checkpoint_every": 2, **options}
    loops = [
        graphc.scan(lambda row, h: pt.tanh(h) + row, e, pt.zeros(n), **options),
        graphc.scan(lambda row: pt.sort(row), e, **options),
        graphc.scan(lambda h: pt.tanh(h) * e, n_steps=4, **step)[-1],
    ]
    return [*joins, *sets, *sums, *kernels, *shapes, *loops]


@pytest.mark.parametrize(
    ("known", "shape"), [((0, 2), (0, 2)), ((2, 0), (2, 0)), ((None, 2), (0, 2)), ((0, None), (0, 0))]
)
@pytest.mark.parametrize("mode", MODES)
def test_arrays_without_elements(mode: str, known: tuple[int | None, ...], shape: tuple[int, ...]) -> None:
    x = pt.tensor("x", dtype="float64", shape=known)
    outputs = _programs(x)
    outputs.append(graphc.grad(sum((y**2).sum() for y in outputs), x))
    value = np.zeros(shape)
    compiled = graphc.function([x], outputs, mode=mode)(value)
    expected = graphc.function([x], outputs, mode="reference")(value)
    for number, (got, want) in enumerate(zip(compiled, expected, strict=True)):
        assert got.shape == want.shape, number
        np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("mode", MODES)
def test_sizes_of_0_that_a_target_brings(mode: str) -> None:
    outputs, inputs = [], []
    for known in ((0, 2), (None, 2), (None, None)):
        x = pt.tensor("x", dtype="float64", shape=known)
        states = graphc.scan(
            lambda h: pt.tanh(h) * 2, outputs_info=[x], n_steps=3, checkpoint_every=1, return_updates=False
        )
        target = pt.constant(np.zeros((0, 2)))
        inputs.append(x)
        outputs += [states, graphc.grad(((states - target) ** 2).sum(), x)]
        outputs.append(graphc.grad(((states[-1] - target) ** 2).sum(), x))
    y = pt.tensor("y", dtype="float64", shape=(5, 0))
    p = pt.set_subtensor(y[pt.constant([0, -1])], pt.constant(np.zeros((2, 0))))
    changed = pt.set_subtensor(p[0:5, :], pt.tanh(y)[0:5, :])
    outputs += [changed, graphc.grad((changed**2).sum(), y)]
    values = [np.zeros((0, 2))] * 3 + [np.zeros((5, 0))]
    for got in graphc.function([*inputs, y], outputs, mode=mode)(*values):
        assert got.size == 0


@pytest.mark.parametrize("mode", MODES)
def test_views_whose_sizes_turn_out_to_be_constants(mode: str) -> None:
    x, v = pt.dmatrix("x"), pt.dvector("v")
    _, rows = graphc.scan(
        lambda r, h: [pt.where(r > 0, h, r), h * 2 - r], x, [pt.pad(v, ((0, 5),)), None], return_updates=False
    )
    part = pt.expand_dims(pt.expand_dims(rows, 1), 1)[1:, :, :, :4]
    tall = pt.pad(pt.repeat(part, 3, axis=1), ((0, 0), (0, 0), (0, 2), (0, 0)))
    outputs = [pt.median(tall, axis=(2, 3)), tall.max((2, 3)), pt.sort(tall.reshape((-1, 12)), axis=1)]
    values = [np.random.default_rng(0).normal(size=(3, 5)), np.zeros(0)]
    found = graphc.function([x, v], outputs, mode=mode)(*values)
    for got, want in zip(found, graphc.function([x, v], outputs, mode="reference")(*values), strict=True):
        np.testing.assert_allclose(got, want)


# Of a matrix of unknown sizes.
ROWS: dict[str, Callable[[Variable], Variable]] = {
    "cotangent": lambda x: graphc.pullback(4.0 * pt.sigmoid(x) - 2.0, x, pt.ones_like(x)),
    "part": lambda x: pt.exp(-x) * (4.0 * pt.sigmoid(x))[: x.shape[0]],
    "parts": lambda x: (2 * pt.exp(x))[: x.shape[0], ::-1] + x[0],
    "reduction": lambda x: pt.exp(x - x.max(axis=1, keepdims=True)).sum(axis=0),
    "axes": lambda x: (x + 1).T[None] * 2,
    "join": lambda x: pt.concatenate([x + 1, x * 2], axis=0),
    "product": lambda x: pt.dot(x + 1, (x * 2).T),
    "loop": lambda x: graphc.scan(lambda r, h: h + pt.tanh(r), x + 1, x[0] * 0, return_updates=False),
}


@pytest.mark.parametrize("shape", [(1, 2), (1, 1), (None, 1)])
@pytest.mark.parametrize("mode", [*MODES, "interpret"])
def test_sizes_of_1_that_types_of_results_do_not_know(mode: str, shape: tuple[int | None, ...]) -> None:
    """An input of known sizes is given to a graph that was written without them."""
    x, known = pt.matrix("x"), pt.tensor("known", dtype="float64", shape=shape)
    value = np.full([size or 3 for size in shape], 0.5)
    for write in ROWS.values():
        y = write(x)
        found = graphc.function([known], y, givens={x: known}, rebuild_strict=False, mode=mode)(value)
        np.testing.assert_allclose(found, graphc.function([x], y, mode="reference")(value), rtol=1e-12)


def _padded(x: Variable) -> Variable:
    return pt.pad(x, (0, 2), mode="edge")


# Sizes that no call can have, which those of the inputs tell; k is a number of steps, or chooses a branch.
CONTRADICTIONS: dict[str, Callable[[Variable, Variable], Variable]] = {
    "elementwise": lambda x, k: pt.eq(x, _padded(x)),
    "views": lambda x, k: pt.exp(x)[:, None] * x + _padded(x)[:, None] * _padded(x),
    "sum": lambda x, k: (pt.exp(x) * _padded(x)).sum(),
    "join": lambda x, k: pt.join(1, x[:, None], _padded(x)[:, None]),
    "stack": lambda x, k: pt.stack([x, _padded(x)]),
    "set": lambda x, k: pt.set_subtensor(x[:2], _padded(x)),
    "put": lambda x, k: pt.inc_subtensor(x[pt.arange(x.shape[0] + 1) // 2], _padded(x)),
    "reshape": lambda x, k: pt.reshape(_padded(x), (x.shape[0],)),
    "dot": lambda x, k: pt.dot(x, _padded(x)),
    "solve": lambda x, k: pt.linalg.solve(x[:, None] * x, _padded(x)),
    "branch": lambda x, k: graphc.ifelse(k > 2, (x * _padded(x)).sum(), x.sum()),
    "gradient": lambda x, k: graphc.grad(graphc.ifelse(k > 2, (x * _padded(x)).sum(), x.sum()), x),
    "loop": lambda x, k: graphc.scan(
        lambda a: (x * _padded(x)).sum() + a, pt.arange(k), return_updates=False
    ),
    "state": lambda x, k: graphc.scan(
        lambda a, h: pt.concatenate([h, h]) * a, pt.arange(k), x, return_updates=False
    ),
    "last state": lambda x, k: graphc.scan(
        lambda h: pt.concatenate([h, h]), None, x, n_steps=3, return_updates=False
    )[-1],
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_static_sizes_that_contradict_each_other_are_an_error_of_the_call(mode: str, name: str) -> None:
    """It names the line and the sizes, and comes only where the operation runs."""
    x, k, known = pt.dvector("x"), pt.lscalar("k"), pt.tensor("known", dtype="float64", shape=(2,))
    made = CONTRADICTIONS[name](x, k)
    options = {"givens": {x: known}, "rebuild_strict": False, "on_unused_input": "ignore"}
    function = graphc.function([known, k], made, mode=mode, **options)
    reference = graphc.function([known, k], made, mode="reference", **options)
    with pytest.raises(ValueError):
        reference([1.0, 2.0], 3)
    with pytest.raises(ValueError, match=r"2(.|\n)*4|4(.|\n)*2|3(.|\n)*4") as error:
        function([1.0, 2.0], 3)
    assert "test_sizes_found_late.py" in str(error.value)
    if name in ("branch", "gradient", "loop", "state"):
        np.testing.assert_array_equal(function([1.0, 2.0], 0), reference([1.0, 2.0], 0))


def _checked(x: Variable) -> Variable:
    return graphc.raise_op.CheckAndRaise(ValueError, "not a number")(x, pt.all(pt.eq(x, x)))


# What a state becomes, of a state and rows of two sequences, whose sizes nothing says are one size.
CHOICES: dict[str, Callable[[Variable, Variable, Variable], tuple[Variable, Variable]]] = {
    "check": lambda r, q, h: (_checked(r), h),
    "check of another": lambda r, q, h: (_checked(q), h),
    "work": lambda r, q, h: (q * 2, h * 3),
    "part": lambda r, q, h: (q[: r.shape[0]], h * 3),
    "nested": lambda r, q, h: (graphc.ifelse((q > 1).any(), q, r * h), h * 3),
    "strided": lambda r, q, h: (pt.repeat(q, 2)[::2], h * 3),
    "join": lambda r, q, h: (pt.concatenate([q[:1], h[1:]]), pt.concatenate([h[1:], q[:1]])),
    "zeros": lambda r, q, h: (pt.zeros_like(q) + 1, pt.tanh(h)),
}


@pytest.mark.parametrize(
    ("name", "mode"),
    [*[(name, "interpret") for name in CHOICES], ("check", "fast_run"), ("work", "fast_run")],
)
@pytest.mark.parametrize(("steps", "carries"), [(1, False), (2, False), (2, True)])
def test_sizes_of_states_are_known_when_their_loop_is_unrolled(
    steps: int, carries: bool, name: str, mode: str
) -> None:
    """The loop around it allocates rows of them, also where a condition of each iteration decides."""
    x, y = (pt.tensor(each, dtype="float32", shape=(None, None)) for each in "xy")

    def last(r: Variable, q: Variable, *h: Variable) -> Variable:
        return graphc.scan(
            lambda h: graphc.ifelse((r > 0).all(), *CHOICES[name](r, q, h)),
            outputs_info=[h[0] if h else r * 3],
            n_steps=steps,
            return_updates=False,
        )[-1]

    rows = graphc.scan(last, [x, y], x[0] * 0 if carries else None, return_updates=False)
    outputs = [rows, *graphc.grad((rows**2).sum(), [x, y], disconnected_inputs="ignore")]
    value = np.array([[1, 2], [3, -4], [0.5, 0.25]], "float32")
    found, expected = (
        graphc.function([x, y], outputs, mode=each, on_unused_input="ignore")(value, value * 2 + 1)
        for each in (mode, "reference")
    )
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("mode", ["interpret", "reference"])
@pytest.mark.parametrize("name", CHOICES)
def test_gradients_of_loops_without_iterations_have_the_shapes_of_what_they_are_by(
    name: str, mode: str
) -> None:
    """Also where a condition of each iteration of an inner loop decides between rows."""
    x, y = pt.dmatrix("x"), pt.dmatrix("y")

    def last(r: Variable, q: Variable) -> Variable:
        step = lambda s: graphc.ifelse((r > 0).all(), *CHOICES[name](r, q, s))  # noqa: E731
        return graphc.scan(step, pt.stack([r, q]), return_updates=False)[-1]

    rows = graphc.scan(last, [x, y], return_updates=False)
    slopes = graphc.grad((rows**2).sum(), [x, y], disconnected_inputs="ignore")
    function = graphc.function([x, y], slopes, mode=mode, on_unused_input="ignore")
    assert [g.shape for g in function(np.zeros((0, 2)), np.zeros((0, 2)))] == [(0, 2), (0, 2)]

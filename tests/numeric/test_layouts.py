# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that lie in slices of other arrays and are also operands of calls that take bare pointers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.variable import TensorVariable

MODES = ("fast_run", "fast_compile")
Values = list[TensorVariable]


def _spread(h: TensorVariable) -> TensorVariable:
    """Every other column of a wider array."""
    return pt.set_subtensor(pt.zeros((h.shape[0], 2 * h.shape[1]))[:, ::2], h)


# What makes a value part of a larger array.
JOINS: dict[str, Callable[[TensorVariable], TensorVariable]] = {
    "concatenate": lambda h: pt.concatenate([pt.ones_like(h), h], axis=1),
    "stack": lambda h: pt.stack([h, pt.ones_like(h)], axis=2),
    "pad": lambda h: pt.pad(h, ((1, 1), (2, 1))),
    "slice": _spread,
    "transpose": lambda h: pt.concatenate([h.T, pt.ones_like(h).T], axis=0),
    "block": lambda h: pt.block([[h, pt.ones_like(h)], [pt.ones_like(h), h]]),
}
# What reads it through a pointer; a matrix is dominated by its diagonal.
DIFFERENTIABLE: dict[str, Callable[[TensorVariable], Values]] = {
    "sort": lambda h: [pt.sort(h, axis=1), pt.median(h, axis=0)],
    "cumulative": lambda h: [pt.cumsum(h, axis=1), pt.cumprod(h, axis=0)],
    "cholesky": lambda h: [pt.linalg.cholesky(h)],
    "solve": lambda h: [pt.linalg.solve(h, h[:, :2]), pt.linalg.inv(h)],
    "triangular": lambda h: [pt.linalg.solve_triangular(h, h[0], lower=True)],
    "determinant": lambda h: [pt.linalg.det(h), pt.linalg.slogdet(h)[1]],
    "product": lambda h: [h @ h, h @ h[0]],
    "eigenvalues": lambda h: [pt.linalg.eigh(h)[0], pt.linalg.svd(h)[1]],
    "rearranged": lambda h: [h.reshape((-1,)), pt.repeat(h, 2, axis=1)],
}
OTHERS: dict[str, Callable[[TensorVariable], Values]] = {
    "positions": lambda h: [pt.argmax(h, axis=1), pt.argsort(h, axis=0)],
    "transform": lambda h: [abs(pt.fft.fft(h))],
    "triangle": lambda h: [abs(pt.linalg.qr(h)[1]), pt.linalg.lu(h)[2]],
}
MATRIX = np.log([[5.0, 1.0, 2.0], [1.5, 7.0, 0.5], [0.5, 2.0, 6.0]])


def _matrix(known: bool) -> TensorVariable:
    return pt.tensor("x", dtype="float64", shape=(3, 3) if known else (None, None))


def _check(inputs: Values, outputs: Values, values: list[np.ndarray], mode: str) -> None:
    compiled = graphc.function(inputs, outputs, mode=mode)(*values)
    expected = graphc.function(inputs, outputs, mode="reference")(*values)
    for number, (got, want) in enumerate(zip(compiled, expected, strict=True)):
        np.testing.assert_allclose(got, want, 1e-9, 1e-11, err_msg=f"output {number}")


@pytest.mark.parametrize("known", [False, True], ids=["unknown sizes", "known sizes"])
@pytest.mark.parametrize("mode", MODES)
def test_a_joined_value_is_read_where_it_lies(mode: str, known: bool) -> None:
    x = _matrix(known)
    outputs: Values = []
    readers = list({**DIFFERENTIABLE, **OTHERS}.values())
    for number, join in enumerate(JOINS.values()):
        h = pt.exp(x * (1.0 + 0.01 * number))
        outputs.append(join(h))
        for reader in readers[number % 2 :: 2]:
            outputs += reader(h)
    _check([x], outputs, [MATRIX], mode)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_a_joined_value_and_of_what_reads_it(mode: str) -> None:
    x = _matrix(False)
    h = pt.exp(x)
    cost = (JOINS["concatenate"](h) ** 2).sum() + (JOINS["pad"](h * 2.0) ** 3).sum()
    for reader in DIFFERENTIABLE.values():
        for value in reader(h):
            cost += pt.sin(value).sum()
    gradient = graphc.grad(cost, x)
    _check([x], [gradient, pt.concatenate([pt.sort(gradient, axis=1), gradient], axis=1)], [MATRIX], mode)


# What may be computed where a joined value that is made from it is wanted, and updates of that.
PLACED: dict[str, Callable[[TensorVariable], TensorVariable]] = {
    "running": lambda x: pt.cumsum(pt.cos(x), axis=0),
    "product": lambda x: x @ x,
    "sums": lambda x: (x[:, :, None] * x[:, None, :]).sum(axis=2),
    "updated product": lambda x: pt.inc_subtensor((x @ x)[1], x[0]),
    "updated sums": lambda x: pt.set_subtensor((x[:, :, None] * x[:, None, :]).sum(axis=2)[:, 0], x[0]),
    "updated twice": lambda x: pt.inc_subtensor(pt.inc_subtensor((x @ x)[1], x[0])[0], x[2]),
}


def _joined_pairs(x: TensorVariable) -> Values:
    """Joins of values that are made from two or three others, each of which could be in their place."""
    found: Values = []
    for number, (one, other) in enumerate(permutations(PLACED.values(), 2)):
        a, b = one(x + 0.01 * number), other(x - 0.01 * number)
        value = (a + b) * x if number % 2 else pt.set_subtensor((a * x)[1], pt.sin(b[0])) + b
        found.append(pt.concatenate([pt.tanh(value), value], axis=number % 2))
    return found


@pytest.mark.parametrize(("dtype", "known"), [("float64", False), ("float32", True)])
def test_one_operand_is_computed_in_the_place_of_a_joined_value(dtype: str, known: bool) -> None:
    x = pt.tensor("x", dtype=dtype, shape=(3, 3) if known else (None, None))
    outputs = _joined_pairs(x)
    compiled, expected = (
        graphc.function([x], outputs, mode=m)(MATRIX.astype(dtype)) for m in ("fast_run", "reference")
    )
    for got, want in zip(compiled, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype == "float64" else 1e-4)


def test_one_operand_is_computed_in_the_place_of_a_joined_value_of_loops_and_gradients() -> None:
    x, xs = pt.dmatrix("x"), pt.dtensor3("xs")
    rows = graphc.scan(lambda row: _joined_pairs(row)[1::10], xs, return_updates=False)
    cost = sum(pt.sin(joined).sum() for joined in _joined_pairs(x)[2::8])
    gradient = graphc.grad(cost, x)
    outputs = [*rows, pt.concatenate([pt.tanh(gradient), gradient], axis=1)]
    _check([x, xs], outputs, [0.1 * MATRIX, np.stack([MATRIX, 0.5 * MATRIX])], "fast_run")


@pytest.mark.parametrize("known", [False, True], ids=["unknown sizes", "known sizes"])
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_loops_that_are_joined_and_read(mode: str, known: bool) -> None:
    def step(a: TensorVariable, state: TensorVariable) -> Values:
        h = pt.exp(a)
        found = [pt.sort(h, axis=1), *DIFFERENTIABLE["cholesky"](h), *OTHERS["positions"](h)]
        return [0.5 * pt.sort(state, axis=1) + h, JOINS["concatenate"](h), JOINS["slice"](h), *found]

    x = pt.tensor("x", dtype="float64", shape=(2, 3, 3) if known else (None, None, None))
    sorted_start = pt.sort(x[0], axis=0)
    outputs = graphc.scan(step, x, [sorted_start[:, :3], *[None] * 6], return_updates=False)
    joined = pt.concatenate([outputs[0], x], axis=2)
    _check([x], [joined, *outputs, pt.cumsum(outputs[0], axis=2)], [np.stack([MATRIX, 0.5 * MATRIX])], mode)


@pytest.mark.parametrize("mode", MODES)
def test_parts_of_arrays_are_read_where_they_lie(mode: str) -> None:
    x, k = pt.dmatrix("x"), pt.lscalar("k")
    whole = pt.sort(x, axis=0)
    parts = [whole[:, :k], whole[:, ::2], whole[::-1], whole[:, :k].T, whole[:, :k].reshape((k, -1))]
    outputs = [pt.sort(part, axis=1) for part in parts] + [pt.cumsum(part, axis=1) for part in parts]
    step = {"outputs_info": [whole[:, :k]], "n_steps": k, "return_updates": False}
    outputs.append(graphc.scan(lambda h: pt.sort(h, axis=1) + h, **step)[-1])
    _check([x, k], outputs, [np.random.default_rng(0).normal(size=(4, 6)), 3], mode)


@pytest.mark.parametrize("mode", MODES)
def test_draws_with_joined_states_and_parameters(mode: str) -> None:
    x, rng = pt.dmatrix("x"), pt.random.shared_rng(7)
    mean = pt.exp(x)
    draws = pt.random.normal(mean, 1e-9, size=(3, 3), rng=rng)
    draws = draws[1] if isinstance(draws, (list, tuple)) else draws
    joined, drawn, more = graphc.function(
        [x], [pt.concatenate([mean, draws], axis=1), draws, pt.sort(draws, axis=1)], mode=mode
    )(MATRIX)
    np.testing.assert_allclose(drawn, np.exp(MATRIX), atol=1e-7)
    np.testing.assert_allclose(joined, np.concatenate([np.exp(MATRIX), drawn], axis=1), 1e-14)
    np.testing.assert_array_equal(more, np.sort(drawn, axis=1))


@pytest.mark.parametrize("mode", MODES)
def test_shared_variables_that_are_overwritten_by_what_reads_them(mode: str) -> None:
    start = np.exp(MATRIX)
    for step in (lambda h: pt.sort(h, axis=1), lambda h: pt.cumsum(pt.linalg.inv(h), axis=0)):
        value = graphc.shared(start.copy())
        joined = graphc.function(
            [], pt.concatenate([value, value], axis=1), updates={value: step(value)}, mode=mode
        )()
        want = step(pt.constant(start)).eval(mode="reference")
        np.testing.assert_allclose(value.get_value(), want, 1e-12)
        np.testing.assert_array_equal(joined, np.concatenate([start, start], axis=1))


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_axes_of_size_1_whose_sizes_become_known(mode: str) -> None:
    # A row of a stack with further axes of size 1: which of them it has lost must be certain to upstream.
    x = pt.dmatrix("x")
    state, transposed = graphc.scan(
        lambda a: ([0.6 * a, a.T], graphc.until(a.sum() > 1.5)),
        outputs_info=[x, None],
        n_steps=2,
        checkpoint_every=1,
        return_updates=False,
    )
    gradient = graphc.grad((transposed**2 * pt.constant(np.ones((2, 2, 3)))).sum(), x)
    second = graphc.grad((gradient * gradient * pt.constant(np.ones((3, 2)))).sum(), x)
    _check([x], [state, gradient, second], [np.arange(6.0).reshape(3, 2) / 30], mode)


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_axes_of_size_1(mode: str) -> None:
    shapes = [(1, None), (None, 1), (1, None, None), (None, 1, None)]
    inputs, outputs, values = [], [], []
    for shape in shapes:
        rows = pt.tensor("rows", dtype="float64", shape=(None, *shape))
        traces = graphc.scan(
            lambda row, state: (pt.tanh(state + row), row * state),
            rows,
            [rows[0], None],
            return_updates=False,
        )
        inputs.append(rows)
        outputs += [*traces, graphc.grad((traces[0][-1] * traces[1][-1]).sum(), rows)]
        values.append(np.random.default_rng(1).normal(size=(3, *(size or 2 for size in shape))))
    _check(inputs, outputs, values, mode)


# The same memory under another name.
RENAMES: dict[str, Callable[[TensorVariable], TensorVariable]] = {
    "sizes": lambda v: pt.specify_shape(v, (4,)),
    "shape": lambda v: pt.specify_shape(v.reshape((2, 2)), (2, 2)),
    "axes": lambda v: v.reshape((2, 2)).T,
    "choice": lambda v: graphc.ifelse(v[0] > 0, v, pt.tanh(v)),
    "loop": lambda v: graphc.scan(
        lambda h: h * 2, outputs_info=pt.specify_shape(v, (4,)), n_steps=20, return_updates=False
    )[-1],
}


@pytest.mark.parametrize("mode", MODES)
def test_an_update_leaves_what_others_read(mode: str) -> None:
    """Whatever the value is called where it is updated: each has been put into a join before."""
    x, y = pt.dvectors("x", "y")
    outputs: Values = []
    for number, rename in enumerate(RENAMES.values()):
        v, w = pt.exp(x) + number, pt.exp(x) - number
        outputs += [pt.concatenate([v, v]), pt.inc_subtensor(rename(v)[np.array([0, 1])], y[0])]
        outputs += [pt.stack([w, y], axis=1), pt.set_subtensor(rename(w)[1:], y[0])]
    _check([x, y], outputs, [np.arange(1.0, 5.0), np.ones(4)], mode)

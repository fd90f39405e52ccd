# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes with loops that were found once: each test is about the smallest program that showed one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

MODES = ["fast_run", "fast_compile", "reference"]


def rows(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize(
    ("mode", "every"), [*(("fast_run", n) for n in (1, 2, 3, 7)), *((m, 2) for m in MODES[1:])]
)
def test_gradient_by_checkpoints_of_a_state_with_two_taps(mode: str, every: int) -> None:
    """Sizes that were first asked for in a body had no name."""
    x, h, w = pt.dmatrix("x"), pt.dmatrix("h"), pt.dmatrix("w")

    def gradient(**options: Any) -> Any:
        hs = graphc.scan(
            lambda x_t, h2, h1: pt.tanh(w @ h2 + x_t * h1),
            x,
            {"initial": h, "taps": [-2, -1]},
            **options,
            return_updates=False,
        )
        return graphc.grad((hs**2).sum(), [x, h, w])

    function = graphc.function([x, h, w], gradient(checkpoint_every=every), mode=mode)
    plain = graphc.function([x, h, w], gradient(), mode="reference")
    for n in (0, 1, 5):
        arguments = rows(n, 3), rows(2, 3), rows(3, 3)
        for got, expected in zip(function(*arguments), plain(*arguments), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_second_derivative_of_a_tensordot_with_a_state(mode: str) -> None:
    x, h = pt.dtensor3("x"), pt.dmatrix("h")
    hs = graphc.scan(
        lambda x_t, h: pt.tensordot(h, x_t, [[0, 1], [0, 1]]) * h * 0.1, x, h, return_updates=False
    )
    first = graphc.grad((hs**2).sum(), [x, h])
    second = graphc.grad(sum((g**2).sum() for g in first), [x, h])
    arguments = rows(4, 2, 3), rows(2, 3)
    expected = graphc.function([x, h], second, mode="reference")(*arguments)
    for got, want in zip(graphc.function([x, h], second, mode=mode)(*arguments), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_windows_of_a_sequence(mode: str) -> None:
    """Rows whose size is computed from a row of a sequence."""
    x, k = pt.dvector("x"), pt.lscalar("k")
    windows = graphc.scan(lambda i: x[i : i + k], pt.arange(x.shape[0] - k + 1), return_updates=False)
    outputs = [windows, windows[-1], graphc.grad((windows**3).sum(), x)]
    function = graphc.function([x, k], outputs, mode=mode)
    for n, width in ((9, 3), (3, 2), (4, 4)):
        data = rows(n)
        stacked = np.lib.stride_tricks.sliding_window_view(data, width)
        gradient = np.zeros(n)
        for start, row in enumerate(stacked):
            gradient[start : start + width] += 3 * row**2
        for got, want in zip(function(data, width), [stacked, stacked[-1], gradient], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("go_backwards", [False, True])
def test_rows_that_get_another_size(mode: str, go_backwards: bool) -> None:
    x, sizes = pt.dvector("x"), pt.lvector("sizes")
    parts = graphc.scan(lambda k: x[:k], sizes, go_backwards=go_backwards, return_updates=False)
    function = graphc.function([x, sizes], parts, mode=mode)
    data = rows(5)
    np.testing.assert_array_equal(function(data, [2, 2, 2]), [data[:2]] * 3)
    np.testing.assert_array_equal(function(data, [9]), [data])
    assert len(function(data, np.zeros(0, "int64"))) == 0
    for wrong in ([2, 3, 2], [2, 2, 3], [3, 2, 2]):
        with pytest.raises(ValueError, match="output 'out0' of scan"):
            function(data, wrong)


@pytest.mark.parametrize("mode", MODES)
def test_rows_sized_by_a_state_an_inner_loop_and_a_condition(mode: str) -> None:
    x, n = pt.dmatrix("x"), pt.lvector("n")

    def powers(row: Any, steps: Any) -> Any:
        return graphc.scan(lambda h: h * 2, outputs_info=row, n_steps=steps, return_updates=False)

    def until_large(row: Any) -> Any:
        return graphc.scan(
            lambda h: (h * 2, graphc.until(h.sum() > 4)), outputs_info=row, n_steps=10, return_updates=False
        )

    traces = graphc.scan(powers, [x, n], return_updates=False)
    searches = graphc.scan(until_large, x, return_updates=False)
    _, parts = graphc.scan(lambda row, k: [k + 0, row[:k]], x, [pt.as_tensor(2), None], return_updates=False)
    reverse = graphc.loop(lambda c, r: (c, r[: pt.switch(c > 0, 2, 3)]), pt.as_tensor(1), x, reverse=True)[1]
    function = graphc.function([x, n], [traces, searches, parts, reverse], mode=mode)
    data = np.ones((3, 4))
    got = function(data, [2, 2, 2])
    np.testing.assert_array_equal(got[0], np.array([2.0, 4.0])[None, :, None] * np.ones((3, 1, 4)))
    np.testing.assert_array_equal(got[1], np.array([2.0, 4.0])[None, :, None] * np.ones((3, 1, 4)))
    np.testing.assert_array_equal(got[2], data[:, :2])
    np.testing.assert_array_equal(got[3], data[:, :2])


@pytest.mark.parametrize("mode", MODES)
def test_initial_row_that_is_a_view_of_a_row(mode: str) -> None:
    """An axis of size 1 was dropped and another one put in its place: not a row with a new axis."""
    x, s = pt.tensor("x", dtype="float64", shape=(None, 3)), pt.dscalar("s")

    def largest(row: Any, start: Any, **options: Any) -> Any:
        return graphc.scan(lambda a, h: pt.maximum(h, a), row, start, **options, return_updates=False)

    found = graphc.scan(
        lambda row: largest(row, largest(row, s, go_backwards=True)[-1]), x, return_updates=False
    )
    function = graphc.function([x, s], found, mode=mode)
    data = rows(4, 3)
    np.testing.assert_array_equal(function(data, 0.1), np.maximum(data.max(1), 0.1)[:, None] + np.zeros(3))


@pytest.mark.parametrize("mode", MODES)
def test_a_long_chain_of_loops(mode: str) -> None:
    """Each length is the last one's, clipped: paths through these sizes doubled with each loop, four million
    here, and compiling did not end.
    """
    x = pt.dvector("x")
    hs: Any = x
    for i in range(22):
        hs = graphc.scan(
            lambda a, h: h * 0.5 + a, hs, np.float64(0.0), go_backwards=i % 3 == 1, return_updates=False
        )
    function = graphc.function([x], graphc.grad(hs.sum(), x), mode=mode)
    ones = np.eye(4)
    for i in range(22):
        ordered = ones[::-1] if i % 3 == 1 else ones
        total, state = [], np.zeros(4)
        for row in ordered:
            state = state * 0.5 + row
            total.append(state)
        ones = np.array(total)
    np.testing.assert_allclose(function(rows(4)), ones.sum(axis=0), rtol=1e-9)


def test_what_a_body_assumes_is_not_remembered_after_it() -> None:
    """A size outside of a body was named by a value of the body, which does not dominate it."""
    from graphc.ir.dims import DimKeys
    from graphc.ir.walk import walk
    from graphc_dialects._mlir import ir
    from graphc_dialects.dialect import new_context

    text = """
    func.func @main(%x: tensor<?xf64>, %i: index) -> tensor<?xf64> {
      %y = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
      %c0 = arith.constant 0 : index
      %n = tensor.dim %y, %c0 : tensor<?xf64>
      return %y : tensor<?xf64>
    }
    """
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        operations = walk(module.operation)
        keys = DimKeys({result: op for op in operations for result in op.results})
        y, n = (op.results[0] for op in operations if op.name in ("graphc.exp", "tensor.dim"))
        x, inside = y.owner.operands[0], ("index", "a value of the body")
        keys.enter()
        keys.assume_equal(("dim", x, 0), inside)
        assert keys.shape(y) == [inside]
        assert keys.size(n) == inside
        keys.leave()
        assert keys.shape(y) == keys.shape(x) == [("dim", x, 0)]
        assert keys.size(n) == ("dim", x, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read", [lambda rows: rows, lambda rows: rows[::-1], lambda rows: rows[-1]])
def test_rows_of_either_side_with_checks(mode: str, read: Any) -> None:
    """The size of a row is known outside, where both sides have it by a check and the condition changes."""
    x, h = pt.dmatrix("x"), pt.dvector("h")

    def step(row: Any, other: Any) -> Any:
        checked = graphc.raise_op.CheckAndRaise(ValueError, "too large")(row, pt.all(other < 9))
        return graphc.ifelse((row > 0).all(), checked * 2, other + row)

    rows_made = graphc.scan(step, sequences=[x], non_sequences=[h], return_updates=False)
    f = graphc.function([x, h], read(rows_made), mode=mode)
    data, other = np.array([[1.0, 2.0], [-1.0, 2.0], [3.0, 0.5]]), np.array([1.0, 3.0])
    expected = [row * 2 if (row > 0).all() else other + row for row in data]
    np.testing.assert_array_equal(f(data, other), read(np.array(expected)))
    with pytest.raises(ValueError):
        f(data, np.array([1.0, 10.0]))


@pytest.mark.parametrize(("size", "dtype"), [(3, "float32"), (5, "float64"), (16, "float32")])
def test_rows_of_few_elements(size: int, dtype: str) -> None:
    """They are one vector, whose lanes are what single elements are, and so are gradients."""

    def step(x: Any, h: Any, c: Any) -> Any:
        a = pt.tanh(h + x) + pt.sin(h) * c[0] + pt.exp(-abs(x))
        b = pt.log1p(abs(a)) + pt.erf(x) * pt.sigmoid(a) + pt.sqrt(abs(h)) - pt.expm1(x / 8)
        chosen = pt.switch((b > 0) & (pt.floor(4 * x) % 2 > 0), b, pt.arctan(a) + pt.cos(b))
        count = (4 * abs(b)).astype("int8")
        return (chosen + pt.clip(x, -0.5, pt.maximum(h, 0.5)) / (1 + count)).astype(dtype)

    def made(*columns: int) -> Any:
        x, c = pt.TensorType(dtype, (None, *columns))("x"), pt.vector("c", dtype=dtype)
        h = graphc.scan(step, [x], [pt.zeros(columns, dtype)], [c], return_updates=False)
        return graphc.function([x, c], [h, graphc.grad(h[-1].sum(), x)])

    data, c = (3 * rows(6, size)).astype(dtype), np.array([0.7, 9.0], dtype)
    alone = made()
    singly = [np.stack(v, 1) for v in zip(*(alone(column, c) for column in data.T.copy()), strict=True)]
    found = made(size)(data, c)
    np.testing.assert_array_equal(found[0], singly[0])
    np.testing.assert_allclose(found[1], singly[1], rtol=8 * np.finfo(dtype).eps, atol=1e-9)


@pytest.mark.parametrize(("size", "dtype"), [(2, "float64"), (7, "float32"), (16, "float16")])
def test_few_elements_and_their_sum(size: int, dtype: str) -> None:
    """A row and its sum, which is in the order of a vector, and whose terms are what the next loop reads."""

    def step(x: Any, h: Any) -> Any:
        h = h + abs(x)
        return h / h.sum(), h.sum()

    x = pt.TensorType(dtype, (None, size))("x")
    found = graphc.function([x], graphc.scan(step, [x], [pt.zeros(size, dtype), None], return_updates=False))
    data = rows(6, size).astype(dtype)
    h = np.zeros(size)
    for row, made, total in zip(data, *found(data), strict=True):
        h = h + abs(row.astype("float64"))
        np.testing.assert_allclose(total, h.sum(), rtol=8 * np.finfo(dtype).eps)
        np.testing.assert_allclose(made, h / h.sum(), rtol=16 * np.finfo(dtype).eps)
        h = h / h.sum()


@pytest.mark.parametrize("form", ["index", "reshape", "size", "transpose"])
@pytest.mark.parametrize("mode", MODES)
def test_where_one_position_that_is_all_is_equal(form: str, mode: str) -> None:
    """The axis along which positions are compared was looked for in a view that drops it."""
    v, w = pt.dvector("v"), pt.vector("w", shape=(1,))
    conditions = {
        "index": lambda t: pt.eq(pt.arange(1), t)[0],
        "reshape": lambda t: pt.eq(pt.arange(1), t).reshape(()),
        "size": lambda t: pt.eq(pt.arange(w.shape[0]).reshape(()), t),
        "transpose": lambda t: pt.eq(pt.arange(1)[None], t)[0],
    }

    def step(t: Any, b: Any) -> Any:
        return pt.where(conditions[form](t), 2 * b + 1, b)

    found = graphc.scan(step, [pt.arange(3)], [v], return_updates=False)[-1]
    f = graphc.function([v, w], [found, graphc.grad(found.sum(), v)], mode=mode, on_unused_input="ignore")
    last, slope = f(np.arange(40.0), [1.0])
    np.testing.assert_array_equal(last, 2 * np.arange(40.0) + 1)
    np.testing.assert_array_equal(slope, np.full(40, 2.0))

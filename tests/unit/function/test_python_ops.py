# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops made of Python functions, `Print`, `Assert`: in graphs, loops, gradients, and in every mode."""

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.compile.ops import as_op
from graphc.gradient import verify_grad
from graphc.printing import Print
from graphc.raise_op import Assert, CheckAndRaise, assert_op


@as_op(itypes=[pt.dvector], otypes=[pt.dvector])
def cumulated(x):
    return np.cumsum(x)


@as_op([pt.dvector, pt.dscalar], [pt.dvector, pt.dscalar])
def scaled(x, a):
    return x * a, float(x.sum())


def soft(x):
    return np.log1p(np.exp(x))


# Both kinds of derivative: as a graph, and as arrays.
with_graph = graphc.wrap_py(
    soft,
    [pt.dvector],
    [pt.dvector],
    gradient=lambda inputs, outputs, g: [g[0] * pt.sigmoid(inputs[0])],
)
with_arrays = graphc.wrap_py(soft, [pt.dvector], [pt.dvector], vjp=lambda x, g: g / (1 + np.exp(-x)))


def test_as_op_in_a_graph(mode):
    x, a = pt.dvector("x"), pt.dscalar("a")
    y, total = scaled(cumulated(x * 2), a + 1)
    f = graphc.function([x, a], [y - 1, total], mode=mode)
    values = np.array([1.0, -2.0, 3.0])
    got = f(values, 2.0)
    np.testing.assert_allclose(got[0], np.cumsum(values * 2) * 3 - 1)
    np.testing.assert_allclose(got[1], np.cumsum(values * 2).sum())
    if mode == "fast_run":
        assert [fallback.reason for fallback in f.report.fallbacks] == ["it calls a Python function"] * 2


@pytest.mark.parametrize("op", [with_graph, with_arrays], ids=["graph", "arrays"])
def test_gradients(op, mode):
    x = pt.dvector("x")
    f = graphc.function([x], graphc.grad((op(x * 2) ** 2).sum(), x), mode=mode)
    values = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(f(values), 4 * soft(2 * values) / (1 + np.exp(-2 * values)))
    if mode == "fast_run":
        verify_grad(lambda x: (op(x) * 3).sum(), [values])


def test_in_loops_and_their_gradients(mode):
    x = pt.dvector("x")
    ys = graphc.scan(lambda y: with_arrays(y) - 0.5, outputs_info=x, n_steps=3, return_updates=False)
    f = graphc.function([x], [ys, graphc.grad(ys[-1].sum(), x)], mode=mode)
    values = np.array([0.5, -0.5])
    got, slope = f(values)
    y, product = values, np.ones(2)
    for row in got:
        product = product / (1 + np.exp(-y))
        y = soft(y) - 0.5
        np.testing.assert_allclose(row, y)
    np.testing.assert_allclose(slope, product)


def test_without_a_gradient_it_says_so():
    x = pt.dvector("x")
    with pytest.raises(graphc.errors.UndefinedGradientError, match=r"cumulated.*no gradient"):
        graphc.grad(cumulated(x).sum(), x)


def test_types_are_found_by_a_call():
    op = graphc.wrap_py(lambda x, w: (x @ w, 3), [pt.fmatrix, pt.fvector], example_shapes=[(2, 3), (3,)])
    assert [t.dtype for t in op.otypes] == ["float32", "int64"]
    assert [t.ndim for t in op.otypes] == [1, 0]
    with pytest.raises(TypeError, match=r"give otypes=, or itypes= and example_shapes="):
        graphc.wrap_py(soft)
    with pytest.raises(TypeError, match=r"example_shapes\[0\] .* got \(2,\)"):
        graphc.wrap_py(soft, [pt.dmatrix], example_shapes=[(2,)])


def test_tensors_of_any_type():
    op = graphc.wrap_py(lambda *xs: sum(x.sum() for x in xs), otypes=pt.dscalar)
    x, n = pt.fvector("x"), pt.lmatrix("n")
    f = graphc.function([x, n], op(x, n, 2.0), mode="reference")
    assert f(np.ones(3, "float32"), np.ones((2, 2), "int64")) == 9


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.astype("float32"), r"dtype float32 and shape \(3,\)"),
        (lambda x: x[None], r"dtype float64 and shape \(1, 3\)"),
        (lambda x: (x, x), "must return 1 values.* returned 2"),
    ],
)
def test_wrong_results(function, message, mode):
    x = pt.dvector("x")
    f = graphc.function([x], graphc.wrap_py(function, [pt.dvector], [pt.dvector], name="bad")(x), mode=mode)
    with pytest.raises((TypeError, ValueError), match=f"(?s)bad .*{message}.*test_python_ops.py"):
        f(np.ones(3))


def test_wrong_declarations():
    with pytest.raises(TypeError, match=r"itypes: expected a type.*'float64'"):
        as_op(["float64"], [pt.dscalar])
    with pytest.raises(TypeError, match=r"either gradient= .* or vjp="):
        graphc.wrap_py(soft, otypes=pt.dvector, gradient=soft, vjp=soft)
    with pytest.raises(ValueError, match="takes 1 inputs, got 2"):
        cumulated(pt.dvector(), pt.dvector())


def test_ops_pickle():
    assert pickle.loads(pickle.dumps(cumulated)) is cumulated
    x = pt.dvector("x")
    f = pickle.loads(pickle.dumps(graphc.function([x], cumulated(x) + 1)))
    np.testing.assert_allclose(f([1.0, 2.0]), [2, 4])


def test_equal_functions_make_equal_ops():
    assert graphc.wrap_py(soft, [pt.dvector], [pt.dvector]) == graphc.wrap_py(
        soft, [pt.dvector], [pt.dvector]
    )
    assert graphc.wrap_py(soft, [pt.dvector], [pt.dvector]) != with_arrays


def test_print(mode, capsys):
    x = pt.dvector("x")
    y = Print("x is", attrs=("__str__", "shape", "sum"))(x * 2)
    f = graphc.function([x], [y + 1, graphc.grad((y**2).sum(), x)], mode=mode)
    results = f([1.0, 2.0])
    np.testing.assert_allclose(results[0], [3, 5])
    np.testing.assert_allclose(results[1], [8, 16])
    shown = "x is __str__ = [2. 4.]\nx is shape = (2,)\nx is sum = 6.0\n"
    assert capsys.readouterr().out == shown * (2 if mode == "debug" else 1)
    if mode == "fast_run":
        assert "runs in Python: Print{'x is'} (it prints, which only Python can)" in str(f.report)


def test_print_in_a_loop(capsys):
    values = []
    show = Print("state", global_fn=lambda op, value: values.append((op.message, float(value))))
    ys = graphc.scan(lambda y: show(y * 2), outputs_info=pt.constant(1.0), n_steps=3, return_updates=False)
    graphc.function([], ys)()
    assert values == [("state", 2.0), ("state", 4.0), ("state", 8.0)]


def test_assert(mode):
    x, n = pt.dvector("x"), pt.lscalar("n")
    y = Assert("x must be positive")(x, x > 0, n)
    f = graphc.function([x, n], [pt.log(y), graphc.grad(pt.log(y).sum(), x)], mode=mode)
    np.testing.assert_allclose(f([1.0, 2.0], 1)[1], [1, 0.5])
    for values, count in (([1.0, -2.0], 1), ([1.0, 2.0], 0)):
        with pytest.raises(AssertionError, match=r"(?s)x must be positive.*test_python_ops.py:\d+"):
            f(values, count)
    if mode == "fast_run":
        assert not f.report.fallbacks
    assert str(y.owner.op) == "Assert{msg='x must be positive'}" and str(assert_op).startswith("Assert")


class Unknown(Exception):
    pass


class Special(np.linalg.LinAlgError):
    pass


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, OverflowError, KeyError, Unknown, Special])
def test_check_and_raise(error, mode):
    x = pt.dvector("x")
    check = CheckAndRaise(error, "sum is {given}, must be small")
    f = graphc.function([x], check(x, x.sum() < 10) * 2, mode=mode)
    np.testing.assert_allclose(f([1.0, 2.0]), [2, 4])
    with pytest.raises(error, match=r"sum is \{ ?given\}, must be small") as raised:
        f([10.0])
    assert type(raised.value) is error
    if mode == "fast_run":
        assert not f.report.fallbacks
    with pytest.raises(ValueError, match="must be a class of exceptions"):
        CheckAndRaise("ValueError", "no class")


def test_assert_in_a_loop(mode):
    x = pt.dscalar("x")
    ys = graphc.scan(
        lambda y: Assert("too large")(y * 2, y < 100), outputs_info=x, n_steps=5, return_updates=False
    )
    f = graphc.function([x], ys[-1], mode=mode)
    assert f(1.0) == 32
    with pytest.raises(AssertionError, match="too large"):
        f(50.0)


def test_names_where_users_look():
    import graphc.compile.ops
    import graphc.printing
    import graphc.raise_op

    assert graphc.as_op is graphc.compile.as_op is graphc.compile.ops.as_op
    assert graphc.wrap_py is graphc.compile.wrap_py
    assert graphc.printing.debugprint is graphc.debugprint

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``graphc.jit``: what is compiled for which arguments, and what comes back."""

import copy
from dataclasses import dataclass

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.immediate import jit


@dataclass
class Line:
    slope: object
    start: object


@graphc.jit
def fitted(line, x, rate=0.1):
    """Part of a step of a fit."""
    loss = ((line.slope * np.sin(x) + line.start) ** 2).mean()
    value, slopes = graphc.value_and_grad(loss, line)
    return {"loss": value, "line": Line(line.slope - rate * slopes.slope, line.start - rate * slopes.start)}


def add(x, y):
    return x + y


def test_results_are_arrays_in_containers():
    x = np.array([0.5, 1.0])
    found = fitted(Line(np.array(2.0), 1.0), x)
    wanted = 2 * np.sin(x) + 1
    np.testing.assert_allclose(found["loss"], (wanted**2).mean())
    np.testing.assert_allclose(found["line"].start, 1.0 - 0.2 * wanted.mean())
    assert type(found["line"].slope) is np.ndarray and fitted.__doc__ == "Part of a step of a fit."


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_compiled_by_dtypes_ranks_and_ones(mode):
    f = graphc.jit(add, mode=mode)
    values = [
        np.ones(3),
        np.ones(4),
        np.ones((2, 3)),
        np.ones(1),
        np.ones(3, "float32"),
        np.ones((1, 3)),
        2,
        True,
        1j,
    ]
    for value in values:
        for other in (np.arange(3.0), 2.0):
            if np.shape(value) == (4,) and np.ndim(other):
                continue
            found = f(value, other)
            np.testing.assert_array_equal(found, value + other)
            if np.ndim(value):  # NumPy's numbers have no dtype of their own
                assert found.dtype == np.asarray(value + other).dtype
    count = len(f.functions)
    f(np.ones(7), 2.0), f(y=2.0, x=np.zeros((5, 5)))
    assert len(f.functions) == count and all(g.report.mode == mode for g in f.functions)
    assert f.compiled(np.ones(9), 2.0) in f.functions


def test_python_floats_give_way():
    f = graphc.jit(add)
    assert f(np.ones(2, "float32"), 0.5).dtype == np.float32
    assert f(np.ones(2, "int8"), 0.5).dtype == np.float64
    assert f({"a": 1}["a"], 0.5).dtype == np.float64


def test_static_arguments():
    @graphc.jit(static_argnums=-1, static_argnames="kind")
    def power(x, kind, n=2):
        for _ in range(n - 1):
            x = x * x if kind == "square" else x + x
        return x

    assert power(3.0, "square") == 9.0 and power(3.0, kind="twice") == 6.0 and power(2.0, "square", 3) == 16.0
    assert len(power.functions) == 3
    power(5.0, n=2, kind="square")
    assert len(power.functions) == 3


def test_static_shapes():
    @graphc.jit(static_shapes=True)
    def total(x):
        return sum(row.sum() for row in x) / x.type.shape[0]

    assert total(np.ones((2, 3))) == 3.0 and total(np.ones((4, 3))) == 3.0 and len(total.functions) == 2


def test_inside_a_graph_and_another():
    inner = graphc.jit(add)
    outer = graphc.jit(lambda x: inner(x, x) * 2)
    x = pt.vector("x")
    np.testing.assert_array_equal(graphc.function([x], inner(x, 1.0))([2.0]), [3.0])
    np.testing.assert_array_equal(outer(np.ones(2)), [4.0, 4.0])
    assert inner.functions == []


def test_shared_variables_are_read_and_updated():
    count = graphc.shared(0.0, name="count")
    weights = graphc.shared(np.ones(2))

    @graphc.jit
    def f(x):
        return graphc.scan(lambda v: (v * count, {count: count + 1}), x) + weights[0]

    np.testing.assert_array_equal(f(np.ones(3)), [1, 2, 3])
    weights.set_value(np.zeros(2))
    np.testing.assert_array_equal(f(np.ones(3)), [3, 4, 5])
    assert count.get_value() == 6.0


def test_other_arrays():
    f, env = graphc.jit(add), graphc.immediate.Environment()
    swapped = np.ones(2, np.dtype("float64").newbyteorder())
    for value in (
        env.as_tensor([1.0, 1.0]),
        swapped,
        np.ones(4)[::2],
        np.float64(1.0),
        np.ones(2).view(np.matrix),
    ):
        np.testing.assert_array_equal(np.ravel(f(value, 1.0)), np.full(np.size(value), 2.0))
    assert len(f.functions) <= 4


def test_methods_and_variable_arguments():
    class Scaled:
        factor = 3.0

        @graphc.jit(static_argnames="self")
        def call(self, *xs, **more):
            return sum(xs, more["y"]) * self.factor

    assert Scaled().call(1.0, 2.0, y=3.0) == 18.0


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: graphc.jit(add)("a", 1.0), r"the argument x is 'a' of type str.*static_argnames=\['x'\]"),
        (lambda: graphc.jit(add)({"k": "a"}, 1.0), r"the argument x\['k'\] is 'a'.*static_argnames=\['x'\]"),
        (lambda: graphc.jit(add)(np.array([None]), 1.0), "arguments are arrays and numbers"),
        (lambda: graphc.jit(add)(1.0), "missing a required argument: 'y'"),
        (lambda: graphc.jit(3), r"got 3 of type int; a graph is compiled by graphc.function"),
        (lambda: graphc.jit(add, static_argnames="z"), "has 'z', and the parameters of add are x, y"),
        (lambda: graphc.jit(add, static_argnums=2), r"has 2, and add\(x, y\) has 2 parameters"),
        (lambda: graphc.jit(add, static_argnames="x")({1.0: {}}.keys(), 1.0), "cannot be part of a key"),
        (lambda: graphc.jit(lambda x: x if x > 0 else -x)(1.0), "cannot be a condition"),
        (lambda: graphc.jit(lambda x: "a")(1.0), "outputs of the function must be a variable, got 'a'"),
        (lambda: fitted(Line([np.ones(2)], "b"), 1.0), r"line.start is 'b'"),
    ],
)
def test_mistakes(wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


def test_a_copy_is_independent():
    f = graphc.jit(add)
    assert copy.copy(f)(1.0, 2.0) == 3.0 and "add" in repr(f)


def test_a_call_with_arrays_is_not_taken_apart_again(monkeypatch):
    """But for new sizes; there is a bound on how many are kept."""
    taken = []
    call = jit._Call
    monkeypatch.setattr(jit, "_Call", lambda *args: taken.append(args) or call(*args))
    monkeypatch.setattr(jit, "_MOST_SIZES", 3)

    @graphc.jit
    def f(x, y=2.0):
        return x * y

    for n in (4, 4, 4, 5, 4, 5):
        np.testing.assert_array_equal(f(np.arange(n), np.ones(n)), np.arange(n))
    assert len(taken) == 2 and len(f.functions) == 1
    np.testing.assert_array_equal(f(np.ones(4, "f4"), np.ones(4)), np.ones(4))  # another dtype, as before
    assert len(taken) == 3 and len(f.functions) == 2
    for _ in range(2):  # keywords, defaults, lists and numbers are taken apart each time
        f(x=np.ones(4), y=np.ones(4)), f(np.ones(4)), f([1.0, 2.0], np.ones(2)), f(np.ones(4), 3.0)
    assert len(taken) == 11
    with graphc.config.change_flags(floatX="float32"):
        f(np.arange(4), np.ones(4))
    assert len(taken) == 12
    for n in range(6, 20):
        f(np.arange(n), np.ones(n))
    assert len(f._exact) <= 3
    assert f(np.ones(4), np.ones(4)[::2].repeat(2)).tolist() == [1.0] * 4

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ifelse`: what it builds, computes, and refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import Apply, Op, Type, ifelse
from graphc.errors import VectorizeError
from graphc.graph.tensor.type import TensorType
from graphc.ops.batching import batch_graph
from graphc.ops.ifelse import IfElse, select
from graphc.transforms.vectorize import vectorize_graph

MODES = ("fast_run", "fast_compile", "reference", "debug")


class Count(Op):
    """Adds one, and counts how often it does."""

    __props__ = ()
    runs = 0

    def make_node(self, x: Any) -> Apply:  # type: ignore[override]
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        Count.runs += 1
        output_storage[0][0] = np.asarray(inputs[0] + 1)


def runs_of(function: Any, *values: Any) -> int:
    Count.runs = 0
    function(*values)
    return Count.runs


def run(inputs: list[Any], outputs: Any, *values: Any) -> Any:
    return graphc.function(inputs, outputs, mode="reference")(*values)


X, S = pt.dvector("x"), pt.dscalar("s")
COND = pt.scalar("c", dtype="bool")


@pytest.mark.parametrize("mode", MODES)
def test_values(mode):
    matrix = pt.matrix("m", dtype="float32")
    n = pt.iscalar("n")
    outputs = [
        ifelse(S > 0, X * 2, X[:1]),
        ifelse(n, matrix, 1.5 * matrix.T),
        ifelse(S, n, 2.5),
        *ifelse(COND, [X.sum(), X > 0], [S, X < 0]),
        ifelse(COND, X, pt.exp(X)),
        ifelse(pt.neq(n, 3), COND, S > 1),
    ]
    f = graphc.function([X, S, COND, matrix, n], outputs, mode=mode)
    x, m = np.array([1.0, -2.0, 3.0]), np.arange(6, dtype="float32").reshape(2, 3)
    for s, c, k in ((0.5, True, 0), (-1.0, False, 3), (0.0, True, -1), (float("nan"), False, 1)):
        got = f(x, s, c, m, k)
        expected = [
            x * 2 if s > 0 else x[:1],
            m if k else np.float32(1.5) * m.T,
            np.float64(k) if s != 0 else np.float64(2.5),
            x.sum() if c else np.float64(s),
            x > 0 if c else x < 0,
            x if c else np.exp(x),
            c if k != 3 else s > 1,
        ]
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b)
            assert a.dtype == np.asarray(b).dtype and a.shape == np.shape(b)


@pytest.mark.parametrize("layout", ["strided", "reversed", "read-only", "empty", "one"])
def test_layouts(layout):
    base = np.arange(6.0)
    x = {
        "strided": base[::2],
        "reversed": base[::-1],
        "read-only": base,
        "empty": base[:0],
        "one": base[:1],
    }[layout]
    if layout == "read-only":
        x.flags.writeable = False
    outputs = [ifelse(COND, X, -X), ifelse(COND, X[::-1], X + 1)]
    f = graphc.function([X, COND], outputs)
    for c in (True, False):
        first, second = f(x, c)
        np.testing.assert_array_equal(first, x if c else -x)
        np.testing.assert_array_equal(second, x[::-1] if c else x + 1)
        assert not np.shares_memory(first, x) and not np.shares_memory(second, x)


def test_dtypes_are_those_of_switch():
    dtypes = ("bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64")
    for a in dtypes:
        for b in dtypes:
            x, y = pt.vector("x", dtype=a), pt.vector("y", dtype=b)
            assert ifelse(COND, x, y).type.dtype == pt.switch(COND, x, y).type.dtype
    x = pt.vector("x", dtype="float32")
    assert ifelse(COND, x.sum(), 1).type.dtype == "float32"
    assert ifelse(COND, 1, 2.5).type.dtype == "float64"
    assert ifelse(COND, 1, 2).type.dtype == "int64"


def test_static_shapes_are_merged():
    a, b = pt.tensor("a", shape=(2, None, 3)), pt.tensor("b", shape=(2, 5, 4))
    assert ifelse(COND, a, b).type.shape == (2, None, None)
    assert ifelse(COND, a, a + 1).type == a.type


def test_containers():
    assert isinstance(ifelse(COND, [X, S], [X, S]), list)
    assert isinstance(ifelse(COND, (X, S), [X, S]), tuple)
    assert len(ifelse(COND, [X], [X + 1])) == 1
    nested = ifelse(COND, {"a": X, "b": (S, X)}, {"a": -X, "b": (S + 1, X)})
    assert nested["b"][0].owner is nested["a"].owner and nested["a"].owner.op == IfElse(3)
    assert ifelse(COND, [], []) == []


def test_names():
    assert ifelse(COND, X, -X, name="y").name == "y"
    assert [v.name for v in ifelse(COND, [X, S], [X, S], name="y")] == ["y_0", "y_1"]
    named = ifelse(COND, X, -X, name="y")
    text = graphc.dprint(named, file="str")
    assert text.startswith("IfElse[y] [id A]") and " ├─ c" in text
    assert str(IfElse(2)) == "IfElse{2}" and IfElse(2) == IfElse(2, "name")
    assert "IfElse" in graphc.to_svg(named)


def test_constants_choose_now():
    for condition in (True, 1, -2.5, np.bool_(True), np.array(3), pt.constant(True)):
        assert ifelse(condition, X, -X) is X
    for condition in (False, 0, 0.0, np.array(0), pt.constant(0)):
        assert ifelse(condition, -X, X) is X
    # The type is that of the choice all the same.
    assert ifelse(True, pt.iscalar("i"), 2.5).type.dtype == "float64"


def test_branches_may_be_functions():
    y = ifelse(S > 0, lambda: pt.log(S), lambda: -S)
    np.testing.assert_allclose(run([S], y, -2.0), 2.0)
    a, b = ifelse(COND, lambda: (X, S), (X + 1, S + 1))
    assert a.owner is b.owner

    def power(n: int) -> Any:
        return ifelse(n == 0, pt.constant(1.0), lambda: S * power(n - 1))

    np.testing.assert_allclose(run([S], power(5), 2.0), 32.0)


def test_the_choice_is_the_only_thing_computed():
    count = Count()
    y = ifelse(S > 0, count(count(X)), count(X))
    f = graphc.function([X, S], y, mode="reference")
    assert runs_of(f, [1.0], 1.0) == 2 and runs_of(f, [1.0], -1.0) == 1
    # Shared by both, computed once; also a condition counts only where it is needed.
    shared = count(X)
    inner = ifelse(count(S) > 0, shared + 1, shared)
    f = graphc.function([X, S], ifelse(S > 0, inner, X), mode="reference")
    assert runs_of(f, [1.0], 1.0) == 2 and runs_of(f, [1.0], -1.0) == 0


@pytest.mark.parametrize("mode", ["reference", "fast_run"])
def test_nested_conditionals_cost_linear_time(mode):
    count = Count()
    conditions = pt.dvector("conditions")
    for n in (4, 8, 16, 32):
        y: Any = S
        for i in range(n):
            y = ifelse(conditions[i] > 0, count(y), count(count(y)))
        f = graphc.function([S, conditions], y, mode=mode)
        assert runs_of(f, 0.0, np.ones(n)) == n
        assert runs_of(f, 0.0, -np.ones(n)) == 2 * n
        assert f(0.0, -np.ones(n)) == 2 * n


def test_deep_graphs_need_no_recursion():
    conditions = pt.dvector("conditions")
    y: Any = S
    for i in range(2000):
        y = ifelse(conditions[i] > 0, y + 1, y * 2)
    assert run([S, conditions], y, 0.0, np.ones(2000)) == 2000


def test_errors_of_a_branch_that_is_not_chosen_do_not_happen():
    y = ifelse(X.shape[0] > 2, X[2], 0.0)
    for mode in ("reference", "fast_run"):
        f = graphc.function([X], y, mode=mode)
        assert f([1.0]) == 0.0 and f([1.0, 2.0, 3.0]) == 3.0
    z = ifelse(X.shape[0] > 2, X[0], X[2])
    for mode in ("reference", "fast_run"):
        with pytest.raises(IndexError):
            graphc.function([X], z, mode=mode)([1.0])


class _Text(Type):
    __props__ = ()

    def filter(self, value: Any, strict: bool = False, allow_downcast: Any = None) -> str:
        if not isinstance(value, str):
            raise TypeError(f"expected a string, got {value!r}")
        return value


def test_other_types_than_tensors():
    a, b = _Text()("a"), _Text()("b")
    f = graphc.function([COND, a, b], ifelse(COND, a, b), mode="reference")
    assert f(True, "x", "y") == "x" and f(False, "x", "y") == "y"
    assert run([COND, a], ifelse(COND, a, "no"), False, "x") == "no"
    with pytest.raises(TypeError, match=r"branches of ifelse.*test_ifelse.*one type.*value 0 is a of type"):
        ifelse(COND, a, X)


def test_refusals_name_the_line_and_the_fix():
    with pytest.raises(TypeError, match=r"of ifelse.*test_ifelse\.py:\d+.*scalar.*gt\.out of.*switch"):
        ifelse(X > 0, X, -X)
    with pytest.raises(TypeError, match=r"equal numbers of dimensions; value 0 is x of .*full_like"):
        ifelse(COND, X, 0.0)
    with pytest.raises(TypeError, match=r"equal numbers of dimensions; value 1 is"):
        ifelse(COND, [X, X], [X, pt.dmatrix("m")])
    with pytest.raises(TypeError, match=r"same form, got \[\*, \*\] and \[\*\]"):
        ifelse(COND, [X, X], [X])
    with pytest.raises(TypeError, match=r"same form, got \* and"):
        ifelse(COND, X, [X])
    with pytest.raises(ValueError, match="at least one value"):
        IfElse(0)
    with pytest.raises(ValueError, match=r"1 values for each side, got 3"):
        IfElse(1).make_node(COND, X, X, X)


def test_pytensors_module():
    from graphc.ifelse import IfElse as Same
    from graphc.ifelse import ifelse as same

    assert Same is IfElse and same(COND, X, -X).owner.op == IfElse(1)
    assert graphc.ifelse(COND, X, -X).owner.op == IfElse(1) and pt.ifelse is same


def test_pickles():
    f = graphc.function([X, COND], ifelse(COND, X, -X), mode="reference")
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g([1.0], False), [-1.0])


def test_select_of_equal_sides_is_no_node():
    assert select(COND, X, X) is X


def test_batches():
    values = pt.dmatrix("values")
    y, z = ifelse(COND, [X.sum(), X + 1], [S, X * S])
    (by, bz) = batch_graph([y, z], {X: values}, values.shape[0])
    assert isinstance(by.owner.op, IfElse) and bz.owner is by.owner
    v = np.arange(6.0).reshape(2, 3)
    for c in (True, False):
        got = run([values, S, COND], [by, bz], v, 2.0, c)
        np.testing.assert_allclose(got[0], v.sum(axis=1) if c else [2.0, 2.0])
        np.testing.assert_allclose(got[1], v + 1 if c else v * 2.0)


def test_a_batch_of_conditions_is_a_switch():
    conditions = pt.vector("conditions", dtype="bool")
    y = ifelse(COND, X, -X)
    batched = vectorize_graph(y, {COND: conditions})
    got = run([conditions, X], batched, [True, False], [1.0, 2.0])
    np.testing.assert_array_equal(got, [[1.0, 2.0], [-1.0, -2.0]])
    a, b = pt.tensor("a", shape=(2,)), pt.tensor("b", shape=(1,))
    node = ifelse(COND, a, b).owner
    with pytest.raises(VectorizeError, match=r"batch of conditions.*\(2,\) and \(1,\)"):
        node.op.batch(node, [conditions, a, b], [True, False, False], conditions.shape[0])


def test_thunks_ask_for_what_they_need():
    node = ifelse(COND, [X, S], [X, S])[0].owner
    inputs, outputs = ([[None] for _ in variables] for variables in (node.inputs, node.outputs))
    known, done = ([[False] for _ in variables] for variables in (node.inputs, node.outputs))
    thunk = node.op.make_thunk(node, known, done, inputs, outputs)
    assert thunk.lazy and thunk() == [0]
    inputs[0][0], known[0][0] = np.array(False), True
    assert thunk() == [3, 4]
    inputs[4][0], known[4][0] = np.array(2.0), True
    assert thunk() == [3]
    inputs[3][0], known[3][0] = np.ones(2), True
    assert not thunk() and done == [[True], [True]] and outputs[1][0] == 2.0


def test_a_view_of_an_input_is_known_to_be_one():
    node = ifelse(COND, X, X + 1).owner
    assert node.op.view_map == {0: [1, 2]} and IfElse(2).view_map == {0: [1, 3], 1: [2, 4]}
    assert TensorType("float64", (None,)) == node.outputs[0].type

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that overwrite their inputs: what is refused, and in which order nodes run."""

import itertools
import pickle
import random
import re

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import InconsistencyError
from graphc.function.io import In
from graphc.graph import Apply, FunctionGraph, Op

MODES = ["reference", "fast_run", "fast_compile", "debug"]


class InPlace(Op):
    """``inputs[0] *= 2; inputs[0] += others``, in the memory of the first input."""

    destroy_map = {0: [0]}

    def make_node(self, *inputs):
        inputs = [pt.as_tensor_variable(x) for x in inputs]
        return Apply(self, inputs, [inputs[0].type()])

    def perform(self, node, inputs, output_storage):
        x, *others = inputs
        others = [np.array(other) for other in others]
        x *= 2
        for other in others:
            x += other
        output_storage[0][0] = x


class Tolerant(InPlace):
    destroyhandler_tolerate_same = [(0, 1)]


class TolerantOfViews(InPlace):
    destroyhandler_tolerate_aliased = [(0, 1)]


class View(Op):
    """All of its first input, as a view."""

    view_map = {0: [0]}

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][...]


class Copy(View):
    """A new array."""

    view_map = {}

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].copy()


class DestroyBoth(InPlace):
    destroy_map = {0: [0], 1: [1]}

    def make_node(self, x, y):
        return Apply(self, [x, y], [x.type(), y.type()])


destroy, view, copy = InPlace(), View(), Copy()


def refused(inputs, outputs, *words):
    with pytest.raises(InconsistencyError) as raised:
        FunctionGraph(inputs, outputs)
    for word in words:
        raised.match(word)


def test_use_after_overwriting_names_both_nodes_and_lines():
    x = pt.dvector("x")
    new = destroy(copy(x))
    old = new.owner.inputs[0]
    late = InPlace()(copy(new), old)
    refused(
        [x],
        [late],
        r"InPlace \(made at .*test_destroy.py:\d+ in test_use_after.* reads .* the result of Copy \(made at",
        r"after InPlace \(made at .*test_destroy.py:\d+.* has overwritten it",
    )


def test_two_who_overwrite_the_same():
    x = pt.dvector("x")
    middle = copy(x)
    refused([x], [destroy(middle), destroy(middle)], "InPlace .* overwrites .*Copy.* as InPlace .* does")
    refused([x], [destroy(middle), destroy(view(view(middle)))], "memory can be overwritten once")
    refused([x], DestroyBoth()(middle, middle), "while it reads|twice, through two of its inputs")
    refused([x], DestroyBoth()(middle, view(middle)), "while it reads|twice, through two of its inputs")
    FunctionGraph([x], [destroy(destroy(middle))])
    FunctionGraph([x], [destroy(view(destroy(view(middle))))])


def test_views_of_what_is_overwritten():
    x = pt.dvector("x")
    middle = copy(x)
    alias = view(view(middle))
    new = destroy(middle)
    refused(
        [x], [new, alias], "output 1 of the graph, .* is a view of .* overwritten by InPlace .*return a copy"
    )
    refused([x], [middle, new], "output 0 of the graph, .* is overwritten by InPlace")
    refused([x], [copy(pt.add(alias, new))], "reads")
    FunctionGraph([x], [new, copy(alias)])


def test_reading_the_same_memory_twice():
    x = pt.dvector("x")
    middle = copy(x)
    refused(
        [x],
        [destroy(middle, middle)],
        "overwrites its input 0.*while it reads the same memory as its input 1",
    )
    refused([x], [destroy(middle, view(middle))], "as its input 1")
    FunctionGraph([x], [Tolerant()(middle, middle)])
    refused([x], [Tolerant()(middle, view(middle))], "as its input 1")
    FunctionGraph([x], [TolerantOfViews()(middle, view(middle))])
    refused([x], [TolerantOfViews()(middle, middle)], "as its input 1")


def test_constants():
    refused([], [destroy(pt.constant(np.arange(3.0)))], "overwrites the constant.*copy")
    refused([], [destroy(view(pt.constant(np.arange(30.0))))], "overwrites the constant")


def test_cycles_of_readers():
    x, y = pt.dvector("x"), pt.dvector("y")
    a, b = copy(x), copy(y)
    # Each reads what the other overwrites.
    refused(
        [x, y],
        [destroy(a, b), destroy(b, a)],
        "waiting for the other",
        "InPlace .*; .*InPlace",
    )
    FunctionGraph([x, y], [destroy(a, copy(b)), destroy(b, copy(a))])


def test_inputs_are_protected():
    x = pt.dvector("x")
    words = r"InPlace \(made at .*overwrites the input x \(made at .*allow it with In\(x, mutable=True\)"
    with pytest.raises(InconsistencyError, match=words):
        graphc.function([x], destroy(x))
    with pytest.raises(InconsistencyError, match="overwrites the input x"):
        graphc.function([x], destroy(view(x)))
    s = graphc.shared(np.arange(3.0), "s")
    for updates in ({}, {s: s + 1.0}):
        with pytest.raises(InconsistencyError, match="overwrites the shared variable s"):
            graphc.function([], destroy(view(s)), updates=updates)


@pytest.mark.parametrize("mode", MODES)
def test_mutable_inputs_are_overwritten(mode):
    x, y = pt.dvector("x"), pt.dvector("y")
    f = graphc.function([In(x, mutable=True), y], destroy(x, y), mode=mode)
    a, b = np.arange(3.0), np.ones(3)
    assert f(a, b) is a and a.tolist() == [1, 3, 5]
    assert f(a, a).tolist() == [3, 9, 15] and a.tolist() == [1, 3, 5]
    a.flags.writeable = False
    assert f(a, b).tolist() == [3, 7, 11] and a.tolist() == [1, 3, 5]
    g = graphc.function([In(x, mutable=True, value=np.arange(3.0))], destroy(x), mode=mode)
    assert g().tolist() == g().tolist() == [0, 2, 4]


@pytest.mark.parametrize("mode", MODES)
def test_readers_run_first(mode):
    x = pt.dvector("x")
    middle = copy(x)
    new = destroy(middle)
    f = graphc.function([x], [new, pt.sin(middle), copy(view(middle)), pt.exp(view(middle)).sum()], mode=mode)
    refused([x], [new, copy(pt.add(middle, new))], "reads")
    a = np.arange(3.0)
    doubled, sine, same, total = f(a)
    assert doubled.tolist() == [0, 2, 4] and same.tolist() == a.tolist() == [0, 1, 2]
    np.testing.assert_allclose(sine, np.sin(a))
    np.testing.assert_allclose(total, np.exp(a).sum())


@pytest.mark.parametrize("mode", ["reference", "fast_run"])
def test_order_holds_across_native_segments(mode):
    """The native reader needs a later stage than the node that overwrites would have of its own."""
    x = pt.dvector("x")
    middle = copy(x)
    deep = pt.cos(copy(pt.sin(copy(pt.exp(x)))))
    reader = middle * deep
    f = graphc.function([x], [destroy(middle), reader], mode=mode)
    a = np.arange(3.0)
    doubled, product = f(a)
    assert doubled.tolist() == [0, 2, 4]
    np.testing.assert_allclose(product, a * np.cos(np.sin(np.exp(a))))
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_allclose(again(a)[1], product)


def test_order_does_not_depend_on_the_order_of_outputs():
    x = pt.dvector("x")
    middle = copy(x)
    parts = [destroy(middle), pt.sin(middle), view(copy(middle)), pt.cos(view(middle))]
    expected = None
    for order in itertools.permutations(range(4)):
        graph = FunctionGraph([x], [parts[i] for i in order])
        position = {node: i for i, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            assert all(v.owner is None or position[v.owner] < position[node] for v in node.inputs)
        assert all(position[r] < position[parts[0].owner] for r in graph.destruction.before[parts[0].owner])
        results = graphc.function([x], [parts[i] for i in order])(np.arange(3.0))
        found = dict(zip(order, results, strict=True))
        expected = expected or found
        assert all(np.array_equal(found[i], expected[i]) for i in range(4))


def test_loops_protect_their_inputs():
    xs = pt.dmatrix("xs")
    with pytest.raises(InconsistencyError, match="InPlace"):
        f = graphc.function([xs], graphc.map(lambda row: destroy(row), [xs], return_updates=False)[0])
        f(np.ones((2, 3)))


def test_graphs_without_such_ops_keep_their_order():
    x = pt.dvector("x")
    graph = FunctionGraph([x], [pt.sin(x) + pt.cos(x)])
    assert not graph.destruction.before and graph.nodes[-1].op == graph.outputs[0].owner.op


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_are_refused_or_right(seed):
    """Every graph that is accepted computes what it computes with copies instead of memory in place."""
    rng = random.Random(seed)
    x, y = pt.dvector("x"), pt.dvector("y")
    values = [(x, x), (y, y), (copy(x), x), (copy(y), y)]
    for _ in range(rng.randrange(2, 7)):
        (a, pure_a), (b, pure_b) = rng.choice(values), rng.choice(values[2:])
        kind = rng.randrange(5)
        if kind == 0:
            values.append((destroy(b), pure_b * 2.0))
        elif kind == 1:
            values.append((destroy(b, a), pure_b * 2.0 + pure_a))
        elif kind == 2:
            values.append((view(b), pure_b))
        elif kind == 3:
            values.append((pt.sin(a), pt.sin(pure_a)))
        else:
            values.append((copy(b), pure_b))
    chosen = rng.sample(values, 2)
    try:
        f = graphc.function(
            [x, y], [v for v, _ in chosen], on_unused_input="ignore", mode=rng.choice(MODES[:2])
        )
    except InconsistencyError as error:
        assert re.search("made at", str(error))
        return
    pure = graphc.function([x, y], [v for _, v in chosen], on_unused_input="ignore")
    a, b = np.arange(3.0), np.arange(3.0) + 10
    for result, expected in zip(f(a, b), pure(a, b), strict=True):
        np.testing.assert_allclose(result, expected)
    assert a.tolist() == [0, 1, 2] and b.tolist() == [10, 11, 12]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks over graphs, and replacement."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.replace import clone, clone_get_equiv, clone_replace, graph_replace
from graphc.graph.traversal import (
    ancestors,
    apply_ancestors,
    apply_depends_on,
    explicit_graph_inputs,
    general_toposort,
    get_var_by_name,
    graph_inputs,
    io_toposort,
    orphans_between,
    toposort,
    truncated_graph_inputs,
    variable_depends_on,
    vars_between,
)


@pytest.fixture
def graph():
    """x, y and a shared variable; a = exp(x), b = a * y, c = b + s, d = sin(x)."""
    x, y = pt.dvectors("x", "y")
    s = graphc.shared(np.zeros(3), "s")
    a = pt.exp(x)
    a.name = "a"
    b = a * y
    c = b + s
    d = pt.sin(x)
    return {"x": x, "y": y, "s": s, "a": a, "b": b, "c": c, "d": d}


def test_ancestors(graph):
    g = graph
    assert set(ancestors([g["c"]])) == {g[k] for k in "xysabc"}
    assert set(ancestors([g["c"]], blockers=[g["a"]])) == {g[k] for k in "ysabc"}
    assert set(vars_between([g["a"]], [g["b"]])) == {g["a"], g["b"], g["y"]}
    assert set(apply_ancestors([g["b"]])) == {g["a"].owner, g["b"].owner}


def test_inputs(graph):
    g = graph
    assert list(graph_inputs([g["c"]])) == [g["s"], g["y"], g["x"]]
    assert set(explicit_graph_inputs(g["c"] + 1.0)) == {g["x"], g["y"]}
    assert set(explicit_graph_inputs([g["c"], g["d"]])) == {g["x"], g["y"]}
    assert list(orphans_between([g["x"]], [g["b"]])) == [g["y"]]
    assert get_var_by_name([g["c"]], "a") == (g["a"],)


def test_order(graph):
    g = graph
    order = list(toposort([g["c"], g["d"]]))
    assert order == [g["a"].owner, g["b"].owner, g["c"].owner, g["d"].owner]
    assert io_toposort([g["a"]], [g["b"]]) == [g["b"].owner]
    assert list(toposort([g["b"].owner])) == order[:2]


def test_deep_graphs_do_not_recurse():
    x = pt.dvector("x")
    y = x
    for _ in range(5000):
        y = pt.tanh(y)
    assert len(list(toposort([y]))) == 5000
    z = pt.dvector("z")
    assert list(explicit_graph_inputs(graph_replace(y, {x: z}))) == [z]
    assert list(explicit_graph_inputs(clone_replace(y, {x: z}))) == [z]


def test_depends(graph):
    g = graph
    assert variable_depends_on(g["c"], g["x"]) and not variable_depends_on(g["d"], [g["y"], g["s"]])
    assert variable_depends_on(g["x"], g["x"])
    assert apply_depends_on(g["c"].owner, g["a"].owner) and not apply_depends_on(g["d"].owner, g["a"].owner)


def test_truncated_inputs(graph):
    g = graph
    assert set(truncated_graph_inputs([g["c"]], [g["a"]])) == {g["a"], g["y"], g["s"]}
    assert truncated_graph_inputs([g["c"]]) == [g["c"]]
    assert set(truncated_graph_inputs([g["c"]], [g["x"], g["a"]])) == {g["x"], g["a"], g["y"], g["s"]}


def test_clone_replace(graph):
    g = graph
    z = pt.dvector("z")
    new = clone_replace(g["c"], {g["a"]: z})
    assert set(explicit_graph_inputs(new)) == {z, g["y"]} and new is not g["c"]
    both = clone_replace([g["c"], g["d"]], [(g["x"], z)])
    assert isinstance(both, list) and set(explicit_graph_inputs(both)) == {z, g["y"]}
    free = clone_replace(g["b"], copy_inputs_over=False)
    assert {v.name for v in explicit_graph_inputs(free)} == {"x", "y"}
    assert not set(explicit_graph_inputs(free)) & {g["x"], g["y"]}
    with pytest.raises(TypeError):
        clone_replace(g["c"], {g["a"]: pt.lvector()})


def test_graph_replace(graph):
    g = graph
    z, w = pt.dvectors("z", "w")
    kept = graph_replace([g["c"], g["d"]], {g["y"]: z})
    assert kept[1] is g["d"] and kept[0] is not g["c"]
    chained = graph_replace(g["c"], {g["y"]: z, z: w})
    assert set(explicit_graph_inputs(chained)) == {g["x"], w}
    inner = graph_replace(g["c"], {g["b"]: g["y"] * 2.0, g["y"]: z})
    assert set(explicit_graph_inputs(inner)) == {z}
    named = graph_replace({"c": g["c"]}, {g["x"]: z})
    assert set(named) == {"c"}
    with pytest.raises(ValueError, match="not part of the graph"):
        graph_replace(g["d"], {g["y"]: z})
    assert graph_replace(g["d"], {g["y"]: z}, strict=False) is g["d"]


def test_graph_replace_swaps_are_refused(graph):
    g = graph
    with pytest.raises(ValueError, match="depends on itself"):
        graph_replace(g["b"], {g["a"]: g["y"], g["y"]: g["a"]})


def test_graph_replace_with_an_expression_of_itself(graph):
    g = graph
    new = graph_replace(g["b"], {g["a"]: g["a"] + 1.0})
    assert g["a"].owner in set(apply_ancestors([new]))


def test_clone(graph):
    g = graph
    inputs, outputs = clone([g["x"], g["y"]], [g["c"]])
    assert inputs[0] is not g["x"] and set(explicit_graph_inputs(outputs)) == set(inputs)
    same, _ = clone([g["x"], g["y"]], [g["c"]], copy_inputs=False)
    assert same == [g["x"], g["y"]]
    mapping = clone_get_equiv([g["x"], g["y"]], [g["b"]])
    assert mapping[g["b"]].owner is mapping[g["b"].owner]


def test_order_of_objects_of_any_kind():
    needs = {1: [2, 3], 2: [3, 4], 3: [4], 4: None}
    assert general_toposort([1], needs.get) == [4, 3, 2, 1]
    assert general_toposort([1, 1], {1: [2, 2], 2: []}.get) == [2, 1]
    with pytest.raises(ValueError, match="cycles"):
        general_toposort([1], {1: [2], 2: [1]}.get)

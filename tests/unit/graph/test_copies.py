# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of graphs and of ops with graphs; what copies share and what not."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import MissingInputError, UnusedInputError
from graphc.graph.basic import Apply
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.printing import as_string
from graphc.graph.replace import clone, clone_get_equiv, clone_replace
from graphc.graph.traversal import graph_inputs, walk
from graphc.transforms.op_from_graph import OpFromGraph
from graphc.transforms.vectorize import vectorize_graph


def test_clone_replace_copies_roots():
    x, y, other = pt.vectors("x", "y", "other")
    z = graphc.shared(0.25)
    copy = clone_replace(z * (x + y), {y: other}, copy_inputs_over=False)
    roots = list(graph_inputs([copy]))
    assert len(roots) == 3 and not {x, y, other, z} & set(roots)
    # The copy of a shared variable has its value.
    new = {v.name: v for v in roots}
    assert graphc.function([new["x"], new["other"]], copy)([1.0], [3.0]) == 1


def test_constants_are_not_copied():
    c = pt.constant(1.5)
    for options in [(), (False,), (True, False), (False, True)]:
        inputs, outputs = clone([c], [c], *options)
        assert inputs[0] is c and outputs[0] is c


def test_clone_get_equiv_goes_on_from_a_memo():
    x, y, z = pt.vectors("x", "y", "z")
    a = x * y
    b = a + 1.0
    memo = {a: z}
    assert clone_get_equiv([x, y], [b], copy_inputs=False, copy_orphans=False, memo=memo) is memo
    assert memo[a] is z and a.owner not in memo and memo[x] is x
    assert np.array_equal(memo[b].eval({z: [1.0]}), [2.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: OpFromGraph([x], [2 * x])(x),
        lambda x: graphc.scan(lambda a: a * 2, sequences=x, return_updates=False),
    ],
)
def test_ops_with_graphs_copy_these(make):
    x = pt.vector("x")
    y = make(x)
    op = y.owner.op
    copy = op.clone()
    assert copy.fgraph is not op.fgraph
    assert not set(copy.fgraph.outputs) & set(op.fgraph.outputs)
    assert np.array_equal(
        Apply(copy, y.owner.inputs, [y.type()]).outputs[0].eval({x: [1.0, 2.0]}), [2.0, 4.0]
    )


def test_shared_inputs_of_ops_with_graphs_can_be_given():
    x, y = pt.scalar("x"), graphc.shared(1.0, name="y")
    op = OpFromGraph([x], [x + y])
    other = y.clone()
    node = op.make_node(x, other)
    assert node.op.shared_inputs == [other] and op.shared_inputs == [y]
    assert op.make_node(x, x).op.shared_inputs == []
    assert graphc.function([x], op.make_node(x, x * 3).outputs[0])(2.0) == 8
    with pytest.raises(MissingInputError):
        OpFromGraph([], [x])
    with pytest.raises(NotImplementedError):
        OpFromGraph([x], [x], updates={})


def test_forms():
    x, y = pt.scalars("x", "y")
    total = x + y
    assert set(FunctionGraph(outputs=[total]).inputs) == {x, y}
    assert as_string([x, y], [total * total]) == ["mul(*1 -> add(x, y), *1)"]
    assert as_string([total], [total * total]) == [f"mul({total}, {total})"]
    assert total.eval({"x": 1, "y": 2, "other": 3}, on_unused_input="ignore") == 3
    with pytest.raises(ValueError, match="replaces variables"):
        vectorize_graph(total, {x: (x, y)})

    class Two(Op):
        default_output = 1

        def make_node(self, v):
            return Apply(self, [v], [v.type(), v.type()])

    result = Two()(x, name="given")
    assert result.name == "given" and result.owner.outputs[0].name is None
    assert result.owner.dprint(file="str").startswith("Two")


def test_inputs_beyond_other_inputs_are_unused():
    m = pt.matrix("m")
    transposed = m.T
    with pytest.raises(UnusedInputError):
        graphc.function([m, transposed], transposed * 2)
    with pytest.raises(UnusedInputError):
        (transposed * 2).eval({transposed: np.ones((2, 2)), m: np.ones((2, 2))})
    x = pt.scalar("x")
    assert list(walk([x * 2], lambda v: v.owner and v.owner.inputs, return_children=True))[1] == (x, None)

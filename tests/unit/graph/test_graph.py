# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variables, nodes, ops, locations and FunctionGraph."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import MissingInputError, UndefinedGradientError
from graphc.graph import Apply, Constant, FunctionGraph, Op, Variable
from graphc.graph.basic import SourceLocation, capture, describe
from graphc.graph.tensor.type import TensorType


class Twice(Op):
    __props__ = ("factor",)
    itypes = otypes = (TensorType("float64", (None,)),)

    def __init__(self, factor=2):
        self.factor = factor

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * self.factor


class Pair(Op):
    def make_node(self, x):
        return Apply(self, [x], [x.type(), x.type()])


def test_op_identity_and_text():
    assert Twice(2) == Twice(2) != Twice(3) and hash(Twice(2)) == hash(Twice(2))
    assert str(Twice(3)) == "Twice{factor=3}"
    assert Pair() != Pair() and str(Pair()) == "Pair"


def test_op_call():
    x = pt.dvector("x")
    y = Twice()(x, name="y")
    assert y.name == "y" and y.owner.op == Twice() and y.owner.inputs == [x] and y.owner.out is y
    assert Twice()(x, return_list=True)[0].type == y.type
    first, second = Pair()(x, name="p")
    assert (first.name, second.name) == ("p_0", "p_1") and second.index == 1
    with pytest.raises(ValueError, match="no default_output"):
        first.owner.default_output()
    with pytest.raises(ValueError, match="takes 1 inputs, got 2"):
        Twice()(x, x)
    with pytest.raises(UndefinedGradientError, match="pullback"):
        Twice().pullback([x], [y], [y])
    with pytest.raises(NotImplementedError, match="perform"):
        Pair().perform(first.owner, [1], [[None], [None]])


def test_apply_checks():
    x = pt.dvector("x")
    y = Twice()(x)
    with pytest.raises(TypeError, match="must be Variables"):
        Apply(Twice(), [1], [x.type()])
    with pytest.raises(ValueError, match="already belongs"):
        Apply(Twice(), [x], [y])


def test_clone_with_new_inputs():
    x, z = pt.dvectors("x", "z")
    node = Twice()(x, name="y").owner
    cloned = node.clone_with_new_inputs([z])
    assert cloned.inputs == [z] and cloned.out.name == "y" and cloned.out is not node.out
    with pytest.raises(TypeError):
        node.clone_with_new_inputs([pt.lvector()])


def test_text_of_variables():
    x = pt.dvector("x")
    assert str(x) == "x" and str(pt.dvector()) == "<TensorType(float64, (?,))>"
    assert str(Twice()(x)) == "Twice{factor=2}.out" and str(Pair()(x)[1]) == "Pair.1"
    assert str(pt.constant(2.5)) == "2.5"
    assert "float64, (100,)" in str(pt.constant(np.zeros(100)))


def test_locations_name_the_users_line():
    line = inspect.currentframe().f_lineno
    x = pt.dvector("x")
    y = pt.exp(x)
    assert x.location == SourceLocation(__file__, line + 1, "test_locations_name_the_users_line")
    assert y.location.line == line + 2 and y.owner.location == y.location
    assert capture().line == line + 5
    assert "test_graph.py" in describe(y.location) and describe(None) == ""


def test_constants_are_private_and_read_only():
    data = np.arange(3.0)
    c = pt.constant(data)
    data[0] = 9
    assert c.data.tolist() == [0, 1, 2] and not c.data.flags.writeable
    assert isinstance(c, Constant) and c.equals(pt.constant([0.0, 1.0, 2.0]))
    assert copy.deepcopy(c) is c
    assert pt.constant(np.full(4, 2.0)).unique_value == 2 and c.unique_value is None


def test_variable_odds_and_ends():
    x = pt.matrix("x", shape=(3, None))
    assert x.clone().name == "x" and x.clone() is not x and x.clone("z").name == "z"
    x.tag.note = 1
    assert x.clone().tag.note == 1
    assert len(list(x)) == 3
    with pytest.raises(TypeError, match="iterate"):
        iter(pt.vector("v"))
    with pytest.raises(TypeError, match="condition"):
        bool(x)
    with pytest.raises(TypeError, match="set"):
        x[0] = 1
    with pytest.raises(TypeError, match="must be a string"):
        Variable(x.type, name=3)
    assert int(pt.constant(3)) == 3 and float(pt.constant(2.5)) == 2.5
    assert [1, 2, 3][pt.constant(1)] == 2


def test_constructors():
    assert pt.lscalar("i").type == TensorType("int64", ())
    assert pt.fmatrix().dtype == "float32" and pt.zvector().dtype == "complex128"
    assert pt.row().broadcastable == (True, False) and pt.col().broadcastable == (False, True)
    assert pt.tensor4().ndim == 4
    a, b = pt.scalars("a", "b")
    assert (a.name, b.name) == ("a", "b") and len(pt.matrices(3)) == 3
    assert pt.tensor("t", dtype="int8", shape=(2, None)).type == TensorType("int8", (2, None))
    assert pt.vector("v", dtype="int32").dtype == "int32"
    with pytest.raises(ValueError, match="must match"):
        pt.vector(shape=(2, 2))
    with pytest.raises(TypeError, match="dtype"):
        pt.dvector(dtype="int8")


def test_function_graph():
    x, y = pt.dvectors("x", "y")
    z = pt.exp(x)
    graph = FunctionGraph([x, y], [z, z])
    assert graph.toposort() == [z.owner] and len(graph.clients[z]) == 2 and graph.clients[y] == []
    assert x in graph and z.owner in graph and pt.dvector() not in graph
    copied = FunctionGraph([x], [z], clone=True)
    assert copied.inputs[0] is not x and copied.nodes[0].op == z.owner.op
    with pytest.raises(MissingInputError, match=r"the input y .*test_graph.py"):
        FunctionGraph([x], [y])
    with pytest.raises(ValueError, match="more than once"):
        FunctionGraph([x, x], [z])


def test_long_graphs_pickle():
    x = pt.dvector("x")
    y = x
    for _ in range(2000):
        y = pt.tanh(y)
    graph = pickle.loads(pickle.dumps(FunctionGraph([x], [y])))
    assert len(graph.nodes) == 2000 and graph.inputs[0].name == "x" and graph.nodes[5].location is not None


def test_config():
    before = graphc.config.floatX
    with graphc.config.change_flags(floatX="float32", on_unused_input="warn"):
        assert graphc.config.floatX == "float32"
        with graphc.config.change_flags({"mode": "REFERENCE"}):
            assert graphc.config.mode == "reference"
    assert graphc.config.floatX == before
    with pytest.raises(ValueError, match="expected one of float16"):
        graphc.config.floatX = "int8"
    with pytest.raises(AttributeError, match="did you mean 'floatX'"):
        graphc.config.flaotX = "float32"
    assert any(row[1] == "GRAPHC_FLOATX" for row in graphc.config.table())

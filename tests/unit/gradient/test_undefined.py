# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives that do not exist are errors, never zeros; what rules return is passed on as it is."""

from __future__ import annotations

import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import DisconnectedInputError, NullTypeGradError
from graphc.gradient import disconnected_type, grad, grad_undefined, jacobian, pushforward
from graphc.graph.basic import Apply
from graphc.graph.op import Op


class Undefined(Op):
    """The identity, which says in Theano's ways that it has no derivative."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]

    def grad(self, inputs, cotangents):
        return [grad_undefined(self, 0, inputs[0])]

    def R_op(self, inputs, tangents):
        return [None]


@pytest.mark.parametrize("rule", [True, False], ids=["op rules", "two pullbacks"])
@pytest.mark.parametrize("build", [lambda u, x, y: u, lambda u, x, y: pt.dot(u, y), lambda u, x, y: u * x])
def test_tangents_through_undefined_ops_are_errors(build, rule):
    x, y = pt.vector("x"), pt.vector("y")
    out = build(Undefined()(x), x, y)
    with pytest.raises((ValueError, NullTypeGradError), match=r"derivative|undefined"):
        pushforward(out, x, y, use_op_pushforward=rule)


def test_tangents_of_integers_are_disconnected():
    x, v = pt.vector("x"), pt.vector("v")
    with pytest.raises(DisconnectedInputError, match="integers"):
        pushforward(pt.argmax(x), x, v)
    assert pushforward(pt.argmax(x), x, v, disconnected_outputs="ignore").eval() == 0


class Rounds(Op):
    """Integers, floats and a scaled copy of x; the last input only says where. No rule is asked in vain."""

    depends_on = (0,)

    def make_node(self, x, where):
        return Apply(self, [x, pt.as_tensor_variable(where)], [pt.ivector(), x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0], output_storage[1][0] = inputs[0].astype("int32"), inputs[0] * 3

    def pullback(self, inputs, outputs, cotangents):
        assert cotangents[0] is None and cotangents[1] is not None
        return [cotangents[1] * 3, None]

    def pushforward(self, inputs, outputs, tangents):
        assert tangents[0] is not None
        return [None, tangents[0] * 3]


def test_rules_are_asked_only_where_a_derivative_goes_in_and_out():
    x, where, v = pt.vector("x"), pt.vector("where"), pt.vector("v")
    whole, scaled = Rounds()(x, where)
    assert scaled.owner.op.connection_pattern(scaled.owner) == [[True, True], [False, False]]
    assert grad((scaled + whole).sum(), x).eval({x: [1.5, 2.0], where: [0.0]}).tolist() == [3, 3]
    assert pushforward(scaled, x, v).eval({x: [1.0], where: [0.0], v: [2.0]}).tolist() == [6]
    for wrt, out in ((where, scaled), (x, whole)):
        with pytest.raises(DisconnectedInputError):
            pushforward(out, wrt, v)
    with pytest.raises(DisconnectedInputError):
        grad(scaled.sum(), where)
    assert grad((whole * 1.5).sum() + scaled.sum(), x).eval({x: [1.5], where: [0.0]}).tolist() == [3]


@pytest.mark.parametrize(
    "build", [pt.dot, lambda a, b: pt.concatenate([a, b]), lambda a, b: a[b.shape[0] - 2 :]]
)
def test_tangents_of_what_is_linear_are_those_of_two_pullbacks(build):
    a, b, t = pt.matrix("a"), pt.matrix("b"), pt.matrix("t")
    out, values = (
        build(a, b),
        {a: [[1.0, 2.0], [3.0, 4.0]], b: [[5.0, 6.0], [7.0, 8.0]], t: [[9.0, 1.0], [2.0, 3.0]]},
    )
    for wrt in ([a], [a, b]):
        one, two = (pushforward(out, wrt, [t] * len(wrt), use_op_pushforward=rule) for rule in (True, False))
        given = {v: each for v, each in values.items() if v in graphc.graph.traversal.ancestors([one - two])}
        assert abs((one - two).eval(given)).max() < 1e-12


def test_undefined_gradients_are_no_outputs():
    x = pt.vector("x")
    with pytest.raises(TypeError, match="undefined gradient"):
        graphc.function([x], grad_undefined(Undefined(), 0, x), on_unused_input="ignore")


def test_disconnected_known_gradients():
    x, y = pt.scalars("x", "y")
    cost = x * y
    with pytest.raises(DisconnectedInputError):
        grad(cost, x, known_grads={cost: disconnected_type()})
    with pytest.raises(DisconnectedInputError):
        grad(cost * 2, y, known_grads={cost: disconnected_type()})
    assert grad(cost + y * 2, y, known_grads={cost: disconnected_type()}).eval({x: 5.0, y: 3.0}) == 2


def test_variables_of_rules_are_returned_themselves():
    other = pt.vector("other")

    class Known(Undefined):
        def grad(self, inputs, cotangents):
            return [other]

    x = pt.vector("x")
    assert grad(Known()(x).sum(), x) is other
    # But not what is a root of the graph itself: it would remember what was differentiated.
    y = pt.scalar("y")
    z = pt.scalar("z")
    assert graphc.function([y, z], grad(y * z, y))(2, 3) == 3


def test_zeros_count_as_reading_what_they_are_the_gradient_of():
    x, y = pt.scalars("x", "y")
    assert graphc.function([y], grad(1 + x, y, disconnected_inputs="ignore"))(1) == 0
    assert graphc.function([y], jacobian(1 + x, y, disconnected_inputs="ignore"))(1) == 0

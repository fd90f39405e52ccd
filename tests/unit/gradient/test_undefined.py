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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`OpFromGraph`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.transforms.op_from_graph import OpFromGraph, expand


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


def three(**options):
    x, y, z = pt.dscalars("x", "y", "z")
    return [x, y, z], OpFromGraph([x, y, z], [x + y * z], **options)


@pytest.mark.parametrize("inline", [False, True])
def test_values_and_gradients(inline):
    (x, y, z), op = three(inline=inline)
    e = op(x, y, z) + op(z, y, x)
    np.testing.assert_allclose(run([x, y, z], e, 1.0, 2.0, 3.0), 7 + 5)
    gradients = graphc.grad(e, [x, y, z])
    np.testing.assert_allclose(run([x, y, z], gradients, 1.0, 2.0, 3.0), [3, 4, 3])


def test_second_derivatives_and_pushforward():
    x = pt.dvector("x")
    op = OpFromGraph([x], [pt.sin(x) * x])
    cost = op(pt.exp(x)).sum()
    plain = (pt.sin(pt.exp(x)) * pt.exp(x)).sum()
    t = pt.dvector("t")
    v, tv = np.array([0.1, 0.7]), np.array([1.0, -2.0])
    for derivative in (
        lambda c: graphc.grad(c, x),
        lambda c: graphc.hessian(c, x),
        lambda c: graphc.pushforward(c, x, t),
        lambda c: graphc.pushforward(c, x, t, use_op_pushforward=False),
    ):
        ours, theirs = run([x, t], [derivative(cost), derivative(plain)], v, tv)
        np.testing.assert_allclose(ours, theirs)


def test_several_outputs_of_which_one_is_used():
    x, y = pt.dvector("x"), pt.dvector("y")
    op = OpFromGraph([x, y], [x**2, x * y, y**3])
    a, b, c = op(x, y)
    np.testing.assert_allclose(
        run([x, y], graphc.grad(b.sum(), [x, y]), [1.0, 2.0], [3.0, 4.0]), [[3, 4], [1, 2]]
    )
    assert op.connection_pattern(a.owner) == [[True, True, False], [False, True, True]]
    with pytest.raises(graphc.errors.DisconnectedInputError):
        graphc.grad(c.sum(), x)


def test_shared_variables_are_captured():
    x = pt.dvector("x")
    s = graphc.shared(np.array([1.0, 2.0]), name="s")
    op = OpFromGraph([x], [x * s])
    y = op(x)
    assert s in y.owner.inputs
    f = graphc.function([x], [y, *graphc.grad(y.sum(), [x, s])], mode="reference")
    np.testing.assert_allclose(f([3.0, 4.0]), [[3, 8], [1, 2], [3, 4]])
    s.set_value(np.array([10.0, 10.0]))
    np.testing.assert_allclose(f([3.0, 4.0])[0], [30, 40])
    with pytest.raises(ValueError, match=r"strict=True.*s"):
        OpFromGraph([x], [x * s], strict=True)


def test_nested():
    x, y = pt.dscalars("x", "y")
    inner = OpFromGraph([x, y], [x * y], name="inner")
    outer = OpFromGraph([x, y], [inner(x, y) + inner(y, y)], name="outer")
    cost = outer(x, pt.exp(y))
    e = np.exp(0.5)
    np.testing.assert_allclose(
        run([x, y], [cost, graphc.grad(cost, y)], 2.0, 0.5), [2 * e + e * e, 2 * e + 2 * e * e]
    )
    (expanded,) = expand([cost])
    assert not any(isinstance(n.op, OpFromGraph) for n in graphc.graph.toposort([expanded]))
    np.testing.assert_allclose(run([x, y], expanded, 2.0, 0.5), 2 * e + e * e)


def test_pullback_overrides():
    (x, y, z), op = three(pullback=lambda inputs, outputs, g: [g[0] * 10, g[0] * 20, outputs[0] * g[0]])
    np.testing.assert_allclose(
        run([x, y, z], graphc.grad(op(x, y, z), [x, y, z]), 1.0, 2.0, 3.0), [10, 20, 7]
    )


def test_pullback_override_of_one_input():
    (x, y, z), op = three(pullback=[None, lambda inputs, outputs, g: inputs[2] * 2 * g[0], None])
    np.testing.assert_allclose(run([x, y, z], graphc.grad(op(x, y, z), [x, y, z]), 2.0, 3.0, 4.0), [1, 8, 3])


def test_pullback_override_by_an_op():
    x, out, g = pt.dscalars("x", "out", "g")
    rule = OpFromGraph([x, out, g], [g * out * 100], on_unused_input="ignore")
    op = OpFromGraph([x], [pt.exp(x)], pullback=rule)
    np.testing.assert_allclose(run([x], graphc.grad(op(x), x), 0.5), 100 * np.exp(0.5))
    # Forward mode follows the override, so that both modes agree.
    np.testing.assert_allclose(run([x, g], graphc.pushforward(op(x), x, g), 0.5, 2.0), 200 * np.exp(0.5))


def test_pushforward_overrides():
    x, t = pt.dscalars("x", "t")
    op = OpFromGraph([x], [x**2], pushforward=lambda inputs, tangents: [tangents[0] * 7])
    np.testing.assert_allclose(run([x, t], graphc.pushforward(op(x), x, t), 3.0, 2.0), 14)
    op = OpFromGraph([x], [x**2, x**3], rop_overrides=[None, lambda inputs, tangents: tangents[0]])
    np.testing.assert_allclose(run([x, t], graphc.pushforward(op(x), x, t), 3.0, 2.0), [12, 2])


def test_wrong_overrides():
    (x, y, z), op = three(pullback=lambda inputs, outputs, g: [g[0]])
    with pytest.raises(ValueError, match="must return 3 variables, got 1"):
        graphc.grad(op(x, y, z), x)
    with pytest.raises(ValueError, match="pullback and lop_overrides are names of the same"):
        three(pullback=lambda *a: [], lop_overrides=lambda *a: [])


def test_overrides_of_pytensor_2_take_no_outputs():
    """A function, an op, or a list with either, None or a placeholder; pickles and compares as others."""
    x, g = pt.dvectors("x", "g")
    by_op = OpFromGraph([x, g], [x * g * 10])
    for rule in (doubled, by_op, [doubled], [by_op]):
        op = OpFromGraph([x], [pt.exp(x)], grad_overrides=rule)
        assert op == OpFromGraph([x], [pt.exp(x)], grad_overrides=rule) != OpFromGraph([x], [pt.exp(x)])
        for each in (op, pickle.loads(pickle.dumps(op))):
            np.testing.assert_allclose(run([x], graphc.grad(each(x).sum(), x), [2.0, 3.0]), [20.0, 30.0])
    mixed = OpFromGraph([x, g], [x * g], grad_overrides=[lambda xs, gs: xs[1] * gs[0] * 10, None])
    slopes = run([x, g], graphc.grad(mixed(x, g).sum(), [x, g]), [2.0], [3.0])
    np.testing.assert_allclose(slopes, [[30.0], [2.0]])
    nowhere = OpFromGraph([x], [pt.exp(x)], grad_overrides=[graphc.gradient.disconnected_type()])
    assert run([x], graphc.grad(nowhere(x).sum(), x, disconnected_inputs="ignore"), [2.0]) == 0
    for name in ("pullback", "lop_overrides", "rop_overrides", "grad_overrides"):
        with pytest.raises(
            ValueError, match=f"{name} is a function, an op, or a list of these, got 'default'"
        ):
            OpFromGraph([x], [x * 2], **{name: "default"})
        with pytest.raises(TypeError, match="got the variable g"):
            OpFromGraph([x], [x * 2], **{name: g})
    with pytest.raises(ValueError, match="pullback and grad_overrides are names of the same"):
        OpFromGraph([x], [x * 2], pullback=doubled, grad_overrides=doubled)


def doubled(inputs, cotangents):
    return [inputs[0] * cotangents[0] * 10]


def test_narrower_inputs_narrow_the_outputs():
    x = pt.dvector("x")
    op = OpFromGraph([x], [x * 2])
    y = pt.vector("y", shape=(3,), dtype="float64")
    assert op(y).type.shape == (3,)
    assert op(x).type.shape == (None,)
    assert op(y).owner.op is op(y).owner.op


def test_arguments_are_checked():
    x, y = pt.dscalars("x", "y")
    with pytest.raises(TypeError, match="must be a list"):
        OpFromGraph((x,), [x])
    with pytest.raises(TypeError, match="must be variables"):
        OpFromGraph([x], [1.0])
    with pytest.raises(ValueError, match="more than once"):
        OpFromGraph([x, x], [x * 2])
    with pytest.raises(ValueError, match="add it to the inputs"):
        OpFromGraph([x], [x * y])
    with pytest.raises(NotImplementedError, match="takes no updates"):
        OpFromGraph([x], [x * 2], updates={})
    for unknown in ("lop_override", "on_unused_inputs"):
        with pytest.raises(TypeError, match=f"no keyword '{unknown}'; derivatives are given as pullback"):
            OpFromGraph([x], [x * 2], **{unknown: None})
    op = OpFromGraph([x], [x * 2])
    with pytest.raises(ValueError, match="takes 1 inputs, got 2"):
        op(x, y)


def test_jacobian_through_the_op():
    x = pt.vector("x", shape=(3,), dtype="float64")
    op = OpFromGraph([x], [x**2 * x.sum()])
    ours, theirs = run([x], [graphc.jacobian(op(x), x), graphc.jacobian(x**2 * x.sum(), x)], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(ours, theirs)


def test_pickle():
    x = pt.dvector("x")
    y = OpFromGraph([x], [pt.exp(x)], name="e")(x)
    x2, y2 = pickle.loads(pickle.dumps((x, y)))
    np.testing.assert_allclose(run([x2], y2, [0.5]), np.exp([0.5]))


def test_compiled_code_holds_the_inner_graph():
    x = pt.dvector("x")
    table = np.arange(50.0)
    inner = OpFromGraph([x], [pt.exp(x) * table.sum() + table[:3]], name="inner")
    outer = OpFromGraph([x], [inner(x) ** 2])
    y = outer(x)
    f = graphc.function([x], [y, graphc.grad(y.sum(), x)], mode="fast_run")
    assert not f.report.fallbacks
    expected = run([x], [y, graphc.grad(y.sum(), x)], [0.1, 0.2, 0.3])
    for got, want in zip(f([0.1, 0.2, 0.3]), expected, strict=True):
        np.testing.assert_allclose(got, want)


def test_a_large_constant_inside_is_an_argument_of_the_compiled_code():
    x = pt.dvector("x")
    table = pt.as_tensor_variable(np.arange(50.0))
    y = OpFromGraph([x], [x * table])(x)
    np.testing.assert_allclose(graphc.function([x], y)(np.ones(50)), np.arange(50.0))


def test_equal_graphs_are_equal_ops():
    x, y, a, b = pt.dscalars("xyab")
    op = OpFromGraph([x, y], [x + y * x])
    assert op == OpFromGraph([a, b], [a + b * a]) == op.clone()
    assert hash(op) == hash(OpFromGraph([a, b], [a + b * a]))
    others = [
        OpFromGraph([x, y], [x * y + x]),
        OpFromGraph([x, y], [x + y * x], inline=True),
        OpFromGraph([x, y], [x + y * x], pullback=lambda i, o, g: [g[0], g[0]]),
        OpFromGraph([x, y], [x + y * x, x]),
        OpFromGraph([x, y], [x + y * x], destroy_map={0: (0,)}),
        OpFromGraph([x, pt.fscalar()], [x]),
    ]
    assert len({op, *others}) == 7 and others[4](x, y).eval({x: 2.0, y: 3.0}) == 8.0


def test_overrides_and_shared_variables_count_in_equality():
    x = pt.dscalar("x")
    one, other = graphc.shared(1.0), graphc.shared(1.0)
    assert OpFromGraph([x], [x + one]) == OpFromGraph([x], [x + one]) != OpFromGraph([x], [x + other])

    def op(rule):
        return OpFromGraph([x], [x * 2], pullback=rule)

    def refuses(inputs, outputs, cotangents):
        raise NotImplementedError

    assert op(lambda i, o, g: [g[0] * 3]) == op(lambda i, o, g: [g[0] * 3])
    assert op(lambda i, o, g: [g[0] * 3]) != op(lambda i, o, g: [g[0] * 4])
    assert op([refuses]) == op([refuses]) != op([lambda i, o, g: g[0]])
    assert op(refuses) != op(lambda i, o, g: [g[0]])
    assert op(lambda i, o, g: [graphc.gradient.disconnected_type()]) != op(lambda i, o, g: [g[0]])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What constant masks leave equal elements of is computed once, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import toposort
from pytensor.raise_op import Assert
from pytensor.tensor.elemwise import Elemwise

import graphc.interop.pytensor  # noqa: F401
from graphc.interop.pytensor.masks import computed_once

Y = np.array([0.5, 2.5, 1.5, 2.5, 2.5, 0.25])
a, b, v = pt.dscalar("a"), pt.dscalar("b"), pt.tensor("v", shape=(6,))


def shapes_of(name, outputs):
    """The shapes in which a scalar function is computed."""
    nodes = [node for node in toposort(outputs) if isinstance(node.op, Elemwise)]
    return [node.outputs[0].type.shape for node in nodes if type(node.op.scalar_op).__name__ == name]


def check(outputs, values):
    inputs = [x for x in (a, b, v) if x.name in values]
    found = []
    for mode in ("FAST_COMPILE", "GRAPHC"):
        f = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        found.append(f(*(values[x.name] for x in inputs)))
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_censored_values_are_one_value():
    y = pt.constant(Y)
    density = pt.switch(pt.eq(y, 2.5), pt.log(pt.gammaincc(a, b * y)), -b * y).sum()
    outputs = [density, *pytensor.grad(density, [a, b])]
    made = computed_once(outputs)
    assert set(shapes_of("GammaIncC", outputs)) == {(6,)}
    assert set(shapes_of("GammaIncC", made)) == {(1,)}
    assert set(shapes_of("ScalarLoop", made)) == {(1,)}
    check(outputs, {"a": 2.0, "b": 1.5})


def test_checks_and_sizes_found_late_are_seen_through():
    y, six = pt.constant(Y), pt.constant(np.array([6]))[0]
    log = Assert("a > 0")(pt.log(pt.gammainc(a, b * y)), pt.gt(a, 0))
    density = pt.switch(pt.eq(y, 2.5), pt.log1mexp(pt.alloc(log, six)), -b * y).sum()
    outputs = [density, *pytensor.grad(density, [a, b])]
    made = computed_once(outputs)
    assert {shape[0] for shape in shapes_of("GammaInc", outputs)} == {6}
    for name in ("GammaInc", "ScalarLoop", "Log1mexp", "Expm1"):
        assert set(shapes_of(name, made)) == {(1,)}
    check(outputs, {"a": 2.0, "b": 1.5})
    f = pytensor.function([a, b], outputs, mode="GRAPHC")
    with pytest.raises(AssertionError, match="a > 0"):
        f(-1.0, 1.0)
    # One number for all, rows of a matrix, and what is of the same size but no function by element.
    rows = pt.alloc(pt.exp(b * y), 2, six)
    spread = [pt.alloc(pt.exp(a), six), rows[0], pt.alloc(pt.cumsum(pt.exp(b * y)), six)]
    check([pt.switch(pt.eq(y, 2.5), pt.sin(x), y) for x in spread], {"a": 2.0, "b": 0.5})


def test_both_sides_and_masks_of_masks():
    y = pt.constant(np.tile(Y, (2, 1)))
    inner = pt.switch(pt.lt(y, 2), pt.exp(a * y), pt.sin(b * y))
    outer = pt.switch(pt.eq(y, 0.25), pt.cos(y + a), inner)
    made = computed_once([outer])
    assert shapes_of("Sin", made) == shapes_of("Cos", made) == [(1, 1)]
    assert shapes_of("Exp", made) == [(2, 6)]
    check([outer, *pytensor.grad(outer.sum(), [a, b])], {"a": 0.3, "b": -2.0})


@pytest.mark.parametrize(
    "make",
    [
        lambda y: pt.exp(y) + pt.switch(pt.eq(y, 2.5), pt.exp(y), 0),  # all elements are read elsewhere
        lambda y: pt.switch(pt.gt(y, 0.4), pt.exp(y), 0),  # those that are read differ
        lambda y: pt.switch(pt.eq(y, v), pt.exp(y), 0),  # a mask that is not known
        lambda y: pt.switch(pt.eq(y, 2.5), pt.exp(y * v), 0),  # more than constants
        lambda y: pt.switch(pt.eq(y, 7.0), pt.exp(y), 0),  # none is read
        lambda y: pt.switch(pt.eq(y, 2.5), pt.cumsum(pt.exp(y)), 0),  # not elementwise
    ],
    ids="elsewhere different unknown variable none cumulative".split(),
)
def test_what_is_needed_of_all_elements_stays(make):
    result = make(pt.constant(Y))
    assert (6,) in shapes_of("Exp", computed_once([result]))
    check([result], {"v": np.arange(6.0)})


def test_factors_of_zeros_are_not_read():
    y = pt.constant(Y)
    masked = pt.switch(pt.eq(y, 2.5), a, 0.0)
    made = computed_once([-masked / y * pt.exp(y)])
    assert shapes_of("Exp", made) == [(1,)]
    # The zeros of a difference are none of a mask.
    made = computed_once([(masked - b) * pt.exp(y)])
    assert shapes_of("Exp", made) == [(6,)]
    check([-masked / y * pt.exp(y), (masked - b) * pt.exp(y)], {"a": 2.0, "b": 3.0})


def test_zeros_of_products_of_masks_stay():
    y = pt.constant(Y)
    once, low = pt.switch(pt.eq(y, 2.5), a + y, 0.0), pt.switch(pt.eq(y, 0.25), 0.0, b * y)
    other = pt.switch(pt.eq(y, 0.5), a * y, 0.0)
    products = [
        once * once,
        once * other,
        other * once,
        once * low,
        low * once,
        (once * low) / (b * y) * other,
    ]
    made = computed_once(products)
    check(products, {"a": 2.0, "b": 3.0})
    expected = [x.eval({a: 2.0, b: 3.0}, on_unused_input="ignore", mode="FAST_COMPILE") for x in products]
    found = [x.eval({a: 2.0, b: 3.0}, on_unused_input="ignore", mode="FAST_COMPILE") for x in made]
    np.testing.assert_allclose(found, expected)


def test_a_graph_without_masks_is_the_same():
    outputs = [pt.exp(v), pt.switch(pt.gt(v, 0), v, 0)]
    assert all(new is old for new, old in zip(computed_once(outputs), outputs, strict=True))


@pytest.mark.parametrize("shape", [(6,), (None,)])
def test_slopes_of_what_a_mask_leaves_out_are_zero(shape):
    """Conditions on the value itself add zeros of its shape to the derivatives, before these are multiplied."""
    x = pt.tensor("x", shape=shape)
    y = pt.log(x)
    is_out = pt.isnan(y) | pt.isinf(y)
    costs = [pt.switch(is_out, 0, y), pt.switch(is_out, 0, y**2), pt.switch(is_out, 0, y) * x]
    value = np.array([-1.0, 0.0, 2.0, np.inf, 0.5, 3.0])
    f = pytensor.function([x], pytensor.grad(sum(cost.sum() for cost in costs), x), mode="GRAPHC")
    with np.errstate(all="ignore"):
        slopes = 1 / value + 2 * np.log(value) / value + np.log(value) + 1
    wanted = np.where(np.isfinite(np.log(value)), slopes, 0.0)
    np.testing.assert_allclose(f(value), wanted, rtol=1e-12)


# What happens to zeros of a mask before they are multiplied; the mask itself goes the same way.
MOVES = (
    lambda w: w.T.dimshuffle(0, "x", 1),
    lambda w: w[1:, ::-1],
    lambda w: w[1, 2],
    lambda w: w[:, [2, 0, 0]],
    lambda w: w.reshape((-1,)),
    lambda w: pt.broadcast_to(w, (2, *w.shape)).sum(axis=0),
    lambda w: w.astype("float32").astype("float64"),
    lambda w: -w / 3,
)
# Sums of what one condition masks.
SUMS = (
    lambda w: w.sum(),
    lambda w: w.sum(axis=1, keepdims=True),
    lambda w: -pt.broadcast_to(w.T[1:].reshape((-1, 1)), (w.size - w.shape[0], 2)).sum(axis=1)[::2] / 7,
)


@pytest.mark.parametrize("mode", ["GRAPHC", "GRAPHC_REWRITTEN"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(3, 4), (None, None)])
def test_zeros_of_a_mask_stay_wherever_they_are_moved(mode, dtype, shape):
    """Of masks of all elements, of rows and of one number, whichever side is 0."""
    x, c = pt.tensor("x", dtype=dtype, shape=shape), pt.dscalar("c")
    cases = [(pt.gt(c, 0.75), (*MOVES, *SUMS, lambda w: w.sum(axis=0)))]
    cases += [(pt.gt(x, c * 100), MOVES), (pt.gt(x[:, 0][:, None], c * 100), (*MOVES, SUMS[1]))]
    cases += [(pt.gt(x[0], c * 100), (*MOVES, lambda w: w.sum(axis=0, keepdims=True)))]
    outputs = []
    for condition, moves in cases:
        for masked in (pt.switch(condition, x, 0), pt.switch(~condition, pt.zeros_like(x), x)):
            outputs += [move(masked) * pt.exp(1000 * c) for move in moves]
    f = pytensor.function([x, c], outputs, mode=mode)
    value = np.arange(1, 13, dtype=dtype).reshape(3, 4)
    assert [i for i, result in enumerate(f(value, 0.72)) if not (result == 0).all()] == []
    assert np.isinf(f(value, 0.8)[0]).all() and np.isinf(f(value * 100, 0.72)[-1]).all()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The NaN guard: which op is named, where, in which iteration, and what is let through."""

import warnings

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import NanGuardError
from graphc.graph import Apply, Op
from graphc.ops.ifelse import ifelse


def guarded(inputs, outputs, action="raise", **options):
    return graphc.function(inputs, outputs, nan_guard=action, **options)


def test_the_first_op_is_named():
    x = pt.dmatrix("x")
    y = pt.log(x)
    z = (y * 2.0).sum()
    f = guarded([x], z)
    assert f(np.ones((2, 2))) == 0
    line = y.owner.location.line
    with pytest.raises(
        NanGuardError, match=rf"log \(made at .*test_nan_guard.py:{line} .*NaN at index \(1, 0\)"
    ):
        f(np.array([[1.0, 1.0], [-2.0, -1.0]]))
    with pytest.raises(NanGuardError, match=r"has made -Inf at index \(0, 1\); its inputs there are 0.0"):
        f(np.array([[1.0, 0.0], [1.0, 1.0]]))
    with pytest.raises(FloatingPointError, match=r"and 1 more of 4 elements"):
        f(np.array([[1.0, 1.0], [-2.0, -1.0]]))
    assert f(np.ones((2, 2))) == 0
    assert "every op runs in Python and is checked for NaN and infinity (raise)" in str(f.report)


def test_values_that_are_given_are_no_fault():
    x = pt.dvector("x")
    f = guarded([x], [x * 2.0, pt.switch(x > 0.0, x, -np.inf)])
    given = np.array([np.nan, np.inf, 1.0])
    assert np.isnan(f(given)[0][0]) and f(-np.ones(1))[1] == -np.inf
    # An infinity explains infinities, but no NaN.
    g = guarded([x], x - x)
    with pytest.raises(
        NanGuardError, match=r"sub .*has made NaN at index \(1,\); its inputs there are inf, inf"
    ):
        g(np.array([1.0, np.inf]))
    with pytest.raises(NanGuardError, match="has made Inf"):
        guarded([x], pt.exp(x))(np.array([1000.0]))


def test_only_floating_point_is_looked_at():
    x, z = pt.lvector("x"), pt.zvector("z")
    assert guarded([x], x * 2)(np.array([1])).tolist() == [2]
    with pytest.raises(NanGuardError, match=r"the infinity|NaN"):
        guarded([z], 1.0 / z)(np.zeros(1, "complex128"))


def test_a_warning_for_the_first_op_of_each_call():
    x = pt.dvector("x")
    f = guarded([x], [pt.log(x), pt.sqrt(x)], "warn")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="has made NaN") as caught:
            result = f(np.array([-1.0]))
        assert len(caught) == 1 and np.isnan(result[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.array([1.0]))


def test_iterations_are_named():
    x = pt.dvector("x")
    y = graphc.scan(lambda v: pt.log(v), sequences=[x], name="inner", return_updates=False)
    f = guarded([x], y)
    np.testing.assert_allclose(f(np.array([1.0, np.e])), [0.0, 1.0])
    with pytest.raises(NanGuardError, match=r"log .*has made NaN, in iteration 2 of Scan{inner, for}"):
        f(np.array([1.0, 1.0, -1.0]))
    m = pt.dmatrix("m")

    def row(r):
        return graphc.scan(lambda v: pt.log(v), sequences=[r], name="inner", return_updates=False)

    z = graphc.scan(row, sequences=[m], name="outer", return_updates=False)
    g = guarded([m], z)
    for _ in range(2):
        with pytest.raises(
            NanGuardError, match=r"in iteration 2 of Scan{inner, for}, in iteration 1 of Scan{outer"
        ):
            g(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]))


def test_branches_that_are_not_chosen_are_not_looked_at():
    c, x = pt.bscalar("c"), pt.dvector("x")
    f = guarded([c, x], ifelse(c, pt.log(x), x))
    assert f(np.int8(0), -np.ones(1)).tolist() == [-1.0]
    with pytest.raises(NanGuardError, match="log"):
        f(np.int8(1), -np.ones(1))


def test_ops_of_the_user_and_ops_in_place():
    class Spoil(Op):
        __props__ = ()
        destroy_map = {0: [0]}

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            inputs[0][...] = np.nan
            output_storage[0][0] = inputs[0]

    x = pt.dvector("x")
    with pytest.raises(NanGuardError, match=r"Spoil.*its inputs there are 2.0"):
        guarded([x], Spoil()(x * 2.0))(np.ones(1))


def test_updates_do_not_happen():
    x = pt.dvector("x")
    state = graphc.shared(np.ones(1), "state")
    f = guarded([x], [], updates={state: state / x})
    with pytest.raises(NanGuardError, match="true_div"):
        f(np.zeros(1))
    assert state.get_value() == 1


def test_the_setting_and_other_ways_to_functions():
    x = pt.dvector("x")
    with graphc.config.change_flags(nan_guard="raise"):
        f = graphc.function([x], [pt.log(x), x])
        off = graphc.function([x], pt.log(x), nan_guard="off")
    assert np.isnan(off(-np.ones(1)))
    for call in (f, f.copy(), lambda v: f(v, outputs_wanted=[0])):
        with pytest.raises(NanGuardError):
            call(-np.ones(1))
    with f.trace() as trace, pytest.raises(NanGuardError):
        f(-np.ones(1))
    assert trace.events[-1].error == "NanGuardError"
    with pytest.raises(ValueError, match="nan_guard must be 'off', 'warn' or 'raise', got 'on'"):
        graphc.function([x], x * 2.0, nan_guard="on")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared variables and updates."""

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.type import TensorType

A = np.array([1.0, 2.0, 3.0])


def test_values_are_private_unless_borrowed():
    data = A.copy()
    s = graphc.shared(data, "s")
    data[0] = 9
    assert s.get_value().tolist() == [1, 2, 3]
    s.get_value()[0] = 9
    assert s.get_value().tolist() == [1, 2, 3]
    s.get_value(borrow=True)[0] = 9
    assert s.get_value().tolist() == [9, 2, 3]
    lent = graphc.shared(data, borrow=True)
    assert lent.get_value(borrow=True) is data
    s.set_value(data, borrow=True)
    assert s.get_value(borrow=True) is data


def test_types():
    assert graphc.shared(A).type == TensorType("float64", (None,))
    assert graphc.shared(A, shape=(3,)).type == TensorType("float64", (3,))
    assert graphc.shared(1).type == TensorType("int64", ())
    assert graphc.shared(True).type == TensorType("bool", ())
    with graphc.config.change_flags(floatX="float32"):
        assert graphc.shared(1.5).dtype == "float32" and graphc.shared(A).dtype == "float64"
    with pytest.raises(TypeError, match="shared_constructor"):
        graphc.shared("text")
    with pytest.raises(TypeError, match="symbolic"):
        graphc.shared(pt.vector())
    assert "test_shared.py" in str(graphc.shared(A).location)


def test_set_value_keeps_arrays_canonical():
    s = graphc.shared(np.ones((2, 3)), "s")
    for value in (np.ones((3, 2)).T, np.ones((4, 6))[::2, ::2], np.ones((2, 3)).astype(">f8"), [[1, 2]]):
        for borrow in (False, True):
            s.set_value(value, borrow=borrow)
            held = s.get_value(borrow=True)
            assert held.flags.carray and held.dtype == np.float64 and held.dtype.isnative
            np.testing.assert_array_equal(held, value)
    with pytest.raises(TypeError, match="shared variable s"):
        s.set_value(A)
    with pytest.raises(TypeError):
        graphc.shared(A, shape=(3,)).set_value(np.ones(4))
    s.zero()
    assert not s.get_value().any()


def test_container_and_pickle():
    s = graphc.shared(A, "s")
    assert isinstance(s.container, list) and len(s.container) == 1
    assert s.clone().container is s.container
    t = pickle.loads(pickle.dumps(s))
    assert t.get_value().tolist() == [1, 2, 3] and t.name == "s"


def test_updates_see_old_values(mode):
    a, b = graphc.shared(1.0, "a"), graphc.shared(10.0, "b")
    f = graphc.function([], [a, b], updates={a: b, b: a + b}, mode=mode)
    assert [float(v) for v in f()] == [1, 10]
    assert (a.get_value(), b.get_value()) == (10, 11)
    assert [float(v) for v in f()] == [10, 11]


def test_updates_alone(mode):
    x = pt.dvector("x")
    s = graphc.shared(A, "s")
    f = graphc.function([x], updates=[(s, x)], mode=mode)
    value = 2 * A
    assert f(value) is None
    value[0] = 99
    assert s.get_value().tolist() == [2, 4, 6]
    f(np.arange(6.0)[::2])
    assert s.get_value(borrow=True).flags.carray and s.get_value().tolist() == [0, 2, 4]


def test_functions_share(mode):
    s = graphc.shared(0.0, "s")
    x = pt.dscalar("x")
    add = graphc.function([x], updates={s: s + x}, mode=mode)
    read = graphc.function([], s * 2.0, mode=mode)
    add(1.5)
    add(2)
    assert read() == 7
    s.set_value(1.0)
    assert read() == 2


def test_failed_calls_change_nothing(mode):
    x, y = pt.dvectors("x", "y")
    s, t = graphc.shared(A, "s"), graphc.shared(A, "t")
    f = graphc.function([x, y], x + y, updates={s: s * 2.0, t: x + y}, mode=mode)
    with pytest.raises(ValueError, match=r"test_shared\.py"):
        f(A, np.ones(2))
    with pytest.raises(TypeError):
        f(A, "text")
    with pytest.raises(ValueError):
        f(A, A, out=np.empty(5))
    assert s.get_value().tolist() == t.get_value().tolist() == [1, 2, 3]
    f(A, A)
    assert s.get_value().tolist() == t.get_value().tolist() == [2, 4, 6]


def test_update_errors():
    s = graphc.shared(A, "s")
    x = pt.dvector("x")
    with pytest.raises(
        TypeError, match=r"(?s)update of the shared variable s .*test_shared.py.*astype\('float64'\)"
    ):
        graphc.function([], updates={s: pt.constant(A) > 1})
    with pytest.raises(TypeError, match="update of the shared variable s"):
        graphc.function([], updates={s: pt.sum(s)})
    with pytest.raises(TypeError, match="only shared variables"):
        graphc.function([x], updates={x: x})
    with pytest.raises(ValueError, match="updated twice"):
        graphc.function([], updates=[(s, s), (s, s)])
    with pytest.raises(TypeError, match="pairs"):
        graphc.function([], updates=[s])


def test_static_shape_of_updates(mode):
    x = pt.dvector("x")
    s = graphc.shared(A, "s", shape=(3,))
    f = graphc.function([x], updates={s: x}, mode=mode)
    f(2 * A)
    with pytest.raises((ValueError, AssertionError, TypeError)):
        f(np.ones(4))
    assert s.get_value().tolist() == [2, 4, 6]


def test_default_updates(mode):
    s = graphc.shared(0.0, "s")
    s.default_update = s + 1.0
    f = graphc.function([], s * 10.0, mode=mode)
    f()
    assert f() == 10 and s.get_value() == 2
    graphc.function([], s + 0.0, no_default_updates=True, mode=mode)()
    graphc.function([], s + 0.0, no_default_updates=[s], mode=mode)()
    graphc.function([], s + 0.0, updates={s: s + 100.0}, mode=mode)()
    assert s.get_value() == 102


def test_default_updates_of_what_inputs_replace(mode):
    """A shared variable that only an input is computed from is not part of the graph."""
    s, t = graphc.shared(1.0), graphc.shared(10.0)
    s.default_update, t.default_update = s + 1, t + s
    inner = 2 * s
    assert graphc.function([inner], inner, mode=mode)(21.0) == 21 and s.get_value() == 1
    assert graphc.function([inner], inner + t, mode=mode)(21.0) == 31
    assert (s.get_value(), t.get_value()) == (2, 11)
    cut = graphc.function([inner], inner * 3, givens={t: s}, updates={t: inner}, mode=mode)
    assert cut(1.0) == 3 and (s.get_value(), t.get_value()) == (2, 1)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and ops of the user's own: Python floats in and out, ops that run in Python beside compiled ones."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function.shared import shared_constructor
from graphc.graph import Apply, Op, Type
from graphc.graph.shared import SharedVariable


class DoubleType(Type):
    def filter(self, value, strict=False, allow_downcast=None):
        if isinstance(value, float):
            return value
        if strict or (not allow_downcast and float(value) != value):
            raise TypeError(f"expected a float, got {value!r}")
        return float(value)


double = DoubleType()


class DoubleMul(Op):
    __props__ = ()
    itypes = (double, double)
    otypes = (double,)

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * inputs[1]


class ToDouble(Op):
    """A 0-d tensor as a Python float."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor_variable(x)], [double()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = float(inputs[0])


class PythonCube(Op):
    """A tensor op without a native form."""

    __props__ = ()

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] ** 3


class WrongDtype(PythonCube):
    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0].astype("int8")


def test_doubles_in_and_out(mode):
    x, y = double("x"), double("y")
    f = graphc.function([x, y], DoubleMul()(x, DoubleMul()(y, 2.0)), mode=mode)
    result = f(3.0, y=4)
    assert type(result) is float and result == 24
    with pytest.raises(TypeError, match=r"(?s)input 0 'x' of type DoubleType .*test_user_types.py"):
        f(2**53 + 1, 1.0)
    g = graphc.function([x], DoubleMul()(x, x), mode=mode, allow_input_downcast=True)
    assert g(2**53 + 1) == float(2**53) ** 2


def test_doubles_pass_through(mode):
    x = double("x")
    assert graphc.function([x], {"x": x}, mode=mode)(1.5) == {"x": 1.5}


def test_doubles_beside_tensors(mode):
    x, k = pt.dvector("x"), double("k")
    total = ToDouble()(pt.sum(pt.exp(x)))
    f = graphc.function([x, k], [DoubleMul()(total, k), x + 1.0], mode=mode)
    scaled, shifted = f([0, 0], 2.0)
    assert scaled == 4.0 and shifted.tolist() == [1, 1]


def test_python_ops_between_native_ones(mode):
    x = pt.dvector("x")
    y = PythonCube()(pt.exp(x)) + x
    f = graphc.function([x], [y * 2.0, pt.exp(x)], mode=mode, name="mixed")
    a = np.array([0.0, 1.0])
    for got, expected in zip(f(a), [(np.exp(a) ** 3 + a) * 2, np.exp(a)], strict=True):
        np.testing.assert_allclose(got, expected)
    if mode in ("fast_run", "fast_compile"):
        assert [fallback.op for fallback in f.report.fallbacks] == ["PythonCube"]
        assert "PythonCube" in str(f.report) and f.report.native_nodes > 0


def test_broken_promises_name_the_op(mode):
    x = pt.dvector("x")
    f = graphc.function([x], WrongDtype()(x), mode=mode)
    with pytest.raises(
        TypeError, match=r"(?s)expected dtype float64.*got .*int8.*WrongDtype\(x\).*test_user_types.py"
    ):
        f([1.0])


def test_shared_of_a_user_type(mode):
    class Money(float):
        pass

    @shared_constructor.register(Money)
    def _(value, name=None, strict=False, allow_downcast=None, **kwargs):
        return SharedVariable(double, value, strict, allow_downcast, name)

    s = graphc.shared(Money(2.0), "s")
    f = graphc.function([], s, updates={s: DoubleMul()(s, s)}, mode=mode)
    assert f() == 2.0 and s.get_value() == 4.0

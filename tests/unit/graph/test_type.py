# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contract of Type, on a type of Python floats and on TensorType."""

import pickle

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.type import DTYPES, TensorType
from graphc.graph.type import Type, register_transfer, transfer


class DoubleType(Type):
    """Python floats; the example type of the user guide."""

    def filter(self, value, strict=False, allow_downcast=None):
        if isinstance(value, float):
            return value
        if strict:
            raise TypeError(f"expected a float, got {value!r}")
        converted = float(value)
        if not allow_downcast and converted != value:
            raise TypeError(f"converting {value!r} to float changes it")
        return converted

    def values_eq_approx(self, a, b, tolerance=1e-4):
        return abs(a - b) / (abs(a) + abs(b) or 1) < tolerance


double = DoubleType()


def test_double_type_filter():
    assert double.filter(1.5, strict=True) == 1.5
    assert double.filter(2) == 2.0
    with pytest.raises(TypeError):
        double.filter(2, strict=True)
    big = 2**53 + 1
    with pytest.raises(TypeError, match="changes it"):
        double.filter(big)
    assert double.filter(big, allow_downcast=True) == float(big)
    assert double.filter_inplace(3, None) == 3.0
    assert double.is_valid_value(1.0) and not double.is_valid_value("one")
    assert not double.is_valid_value(1) and double.is_valid_value(1, strict=False)


def test_double_type_relations_and_variables():
    other = DoubleType()
    assert double == other and hash(double) == hash(other) and double != TensorType("float64", ())
    assert double.in_same_class(other) and double.is_super(other)
    assert double.clone() == double
    x = double("x")
    assert isinstance(x, Variable) and x.name == "x" and x.type is double and x.owner is None
    assert double.make_variable("y").name == "y"
    c = double.make_constant(2)
    assert isinstance(c, Constant) and c.data == 2.0 and c.value == 2.0
    assert c.equals(double.make_constant(2.0)) and not c.equals(double.make_constant(3.0))
    assert double.filter_variable(x) is x and double.convert_variable(x) is x
    assert double.filter_variable(4).data == 4.0
    assert double.convert_variable(pt.dscalar()) is None
    with pytest.raises(TypeError, match="DoubleType is expected"):
        double.filter_variable(pt.dscalar("s"))
    assert double.values_eq(1.0, 1.0) and double.values_eq_approx(1.0, 1.00001)
    a = object()
    assert double.may_share_memory(a, a) and not double.may_share_memory(a, object())
    assert double.get_size(double.get_shape_info(1.0)) == 0


def test_type_props_identify():
    class Sized(Type):
        __props__ = ("n",)

        def __init__(self, n, note=""):
            self.n, self.note = n, note

        def filter(self, value, strict=False, allow_downcast=None):
            return value

    assert Sized(1, "a") == Sized(1, "b") and Sized(1) != Sized(2)
    assert hash(Sized(1, "a")) == hash(Sized(1, "b"))
    assert Sized(1).clone(n=3).n == 3


def test_type_without_filter_says_so():
    with pytest.raises(NotImplementedError, match="must define filter"):
        Type().filter(1)


def test_register_transfer():
    def to_moon(variable, target):
        return variable.copy() if target == "moon" else None

    register_transfer(to_moon)
    x = pt.vector("x")
    assert x.transfer("moon").owner is not None
    assert transfer(x, "cpu") is x
    with pytest.raises(ValueError, match="mars"):
        x.transfer("mars")


@pytest.mark.parametrize(
    ("shape", "text"),
    [((2, None), "(2, ?)"), ((), "()"), ((None,), "(?,)"), ((1, None, 3), "(1, ?, 3)")],
)
def test_tensor_type_text_and_shape(shape, text):
    t = TensorType("float64", shape)
    assert str(t) == repr(t) == f"TensorType(float64, {text})"
    assert t.ndim == len(shape) and t.shape == shape
    assert t.broadcastable == tuple(s == 1 for s in shape)


def test_tensor_type_construction():
    assert TensorType("floatX", ()).dtype == "float64"
    with graphc.config.change_flags(floatX="float32"):
        assert pt.vector().dtype == "float32"
    assert TensorType(np.float32, (np.int64(2),)).shape == (2,)
    assert TensorType("int8", broadcastable=(True, False)).shape == (1, None)
    with pytest.raises(TypeError, match="unsupported dtype"):
        TensorType("object", ())
    with pytest.raises(ValueError, match="at least 0"):
        TensorType("int8", (-1,))
    with pytest.raises(TypeError, match="int or None"):
        TensorType("int8", ("a",))
    for dtype in DTYPES:
        assert pickle.loads(pickle.dumps(TensorType(dtype, (3, None)))) == TensorType(dtype, (3, None))


def test_tensor_type_relations():
    narrow, wide = TensorType("float64", (2, 3)), TensorType("float64", (2, None))
    assert wide.is_super(narrow) and not narrow.is_super(wide) and wide.is_super(wide)
    assert wide.in_same_class(narrow) and not wide.in_same_class(TensorType("float64", (1, None)))
    assert not wide.is_super(TensorType("float32", (2, 3))) and not wide.is_super(double)
    assert wide == TensorType("float64", (2, None)) != narrow
    assert wide.clone(dtype="int8", shape=(4,)) == TensorType("int8", (4,))


def test_filter_variable_narrows():
    x = TensorType("float64", (2, None))("x")
    narrower = TensorType("float64", (2, 3))("n")
    assert x.type.filter_variable(narrower) is narrower
    merged = TensorType("float64", (None, 3)).filter_variable(x)
    assert merged.type == TensorType("float64", (2, 3))
    assert type(merged.owner.op).__name__ == "SpecifyShape"
    with pytest.raises(TypeError):
        TensorType("float64", (4, None)).filter_variable(x)
    with pytest.raises(TypeError):
        TensorType("float32", (2, None)).filter_variable(x)
    constant = x.type.filter_variable([[1, 2, 3], [4, 5, 6]])
    assert constant.type == TensorType("float64", (2, 3))


def test_tensor_type_values():
    t = TensorType("float32", (None,))
    a = np.array([1, np.nan], "float32")
    assert t.values_eq(a, a.copy()) and not t.values_eq(a, a.astype("float64"))
    assert t.values_eq_approx(a, a * np.float32(1 + 1e-6)) and not t.values_eq_approx(a, a * 2)
    assert t.may_share_memory(a, a[1:]) and not t.may_share_memory(a, a.copy())
    assert t.get_size(t.get_shape_info(a)) == 8
    storage = np.zeros(2, "float32")
    assert t.filter_inplace([3, 4], storage) is storage and storage.tolist() == [3, 4]
    assert t.filter_inplace([3, 4, 5], storage) is not storage


def test_tensor_types_with_other_parts():
    kind = pt.TensorType("float32", shape=(1, None), name="x")
    assert kind.clone(broadcastable=(False, True)).shape == (None, 1)
    assert kind.clone(dtype="int8").shape == (1, None) and kind.clone("int8", (2, 3)).shape == (2, 3)
    assert kind.clone().name == "x" and kind.clone(name="y").name == "y"
    with pytest.raises(TypeError, match="not both"):
        kind.clone(shape=(2, 3), broadcastable=(False, False))
    with pytest.raises(TypeError, match="unexpected keyword"):
        kind.clone(rank=2)

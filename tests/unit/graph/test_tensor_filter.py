# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What TensorType.filter accepts."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.tensor.type import TensorType

f64 = TensorType("float64", (None,))
f32 = TensorType("float32", (None,))
s32 = TensorType("float32", ())
i8 = TensorType("int8", (None,))


def test_exact_array_is_not_copied():
    a = np.ones(3)
    assert f64.filter(a) is a and f64.filter(a, strict=True) is a
    strided = np.ones(6)[::2]
    assert f64.filter(strided) is strided


class Derived(np.ndarray):
    pass


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_classes_derived_from_ndarray(tmp_path):
    mapped = np.memmap(tmp_path / "x", "float64", "w+", shape=(3,))
    for value in (mapped, np.ones(3).view(Derived)):
        assert f64.filter(value) is value
        assert type(f32.filter(value, allow_downcast=True)) is not Derived
    x = pt.dmatrix("x")
    for mode in ("fast_run", "reference"):
        f = graphc.function([x], [x.ravel(), x], mode=mode)
        vector, same = f(np.matrix([[1.0, 2.0]]))
        assert vector.shape == (2,) and type(same) is np.ndarray
    assert graphc.shared(mapped).get_value().tolist() == [0, 0, 0]
    assert type(pt.constant(np.matrix([[1.0]])).data) is np.ndarray


def test_scalars_of_numpy_convert_when_kept():
    """Python numbers become them in NumPy's functions."""
    for target, value in ((s32, np.float64(0.5)), (TensorType("int32", ()), np.int64(7))):
        found = target.filter(value)
        assert found.dtype == target.numpy_dtype and found == value
    for target, value in ((s32, np.float64(0.1)), (TensorType("int8", ()), np.int64(300))):
        with pytest.raises(TypeError, match="changes when converted"):
            target.filter(value)
    n = pt.iscalar("n")
    assert graphc.function([n], n + 1)(np.arange(3).sum()) == 4


def test_constants_know_their_sizes():
    value = np.ones((2, 3))
    x = pt.TensorConstant(TensorType("float64", (None, 3)), value)
    assert x.type.shape == (2, 3)
    for shape in ((1, None), (None,)):
        with pytest.raises(ValueError, match="shape"):
            pt.TensorConstant(TensorType("float64", shape), value)
    for make in (pt.constant, pt.as_tensor_variable):
        with pytest.raises(NotImplementedError, match="fill"):
            make(np.ma.masked_greater(value, 0))


def test_shared_zero():
    value = np.ones(3)
    x = graphc.shared(value, borrow=True)
    x.zero(borrow=True)
    assert x.get_value(borrow=True) is value and not value.any()
    value[:] = 1
    x.zero()
    assert value.all() and not x.get_value().any()


def test_static_sizes_from_arrays():
    flags = TensorType("float64", broadcastable=np.array([True, False]))
    assert flags.shape == (1, None)
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="static size"):
            TensorType("float64", ("1", None))
    for make, good in ((pt.vector, (3,)), (pt.row, (1, 3)), (pt.tensor3, (2, None, 3))):
        assert make(shape=good).type.shape == good
        with pytest.raises(TypeError, match="must be a tuple"):
            make(shape=list(good))
        with pytest.raises(ValueError, match="length"):
            make(shape=(*good, None))
        with pytest.raises(TypeError, match="static size"):
            make(shape=(1.0,) * len(good))


def test_strict():
    with pytest.raises(TypeError, match="strict"):
        f64.filter([1.0], strict=True)
    with pytest.raises(TypeError, match="expected dtype float64"):
        f64.filter(np.ones(3, "float32"), strict=True)


@pytest.mark.parametrize("source", ["bool", "int8", "int32", "int64", "uint64", "float16", "float32"])
def test_arrays_widen(source):
    assert f64.filter(np.ones(3, source)).dtype == np.float64


@pytest.mark.parametrize(
    ("target", "value"),
    [
        (f32, np.ones(3)),
        (i8, np.ones(3, "int64")),
        (i8, np.ones(3)),
        (f64, np.ones(3, complex)),
        (s32, np.array(1.0)),
        (TensorType("uint8", (None,)), np.ones(3, "int8")),
    ],
)
def test_arrays_do_not_narrow_unless_allowed(target, value):
    for allow in (None, False):
        with pytest.raises(TypeError, match="allow_input_downcast"):
            target.filter(value, allow_downcast=allow)
    if not np.iscomplexobj(value):
        assert target.filter(value, allow_downcast=True).dtype == target.numpy_dtype


def test_python_values_convert_when_kept():
    assert i8.filter([1, 2, 127]).dtype == np.int8
    assert f32.filter([0.5, 2]).tolist() == [0.5, 2]
    for value in ([1, 128], [0.5], [1j]):
        with pytest.raises(TypeError, match="changes when converted"):
            i8.filter(value)
    assert i8.filter([300], allow_downcast=True).dtype == np.int8


def test_python_float_becomes_floatx():
    with pytest.raises(TypeError):
        s32.filter(0.1)
    with graphc.config.change_flags(floatX="float32"):
        assert s32.filter(0.1).dtype == np.float32
        with pytest.raises(TypeError):
            s32.filter(0.1, allow_downcast=False)
        with pytest.raises(TypeError):
            f32.filter(np.array([0.1]))


def test_rank_and_static_shape():
    with pytest.raises(TypeError, match=r"expected 1 .* got 2 with shape \(2, 2\)"):
        f64.filter(np.ones((2, 2)))
    with pytest.raises(TypeError, match=r"dimension 1: expected 3 .* got 4"):
        TensorType("float64", (None, 3)).filter(np.ones((2, 4)))
    assert TensorType("float64", (0,)).filter([]).shape == (0,)


def test_unusual_arrays():
    swapped = np.arange(3.0).astype(">f8")
    assert f64.filter(swapped).dtype.isnative and f64.filter(swapped).tolist() == [0, 1, 2]
    raw = np.zeros(25, "uint8")
    misaligned = raw[1:].view("float64")
    assert not misaligned.flags.aligned and f64.filter(misaligned).flags.aligned


@pytest.mark.parametrize("value", ["text", None, object(), [[1], [1, 2]], {"a": 1}])
def test_no_numbers(value):
    with pytest.raises(TypeError):
        f64.filter(value)


def test_symbolic_value_is_refused():
    with pytest.raises(TypeError, match="symbolic"):
        f64.filter(pt.vector("x"))

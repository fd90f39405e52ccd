# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call asks for is given or refused: sizes of parts, positions, shapes and dtypes of results."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.tensor as pt
from graphc import function, grad
from graphc.errors import ShapeError
from graphc.raise_op import CheckAndRaise

MODES = pytest.mark.parametrize("mode", ["fast_run", "reference"])


@MODES
def test_sizes_of_parts(mode):
    """Sizes that add up, but of which one is negative, are refused."""
    x, sizes = pt.vector("x"), pt.lvector("sizes")
    f = function([x, sizes], pt.split(x, sizes, 2), mode=mode)
    for part, right in zip(f(np.arange(4.0), [1, 3]), ([0.0], [1.0, 2.0, 3.0]), strict=True):
        np.testing.assert_array_equal(part, right)
    for wrong in ([5, -1], [-1, 5], [1, 2]):
        with pytest.raises(ValueError):
            f(np.arange(4.0), wrong)
    with pytest.raises(ValueError, match=r"at least 0|must be"):
        pt.split(x, [5, -1], 2)
    for number in (2, np.int64(2), pt.lscalar()):
        with pytest.raises(TypeError, match="array_split"):
            pt.split(x, number)


@MODES
def test_positions(mode):
    """`unravel_index` and `ravel_multi_index` refuse positions that the array does not have."""
    i = pt.lvector("i")
    apart = function([i], pt.unravel_index(i, (4, 5)), mode=mode)
    joined = function([i], pt.ravel_multi_index((i, i * 0), (4, 5)), mode=mode)
    np.testing.assert_array_equal(apart([0, 7, 19]), np.unravel_index([0, 7, 19], (4, 5)))
    np.testing.assert_array_equal(joined([0, 3]), [0, 15])
    dims = pt.lvector("dims")
    sized = function([i, dims], pt.ravel_multi_index((i, i), dims), mode=mode)
    np.testing.assert_array_equal(sized([0, 3], [4, 5]), [0, 18])
    with pytest.raises(ValueError):
        sized([0, 3], [4, 5, 6])
    for f, wrong in ((apart, (20, -1)), (joined, (4, -1))):
        for position in wrong:
            with pytest.raises(ValueError, match="out of bounds"):
                f([0, position])


@MODES
def test_joint_sizes(mode):
    """Sizes that are not known are compared when the graph is run."""
    n, m = pt.lscalars("nm")
    strict, loose = (
        function([n, m], pt.broadcast_shape((n,), (m,), arrays_are_shapes=True, **options)[0], mode=mode)
        for options in ({}, {"allow_runtime_broadcast": True})
    )
    assert strict(3, 3) == 3
    assert [int(loose(a, b)) for a, b in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 1))] == [3, 3, 3, 1, 0]
    for f, sizes in ((strict, (3, 2)), (strict, (3, 1)), (loose, (3, 2)), (loose, (0, 3))):
        with pytest.raises(AssertionError, match="broadcast"):
            f(*sizes)


@MODES
def test_number_of_sizes(mode):
    """A vector of sizes has as many as dimensions were asked for."""
    x, sizes = pt.matrix("x"), pt.lvector("sizes")
    f = function([x, sizes], x.reshape(sizes, ndim=2), mode=mode)
    assert f(np.ones((3, 4)), [2, 6]).shape == (2, 6)
    for wrong in ([3, 4, 1], [12]):
        with pytest.raises(ValueError):
            f(np.ones((3, 4)), wrong)


def test_dtype_of_products_and_means():
    """It is that of the result: operands are not rounded to it."""
    x = pt.constant([0.6, 0.7, 0.8])
    products = [
        pt.vecdot(x, x, dtype="int32"),
        pt.matvec(x[None], x, dtype="int32")[0],
        pt.vecmat(x, x[:, None], dtype="int32")[0],
        pt.matmul(x, x, dtype="int32"),
    ]
    mean = pt.constant(np.array([1, 2], np.int8)).mean(dtype="int64")
    assert {p.dtype for p in products} == {"int32"} and mean.dtype == "float64"
    *found, middle = function([], [*products, mean])()
    assert found == [1, 1, 1, 1] and middle == 1.5


def test_axis_of_join():
    """It may be known only when the graph is run."""
    axis, x, y = pt.lscalar("axis"), pt.matrix("x"), pt.tensor("y", shape=(2, 3))
    joined = pt.join(axis, x, y)
    f = function([axis, x, y], [joined, joined.shape, grad((joined**2).sum(), y)])
    for given, rows in ((0, 4), (1, 2), (-1, 2), (-2, 4)):
        value, shape, derivative = f(given, np.ones((2, 3)), np.zeros((2, 3)))
        assert value.shape == tuple(shape) == (rows, 12 // rows) and derivative.shape == (2, 3)
    with pytest.raises(IndexError):
        f(2, np.ones((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError):
        f(0, np.ones((2, 4)), np.zeros((2, 3)))
    z = pt.tensor("z", shape=(2, 5))
    f = function([axis, y, z], pt.join(axis, y, z))
    assert f(1, np.ones((2, 3)), np.ones((2, 5))).shape == (2, 8)
    with pytest.raises(IndexError):
        f(0, np.ones((2, 3)), np.ones((2, 5)))


def test_classes_of_errors():
    """Wrong calls raise what NumPy and what PyTensor raise."""
    x, y = pt.matrix("x"), pt.vector("y")
    numbers = pt.lvector("numbers")
    counted = function([numbers], pt.bincount(numbers, assert_nonneg=True))
    with pytest.raises(AssertionError, match="negative"):
        counted([1, -1])
    for error, call in (
        (TypeError, lambda: pt.repeat(y, pt.constant(np.uint64(2)))),
        (TypeError, lambda: pt.choose(y, [x, x])),
        (ValueError, lambda: pt.where(y, x)),
        (TypeError, lambda: y.take([0.0])),
        (IndexError, lambda: y[[0.0]]),
        (ValueError, lambda: pt.tile(y, 2.5)),
        (ValueError, lambda: pt.concat_with_broadcast([])),
        (TypeError, lambda: pt.zeros(2.5)),
        (ValueError, lambda: pt.sort(x, pt.fscalar())),
        (np.exceptions.AxisError, lambda: pt.scalar().sum(axis=1)),
        (TypeError, lambda: pt.set_subtensor(y[:2], x)),
        (ValueError, lambda: pt.set_subtensor(y[:2], x)),
        (ValueError, lambda: pt.sort(x, kind="quicksort", stable=True)),
    ):
        with pytest.raises(error):
            call()
    assert [f(pt.scalar(), axis=-1).type.ndim for f in (pt.sum, pt.max, pt.mean, pt.var, pt.argmax)] == [
        0
    ] * 5
    f = function([y], pt.specify_shape(y, (2,)))
    for error in (AssertionError, ValueError, ShapeError):
        with pytest.raises(error):
            f(np.ones(3))
    z = CheckAndRaise(OverflowError, "too large")(y, (y < 2).all())
    with pytest.raises(OverflowError, match="too large"):
        function([y], z)([3.0])


def test_constants():
    """Constants of constants, of lists of constants and of given dimensions; their signatures."""
    x = pt.constant(np.array([[2]], np.int8))
    assert pt.constant(x) is x and pt.constant(x, ndim=0).data == 2
    listed = pt.as_tensor_variable([pt.constant(1), pt.constant(2)])
    np.testing.assert_array_equal(listed.data, [1, 2])
    nan = [pt.constant([np.nan, 1.0]) for _ in range(2)]
    assert nan[0].signature() == nan[1].signature() != pt.constant([0.0, 1.0]).signature()
    assert pt.repeat(pt.tensor(shape=(None, 3)), [1, 0, 2], axis=1).type.shape == (None, 3)

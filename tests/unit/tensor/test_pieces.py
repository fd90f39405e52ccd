# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are put together from others: what tables of cases cannot say, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

X = np.arange(24.0).reshape(2, 3, 4)


def run(output, **inputs):
    """The value of an output whose inputs have names."""
    variables = [v for v in graphc.graph.traversal.explicit_graph_inputs([output]) if v.name in inputs]
    return graphc.function(variables, output)(*(inputs[v.name] for v in variables))


def test_apply_along_axis():
    x = pt.tensor("x", dtype="float64", shape=(None, None, None))
    for axis in range(3):
        found = pt.apply_along_axis(lambda v: pt.cumsum(v) - v.max(), axis, x)
        expected = np.apply_along_axis(lambda v: np.cumsum(v) - v.max(), axis, X)
        np.testing.assert_allclose(run(found, x=X), expected)
    np.testing.assert_allclose(run(pt.apply_along_axis(pt.sum, 1, x), x=X), X.sum(1))
    outer = pt.apply_along_axis(lambda v: pt.outer(v, v), 1, x)
    np.testing.assert_allclose(run(outer, x=X), np.apply_along_axis(lambda v: np.outer(v, v), 1, X))


def test_apply_over_axes():
    x = pt.tensor("x", dtype="float64", shape=(None, None, None))
    np.testing.assert_allclose(run(pt.apply_over_axes(pt.sum, x, (0, -1)), x=X), X.sum((0, 2), keepdims=True))
    with pytest.raises(ValueError, match="must reduce an axis"):
        pt.apply_over_axes(lambda x, axis: x.sum(), x, 0)


def test_questions_about_variables():
    assert pt.is_flat(pt.dvector()) and not pt.is_flat(pt.dmatrix()) and pt.is_flat(pt.dmatrix(), 2)
    assert pt.get_vector_length(pt.tensor(dtype="float64", shape=(7,))) == 7
    assert pt.get_vector_length(pt.dmatrix().shape) == 2
    with pytest.raises(ValueError, match="not known before"):
        pt.get_vector_length(pt.dvector())
    with pytest.raises(TypeError, match="takes a vector"):
        pt.get_vector_length(pt.dmatrix())
    assert pt.get_scalar_constant_value(3) == 3
    with pytest.raises(pt.basic.NotScalarConstantError):
        pt.get_scalar_constant_value(pt.constant([1, 1]))
    x = pt.tensor("x", dtype="float64", shape=(None, None, None))
    np.testing.assert_array_equal(run(x[pt.slice_at_axis(slice(1, 3), -2)], x=X), X[:, 1:3])
    np.testing.assert_array_equal(run(x[pt.slice_at_axis(slice(1, 3), 2)], x=X), X[:, :, 1:3])


def test_packing_keeps_axes_at_both_ends():
    a, b = (
        pt.tensor("a", dtype="float64", shape=(2, None, 4)),
        pt.tensor("b", dtype="float64", shape=(2, None, None, 4)),
    )
    packed, shapes = pt.pack(a, b, keep_axes=[0, -1])
    values = X, np.arange(48.0).reshape(2, 3, 2, 4)
    f = graphc.function([a, b], [packed, *shapes, *pt.unpack(packed, shapes, keep_axes=[0, -1])])
    whole, first, second, *back = f(*values)
    assert whole.shape == (2, 9, 4) and list(first) == [3] and list(second) == [3, 2]
    for x, y in zip(back, values, strict=True):
        np.testing.assert_array_equal(x, y)
    for axes in (1, [0, 2], -2):
        with pytest.raises(ValueError, match="kept"):
            pt.pack(a, b, keep_axes=axes)


def test_unpacking_takes_vectors_of_numpy_as_sizes():
    given = [np.array([2]), np.array([2, 2]), np.array(1)]
    parts = graphc.function([], pt.unpack(pt.arange(7), given))()
    wanted = [np.array([0, 1]), np.array([[2, 3], [4, 5]]), np.array([6])]
    for x, y in zip(parts, wanted, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: pt.unstack(x), "known size"),
        (lambda x: pt.array_split(x, 0), "at least 1"),
        (lambda x: pt.rollaxis(x, 0, 9), "start must be"),
        (lambda x: pt.trim_zeros(x, "fx"), "trim_zeros takes"),
        (lambda x: pt.interpolate1d(x, x), "two vectors"),
        (lambda x: pt.interpolate1d(x[0, 0], x[0, 0], "cubic"), "must be one of"),
        (lambda x: pt.gradient(x, edge_order=3), "edge_order"),
        (lambda x: pt.poly(x[0, 0]), "known number"),
        (lambda x: pt.piecewise(x, [x > 0], []), "as many functions"),
        (lambda x: pt.join_dims(x, 1, 5), "cannot join"),
        (lambda x: pt.horizontal_stack(x, x), "matrices"),
        (lambda x: pt.broadcast_shape((2,), (3,), arrays_are_shapes=True), "do not broadcast"),
        (lambda x: pt.packbits(x, bitorder="middle"), "bitorder"),
    ],
)
def test_errors(call, error):
    with pytest.raises(ValueError, match=error):
        call(pt.tensor("x", dtype="float64", shape=(None, None, None)))


def test_numpy_calls_build_graphs():
    x, y = pt.dvector("x"), pt.dvector("y")
    values = np.array([0.0, 3.0, -1.5, 0.0]), np.array([1.0, 2.0, 4.0, 8.0])
    outputs = [
        np.gradient(x, y),
        np.polyval([1.0, 2.0], x),
        np.delete(x, 1),
        np.trim_zeros(x),
        np.vander(y, 3),
        np.nextafter(x, y),
        np.ldexp(x, 3),
        np.frexp(x)[0],
        np.lexsort((x, y)),
        np.diagflat(x),
        np.spacing(x),
        np.rollaxis(pt.outer(x, y), 1),
    ]
    expected = [
        np.gradient(values[0], values[1]),
        np.polyval([1.0, 2.0], values[0]),
        np.delete(values[0], 1),
        np.trim_zeros(values[0]),
        np.vander(values[1], 3),
        np.nextafter(*values),
        np.ldexp(values[0], 3),
        np.frexp(values[0])[0],
        np.lexsort(values),
        np.diagflat(values[0]),
        np.spacing(values[0]),
        np.outer(*values).T,
    ]
    for have, want in zip(graphc.function([x, y], outputs)(*values), expected, strict=True):
        np.testing.assert_allclose(have, want)

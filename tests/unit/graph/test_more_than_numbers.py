# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of which the numbers are not all are refused wherever a tensor could be made of them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import In, function, shared

masked = np.ma.masked_less([1.0, 2.0], 2)


class Quantity(np.ndarray):
    """As Astropy's and unyt's."""

    unit = "km"


class Measured:
    """As Pint's."""

    magnitude, units = np.array([1.0, 2.0]), "km"

    def __array__(self, dtype=None, copy=None):
        return self.magnitude


# Each with the error, and what it says.
MASK, UNIT = (NotImplementedError, r"no masks.*x\.filled"), (TypeError, r"no units.*km")
REFUSED = {
    "masked": (masked, *MASK),
    "mask of nothing": (np.ma.array([1.0, 2.0]), *MASK),
    "masked numbers": ([np.ma.masked, 1.0], *MASK),
    "quantity": (np.array([1.0, 2.0]).view(Quantity), *UNIT),
    "object with units": (Measured(), *UNIT),
}


def _as_argument(value, **options):
    x = pt.vector("x")
    return function([In(x, **options)], x + 1)(value)


def _set(value):
    s = shared(np.zeros(2), "s")
    try:
        s.set_value(value)
    finally:
        np.testing.assert_array_equal(s.get_value(), [0, 0])


def _assign(value, lazy=False, index=slice(None)):
    x = graphc.immediate.Environment(lazy=lazy).as_tensor([1.0, 2.0])
    try:
        x[index] = value
    finally:
        np.testing.assert_array_equal(x, [1, 2])


def _index(value):
    """As positions and as a mask, read and written."""
    x = graphc.immediate.Environment(name="d").as_tensor([1.0, 2.0])
    places = value.view(type(value)).astype(bool) if isinstance(value, np.ndarray) else value
    for index in (places, (places,), (..., places)):
        with pytest.raises((NotImplementedError, TypeError), match=r"no (masks|units)"):
            x[index] = 0.0
    return x[places]


def _trusted(value):
    f = function([x := pt.vector("x")], x + 1)
    f.trust_input = True
    return f(value)


def _given_back(value):
    """A function of a user that returns it."""
    return graphc.as_op(itypes=[pt.dvector], otypes=[pt.dvector])(lambda x: value)


class _Stores(graphc.graph.op.Op):
    """An op of a user that stores it."""

    def __init__(self, value):
        self.value = value

    def make_node(self, x):
        return graphc.graph.basic.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.value


class _ByThunk(_Stores):
    """An op of a user with a thunk of its own."""

    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        def thunk():
            output_registers[0][0] = self.value

        return thunk


def _computed(make, mode="fast_run"):
    return lambda value: function([x := pt.vector("x")], make(value)(x) + 1, mode=mode)(np.zeros(2))


def _cotangent(value):
    op = graphc.as_op(itypes=[pt.dvector], otypes=[pt.dvector], vjp=lambda x, g: value)(lambda x: x * 2)
    return function([x := pt.vector("x")], graphc.grad(op(x).sum(), x))(np.zeros(2))


def _updated(value):
    s = shared(np.zeros(2), "s")
    try:
        function([], [], updates={s: _given_back(value)(s)})()
    finally:
        np.testing.assert_array_equal(s.get_value(), [0, 0])


def _in_a_loop(value):
    op, x = _given_back(value), pt.vector("x")
    h = graphc.scan(lambda h: op(h) + 1, outputs_info=[x], n_steps=2, return_updates=False)
    return function([x], h)(np.zeros(2))


WAYS = {
    "constant": pt.constant,
    "as_tensor": pt.as_tensor,
    "operand": lambda value: pt.vector("x") + value,
    "NumPy's function": lambda value: np.multiply(value, pt.vector("x")),
    "index": lambda value: pt.set_subtensor(pt.vector("x")[:2], value),
    "shared": shared,
    "shared with borrow": lambda value: shared(value, borrow=True),
    "set_value": _set,
    "argument": _as_argument,
    "strict argument": lambda value: _as_argument(value, strict=True),
    "downcast argument": lambda value: _as_argument(value, allow_downcast=True),
    "trusted argument": _trusted,
    "result of a function": _computed(_given_back),
    "in debug mode": _computed(_given_back, "debug"),
    "in reference mode": _computed(_given_back, "reference"),
    "result of an op": _computed(_Stores),
    "result of a thunk": _computed(_ByThunk),
    "gradient of a function": _cotangent,
    "update": _updated,
    "state of a loop": _in_a_loop,
    "default": lambda value: function([In(pt.vector("x"), value=value)], [], on_unused_input="ignore"),
    "fast_compile": lambda value: function([x := pt.vector("x")], x + 1, mode="fast_compile")(value),
    "reference": lambda value: function([x := pt.vector("x")], x + 1, mode="reference")(x=value),
    "eval": lambda value: ((x := pt.vector("x")) + 1).eval({x: value}),
    "type": lambda value: pt.dvector.make_constant(value),
    "filter": lambda value: pt.dvector.filter(value),
    "is a valid value": lambda value: pt.dvector.filter_variable(value),
    "immediate": lambda value: graphc.immediate.Environment(name="a").as_tensor(value),
    "immediate operand": lambda value: graphc.immediate.Environment(name="b").exp(value),
    "immediate list": lambda value: graphc.immediate.Environment(name="c").stack([value, value]),
    "list": lambda value: pt.as_tensor([value, value]),
    "assigned": _assign,
    "assigned lazily": lambda value: _assign(value, lazy=True),
    "jit": lambda value: graphc.jit(lambda x: x + 1)(value),
    "jit, in containers": lambda value: graphc.jit(lambda x, y: x["a"][0] + y)({"a": [value]}, 1.0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", REFUSED)
def test_refused(way, kind):
    value, error, message = REFUSED[kind]
    if kind in ("masked numbers", "object with units") and way == "NumPy's function":
        pytest.skip("NumPy itself converts it first")
    with pytest.raises(error, match=f"(?s){message}"):
        WAYS[way](value)


@pytest.mark.parametrize("kind", ["masked", "mask of nothing", "quantity"])
@pytest.mark.parametrize("way", [_index, lambda value: graphc.immediate.Environment().from_dlpack(value)])
def test_refused_arrays(way, kind):
    value, error, message = REFUSED[kind]
    with pytest.raises(error, match=f"(?s){message}"):
        way(value)


def test_errors_name_the_input():
    x = pt.vector("speed")
    f = function([x], x + 1, name="f")
    with pytest.raises(NotImplementedError, match=r"f\(speed\) cannot take .*input 0 'speed'.*no masks"):
        f(masked)


def test_artifacts(tmp_path):
    """Where only NumPy is installed, too."""
    import graphc_runtime

    x = pt.vector("x")
    path = tmp_path / "f.gcx"
    graphc.export({"f": function([x], x + 1)}, path)
    with pytest.raises(NotImplementedError, match="no masks"):
        graphc_runtime.load(path).f(masked)


def test_sparse_matrices():
    pytest.importorskip("scipy.sparse")
    from graphc.sparse import SparseTensorType

    with pytest.raises(NotImplementedError, match="no masks"):
        SparseTensorType("csr", "float64").filter(np.ma.masked_less([[1.0, 2.0]], 2))


def test_other_classes_are_their_numbers(tmp_path):
    """Matrices, maps of files, records' columns, and what else is an array give plain arrays."""
    on_disk = np.memmap(tmp_path / "x", dtype="f8", mode="w+", shape=(2,))
    on_disk[:] = [1, 2]
    records = np.rec.array([(1.0, 2), (2.0, 3)], dtype=[("a", "f8"), ("unit", "i8")])
    for value in (on_disk, records.a, np.array([1.0, 2.0]).view(np.recarray), (1.0, 2.0)):
        for way in ("constant", "shared", "argument", "immediate"):
            found = WAYS[way](value)
            found = getattr(found, "data", found) if way == "constant" else found
            found = found.get_value() if way == "shared" else np.asarray(found)
            assert type(found) is np.ndarray or way == "constant"
            np.testing.assert_array_equal(found, [2, 3] if way == "argument" else [1, 2])
    x = pt.matrix("x")
    product = function([x], x * x)(np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix))
    assert type(product) is np.ndarray
    np.testing.assert_array_equal(product, [[1, 4], [9, 16]])
    with pytest.raises(TypeError):
        function([pt.vector("y")], pt.constant(1.0), on_unused_input="ignore")(records)


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"unit": [1.0, 2.0], "units": [3.0, 4.0]})
    np.testing.assert_array_equal(_as_argument(frame["unit"]), [2, 3])
    np.testing.assert_array_equal(shared(frame).get_value(), [[1, 3], [2, 4]])
    with pytest.raises(TypeError):
        shared(pd.Series(["a", "b"], dtype="category"))

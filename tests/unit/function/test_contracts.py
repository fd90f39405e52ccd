# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What code of users promises about memory: right results or an error that names the op, in each mode."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc import In, as_op, function, scan, wrap_py
from graphc.errors import BadDestroyMap, BadViewMap, DebugModeError
from graphc.graph import Apply, Op, Type
from graphc_runtime import Thunk


class Unary(Op):
    """One vector to one, by a function of the input."""

    def __init__(self, what):
        self.what = what

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.what(inputs[0])


class ByThunk(Unary):
    """The same by a plain function, as Theano's ops return it."""

    perform = None

    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        def thunk():
            output_registers[0][0] = self.what(input_registers[0][0])

        return thunk


class ByPyTensorsThunk(Unary):
    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        def thunk():
            storage_map[node.outputs[0]][0] = self.what(storage_map[node.inputs[0]][0])
            compute_map[node.outputs[0]][0] = True

        return thunk


class ByLazyThunk(Unary):
    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        def thunk():
            if not input_computed[0][0]:
                return [0]
            output_registers[0][0] = self.what(input_registers[0][0])
            return []

        thunk.lazy = True
        return thunk


def by_function(what):
    return as_op([pt.dvector], [pt.dvector])(lambda x: what(x))


def by_any_function(what):
    return wrap_py(lambda x: what(x), otypes=[pt.dvector])


KINDS = {f.__name__: f for f in (Unary, ByThunk, ByPyTensorsThunk, ByLazyThunk, by_function, by_any_function)}
kinds = pytest.mark.parametrize("kind", KINDS)

# The input itself, and parts of it in all the ways that NumPy has.
VIEWS = {
    "itself": lambda x: x,
    "reversed": lambda x: x[::-1],
    "reshaped": lambda x: x.reshape(-1, 1).T[0],
    "as array": lambda x: np.asarray(x),
    "strided": lambda x: np.lib.stride_tricks.as_strided(x, x.shape, x.strides),
    "fields": lambda x: x.view("i8").view("f8"),
    "two": lambda x: np.stack([x, x])[0],
}


class AddInPlace(Op):
    destroy_map = {0: [0]}
    __props__ = ("amount",)

    def __init__(self, amount=100.0):
        self.amount = amount

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        inputs[0] += self.amount
        output_storage[0][0] = inputs[0]


def _made(kind, what, **maps):
    op = KINDS[kind](what)
    for name, value in maps.items():
        setattr(op, name, value)
    return op


MODES = ("fast_run", "fast_compile", "reference")


@kinds
@pytest.mark.parametrize("view", VIEWS)
def test_undeclared_views_before_an_overwrite(kind, view):
    """The value that was viewed stays what it is, whoever reads it and whenever."""
    v = pt.dvector("v")
    for mode in MODES:
        for source in (v * 2, v):
            seen = _made(kind, VIEWS[view])(source)
            f = function([v], [AddInPlace()(seen), source + 1], mode=mode)
            given = np.array([1.0, 2.0])
            for _ in range(2):
                changed, kept = f(given)
                right = given * (2 if source is not v else 1)
                np.testing.assert_array_equal(changed, VIEWS[view](right) + 100)
                np.testing.assert_array_equal(kept, right + 1)
                np.testing.assert_array_equal(given, [1, 2])


@kinds
def test_undeclared_views_as_results(kind):
    """Neither the caller's array nor a shared variable can be changed through a result."""
    s, v = graphc.shared(np.array([1.0, 2.0]), "s"), pt.dvector("v")
    for mode in MODES:
        op = _made(kind, lambda x: x[:])
        f = function([v], [op(v), op(s)], mode=mode)
        given = np.array([3.0, 4.0])
        for result in f(given):
            result[:] = 9
        np.testing.assert_array_equal(given, [3, 4])
        np.testing.assert_array_equal(s.get_value(), [1, 2])


@kinds
def test_declared_views_are_views(kind):
    """They can be overwritten where the caller allows it."""
    v = pt.dvector("v")
    op = _made(kind, lambda x: x[::-1], view_map={0: [0]})
    for mode in (*MODES, "debug"):
        f = function([In(v, mutable=True)], AddInPlace()(op(v)) * 1.0, mode=mode)
        np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [102, 101])
        g = function([v], [op(v), v + 1], mode=mode)
        np.testing.assert_array_equal(g(np.array([1.0, 2.0])), [[2, 1], [2, 3]])


WRITES = {
    "element": lambda x: x.__setitem__(0, 9.0) or x + 1,
    "in place": lambda x: np.add(x, 1, out=x) * 1,
    "through a view": lambda x: x[::-1].sort() or x + 1,
}


@kinds
@pytest.mark.parametrize("write", WRITES)
def test_undeclared_overwrites(kind, write):
    """An error names the op, the user's line and what to do; arrays and shared variables keep values."""
    s, v = graphc.shared(np.array([2.0, 1.0]), "s"), pt.dvector("v")
    for mode in (*MODES, "debug"):
        op = _made(kind, WRITES[write])
        loop = scan(op, outputs_info=[v], n_steps=2, return_updates=False)
        for inputs, result, values in (
            ([v], op(v), [np.array([2.0, 1.0])]),
            ([], op(s), []),
            ([v], op(v * 2) + v, [np.array([2.0, 1.0])]),
            ([v], loop[-1], [np.array([2.0, 1.0])]),
        ):
            f = function(inputs, result, mode=mode)
            expected = BadDestroyMap if mode == "debug" else ValueError
            with pytest.raises(expected, match=r"(?s)may not write.*destroy_map.*test_contracts\.py:\d+"):
                f(*values)
            np.testing.assert_array_equal(s.get_value(), [2, 1])
            for value in values:
                np.testing.assert_array_equal(value, [2, 1])


@kinds
def test_declared_overwrites(kind):
    """They are done where the memory may be overwritten, on a copy elsewhere."""
    v = pt.dvector("v")

    def grow(x):
        x += 1
        return x

    op = _made(kind, grow, destroy_map={0: [0]})
    for mode in MODES:
        f = function([v], [op(v * 2), v * 2 + 5], mode=mode)
        np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [[3, 5], [7, 9]])
        with pytest.raises(graphc.errors.InconsistencyError, match="overwrites the input v"):
            function([v], op(v), mode=mode)
        given = np.array([1.0, 2.0])
        function([In(v, mutable=True)], op(v), mode=mode)(given)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "by_function"])
def test_debug_mode_tells(kind):
    """Undeclared views, overwrites that NumPy does not notice, and missing outputs."""
    v = pt.dvector("v")

    def write(x):
        # As code in C would.
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * x.size).from_address(x.ctypes.data))[0] = 7.0
        return x * 1

    assert issubclass(BadViewMap, DebugModeError) and issubclass(BadDestroyMap, DebugModeError)
    for what, kind_of_error, message in (
        (lambda x: x, BadViewMap, "shares memory with its input 0"),
        (lambda x: x[::-1], BadViewMap, "shares memory with its input 0"),
        (write, BadDestroyMap, "has changed its input 0"),
    ):
        op = _made(kind, what)
        loop = scan(op, outputs_info=[v], n_steps=2, return_updates=False)[-1]
        for result in (op(v), op(v * 2) + 1, loop):
            f = function([v], result, mode="debug")
            with pytest.raises(kind_of_error, match=f"(?s){op!s}.*{message}".replace("{", r"\{")) as caught:
                f(np.array([1.0, 2.0]))
            assert "test_contracts.py:" in str(caught.value)


@kinds
def test_missing_outputs(kind):
    """An output that is not there is an error in each mode, for thunks of both kinds, too."""
    v = pt.dvector("v")
    op = _made(kind, lambda x: None)
    for mode in (*MODES, "debug"):
        for result in (op(v), op(v) + 1):
            if kind.startswith("by_"):
                continue
            with pytest.raises(TypeError, match=r"(?s)has computed no output 0.*test_contracts\.py:\d+"):
                function([v], result, mode=mode)([1.0])


class Silent(Unary):
    """A thunk that stores nothing, or asks for what it has."""

    def __init__(self, returned, lazy):
        self.returned, self.lazy = returned, lazy

    def make_thunk(self, node, input_computed, output_computed, input_registers, output_registers):
        op = self

        class Asking(Thunk):
            lazy = op.lazy

            def __call__(self):
                return op.returned

        return Asking()


@kinds
def test_memory_that_the_code_keeps(kind):
    """A cache or a buffer of the code is neither changed by the graph nor by the caller, nor read later."""
    cache, buffer = np.arange(8.0), np.empty(3)
    kept = {
        "cache": (lambda x: cache[: len(x)], lambda x: cache[: len(x)].copy()),
        "whole": (lambda x: small, lambda x: np.ones(3)),
        "buffer": (lambda x: np.multiply(x, 2, out=buffer), lambda x: x * 2),
        "part": (lambda x: np.multiply(x, 2, out=buffer)[::-1], lambda x: x[::-1] * 2),
    }
    small, v = np.ones(3), pt.dvector("v")
    a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 5.0])
    for what, right in kept.values():
        op = KINDS[kind](what)
        for mode in ("fast_run", "fast_compile", "reference", "debug"):
            f = function([v], [op(v), AddInPlace()(op(v * 3)), op(v + 1).sum()], mode=mode)
            first = f(a)
            for x, results in ((a, first), (b, f(b))):
                expected = [right(x), right(x * 3) + 100, right(x + 1).sum()]
                for result, each in zip(results, expected, strict=True):
                    np.testing.assert_array_equal(result, each)
            first[0] += 1000
            np.testing.assert_array_equal(f(b)[0], right(b))


@pytest.mark.parametrize("inputs", [1, 3])
def test_the_promise_costs_few_calls(inputs):
    """An array of its own is stored with three calls for each input, which make its view, and a few more."""
    op = as_op(itypes=[pt.dvector] * inputs, otypes=[pt.dvector])(lambda *xs: sum(xs, 1.0))
    node = op(*[pt.dvector() for _ in range(inputs)]).owner
    output, computed, calls = [None], [False], []
    registers = [[np.ones(3)] for _ in range(inputs)]
    thunk = op.make_thunk(node, [[True]] * inputs, [computed], registers, [output])
    sys.setprofile(lambda _, event, __: calls.append(event) if event.endswith("call") else None)
    thunk()
    sys.setprofile(None)
    assert computed == [True]
    np.testing.assert_array_equal(output[0], np.full(3, 1.0 + inputs))
    # `read_only`, `view`, `setflags`; the thunk, the function, its `sum`, the count of references, this end,
    # and a list of arguments.
    assert len(calls) <= 3 * inputs + 6


@pytest.mark.parametrize(
    ("returned", "lazy", "message"),
    [(None, False, "has computed no output 0"), ([0], False, "asks for its inputs .0."),
     ([], True, "has computed no output 0"), (None, True, "has computed no output 0")],
)  # fmt: skip
def test_thunks_that_store_nothing(returned, lazy, message):
    v = pt.dvector("v")
    for mode in ("fast_run", "fast_compile"):
        for result in (Silent(returned, lazy)(v * 2), Silent(returned, lazy)(v) + 1):
            with pytest.raises(TypeError, match=rf"(?s)Silent.*{message}.*test_contracts\.py:\d+"):
                function([v], result, mode=mode)([1.0])


class Two(Op):
    """Two outputs that are one array."""

    def make_node(self, x):
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node, inputs, output_storage):
        y = inputs[0] * 2
        output_storage[0][0], output_storage[1][0] = y, y[::-1]


def test_outputs_that_share_memory():
    v = pt.dvector("v")
    for mode in ("fast_run", "fast_compile", "reference"):
        a, b = Two()(v)
        f = function([v], [AddInPlace()(a), b + 0], mode=mode)
        np.testing.assert_array_equal(f([1.0, 2.0]), [[102, 104], [4, 2]])
    with pytest.raises(BadViewMap, match="outputs 0 and 1 of Two share memory"):
        function([v], Two()(v), mode="debug")([1.0, 2.0])


class Box:
    """A value of a user's type: its memory is a list."""

    def __init__(self, items):
        self.items = items


class BoxType(Type):
    def filter(self, value, strict=False, allow_downcast=None):
        if not isinstance(value, Box):
            raise TypeError(f"expected a box, got {value!r}")
        return value

    def values_eq(self, a, b):
        return a.items == b.items

    @staticmethod
    def may_share_memory(a, b):
        return a.items is b.items


class OnBox(Unary):
    def make_node(self, x):
        return Apply(self, [x], [BoxType()()])


def test_values_of_users_types():
    """Their type says what shares memory."""

    def extend(box):
        box.items.append(100)
        return box

    box = BoxType()("box")
    view, grow = OnBox(lambda x: Box(x.items)), OnBox(extend)
    grow.destroy_map = {0: [0]}
    count = OnBox(lambda x: Box([len(x.items)]))
    for mode in ("fast_run", "fast_compile", "reference"):
        given = Box([1])
        changed, size = function([box], [grow(view(box)), count(box)], mode=mode)(given)
        assert (changed.items, size.items, given.items) == ([1, 100], [1], [1])
    with pytest.raises(BadViewMap, match="shares memory with its input 0"):
        function([box], view(box), mode="debug")(Box([1]))
    with pytest.raises(BadDestroyMap, match="has changed its input 0"):
        function([box], OnBox(lambda x: Box([*extend(x).items]))(box), mode="debug")(Box([1]))


def test_sparse_matrices():
    """Their arrays cannot be written either."""
    scipy_sparse = pytest.importorskip("scipy.sparse")
    from graphc.sparse import SparseTensorType

    kind = SparseTensorType("csr", "float64")
    given = scipy_sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])

    @as_op([kind], [pt.dscalar])
    def total(m):
        m.data[0] = 9.0
        return m.sum()

    @as_op([kind], [pt.dvector])
    def stored(m):
        return m.data

    m = kind("m")
    for mode in ("fast_run", "reference"):
        with pytest.raises(ValueError, match=r"(?s)total.*may not write"):
            function([m], total(m), mode=mode)(given)
        function([m], stored(m), mode=mode)(given)[0] = 7
        assert given.data.tolist() == [1, 2]


def test_arrays_that_lie_between_one_another():
    """Columns of a matrix share bounds, but no element: views of one are no views of the other."""
    table = np.arange(6.0).reshape(3, 2)
    x, y = pt.dvector("x"), pt.dvector("y")

    class First(Op):
        view_map = {0: [0]}

        def make_node(self, x, y):
            return Apply(self, [x, y], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0][::-1]

    f = function([x, y], First()(x, y), mode="debug")
    np.testing.assert_array_equal(f(table[:, 0], table[:, 1]), [4, 2, 0])


@as_op([pt.dvector], [pt.dvector], destroy_map={0: [0]})
def filled(x):
    x[:] = 1
    return x


def test_functions_may_overwrite_what_they_declare():
    v = pt.dvector("v")
    for mode in ("fast_run", "reference", "debug"):
        np.testing.assert_array_equal(function([v], [filled(v * 2), v], mode=mode)([2.0]), [[1], [2]])
    assert filled.destroy_map == {0: [0]} and pickle.loads(pickle.dumps(filled)) is filled
    assert wrap_py(np.sort, otypes=pt.dvector) != wrap_py(np.sort, otypes=pt.dvector, view_map={0: [0]})


def test_immediate_tensors():
    """An op on values is held to the same."""
    from graphc.immediate import Environment

    given = np.array([2.0, 1.0])
    tensor = Environment(name="contracts").as_tensor(given)
    write = by_function(WRITES["element"])
    with pytest.raises(ValueError, match="may not write"):
        function([], write(tensor))()
    np.testing.assert_array_equal(given, [2, 1])


def test_declared_sizes_hold():
    """A value of another size than declared is refused: the op, both sizes and the line are named."""
    v = pt.dvector("v")

    class Short(Unary):
        def make_node(self, x):
            return Apply(self, [x], [pt.tensor(dtype="float64", shape=(42,)).type()])

    short = as_op([pt.dvector], [pt.TensorType("float64", (42,))])(lambda x: x[:6].copy())
    for op in (Short(lambda x: x[:6].copy()), short):
        for mode in (*MODES, "debug"):
            message = r"(?s)42.*\(6,\).*(Short|lambda).*test_contracts\.py:\d+"
            with pytest.raises(TypeError, match=message):
                function([v], op(v) + 1, mode=mode)(np.ones(9))

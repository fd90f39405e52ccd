# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms in which users of PyTensor and NumPy write what other tests check in one form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from scipy.linalg import block_diag

import graphc
import graphc.tensor as pt
from graphc.compile.ops import wrap_py
from graphc.errors import UnusedInputError
from graphc.graph import equal_computations
from graphc.graph.tensor.convert import NotScalarConstantError
from graphc.graph.tensor.type import TensorType, discrete_dtypes, float_dtypes
from graphc.printing import pp, pprint
from graphc.raise_op import Assert
from graphc.scan.frontend import scan_checkpoints

X = np.random.default_rng(0).normal(size=(3, 4))


def check(pairs, given):
    """Pairs of expressions and their values, in the modes that differ in how they compute them."""
    for mode in ("fast_run", "reference"):
        found = graphc.function(list(given), [e for e, _ in pairs], mode=mode, on_unused_input="ignore")(
            *given.values()
        )
        for i, (got, (_, wanted)) in enumerate(zip(found, pairs, strict=True)):
            np.testing.assert_allclose(got, wanted, rtol=1e-14, atol=1e-15, err_msg=f"{mode} {i}")


def test_methods_and_elementwise():
    x, n = pt.dmatrix("x"), pt.lvector("n")
    N = np.array([15, 25, -15, -25, 14, 16, -14, 5, -5, 0])
    check(
        [
            (pt.round(x, 1), X.round(1)),
            ((x * 100).round(-1), (X * 100).round(-1)),
            (pt.round(x, "half_away_from_zero"), np.sign(X) * np.floor(np.abs(X) + 0.5)),
            (pt.round(n, -1), np.round(N, -1)),
            (pt.round(n, 2), N),
            (pt.logaddexp(x, x, x), np.logaddexp(X, np.logaddexp(X, X))),
            (x.conjugate(), X),
            (x.diagonal(), X.diagonal()),
            (x.trace(offset=1), X.trace(1)),
            (x.fill(3), np.full((3, 4), 3)),
            *zip(pt.where(x > 0), np.where(X > 0), strict=True),
        ],
        {x: X, n: N},
    )
    with pytest.raises(ValueError, match="two values"):
        pt.where(x, x)


def test_symbolic_axes_and_positions():
    x, c, u, t = pt.dmatrix("x"), pt.dtensor3("c"), pt.lmatrix("u"), pt.dtensor3("t")
    i, j, a, w = *pt.lscalars("ij"), pt.lmatrix("a"), pt.lvector("w")
    C, A = np.arange(24.0).reshape(4, 2, 3), np.array([[0, 1, 3], [2, 2, 0]])
    U, T = np.array([[1, 2, 1], [0, 5, 2], [1, 2, 1], [0, 3, 9]]), np.zeros((3, 3, 3))
    filled = T.copy()
    np.fill_diagonal(filled, 7.0)
    check(
        [
            (x[[i, j]], X[[0, -1]]),
            (pt.sort(x, i), np.sort(X, 0)),
            (x.argsort(j), np.argsort(X, -1)),
            (pt.choose(a, c), np.choose(A, C)),
            (pt.choose(a + 5, c, mode="wrap"), np.choose(A + 5, C, mode="wrap")),
            (pt.pad(x, w), np.pad(X, [1, 2])),
            (pt.fill_diagonal(t, 7), filled),
            *zip(pt.unique(u, True, True, True, axis=0), np.unique(U, True, True, True, axis=0), strict=True),
            *zip(pt.tril_indices(w[1], w[0], 4), np.tril_indices(2, 1, 4), strict=True),
            *zip(pt.triu_indices(w[1]), np.triu_indices(2), strict=True),
        ],
        {x: X, c: C, u: U, t: T, i: 0, j: -1, a: A, w: np.array([1, 2])},
    )
    with pytest.raises(IndexError):
        graphc.function([x, i], pt.sort(x, i))(X, 2)
    with pytest.raises(ValueError, match="expected 3"):
        pt.fill_diagonal(t, 1).eval({t: np.zeros((3, 3, 2))})


def test_types():
    x, y = pt.vectors("xy")
    assert (x.name, y.name) == ("x", "y") and isinstance(pt.scalars("x"), graphc.Variable)
    assert [v.name for v in pt.dmatrices("ab", "c")] == ["ab", "c"]
    assert isinstance(pt.dvector, TensorType) and pt.dvector("x").type == pt.dvector
    assert pt.dvector.dtype == "float64" and pt.drow.shape == (1, None)
    assert pt.fmatrix(shape=(2, None)).type == TensorType("float32", (2, None))
    with pytest.raises(ValueError, match="must match"):
        pt.drow(shape=(2, 3))
    with pytest.raises(ValueError, match="is the name"):
        pt.tensor("float64", shape=(None,))
    with pytest.warns(DeprecationWarning, match=r"write tensor\(shape=\(1, None\)\)") as caught:
        old = pt.tensor("old", dtype="int64", broadcastable=(True, False))
    assert old.type == TensorType("int64", (1, None)) and caught[0].filename == __file__
    for options in ({}, {"shape": (1,), "broadcastable": (True,)}):
        with pytest.raises(TypeError, match="needs shape="):
            pt.tensor("x", **options)
    assert "bool" in discrete_dtypes and float_dtypes == ("float16", "float32", "float64")
    t = pt.dtensor3("t")
    assert pt.specify_shape(t, (3, ..., 2)).type.shape == (3, None, 2)
    assert pt.specify_shape(t, (...,)) is t
    with pytest.raises(ValueError, match="one ellipsis"):
        pt.specify_shape(t, (..., ...))


@pytest.mark.parametrize("positional", [True, False])
def test_wrap_py_decorates(positional):
    types = {"itypes": [pt.dmatrix, pt.dvector], "otypes": pt.dvector}
    decorate = wrap_py(*types.values()) if positional else wrap_py(**types)

    if positional:
        wrap_py(*types.values(), lambda fgraph, node, shapes: shapes)

    @decorate
    def sums(a, b):
        return a.sum(0) + b

    x, y = pt.dmatrix(), pt.dvector()
    assert np.array_equal(graphc.function([x, y], sums(x, y))(X, X[0]), X.sum(0) + X[0])


def test_further_functions():
    x, v = pt.dtensor3("x"), pt.lvector("v")
    A = np.random.default_rng(1).normal(size=(2, 4, 3))
    orders = (1, -1, 2, np.inf, "nuc")
    diagonals = [(k, axes) for k in (0, 1, -2) for axes in ((0, 1), (1, 3))]
    check(
        [
            *((pt.linalg.norm(x, o), [np.linalg.norm(a, o) for a in A]) for o in orders),
            *((pt.diagonal(pt.alloc_diag(x, k, *axes), k, *axes), A) for k, axes in diagonals),
            (pt.to_one_hot(v, 4), [[0, 1, 0, 0], [0, 0, 0, 1]]),
            (pt.stack(pt.shape_tuple(x)), A.shape),
            (pt.special.xlogx(pt.clip(x, 0, 1)), special.xlogy(np.clip(A, 0, 1), np.clip(A, 0, 1))),
        ],
        {x: A, v: np.array([1, 3])},
    )
    assert pp(x[0] * 2) == pprint(x[0] * 2) and "*" in pp(x[0] * 2)


def test_errors_are_of_the_classes_that_users_catch():
    b, x = pt.bvector("b"), pt.matrix("x")
    f = graphc.function([b], b)
    for error in (OverflowError, TypeError):
        with pytest.raises(error, match="312"):
            f([312])
    with pytest.raises(ValueError, match="at most 0"):
        pt.as_tensor_variable(x, ndim=0)
    with pytest.raises(UnusedInputError, match="more than once"):
        graphc.function([b, b], b)
    assert pt.as_tensor([]).dtype == pt.as_tensor(()).dtype == graphc.config.floatX


def test_equal_computations():
    x, y, z = pt.vectors("xyz")
    deep = [pt.exp(x) + 1, pt.exp(x) + 1]
    assert equal_computations(deep[:1], deep[1:]) and not equal_computations([x], [y])
    assert not equal_computations([pt.exp(x) + 1], [pt.exp(x) + 2])
    assert equal_computations([x + y], [x + z], [y], [z]) and not equal_computations([x + y], [x + z])
    assert not equal_computations([x + y], [z + y], [y], [z])
    assert equal_computations([pt.constant(X)], [X]) and not equal_computations([x], [X])
    assert not equal_computations([pt.constant(1)], [np.int8(1)])
    assert equal_computations([pt.constant(1)], [np.int8(1)], strict_dtype=False)
    with pytest.raises(ValueError, match="equal lengths"):
        equal_computations([x], [x, y])


def test_jacobian_in_a_loop_and_checkpoints():
    x, A, k = pt.dvector("x"), pt.dvector("A"), pt.iscalar("k")
    y = pt.exp(x) * x.sum()
    looped, batched = (graphc.jacobian(y, x, vectorize=each) for each in (False, True))
    check([(looped - batched, np.zeros((3, 3)))], {x: np.arange(3.0)})
    rows = scan_checkpoints(
        lambda s, p, a: p * a / s, [pt.arange(k) + 1.0], pt.ones_like(A), A, n_steps=k, save_every_N=4,
        return_updates=False,
    )  # fmt: skip
    f = graphc.function([A, k], [rows, graphc.grad(rows[-1].sum(), A)])
    for n in (8, 9):
        found, slope = f([1.0, 2.0], n)
        wanted = [np.array([1.0, 2.0]) ** i / math.factorial(i) for i in sorted({4, 8, n})]
        np.testing.assert_allclose(found, wanted)
        np.testing.assert_allclose(slope, n * wanted[-1] / [1.0, 2.0])
    with pytest.raises(RuntimeError, match="no taps"):
        scan_checkpoints(lambda a: a, None, {"initial": A, "taps": [-2]}, n_steps=2)


def test_scalars_known_from_constants():
    known = pt.get_underlying_scalar_constant_value
    c = pt.constant([1, 2, 3])
    held = graphc.raise_op.Assert("held")(pt.constant(5), c[1] > 1)
    cases = [
        (c[1], 2),
        (c[1] + 2, 4),
        (pt.second(pt.dvector(), 3), 3),
        (pt.expand_dims(c[0], 0), 1),
        (held, 5),
    ]
    assert all(known(given) == wanted for given, wanted in cases)
    for unknown in (pt.iscalar(), c, pt.iscalar() + 1, pt.iscalar() + c[0]):
        with pytest.raises(TypeError, match="known before"):
            known(unknown)


def test_blocks_broadcast_and_axes_are_checked_as_in_numpy():
    a, b, p = pt.dtensor3("a"), pt.dmatrix("b"), pt.ivector("p")
    A, B = np.arange(8.0).reshape(2, 2, 2), X[:2, :3]
    assert pt.inverse_permutation(p).dtype == "int32"
    check([(pt.linalg.block_diag(a, b), [block_diag(each, B) for each in A])], {a: A, b: B})
    with pytest.raises(IndexError, match="axis 3"):
        pt.swapaxes(b, 0, 3)


def test_what_symbols_and_ops_refuse():
    x, s, i = pt.dvector("x"), pt.dscalar("s"), pt.lscalar("i")
    for call, given in ((float, s), (int, i), (complex, s), (len, x), (math.sin, s)):
        with pytest.raises(TypeError, match=f"of {given.name}, which has no value before"):
            call(given)
    with pytest.raises(TypeError, match="entry for each dimension, got 3"):
        TensorType("float64", 3)
    with pytest.raises(IndexError, match="do not broadcast"):
        pt.dmatrix()[np.zeros(3, int), np.zeros(2, int)]
    assert np.array_equal(pt.take(x, [1], mode=None).eval({x: X[0]}), X[0][[1]])
    with pytest.raises(TypeError, match="must return Apply"):
        NoApply()(x)


class NoApply(graphc.Op):
    __props__ = ()

    def make_node(self, x):
        return x


class Theano(graphc.Op):
    """Doubles, by a thunk with PyTensor's arguments."""

    __props__ = ("lazy", "fails")

    def __init__(self, lazy=False, fails=False):
        self.lazy, self.fails = lazy, fails

    def make_node(self, x):
        return graphc.Apply(self, [x], [x.type()])

    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        (x,), (y,) = node.inputs, node.outputs

        def thunk():
            if self.fails:
                raise RuntimeError("no value")
            if self.lazy and not compute_map[x][0]:
                return [0]
            storage_map[y][0] = storage_map[x][0] * 2
            compute_map[y][0] = compute_map[y][0] or self.lazy
            return None

        thunk.lazy = self.lazy
        return thunk


@pytest.mark.parametrize("lazy", [False, True])
def test_plain_functions_are_thunks(lazy):
    x = pt.dvector("x")
    f = graphc.function([x], Theano(lazy)(pt.exp(x)) + 1)
    for _ in range(2):
        np.testing.assert_allclose(f(X[0]), 2 * np.exp(X[0]) + 1)
    with pytest.raises(RuntimeError, match=r"no value\n  while running Theano.*test_forms.py"):
        graphc.function([x], Theano(lazy, True)(x) + 1)(X[0])


def test_sizes_that_are_minus_one_when_run():
    x, v, n, k = pt.dmatrix("x"), pt.lvector("v"), pt.iscalar("n"), pt.lscalar("k")
    for mode in ("fast_run", "reference"):
        f = graphc.function([x, v, n, k], [x.reshape(v, ndim=2), x.reshape((n, 2, k))], mode=mode)
        for sizes, first, last in (((-1, 4), -1, 2), ((6, -1), 3, -1), ((3, 4), 3, 2)):
            got = f(X, sizes, first, last)
            for found, wanted in zip(got, (X.reshape(sizes), X.reshape(3, 2, 2)), strict=True):
                np.testing.assert_array_equal(found, wanted)
        for sizes, first, last in (((-1, -1), 3, 2), ((5, -1), 3, 2), ((3, 4), -1, -1), ((3, 4), -3, -2)):
            with pytest.raises(ValueError, match=r"reshape|negative dimensions"):
                f(X, sizes, first, last)
    # Sizes that are computed stay as they are.
    assert x.reshape((x.shape[0] * 2, n * 2)).owner.inputs[1].owner.op.name == "mul"


def test_tensordot_of_small_ranks_is_a_product():
    s, v, m = pt.dscalar("s"), pt.dvector("v"), pt.dmatrix("m")
    pairs = [
        (pt.tensordot(s, s, [[], []]), s * s),
        (pt.tensordot(v, v, 1), pt.dot(v, v)),
        (pt.tensordot(m, v, [[0], [0]]), pt.dot(m.T, v)),
        (pt.tensordot(v, m, [[0], [1]]), pt.dot(v, m.T)),
        (pt.tensordot(m, m, [[0], [1]]), pt.dot(m.T, m.T)),
    ]
    for got, wanted in pairs:
        assert equal_computations([got], [wanted])
    check(
        [(pt.tensordot(m, v, [[1], [0]]), X @ X[0]), (pt.tensordot(m, m, [[0], [0]]), X.T @ X)],
        {m: X, v: X[0]},
    )


def test_static_sizes_of_gradients_of_products():
    for left, right in (
        ((1,), (None,)),
        ((1, None), (None, None)),
        ((None,), (3, None)),
        ((2, 3), (None, None)),
    ):
        x, y = pt.tensor("x", dtype="float64", shape=left), pt.tensor("y", dtype="float64", shape=right)
        for variable, slope in zip((x, y), graphc.grad(pt.dot(x, y).sum(), [x, y]), strict=True):
            assert variable.type.is_super(slope.type), (left, right)
    assert slope.eval({x: X[:2, :3], y: X[:3]}).shape == (3, 4)
    with pytest.raises(ValueError):
        slope.eval({x: X[:2, :3], y: X[:2]})


def test_known_values_of_checks():
    c, x = pt.constant(2), pt.dscalar("x")
    known = pt.get_underlying_scalar_constant_value
    # Elements of what is made of several values, of which others are unknown.
    for made in (pt.stack([x, c * 3, 1]), pt.as_tensor([x, 6.0]), pt.concatenate([pt.stack([x, 6]), [1.0]])):
        assert known(made[1]) == known(made[::-1][made.type.shape[0] - 2]) == known(made[1:][0]) == 6
        with pytest.raises(NotScalarConstantError):
            known(made[0])
    assert known(Assert("")(c, c > 1)) == 2
    for condition in (c > 2, c > x):
        with pytest.raises(NotScalarConstantError):
            known(Assert("")(c, condition))
    assert pt.conj(x) is x and x.conj() is x
    with pytest.raises(ValueError, match="sorter"):
        pt.searchsorted(pt.dvector("v"), x, sorter=pt.lmatrix("m"))


def test_values_for_one_element_have_one_element():
    """As in PyTensor, a wrong size is an AssertionError; it is a ValueError as well, as in NumPy."""
    a, y = pt.dcol("a"), pt.dvector("y")
    f = graphc.function([a, y], [pt.set_subtensor(a[:], y), pt.inc_subtensor(a[0], y)])
    first, second = f(np.ones((3, 1)), [2.0])
    assert first.tolist() == [[2], [2], [2]] and second.tolist() == [[3], [1], [1]]
    for size in (0, 2, 3):
        for error in (AssertionError, ValueError):
            with pytest.raises(error):
                f(np.ones((3, 1)), np.ones(size))


@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_sums_over_several_axes_compare_each_size(mode):
    """Joined into one axis, sizes 3 and 2 would fit sizes 2 and 3."""
    X, Y = np.arange(24.0).reshape(4, 3, 2), np.arange(30.0).reshape(3, 2, 5)
    for left, right in (((None, None), (None, None)), ((3, None), (None, None))):
        x = pt.tensor("x", dtype="float64", shape=(4, *left))
        y = pt.tensor("y", dtype="float64", shape=(*right, 5))
        for product in (pt.tensordot(x, y, 2), pt.einsum("aij,ijb->ab", x, y)):
            f = graphc.function([x, y], product, mode=mode)
            np.testing.assert_array_equal(f(X, Y), np.tensordot(X, Y, 2))
            for error in (ValueError, AssertionError):
                with pytest.raises(error):
                    f(X, Y.reshape(2, 3, 5))

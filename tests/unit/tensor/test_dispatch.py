# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's functions build graphs that compute what NumPy computes."""

from __future__ import annotations

import inspect
from operator import attrgetter

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.basic import Variable
from graphc.tensor import numpy_adapters, numpy_calls

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -6.0]])
B = np.array([[2.0, 1.0, -1.0], [3.0, 0.25, 7.0]])
I = np.array([[3, 1, 2], [6, 5, 4]])  # noqa: E741
N = np.array([[1.0, np.nan, 3.0], [-np.inf, np.inf, 0.0]])
C = A + 1j * B
P = np.abs(A) + 0.5
L = 2**53 + np.array([[1, 3], [5, 7]])

# Of float matrices A and B, integers I, N with NaN and infinities, complex C, positive P and integers L
# that no float64 is.
ELEMENTWISE = [
    lambda: [np.exp(A), np.abs(A), np.negative(A), np.sin(A), np.sign(A), np.square(A), np.positive(A)],
    lambda: [np.add(A, B), A - B, B * A, A / B, A // B, A % B, P**2, np.power(P, B), np.float64(2) * A],
    lambda: [A < B, np.equal(A, 3), np.logical_and(A > 0, B > 0), np.maximum(A, 0.5), np.hypot(A, B)],
    lambda: [I & 3, I | 1, np.invert(I), np.left_shift(I, 1), np.degrees(A), np.radians(A), np.arctan2(A, B)],
    lambda: [np.isnan(N), np.isfinite(N), np.fmax(N, 1.0), np.fmin(1.0, N), np.fabs(A), np.heaviside(A, 0.5)],
    lambda: [*np.modf(A), *np.modf(-N), np.float_power(I, 2), *np.divmod(A, 2), np.conjugate(C)],
    lambda: [A @ B.T, np.matmul(A, B.T), np.vecdot(A, B), np.matvec(A, B[0]), np.vecmat(A[:, 0], B)],
]
METHODS = [
    lambda: [np.add.reduce(A), np.add.reduce(A, axis=1, keepdims=True), np.multiply.reduce(A, axis=None)],
    lambda: [
        np.maximum.reduce(A, 1),
        np.minimum.reduce(A),
        np.logical_or.reduce(A > 3),
        np.logaddexp.reduce(A),
    ],
    lambda: [np.add.accumulate(A, axis=1), np.multiply.accumulate(A), np.maximum.accumulate(A, 0)],
    lambda: [np.subtract.outer(A, B[0]), np.multiply.outer(A, 2.0), np.add.outer(2.0, B)],
]
FUNCTIONS = [
    lambda: [np.sum(A), np.sum(A, axis=0), np.sum(a=A, axis=1, keepdims=True), np.sum(I, dtype="float32")],
    lambda: [np.mean(A, axis=1), np.var(A, ddof=1), np.std(A, 0), np.prod(A, 1), np.amax(A), np.min(A, 0)],
    lambda: [np.argmax(A, axis=1), np.argmin(A), np.any(A > 3, axis=0), np.all(A > 3), np.ptp(A, axis=1)],
    lambda: [
        np.cumsum(A, axis=1),
        np.cumprod(A, 0),
        np.diff(A, axis=1),
        np.median(A),
        np.count_nonzero(A > 0),
    ],
    lambda: [np.concatenate([A, B]), np.concatenate((A, B), axis=1), np.stack([A, B], axis=-1)],
    lambda: [
        np.vstack((A, B)),
        np.hstack((A, B)),
        np.dstack((A, B)),
        np.column_stack((A, B)),
        np.append(A, B),
    ],
    lambda: [*np.split(A, 3, axis=1), *np.split(A, [1, 2], 1), *np.array_split(A, 2, 1), *np.hsplit(A, 3)],
    lambda: [np.reshape(A, (3, 2)), np.ravel(A), np.transpose(A), np.swapaxes(A, 0, 1), np.moveaxis(A, 0, 1)],
    lambda: [
        np.expand_dims(A, 1),
        np.squeeze(A[0][None]),
        np.broadcast_to(A[0], (4, 3)),
        np.atleast_2d(A[0]),
    ],
    lambda: [np.tile(A, (2, 2)), np.repeat(A, 2, axis=0), np.roll(A, 1, axis=1), np.flip(A, 0), np.rot90(A)],
    lambda: [np.pad(A, 1), np.pad(A, ((1, 0), (0, 2)), mode="edge"), np.tril(A), np.triu(A, 1), np.trace(A)],
    lambda: [np.where(A > 0, A, B), np.clip(A, -1, 1), np.clip(A, a_min=0, a_max=None), np.round(A, 1)],
    lambda: [np.round(A), np.round(I, -1), np.nan_to_num(N), np.real(C), np.imag(C), np.angle(C)],
    lambda: [
        np.nansum(N[:, :2]),
        np.nanmax(N[0]),
        np.nanmean(N[:1], axis=1),
        np.average(A, 0, B),
        np.average(A),
    ],
    lambda: [
        np.nanmax(N, 0),
        np.nanmin(N, 1),
        np.nanmax(L),
        np.nanmin(L, axis=0),
        np.nanmax(C),
        np.nansum(L),
    ],
    lambda: [np.nanmax(N[:, 1:2], 1), np.nanmin(N[:, 1:2], 1), np.ptp(A, axis=1, keepdims=True)],
    lambda: [np.dot(A, B.T), np.inner(A, B), np.outer(A[0], B[0]), np.tensordot(A, B, axes=([1], [1]))],
    lambda: [np.einsum("ij,kj->ik", A, B), np.kron(A, B), np.vdot(A, B), np.cross(A, B), np.diagonal(A)],
    lambda: [np.linalg.norm(A), np.linalg.norm(A, axis=1), np.linalg.det(A @ B.T), np.linalg.inv(A @ A.T)],
    lambda: [np.linalg.norm(A[None]), np.linalg.norm(A[None], keepdims=True), np.linalg.norm(A, 1)],
    lambda: [np.linalg.solve(A @ A.T, B), np.linalg.cholesky(A @ A.T), np.linalg.matrix_power(A @ B.T, 2)],
    lambda: [np.take(A, [0, 2], axis=1), np.sort(A, axis=0), np.argsort(A), np.searchsorted(A[0, :1], 2.0)],
    lambda: [
        np.take_along_axis(A, np.argsort(A), 1),
        np.unique(I),
        *np.nonzero(A > 1),
        np.bincount(np.ravel(I)),
    ],
    lambda: [np.zeros_like(A), np.ones_like(A, dtype="int8"), np.full_like(A, 3.0), np.empty_like(A).shape],
    lambda: [np.isclose(A, B), np.allclose(A, A), np.array_equal(A, B), np.array_equal(A, A), np.copy(A)],
    lambda: [*np.meshgrid(A[0], B[1]), np.linspace(A[0], B[0], 4), np.logspace(A[0], 1.0, 3), np.size(A, 1)],
    lambda: [np.interp(A[0], np.sort(B[0]), B[1]), np.quantile(A, 0.3), np.percentile(A, [20, 60], axis=0)],
]


def compare(case, tolerance=1e-12):
    """Run a case on arrays, then on symbolic variables of their types."""
    names = inspect.getclosurevars(case).globals
    arrays = {name: value for name, value in names.items() if isinstance(value, np.ndarray)}
    inputs = {
        name: pt.tensor(name, dtype=value.dtype, shape=(None,) * value.ndim) for name, value in arrays.items()
    }
    expected = case()
    namespace = {**case.__globals__, **inputs}
    symbolic = type(case)(case.__code__, namespace)()
    assert all(isinstance(y, Variable) for y in symbolic)
    f = graphc.function(list(inputs.values()), symbolic, mode="fast_compile")
    for got, want in zip(f(*arrays.values()), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-13)
        if not isinstance(want, bool | int | tuple | float):
            assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("case", [*ELEMENTWISE, *METHODS, *FUNCTIONS])
@pytest.mark.filterwarnings("ignore")
def test_results_are_numpys(case):
    compare(case)


def test_functions_of_scipy_are_ufuncs_too():
    special = pytest.importorskip("scipy.special")
    x = pt.dvector("x")
    f = graphc.function([x], [special.erf(x), special.gammaln(x), special.xlogy(x, 2.0), special.expit(x)])
    v = np.array([0.5, 2.0])
    for got, want in zip(
        f(v), [special.erf(v), special.gammaln(v), special.xlogy(v, 2.0), special.expit(v)], strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_arrays_on_the_left():
    x = pt.dmatrix("x")
    for y in (A + x, A @ x.T, x < A, np.float32(2) / x, A[0] - x, [[1.0, 2.0, 3.0]] * x):
        assert isinstance(y, Variable)
    np.testing.assert_allclose((A @ x.T).eval({x: B}), A @ B.T)


def test_questions_about_types():
    x = pt.fmatrix("x")
    assert np.ndim(x) == 2 and not np.iscomplexobj(x) and np.isrealobj(x)
    assert np.result_type(x, np.float64) == np.float64 and np.result_type(x, 1.0) == np.float32
    assert isinstance(np.shape(x), Variable) and isinstance(np.size(x), Variable)


def test_results_cannot_be_stored():
    x = pt.dmatrix("x")
    a = A.copy()
    with pytest.raises(TypeError, match=r"cannot store its result in out=.*y = a \+ x"):
        a += x
    with pytest.raises(TypeError, match=r"np.sum with out= has no counterpart"):
        np.sum(x, out=a)
    with pytest.raises(
        TypeError, match=r"np.fill_diagonal changes its argument.*graphc.tensor.fill_diagonal"
    ):
        np.fill_diagonal(x, 1.0)
    with pytest.raises(TypeError, match=r"np.copyto changes its argument.*set\(value\)"):
        np.copyto(a, x)


def test_options_without_a_counterpart():
    x = pt.dmatrix("x")
    with pytest.raises(TypeError, match=r"np.add with where= has no counterpart for symbolic variables"):
        np.add(x, x, where=A > 0)
    with pytest.raises(TypeError, match=r"np.sum with out= has no counterpart"):
        np.sum(x, out=A)
    with pytest.raises(TypeError, match=r"np.reshape with order= has no counterpart"):
        np.reshape(x, (3, 2), order="F")
    with pytest.raises(TypeError, match=r"np.add.at \(use y = x\[index\].inc\(value\)\) has no counterpart"):
        np.add.at(x, 0, 1.0)
    with pytest.raises(TypeError, match=r"np.hypot.reduce has no counterpart"):
        np.hypot.reduce(x)


def test_missing_functions_name_similar_ones():
    x = pt.dmatrix("x")
    with pytest.raises(TypeError, match=r"np.isnat has no counterpart for symbolic variables"):
        np.isnat(x)
    with pytest.raises(TypeError, match=r"np.polydiv has no counterpart.*use functions of graphc.tensor"):
        np.polydiv(x[0], x[0])
    with pytest.raises(TypeError, match=r"similar ones are .*graphc.tensor.log1p\b"):
        raise numpy_calls.missing(numpy_calls.symbolic_target(), "np.log1px", "log1px")


def test_values_are_refused():
    x = pt.dmatrix("x")
    with pytest.raises(TypeError, match=r"x has no value before it is run.*graphc.function"):
        np.asarray(x)
    with pytest.raises(TypeError, match="has no value before it is run"):
        np.array([x, x])
    with pytest.raises(TypeError, match="has no value before it is run"):
        np.testing.assert_allclose(x, A)


def test_constants_are_arrays():
    c = pt.constant(A)
    view = np.asarray(c)
    assert not view.flags.writeable and np.array_equal(view, A)
    assert np.asarray(c, dtype="float32").dtype == "float32" and np.array(c).flags.writeable
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(c, dtype="float32", copy=False)


def test_splits_that_do_not_fit():
    x = pt.dmatrix("x")
    with pytest.raises(ValueError, match="size 3 cannot be split into 2 equal parts"):
        np.split(pt.tensor(shape=(3,)), 2)
    f = graphc.function([x], np.split(x, 2))
    assert [y.shape for y in f(np.zeros((4, 1)))] == [(2, 1), (2, 1)]
    with pytest.raises(ValueError, match="no multiple of 2"):
        f(np.zeros((3, 1)))


def test_gradients_pass_through():
    x = pt.dvector("x")
    g = graphc.grad(np.sum(np.tanh(np.concatenate([x, x * 2]))), x)
    v = np.array([0.1, -0.5])
    np.testing.assert_allclose(g.eval({x: v}), 1 / np.cosh(v) ** 2 + 2 / np.cosh(2 * v) ** 2)


def test_names_exist():
    """Names of the tables are NumPy's, and what they stand for exists here."""
    for name, ours in {**numpy_calls.UFUNC_NAMES, **numpy_calls.FUNCTION_NAMES}.items():
        assert numpy_calls._find(ours) is not None, ours
        assert hasattr(np, name) or name == "product", name
    for name, ours in {**numpy_calls.REDUCTIONS, **numpy_calls.ACCUMULATIONS}.items():
        assert isinstance(getattr(np, name), np.ufunc) and numpy_calls._find(ours) is not None
    for name in numpy_adapters.FUNCTIONS:
        assert callable(attrgetter(name)(np)), name

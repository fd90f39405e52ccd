# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``where=``, ``initial=`` and ``out=`` as NumPy has them, in graphs, in environments and through NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

import graphc
import graphc.tensor as pt
from graphc.gradient import verify_grad

A = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
MASK = np.array([[True, False, True], [False, False, False]])
ROW = np.array([True, False, True])

REDUCTIONS = {
    "sum": {"initial": 2.5, "where": MASK},
    "prod": {"initial": 2.0, "where": MASK},
    "max": {"initial": 1.0, "where": MASK},
    "min": {"initial": 1.0, "where": MASK},
    "any": {"where": MASK},
    "all": {"where": MASK},
    "mean": {"where": ROW},
    "var": {"where": ROW},
    "std": {"where": ROW, "ddof": 1},
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_reductions_of_some_elements(env, name, axis, dtype):
    a, options = A.astype(dtype), {"axis": axis, "keepdims": axis == 1, **REDUCTIONS[name]}
    if dtype == "bool" and name in ("var", "std"):
        a = a.astype("int8")  # NumPy cannot subtract them
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, **options)
    symbolic = pt.matrix(dtype=a.dtype.name)
    found = graphc.function([symbolic], getattr(pt, name)(symbolic, **options))(a)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert found.shape == np.shape(expected)
    x = env.numpy_to_tensor(a)
    np.testing.assert_allclose(np.asarray(getattr(np, name)(x, **options)), expected, rtol=tolerance)
    given = {**options, "where": env.numpy_to_tensor(options["where"])}
    np.testing.assert_allclose(np.asarray(getattr(env, name)(x, **given)), expected, rtol=tolerance)


def test_variances_of_too_few_elements(env):
    for a, ddof in [([1.0, 2.0], 3), ([1.0], 1), ([1.0], 2)]:
        x = pt.vector()
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
            expected = np.var(a, ddof=ddof)
        np.testing.assert_equal(float(graphc.function([x], pt.var(x, ddof=ddof))(a)), float(expected))
        np.testing.assert_equal(float(env.var(env.as_tensor(a), ddof=ddof)), float(expected))


def test_extremes_of_no_elements_are_the_initial_value(env):
    for shape, axis in [((0,), None), ((0, 3), 0), ((3, 0), (0, 1)), ((2, 0), 1)]:
        empty = np.zeros(shape)
        found = env.max(env.numpy_to_tensor(empty), axis=axis, initial=-1.5)
        np.testing.assert_array_equal(np.asarray(found), np.max(empty, axis=axis, initial=-1.5))
    assert np.isnan(float(env.max(env.as_tensor([1.0, np.nan]), initial=5.0)))
    for call in (lambda: pt.max(A, where=MASK), lambda: env.min(env.as_tensor(A), where=MASK)):
        with pytest.raises(ValueError, match="needs initial="):
            call()


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_what_a_mask_leaves_out_gives_an_initial_value_no_gradient(kind, mode):
    """An extreme with an initial value is ``maximum`` or ``minimum`` of both: at ties, too."""
    sign = 1.0 if kind == "max" else -1.0
    x, i = pt.matrix("x"), pt.scalar("i")
    reduce, pair = getattr(pt, kind), getattr(pt, f"{kind}imum")
    for mask, axis in product([[True, False, True], [False] * 3, [True] * 3], [None, 0, 1]):
        got = reduce(x, axis=axis, initial=i, where=np.array(mask))
        want = pair(reduce(x[:, np.flatnonzero(mask)], axis=axis), i) if any(mask) and axis != 0 else None
        looped = graphc.scan(
            lambda row, mask=mask: reduce(row, initial=i, where=np.array(mask)),
            sequences=x,
            return_updates=False,
        )
        outputs = [got, *graphc.grad(got.sum(), [x, i])]
        f = graphc.function([x, i], outputs, mode=mode)
        each = graphc.function([x, i], graphc.grad(looped.sum(), [x, i]), mode=mode)
        g = None if want is None else graphc.function([x, i], [want, *graphc.grad(want.sum(), [x, i])])
        for tie in (2.0, 1.0, 9.0):
            data = sign * np.array([[1.0, 5.0, 2.0], [2.0, 7.0, 2.0]])
            found = f(data, sign * tie)
            np.testing.assert_array_equal(
                found[0], getattr(np, kind)(data, axis=axis, where=np.array(mask), initial=sign * tie)
            )
            assert not found[1][:, ~np.array(mask)].any()
            if g is not None:
                for a, b in zip(found, g(data, sign * tie), strict=True):
                    np.testing.assert_array_equal(a, b)
            if axis == 1:
                for a, b in zip(found[1:], each(data, sign * tie), strict=True):
                    np.testing.assert_array_equal(a, b)
    start = 3 if kind == "max" else -3
    for dtype in ("int8", "uint16", "int64", "bool", "float16"):
        for data in (np.zeros((0, 2), dtype), np.ones((3, 2), dtype)):
            initial = np.array(start).astype(dtype)
            v = pt.tensor("v", dtype=dtype, shape=(None, 2))
            found = graphc.function([v], reduce(v, axis=0, initial=initial), mode=mode)(data)
            np.testing.assert_array_equal(found, getattr(np, kind)(data, axis=0, initial=initial))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean", "var", "std"])
def test_reductions_of_some_elements_have_derivatives(name):
    options = {"where": ROW} | ({"initial": 1.5} if name in ("sum", "prod", "max") else {})
    verify_grad(lambda x: getattr(pt, name)(x, axis=1, **options), [A])


LOGSUMEXPS = {
    "factors": (A, {"b": np.array([1.0, 0.0, 2.0]), "axis": 1}),
    "negative": (A, {"b": np.array([[1.0, -3.0, 2.0], [1.0, 1.0, 1.0]]), "axis": 1, "return_sign": True}),
    "of a negative sum": (A, {"b": -1.0}),
    "all": (A, {"b": A, "return_sign": True}),
    "nothing": (np.array([-np.inf, -np.inf]), {"return_sign": True}),
    "cancelled": (np.array([1.0, 1.0]), {"b": np.array([1.0, -1.0]), "return_sign": True}),
    "large": (np.array([1000.0, 999.0]), {"b": np.array([1.0, -1.0]), "return_sign": True}),
    "complex": (A + 1j * A[::-1], {"axis": 0, "return_sign": True}),
    "integers": (np.array([1, 2, 3]), {"b": np.array([1, 2, 0])}),
    "kept": (A, {"b": 2.0, "axis": 0, "keepdims": True}),
    "infinity left out": (np.array([np.inf, 1.0]), {"b": np.array([0.0, 1.0])}),
}


@pytest.mark.parametrize("name", LOGSUMEXPS)
def test_logsumexp_with_factors_and_sign_is_scipys(env, name):
    a, options = LOGSUMEXPS[name]
    with np.errstate(all="ignore"):
        expected = logsumexp(a, **options)
    found = env.logsumexp(env.as_tensor(a), **options)
    built = pt.logsumexp(a, **options)
    several = options.get("return_sign", False)
    for x, y, z in zip(*((each if several else [each]) for each in (found, built, expected)), strict=True):
        np.testing.assert_allclose(np.asarray(x), z, rtol=1e-12)
        np.testing.assert_allclose(y.eval(), z, rtol=1e-12)


def test_logsumexp_with_factors_has_derivatives():
    b = np.array([1.0, 0.3, 2.0])
    verify_grad(lambda x, b: pt.logsumexp(x, axis=1, b=b), [A, b])
    verify_grad(lambda x: pt.logsumexp(x, axis=1, b=b * np.array([1, -1, 1]), return_sign=True)[0], [A])


# Results that are stored ------------------------------------------------------------------------------------


def test_results_are_stored_in_tensors(gt):
    x, out = gt.as_tensor(A), gt.zeros((2, 3))
    view = out[0]
    assert gt.exp(x, out=out) is out and np.allclose(np.asarray(view), np.exp(A[0]))
    assert np.add(x, 1, out=out) is out and np.array_equal(np.asarray(view), A[0] + 1)
    total = gt.zeros((3,))
    assert np.sum(x, axis=0, out=total) is total and gt.sum(x, axis=0, out=total) is total
    np.testing.assert_allclose(np.asarray(total), A.sum(0))
    array = np.zeros((2, 3))
    assert np.multiply(x, 2, out=array) is array and np.array_equal(array, A * 2)
    array += x
    np.testing.assert_array_equal(array, A * 3)
    np.copyto(out, x[0], where=gt.as_tensor(MASK))
    np.testing.assert_array_equal(np.asarray(out), np.where(MASK, A[:1], A + 1))
    with pytest.raises(TypeError, match="same_kind"):
        gt.exp(x, out=gt.zeros((2, 3), "int64"))
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        np.exp(x, out=total)
    with pytest.raises(TypeError, match="must be a tensor or an array"):
        gt.exp(x, out=[1.0])


def test_ufuncs_compute_where_they_are_asked_to(gt):
    x = gt.as_tensor(A)
    for compute in (gt.log, np.log):
        found = compute(x, where=x > 0)
        np.testing.assert_allclose(np.asarray(found), np.log(A, where=A > 0, out=np.zeros((2, 3))))
        out = gt.as_tensor(np.full((2, 3), 7.0))
        compute(x, where=x > 0, out=out)
        np.testing.assert_allclose(np.asarray(out), np.log(A, where=A > 0, out=np.full((2, 3), 7.0)))


def test_ufuncs_change_positions_several_times(gt):
    for name in ("add", "subtract", "multiply", "maximum", "minimum"):
        a = np.array([1.0, 2.0, 3.0])
        x, index, values = gt.as_tensor(a), [0, 0, 2], np.array([0.5, 4.0, -1.0])
        other = a.copy()
        for target in (a, other, x):
            given = values if target is a else gt.as_tensor(values)
            getattr(np, name).at(target, index, given)
        np.testing.assert_allclose(np.asarray(x), a)
        np.testing.assert_allclose(other, a)


def test_stored_results_have_gradients(gt):
    w = gt.as_tensor([1.0, 2.0])
    with gt.tape() as tape:
        x = gt.zeros((2,))
        np.multiply(w, w, out=x)
        gt.exp(w, out=x, where=gt.as_tensor([True, False]))
        np.add.at(x, [1, 1], w)
        loss = x.sum()
    np.testing.assert_allclose(np.asarray(tape.gradient(loss, w)), [np.e + 1, 5.0])

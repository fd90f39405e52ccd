# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, shape functions and products against NumPy: reference, compiled code and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from op_cases import DTYPES, TOLERANCE, perform, sample

import graphc
import graphc.tensor as pt

A = np.random.default_rng(0).normal(size=(2, 3, 4))
M = np.random.default_rng(1).normal(size=(3, 4))
V = np.random.default_rng(2).normal(size=4)

# Name, graph, NumPy, arguments.
CASES: list[tuple[str, Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = [
    ("sum", lambda x: pt.sum(x), np.sum, [A]),
    ("sum axes", lambda x: x.sum(axis=(0, -1), keepdims=True), lambda x: x.sum((0, 2), keepdims=True), [A]),
    ("prod", lambda x: x.prod(axis=1), lambda x: x.prod(1), [A]),
    ("max", lambda x: x.max(axis=-1), lambda x: x.max(-1), [A]),
    ("min", lambda x: x.min(axis=(1, 2)), lambda x: x.min((1, 2)), [A]),
    ("mean", lambda x: x.mean(axis=0), lambda x: x.mean(0), [A]),
    ("var", lambda x: x.var(axis=1, ddof=1), lambda x: x.var(1, ddof=1), [A]),
    ("std", lambda x: x.std(axis=(0, 2)), lambda x: x.std((0, 2)), [A]),
    ("ptp", lambda x: x.ptp(axis=1), lambda x: np.ptp(x, 1), [A]),
    ("logsumexp", lambda x: pt.logsumexp(x, axis=1), lambda x: scipy.special.logsumexp(x, 1), [A]),
    ("softmax", lambda x: pt.softmax(x, axis=-1), lambda x: scipy.special.softmax(x, -1), [A]),
    (
        "log_softmax",
        lambda x: pt.special.log_softmax(x, axis=1),
        lambda x: scipy.special.log_softmax(x, 1),
        [A],
    ),
    ("reshape", lambda x: x.reshape((x.shape[0], -1)), lambda x: x.reshape(2, -1), [A]),
    ("ravel", lambda x: x.ravel(), np.ravel, [A]),
    ("flatten", lambda x: x.flatten(2), lambda x: x.reshape(2, 12), [A]),
    ("transpose", lambda x: x.transpose(1, 2, 0), lambda x: x.transpose(1, 2, 0), [A]),
    ("T", lambda x: x.T, lambda x: x.T, [A]),
    ("swapaxes", lambda x: x.swapaxes(0, 2), lambda x: x.swapaxes(0, 2), [A]),
    ("moveaxis", lambda x: pt.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), [A]),
    ("expand and squeeze", lambda x: pt.squeeze(pt.expand_dims(x, (0, 2))), lambda x: x, [A]),
    (
        "broadcast_to",
        lambda x: pt.broadcast_to(x[:, 0][:, None], (2, 3, 4)),
        lambda x: np.broadcast_to(x[:, :1], (2, 3, 4)),
        [A],
    ),
    ("stack", lambda x, y: pt.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1), [V, V + 1]),
    ("stack of scalars", lambda x: pt.stack([x[0], x[2]]), lambda x: np.stack([x[0], x[2]]), [V]),
    (
        "concatenate",
        lambda x, y: pt.concatenate([x, y], axis=1),
        lambda x, y: np.concatenate([x, y], 1),
        [M, M[:, :2]],
    ),
    ("split", lambda x: pt.split(x, [1, 3], axis=1)[1], lambda x: x[:, 1:4], [M]),
    ("specify_shape", lambda x: pt.specify_shape(x, (3, None)) * 2, lambda x: x * 2, [M]),
    ("zeros_like", lambda x: pt.zeros_like(x) + x, lambda x: x, [M]),
    ("full", lambda x: pt.full((2, x.shape[0]), x[1]), lambda x: np.full((2, 4), x[1]), [V]),
    ("arange", lambda x: pt.arange(x.shape[0]) * x, lambda x: np.arange(4) * x, [V]),
    ("eye", lambda x: pt.eye(3, x.shape[1], k=1) * x, lambda x: np.eye(3, 4, 1) * x, [M]),
    ("tril", lambda x: pt.tril(x, -1), lambda x: np.tril(x, -1), [M]),
    ("triu", lambda x: pt.triu(x), np.triu, [M]),
    ("dot", lambda x, y: pt.dot(x, y), np.dot, [M, V]),
    ("dot of vectors", lambda x, y: x.dot(y), np.dot, [V, V + 1]),
    ("vector times matrix", lambda x, y: x @ y, np.matmul, [V, M.T]),
    ("matmul", lambda x, y: x @ y, np.matmul, [M, M.T]),
    ("batched matmul", lambda x, y: pt.matmul(x, y), np.matmul, [A, A.transpose(0, 2, 1)]),
    ("matmul with a broadcast", lambda x, y: pt.matmul(x, y), np.matmul, [A, M.T]),
    ("outer", lambda x, y: pt.outer(x, y), np.outer, [V, V]),
    ("tensordot", lambda x, y: pt.tensordot(x, y, 2), lambda x, y: np.tensordot(x, y, 2), [A, M]),
    (
        "tensordot axes",
        lambda x, y: pt.tensordot(x, y, [[1], [0]]),
        lambda x, y: np.tensordot(x, y, [[1], [0]]),
        [A, M],
    ),
]
IDS = [case[0] for case in CASES]


def _variables(arrays: list[np.ndarray], static: bool) -> list[Any]:
    return [pt.tensor(dtype=a.dtype, shape=a.shape if static else (None,) * a.ndim) for a in arrays]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("graph", "reference", "arrays"), [case[1:] for case in CASES], ids=IDS)
def test_values(graph: Any, reference: Any, arrays: list[np.ndarray], static: bool) -> None:
    variables = _variables(arrays, static)
    out = graph(*variables)
    want = reference(*arrays)
    if static:
        assert out.type.shape == want.shape
    (got,) = perform([out], dict(zip(variables, arrays, strict=True)))
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_compiled_values(static: bool) -> None:
    variables, values, outputs = [], [], []
    for _, graph, _, arrays in CASES:
        inputs = _variables(arrays, static)
        outputs.append(graph(*inputs))
        variables += inputs
        values += arrays
    function = graphc.function(variables, outputs)
    for got, (name, _, reference, arrays) in zip(function(*values), CASES, strict=True):
        np.testing.assert_allclose(got, reference(*arrays), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(("graph", "reference", "arrays"), [case[1:] for case in CASES], ids=IDS)
def test_gradients(graph: Any, reference: Any, arrays: list[np.ndarray]) -> None:
    graphc.verify_grad(graph, arrays, rng=np.random.default_rng(3), mode="reference")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_reductions(dtype: str) -> None:
    data = sample(dtype, (3, 4), np.random.default_rng(4), (-1.0, 2.0))
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    names = ["sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin"]
    # Of all elements, and along one of the axes in turn.
    turn = DTYPES.index(dtype)
    calls = [(name, axis) for i, name in enumerate(names) for axis in (None, (i + turn) % 2)]
    outputs = [getattr(x, name)(axis=axis) for name, axis in calls]
    wants = [getattr(data, name)(axis=axis) for name, axis in calls]
    function = graphc.function([x], outputs)
    for result in (perform(outputs, {x: data}), function(data)):
        for got, want in zip(result, wants, strict=True):
            assert got.dtype == want.dtype
            tolerance = TOLERANCE.get(want.dtype.name, 0)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_products_with_zeros_have_gradients() -> None:
    x = pt.vector("x")
    gradient = graphc.grad(x.prod(), x)
    for data, want in (
        ([2.0, 0.0, 3.0], [0, 6, 0]),
        ([0.0, 0.0, 3.0], [0, 0, 0]),
        ([1.0, 2.0, 3.0], [6, 3, 2]),
    ):
        np.testing.assert_array_equal(perform([gradient], {x: np.array(data)})[0], want)


def test_empty_arrays() -> None:
    x = pt.matrix("x")
    empty = np.zeros((0, 3))
    outputs = [
        x.sum(),
        x.sum(axis=0),
        x.prod(axis=1),
        x.T,
        x.reshape((-1, 3)),
        pt.concatenate([x, x]),
        x.any(),
    ]
    wants = [empty.sum(), empty.sum(0), empty.prod(1), empty.T, empty, empty, np.False_]
    function = graphc.function([x], outputs)
    for result in (perform(outputs, {x: empty}), function(empty)):
        for got, want in zip(result, wants, strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="empty axis"):
        perform([x.max(axis=0)], {x: empty})


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference", "interpret"])
@pytest.mark.parametrize("static", [False, True], ids=["unknown", "static"])
def test_log_sums_of_nothing(dtype: str, mode: str, static: bool) -> None:
    """As SciPy's: -inf, whose slopes are those of no elements, in loops and batches too."""
    for shape in ((3, 0), (0, 3), (0, 0)):
        x = pt.tensor("x", dtype=dtype, shape=shape if static else (None, None))
        y = pt.tensor("y", dtype=dtype, shape=shape[1:] if static else (None,))
        for axis in (0, 1, None):
            f = graphc.function([x], [pt.logsumexp(x, axis), pt.log(pt.exp(x).sum(axis))], mode=mode)
            for found in f(np.zeros(shape, dtype)):
                wanted = np.full(np.zeros(shape).sum(axis).shape, -np.inf, dtype)
                np.testing.assert_array_equal(found, wanted)
        if dtype == "float64":
            slopes = graphc.grad(pt.logsumexp(x, axis=1).sum(), x)
            assert graphc.function([x], slopes, mode=mode)(np.zeros(shape)).shape == shape
            rows = graphc.scan(pt.logsumexp, sequences=[x], return_updates=False)
            each = graphc.vectorize_graph(pt.logsumexp(y), {y: x})
            found = graphc.function([x], [rows, each], mode=mode)(np.zeros(shape))
            np.testing.assert_array_equal(found, np.full((2, shape[0]), -np.inf))


def test_errors_at_run_time() -> None:
    x, y = pt.matrix("x"), pt.matrix("y")
    a, b = np.zeros((2, 3)), np.zeros((2, 4))
    for graph, message in (
        (x @ y, "matrix product of arrays of shapes"),
        (x.reshape((5, 2)), "cannot reshape an array of shape"),
        (pt.concatenate([x, y]), "all other sizes must agree"),
        (pt.specify_shape(x, (2, 7)), "expected shape"),
        (pt.broadcast_to(x, (2, 9)), "cannot broadcast an array"),
        (pt.split(x, [1, 1], axis=1)[0], "expected shape"),
    ):
        with pytest.raises(ValueError, match=message):
            perform([graph], {x: a, y: b})
        with pytest.raises(ValueError):
            graphc.function([x, y], graph, on_unused_input="ignore")(a, b)


def test_errors_when_building() -> None:
    x = pt.tensor("x", dtype="float64", shape=(2, 3))
    for build, message in (
        (lambda: x.reshape((4, 2)), "cannot reshape"),
        (lambda: x.reshape((-1, -1)), "one size only"),
        (lambda: x @ x, "sizes 3 and 2 differ"),
        (lambda: x.sum(axis=2), "axis 2 is out of range"),
        (lambda: pt.specify_shape(x, (2, 4)), "static shape"),
        (lambda: pt.concatenate([x, x.T]), "differ in dimension 1"),
        (lambda: pt.arange(0, 5, 0), "step of arange must be finite and not 0, got 0"),
        (lambda: x.squeeze(axis=0), "has size 2, not 1"),
    ):
        with pytest.raises(ValueError, match=message):
            build()


def test_shapes_are_folded() -> None:
    x = pt.tensor("x", dtype="float64", shape=(None, 6))
    assert x.reshape((x.shape[0], 2, -1)).type.shape == (None, 2, 3)
    assert x.reshape((-1, x.shape[1] // 2)).type.shape == (None, 3)
    assert pt.zeros((x.shape[1] + 1,)).type.shape == (7,)
    assert pt.zeros(pt.concatenate([x.shape[1:], [2]])).type.shape == (6, 2)


def _cancelling(x, y, m):
    """Reductions of differences that are 0, or NaN where their terms are not finite."""
    d, e = x - x, m - m
    rows = graphc.scan(lambda v, s: s + (v - v), m, m[0] * 0, return_updates=False)[-1]
    return {
        "sum": d.sum(), "mean": d.mean(), "var": d.var(), "prod": d.prod(), "products": (x * y - x * y).sum(),
        "functions": (pt.exp(x) - pt.exp(x)).sum(), "scaled": (2 * x - 2 * x).sum(),
        "negated": (x + -x).sum(),
        "back": (x + y - x).sum(), "quotients": (x / x).prod(), "zero": (x * 0).sum(), "all": e.sum(),
        "columns": e.sum(axis=0), "rows": e.sum(axis=1), "dot": pt.dot(d, y), "matvec": pt.dot(e, y),
        "running": pt.cumsum(d), "products that run": pt.cumprod(x - x + 1), "loop": rows,
        "loop of scalars": graphc.scan(lambda v, s: s + (v - v), x, x[0] * 0, return_updates=False)[-1],
        "sums": x.sum() - x.sum(), "max": d.max() if x.type.dtype[0] == "f" else d.sum(),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("size", [None, 5])
def test_sums_keep_nan(dtype, size):
    """Sums may be computed in another order, but not as if x - x were 0."""
    x, y, m = (pt.tensor(name, dtype=dtype, shape=(size,) * n) for name, n in (("x", 1), ("y", 1), ("m", 2)))
    costs = _cancelling(x, y, m)
    f = graphc.function([x, y, m], costs)
    reference = graphc.function([x, y, m], costs, mode="reference")
    for special in (np.inf, -np.inf, np.nan, 1.0):
        for n in (5,) if size else (5, 100, 6000):
            v = np.ones(n, dtype)
            v[n // 2] = special
            w = np.full((5, n), 2, dtype)
            w[3, 1] = special
            found, wanted = f(v, v, w), reference(v, v, w)
            for name in costs:
                np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(wanted[name]), err_msg=name)

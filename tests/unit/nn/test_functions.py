# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations, losses and normalization: equal to their formulas, stable, with right gradients."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_batches import verify_grads
from scipy import special

import graphc
import graphc.tensor as pt
from graphc.tensor import nn

RNG = np.random.default_rng(0)


def sigmoid(x):
    return special.expit(x)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "gelu": lambda x: x * special.ndtr(x),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "sigmoid": sigmoid,
    "glu": lambda x: x[..., :2] * sigmoid(x[..., 2:]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_activations(dtype):
    x = np.array([[-800.0, -3.5, -1e-3, 0.0], [2e-4, 0.7, 5.5, 800.0]], dtype)
    v = pt.matrix(dtype=dtype)
    for mode in ("fast_run", "reference"):
        results = graphc.function([v], [getattr(nn, name)(v) for name in ACTIVATIONS], mode=mode)(x)
        for (name, reference), got in zip(ACTIVATIONS.items(), results, strict=True):
            with np.errstate(all="ignore"):
                want = reference(x.astype("float64"))
            assert got.dtype == dtype, name
            rtol = 1e-12 if dtype == "float64" else 2e-5
            np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-30, err_msg=f"{name}, {mode}")


def test_gradients_of_activations():
    x = RNG.normal(size=(3, 4)) * 2 + 0.05
    cases = {name: (getattr(nn, name), [x]) for name in ACTIVATIONS}
    cases["gelu by tanh"] = (lambda x: nn.gelu(x, approximate="tanh"), [x])
    cases["prelu"] = (lambda x, a: nn.prelu(x, a), [x, RNG.normal(size=4)])
    verify_grads(cases)


def test_variants_and_errors():
    x = RNG.normal(size=(3, 4))
    tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(nn.gelu(x, approximate=True).eval(), tanh, rtol=1e-12)
    np.testing.assert_allclose(nn.swish(x, 2.0).eval(), x * sigmoid(2 * x), rtol=1e-12)
    with pytest.raises(ValueError, match="approximate"):
        nn.gelu(x, approximate="yes")
    with pytest.raises(ValueError, match="odd"):
        nn.glu(np.ones(3))


def test_one_hot():
    x = pt.imatrix("x")
    a = np.array([[0, 2], [5, -1]], np.int32)
    last, first = graphc.function([x], [nn.one_hot(x, 3), nn.one_hot(x, 3, "int8", axis=0)])(a)
    want = (a[..., None] == np.arange(3)).astype("float64")
    np.testing.assert_array_equal(last, want)
    np.testing.assert_array_equal(first, np.moveaxis(want, -1, 0))
    assert first.dtype == "int8"
    with pytest.raises(TypeError, match="class numbers"):
        nn.one_hot(np.ones(3), 3)


def test_cross_entropies():
    z, labels = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])
    p = special.softmax(z, axis=1)
    hot = np.eye(4)[labels]
    q = special.softmax(RNG.normal(size=(5, 4)), axis=1)
    Z, L, Q = pt.dmatrix(), pt.lvector(), pt.dmatrix()
    results = graphc.function(
        [Z, L, Q],
        [
            nn.softmax_cross_entropy(Z, L),
            nn.softmax_cross_entropy(Z, nn.one_hot(L, 4)),
            nn.softmax_cross_entropy(Z, Q),
            nn.softmax_cross_entropy(Z.T, L, axis=0),
            nn.categorical_crossentropy(nn.softmax(Z, axis=1), L),
            nn.categorical_crossentropy(Q, nn.one_hot(L, 4)),
            nn.sigmoid_binary_crossentropy(Z, Q),
            nn.binary_crossentropy(Q, nn.one_hot(L, 4)),
            nn.huber_loss(Z * 3, Q),
        ],
    )(z, labels, q)
    log_p = np.log(p)
    own = -log_p[np.arange(5), labels]
    error = np.abs(3 * z - q)
    expected = [
        *(own, own, -(q * log_p).sum(1), own, own, -np.log(q[np.arange(5), labels])),
        -(q * np.log(sigmoid(z)) + (1 - q) * np.log(sigmoid(-z))),
        -(hot * np.log(q) + (1 - hot) * np.log1p(-q)),
        np.where(error < 1, error**2 / 2, error - 0.5),
    ]
    for i, (got, want) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-10, err_msg=str(i))


def test_softmax_cross_entropy_is_stable_and_differentiable():
    z = np.array([[1000.0, 0.0, -1000.0]])
    assert nn.softmax_cross_entropy(z, np.array([2])).eval()[0] == 2000
    labels = np.array([[0, 2], [1, 1]])
    graphc.verify_grad(lambda x: nn.softmax_cross_entropy(x, labels), [RNG.normal(size=(2, 2, 3))], rng=RNG)
    Z, L = pt.dmatrix(), pt.lvector()
    f = graphc.function([Z, L], nn.softmax_cross_entropy(Z, L))
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="out of bounds"):
            f(z, np.array([wrong]))
    with pytest.raises(TypeError, match="class numbers"):
        nn.softmax_cross_entropy(Z, pt.dvector())


def test_normalization():
    x, g, b = RNG.normal(size=(6, 4, 5)), RNG.normal(size=5), RNG.normal(size=5)
    gc, bc = RNG.normal(size=4), RNG.normal(size=4)
    X, G, B, GC, BC = pt.dtensor3(), *pt.dvectors(4)
    normal, mean, variance = nn.batch_norm(X, GC, BC)
    results = graphc.function(
        [X, G, B, GC, BC],
        [
            nn.layer_norm(X, G, B),
            nn.layer_norm(X, axis=(1, 2)),
            nn.rms_norm(X, G),
            *(normal, mean, variance, nn.batch_normalization(X, mean, variance, GC, BC)),
            nn.group_norm(X, 2, GC, BC),
        ],
    )(x, g, b, gc, bc)

    def standard(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    batch = standard(x, (0, 2)) * gc[:, None] + bc[:, None]
    groups = standard(x.reshape(6, 2, 2, 5), (2, 3)).reshape(x.shape) * gc[:, None] + bc[:, None]
    expected = [
        standard(x, (2,)) * g + b,
        standard(x, (1, 2)),
        x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * g,
        *(batch, x.mean((0, 2)), x.var((0, 2)), batch, groups),
    ]
    for i, (got, want) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=str(i))
    verify_grads({
        "layer": (lambda x, g: nn.layer_norm(x, g), [x[0], g]),
        "batch": (lambda x, g: nn.batch_norm(x, g)[0], [x[:3, :, :2], gc]),
    })  # fmt: skip


def test_dropout():
    stream = pt.random.RandomStream(3)
    x = pt.dmatrix("x")
    f = graphc.function([x], [nn.dropout(x, 0.25, stream), nn.dropout(x, 0.25, stream, train=False)])
    a = RNG.normal(size=(100, 100)) + 10
    got, same = f(a)
    np.testing.assert_array_equal(same, a)
    dropped = got == 0
    assert 0.2 < dropped.mean() < 0.3
    np.testing.assert_allclose(got[~dropped], a[~dropped] / 0.75)
    assert (f(a)[0] != got).any()
    rng = graphc.shared(np.random.default_rng(0))
    after, y = nn.dropout(x, 0.5, rng, return_next_rng=True)
    assert graphc.function([x], y, updates={rng: after})(a).shape == a.shape
    with pytest.raises(ValueError, match="probability"):
        nn.dropout(x, 1.0, rng)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX functions as ops. Tests that need JAX are skipped without it."""

import sys

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

rng = np.random.default_rng(5)
X, W = rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
# Graphs of JAX ops alone need no compiler, so these run where only JAX is installed, too.
MODE = "reference"


def test_without_jax_the_message_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"wrap_jax needs JAX.*pip install jax"):
        graphc.wrap_jax(lambda x: x)(pt.dvector())


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def layer(x, parameters):
    import jax.numpy as jnp

    return {"y": jnp.tanh(x @ parameters["w"]), "n": jnp.sum(x, axis=0)}


def test_trees_types_and_second_derivatives(jax):
    x, w = pt.dmatrix("x"), pt.tensor("w", shape=(None, 3), dtype="float64")
    out = graphc.wrap_jax(layer)(x, {"w": w})
    assert out["y"].type.shape == (None, 3) and out["n"].type.shape == (None,)
    loss = (out["y"] ** 2).sum() + out["n"].sum()
    slopes = graphc.grad(loss, [x, w])
    curved = graphc.grad((slopes[0] ** 2).sum(), x)
    got = graphc.function([x, w], [loss, *slopes, curved], mode=MODE)(X, W)

    def plain(x, w):
        return (pt.tanh(x @ w) ** 2).sum() + x.sum()

    slopes = graphc.grad(plain(x, w), [x, w])
    wanted = [plain(x, w), *slopes, graphc.grad((slopes[0] ** 2).sum(), x)]
    for one, other in zip(got, graphc.function([x, w], wanted, mode=MODE)(X, W), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_dtypes_and_discrete_inputs(jax):
    import jax.numpy as jnp

    x, i = pt.fvector("x"), pt.lscalar("i")
    y = graphc.wrap_jax(lambda x, i: jnp.where(jnp.arange(x.shape[0]) < i, x * 2, x))(x, i)
    assert y.dtype == "float32"
    f = graphc.function([x, i], [y, graphc.grad(y.sum(), x)], mode=MODE)
    values, slope = f(np.ones(3, "float32"), 2)
    np.testing.assert_array_equal(values, [2, 2, 1])
    np.testing.assert_array_equal(slope, [2, 2, 1])


def test_batches(jax):
    from graphc.transforms.vectorize import vectorize_graph

    x, w, many = pt.dmatrix("x"), pt.dmatrix("w"), pt.dtensor3("many")
    y = graphc.wrap_jax(layer)(x, {"w": w})["y"]
    f = graphc.function([many, w], vectorize_graph(y, {x: many}), mode=MODE)
    np.testing.assert_allclose(f(np.stack([X, -X]), W), np.tanh(np.stack([X @ W, -X @ W])))


def test_errors_of_the_function(jax):
    with pytest.raises(TypeError, match=r"(?s)JAX cannot trace layer .*static shapes"):
        graphc.wrap_jax(layer)(pt.dmatrix(), {"w": pt.tensor("w", shape=(7, 3), dtype="float64")})

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``vectorize`` against ``numpy.vectorize``, and ``vmap``."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

RNG = np.random.default_rng(2)


def compiled(function, *values):
    """``function`` of inputs of these values' shapes, run on them."""
    inputs = [pt.tensor(dtype=v.dtype, shape=tuple(1 if n == 1 else None for n in v.shape)) for v in values]
    return graphc.function(inputs, function(*inputs))(*values)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4))]
)
def test_signatures(shapes):
    def product(a, b):
        return a @ b

    values = [RNG.normal(size=shape) for shape in shapes]
    ours = compiled(pt.vectorize(product, signature="(m,k),(k,n)->(m,n)"), *values)
    np.testing.assert_allclose(ours, np.vectorize(product, signature="(m,k),(k,n)->(m,n)")(*values))


def test_scalars_by_default():
    @pt.vectorize
    def clipped(x, low):
        return graphc.ifelse(x < low, low, x)

    values = [RNG.normal(size=(3, 1)), RNG.normal(size=4)]
    np.testing.assert_array_equal(compiled(clipped, *values), np.maximum(*values))
    assert clipped(1.5, 2).eval() == 2 and clipped.__name__ == "clipped"


def test_several_results():
    def moments(x):
        return x.mean(), x - x.mean()

    f = pt.vectorize(moments, signature="(n)->(),(n)")
    x = RNG.normal(size=(2, 3, 4))
    mean, centred = compiled(f, x)
    np.testing.assert_allclose(mean, x.mean(-1))
    np.testing.assert_allclose(centred, x - x.mean(-1, keepdims=True))


def test_excluded_arguments():
    def power(x, n, scale=1):
        out = scale
        for _ in range(n):
            out = out * x
        return out

    f = pt.vectorize(power, excluded={1, "scale"})
    x = RNG.normal(size=5)
    np.testing.assert_allclose(f(x, 3, scale=2).eval(), 2 * x**3)
    np.testing.assert_allclose(pt.vectorize(power, excluded={"n", "scale"})(x, 2).eval(), x**2)


def test_loops_inside():
    def newton(a):
        return graphc.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)

    a = np.array([[2.0, 9.0], [0.5, 100.0]])
    np.testing.assert_allclose(compiled(pt.vectorize(newton), a), np.sqrt(a))


def test_gradient():
    norm = pt.vectorize(lambda v: pt.sqrt((v**2).sum()), signature="(n)->()")
    graphc.verify_grad(norm, [RNG.normal(size=(3, 2))])


def test_errors():
    def both(a, b):
        return a + b

    with pytest.raises(ValueError, match="a signature has the form"):
        pt.vectorize(both, signature="(n->n")(1, 2)
    with pytest.raises(ValueError, match="both takes 1 arrays by its signature"):
        pt.vectorize(both, signature="(n)->(n)")([1], [2])
    with pytest.raises(ValueError, match=r"argument 0 of both must have at least the dimensions \(m, n\)"):
        pt.vectorize(both, signature="(m,n),(n)->(n)")([1], [2])
    with pytest.raises(ValueError, match="core dimension n has the sizes 2 and 3"):
        pt.vectorize(both, signature="(n),(n)->(n)")([1, 2], [2, 3, 4])
    with pytest.raises(ValueError, match=r"result 0 of both must have the dimensions \(\)"):
        pt.vectorize(both, signature="(n),(n)->()")([1, 2], [2, 3])
    with pytest.raises(ValueError, match="must return 2 results"):
        pt.vectorize(both, signature="(n),(n)->(),()")([1, 2], [2, 3])
    with pytest.raises(TypeError, match="excluded"):
        pt.vectorize(both)(1, b=2)
    with pytest.raises(TypeError, match="must return a variable"):
        pt.vectorize(lambda a: None)(1)


def test_vmap():
    m, v = RNG.normal(size=(3, 2, 4)), RNG.normal(size=4)
    f = graphc.vmap(lambda a, b: (a @ b, a.sum(0), b), in_axes=(1, None), out_axes=(0, 1, 0))
    product, sums, same = compiled(f, m, v)
    np.testing.assert_allclose(product, np.stack([m[:, i] @ v for i in range(2)]))
    np.testing.assert_allclose(sums, m.sum(0).T)
    np.testing.assert_allclose(same, np.stack([v, v]))
    nested = graphc.vmap(graphc.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(compiled(nested, v, v), np.outer(v, v))
    with pytest.raises(ValueError, match="needs an argument to map over"):
        graphc.vmap(lambda a: a, in_axes=None)(v)
    with pytest.raises(ValueError, match="in_axes must have 1 entries"):
        graphc.vmap(lambda a: a, in_axes=(0, 1))(v)
    with pytest.raises(ValueError, match="axes of different sizes"):
        graphc.vmap(lambda a, b: a)(v, m)


def test_in_immediate_mode():
    gt = graphc.immediate.Environment()

    @gt.vectorize(signature="(n),(n)->()")
    def distance(p, q):
        return gt.sqrt(((p - q) ** 2).sum())

    points = gt.as_tensor([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(distance(points[:, None], points[None]), [[0, 5], [5, 0]])
    # Other functions of the same name are other functions.
    total, largest = (gt.vectorize(f, signature="(n)->()") for f in (lambda v: v.sum(), lambda v: v.max()))
    assert total(points).tolist() == [0, 7] and largest(points).tolist() == [0, 4]
    assert gt.vmap(lambda v: v.sum(), 1)(points).tolist() == [3, 4]

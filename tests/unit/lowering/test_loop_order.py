# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over arrays with few columns, of which the loop over rows becomes the innermost one."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.lowering import loops


def functions(z: graphc.Variable) -> graphc.Variable:
    return pt.log1p(pt.exp(z)) * pt.tanh(z) + pt.sin(z)


def expected(z: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(z)) * np.tanh(z) + np.sin(z)


@pytest.fixture
def swapped(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What was decided for each nest."""
    found: list[bool] = []
    decide = loops.swap_short_loop

    def noted(*arguments):
        found.append(decide(*arguments))
        return found[-1]

    monkeypatch.setattr(loops, "swap_short_loop", noted)
    return found


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 90, 511, 512, 1500])
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_sizes(rows, columns, no_cache, swapped):
    x, c = pt.tensor("x", shape=(None, 1)), pt.tensor("c", shape=(columns,))
    f = graphc.function([x, c], functions(x + c))
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=(rows, 1)), rng.normal(size=columns)
    np.testing.assert_allclose(f(a, b), expected(a + b), rtol=1e-13)
    assert any(swapped) == (columns in (2, 3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layouts(dtype, no_cache, swapped):
    """Three axes, transposes, steps, columns of a wider array, and results in the memory of an argument."""
    x, y = pt.tensor("x", dtype=dtype, shape=(None, 40, 5)), pt.tensor("y", dtype=dtype, shape=(2, 60))
    outputs = [functions(x[:, :, 1:4:2]), functions(x[:, ::-2, :3] + 1), functions(y.T * y[:, :1].T)]
    f = graphc.function([x, graphc.In(y, mutable=True)], [*outputs, functions(y.T)])
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 40, 5)).astype(dtype), rng.normal(size=(2, 60)).astype(dtype)
    values = [a[:, :, 1:4:2], a[:, ::-2, :3] + 1, b.T * b[:, :1].T, b.T]
    wants = [expected(value) for value in values]
    for got, want in zip(f(a, b.copy()), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6 if dtype == "float32" else 1e-13, atol=1e-7)
    assert any(swapped)


def test_gradients_and_sums(no_cache, swapped):
    """Sums by both axes in one graph."""
    x, c = pt.tensor("x", shape=(90, 1)), pt.tensor("c", shape=(2,))
    gradients = graphc.grad(functions(x + c).sum(), [x, c])
    f = graphc.function([x, c], gradients)
    g = graphc.function([x, c], gradients, mode="reference")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(90, 1)), rng.normal(size=2)
    for got, want in zip(f(a, b), g(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("rows", [None, 0, 16, 200, 40_000])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_sums(axis, rows, no_cache, swapped):
    """Along the short loop, along the other one, and along both, in parts where there are many."""
    x, c = pt.tensor("x", shape=(rows, 5)), pt.tensor("c", shape=(5,))
    z = functions(x + c)
    f = graphc.function([x, c], [z.sum(axis), z, (z > -9).all(axis)])
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows or 30 * (rows is None), 5)), rng.normal(size=5)
    want = expected(a + b)
    total, each, flag = f(a, b)
    np.testing.assert_allclose(total, want.sum(axis), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(each, want, rtol=1e-12)
    assert flag.all()
    assert any(swapped) == (rows != 0 and (axis != (0, 1) or rows in (16, 200)))


@pytest.mark.parametrize(
    ("columns", "several", "wanted"), [(3, False, False), (3, True, True), (6, False, True)]
)
def test_row_sums_of_few_functions(columns, several, wanted, no_cache, swapped):
    """LLVM unrolls a short row of few functions, unless several results are stored."""
    x, c = pt.tensor("x", shape=(200, columns)), pt.tensor("c", shape=(columns,))
    z = pt.exp(x + c) * pt.sin(x + c)
    graphc.function([x, c], [z.sum(1), *[z] * several])
    assert any(swapped) == wanted

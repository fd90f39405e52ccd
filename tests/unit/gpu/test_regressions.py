# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that random ones were shrunk to, whose kernels or calls computed something else."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import device_for

import graphc
import graphc.tensor as pt


def agree(monkeypatch, inputs, outputs, *values):
    """Compares kernels with what is compiled for the host."""
    f = graphc.function(inputs, outputs, mode="cuda")
    device_for(monkeypatch, f)
    for found, expected in zip(f(*values), graphc.function(inputs, outputs)(*values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_nest_that_one_pass_looks_at_is_whole_for_the_next(monkeypatch):
    """The pass of column sums merged dimensions of what it then left alone."""
    x = pt.tensor("x", dtype="float64", shape=(1, 2, 2))
    column = x[:, None][:, :, :, :1]
    below = pt.pad(column, ((0, 3), (0, 0), (0, 0), (0, 0)))
    padded = pt.squeeze(pt.pad(below, ((0, 0), (0, 0), (0, 3), (0, 0))), axis=1)
    agree(monkeypatch, [x], [padded], np.arange(4.0).reshape(1, 2, 2))


def test_a_row_of_a_matrix_is_reduced(monkeypatch):
    """It is one-dimensional, but does not lie in memory as vectors do."""
    x, y, m = pt.dmatrix("x"), pt.dvector("y"), pt.dmatrix("m")
    rows = graphc.scan(
        lambda a, b, m: (b[:, None] + m).max(axis=0) + a,
        sequences=[x], outputs_info=[y], non_sequences=[m], return_updates=False,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 5)), rng.normal(size=5), rng.normal(size=(5, 5))
    agree(monkeypatch, [x, y, m], [rows[-1].max(), pt.argmax(rows[-1])], *values)


@pytest.mark.parametrize("replaced", [1, 2])
def test_shared_variables_that_are_only_replaced(monkeypatch, replaced):
    """Their old values are no arguments of kernels."""
    x = pt.dvector("x")
    states = [graphc.shared(np.zeros(2), f"s{i}", shape=(None,)) for i in range(replaced)]
    read = graphc.shared(np.ones(3), "read", shape=(None,))
    updates = {state: x * (i + 2) for i, state in enumerate(states)} | {read: read + x}
    f = graphc.function([x], x + 1, updates=updates, mode="cuda")
    device_for(monkeypatch, f)
    given = np.arange(3.0)
    np.testing.assert_array_equal(f(given), given + 1)
    for i, state in enumerate(states):
        np.testing.assert_array_equal(state.get_value(), given * (i + 2))
    np.testing.assert_array_equal(read.get_value(), given + 1)


def test_the_first_element_of_an_array_has_no_axes(monkeypatch):
    """Where its offset is 0 it is the buffer itself."""
    x, y = pt.dvector("x"), pt.dmatrix("y")
    agree(monkeypatch, [x, y], [x[0], y[0, 0] + 1], np.arange(3.0), np.ones((2, 2)))


def test_complex_numbers_are_made_in_kernels(monkeypatch):
    """Constants of two parts are no arguments of a kernel, which takes none."""
    x = pt.zmatrix("x")
    agree(monkeypatch, [x], [pt.linalg.matrix_power(x, -2), pt.sum(x) * x], np.array([[1 + 1j, 2], [0, 1j]]))


def test_halves_are_arguments(monkeypatch):
    x, y = pt.tensor("x", dtype="float16", shape=(1, 1)), pt.tensor("y", dtype="float16", shape=(None, None))
    given = np.zeros((1, 1), "float16"), np.full((1, 1), 2.5, "float16")
    agree(monkeypatch, [x, y], [pt.set_subtensor(x[:, :1], y)], *given)


def test_what_a_run_of_rows_has_passed_over_is_computed_before_it(monkeypatch):
    """The maximum was in the kernel of the next run, behind the one of the product, which read it."""
    a, b = (pt.tensor(name, dtype="float64", shape=(5,)) for name in "ab")
    c = pt.tensor("c", dtype="int64", shape=(4,))
    given = np.arange(5.0), np.ones(5), np.arange(4)
    agree(monkeypatch, [a, b, c], [pt.logsumexp(c, axis=(0,)), pt.dot(a, b)], *given)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_side_of_a_product_lies_between_other_arrays(monkeypatch, dtype):
    """Elements that are apart cannot be copied to shared memory while threads compute."""
    x = pt.tensor("x", dtype=dtype, shape=(2, 2))
    square = x * x
    with graphc.config.change_flags(matmul_precision="tf32"):
        stacked = pt.stack([square, square @ square.T], axis=2)
        agree(monkeypatch, [x], [stacked], np.array([[1, 2], [3, 0.5]], dtype))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: pt.stack([x[0], x[0]], axis=1),
        lambda x: pt.exp(x) + pt.constant(np.zeros((2, 0, 2), "float32")),
        lambda x: pt.concatenate([x, pt.cos(x)], axis=-3),
        lambda x: pt.inc_subtensor(x[:, 4::-1][:], 1),
    ],
    ids=["stack", "constant", "concatenate", "update"],
)
@pytest.mark.parametrize("shape", [(2, 0, 2), (None, 0, None), (None, None, None)])
def test_arrays_without_elements(monkeypatch, build, shape):
    """Programs of which no kernel is left have no code, which a driver refuses to load."""
    x = pt.tensor("x", dtype="float32", shape=shape)
    f = graphc.function([x], build(x), mode="cuda")
    device_for(monkeypatch, f)
    value = np.zeros((2, 0, 2), "float32")
    expected = graphc.function([x], build(x))(value)
    for _ in range(4):
        found = np.asarray(f(value))
        assert found.shape == expected.shape and found.dtype == expected.dtype


@pytest.mark.parametrize("beside", [1, 2, 5, 9, 17, 40, 200])
def test_blocks_of_single_rows_are_whole_warps(monkeypatch, beside):
    """Reductions to one number share a kernel with what has few elements: lanes of no thread were asked."""
    values = np.arange(1.0, 6.0), np.ones((2, 3)), np.linspace(-1, 1, beside), np.float32(range(beside))
    x, m = pt.dvector("x"), pt.dmatrix("m")
    known = [pt.tensor(n, shape=(beside,), dtype=d) for n, d in (("k", "float64"), ("l", "float32"))]
    outputs = [pt.max(x), pt.var(x), m.sum(), pt.logsumexp(x), *known, pt.prod(known[0][:3]), known[1].sum()]
    for each in [*outputs[:4], *outputs[-2:]]:
        agree(monkeypatch, [x, m, *known], [each, x + 1, *known, m], *values)

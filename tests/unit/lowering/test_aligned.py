# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrices of recurrences, which are copied to where each row begins with a line of the cache."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt


def network(dtype: str, size: int):
    """All states of a recurrence, and the slopes of their squares by its matrix, read transposed."""
    rows = pt.TensorType(dtype, (None, size))("rows")
    state = pt.TensorType(dtype, (size,))("state")
    matrix = pt.TensorType(dtype, (size, size))("matrix")
    states = graphc.scan(
        lambda row, h, w: pt.tanh(h @ w + row),
        sequences=[rows],
        outputs_info=[state],
        non_sequences=[matrix],
        return_updates=False,
    )
    loss = pt.sqr(abs(states)).sum()
    slopes = [graphc.grad(loss, matrix)] if dtype.startswith("float") else []
    return graphc.function([rows, state, matrix], [states, *slopes])


def values(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    drawn = rng.standard_normal(shape)
    return (drawn + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else drawn).astype(dtype)


# Rows that are lines, that are not, and a matrix beyond those that are copied.
@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float64", 16),
        ("float64", 33),
        ("float64", 100),
        ("float32", 33),
        ("complex128", 21),
        ("float64", 520),
    ],
)
@pytest.mark.parametrize("steps", [31, 32, 40])
def test_results_do_not_depend_on_where_a_matrix_begins(dtype, size, steps):
    f = network(dtype, size)
    rng = np.random.default_rng(size)
    rows, state = values(rng, dtype, steps, size), values(rng, dtype, size)
    matrix = values(rng, dtype, size, size) / size
    expected = []
    for row in rows:
        state_before = expected[-1] if expected else state
        expected.append(np.tanh(state_before @ matrix + row))
    found = []
    memory = np.empty(size * size + 32, dtype)
    first = -memory.ctypes.data % 64 // memory.itemsize
    for offset in {0, 1, 2, 64 // memory.itemsize - 1}:
        moved = memory[first + offset :][: size * size].reshape(size, size)
        moved[...] = matrix
        found.append(f(rows, state, moved))
    np.testing.assert_allclose(found[0][0], expected, rtol=1e-10, atol=1e-5 if dtype == "float32" else 1e-13)
    for results in found[1:]:
        for result, same in zip(results, found[0], strict=True):
            np.testing.assert_array_equal(result, same)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's BLAS and LAPACK through functions with 32-bit integers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from graphc.library.wide_integers import ROUTINES
from graphc_runtime import wide_integers

pytestmark = pytest.mark.skipif(
    wide_integers.library() is None, reason="NumPy is not from a wheel with a BLAS of its own"
)


def call(name, *arguments):
    """Calls a routine with numbers and arrays in place of pointers; integers have 32 bits."""
    kept = [np.array(x, np.int32) if isinstance(x, int) else x for x in arguments]
    kept = [np.array(x) if isinstance(x, float) else x for x in kept]
    pointers = [x if isinstance(x, bytes) else x.ctypes.data for x in kept]
    kinds = [ctypes.c_char_p if isinstance(x, bytes) else ctypes.c_void_p for x in kept]
    ctypes.CFUNCTYPE(None, *kinds)(wide_integers.address(name))(*pointers)


def by_columns(a):
    return np.array(a.T, order="C")


@pytest.fixture
def matrix():
    return np.random.default_rng(0).normal(size=(6, 6))


def test_each_routine_is_there():
    for kind, routine, letters, _ in ROUTINES:
        for letter in letters:
            assert wide_integers.address(f"{kind}_{letter}{routine}")
    assert wide_integers.address("lapack_dnothing") is None


def test_product(matrix):
    c = np.zeros((6, 6))
    a = by_columns(matrix)
    call("blas_dgemm", b"N", b"T", 6, 6, 6, 1.0, a, 6, a, 6, 0.0, c, 6)
    np.testing.assert_allclose(c.T, matrix @ matrix.T, rtol=1e-13)


def test_factors_with_pivots(matrix):
    a, pivots, info = by_columns(matrix), np.full(8, -7, np.int32), np.full(2, -7, np.int32)
    call("lapack_dgetrf", 6, 6, a, 6, pivots, info)
    assert info.tolist() == [0, -7] and sorted(pivots[6:]) == [-7, -7] and (pivots[:6] >= 1).all()
    b = np.arange(6.0)
    call("lapack_dgetrs", b"N", 6, 1, a, 6, pivots, b, 6, info)
    np.testing.assert_allclose(b, np.linalg.solve(matrix, np.arange(6.0)), rtol=1e-11)
    call("lapack_dgetri", 6, a, 6, pivots, np.empty(400), 400, info)
    np.testing.assert_allclose(a.T, np.linalg.inv(matrix), rtol=1e-11)


def test_a_failure_is_told(matrix):
    info = np.zeros(1, np.int32)
    call("lapack_dpotrf", b"L", 6, by_columns(-np.eye(6)), 6, info)
    assert info[0] == 1


def test_scratch_memory_of_integers(matrix):
    symmetric = matrix + matrix.T
    a, w, info = by_columns(symmetric), np.empty(6), np.full(1, -7, np.int32)
    integers = np.full(40, -7, np.int32)
    call("lapack_dsyevd", b"V", b"L", 6, a, 6, w, np.empty(500), 500, integers, 33, info)
    assert info[0] == 0
    np.testing.assert_allclose(w, np.linalg.eigvalsh(symmetric), rtol=1e-12)
    a, s, none = by_columns(matrix[:, :4]), np.empty(4), np.empty(1)
    call("lapack_dgesdd", b"N", 6, 4, a, 6, s, none, 1, none, 1, np.empty(500), 500, integers, info)
    assert info[0] == 0
    np.testing.assert_allclose(s, np.linalg.svd(matrix[:, :4], compute_uv=False), rtol=1e-12)


def test_pivots_that_are_read_and_written(matrix):
    a, order, tau, info = by_columns(matrix), np.zeros(6, np.int32), np.empty(6), np.full(1, -7, np.int32)
    order[3] = 1  # goes to the front
    call("lapack_dgeqp3", 6, 6, a, 6, order, tau, np.empty(400), 400, info)
    assert info[0] == 0 and order[0] == 4 and sorted(order) == [1, 2, 3, 4, 5, 6]
    call("lapack_dorgqr", 6, 6, 6, a, 6, tau, np.empty(400), 400, info)
    np.testing.assert_allclose(a @ a.T, np.eye(6), atol=1e-13)


def test_eigenvalues_of_a_general_matrix(matrix):
    a, re, im, none, info = (
        by_columns(matrix),
        np.empty(6),
        np.empty(6),
        np.empty(1),
        np.full(1, -7, np.int32),
    )
    call("lapack_dgeev", b"N", b"N", 6, a, 6, re, im, none, 1, none, 1, np.empty(500), 500, info)
    assert info[0] == 0
    np.testing.assert_allclose(np.sort_complex(re + 1j * im), np.sort_complex(np.linalg.eigvals(matrix)))

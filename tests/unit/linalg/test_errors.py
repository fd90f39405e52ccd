# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of linear algebra say what was given, and where."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc.tensor.linalg as L

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
FAILING = {
    "cholesky: the matrix is not positive definite": lambda a: L.cholesky(-a),
    "solve: the matrix is singular": lambda a: L.solve(a, a),
    "solve: the matrix is not positive definite": lambda a: L.solve(-a, a, assume_a="pos"),
    "inv: the matrix is singular": L.inv,
    "solve_triangular: the matrix is singular": lambda a: L.solve_triangular(a - 1, a, lower=True),
    "solve_banded: the matrix is singular": lambda a: L.solve(a * 0, a, assume_a="tridiagonal"),
}


@pytest.mark.parametrize("message", FAILING)
@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_errors_when_run(message, mode):
    a = pt.dmatrix("a")
    f = graphc.function([a], FAILING[message](a), mode=mode)
    with pytest.raises(np.linalg.LinAlgError, match=message):
        f(SINGULAR)


def test_errors_name_the_line():
    a = pt.dmatrix("a")
    line = inspect.currentframe().f_lineno + 1
    y = L.solve(a, a[0])
    f = graphc.function([a], y)
    with pytest.raises(
        np.linalg.LinAlgError, match=rf"singular\n(?: +operands: .*\n)? +made at .*test_errors.py:{line} in"
    ):
        f(SINGULAR)
    with pytest.raises(ValueError, match=rf"(?s)must be.*test_errors.py:{line} in"):
        f(np.zeros((2, 3)))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_products_of_vectors_of_other_sizes(mode):
    """The inner product is a sum of an elementwise product by then, of which nobody has heard."""
    x, y, m = pt.dvector("x"), pt.dvector("y"), pt.dmatrix("m")
    for product in (x @ y, pt.dot(m[0], y), pt.tensordot(x, y, 1)):
        f = graphc.function([x, y, m], product, mode=mode, on_unused_input="ignore")
        with pytest.raises(ValueError, match=r"matmul: .* 3 .* 4 "):
            f(np.ones(3), np.ones(4), np.ones((2, 3)))
        assert f(np.ones(3), np.ones(3), np.ones((2, 3))) == 3
    f = graphc.function([x, y], (x * y).sum(), mode=mode)
    with pytest.raises(ValueError, match="mul: operand sizes in dimension 0"):
        f(np.ones(3), np.ones(4))


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda v, m, w: L.cholesky(v), "cholesky takes matrices, arrays of at least two dimensions, got v"),
        (lambda v, m, w: L.inv(w), "inv takes square matrices; the last two dimensions of w"),
        (lambda v, m, w: L.solve(m, m, assume_a="nice"), "assume_a must be one of 'gen', "),
        (lambda v, m, w: L.solve(m, m, b_ndim=3), "b_ndim must be 1 or 2, got 3"),
        (lambda v, m, w: L.solve(m, v, b_ndim=2), "must have at least 2 dimensions"),
        (lambda v, m, w: L.solve(w.T @ w, w), "solve: the matrix has 3 columns, but b, w"),
        (lambda v, m, w: L.qr(m, "best"), 'mode must be "reduced", "complete", "r" or "raw", got '),
        (lambda v, m, w: L.norm(v, "fro"), "vectors have no norm of order 'fro'"),
        (lambda v, m, w: L.norm(m, 3), "matrices have no norm of order 3"),
        (lambda v, m, w: L.solve_banded((2, 2), w, v), "must have l + u + 1 rows for (l, u) = (2, 2)"),
        (lambda v, m, w: L.eigh(m, UPLO="X"), 'UPLO must be "L" or "U", got \'X\''),
        (lambda v, m, w: L.matrix_power(m, 0.5), "the exponent of matrix_power must be an int, got 0.5"),
        (lambda v, m, w: L.cholesky(m, on_error="quit"), 'on_error must be "raise" or "nan", got \'quit\''),
        (lambda v, m, w: pt.cross(w, w.T), "cross takes vectors of 3 elements"),
    ],
)
def test_errors_when_built(build, message):
    v, m, w = pt.dvector("v"), pt.dmatrix("m"), pt.tensor("w", shape=(2, 3), dtype="float64")
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        build(v, m, w)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra in loops, batches, joins and modes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc.tensor.linalg as L
from graphc.transforms.vectorize import vectorize_graph


def kalman(y, a, c, q, r, p0):
    """Filtered means, variances and the log-likelihood of a linear Gaussian model."""

    def step(y, m, p, total):
        m, p = a @ m, a @ p @ a.T + q
        s = c @ p @ c.T + r
        factor = L.cholesky(s)
        gain = L.cho_solve((factor, True), c @ p).T
        error = y - c @ m
        white = L.solve_triangular(factor, error, lower=True)
        total = total - (white**2).sum() / 2 - pt.log(pt.diagonal(factor)).sum()
        return m + gain @ error, p - gain @ c @ p, total

    start = [pt.zeros(3), p0, pt.zeros(())]
    return graphc.scan(step, sequences=[y], outputs_info=start, return_updates=False)


def test_kalman_filter(compare, random, positive):
    def reference(y, a, c, q, r, p):
        m, total, found = np.zeros(3), 0.0, []
        for row in y:
            m, p = a @ m, a @ p @ a.T + q
            s = c @ p @ c.T + r
            gain = np.linalg.solve(s, c @ p).T
            error = row - c @ m
            total -= error @ np.linalg.solve(s, error) / 2 + np.linalg.slogdet(s)[1] / 2
            m, p = m + gain @ error, p - gain @ c @ p
            found.append((m, p, total))
        return [np.stack(column) for column in zip(*found, strict=True)]

    matrices = [random(3, 3) / 3, random(2, 3), positive(3, 3), positive(2, 2), positive(3, 3)]
    arguments = [random(20, 2), *matrices]
    for static in (False, True):
        compare(lambda *xs: kalman(*xs), reference, *arguments, static=static)

    variables = [pt.tensor(dtype="float64", shape=(None,) * x.ndim) for x in arguments]
    likelihood = kalman(*variables)[2][-1]
    f = graphc.function(variables, [likelihood, *graphc.grad(likelihood, variables[1:])])
    assert "native" in str(f.report)
    value, gradient = f(*arguments)[:2]
    moved = [x.copy() for x in arguments]
    moved[1][0, 1] += 1e-6
    np.testing.assert_allclose((f(*moved)[0] - value) / 1e-6, gradient[0, 1], rtol=1e-4)


def test_the_same_in_all_iterations_is_done_once(random, positive):
    a, x = pt.dmatrix("a"), pt.dmatrix("x")
    ys = graphc.scan(lambda row: L.cholesky(a, on_error="nan") @ row, sequences=[x], return_updates=False)
    f = graphc.function([a, x], ys)
    values = positive(4, 4), random(7, 4)
    np.testing.assert_allclose(f(*values), values[1] @ np.linalg.cholesky(values[0]).T)
    assert f(values[0], np.zeros((0, 4))).shape == (0, 4)


def test_rows_of_a_sequence_are_a_batch(random, positive):
    a, h = pt.dtensor3("a"), pt.dvector("h")
    hs = graphc.scan(lambda row, h: L.solve(row, h), sequences=[a], outputs_info=[h], return_updates=False)
    ys = graphc.scan(lambda row: L.inv(row) + L.det(row), sequences=[a], return_updates=False)
    f = graphc.function([a, h], [hs, ys])
    matrices, start = positive(5, 3, 3), random(3)
    state, expected = start, []
    for m in matrices:
        state = np.linalg.solve(m, state)
        expected.append(state)
    found = f(matrices, start)
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], np.linalg.inv(matrices) + np.linalg.det(matrices)[:, None, None])
    # No rows: nothing is computed, so that the last two sizes may differ.
    empty = f(np.zeros((0, 3, 2)), start)
    assert empty[0].shape == (0, 3)


def test_batches_by_vectorize(random, positive):
    a, b = pt.dmatrix("a"), pt.dmatrix("b")
    outputs = [
        L.solve(a, b), L.cholesky(a), *L.eigh(a), L.det(a), L.solve_triangular(a, b), *L.qr(a), L.expm(a),
        L.svdvals(b), L.pinv(b), L.lu_solve(L.lu_factor(a), b), L.solve_sylvester(a, a, a), L.kron(a, b),
    ]  # fmt: skip
    many_a, many_b = pt.dtensor3("A"), pt.dtensor3("B")
    values = positive(3, 4, 4), random(3, 4, 2)
    one = graphc.function([a, b], outputs)
    expected = [one(x, y) for x, y in zip(*values, strict=True)]
    ways = (
        ({a: many_a, b: many_b}, values),
        ({a: many_a}, (values[0], values[1][0])),
        ({b: many_b}, (values[0][0], values[1])),
    )
    batches = [y for replace, _ in ways for y in vectorize_graph(outputs, replace)]
    f = graphc.function([a, b, many_a, many_b], batches)
    results = iter(f(values[0][0], values[1][0], *values))
    for replace, arguments in ways:
        for i in range(len(outputs)):
            batch = next(results)
            for k in range(3):
                rows = [v[k] if x in replace else v for x, v in zip((a, b), arguments, strict=True)]
                want = expected[k][i] if len(replace) == 2 else one(*rows)[i]
                np.testing.assert_allclose(batch[k] if batch.ndim > want.ndim else batch, want, atol=1e-9)


def test_results_in_joins(compare, positive):
    def build(a):
        factor, inverse = L.cholesky(a), L.inv(a)
        joined = [pt.concatenate([factor, inverse], axis=1), pt.stack([factor, inverse])]
        return [*joined, pt.set_subtensor(a[1:], inverse[1:])]

    def reference(a):
        factor, inverse = np.linalg.cholesky(a), np.linalg.inv(a)
        return [np.hstack([factor, inverse]), np.stack([factor, inverse]), np.vstack([a[:1], inverse[1:]])]

    compare(build, reference, positive(4, 4))


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference", "debug"])
def test_modes(compare, positive, mode):
    def build(a):
        return [L.solve(a, a[0]), L.slogdet(a)[1], L.svdvals(a), L.eigvalsh(a), L.qr(a, "r")]

    def reference(a):
        x = np.linalg.solve(a, a[0])
        values = [np.linalg.svd(a, compute_uv=False), np.linalg.eigvalsh(a)]
        return [x, np.linalg.slogdet(a)[1], *values, np.linalg.qr(a, "r")]

    compare(build, reference, positive(5, 5), mode=mode)

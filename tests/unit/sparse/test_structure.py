# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts, stacks, comparisons and functions of the values of sparse matrices, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import graphc
import graphc.tensor as pt
from graphc import sparse

FORMATS = ("csr", "csc")


def matrices(format, dtype="float64"):
    a, b = (sp.random(5, 6, 0.5, format=format, random_state=seed) for seed in (0, 1))
    return (a * 9).astype(dtype), (b * 9).astype(dtype)


def dense(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def check(inputs, values, pairs, **options):
    """All expressions in one function, each with its value in SciPy."""
    results = graphc.function(inputs, [y for y, _ in pairs], **options)(*values)
    for k, (got, (symbol, want)) in enumerate(zip(results, pairs, strict=True)):
        assert sp.issparse(got) == isinstance(symbol.type, sparse.SparseTensorType), k
        np.testing.assert_allclose(dense(got), dense(want), rtol=1e-12, err_msg=str(k))
        if sp.issparse(got):
            assert got.format == symbol.type.format and got.has_canonical_format
            sizes = zip(symbol.type.shape, got.shape, strict=True)
            assert all(known in (None, size) for known, size in sizes), k


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_indexing(format, mode):
    a, _ = matrices(format)
    x, i, rows = sparse.matrix(format, "x"), pt.lscalar("i"), pt.lvector("rows")
    at = np.array([4, 0, 0, -1])
    pairs = [
        (x[i, 2], a[-2, 2]),
        (x[1, -1], a[1, -1]),
        (x[rows], a[at]),
        (x[[0, 2]], a[[0, 2]]),
        (x[rows, rows], np.ravel(a[at, at])),
        (x[1:4, ::2], a[1:4, ::2]),
        (x[:, i:], a[:, -2:]),
        (x[::-1], a[::-1]),
        (x[i], a[-2:-1]),
        (x[:0], a[:0]),
        (x[-1, :3], a[-1:, :3]),
    ]
    check([x, i, rows], [a, -2, at], pairs, mode=mode)
    with pytest.raises(IndexError):
        graphc.function([x, rows], x[rows])(a, [5])
    with pytest.raises(IndexError, match="2 axes"):
        x[1:, 2:, 3:]


@pytest.mark.parametrize("format", FORMATS)
def test_stacks_and_formats(format):
    a, b = matrices(format)
    a.data[3] = 0.0
    x, y = sparse.matrix(format, "x"), sparse.as_sparse_variable(b)
    d = pt.dmatrix("d")
    full = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    pairs = [
        (sparse.hstack([x, y]), sp.hstack([a, b])),
        (sparse.vstack([x, y, x], format=format, dtype="float32"), sp.vstack([a, b, a]).astype("float32")),
        (sparse.block_diag(x, y, d, format="csr"), sp.block_diag([a, b, full])),
        (sparse.csr_from_dense(d), full),
        (sparse.csc_from_dense(d) * 2, full * 2),
        (sparse.remove0(x), a),
        (sparse.clean(x), a),
        (sparse.square_diagonal(d[:, 0]), np.diag(full[:, 0])),
        (sparse.square_diagonal(d[:0, 0]), np.zeros((0, 0))),
        (sparse.usmm(2.0, x, d.T[[0, 1, 0, 1, 0, 1]], pt.ones((5, 3))), 2 * a @ full.T[[0, 1] * 3] + 1),
        (sparse.sampling_dot(pt.ones((5, 2)), pt.ones((6, 2)), x), a * 2),
        (sparse.structured_add_s_v(x, pt.arange(6.0)), plus_column(a)),
        (sparse.add_s_s_data(x, x), a * 2),
        (sparse.true_dot(x, y.T), a @ b.T),
        (pt.dot(x, d.T[[0, 1, 0, 1, 0, 1]]), a @ full.T[[0, 1] * 3]),
        (pt.dot(pt.ones((2, 5)), x), np.ones((2, 5)) @ a),
    ]
    check([x, d], [a, full], pairs)
    assert sparse.hstack([y, y]).type.shape == (5, 12) and sparse.vstack([y, y]).type.shape == (10, 6)
    f = graphc.function([x], sparse.remove0(x))
    assert f(a).nnz == a.nnz - 1


def plus_column(matrix):
    """The matrix with each value plus its column."""
    found = matrix.copy()
    found.data = matrix.data + columns_of(matrix)
    return found


def columns_of(matrix):
    if matrix.format == "csr":
        return matrix.indices.astype(float)
    return np.repeat(np.arange(6.0), np.diff(matrix.indptr))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_comparisons(format):
    a, b = matrices(format, "int64")
    x, y = (sparse.matrix(format, name, "int64") for name in "xy")
    full = np.arange(30).reshape(5, 6) % 4
    d = pt.lmatrix("d")
    pairs = []
    for name, symbol in {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}.items():
        function = getattr(sparse, name)
        pairs.append((getattr(x, symbol)(y), getattr(a.toarray(), symbol)(b.toarray())))
        pairs.append((function(x, d), getattr(a.toarray(), symbol)(full)))
        pairs.append((function(d, y), getattr(full, symbol)(b.toarray())))
    pairs += [(sparse.eq(x, y), a.toarray() == b.toarray()), (sparse.neq(x, y), a.toarray() != b.toarray())]
    pairs += [(d < x, full < a.toarray()), (x >= 1, a.toarray() >= 1)]
    check([x, y, d], [a, b, full], pairs)


def test_functions_of_the_values():
    a, _ = matrices("csr")
    a = a / 10
    x = sparse.csr_matrix("x")
    names = {
        "conj": "conjugate",
        "conjugate": "conjugate",
        "structured_conjugate": "conjugate",
        "sqr": "square",
    }
    pairs = []
    for name in sparse.elementwise.FUNCTIONS:
        function = getattr(sparse, name)
        core = name.removeprefix("structured_")
        if core in ("pow", "minimum", "maximum", "add"):
            values = getattr(np, {"pow": "power"}.get(core, core))(a.data, 0.5)
            symbol = function(x, 0.5)
        else:
            reference = (
                (lambda v: 1 / (1 + np.exp(-v))) if core == "sigmoid" else getattr(np, names.get(core, core))
            )
            values, symbol = reference(a.data), function(x)
        want = a.copy()
        want.data = values
        pairs.append((symbol, want))
    pairs += [(abs(x), abs(a)), (x.ones_like(), a.astype(bool).astype(float)), (x.sqrt(), a.sqrt())]
    pairs += [(x.copy(), a), (x.size, np.array(a.size))]
    check([x], [a], pairs)


def test_methods_that_need_all_elements_warn():
    x = sparse.csr_matrix("x")
    a, _ = matrices("csr")
    with pytest.warns(UserWarning, match="converted to dense"):
        largest = x.max(axis=0)
    with pytest.warns(UserWarning, match="converted to dense"):
        powers = x**2
    got = graphc.function([x], [largest, powers])(a)
    np.testing.assert_allclose(got[0], a.toarray().max(0))
    np.testing.assert_allclose(got[1], a.toarray() ** 2)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients(format):
    a, _ = matrices(format)
    x, w = sparse.matrix(format, "x"), pt.dmatrix("w")
    parts = [
        x[[0, 2, 2]].sum(),
        (x[1:4, ::2] * 2).sum(),
        x[3, 1] ** 2,
        (x[[0, 1], [2, 2]] * np.array([3.0, 5.0])).sum(),
        (sparse.hstack([x, x * x])).sum(),
        sparse.dot(sparse.block_diag(x, x), pt.arange(12.0)).sum(),
        sparse.remove0(x).sum(),
        sparse.sampling_dot(w, pt.ones((6, 2)), x).sum(),
        sparse.dot(sparse.csr_from_dense(w), pt.ones(2)).sum() + sparse.structured_pow(x, 3).sum(),
    ]
    cost = sum((k + 1) * part for k, part in enumerate(parts))
    f = graphc.function([x, w], [cost, *graphc.grad(cost, [x, w])])
    weights = np.arange(1.0, 11).reshape(5, 2)
    _, by_x, by_w = f(a, weights)
    step = 1e-6
    for direction in range(3):
        rng = np.random.default_rng(direction)
        change, move = a.copy(), rng.normal(size=(5, 2))
        change.data = rng.normal(size=a.nnz)
        ahead, after = (f(a + s * change, weights + s * move)[0] for s in (step, -step))
        expected = (by_x.multiply(change)).sum() + (by_w * move).sum()
        np.testing.assert_allclose((ahead - after) / (2 * step), expected, rtol=1e-6)


def test_shared_and_dense_values():
    a, b = matrices("csr")
    s = graphc.shared(a, "s")
    assert isinstance(s, sparse.SparseVariable)
    f = graphc.function([], sparse.dot(s, np.ones(6)), updates={s: s * 2})
    np.testing.assert_allclose(f(), a @ np.ones(6))
    np.testing.assert_allclose(f(), 2 * a @ np.ones(6))
    s.set_value(b[:3])
    np.testing.assert_allclose(f(), b[:3] @ np.ones(6))
    x = sparse.csc_matrix("x")
    g = graphc.function([x], x.sum(axis=0))
    np.testing.assert_allclose(g(a.toarray()), a.toarray().sum(0))
    with pytest.raises(TypeError, match="a matrix of numbers"):
        g(np.ones(3))
    with pytest.raises(TypeError, match="csr or csc format"):
        graphc.shared(a.tocoo())


def test_block_matrices_are_inputs():
    a = sp.random(6, 4, 0.4, "csr", random_state=0)
    x, y = sparse.SparseTensorType("bsr", "float64")("x"), pt.dmatrix("y")
    dense = np.arange(12.0).reshape(4, 3)
    results = [sparse.dot(x, y), sparse.dot(x, x.T).toarray(), x.sum(0), graphc.grad(x.sum(), x)]
    blocks, d = a.tobsr((2, 2)), a.toarray()
    stored = blocks.tocsr()
    stored.data[:] = 1
    for mode in ("fast_run", "reference"):
        *found, gradient = graphc.function([x, y], results, mode=mode)(blocks, dense)
        for got, want in zip(found, [d @ dense, d @ d.T, d.sum(0)], strict=True):
            np.testing.assert_allclose(got, want)
        assert gradient.format == "bsr"
        np.testing.assert_array_equal(gradient.toarray(), stored.toarray())
    with pytest.raises(ValueError, match="got 'lil'"):
        sparse.SparseTensorType("lil", "float64")


def test_real_and_imaginary_values():
    z, x = sparse.csr_matrix("z", dtype="complex64"), sparse.csc_matrix("x", dtype="float64")
    value = sp.random(5, 4, 0.5, "csr", random_state=1).astype("complex64") * (1 + 2j)
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        cast = sparse.cast(z, "float32")
    assert abs(cast.eval({z: value}) - value.real).max() == 0
    assert sparse.conj(x) is x
    assert abs(sparse.conj(z).eval({z: value}) - value.conj()).max() == 0


def test_zeros_store_nothing():
    x = sparse.csc_matrix("x", dtype="float32")
    value = sp.random(5, 4, 0.5, "csc", random_state=1).astype("float32")
    zeros = x.zeros_like().eval({x: value})
    assert (zeros.nnz, zeros.shape, zeros.dtype, zeros.format) == (0, (5, 4), "float32", "csc")


def test_memory_of_matrices_and_their_arrays():
    a, b = (sp.random(5, 4, 0.5, "csr", random_state=k) for k in (0, 1))
    shared = sparse.SparseTensorType.may_share_memory
    assert all(shared(a, x) and shared(x, a) for x in (a, a.data, a.indices, a.indptr, a.T))
    assert not any(shared(a, x) for x in (b, b.data, b.T, np.zeros(3)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices: equal to SciPy's, compiled and in reference mode, with gradients."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from gradient_batches import verify_grads

import graphc
import graphc.sparse as sp
import graphc.tensor as pt
from graphc.transforms.vectorize import vectorize_graph

RNG = np.random.default_rng(0)


def random(format, m=7, n=5, seed=1, dtype="float64"):
    return scipy.sparse.random(m, n, 0.4, format, random_state=seed).astype(dtype)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_products_sums_and_elementwise(format):
    a, b = random(format), random(format, seed=2)
    c, d, e, v = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 7)), RNG.normal(size=(7, 5)), RNG.normal(size=5)
    A, B = sp.matrix(format, "A", "float64"), sp.matrix(format, "B", "float64")
    C, D, E, V = *pt.dmatrices(3), pt.dvector()
    x, y = a.toarray(), b.toarray()
    cases = [
        *((A @ C, x @ c), (sp.dot(D, A), d @ x), (A @ V, x @ v), (sp.structured_dot(V, A.T), v @ x.T)),
        *((A.toarray(), x), (A.sum(), x.sum()), (A.sum(0), x.sum(0)), (sp.sp_sum(A, -1), x.sum(1))),
        *((A + E, x + e), (E - A, e - x), (A - E, x - e), (-A, -x), (A * E, x * e), (A * 2.0, x * 2)),
        *((A * V, x * v), (sp.row_scale(A, E[:, 0]), x * e[:, :1]), (A.T, x.T), (A.T @ D.T, x.T @ d.T)),
        *((A + B, x + y), (A * B, x * y), (sp.dot(A, B.T), x @ y.T), (A + A, 2 * x), (A - B, x - y)),
        *(
            (sp.diag(A), np.diag(x)),
            (A.shape, np.array(x.shape)),
            (sp.structured_exp(A), np.where(x, np.exp(x), 0)),
        ),
        *((A.astype("float32"), x.astype("float32")), (sp.sqr(A), x**2), (A.zeros_like(), 0 * x)),
    ]
    for mode in ("fast_run", "fast_compile", "reference"):
        f = graphc.function([A, B, C, D, E, V], [result for result, _ in cases], mode=mode)
        for i, (got, (variable, want)) in enumerate(zip(f(a, b, c, d, e, v), cases, strict=True)):
            if isinstance(variable, sp.SparseVariable):
                assert got.format == variable.format and got.dtype == variable.dtype
                got = got.toarray()
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14, err_msg=f"{i}, {mode}")


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
def test_dtypes_and_empty(dtype):
    A, C = sp.csr_matrix(dtype=dtype), pt.matrix(dtype=dtype)
    f = graphc.function([A, C], [A @ C, A.sum(1)])
    for m, n, k in ((7, 5, 3), (0, 5, 2), (7, 0, 2), (3, 4, 0)):
        a, c = random("csr", m, n, dtype=dtype), (RNG.normal(size=(n, k)) * 5).astype(dtype)
        for got, want in zip(f(a, c), (a @ c, np.asarray(a.toarray().sum(1))), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_gradients(format):
    a, c, e = random(format), RNG.normal(size=(5, 3)), RNG.normal(size=(7, 5))
    make = sp.CSR if format == "csr" else sp.CSC
    place = (a.indices, a.indptr, a.shape)
    verify_grads({
        "left": (lambda v, c: make(v, *place) @ c, [a.data, c]),
        "right": (lambda v, d: sp.dot(d, make(v, *place)), [a.data, e.T]),
        "elementwise": (lambda v, e: (make(v, *place) * e).toarray(), [a.data, e]),
    })  # fmt: skip
    A, C = sp.matrix(format, "A", "float64"), pt.dmatrix("C")
    g_a, g_c = graphc.grad(((A @ C) ** 2).sum(), [A, C])
    second = graphc.grad((sp.csm_data(g_a) ** 2).sum(), C)
    for mode in ("fast_run", "reference"):
        values, dense, again = graphc.function([A, C], [g_a, g_c, second], mode=mode)(a, c)
        x = a.toarray()
        np.testing.assert_allclose(dense, x.T @ (2 * x @ c), rtol=1e-12)
        np.testing.assert_allclose(values.toarray(), np.where(x, 2 * x @ c @ c.T, 0), rtol=1e-12)
        assert values.format == format and np.isfinite(again).all()
    twice = graphc.grad((A @ C).sum() + (A.toarray() ** 2).sum(), A)
    x = a.toarray()
    want = np.where(x, c.sum(1) + 2 * x, 0)
    np.testing.assert_allclose(graphc.function([A, C], twice)(a, c).toarray(), want, rtol=1e-12)


def test_parts_constants_and_types():
    a = random("csr")
    A = sp.csr_matrix("A", dtype="float64", shape=(7, 5))
    data, indices, indptr, shape = graphc.function([A], sp.csm_properties(A))(a)
    for got, want in zip((data, indices, indptr, shape), (a.data, a.indices, a.indptr, a.shape), strict=True):
        np.testing.assert_array_equal(got, want)
    assert (
        A.T.type.shape == (5, 7) and A.T.format == "csc" and str(A.type) == "SparseCSR(float64, shape=(7, 5))"
    )
    constant = sp.as_sparse_variable(a)
    np.testing.assert_allclose((constant @ np.ones(5)).eval(), a @ np.ones(5))
    # Other formats and duplicates are brought into form.
    coo = scipy.sparse.coo_matrix((np.ones(3), ([0, 0, 1], [2, 2, 0])), shape=(7, 5))
    np.testing.assert_array_equal(graphc.function([A], A.toarray())(coo), coo.toarray())
    assert A.type.is_super(constant.type) and not sp.csc_matrix().type.is_super(constant.type)
    assert constant.equals(sp.as_sparse_variable(a.copy()))


def test_compiled():
    A, C = sp.csr_matrix("A", dtype="float64"), pt.dmatrix("C")
    f = graphc.function([A, C], pt.exp(A @ C) + A.sum())
    assert "runs in Python" not in str(f.report) and f.report.segments == 1
    assert "csr_product" in f.ir_stages()["graph"]


def test_errors():
    A, C = sp.csr_matrix("A", dtype="float64"), pt.dmatrix("C")
    f = graphc.function([A, C], A @ C)
    with pytest.raises(ValueError, match="size 4, expected 5"):
        f(random("csr"), np.ones((4, 2)))
    with pytest.raises(TypeError, match="expected a sparse matrix of SciPy, got dict"):
        f({}, np.ones((5, 2)))
    with pytest.raises(TypeError, match=r"a matrix of numbers, got an array of shape \(5,\)"):
        f(np.ones(5), np.ones((5, 2)))
    with pytest.raises(TypeError, match="expected a sparse matrix of float64, got complex128"):
        f(random("csr", dtype="complex128"), np.ones((5, 2)))
    with pytest.raises(TypeError, match="matrices and vectors"):
        A @ pt.dtensor3()
    with pytest.raises(ValueError, match="sizes 5 and 4 differ"):
        sp.as_sparse_variable(random("csr")) @ np.ones((4, 2))
    with pytest.raises(ValueError, match="csr, csc, bsr, got 'coo'"):
        sp.matrix("coo")
    with pytest.raises(TypeError, match="sparse"):
        sp.structured_dot(C, C)


@pytest.mark.parametrize(
    "indices, indptr, error, message",
    [
        ([0, 9], [0, 1, 2], IndexError, "a column is out of bounds"),
        ([0, -1], [0, 1, 2], IndexError, "a column is out of bounds"),
        ([0, 1], [0, 1, 5], ValueError, "indptr must rise"),
        ([0, 1], [0, 2, 1], ValueError, "indptr must rise"),
        ([0, 1], [0, 2], ValueError, "number of rows does not fit"),
    ],
)
@pytest.mark.parametrize("mode", ["fast_run", "reference"])
def test_wrong_arrays_are_found(indices, indptr, error, message, mode):
    v, i, p, C = pt.dvector(), pt.ivector(), pt.ivector(), pt.dmatrix()
    f = graphc.function([v, i, p, C], sp.CSR(v, i, p, (2, 5)) @ C, mode=mode)
    with pytest.raises(error, match=message):
        f(np.ones(2), np.array(indices, np.int32), np.array(indptr, np.int32), np.ones((5, 3)))


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_every_form(format, dtype):
    """Empty rows, no values, many rows, duplicates, unsorted columns, 64-bit indices, strided operands."""
    A, V, C = sp.matrix(format, "A", dtype), pt.vector(dtype=dtype), pt.matrix(dtype=dtype)
    weights = pt.matrix(dtype=dtype)
    outputs = [A @ V, A @ C, A.T @ V, A.T @ C]
    outputs += graphc.grad((weights * (A @ C)).sum(), [A, C])
    f = graphc.function([A, V, C, weights], outputs)
    cases = []
    for size, columns in ((1, 1), (6, 3), (40, 16), (700, 21)):
        a = scipy.sparse.random(size, size, 0.2, format, random_state=size).astype(dtype)
        cases.append((a, columns))
    many = scipy.sparse.random(1200, 1200, 0.12, format, random_state=0).astype(dtype)
    empty = scipy.sparse.csr_matrix((5, 5), dtype=dtype).asformat(format)
    doubled = many.copy()
    doubled.indices = doubled.indices[::-1].copy()
    doubled.has_sorted_indices = doubled.has_canonical_format = False
    wide = random(format, 5, 5, dtype=dtype)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    cases += [(many, 4), (many, 40), (empty, 2), (doubled, 2), (wide, 3)]
    for a, columns in cases:
        n = a.shape[0]
        v, c = RNG.normal(size=2 * n).astype(dtype)[::2], RNG.normal(size=(columns, n)).astype(dtype).T
        w = RNG.normal(size=(n, columns)).astype(dtype)
        b = a.copy()
        b.sum_duplicates()
        places = b.copy()
        places.data = np.ones_like(places.data)
        x = b.toarray()
        want = [x @ v, x @ c, x.T @ v, x.T @ c, places.toarray() * (w @ c.T), x.T @ w]
        for got, expected in zip(f(a, v, c, w), want, strict=True):
            got = got.toarray() if hasattr(got, "toarray") else got
            assert got.dtype == expected.dtype
            scale = max(np.abs(expected).max(initial=0), 1)
            assert np.abs(got - expected).max(initial=0) < scale * (1e-5 if dtype == "float32" else 1e-13)


def test_arrays_are_not_copied_and_functions_pickle():
    a = random("csr")
    A, C = sp.csr_matrix("A", dtype="float64"), pt.dmatrix("C")
    f = graphc.function([A, C], [sp.neg(A), A @ C])
    c = RNG.normal(size=(5, 3))
    for function in (f, pickle.loads(pickle.dumps(f))):
        negative, product = function(a, c)
        assert np.may_share_memory(negative.indices, a.indices) and not np.may_share_memory(
            negative.data, a.data
        )
        np.testing.assert_allclose(product, a @ c)


@pytest.mark.parametrize("how", ["captured", "strict", "constant", "two loops"])
def test_loops_do_not_take_matrices_apart(how):
    """A matrix that is the same in all iterations is taken apart once, so that the loop is machine code."""
    matrix = scipy.sparse.random(6, 6, 0.4, format="csr", random_state=0)
    given, x = sp.csr_matrix("A"), pt.dvector("x")
    a = sp.as_sparse_variable(matrix) if how == "constant" else given

    def step(h, *_):
        return pt.tanh(sp.structured_dot(a, h[:, None])[:, 0] + (a.T @ h[:, None])[:, 0])

    def outer(h):
        return graphc.scan(step, outputs_info=[h], n_steps=2, return_updates=False)[-1]

    strict = {"non_sequences": [a], "strict": True} if how == "strict" else {}
    function = outer if how == "two loops" else step
    h = graphc.scan(function, outputs_info=[x], n_steps=3, return_updates=False, **strict)
    outputs = [h, graphc.grad((h[-1] ** 2).sum(), x)]
    f = graphc.function([given, x], outputs, on_unused_input="ignore")
    assert not f.report.fallbacks
    reference = graphc.function([given, x], outputs, mode="reference", on_unused_input="ignore")
    for have, want in zip(*(g(matrix, np.linspace(0, 1, 6)) for g in (f, reference)), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_constants_do_not_change_with_the_matrix(format):
    a = scipy.sparse.random(3, 4, 0.9, format=format, random_state=0)
    x = sp.as_sparse_variable(a)
    f = graphc.function([], [x, sp.dot(x, np.ones(4))])
    want = a.toarray()
    a.data[:] = 0
    np.testing.assert_array_equal(f()[0].toarray(), want)
    np.testing.assert_allclose(f()[1], want.sum(1))
    assert x.data is not a and x.eval().sum() > 0


# Functions whose gradients have values at places that their matrices do not store.
REGULAR = {
    "cast": lambda x: sp.cast(x, "float64"),
    "transpose and negative": lambda x: sp.neg(x.T),
    "sum of one pattern": lambda x: x + sp.neg(x) + x + x,
    "product of one pattern": lambda x: x * sp.sqr(x),
    "hstack": lambda x: sp.hstack([x, x + x], format="csr"),
    "vstack": lambda x: sp.vstack([x, sp.neg(x)], format="csc"),
    "block_diag": lambda x: sp.block_diag(x, x),
    "rows": lambda x: x[np.array([1, -1, 1])],
    "elements": lambda x: sp.get_item_2lists(x, [0, 1, 1], [1, 2, -1]),
    "element": lambda x: x[-1, 1],
    "sums of columns": lambda x: sp.sp_sum(x, 0, sparse_grad=False),
    "sum": lambda x: sp.sp_sum(x, sparse_grad=False),
    "diagonal": sp.diag,
    "without zeros": sp.clean,
    "product": lambda x: sp.true_dot(x, x.T),
}


def test_gradients_at_all_places():
    x = np.array([[1.0, 0, 2], [0, 0, 3], [4, 0, 0], [0, 5, 0]])

    def of_dense(function, format):
        def whole(d):
            found = function(getattr(sp, f"{format}_from_dense")(d))
            sparse = isinstance(found, sp.SparseVariable)
            return sp.dense_from_sparse(found, structured=False) if sparse else found

        return whole

    cases = {
        f"{name}, {format}": (of_dense(function, format), [x])
        for name, function in REGULAR.items()
        for format in ("csr", "csc")
    }
    verify_grads(cases)


def test_gradients_at_stored_places_stay_compiled():
    """A cotangent with the values' own places takes the way of the arrays."""
    A, c = sp.csr_matrix("A", dtype="float64"), pt.dmatrix("c")
    b = sp.clean(A)
    moved = sp.cast(sp.neg(b + b).T, "float32")
    g = graphc.grad(((moved @ c) ** 2).sum() + sp.sp_sum(moved), A)
    f = graphc.function([A, c], [g, moved])
    assert not any("SparseSparse" in str(node) or "Regular" in str(node) for node in f.fgraph.nodes)
    a = random("csr")
    x, ones = a.toarray(), np.ones((7, 2))
    got, _ = f(a, ones)
    want = np.where(x, -2 * (2 * (-2 * x.T @ ones) @ ones.T + 1).T, 0)
    np.testing.assert_allclose(got.toarray(), want, rtol=1e-5)
    np.testing.assert_array_equal(got.indices, a.indices)


def test_batches_of_values():
    """Functions with dense results run on a batch of the values of one pattern."""
    a = random("csr", 5, 5)
    v, batch = pt.dvector("v"), pt.dmatrix("batch")
    x = sp.CSR(v, a.indices, a.indptr, a.shape)
    outputs = [sp.diag(x), sp.sp_sum(sp.hstack([x, x.T]), 0), sp.sp_sum(x, 1, sparse_grad=False)]
    outputs += [sp.get_item_2lists(x, [0, 1], [1, 1]), sp.dense_from_sparse(x, structured=False)]
    one, many = (
        graphc.function([v], outputs),
        graphc.function([batch], vectorize_graph(outputs, {v: batch})),
    )
    values = np.stack([a.data, 2 * a.data])
    for k, found in enumerate(many(values)):
        np.testing.assert_allclose(found, [one(each)[k] for each in values], rtol=1e-14)


def test_errors_name_what_was_called():
    x = pt.dmatrix("x")
    with pytest.raises(TypeError, match=r"^dot takes a sparse matrix"):
        sp.dot(x, x)
    for make in (pt.zeros, pt.ones, pt.empty, lambda shape: pt.full(shape, 1)):
        with pytest.raises(TypeError, match="a size of an array must be an integer"):
            make((2.5,))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of sparse matrices, given by their arrays, and dense ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case

SIZE, VALUES = 100_000, 1_000_000


def _inputs(size: int, values: int, columns: int = 0) -> Any:
    def make() -> tuple[Any, ...]:
        import scipy.sparse

        rng = np.random.default_rng(5)
        places = rng.integers(0, size, (2, values))
        a = scipy.sparse.csr_matrix((rng.standard_normal(values), tuple(places)), shape=(size, size))
        x = rng.standard_normal((size, columns) if columns else size)
        return a.data, a.indices, a.indptr, x

    return make


CASES = [
    Case(
        "spmv_small",
        "sparse matrix of 1000 x 1000 with 10,000 values, times a vector",
        "us",
        _inputs(1000, 10_000),
        lambda m, v, i, p, x: m.sparse_product(v, i, p, x),
    ),
    Case(
        "spmv",
        "sparse matrix of 100,000 x 100,000 with 1,000,000 values, times a vector",
        "us",
        _inputs(SIZE, VALUES),
        lambda m, v, i, p, x: m.sparse_product(v, i, p, x),
    ),
    Case(
        "spmv_transposed",
        "its transpose, times a vector",
        "us",
        _inputs(SIZE, VALUES),
        lambda m, v, i, p, x: m.sparse_transposed_product(v, i, p, x),
    ),
    Case(
        "spmm",
        "the same matrix, times 16 columns",
        "ms",
        _inputs(SIZE, VALUES, 16),
        lambda m, v, i, p, x: m.sparse_product(v, i, p, x),
    ),
]


def _square(p: Any) -> int:
    """The size of the matrix."""
    return len(p) - 1


def numpy_sparse() -> dict[str, Any]:
    """SciPy's products, of matrices that are made once."""
    made: dict[int, Any] = {}

    def matrix(v: Any, i: Any, p: Any) -> Any:
        import scipy.sparse

        if id(v) not in made:
            made[id(v)] = scipy.sparse.csr_matrix((v, i, p), shape=(_square(p), _square(p)))
        return made[id(v)]

    return {
        "sparse_product": lambda v, i, p, x: matrix(v, i, p) @ x,
        "sparse_transposed_product": lambda v, i, p, x: matrix(v, i, p).T @ x,
    }


def symbolic_sparse(package: str) -> dict[str, Any]:
    """Products in graphc and in PyTensor, which only has those with matrices."""

    def product(transposed: bool) -> Callable[..., Any]:
        def function(v: Any, i: Any, p: Any, x: Any) -> Any:
            import importlib

            sparse = importlib.import_module(f"{package}.sparse")
            n = p.shape[0] - 1
            a = sparse.CSR(v, i, p, importlib.import_module(f"{package}.tensor").stack([n, n]))
            a = a.T if transposed else a
            if x.ndim == 2:
                return sparse.structured_dot(a, x)
            return sparse.structured_dot(a, x[:, None])[:, 0]

        return function

    return {"sparse_product": product(False), "sparse_transposed_product": product(True)}


def jax_sparse() -> dict[str, Any]:
    """Products of JAX's matrices of compressed rows."""

    def product(v: Any, i: Any, p: Any, x: Any) -> Any:
        from jax.experimental import sparse

        return sparse.BCSR((v, i, p), shape=(_square(p), _square(p))) @ x

    def transposed(v: Any, i: Any, p: Any, x: Any) -> Any:
        from jax.experimental import sparse

        a = sparse.BCSR((v, i, p), shape=(_square(p), _square(p)))
        return a.to_bcoo().T @ x

    return {"sparse_product": product, "sparse_transposed_product": transposed}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workloads of small batched linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case

_LEAD = (("pytensor", 3.0), ("jax", 1.5))


def _matrices(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape)


def _positive(*shape: int) -> Any:
    x = _matrices(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


CASES = [
    Case(
        "batched_cholesky",
        "Cholesky factors of 1000 matrices, 8 x 8",
        "us",
        lambda: (_positive(1000, 8, 8),),
        lambda m, a: m.cholesky(a),
        lead=_LEAD,
    ),
    Case(
        "batched_solve",
        "solutions of 1000 linear systems, 8 x 8",
        "us",
        lambda: (_positive(1000, 8, 8), _matrices(1000, 8, 1)),
        lambda m, a, b: m.solve(a, b),
        lead=_LEAD,
    ),
    Case(
        "batched_matmul",
        "products of 1000 pairs of matrices, 8 x 8",
        "us",
        lambda: (_matrices(1000, 8, 8), _matrices(1000, 8, 8) / 8),
        lambda m, a, b: m.matmul(a, b),
        lead=_LEAD,
    ),
    Case(
        "batched_eigh",
        "eigenvalues and vectors of 1000 symmetric matrices, 8 x 8",
        "us",
        lambda: (_positive(1000, 8, 8),),
        lambda m, a: m.eigen(a),
        lead=_LEAD,
    ),
    Case(
        "batched_svd",
        "singular value decompositions of 1000 matrices, 8 x 8",
        "us",
        lambda: (_matrices(1000, 8, 8),),
        lambda m, a: m.singular(a),
        lead=_LEAD,
    ),
    Case(
        "batched_qr",
        "QR decompositions of 1000 matrices, 8 x 8",
        "us",
        lambda: (_matrices(1000, 8, 8),),
        lambda m, a: m.orthogonal(a),
        lead=_LEAD,
    ),
]


def decompositions(linalg: Any) -> dict[str, Any]:
    """What does not depend on the signs of vectors, in one array that needs all results."""

    def eigen(a: Any) -> Any:
        w, v = linalg.eigh(a)
        return w[..., None, :] * abs(v)

    def singular(a: Any) -> Any:
        u, s, vh = linalg.svd(a, full_matrices=False)
        return abs(u) * s[..., None, :] + abs(vh)

    def orthogonal(a: Any) -> Any:
        q, r = linalg.qr(a)
        return q + r

    return {"eigen": eigen, "singular": singular, "orthogonal": orthogonal}


def numpy_matrices() -> dict[str, Any]:
    """NumPy's functions."""
    plain = {"cholesky": np.linalg.cholesky, "solve": np.linalg.solve, "matmul": np.matmul}
    return plain | decompositions(np.linalg)


def jax_matrices() -> dict[str, Any]:
    """JAX's functions."""
    import jax.numpy as jnp

    plain = {"cholesky": jnp.linalg.cholesky, "solve": jnp.linalg.solve, "matmul": jnp.matmul}
    return plain | decompositions(jnp.linalg)


def symbolic_matrices(tensor: Any) -> dict[str, Any]:
    """Functions of graphc or PyTensor."""
    import importlib

    linalg = importlib.import_module(f"{tensor.__name__}.linalg")
    return {
        "cholesky": linalg.cholesky,
        "solve": lambda a, b: linalg.solve(a, b, b_ndim=2),
        "matmul": tensor.matmul,
        **decompositions(linalg),
    }

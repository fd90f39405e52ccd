# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of linear algebra: matrices and batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_table import COMPLEX, FLOATS, Family, arg, between, positive_definite, regular

MATRIX, WIDE, TALL = arg("n", "n", make=regular), arg(2, "n", "n+1"), arg(2, "n+1", "n")
POSITIVE = arg(2, "n", "n", make=positive_definite)
BATCH, RIGHT, VECTOR = arg(2, "n", "n", make=regular), arg(2, "n", 3), arg("n")
ONE_POSITIVE = arg("n", "n", make=positive_definite)
ONE_RIGHT = arg("n", 3)


def upper(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Upper triangular matrices far from singular."""
    return np.triu(regular(rng, shape, dtype))


def bands(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Three diagonals of a matrix far from singular."""
    return (rng.uniform(-1, 1, shape) + np.array([[0], [4], [0]])).astype(dtype)


# NumPy's ------------------------------------------------------------------------------------------

case = Family("linalg", "linalg", dtypes=COMPLEX, tolerance=100, sizes=(4, 1, 18))
case("cholesky", [POSITIVE], lambda m, x: m.cholesky(x))
case("solve", [BATCH, RIGHT])
case("solve:vector", [MATRIX, VECTOR])
case("inv", [BATCH])
case("det", [BATCH])
case("slogdet", [BATCH])
case("pinv", [WIDE])
case("matrix_power", [MATRIX], lambda m, x: m.matrix_power(x, 3))
case("matrix_power:negative", [MATRIX], lambda m, x: m.matrix_power(x, -2))
case("eigvalsh", [POSITIVE])
case("eigh", [POSITIVE], lambda m, x: _from_eigen(*m.eigh(x)), lambda x: x)
case("svd", [TALL], lambda m, x: _product(*m.svd(x, full_matrices=False)), lambda x: x, gradient=False)
case("svd:values", [WIDE], lambda m, x: m.svd(x, compute_uv=False), gradient=False)
case("svdvals", [WIDE], jax=False, gradient=False)
case("qr", [TALL], lambda m, x: m.qr(x)[0] @ m.qr(x)[1], lambda x: x)
case("lstsq", [arg("n+2", "n"), arg("n+2")], lambda m, a, b: m.lstsq(a, b, rcond=None)[0], gradient=False)
case("norm", [WIDE], lambda m, x: m.norm(x, axis=(1, 2)))
for order in (1, -1, np.inf, 2, "fro"):
    case(
        f"norm:{order}",
        [WIDE],
        lambda m, x, order=order: m.norm(x, ord=order, axis=(-2, -1)),
        gradient=order == "fro",
    )
for order in (0, 1, 2, 3, np.inf):
    case(
        f"norm:vector {order}",
        [WIDE],
        lambda m, x, order=order: m.norm(x, ord=order, axis=-1),
        gradient=order in (2, 3),
        dtypes=FLOATS,
    )
case("vector_norm", [WIDE], lambda m, x: m.vector_norm(x, axis=1))
case("matrix_norm", [WIDE])
case("cond", [BATCH], gradient=False)
case("matrix_rank", [BATCH], gradient=False)
case(
    "tensorinv",
    [arg(4, 2, 2, make=lambda rng, s, d: regular(rng, (4, 4), d).reshape(4, 2, 2))],
    lambda m, x: m.tensorinv(x, ind=1),
    jax=False,
)
case("multi_dot", [WIDE, WIDE], lambda m, x, y: m.multi_dot([x[0], y[1].T, x[1]]))
case(
    "eigvals",
    [BATCH],
    lambda m, x: _sum_and_product(m.eigvals(x)),
    lambda x: _sum_and_product(np.linalg.eigvals(x)),
    gradient=False,
    same_dtype=False,
)
case(
    "eig",
    [BATCH],
    lambda m, x: _sum_and_product(m.eig(x)[0]),
    lambda x: _sum_and_product(np.linalg.eig(x)[0]),
    gradient=False,
    same_dtype=False,
)
for name in ("diagonal", "trace", "matrix_transpose"):
    case(name, [BATCH])
case("matmul", [BATCH, RIGHT])
case("outer", [VECTOR, arg("n+1")])
case("tensordot", [WIDE, TALL], lambda m, x, y: m.tensordot(x, y, axes=[[1], [2]]))
for name in ("cross",):
    case(name, [arg("n", 3), arg("n", 3, make=between(-1, 1))])
case("vecdot", [VECTOR, arg("n", make=between(-1, 1))])


def _from_eigen(values: Any, vectors: Any) -> Any:
    return (vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2).conj()


def _product(u: Any, s: Any, v: Any) -> Any:
    return (u * s[..., None, :]) @ v


def _sum_and_product(x: Any) -> list[Any]:
    return [x.sum(-1), x.prod(-1)]


# SciPy's ------------------------------------------------------------------------------------------

case = Family("scipy.linalg", "slinalg", dtypes=FLOATS, tolerance=100, sizes=(4, 1, 18))
UPPER = arg("n", "n", make=upper)
case("cholesky:upper", [POSITIVE], lambda m, x: m.cholesky(x, lower=False), jax=False)
case("solve_triangular", [UPPER, ONE_RIGHT], lambda m, a, b: m.solve_triangular(a, b))
case(
    "solve_triangular:transposed",
    [UPPER, VECTOR],
    lambda m, a, b: m.solve_triangular(a, b, trans=1),
    jax=False,
)
for kind in ("pos", "sym", "gen"):
    case(f"solve:{kind}", [ONE_POSITIVE, ONE_RIGHT], lambda m, a, b, kind=kind: m.solve(a, b, assume_a=kind))
case(
    "cho_solve",
    [ONE_POSITIVE, ONE_RIGHT],
    lambda m, a, b: m.cho_solve((m.cholesky(a, lower=True), True), b),
    jax=False,
)
case("lu_factor", [MATRIX], jax=False, same_dtype=False)
case("lu_solve", [MATRIX, ONE_RIGHT], lambda m, a, b: m.lu_solve(m.lu_factor(a), b), jax=False)
case("lu", [MATRIX], jax=False)
case(
    "solve_banded",
    [arg(3, "n", make=bands), VECTOR],
    lambda m, a, b: m.solve_banded((1, 1), a, b),
    jax=False,
)
case("expm", [arg("n", "n", make=between(-0.5, 0.5))])
# SciPy computes it in float64 only, but exponentials in the matrix's dtype, as we do both.
case("expm_frechet", [arg("n", "n", make=between(-0.5, 0.5)), MATRIX], same_dtype=False)
case(
    "eigh_tridiagonal",
    [VECTOR, arg("n", make=between(0.5, 2.0))],
    lambda m, d, e: m.eigh_tridiagonal(d, e[1:], eigvals_only=True),
    sizes=(4, 1),
)
case("block_diag", [MATRIX, ONE_RIGHT])
SMALL = arg("n", "n", make=lambda rng, s, d: (rng.uniform(-0.4, 0.4, s) / max(s[0], 1)).astype(d))
case("solve_discrete_lyapunov", [SMALL, ONE_POSITIVE], jax=False, sizes=(4, 1), same_dtype=False)
case("solve_continuous_lyapunov", [MATRIX, ONE_POSITIVE], jax=False)
case("solve_sylvester", [MATRIX, UPPER, ONE_POSITIVE], jax=False)
case(
    "pivot_to_permutation",
    [arg("n")],
    lambda m, x: m.pivot_to_permutation(np.array([2, 2, 3, 3], "int32")),
    lambda x: np.array([1, 3, 0, 2]),
    gradient=False,
    jax=False,
    same_dtype=False,
    sizes=(4,),
)
case("kron", [MATRIX, ONE_RIGHT], reference=np.kron, jax=False)
case("matrix_dot", [MATRIX, UPPER, ONE_RIGHT], reference=lambda a, b, c: a @ b @ c, jax=False)
case(
    "multi_dot",
    [MATRIX, UPPER, VECTOR],
    lambda m, a, b, c: m.multi_dot([a, b, c]),
    lambda a, b, c: a @ b @ c,
    jax=False,
)
case("vdot", [VECTOR, arg("n", make=between(-1, 1))], reference=np.vdot, jax=False)
case("matvec", [MATRIX, VECTOR], reference=np.matvec, jax=False)
case("vecmat", [VECTOR, MATRIX], reference=np.vecmat, jax=False)

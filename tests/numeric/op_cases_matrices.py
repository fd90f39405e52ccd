# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of canonical forms, functions of matrices, bands and structured matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from op_table import COMPLEX, FLOATS, Family, arg, between, positive_definite, regular

MATRIX, RIGHT = arg("n", "n", make=regular), arg("n", 3)
BATCH, WIDE, TALL = arg(2, "n", "n", make=regular), arg(2, "n", "n+1"), arg(2, "n+1", "n")
POSITIVE = arg("n", "n", make=positive_definite)
ROW, OTHER = arg("n", make=between(0.5, 2)), arg("n+1")
SMALL = arg("n", "n", make=between(-0.4, 0.4))


def bands(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Upper bands of a positive definite matrix."""
    values = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if dtype[0] == "c" else 0)
    values[-1] = 6 + values[-1].real
    return values.astype(dtype)


def spread(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Columns of which no two have nearly the same length."""
    values = rng.uniform(-1, 1, shape) * 3.0 ** np.arange(shape[-1])
    return values.astype(dtype)


BANDS = arg(3, "n", make=bands)


def _batch(function: Any) -> Any:
    """SciPy's function for each matrix of a batch."""

    def call(x: np.ndarray) -> Any:
        found = [function(each) for each in x]
        return (
            [np.stack(part) for part in zip(*found, strict=True)]
            if isinstance(found[0], tuple)
            else np.stack(found)
        )

    return call


case = Family("canonical forms", "slinalg", dtypes=COMPLEX, tolerance=1000, sizes=(4, 1, 18), jax=False)
SPREAD = arg(2, "n", "n+1", make=spread)
case(
    "qr:pivoted",
    [arg(2, "n+1", "n", make=spread)],
    lambda m, x: m.qr(x, mode="economic", pivoting=True),
    _batch(lambda x: scipy.linalg.qr(x, mode="economic", pivoting=True)),
    gradient=False,
)
case(
    "qr:pivoted upper",
    [SPREAD],
    lambda m, x: m.qr(x, mode="r", pivoting=True),
    _batch(lambda x: (scipy.linalg.qr(x, mode="r", pivoting=True)[0], scipy.linalg.qr(x, pivoting=True)[2])),
    gradient=False,
)
case("schur", [BATCH], lambda m, x: _rebuilt(*m.schur(x)), lambda x: x, gradient=False)
case("schur:sorted", [MATRIX], lambda m, x: _rebuilt(*m.schur(x, sort="rhp")), lambda x: x, gradient=False)
case("sqrtm", [BATCH], lambda m, x: m.sqrtm(x) @ m.sqrtm(x), lambda x: x, gradient=False)
case("sqrtm:positive", [POSITIVE], lambda m, x: m.sqrtm(x), lambda x: scipy.linalg.sqrtm(x), gradient=False)
case(
    "logm",
    [POSITIVE],
    lambda m, x: m.logm(x),
    lambda x: scipy.linalg.logm(x),
    gradient=False,
    same_dtype=False,
)
for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    case(name, [SMALL], sizes=(4, 1), gradient=False)
case("polar", [MATRIX], gradient=False)
case(
    "polar:left",
    [WIDE],
    lambda m, x: m.polar(x, "left"),
    _batch(lambda x: scipy.linalg.polar(x, "left")),
    gradient=False,
)
case("orth", [MATRIX], lambda m, x: m.orth(x) @ m.orth(x).conj().T, gradient=False)
case("null_space", [arg("n", "n+2")], lambda m, x: m.null_space(x) @ m.null_space(x).conj().T, gradient=False)
case("cho_factor", [POSITIVE], lambda m, x: m.cho_solve(m.cho_factor(x), x[0]), gradient=False)
case(
    "cholesky_banded",
    [BANDS],
    lambda m, x: m.cholesky_banded(x),
    lambda x: np.triu(np.ones((3, 3)))[::-1, :0] if not x.size else _inside(scipy.linalg.cholesky_banded(x)),
    gradient=False,
)
case("cho_solve_banded", [BANDS, RIGHT], lambda m, x, b: m.cho_solve_banded((m.cholesky_banded(x), False), b))
case("solveh_banded", [BANDS, RIGHT], lambda m, x, b: m.solveh_banded(x, b))

case = Family("structured", "slinalg", dtypes=("int64", *COMPLEX), tolerance=10, sizes=(4, 1), jax=False)
for name in ("circulant", "hankel", "toeplitz"):
    case(name, [ROW])
    if name != "circulant":
        case(f"{name}:two", [ROW, OTHER], lambda m, c, r, name=name: getattr(m, name)(c, r))
case("companion", [arg("n+1", make=between(1, 2))])
case("hilbert", [ROW], lambda m, x: m.hilbert(x.shape[0]), gradient=False)
case("khatri_rao", [arg("n", 3), arg(2, 3)])

case = Family("equations", "slinalg", dtypes=FLOATS, tolerance=1000, sizes=(4, 1), jax=False)
case("solve_lyapunov", [MATRIX, POSITIVE])
case(
    "tensorsolve",
    [arg(2, 2, 4, make=lambda rng, s, d: regular(rng, (4, 4), d).reshape(s)), arg(2, 2)],
    where="linalg",
)
case(
    "tridiagonal_lu_factor",
    [MATRIX],
    lambda m, x: m.tridiagonal_lu_factor(x)[1][0],
    lambda x: _first_pivot(x),
    gradient=False,
)
case(
    "tridiagonal_lu_solve",
    [MATRIX, RIGHT],
    lambda m, x, b: m.tridiagonal_lu_solve(m.tridiagonal_lu_factor(x), b, b_ndim=2),
    lambda x, b: np.linalg.solve(np.triu(np.tril(x, 1), -1), b),
    gradient=False,
)

PYTHON = "SciPy has no C function for it"
case = Family(
    "python equations", "slinalg", dtypes=("float64",), tolerance=1000, sizes=(3,), jax=False, python=PYTHON
)
ARE = [SMALL, RIGHT, POSITIVE, arg(3, 3, make=positive_definite)]
case("solve_discrete_are", ARE, gradient=(0, 1))
case("solve_continuous_are", ARE, gradient=(0, 1))
case("qz", [MATRIX, SMALL], gradient=False)
case("hessenberg", [MATRIX], lambda m, a: m.hessenberg(a, calc_q=True), gradient=False, dtypes=COMPLEX)
case("ldl", [POSITIVE], gradient=False, dtypes=COMPLEX)
case("ldl:upper", [POSITIVE], lambda m, a: m.ldl(a, lower=False), gradient=False, dtypes=COMPLEX)
case("ldl:batch", [BATCH], lambda m, a: m.ldl(a), _batch(scipy.linalg.ldl), gradient=False)
case(
    "funm",
    [MATRIX],
    lambda m, a: m.funm(a, np.tanh, output="complex"),
    lambda a: scipy.linalg.funm(a.astype(np.result_type(a, np.complex64)), np.tanh, disp=False)[0],
    dtypes=COMPLEX,
)
case("funm:batch", [BATCH], lambda m, a: m.funm(a, np.sin), _batch(scipy.linalg.sinm))
case("rsf2csf", [SMALL], lambda m, a: m.rsf2csf(*m.schur(a)), gradient=False)
case(
    "ordqz",
    [MATRIX, SMALL],
    lambda m, a, b: _rebuilt_pair(*m.ordqz(a, b, sort="lhp")),
    lambda a, b: [a, b],
    gradient=False,
)


def _rebuilt(t: Any, z: Any) -> Any:
    return z @ t @ z.swapaxes(-1, -2).conj()


def _rebuilt_pair(aa: Any, bb: Any, alpha: Any, beta: Any, q: Any, z: Any) -> Any:
    return [q @ aa @ z.conj().T, q @ bb @ z.conj().T]


def _inside(c: np.ndarray) -> np.ndarray:
    """Zeros where SciPy leaves what was there, outside of the matrix."""
    d, j = np.ogrid[: c.shape[0], : c.shape[1]]
    return np.where(d + j >= c.shape[0] - 1, c, np.zeros((), c.dtype))


def _first_pivot(x: np.ndarray) -> Any:
    return x[0, 0] if len(x) == 1 or abs(x[0, 0]) >= abs(x[1, 0]) else x[1, 0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Banded positive definite and tridiagonal systems by factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.hooks import publish
from graphc.ops.factors import SolveBanded
from graphc.ops.math import maximum
from graphc.ops.matrices import CholeskyBanded, TridiagonalFactor, TridiagonalSolve, conj, diagonal
from graphc.ops.shape import size_of
from graphc.tensor.linalg.checks import matrix, square
from graphc.tensor.linalg.solving import _with_columns
from graphc.tensor.rearranging import diagonal as diagonal_

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def cholesky_banded(
    ab: TensorLike, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = False
) -> TensorVariable:
    """Bands of the Cholesky factor of a banded Hermitian positive definite matrix.

    Args:
        ab: bands (..., u + 1, n) of one half: ``ab[u + i - j, j] = a[i, j]``, or ``ab[i - j, j]`` of the
            lower one.
        lower: whether it is the lower half, and the factor the lower one.
        overwrite_ab, check_finite: for compatibility, without effect.

    Raises:
        LinAlgError: when run, the matrix is not positive definite.

    Examples:
        >>> pt.linalg.cholesky_banded([[4.0, 4.0], [0.0, 0.0]], lower=True).eval()
        array([[2., 2.],
               [0., 0.]])
    """
    return CholeskyBanded(bool(lower))(matrix(ab, "cholesky_banded"))


def _rows(ab: TensorVariable, what: str) -> int:
    rows = ab.type.shape[-2]
    if rows is None:
        raise ValueError(f"{what}: the number of bands must be known, got {ab} of type {ab.type}")
    return int(rows)


def cho_solve_banded(
    cb_and_lower: Sequence[TensorLike],
    b: TensorLike,
    overwrite_b: bool = False,
    check_finite: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Solution of ``a @ x = b`` from what `cholesky_banded` gave.

    Args:
        cb_and_lower: the bands, of which there must be a known number, and whether they are the lower ones.
        b: array-like (..., n) or (..., n, k).
        overwrite_b, check_finite: for compatibility, without effect.
        b_ndim: number of core dimensions of b, as in `solve`.

    Examples:
        >>> pt.linalg.cho_solve_banded((np.array([[2.0, 2.0]]), True), [4.0, 8.0]).eval()
        array([1., 2.])
    """
    c, lower = matrix(cb_and_lower[0], "cho_solve_banded"), bool(cb_and_lower[1])
    width = _rows(c, "cho_solve_banded") - 1
    counts = (width, 0) if lower else (0, width)
    plain, turned = SolveBanded(*counts, False), SolveBanded(*counts, True)

    def do(c: TensorLike, b: TensorLike) -> TensorVariable:
        return turned(conj(c), plain(c, b)) if lower else plain(c, turned(conj(c), b))

    return _with_columns(c, b, b_ndim, "cho_solve_banded", do, several=False)


def solveh_banded(
    ab: TensorLike,
    b: TensorLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Solution of a banded Hermitian positive definite system; arguments as `cholesky_banded`.

    Examples:
        >>> pt.linalg.solveh_banded(np.array([[2.0, 4.0]]), [2.0, 4.0]).eval()
        array([1., 1.])
    """
    return cho_solve_banded((cholesky_banded(ab, lower=lower), lower), b, b_ndim=b_ndim)


def tridiagonal_lu_factor(a: TensorLike) -> tuple[TensorVariable, ...]:
    """LU factors of tridiagonal matrices (..., n, n), as LAPACK's gttrf leaves them, without a gradient.

    Returns:
        Diagonal of L (n - 1), diagonals of U (n, n - 1, n - 2), and the int32 exchanges (n), from 1.

    Examples:
        >>> len(pt.linalg.tridiagonal_lu_factor(np.diag([2.0, 3.0, 4.0])))
        5
    """
    a = square(a, "tridiagonal_lu_factor")
    under, over = (diagonal_(a, offset, -2, -1) for offset in (-1, 1))
    more = maximum(size_of(a, a.type.ndim - 1) - 2, 0)
    return tuple(TridiagonalFactor()(under, diagonal(a), over, more))


def tridiagonal_lu_solve(
    a_diagonals: Sequence[TensorLike], b: TensorLike, *, b_ndim: int | None = None, transposed: bool = False
) -> TensorVariable:
    """Solution of a system by what `tridiagonal_lu_factor` gave.

    Args:
        a_diagonals: its five results.
        b: array-like (..., n) or (..., n, k).
        b_ndim: number of core dimensions of b, as in `solve`.
        transposed: solve with the transpose.

    Examples:
        >>> factor = pt.linalg.tridiagonal_lu_factor(np.diag([2.0, 4.0, 5.0]))
        >>> pt.linalg.tridiagonal_lu_solve(factor, [2.0, 4.0, 5.0]).eval()
        array([1., 1., 1.])
    """
    dl, d, du, du2, pivots = (as_tensor_variable(x) for x in a_diagonals)
    op = TridiagonalSolve(bool(transposed))

    def do(d: TensorVariable, b: TensorLike) -> TensorVariable:
        return op(dl, d, du, du2, pivots, b)

    return _with_columns(d, b, b_ndim, "tridiagonal_lu_solve", do, several=False)


publish(globals())

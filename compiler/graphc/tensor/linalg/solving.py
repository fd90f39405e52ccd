# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import describe
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.factors import (
    ASSUMPTIONS,
    PermuteRows,
    PivotToPermutation,
    Solve,
    SolveBanded,
    SolveTriangular,
    columns_solved,
)
from graphc.ops.join import concatenate, stack
from graphc.ops.math import cast
from graphc.ops.matrices import diagonal, float_dtype
from graphc.ops.shape import size_of
from graphc.ops.shaping import expand_dims, squeeze
from graphc.tensor.linalg.checks import matrix, raises, square
from graphc.tensor.rearranging import diagonal as diagonal_

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["cho_solve", "lu_solve", "solve", "solve_banded", "solve_triangular"]

_KINDS = {
    **{name: name for name in ASSUMPTIONS},
    "general": "gen",
    "symmetric": "sym",
    "hermitian": "her",
    "positive definite": "pos",
    "diagonal": "diagonal",
    "tridiagonal": "tridiagonal",
    "banded": "gen",
    "pos_def": "pos",
    "lower triangular": "lower",
    "upper triangular": "upper",
}
_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _right_hand_side(
    a: TensorVariable, b: TensorVariable, b_ndim: int | None, what: str
) -> tuple[TensorVariable, bool]:
    """b with columns, and whether they have to go from the result."""
    b = as_tensor_variable(b)
    if b_ndim is None:
        b_ndim = min(b.type.ndim, 2)
    if b_ndim not in (1, 2):
        raise ValueError(f"b_ndim must be 1 or 2, got {b_ndim}")
    if b.type.ndim < b_ndim:
        raise ValueError(
            f"{what}: b, {b}{describe(b.location)} of type {b.type}, must have at least {b_ndim} dimensions"
        )
    n, rows = a.type.shape[-1], b.type.shape[-b_ndim]
    if n is not None and rows is not None and n != rows:
        raise ValueError(
            f"{what}: the matrix has {n} columns, but b, {b}{describe(b.location)}, has {rows} rows"
        )
    return (expand_dims(b, -1), True) if b_ndim == 1 else (b, False)


def _with_columns(
    a: Any, b: Any, b_ndim: int | None, what: str, do: Callable[[Any, Any], Any], several: bool = True
) -> TensorVariable:
    """``do(a, b)`` for right-hand sides that may be vectors.

    Args:
        several: one matrix may serve a batch of right-hand sides, which are then its columns.
    """
    b, dropped = _right_hand_side(a, b, b_ndim, what)
    if several and a.type.ndim <= b.type.ndim and all(n == 1 for n in a.type.shape[:-2]):
        a = squeeze(a, tuple(range(a.type.ndim - 2)))
    together = several and a.type.ndim == 2 and b.type.ndim > 2
    result = columns_solved(do, a, b) if together else do(a, b)
    return squeeze(result, result.type.ndim - 1) if dropped else result


def solve(
    a: TensorLike,
    b: TensorLike,
    *,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
    assume_a: str = "gen",
    transposed: bool = False,
    b_ndim: int | None = None,
    on_error: str = "raise",
) -> TensorVariable:
    """Solution x of ``a @ x = b``.

    Args:
        a: array-like (..., n, n).
        b: array-like (..., n) or (..., n, k); see b_ndim.
        lower: which triangle is read where a is symmetric, Hermitian or positive definite.
        overwrite_a, overwrite_b, check_finite: for compatibility, without effect.
        assume_a: "gen", "sym", "her", "pos", "diagonal", "tridiagonal", "banded" (solved as "gen"),
            "lower triangular", "upper triangular".
        transposed: solve ``a.T @ x = b``.
        b_ndim: number of core dimensions of b: 1 or 2; by default b is a vector only if it has one dimension.
        on_error: "raise" LinAlgError where there is no solution, or "nan": the solution is NaN, and so are
            gradients; other systems of a batch are solved.

    Raises:
        LinAlgError: when run, a is singular, or not positive definite where that was assumed.

    Examples:
        >>> pt.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).eval()
        array([1., 1.])
    """
    a, check = square(a, "solve"), raises(on_error)
    kind = _KINDS.get(assume_a)
    if kind is None:
        raise ValueError(f"assume_a must be one of {', '.join(map(repr, _KINDS))}; got {assume_a!r}")
    if kind in ("lower", "upper"):
        op: Any = SolveTriangular(kind == "lower", int(transposed), check=check)
    elif kind == "diagonal":
        return _with_columns(a, b, b_ndim, "solve", _diagonal, several=False)
    elif kind == "tridiagonal":
        if not check:
            return solve(a, b, transposed=transposed, b_ndim=b_ndim, on_error=on_error)
        bands = _three_bands(a)
        banded = SolveBanded(1, 1, bool(transposed))
        return _with_columns(a, b, b_ndim, "solve", lambda _, b: banded(bands, b), several=False)
    else:
        op = Solve(kind, bool(lower), bool(transposed), check)
    return _with_columns(a, b, b_ndim, "solve", op)


def _diagonal(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    dtype = float_dtype(a.type.dtype, b.type.dtype)
    return cast(b, dtype) / expand_dims(cast(diagonal(a), dtype), -1)


def _three_bands(a: TensorVariable) -> TensorVariable:
    over, under = (diagonal_(a, offset, -2, -1) for offset in (1, -1))
    main = diagonal(a)
    nothing = main[..., :1] * 0
    rows = [concatenate([nothing, over], -1), main, concatenate([under, nothing], -1)]
    return stack(rows, axis=-2)


def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    *,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check_finite: bool = False,
    b_ndim: int | None = None,
    on_error: str = "raise",
) -> TensorVariable:
    """Solution of a triangular system; the other triangle is not read.

    Args:
        a: array-like (..., n, n).
        b: array-like (..., n) or (..., n, k); see b_ndim.
        trans: 0 or "N": ``a @ x = b``; 1 or "T": ``a.T @ x = b``; 2 or "C": ``a^H @ x = b``.
        lower: whether a is lower triangular.
        unit_diagonal: the diagonal is taken to be 1.
        check_finite: for compatibility, without effect.
        b_ndim: number of core dimensions of b, as in `solve`.
        on_error: "raise", or "nan": NaN where there is a 0 on the diagonal.

    Raises:
        LinAlgError: when run, there is a 0 on the diagonal.

    Examples:
        >>> pt.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 5.0], lower=True).eval()
        array([1., 1.])
    """
    a = square(a, "solve_triangular")
    if trans not in _TRANS:
        raise ValueError(f'trans must be 0, 1, 2, "N", "T" or "C", got {trans!r}')
    op: Any = SolveTriangular(bool(lower), _TRANS[trans], bool(unit_diagonal), raises(on_error))
    return _with_columns(a, b, b_ndim, "solve_triangular", op)


def cho_solve(
    c_and_lower: Sequence[TensorLike],
    b: TensorLike,
    overwrite_b: bool = False,
    check_finite: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Solution of ``a @ x = b`` from a Cholesky factor of a.

    Args:
        c_and_lower: the factor (..., n, n), of which one triangle is read, and whether it is the lower one.
        b: array-like (..., n) or (..., n, k).
        overwrite_b, check_finite: for compatibility, without effect.
        b_ndim: number of core dimensions of b, as in `solve`.

    Examples:
        >>> pt.linalg.cho_solve((np.diag([2.0, 3.0]), True), [4.0, 9.0]).eval()
        array([1., 1.])
    """
    c, lower = square(c_and_lower[0], "cho_solve"), bool(c_and_lower[1])
    first, then = (SolveTriangular(lower, trans) for trans in ((0, 2) if lower else (2, 0)))
    return _with_columns(c, b, b_ndim, "cho_solve", lambda c, b: then(c, first(c, b)))


def lu_solve(
    LU_and_pivots: Sequence[TensorLike],
    b: TensorLike,
    trans: int | str | bool = 0,
    b_ndim: int | None = None,
    check_finite: bool = False,
    overwrite_b: bool = False,
) -> TensorVariable:
    """Solution of ``a @ x = b`` from what `lu_factor` returned.

    Args:
        LU_and_pivots: factors (..., n, n) and pivots (..., n).
        b: array-like (..., n) or (..., n, k).
        trans: as in `solve_triangular`.
        b_ndim: number of core dimensions of b, as in `solve`.
        check_finite, overwrite_b: for compatibility, without effect.

    Examples:
        >>> pt.linalg.lu_solve(pt.linalg.lu_factor([[2.0, 0.0], [0.0, 4.0]]), [2.0, 4.0]).eval()
        array([1., 1.])
    """
    factors, pivots = square(LU_and_pivots[0], "lu_solve"), as_tensor_variable(LU_and_pivots[1])
    if trans not in _TRANS:
        raise ValueError(f'trans must be 0, 1, 2, "N", "T" or "C", got {trans!r}')
    how = _TRANS[trans]
    order = PivotToPermutation()(pivots, size_of(pivots, pivots.type.ndim - 1))

    def do(factors: Any, b: TensorLike) -> TensorVariable:
        lower, upper = SolveTriangular(True, how, True), SolveTriangular(False, how)
        if how:
            return PermuteRows(True)(lower(factors, upper(factors, b)), order)
        return upper(factors, lower(factors, PermuteRows()(b, order)))

    several = pivots.type.ndim == 1
    return _with_columns(factors, b, b_ndim, "lu_solve", do, several)


def solve_banded(
    l_and_u: tuple[int, int],
    ab: TensorLike,
    b: TensorLike,
    *,
    transposed: bool = False,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
    b_ndim: int | None = None,
) -> TensorVariable:
    """Solution of a system with a banded matrix, as ``scipy.linalg.solve_banded``.

    Args:
        l_and_u: how many diagonals lie below and above the main one.
        ab: array-like (..., l + u + 1, n): ``ab[u + i - j, j] = a[i, j]``.
        b: array-like (..., n) or (..., n, k).
        transposed: solve with the transpose.
        overwrite_ab, overwrite_b, check_finite: for compatibility, without effect.
        b_ndim: number of core dimensions of b, as in `solve`.

    Examples:
        >>> pt.linalg.solve_banded((0, 0), np.array([[2.0, 4.0]]), [2.0, 4.0]).eval()
        array([1., 1.])
    """
    ab = matrix(ab, "solve_banded")
    lower, upper = (int(count) for count in l_and_u)
    rows = ab.type.shape[-2]
    if min(lower, upper) < 0 or (rows is not None and rows != lower + upper + 1):
        raise ValueError(
            f"solve_banded: ab, {ab}{describe(ab.location)} of type {ab.type}, must have l + u + 1 rows for "
            f"(l, u) = {l_and_u}"
        )
    return _with_columns(ab, b, b_ndim, "solve_banded", SolveBanded(lower, upper, bool(transposed)))

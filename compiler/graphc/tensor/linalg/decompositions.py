# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.canonical import QRPivoted
from graphc.ops.create import arange, eye, tril, triu
from graphc.ops.factors import (
    QR,
    Cholesky,
    LUFactor,
    PermuteRows,
    PivotToPermutation,
    QRRaw,
    QRUpper,
    SolveTriangular,
)
from graphc.ops.math import cast, eq
from graphc.ops.matrices import adjoint, diagonal, on_diagonal, real
from graphc.ops.shape import size_of
from graphc.ops.shaping import expand_dims, specify_shape, squeeze
from graphc.ops.spectral import SVD, Eig, Eigh, Eigvalsh, SingularValues, SVDFull
from graphc.tensor.linalg.checks import matrix, raises, smaller_size, square
from graphc.tensor.rearranging import alloc_diag

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def cholesky(
    x: TensorLike,
    lower: bool = True,
    *,
    check_finite: bool = False,
    overwrite_a: bool = False,
    on_error: str = "raise",
) -> TensorVariable:
    """Cholesky factor of Hermitian positive definite matrices, of which one triangle is read.

    Args:
        x: array-like (..., n, n).
        lower: L of ``x = L @ L^H`` from the lower triangle; otherwise U of ``x = U^H @ U`` from the upper.
        check_finite, overwrite_a: for compatibility, without effect.
        on_error: "raise" LinAlgError where a matrix is not positive definite, or "nan": its factor is NaN,
            and a loop may then compute the factors of all its iterations before it runs.

    Examples:
        >>> pt.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]]).eval()
        array([[2., 0.],
               [1., 1.]])
    """
    return Cholesky(bool(lower), raises(on_error))(square(x, "cholesky"))


def lu_factor(
    a: TensorLike, *, check_finite: bool = False, overwrite_a: bool = False
) -> tuple[TensorVariable, TensorVariable]:
    """LU factors with partial pivoting, as ``scipy.linalg.lu_factor``.

    Args:
        a: array-like (..., m, n).
        check_finite, overwrite_a: for compatibility, without effect.

    Returns:
        The factors in one matrix (..., m, n), without the unit diagonal of L; and int32 pivots
        (..., min(m, n)): row i was exchanged with row pivots[i].

    Examples:
        >>> [v.eval().tolist() for v in pt.linalg.lu_factor([[2.0, 0.0], [1.0, 1.0]])]
        [[[2.0, 0.0], [0.5, 1.0]], [0, 1]]
    """
    a = matrix(a, "lu_factor")
    factors, pivots = LUFactor()(a, smaller_size(a))
    return factors, pivots


def pivot_to_permutation(p: TensorLike, inverse: bool = False) -> TensorVariable:
    """The permutation that exchanges of rows make.

    Args:
        p: pivots (..., n) of `lu_factor`.
        inverse: the order in which ``A[order]`` is the product of the factors; otherwise the order that
            gives A when it is applied to the product.

    Examples:
        >>> pt.linalg.pivot_to_permutation([1, 1]).eval()
        array([1, 0])
    """
    p = as_tensor_variable(p)
    order = PivotToPermutation()(p, size_of(p, p.type.ndim - 1))
    return order if inverse else _inverted(order)


def _inverted(order: TensorVariable) -> TensorVariable:
    """The inverse of permutations."""
    positions = expand_dims(arange(order.shape[-1]), -1)
    return squeeze(PermuteRows(True)(positions, order), -1)


def lu(
    a: Any,
    permute_l: bool = False,
    check_finite: bool = False,
    p_indices: bool = False,
    overwrite_a: bool = False,
) -> tuple[TensorVariable, ...]:
    """LU decomposition ``A = P @ L @ U``, as ``scipy.linalg.lu``.

    Args:
        a: array-like (..., m, n); k is min(m, n).
        permute_l: return ``P @ L`` (m, k) and U (k, n).
        check_finite, overwrite_a: for compatibility, without effect.
        p_indices: return, in place of P, integers p with ``A = L[p] @ U``.

    Returns:
        P (..., m, m), L (..., m, k), U (..., k, n), or as said.

    Examples:
        >>> [v.eval().tolist() for v in pt.linalg.lu([[2.0, 0.0], [1.0, 1.0]])]
        [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 0.0], [0.0, 1.0]]]
    """
    a = matrix(a, "lu")
    m, n = a.type.shape[-2:]
    factors, pivots = lu_factor(a)
    packed: Any = factors
    k = smaller_size(a)
    rows = size_of(a, a.type.ndim - 2)
    known = m is not None and n is not None
    wide, tall = known and m <= n, known and m >= n
    left = packed if tall else packed[..., :, :k]
    lower = tril(left, -1) + eye(rows, k, dtype=packed.type.dtype)
    upper = triu(packed if wide else packed[..., :k, :])
    order = PivotToPermutation()(pivots, rows)
    if p_indices and not permute_l:
        return _inverted(order), lower, upper
    if permute_l:
        return PermuteRows(True)(lower, order), upper
    whole = expand_dims(_inverted(order), -1)
    p = cast(eq(whole, arange(rows)), packed.type.dtype)
    return p, lower, upper


def qr(
    A: TensorLike,
    mode: str = "reduced",
    overwrite_a: bool = False,
    pivoting: bool = False,
    lwork: int | None = None,
    check_finite: bool = False,
) -> tuple[TensorVariable, ...]:
    """QR decomposition.

    Args:
        A: array-like (..., m, n); k is min(m, n).
        mode: "reduced" (or SciPy's "economic"): Q (m, k) and R (k, n); "complete" (or "full"): Q (m, m) and
            R (m, n); "r": R (k, n) alone; "raw": reflectors (n, m) and their factors (k), without a gradient.
        overwrite_a, lwork, check_finite: for compatibility, without effect.
        pivoting: exchange columns so that the magnitudes on the diagonal of R descend; one more result is
            the int32 order of the columns, with ``A[:, order] = Q @ R``. Not for "raw".

    Examples:
        >>> [v.eval().shape for v in pt.linalg.qr(np.ones((3, 2)))]
        [(3, 2), (2, 2)]
    """
    a = matrix(A, "qr")
    mode = {"economic": "reduced", "full": "complete"}.get(mode, mode)
    if pivoting:
        return _qr_pivoted(a, mode)
    if mode == "reduced":
        return tuple(QR()(a, smaller_size(a)))
    if mode == "complete":
        return tuple(QR(True)(a, size_of(a, a.type.ndim - 2)))
    if mode == "r":
        return QRUpper()(a, smaller_size(a))
    if mode == "raw":
        return tuple(QRRaw()(a, smaller_size(a)))
    raise ValueError(f'mode must be "reduced", "complete", "r" or "raw", got {mode!r}')


def _qr_pivoted(a: TensorVariable, mode: str) -> tuple[TensorVariable, ...]:
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'with pivoting, mode must be "reduced", "complete" or "r", got {mode!r}')
    k = size_of(a, a.type.ndim - 2) if mode == "complete" else smaller_size(a)
    found: TensorVariable = QRPivoted(mode == "complete")(a, k)
    return tuple(found[1:] if mode == "r" else found)


def _problem(b: TensorLike | str | None, lower: bool, UPLO: str | None) -> tuple[TensorLike | None, bool]:
    """The second matrix, and whether lower triangles are read. A string is NumPy's second argument."""
    if isinstance(b, str):
        b, UPLO = None, b
    if UPLO is None:
        return b, bool(lower)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f'UPLO must be "L" or "U", got {UPLO!r}')
    return b, UPLO.upper() == "L"


def _standard(a: Variable, b: TensorLike, lower: bool) -> tuple[TensorVariable, TensorVariable]:
    """L^-1 A L^-H for ``b = L L^H``, and L; all of a from one triangle."""
    factor = Cholesky(lower)(square(b, "eigh"))
    factor = factor if lower else adjoint(factor)
    half = tril(a, -1) if lower else triu(a, 1)
    whole = half + adjoint(half) + on_diagonal(real(diagonal(a)))
    left = SolveTriangular(True)(factor, whole)
    return adjoint(SolveTriangular(True)(factor, adjoint(left))), factor


def eigh(
    a: TensorLike,
    b: TensorLike | str | None = None,
    lower: bool = True,
    UPLO: str | None = None,
    driver: str | None = None,
) -> tuple[TensorVariable, TensorVariable]:
    """Eigenvalues in ascending order and eigenvectors of Hermitian matrices, of which one triangle is read.

    Args:
        a: array-like (..., n, n).
        b: if given, the generalised problem ``a v = w b v``, with positive definite b; "L" or "U" is UPLO, as
            in NumPy.
        lower: which triangle is read.
        UPLO: the same as "L" or "U".
        driver: for compatibility, without effect.

    Returns:
        Eigenvalues (..., n), eigenvectors as columns (..., n, n). Signs of vectors are free, and need not be
        those of NumPy.

    Examples:
        >>> [v.eval().round(6).shape for v in pt.linalg.eigh([[2.0, 0.0], [0.0, 3.0]])]
        [(2,), (2, 2)]
    """
    a, (b, low) = square(a, "eigh"), _problem(b, lower, UPLO)
    if b is None:
        w, v = Eigh(low)(a)
        return w, v
    standard, factor = _standard(a, b, low)
    w, v = Eigh(True)(standard)
    return w, SolveTriangular(True, 2)(factor, v)


def eigvalsh(
    a: TensorLike, b: TensorLike | str | None = None, lower: bool = True, UPLO: str | None = None
) -> TensorVariable:
    """Eigenvalues of Hermitian matrices in ascending order; arguments as of `eigh`.

    Examples:
        >>> pt.linalg.eigvalsh([[2.0, 0.0], [0.0, 3.0]]).eval()
        array([2., 3.])
    """
    a, (b, low) = square(a, "eigvalsh"), _problem(b, lower, UPLO)
    if b is None:
        return Eigvalsh(low)(a)
    return Eigvalsh(True)(_standard(a, b, low)[0])


def eigh_tridiagonal(
    d: TensorLike, e: TensorLike, eigvals_only: bool = False
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    """Eigenvalues in ascending order, and eigenvectors, of real symmetric tridiagonal matrices.

    The matrices are made, and decomposed by `eigh`: that takes n^2 numbers, as the vectors do.

    Args:
        d: array-like (..., n), the diagonal.
        e: array-like (..., n - 1), what is beside it.
        eigvals_only: whether only the values are returned.

    Raises:
        ValueError: sizes that do not fit, or complex numbers.

    Examples:
        >>> pt.linalg.eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True).eval()
        array([1., 3.])
    """
    on, beside = (operand(v, "eigh_tridiagonal takes real vectors", 1, kinds="biuf") for v in (d, e))
    size = size_of(on, on.type.ndim - 1)
    beside = specify_shape(beside, [*[None] * (beside.type.ndim - 1), size - 1])
    whole = alloc_diag(on, axis1=-2, axis2=-1) + alloc_diag(beside, -1, axis1=-2, axis2=-1)
    return eigvalsh(whole) if eigvals_only else eigh(whole)


def eig(x: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Eigenvalues (..., n) and right eigenvectors (..., n, n) of square matrices; always complex.

    Examples:
        >>> [v.eval().shape for v in pt.linalg.eig(np.diag([2.0, 3.0]))]
        [(2,), (2, 2)]
    """
    w, v = Eig()(square(x, "eig"))
    return w, v


def eigvals(x: TensorLike) -> TensorVariable:
    """Eigenvalues of square matrices; always complex.

    Examples:
        >>> sorted(pt.linalg.eigvals(np.diag([2.0, 3.0])).eval().real.tolist())
        [2.0, 3.0]
    """
    return eig(x)[0]


def svd(
    a: TensorLike, full_matrices: bool = True, compute_uv: bool = True
) -> TensorVariable | list[TensorVariable]:
    """Singular value decomposition ``a = U @ diag(s) @ Vh``.

    Args:
        a: array-like (..., m, n); k is min(m, n).
        full_matrices: U (m, m) and Vh (n, n); otherwise (m, k) and (k, n). Vectors beyond the first k are any
            basis of the rest: gradients hold for functions that do not depend on which.
        compute_uv: otherwise only s is returned.

    Returns:
        U, s (..., k) in descending order, Vh. Signs of vectors are free, and need not be those of NumPy.

    Raises:
        LinAlgError: when called, for matrices with NaN or infinities.

    Examples:
        >>> [v.eval().shape for v in pt.linalg.svd(np.ones((3, 2)))]
        [(3, 3), (2,), (2, 2)]
    """
    a = matrix(a, "svd")
    k = smaller_size(a)
    if not compute_uv:
        return SingularValues()(a, k)
    return list((SVDFull() if full_matrices else SVD())(a, k))


def svdvals(x: TensorLike) -> TensorVariable:
    """Singular values in descending order.

    Examples:
        >>> pt.linalg.svdvals(np.diag([4.0, 2.0])).round(6).eval()
        array([4., 2.])
    """
    x = matrix(x, "svd")
    return SingularValues()(x, smaller_size(x))


publish(globals())

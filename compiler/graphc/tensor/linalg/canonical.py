# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schur and QZ forms, and functions of matrices that are computed from the former."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.hooks import publish
from graphc.ops.canonical import LDL, QZ, RSF2CSF, SORTS, Funm, Hessenberg, Logm, Schur, Sqrtm
from graphc.ops.elementwise import is_complex
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, gt, imag, real, switch
from graphc.ops.matrices import complex_dtype, float_dtype
from graphc.ops.reduce import any as any_
from graphc.ops.reduce import max as max_
from graphc.tensor.linalg.checks import square
from graphc.tensor.linalg.functions import expm
from graphc.tensor.linalg.solving import solve

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _output(x: TensorVariable, output: str) -> TensorVariable:
    """x in the dtype that the form is to have."""
    dtype = float_dtype(x.type.dtype)
    if output in ("complex", "c"):
        return cast(x, complex_dtype(dtype))
    if output not in ("real", "r"):
        raise ValueError(f'output must be "real" or "complex", got {output!r}')
    return cast(x, dtype)


def _sort(sort: str | None) -> int:
    if sort not in SORTS:
        raise ValueError(f'sort must be None, "lhp", "rhp", "iuc" or "ouc", got {sort!r}')
    return SORTS.index(sort)


def schur(
    A: TensorLike, output: str = "real", sort: str | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Schur form ``A = Z @ T @ Z^H``, without a gradient.

    Args:
        A: array-like (..., n, n).
        output: of real matrices, "real": T is triangular but for blocks of 2 for conjugate pairs; "complex":
            T is triangular.
        sort: which eigenvalues come first: "lhp" those in the left half-plane, "rhp" in the right one, "iuc"
            inside or on the unit circle, "ouc" outside.

    Returns:
        T and Z (..., n, n).

    Examples:
        >>> [v.eval().shape for v in pt.linalg.schur(np.eye(2))]
        [(2, 2), (2, 2)]
    """
    t, z = Schur(_sort(sort))(_output(square(A, "schur"), output))
    return t, z


def rsf2csf(T: TensorLike, Z: TensorLike) -> tuple[TensorVariable, TensorVariable]:
    """Complex Schur form and vectors of a real one, which `schur` gives; without a gradient.

    It runs in Python, by ``scipy.linalg.rsf2csf``.

    Args:
        T, Z: array-like (..., n, n).

    Examples:
        >>> [v.eval().shape for v in pt.linalg.rsf2csf(np.eye(2), np.eye(2))]
        [(2, 2), (2, 2)]
    """
    t, z = RSF2CSF()(square(T, "rsf2csf"), square(Z, "rsf2csf"))
    return t, z


def hessenberg(a: TensorLike, calc_q: bool = False) -> Any:
    """Hessenberg form H of ``A = Q @ H @ Q^H``, which is 0 below the diagonal under the main one.

    It runs in Python, by ``scipy.linalg.hessenberg``, and has no gradient.

    Args:
        a: array-like (..., n, n).
        calc_q: whether Q is returned after H.

    Examples:
        >>> pt.linalg.hessenberg(np.eye(2)).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    h, q = Hessenberg()(square(a, "hessenberg"))
    return (h, q) if calc_q else h


def ldl(
    A: TensorLike, lower: bool = True, hermitian: bool = True
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Factors of ``A = L @ D @ L^H`` of Hermitian or symmetric matrices, which may be indefinite.

    It runs in Python, by ``scipy.linalg.ldl``, and has no gradient.

    Args:
        A: array-like (..., n, n), of which one triangle is read.
        lower: whether it is the lower one; otherwise the first factor is upper triangular.
        hermitian: whether A is Hermitian; otherwise ``A = L @ D @ L^T``.

    Returns:
        L with exchanged rows, D with blocks of 1 and 2 on its diagonal, and the int64 order of rows in which
        L is triangular.

    Examples:
        >>> [v.eval().tolist() for v in pt.linalg.ldl([[2.0, 0.0], [0.0, 3.0]])][1:]
        [[[2.0, 0.0], [0.0, 3.0]], [0, 1]]
    """
    factor, d, order = LDL(bool(lower), bool(hermitian))(square(A, "ldl"))
    return factor, d, order


def qz(
    A: TensorLike,
    B: TensorLike,
    output: str = "real",
    sort: str | None = None,
    return_eigenvalues: bool = False,
) -> tuple[TensorVariable, ...]:
    """Generalized Schur forms ``A = Q @ AA @ Z^H`` and ``B = Q @ BB @ Z^H``, without a gradient.

    It runs in Python, by ``scipy.linalg.ordqz``.

    Args:
        A, B: array-like (..., n, n).
        output, sort: as of `schur`, for the generalized eigenvalues.
        return_eigenvalues: whether to return their numerators and denominators.

    Returns:
        AA, BB, Q, Z; or AA, BB, alpha, beta, Q, Z.

    Examples:
        >>> len(pt.linalg.qz(np.eye(2), np.eye(2)))
        4
    """
    a, b = (_output(square(x, "qz"), output) for x in (A, B))
    aa, bb, alpha, beta, q, z = QZ(_sort(sort))(a, b)
    return (aa, bb, alpha, beta, q, z) if return_eigenvalues else (aa, bb, q, z)


def ordqz(
    A: TensorLike, B: TensorLike, sort: str | None = None, output: str = "real"
) -> tuple[TensorVariable, ...]:
    """AA, BB, alpha, beta, Q, Z of `qz`, in SciPy's order of arguments.

    Examples:
        >>> len(pt.linalg.ordqz(np.eye(2), np.eye(2), sort="lhp"))
        6
    """
    return qz(A, B, output, sort, return_eigenvalues=True)


def _real_if_principal(y: TensorVariable, x: TensorVariable) -> TensorVariable:
    """The real part for a real matrix; NaN where it has no real function value."""
    if is_complex(x):
        return y
    size = max_(abs_(y), axis=(-2, -1), keepdims=True) if 0 not in y.type.shape[-2:] else 1.0
    limit = 1e3 * float(_eps(y.type.dtype))
    wrong = any_(gt(abs_(imag(y)), limit * size), axis=(-2, -1), keepdims=True)
    return switch(wrong, float("nan"), real(y))


def _eps(dtype: str) -> Any:
    import numpy as np

    return np.finfo(dtype).eps


def sqrtm(A: TensorLike, output: str = "real") -> TensorVariable:
    """Principal square roots of matrices.

    Args:
        A: array-like (..., n, n).
        output: of real matrices, "real": a real matrix, NaN where the root is not real; or "complex".

    Examples:
        >>> pt.linalg.sqrtm(np.diag([4.0, 9.0])).real.round(6).eval()
        array([[2., 0.],
               [0., 3.]])
    """
    a = _output(square(A, "sqrtm"), output)
    return _real_if_principal(Sqrtm()(a), a)


def logm(A: TensorLike, output: str = "real") -> TensorVariable:
    """Principal logarithms of matrices without negative eigenvalues; arguments as `sqrtm`.

    Examples:
        >>> pt.linalg.logm(np.eye(2)).real.round(6).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    a = _output(square(A, "logm"), output)
    return _real_if_principal(Logm()(a), a)


def funm(A: TensorLike, func: Callable[[np.ndarray], object], output: str = "real") -> TensorVariable:
    """A function of matrices, which is given as a function of numbers.

    It runs in Python, by a Schur-Parlett method: eigenvalues may be close or equal, in blocks of any form.
    ``func`` has to be analytic at these, and is asked for its values around them, too. As far as it is
    analytic in circles that are not much smaller than the matrix, results are as near as rounding of ``A``
    lets them be, within a factor of some hundred. The gradient needs a function that is analytic. Of the
    exponential, logarithm and root there are `expm`, `logm` and `sqrtm`, which take less time.

    Args:
        A: array-like (..., n, n).
        func: a function of a NumPy array of complex numbers, such as ``numpy.exp``, element by element.
        output: of real matrices, "real": a real matrix, NaN where the value is not real; or "complex".

    Raises:
        TypeError: ``func`` cannot be called; when run, it returns a variable.

    References:
        P. I. Davies and N. J. Higham, A Schur-Parlett algorithm for computing matrix functions, 2003.

    Examples:
        >>> pt.linalg.funm(np.diag([1.0, 4.0]), np.sqrt).eval()
        array([[1., 0.],
               [0., 2.]])
    """
    if not callable(func):
        raise TypeError(
            f"funm needs a function of NumPy arrays, got {func!r:.60} of type {type(func).__name__}"
        )
    a = _output(square(A, "funm"), output)
    return _real_if_principal(Funm(func)(cast(a, complex_dtype(a.type.dtype))), a)


def _exponentials(A: TensorLike, what: str) -> tuple[TensorVariable, TensorVariable]:
    """exp(A) and exp(-A)."""
    a = square(A, what)
    a = cast(a, float_dtype(a.type.dtype))
    return expm(a), expm(-a)


def _turned_exponentials(A: TensorLike, what: str) -> tuple[TensorVariable, TensorVariable | None]:
    """exp(iA) and exp(-iA); the second is None for a real matrix, of which it is the conjugate."""
    a = square(A, what)
    a = cast(a, float_dtype(a.type.dtype))
    turned = 1j * cast(a, complex_dtype(a.type.dtype))
    return expm(turned), expm(-turned) if is_complex(a) else None


def cosm(A: TensorLike) -> TensorVariable:
    """Cosines of matrices.

    Examples:
        >>> pt.linalg.cosm(np.zeros((2, 2))).round(6).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    up, down = _turned_exponentials(A, "cosm")
    return real(up) if down is None else 0.5 * (up + down)


def sinm(A: TensorLike) -> TensorVariable:
    """Sines of matrices.

    Examples:
        >>> pt.linalg.sinm(np.zeros((2, 2))).round(6).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    up, down = _turned_exponentials(A, "sinm")
    return imag(up) if down is None else -0.5j * (up - down)


def tanm(A: TensorLike) -> TensorVariable:
    """Tangents of matrices.

    Examples:
        >>> pt.linalg.tanm(np.zeros((2, 2))).round(6).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    return solve(cosm(A), sinm(A), b_ndim=2)


def coshm(A: TensorLike) -> TensorVariable:
    """Hyperbolic cosines of matrices.

    Examples:
        >>> pt.linalg.coshm(np.zeros((2, 2))).round(6).eval()
        array([[1., 0.],
               [0., 1.]])
    """
    up, down = _exponentials(A, "coshm")
    return 0.5 * (up + down)


def sinhm(A: TensorLike) -> TensorVariable:
    """Hyperbolic sines of matrices.

    Examples:
        >>> pt.linalg.sinhm(np.zeros((2, 2))).round(6).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    up, down = _exponentials(A, "sinhm")
    return 0.5 * (up - down)


def tanhm(A: TensorLike) -> TensorVariable:
    """Hyperbolic tangents of matrices.

    Examples:
        >>> pt.linalg.tanhm(np.zeros((2, 2))).round(6).eval()
        array([[0., 0.],
               [0., 0.]])
    """
    up, down = _exponentials(A, "tanhm")
    return solve(up + down, up - down, b_ndim=2)


publish(globals())

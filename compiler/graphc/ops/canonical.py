# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schur and QZ forms, QR with exchanged columns, square root and logarithm of matrices.

``_PythonMatrices``: base of ops on batches of matrices that SciPy computes and that have no C function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.ops.counting import Gather
from graphc.ops.factors import Sylvester, _qr_pullback, _require_square_part
from graphc.ops.matrices import _FloatCores, _MatrixOp, complex_dtype, conj, transposed
from graphc.ops.matrix_functions import pullback_by_blocks, pushforward_by_blocks
from graphc.ops.shape import sizes_of
from graphc.ops.shaping import broadcast_to, expand_dims

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_dialects.signatures import Signature
    from graphc_runtime.thunk import Register


class _PythonMatrices(_FloatCores):
    """An op on batches of matrices that runs in Python, one after the other. A subclass defines ``compute``.

    Attributes:
        form: core dimensions in the notation of NumPy's gufuncs; results have no others than operands.
    """

    form: ClassVar[str]
    absent: ClassVar[dict[str, str]] = {
        "emit": "SciPy computes it in Python; there is no C function",
        "pushforward": "the gradient module transposes the pullback",
    }

    @property
    def signature(self) -> Signature:
        from graphc_dialects import signatures

        return signatures.Signature.parse(self.form)

    def compute(self, *cores: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """The results for one element of the batch."""
        raise NotImplementedError(f"{type(self).__name__} must define compute")

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        sizes, signature = self._check_sizes(inputs), self.signature
        batch = inputs[0].shape[: inputs[0].ndim - len(signature.operands[0])]
        for cell, core, output in zip(output_storage, signature.results, node.outputs, strict=True):
            cell[0] = np.zeros((*batch, *(sizes[dim] for dim in core)), output.type.dtype)
        if all(sizes.values()):
            for index in np.ndindex(*batch):
                found = self.compute(*(x[index] for x in inputs))
                parts = found if isinstance(found, tuple) else (found,)
                for cell, part in zip(output_storage, parts, strict=True):
                    cell[0][index] = part


SORTS = (None, "lhp", "rhp", "iuc", "ouc")


class QRPivoted(_MatrixOp):
    """Factors of ``a[:, order]``, and the order (int32): (m, n) and k to (m, k), (k, n), (n).

    Args:
        complete: k is m; otherwise it is min(m, n).
    """

    kernel = "qr_pivoted"
    complete: bool = False

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, dtype, "int32"]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, False], [False, False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, k), (q, r, order), (g_q, g_r, _) = inputs, outputs, cotangents
        _require_square_part(self, a, self.complete)
        # Each matrix of a batch has an order of its own.
        moved = _columns(a, order)
        g: Variable = conj(_qr_pullback(moved, k, q, r, g_q, g_r))
        return [_columns(g, order.argsort(axis=-1)), None]


def _columns(a: Variable, order: Variable) -> TensorVariable:
    """The columns of matrices in an order."""
    result: TensorVariable = Gather()(a, broadcast_to(expand_dims(order, -2), sizes_of(a)))
    return result


class Schur(_MatrixOp):
    """Schur form T and unitary Z of ``A = Z T Z^H``.

    Args:
        sort: number of the order of eigenvalues, in `SORTS`.
    """

    kernel = "schur"
    sort: int = 0
    absent: ClassVar[dict[str, str]] = {"pullback": "the order and the phases of the vectors jump"}

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(
            f"schur has no gradient: {self.absent['pullback']}; use eig, eigh, or a function of the matrix"
        )


class _Principal(_MatrixOp):
    """Base of functions of complex matrices."""

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = complex_dtype(given[0])
        return [dtype], [dtype]


class Sqrtm(_Principal):
    """Principal square root of a complex matrix."""

    kernel = "sqrtm"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        y = transposed(outputs[0])
        return [Sylvester()(y, y, only(cotangents))]  # dA = Y dY + dY Y

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [Sylvester()(outputs[0], outputs[0], only(tangents))]


class Logm(_Principal):
    """Principal logarithm of a complex matrix."""

    kernel = "logm"

    pullback, pushforward = pullback_by_blocks, pushforward_by_blocks


class QZ(_PythonMatrices):
    """Generalized Schur forms of two matrices, numerators and denominators of eigenvalues, and the vectors:
    ``A = Q AA Z^H``, ``B = Q BB Z^H``.

    Args:
        sort: number of the order of eigenvalues, in `SORTS`.
    """

    kernel = "qz"
    form = "(n,n),(n,n)->(n,n),(n,n),(n),(n),(n,n),(n,n)"
    sort: int = 0
    absent: ClassVar[dict[str, str]] = {
        **_PythonMatrices.absent,
        "pullback": "the order and the phases of the vectors jump",
    }

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, dtype, complex_dtype(dtype), dtype, dtype, dtype]

    def compute(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import ordqz

        # Where no eigenvalue is chosen nothing is moved.
        sort = SORTS[self.sort] or (lambda alpha, beta: np.zeros(len(alpha), bool))
        output = "complex" if a.dtype.kind == "c" else "real"
        return ordqz(a, b, sort=sort, output=output, check_finite=False)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(f"qz has no gradient: {self.absent['pullback']}")


class _WithoutGradient(_PythonMatrices):
    """Base of forms of a matrix by reflections or exchanges, which have no gradient."""

    absent: ClassVar[dict[str, str]] = {
        **_PythonMatrices.absent,
        "pullback": "signs, phases and exchanges of the form jump",
    }

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(f"{self.kernel} has no gradient: {self.absent['pullback']}")


class Hessenberg(_WithoutGradient):
    """Hessenberg form H and unitary Q of ``A = Q H Q^H``."""

    kernel = "hessenberg"
    form = "(n,n)->(n,n),(n,n)"

    def compute(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        from scipy.linalg import hessenberg

        return tuple(hessenberg(a, calc_q=True, check_finite=False))


class RSF2CSF(_WithoutGradient):
    """Complex Schur form and vectors of a real one."""

    kernel = "rsf2csf"
    form = "(n,n),(n,n)->(n,n),(n,n)"

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [complex_dtype(dtype)] * 2

    def compute(self, t: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, ...]:
        from scipy.linalg import rsf2csf

        return tuple(rsf2csf(t, z, check_finite=False))


class Funm(_PythonMatrices):
    """A function of complex matrices, by its values at complex numbers: Taylor series of matrices whose
    eigenvalues are close, recurrences between groups that are not; see `_of_triangle`.

    Args:
        func: a function of NumPy arrays of complex numbers, element by element.
    """

    kernel = "funm"
    form = "(n,n)->(n,n)"
    func: Callable[[np.ndarray], object]
    calls_user_code = True

    def compute(self, a: np.ndarray) -> np.ndarray:
        from scipy.linalg import schur

        t, z = schur(a.astype("complex128"), output="complex")
        return np.asarray(z @ _of_triangle(self._values, t) @ z.conj().T)

    def _values(self, x: np.ndarray) -> np.ndarray:
        found = self.func(x)
        if isinstance(found, Variable):
            raise TypeError(
                f"funm needs a function of NumPy arrays, such as numpy.exp, but {self.func!r:.60} gave "
                f"the variable {found}"
            )
        return np.asarray(found)

    pullback = pullback_by_blocks


_Function = Callable[[np.ndarray], np.ndarray]
# Radii of circles, each half an octave smaller, points of each, and terms of the series.
_RADII, _POINTS, _TERMS = 64, 64, 48
_EPS = float(np.finfo("float64").eps)


def _of_triangle(func: _Function, t: np.ndarray) -> np.ndarray:
    """A function of an upper triangular matrix: its series, or recurrences, whichever loses less.

    Recurrences (B. N. Parlett, 1976) divide by differences of eigenvalues. So eigenvalues form groups as far
    apart as can be (P. I. Davies, N. J. Higham, A Schur-Parlett algorithm for computing matrix functions,
    2003), and groups are divided only where the estimate of the error of their series is larger than that of
    the recurrences. It is where the function is not analytic near to the group.
    """
    if len(t) == 1:
        return func(t[0]).reshape(1, 1)
    eigenvalues = np.diag(t)
    series, error = _of_group(func, t)
    values = func(eigenvalues)
    error = max(error, float(np.abs(np.diag(series) - values).max()))
    size = max(float(np.abs(values).max()), float(np.abs(series).max()))
    gap = _widest_gap(eigenvalues)
    divided = size * float(np.abs(np.triu(t, 1)).max()) / gap if gap else np.inf
    if error <= _EPS * max(4 * size, divided) and error <= 1e-3 * size:
        return series
    groups = _groups(eigenvalues, gap / 2) if gap else np.arange(len(t))
    t, q, groups = _in_order(t, groups)
    return np.asarray(q @ _of_groups(func, t, groups) @ q.conj().T)


def _of_group(func: _Function, t: np.ndarray) -> tuple[np.ndarray, float]:
    """The Taylor series of a function around the mean of eigenvalues, and an estimate of its error.

    Its coefficients come from values on a circle (J. N. Lyness, C. B. Moler, Numerical differentiation of
    analytic functions, 1967). Of many circles that one is taken that has the smallest error: values on large
    ones may be large, and what is rounded on small ones is divided by powers of the radius. The last quarter
    of the coefficients, which are 0 of an analytic function, tells how far others are off.
    """
    unit = np.eye(len(t))
    center = np.trace(t) / len(t)
    shifted = t - center * unit
    largest = 8 * max(1.0, abs(center), float(np.abs(np.diag(shifted)).max()))
    radii = largest * 0.5 ** (np.arange(_RADII) / 2)
    circle = np.exp(2j * np.pi * np.arange(_POINTS) / _POINTS)
    with np.errstate(all="ignore"):
        values = func((center + radii[:, None] * circle).ravel()).reshape(_RADII, _POINTS)
        coefficients = np.fft.fft(values, axis=1) / _POINTS
        tails = np.abs(coefficients[:, _TERMS:]).max(axis=1)
        powers, sizes = unit, [1.0]
        for _ in range(_TERMS):
            powers = powers @ shifted
            sizes.append(float(np.abs(powers).max()))
        growth = (np.array(sizes) / radii[:, None] ** np.arange(_TERMS + 1)).sum(axis=1)
        errors = np.maximum(tails, _EPS * np.abs(values).max(axis=1)) * growth
        errors = np.where(np.isfinite(errors), errors, np.inf)
        best = int(np.argmin(errors))
        total = np.zeros_like(t)
        for coefficient in coefficients[best, _TERMS - 1 :: -1]:
            total = total @ (shifted / radii[best]) + coefficient * unit
    return total, float(errors[best])


def _widest_gap(values: np.ndarray) -> float:
    """The longest edge of a minimum spanning tree."""
    gap, away = 0.0, np.abs(values - values[0])
    left = np.arange(len(values)) > 0
    while left.any():
        nearest = int(np.argmin(np.where(left, away, np.inf)))
        gap = max(gap, float(away[nearest]))
        left[nearest] = False
        away = np.minimum(away, np.abs(values - values[nearest]))
    return gap


def _groups(values: np.ndarray, close: float) -> np.ndarray:
    """A number for each value; those have one that are close, or close to what is close."""
    near = np.abs(values[:, None] - values) <= close
    numbers = np.arange(len(values))
    while True:
        lowest = np.where(near, numbers, len(values)).min(axis=1)
        if (lowest == numbers).all():
            return numbers
        numbers = lowest


def _in_order(t: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The triangle with groups beside one another, the unitary matrix that makes it, and their numbers."""
    from scipy.linalg.lapack import ztrexc

    q, names = np.eye(len(t), dtype=t.dtype), [int(g) for g in groups]
    places = {g: float(np.mean(np.flatnonzero(groups == g))) for g in names}
    for at in range(len(names)):
        first = min(range(at, len(names)), key=lambda i: (places[names[i]], names[i], i))
        if first != at:
            t, q, _ = ztrexc(t, q, first + 1, at + 1)
            names.insert(at, names.pop(first))
    return np.triu(t), q, np.array(names)


def _of_groups(func: _Function, t: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Of a triangle of blocks: off the diagonal what commutes with the triangle."""
    from scipy.linalg.lapack import ztrsyl

    edges = [0, *(np.flatnonzero(np.diff(groups)) + 1), len(t)]
    parts = [slice(low, high) for low, high in pairwise(edges)]
    f = np.zeros_like(t)
    for j, column in enumerate(parts):
        f[column, column] = _of_triangle(func, t[column, column])
        for row in parts[:j][::-1]:
            between = slice(row.stop, column.start)
            right = f[row, row] @ t[row, column] - t[row, column] @ f[column, column]
            right += f[row, between] @ t[between, column] - t[row, between] @ f[between, column]
            x, scale, _ = ztrsyl(t[row, row], t[column, column], right, isgn=-1)
            f[row, column] = x / scale
    return f


class LDL(_WithoutGradient):
    """Factors of a symmetric or Hermitian matrix, with blocks of 1 and 2 in D, and the permutation.

    Args:
        lower: whether the lower triangle is read.
        hermitian: whether the matrix is Hermitian; otherwise symmetric.
    """

    kernel = "ldl"
    form = "(n,n)->(n,n),(n,n),(n)"
    lower: bool = True
    hermitian: bool = True

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [dtype, dtype, "int64"]

    def compute(self, a: np.ndarray) -> tuple[np.ndarray, ...]:
        from scipy.linalg import ldl

        return tuple(ldl(a, self.lower, self.hermitian, check_finite=False))

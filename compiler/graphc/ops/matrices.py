# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``_MatrixOp``, the base of linear algebra, and what its gradients are written with.

Rules of ops transpose without conjugation. Functions of a matrix that conjugate nothing (solve, inv, det, lu,
expm) transpose as they are; for the others a cotangent is conjugated first, so that the formulas of the
literature, for the inner product Re(tr(G^H dA)), apply; what they give is conjugated at the end.

Factors of banded and tridiagonal matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.undefined import grad_not_implemented
from graphc.ops.create import eye as eye_
from graphc.ops.create import tril, triu
from graphc.ops.elementwise import is_complex
from graphc.ops.kernel import KernelOp
from graphc.ops.linalg import Matmul
from graphc.ops.math import conj as conj_
from graphc.ops.math import real as real_
from graphc.ops.shaping import expand_dims, shape_padright, swapaxes
from graphc.ops.sizes import size_of

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


class _MatrixOp(KernelOp):
    """Base of ops whose operands have one dtype, of floats or complex numbers."""

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(*given)
        return [dtype] * len(given), self.result_dtypes(dtype)

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        """Dtypes of the results, from that of the operands."""
        return [dtype] * len(self.signature.results)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        count = len(self.signature.operands)
        return [[i < count] * len(node.outputs) for i in range(len(node.inputs))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return NotImplemented


def float_dtype(*given: str) -> str:
    """The dtype that LAPACK computes in for operands of these: float32 or 64, complex64 or 128."""
    dtype = np.result_type(*(np.result_type(d, "float64") if np.dtype(d).kind in "biu" else d for d in given))
    return "float32" if dtype == np.float16 else dtype.name


def real_dtype(dtype: str) -> str:
    """Dtype of the real part."""
    return np.empty(0, dtype).real.dtype.name


def complex_dtype(dtype: str) -> str:
    """Dtype of complex numbers with parts of this precision."""
    return np.result_type(dtype, "complex64").name


def mm(a: Variable, b: Variable) -> TensorVariable:
    """Matrix product of equal batches."""
    return Matmul()(a, b)


def transposed(x: Variable) -> TensorVariable:
    """x with its last two axes exchanged."""
    return swapaxes(x, -1, -2)


def conj(x: Any) -> TensorVariable:
    """Conjugate; real variables as they are."""
    return conj_(x) if is_complex(x) else x


def adjoint(x: Variable) -> TensorVariable:
    """Conjugate transpose."""
    return conj(transposed(x))


def real(x: TensorVariable) -> TensorVariable:
    """Real part; real variables as they are."""
    return real_(x) if is_complex(x) else x


def eye_like(x: Variable, axis: int = -1, dtype: str | None = None) -> TensorVariable:
    """An identity matrix of the size of an axis of x."""
    return eye_(size_of(x, x.type.ndim + axis if axis < 0 else axis), dtype=dtype or x.type.dtype)


def on_diagonal(v: Variable) -> TensorVariable:
    """Matrices with the given diagonals, (..., n) to (..., n, n)."""
    return shape_padright(v) * eye_like(v)


def diagonal(x: Variable) -> TensorVariable:
    """Diagonals of matrices."""
    return as_tensor_variable(x).diagonal(axis1=-2, axis2=-1)


def in_triangle(m: Variable, lower: bool, hermitian: bool = True) -> Variable:
    """Cotangent of the triangle that was read, from that of the whole matrix.

    Args:
        m: cotangent of the Hermitian (or symmetric) matrix.
        lower: whether the lower triangle was read.
        hermitian: whether the other triangle is the conjugate.
    """
    other = adjoint(m) if hermitian else transposed(m)
    half = tril(m + other, -1) if lower else triu(m + other, 1)
    on = diagonal(m)
    return half + on_diagonal(real(on) if hermitian else on)


def add(terms: Sequence[Variable | None]) -> Variable:
    """Sum of the terms that are not None, of which there is one at least."""
    result: Variable | None = None
    for term in terms:
        if term is not None:
            result = term if result is None else result + term
    assert result is not None
    return result


def differences(x: Variable) -> Variable:
    """1 / (x_j - x_i), and 0 on the diagonal."""
    eye = eye_like(x)
    spread = expand_dims(x, -2) - expand_dims(x, -1)
    return (1 - eye) / (spread + eye)


class CholeskyBanded(_MatrixOp):
    """Bands of the Cholesky factor, from bands of one half of a positive definite matrix.

    Args:
        lower: whether they are those below the diagonal.
    """

    kernel = "cholesky_banded"
    __props__ = ("lower",)

    def __init__(self, lower: bool = False) -> None:
        self.lower = lower

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (c,), (g,) = outputs, cotangents
        if g is None:
            return [None]
        if is_complex(c):
            raise UndefinedGradientError("cholesky_banded has a gradient for real matrices only")
        return [CholeskyBandedPullback(self.lower)(c, g)]


class CholeskyBandedPullback(_MatrixOp):
    """Cotangent of the bands from the factor's bands and their cotangent.

    Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    """

    kernel = "cholesky_banded_pullback"
    __props__ = ("lower",)
    absent: ClassVar[dict[str, str]] = {"pullback": "it is a derivative already, and the kernel has none"}

    def __init__(self, lower: bool = False) -> None:
        self.lower = lower

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError("cholesky_banded has no second derivative; use cholesky")


class TridiagonalFactor(_MatrixOp):
    """LU factors of a tridiagonal matrix from its diagonals (below, main, above) and max(n - 2, 0): those of
    L, of U with two more diagonals above, and the rows exchanged, as LAPACK's gttrf leaves them.
    """

    kernel = "tridiagonal_factor"
    absent: ClassVar[dict[str, str]] = {"pullback": "systems have one: solve(..., assume_a='tridiagonal')"}

    def result_dtypes(self, dtype: str) -> Sequence[str]:
        return [*[dtype] * 4, "int32"]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        raise UndefinedGradientError(
            'tridiagonal_lu_factor has no gradient; use solve(a, b, assume_a="tridiagonal")'
        )


class TridiagonalSolve(_MatrixOp):
    """Solution of a system by what `TridiagonalFactor` gave.

    Args:
        transposed: solve with the transpose.
    """

    kernel = "tridiagonal_solve"
    __props__ = ("transposed",)

    def __init__(self, transposed: bool = False) -> None:
        self.transposed = transposed

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        dtype = float_dtype(*given[:4], given[5])
        return [*[dtype] * 4, "int32", dtype], [dtype]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i != 4] for i in range(6)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        *factors, _ = inputs
        (g,) = cotangents
        if g is None:
            return [None] * 6
        why = 'use solve(a, b, assume_a="tridiagonal")'
        undefined: list[Variable] = [grad_not_implemented(self, i, x, why) for i, x in enumerate(factors[:4])]
        return [*undefined, None, TridiagonalSolve(not self.transposed)(*factors, g)]

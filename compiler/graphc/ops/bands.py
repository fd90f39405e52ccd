# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of banded and tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphc.errors import UndefinedGradientError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.undefined import grad_not_implemented
from graphc.ops.matrices import _MatrixOp, float_dtype, is_complex


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

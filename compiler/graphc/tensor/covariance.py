# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moments of several variables: covariances and correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.elementwise import cast_to
from graphc.ops.join import concatenate
from graphc.ops.math import cast, clip, conj, imag, maximum, real, sqrt
from graphc.ops.math import complex as complex_
from graphc.ops.shaping import expand_dims, reshape
from graphc.ops.sizes import known_size, size_of
from graphc.tensor.products import dot
from graphc.tensor.rearranging import diagonal
from graphc.tensor.reductions import mean

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["corrcoef", "cov"]


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
) -> TensorVariable:
    """Covariance matrix of variables.

    Args:
        m: vector, or matrix with a variable in each row.
        y: more variables, of the same form.
        rowvar: whether variables are rows; else they are columns.
        bias: divide by the number of observations instead of one less.
        ddof: the number that is subtracted from that of observations; overrides ``bias``.

    Examples:
        >>> pt.cov([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).eval()
        array([[ 1., -2.],
               [-2.,  4.]])
    """
    rows = _variables(m, rowvar)
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar)], axis=0)
    deviation = rows - mean(rows, axis=1, keepdims=True)
    less = (0 if bias else 1) if ddof is None else ddof
    count = cast(maximum(size_of(rows, 1) - less, 0), "float64")
    result = dot(deviation, conj(deviation).T) / count
    scalar = known_size(size_of(rows, 0)) == 1
    return result[0, 0] if scalar else result


def _variables(m: TensorLike, rowvar: bool) -> TensorVariable:
    x = as_tensor_variable(m)
    if x.type.ndim > 2:
        raise ValueError(f"cov takes a vector or a matrix, got {x} of type {x.type}")
    x = cast_to(x, "complex128" if x.type.kind == "c" else "float64")
    if x.type.ndim < 2:
        return reshape(x, [1, -1])
    return x if rowvar else x.T


def corrcoef(x: TensorLike, y: TensorLike | None = None, rowvar: bool = True) -> TensorVariable:
    """Correlation coefficients of variables; arguments as `cov`.

    Examples:
        >>> pt.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).eval().round(6)
        array([[ 1., -1.],
               [-1.,  1.]])
    """
    c = cov(x, y, rowvar)
    if c.type.ndim == 0:
        return c / c
    deviation = sqrt(diagonal(real(c)))
    c = c / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    if c.type.kind == "c":
        return complex_(clip(real(c), -1, 1), clip(imag(c), -1, 1))
    return clip(c, -1, 1)

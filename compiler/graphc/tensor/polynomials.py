# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Polynomials as NumPy's classic functions have them: vectors of coefficients, highest power first.

float32 stays float32, where some of NumPy's functions give float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.checks import as_count
from graphc.ops.create import arange, ones, zeros_like
from graphc.ops.create import zeros as zeros_
from graphc.ops.elementwise import cast_to
from graphc.ops.join import concatenate, stack
from graphc.ops.math import cast, maximum, sqrt
from graphc.ops.math import pow as pow_
from graphc.ops.matrices import float_dtype, real_dtype
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import atleast_1d, expand_dims, specify_shape
from graphc.ops.table.arithmetic import promote
from graphc.tensor.accumulating import convolve
from graphc.tensor.linalg.checks import largest_of
from graphc.tensor.linalg.decompositions import eigvals
from graphc.tensor.linalg.functions import lstsq
from graphc.tensor.linalg.structured import companion

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _coefficients(p: Any, what: str) -> TensorVariable:
    return atleast_1d(operand(p, f"{what} takes a vector of coefficients", 0, 1))


def vander(x: TensorLike, N: TensorLike | None = None, increasing: bool = False) -> TensorVariable:
    """Powers of the elements of a vector as columns, highest first (or last).

    Args:
        x: vector.
        N: how many; by default as many as x has elements.
        increasing: whether the first column has the power 0.

    Examples:
        >>> pt.vander([1, 2, 3], 2).eval()
        array([[1, 1],
               [2, 1],
               [3, 1]])
    """
    x = operand(x, "vander takes a vector", 1, 1)
    x = cast_to(x, promote(x.type.numpy_dtype, np.dtype("int64")).name)
    count = size_of(x, 0) if N is None else as_count(N, "vander")
    exponents = cast(arange(count), x.type.dtype)
    return pow_(expand_dims(x, 1), exponents if increasing else exponents[::-1])


def polyval(p: TensorLike, x: TensorLike) -> TensorVariable:
    """The polynomial at each element of x, by Horner's rule where the degree is known.

    Examples:
        >>> pt.polyval([1, 2, 3], 2).eval()
        array(11)
    """
    p, x = _coefficients(p, "polyval"), as_tensor_variable(x)
    degree = p.type.shape[0]
    if degree is None:
        lifted = expand_dims(x, -1)
        exponents = cast(arange(size_of(p, 0))[::-1], x.type.dtype)
        return sum_(p * pow_(lifted, exponents), axis=-1)
    result: TensorVariable = zeros_like(x)
    for i in range(degree):
        result = result * x + p[i]
    return result


def _sum(a: TensorVariable, b: TensorVariable, what: str, sign: int) -> TensorVariable:
    a, b = _coefficients(a, what), _coefficients(b, what)
    b = b if sign > 0 else -b
    size = maximum(size_of(a, 0), size_of(b, 0))
    a, b = (concatenate([zeros_((size - size_of(v, 0),), dtype=v.type.dtype), v]) for v in (a, b))
    return a + b


def polyadd(a1: Any, a2: Any) -> TensorVariable:
    """Sum of polynomials.

    Examples:
        >>> pt.polyadd([1, 2], [3]).eval()
        array([1, 5])
    """
    return _sum(a1, a2, "polyadd", 1)


def polysub(a1: Any, a2: Any) -> TensorVariable:
    """Difference of polynomials.

    Examples:
        >>> pt.polysub([1, 2], [3]).eval()
        array([ 1, -1])
    """
    return _sum(a1, a2, "polysub", -1)


def polymul(a1: TensorLike, a2: TensorLike) -> TensorVariable:
    """Product of polynomials.

    Examples:
        >>> pt.polymul([1, 1], [1, -1]).eval()
        array([ 1,  0, -1])
    """
    return convolve(_coefficients(a1, "polymul"), _coefficients(a2, "polymul"), "full")


def polyder(p: Any, m: int = 1) -> TensorVariable:
    """The m-th derivative.

    Examples:
        >>> pt.polyder([1, 2, 3]).eval()
        array([2, 2])
    """
    p = _coefficients(p, "polyder")
    if m < 0:
        raise ValueError(f"the order of a derivative must be at least 0, got {m}")
    for _ in range(m):
        n = size_of(p, 0)
        p = p[:-1] * cast(arange(n - 1, 0, -1), p.type.dtype)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> TensorVariable:
    """The m-th antiderivative; ``k`` are the constants of integration, by default 0.

    Examples:
        >>> pt.polyint([2.0, 2.0]).eval()
        array([1., 2., 0.])
    """
    p = _coefficients(p, "polyint")
    if m < 0:
        raise ValueError(f"the order of an antiderivative must be at least 0, got {m}")
    constants = [0.0] * m if k is None else [k] * m if np.ndim(k) == 0 else list(k)
    if len(constants) != m:
        raise ValueError(f"polyint needs {m} constants of integration, got {len(constants)}")
    for each in constants:
        p = p / arange(size_of(p, 0), 0, -1)
        p = concatenate([p, stack([cast(as_tensor_variable(each), p.type.dtype)])])
    return p


def poly(seq_of_zeros: TensorLike) -> TensorVariable:
    """The polynomial with these zeros, whose number must be known; of a square matrix the characteristic one.

    Raises:
        ValueError: the number is not known before the graph runs.

    Examples:
        >>> pt.poly([1.0, 2.0]).eval()
        array([ 1., -3.,  2.])
    """
    zeros = atleast_1d(as_tensor_variable(seq_of_zeros))
    if zeros.type.ndim == 2:
        zeros = eigvals(zeros)
    if zeros.type.ndim != 1 or zeros.type.shape[0] is None:
        raise ValueError(f"poly takes zeros of a known number, got {zeros} of type {zeros.type}")
    dtype = float_dtype(zeros.type.dtype)
    result: TensorVariable = ones((1,), dtype=dtype)
    for i in range(zeros.type.shape[0]):
        nothing = zeros_((1,), dtype=dtype)
        scaled = concatenate([nothing, result * cast(zeros[i], dtype)])
        result = concatenate([result, nothing]) - scaled
    return result


def roots(p: TensorLike) -> TensorVariable:
    """The complex zeros of a polynomial whose first coefficient is not 0: eigenvalues of its companion.

    Zeros at 0 are among them for each last coefficient that is 0. (NumPy drops leading zeros, so that the
    number of results depends on values.)

    Examples:
        >>> sorted(pt.roots([1.0, -3.0, 2.0]).eval().real.round(6).tolist())
        [1.0, 2.0]
    """
    p = _coefficients(p, "roots")
    p = cast(p, float_dtype(p.type.dtype))
    return eigvals(companion(p))


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, w: Any = None) -> TensorVariable:
    """Coefficients of the polynomial of a degree with the least squared distance from points.

    Args:
        x: vector (m).
        y: values (m), or (m, k) for several fits.
        deg: the degree.
        rcond: as of `linalg.lstsq`; by default the precision times m.
        w: weights (m) of the distances.

    Examples:
        >>> pt.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(6).eval()
        array([2., 1.])
    """
    takes = "polyfit takes a vector and a vector or matrix"
    x, y = operand(x, takes, 1, 1), operand(y, takes, 1, 2)
    dtype = float_dtype(x.type.dtype, y.type.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    if int(deg) < 0:
        raise ValueError(f"polyfit: deg must be at least 0, got {deg}")
    # Powers of what is at most 1 do not overflow.
    top = largest_of(x)
    left: Any = vander(x / top, int(deg) + 1)
    if w is not None:
        weights = specify_shape(cast(as_tensor_variable(w), dtype), [size_of(x, 0)])
        left = left * expand_dims(weights, 1)
        y = y * (expand_dims(weights, 1) if y.type.ndim == 2 else weights)
    if rcond is None:
        rcond = cast(size_of(x, 0), real_dtype(dtype)) * float(np.finfo(dtype).eps)
    # Columns of equal length make the system better conditioned.
    scale = sqrt(sum_(left * left, axis=0))
    found = lstsq(left / scale, y, rcond)[0]
    scale = scale * vander(expand_dims(top, 0), int(deg) + 1)[0]
    return found / (expand_dims(scale, 1) if y.type.ndim == 2 else scale)


publish(globals())

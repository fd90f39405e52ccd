# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Questions about whole arrays, and about the kind of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.ifelse import ifelse
from graphc.ops.join import stack
from graphc.ops.math import eq, gt, imag, isinf, isnan, lt, ne
from graphc.ops.reduce import all as all_
from graphc.ops.shape import sizes_of
from graphc.tensor.dims import atleast_Nd

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "array_equal",
    "array_equiv",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
]


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> TensorVariable:
    """True if shapes and elements agree; arrays of other shapes are not compared.

    Examples:
        >>> pt.array_equal([1, 2], [1, 2]).eval()
        array(True)
    """
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    if a.type.ndim != b.type.ndim:
        return as_tensor_variable(False)
    pairs = zip(a.type.shape, b.type.shape, strict=True)
    if any(m is not None and n is not None and m != n for m, n in pairs):
        return as_tensor_variable(False)
    same = eq(a, b)
    if equal_nan:
        same = same | (isnan(a) & isnan(b))
    if a.type.ndim == 0:
        return same
    equal = [eq(m, n) for m, n in zip(sizes_of(a), sizes_of(b), strict=True)]
    return ifelse(all_(stack(equal)), all_(same), as_tensor_variable(False))


def array_equiv(a1: TensorLike, a2: TensorLike) -> TensorVariable:
    """True if elements agree after broadcasting, of sizes that are known to be 1.

    Examples:
        >>> pt.array_equiv([1, 2], [[1, 2], [1, 2]]).eval()
        array(True)
    """
    a, b = as_tensor_variable(a1), as_tensor_variable(a2)
    rank = max(a.type.ndim, b.type.ndim)
    pairs = zip(atleast_Nd(a, n=rank).type.shape, atleast_Nd(b, n=rank).type.shape, strict=True)
    if any(m is not None and n is not None and m != n and 1 not in (m, n) for m, n in pairs):
        return as_tensor_variable(False)
    return all_(eq(a, b))


def real_operand(x: TensorLike, name: str) -> TensorVariable:
    """x as a variable.

    Raises:
        TypeError: it is complex, and those have no order.
    """
    x = as_tensor_variable(x)
    if x.type.kind == "c":
        raise TypeError(f"{name} is not defined for complex numbers, got {x} of type {x.type}")
    return x


def isposinf(x: TensorLike) -> TensorVariable:
    """True where x, which is real, is positive infinity.

    Examples:
        >>> pt.isposinf([-np.inf, np.inf]).eval()
        array([False,  True])
    """
    x = real_operand(x, "isposinf")
    return isinf(x) & gt(x, 0)


def isneginf(x: TensorLike) -> TensorVariable:
    """True where x, which is real, is negative infinity.

    Examples:
        >>> pt.isneginf([-np.inf, np.inf]).eval()
        array([ True, False])
    """
    x = real_operand(x, "isneginf")
    return isinf(x) & lt(x, 0)


def iscomplex(x: TensorLike) -> TensorVariable:
    """True where the imaginary part is not 0.

    Examples:
        >>> pt.iscomplex([1.0 + 0j, 1j]).eval()
        array([False,  True])
    """
    return ne(imag(x), 0)


def isreal(x: TensorLike) -> TensorVariable:
    """True where the imaginary part is 0.

    Examples:
        >>> pt.isreal([1.0 + 0j, 1j]).eval()
        array([ True, False])
    """
    return eq(imag(x), 0)

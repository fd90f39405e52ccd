# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the arguments of functions of matrices, and their scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.gradient import zero_grad
from graphc.graph.basic import describe
from graphc.graph.tensor.convert import constant, operand
from graphc.ops.math import abs as abs_
from graphc.ops.math import gt, minimum, switch
from graphc.ops.reduce import max as max_
from graphc.ops.shape import size_of

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def matrix(x: TensorLike, what: str) -> TensorVariable:
    """x as a variable of at least two dimensions.

    Raises:
        ValueError: it has fewer.
    """
    return operand(x, f"{what} takes matrices, arrays of at least two dimensions", 2)


def square(x: TensorLike, what: str) -> TensorVariable:
    """`matrix`, of as many rows as columns where both are known.

    Raises:
        ValueError: the numbers differ.
    """
    x = matrix(x, what)
    m, n = x.type.shape[-2:]
    if m is not None and n is not None and m != n:
        raise ValueError(
            f"{what} takes square matrices; the last two dimensions of {x}{describe(x.location)} are {m} and "
            f"{n}"
        )
    return x


def raises(on_error: str) -> bool:
    """True if a matrix without a factor is an error; else results are NaN."""
    if on_error not in ("raise", "nan"):
        raise ValueError(f'on_error must be "raise" or "nan", got {on_error!r}')
    return on_error == "raise"


def smaller_size(x: Variable) -> TensorVariable:
    """The smaller of the last two sizes, a 0-d int64."""
    m, n = x.type.shape[-2:]
    rank = x.type.ndim
    if m is not None and n is not None:
        return constant(min(m, n), dtype="int64")
    return minimum(size_of(x, rank - 2), size_of(x, rank - 1))


def largest_of(x: TensorVariable) -> TensorVariable:
    """The largest magnitude in an array, without slopes; 1 of zeros and of nothing."""
    top = zero_grad(max_(abs_(x), initial=0))
    return switch(gt(top, 0), top, 1)

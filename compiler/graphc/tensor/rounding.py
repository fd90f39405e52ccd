# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding of numbers."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import cast, round_half_away, trunc
from graphc.ops.math import round as round_
from graphc.ops.math import round_half_to_even as round_half_to_even_
from graphc.tensor.logic import real_operand

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "around",
    "fix",
    "iround",
    "round_half_away_from_zero",
    "round_half_to_even",
]


def fix(x: TensorLike) -> TensorVariable:
    """Rounded towards 0; integers stay as they are.

    Examples:
        >>> pt.fix([-1.7, 1.7]).eval()
        array([-1.,  1.])
    """
    x = real_operand(x, "fix")
    return trunc(x) if x.type.kind == "f" else x


def around(a: TensorLike, decimals: int = 0) -> TensorVariable:
    """Numbers rounded to so many decimals, halves to even, as ``numpy.round``; integers only to fewer.

    Examples:
        >>> pt.around([1.25, 2.75], 1).eval()
        array([1.2, 2.8])
    """
    x = as_tensor_variable(a)
    if x.type.kind not in "fc" and decimals >= 0:
        return x
    if decimals == 0:
        return round_half_to_even_(x)
    scale = 10.0 ** builtins.abs(int(decimals))
    rounded = round_half_to_even_(x * scale if decimals > 0 else x / scale)
    return cast(rounded / scale if decimals > 0 else rounded * scale, x.type.dtype)


def iround(a: TensorLike, mode: str | None = None) -> TensorVariable:
    """Nearest integers as int64; ``mode`` as of `round`.

    Examples:
        >>> pt.iround([1.4, 1.6]).eval()
        array([1, 2])
    """
    return cast(round_(a, mode=mode), "int64")


def round_half_to_even(x: TensorLike) -> TensorVariable:
    """Nearest integers in the dtype of x, halves to even ones.

    Examples:
        >>> pt.round_half_to_even([0.5, 1.5, 2.5]).eval()
        array([0., 2., 2.])
    """
    return round_half_to_even_(x)


def round_half_away_from_zero(x: TensorLike) -> TensorVariable:
    """Nearest integers in the dtype of x, halves away from zero.

    Examples:
        >>> pt.round_half_away_from_zero([0.5, 1.5, 2.5]).eval()
        array([1., 2., 3.])
    """
    return round_half_away(x)

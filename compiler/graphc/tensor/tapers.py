# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows for filters and spectra, as NumPy has them: symmetric vectors of float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.create import arange
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, cos, i0, maximum, sqr, sqrt
from graphc.ops.sizes import as_size

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _positions(M: TensorLike, what: str) -> TensorVariable:
    """M numbers from -1 to 1; 0 for M = 1."""
    size = as_size(M, what)
    steps = cast(maximum(size - 1, 1), "float64")
    return cast(arange(1 - size, size, 2), "float64") / steps


def bartlett(M: TensorLike) -> TensorVariable:
    """A triangle over M points that is 0 at both ends.

    Examples:
        >>> pt.bartlett(5).eval()
        array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return 1 - abs_(_positions(M, "bartlett"))


def hanning(M: TensorLike) -> TensorVariable:
    """A raised cosine over M points that is 0 at both ends.

    Examples:
        >>> pt.hanning(3).eval()
        array([0., 1., 0.])
    """
    return 0.5 + 0.5 * cos(np.pi * _positions(M, "hanning"))


def hamming(M: TensorLike) -> TensorVariable:
    """A raised cosine over M points with 0.08 at both ends.

    Examples:
        >>> pt.hamming(3).eval()
        array([0.08, 1.  , 0.08])
    """
    return 0.54 + 0.46 * cos(np.pi * _positions(M, "hamming"))


def blackman(M: TensorLike) -> TensorVariable:
    """Two cosines over M points.

    Examples:
        >>> pt.blackman(3).round(6).eval()
        array([-0.,  1., -0.])
    """
    x = _positions(M, "blackman")
    return 0.42 + 0.5 * cos(np.pi * x) + 0.08 * cos(2 * np.pi * x)


def kaiser(M: TensorLike, beta: TensorLike) -> TensorVariable:
    """Kaiser's window of shape ``beta`` over M points, by Bessel functions.

    Examples:
        >>> pt.kaiser(3, 0.0).eval()
        array([1., 1., 1.])
    """
    x = _positions(M, "kaiser")
    beta = cast(as_tensor_variable(beta), "float64")
    return i0(beta * sqrt(1 - sqr(x))) / i0(beta)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of derivatives against NumPy, which has none: by steps into the complex plane.

`imag(f(x + i*h*d)) / h` is the derivative of an analytic f along d without cancellation, so that h can be
1e-100 and the result is exact to rounding (W. Squire and G. Trapp, SIAM Review 40, 1998). Its product with a
random d is compared with that of the derivatives, which shows any error but with probability zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case

STEP = 1e-100
TOLERANCE = 1e-9


def check(case: Case, m: Any, arguments: list[Any], found: list[Any]) -> None:
    """Compare what a library returns for a differentiated case.

    Args:
        case: the case.
        m: NumPy's namespace.
        arguments: what the case was called with.
        found: the value, if the case has one, then the derivatives.

    Raises:
        AssertionError: they differ.
    """
    if case.value:
        np.testing.assert_allclose(found[0], case.expression(m, *arguments), rtol=TOLERANCE)
    derivatives = [np.asarray(d) for d in found[1:] if case.value] or [np.asarray(d) for d in found]
    rng = np.random.default_rng(0)
    for _ in range(2):
        moved = list(arguments)
        product = size = 0.0
        for position, derivative in zip(case.wrt, derivatives, strict=True):
            direction = rng.standard_normal(derivative.shape)
            moved[position] = moved[position] + 1j * STEP * direction
            product += float((derivative * direction).sum())
            size += float(np.abs(derivative * direction).sum())
        expected = float(np.imag(case.expression(m, *moved))) / STEP
        if not abs(product - expected) <= TOLERANCE * size:
            raise AssertionError(f"the derivative along a direction is {product}, expected {expected}")

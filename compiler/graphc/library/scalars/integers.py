# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels of uint64 numbers: the greatest common divisor."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.scalars.registry import scalar


@scalar
def gcd(x, y):
    """Greatest common divisor, by Euclid's algorithm; that of 0 and x is x."""
    while y != 0:
        rest = x % y
        x = y
        y = rest
    return x

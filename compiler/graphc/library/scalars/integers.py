# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar kernels of uint64 numbers: the greatest common divisor, and powers."""
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


@scalar
def whole_power(x, y):
    """x to the power of y modulo 2^64, by squaring for each bit of y up to its highest."""
    result = 1
    while y != 0:
        if y & 1 != 0:
            result = result * x
        x = x * x
        y = y >> 1
    return result

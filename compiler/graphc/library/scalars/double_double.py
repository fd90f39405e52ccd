# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Routines for kernels that need 31 digits: a number is a sum t[0] + t[1], changed in place.

Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from graphc.native.builtins import fma


def table(numbers: Iterable[Fraction]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Numbers as two tuples, whose sums they are to 31 digits."""
    exact = list(numbers)
    highs = tuple(map(float, exact))
    return highs, tuple(float(x - Fraction(high)) for x, high in zip(exact, highs, strict=True))


def assign(t, high, low):
    """t = high + low"""
    t[0] = high + low
    t[1] = low - (t[0] - high)


def add(t, high, low):
    """t += high + low"""
    total = t[0] + high
    rest = total - t[0]
    error = ((t[0] - (total - rest)) + (high - rest)) + (t[1] + low)
    assign(t, total, error)


def multiply(t, high, low):
    """t *= high + low"""
    product = t[0] * high
    assign(t, product, fma(t[0], high, -product) + (t[0] * low + t[1] * high))


def divide(t, high, low):
    """t /= high + low"""
    quotient = t[0] / high
    rest = fma(-quotient, high, t[0]) + (t[1] - quotient * low)
    assign(t, quotient, rest / high)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings of special functions that need no loop and no library but libm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops import forms

Scalar = Any
_F64 = np.dtype("float64")


def in_double(form: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """The form computed in float64 whatever the operands are, so that only the result is rounded."""

    def scalar(b: Any, *xs: Scalar) -> Scalar:
        return b.narrowed(form(b, *(b.cast(x, _F64) for x in xs)), xs[0].dtype)

    return scalar


def _zero(b: Any, x: Scalar) -> Scalar:
    return b.const(0, x.dtype)


@in_double
def gamma(b: Any, x: Scalar) -> Scalar:
    """tgamma of the C library, but NaN for minus infinity and the negative integers, as in SciPy."""
    pole = b.logical_and(b.lt(x, _zero(b, x)), b.eq(x, b.floor(x)))
    return b.select(pole, b.const(np.nan, x.dtype), b.math("tgamma", x))


@in_double
def trigamma(b: Any, x: Scalar) -> Scalar:
    """Derivative of digamma: reflection, ten steps of recurrence, then the asymptotic series.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4.6, 6.4.7 and 6.4.12.
    """
    zero, one = b.const(0, _F64), b.const(1, _F64)
    low = b.le(x, zero)
    z = b.select(low, b.sub(one, x), x)
    terms = []
    for _ in range(10):
        inverse = b.truediv(one, z)
        terms.append(b.mul(inverse, inverse))
        z = b.add(z, one)
    inverse = b.truediv(one, z)
    square = b.mul(inverse, inverse)
    series = zero
    for coefficient in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = b.add(b.mul(square, series), b.const(coefficient, _F64))
    value = b.mul(inverse, b.add(one, b.mul(inverse, b.add(b.const(0.5, _F64), b.mul(inverse, series)))))
    # The first term is the largest.
    for term in reversed(terms):
        value = b.add(value, term)
    sine = b.math("sin", forms.scaled(b, b.sub(x, b.rint(x)), np.pi))
    quotient = b.truediv(b.const(np.pi, _F64), sine)
    reflected = b.sub(b.mul(quotient, quotient), value)
    pole = b.eq(x, b.floor(x))
    reflected = b.select(pole, b.const(np.inf, _F64), reflected)
    # Of minus infinity nothing is known.
    reflected = b.select(b.isinf(x), b.const(np.nan, _F64), reflected)
    return b.select(low, reflected, value)


@in_double
def polygamma(b: Any, n: Scalar, x: Scalar) -> Scalar:
    """(-1)^(n + 1) n! zeta(n + 1, x), digamma for n = 0."""
    zero, one = b.const(0, _F64), b.const(1, _F64)
    order = b.add(n, one)
    magnitude = b.mul(b.math("tgamma", order), b.call("graphc_scalar.zeta", order, x))
    half = b.mul(b.const(0.5, _F64), n)
    value = b.select(b.eq(half, b.floor(half)), b.neg(magnitude), magnitude)
    value = b.select(b.eq(n, zero), forms.digamma(b, x), value)
    whole = b.logical_and(b.ge(n, zero), b.eq(n, b.floor(n)))
    return b.select(whole, value, b.const(np.nan, _F64))


@forms.wide
def logit(b: Any, x: Scalar) -> Scalar:
    """log(x / (1 - x)); between a quarter and three quarters 2 atanh(2 x - 1), where 2 x - 1 is exact."""
    one, half = b.const(1, x.dtype), b.const(0.5, x.dtype)
    offset = b.sub(x, half)
    middle = b.le(b.abs(offset), b.const(0.25, x.dtype))
    inside = b.math("atanh", b.select(middle, b.add(offset, offset), half))
    outside = b.math("log", b.truediv(x, b.sub(one, x)))
    return b.select(middle, b.add(inside, inside), outside)


def _guarded_product(b: Any, x: Scalar, logarithm: Scalar, y: Scalar) -> Scalar:
    """x * logarithm, but 0 for x = 0 unless y is NaN."""
    nothing = b.logical_and(b.eq(x, _zero(b, x)), b.eq(y, y))
    return b.select(nothing, _zero(b, x), b.mul(x, logarithm))


@forms.wide
def xlogy(b: Any, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log", y), y)


@forms.wide
def xlog1py(b: Any, x: Scalar, y: Scalar) -> Scalar:
    return _guarded_product(b, x, b.math("log1p", y), y)


@forms.wide
def entr(b: Any, x: Scalar) -> Scalar:
    """-x log(x), 0 at 0, minus infinity below."""
    zero = _zero(b, x)
    value = b.neg(b.mul(x, b.math("log", x)))
    value = b.select(b.eq(x, zero), zero, value)
    return b.select(b.lt(x, zero), b.const(-np.inf, x.dtype), value)


def log_ratio(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """log(x / y) of positive numbers: log1p of the exact difference where they are close, and no overflow."""
    ratio = b.truediv(x, y)
    near = b.math("log1p", b.truediv(b.sub(x, y), y))
    far = b.math("log", ratio)
    close = b.logical_and(b.gt(ratio, b.const(0.5, x.dtype)), b.lt(ratio, b.const(2, x.dtype)))
    info = np.finfo(x.dtype)
    safe = b.logical_and(b.ge(ratio, b.const(info.tiny, x.dtype)), b.le(ratio, b.const(info.max, x.dtype)))
    apart = b.sub(b.math("log", x), b.math("log", y))
    return b.select(close, near, b.select(safe, far, apart))


@forms.wide
def rel_entr(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) for positive operands, 0 for x = 0 <= y, infinite otherwise."""
    zero, infinity = _zero(b, x), b.const(np.inf, x.dtype)
    value = b.mul(x, log_ratio(b, x, y))
    return _on_quadrants(b, x, y, value, zero, infinity)


@in_double
def kl_div(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """x log(x / y) - x + y for positive operands, y for x = 0 <= y, infinite otherwise."""
    value = b.add(b.sub(b.mul(x, log_ratio(b, x, y)), x), y)
    # With d = x/y - 1 it is y (d^2/2 - d^3/6 + ...): the series where the terms above would cancel.
    d = b.truediv(b.sub(x, y), y)
    series = b.const(0, x.dtype)
    for k in range(16, 1, -1):
        series = b.add(b.mul(series, d), b.const((-1) ** k / (k * (k - 1)), x.dtype))
    near = b.mul(b.mul(b.mul(d, d), series), y)
    value = b.select(b.lt(b.abs(d), b.const(0.1, x.dtype)), near, value)
    return _on_quadrants(b, x, y, value, y, b.const(np.inf, x.dtype))


def _on_quadrants(b: Any, x: Scalar, y: Scalar, inside: Scalar, edge: Scalar, outside: Scalar) -> Scalar:
    """`inside` for positive operands, `edge` for x = 0 <= y, NaN for NaN, `outside` elsewhere."""
    zero = _zero(b, x)
    on_edge = b.logical_and(b.eq(x, zero), b.ge(y, zero))
    positive = b.logical_and(b.gt(x, zero), b.gt(y, zero))
    value = b.select(positive, inside, b.select(on_edge, edge, outside))
    unknown = b.logical_or(b.isnan(x), b.isnan(y))
    return b.select(unknown, b.const(np.nan, x.dtype), value)


@forms.wide
def logaddexp2(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """log2(2^x + 2^y); equal operands, infinities among them, would give inf - inf."""
    equal = b.add(x, b.const(1, x.dtype))
    tail = b.math("log1p", b.math("exp2", b.neg(b.abs(b.sub(x, y)))))
    tail = forms.scaled(b, tail, float(1 / np.log(2.0)))
    return b.select(b.eq(x, y), equal, b.add(b.maximum(x, y), tail))


@forms.wide
def sinc(b: Any, x: Scalar) -> Scalar:
    """sin(pi x) / (pi x), of the distance from the nearest integer, which is exact."""
    zero, one, half = b.const(0, x.dtype), b.const(1, x.dtype), b.const(0.5, x.dtype)
    nearest = b.rint(x)
    sine = b.math("sin", forms.scaled(b, b.sub(x, nearest), np.pi))
    halved = b.mul(nearest, half)
    sine = b.select(b.eq(halved, b.floor(halved)), sine, b.neg(sine))
    none = b.eq(x, zero)
    value = b.truediv(sine, forms.scaled(b, b.select(none, one, x), np.pi))
    value = b.select(b.isinf(x), zero, value)
    return b.select(none, one, value)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings made of several steps, shared by rows of the elementwise table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ops.elementwise import Elementwise, register, ufunc_rule

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import ScalarBuilder

Scalar = Any


def libm(name: str) -> Callable[..., Scalar]:
    """A function of the C library; of complex operands, that of `lowering.complex_functions`."""
    return lambda b, *xs: b.math(name, *xs)


def register_libm(name: str, doc: str, *grad: object, **rules: Any) -> Elementwise:
    """A row of NumPy's function of that name, or of ``reference``, which the C library computes."""
    ufunc = getattr(np, name)
    if "reference" in rules:
        rules["dtypes"] = ufunc_rule(ufunc)
    reference = rules.pop("reference", ufunc)
    return register(name, reference, doc, libm(name.replace("arc", "a")), grad=grad, **rules)


def wide(form: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """The form computed in float32 for float16 operands, so that only the result is rounded."""

    def scalar(b: ScalarBuilder, *xs: Scalar) -> Scalar:
        if xs[0].dtype != np.float16:
            return form(b, *xs)
        single = np.dtype("float32")
        return b.cast(form(b, *(b.cast(x, single) for x in xs)), xs[0].dtype)

    return scalar


def in_double(form: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """The form computed in float64 whatever the operands are, so that only the result is rounded."""
    double = np.dtype("float64")

    def scalar(b: ScalarBuilder, *xs: Scalar) -> Scalar:
        return b.cast(form(b, *(b.cast(x, double) for x in xs)), xs[0].dtype)

    return scalar


def scaled(b: ScalarBuilder, x: Scalar, factor: float) -> Scalar:
    """x times a real literal."""
    return b.mul(x, b.const(factor, x.dtype))


def sigmoid(b: ScalarBuilder, x: Scalar) -> Scalar:
    """exp(min(x, 0)) / (1 + exp(-|x|)), which also has the tiny values, and needs one exponential."""
    one = b.const(1, x.dtype)
    tail = b.math("exp", b.neg(b.abs(x)))
    return b.truediv(b.select(b.lt(x, b.const(0, x.dtype)), tail, one), b.add(one, tail))


def softplus(b: ScalarBuilder, x: Scalar) -> Scalar:
    tail = b.math("log1p", b.math("exp", b.neg(b.abs(x))))
    return b.add(b.maximum(x, b.const(0, x.dtype)), tail)


def log1mexp(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(1 - exp(x)) by the better conditioned of two forms (M. Maechler, 2012), which share the logarithm.

    Far from 0 it is that of the rounded 1 - exp(x), less what has been rounded off, times the slope; farther
    out the first two terms of its series.
    """
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    near = b.gt(x, b.const(-np.log(2.0), x.dtype))
    power = b.math("exp", x)
    difference = b.sub(one, power)
    lost = b.sub(power, b.sub(one, difference))
    logarithm = b.math("log", b.select(near, b.neg(b.math("expm1", x)), difference))
    value = b.sub(logarithm, b.select(near, zero, b.fma(lost, power, lost)))
    tiny = b.lt(power, b.const(np.sqrt(np.finfo(x.dtype).eps) / 4, x.dtype))
    return b.select(tiny, b.neg(b.fma(scaled(b, power, 0.5), power, power)), value)


def logaddexp(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    # Equal operands, infinities among them, would give inf - inf.
    equal = b.add(x, b.const(np.log(2.0), x.dtype))
    tail = b.math("log1p", b.math("exp", b.neg(b.abs(b.sub(x, y)))))
    return b.select(b.eq(x, y), equal, b.add(b.maximum(x, y), tail))


def hypot(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without overflow: the larger magnitude is factored out."""
    x, y = b.abs(x), b.abs(y)
    big, small = b.maximum(x, y), b.minimum(x, y)
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    none = b.eq(big, zero)
    ratio = b.truediv(small, b.select(none, one, big))
    length = b.mul(big, b.math("sqrt", b.add(one, b.mul(ratio, ratio))))
    infinite = b.logical_or(b.isinf(x), b.isinf(y))
    return b.select(infinite, b.const(np.inf, x.dtype), b.select(none, zero, length))

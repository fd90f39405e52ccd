# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar lowerings made of several steps, shared by rows of the elementwise table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Scalar = Any


def libm(name: str, complex_form: Callable[[Any, Scalar], Scalar] | None = None) -> Callable[..., Scalar]:
    """A function of the C library, with another form for complex operands."""

    def scalar(b: Any, *xs: Scalar) -> Scalar:
        if complex_form is not None and xs[0].dtype.kind == "c":
            return complex_form(b, *xs)
        return b.math(name, *xs)

    return scalar


def wide(form: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """The form computed in float32 for float16 operands, so that only the result is rounded."""

    def scalar(b: Any, *xs: Scalar) -> Scalar:
        if xs[0].dtype != np.float16:
            return form(b, *xs)
        single = np.dtype("float32")
        return b.cast(form(b, *(b.cast(x, single) for x in xs)), xs[0].dtype)

    return scalar


def scaled(b: Any, x: Scalar, factor: float) -> Scalar:
    """x times a real literal."""
    return b.mul(x, b.const(factor, x.dtype))


def sigmoid(b: Any, x: Scalar) -> Scalar:
    """exp(min(x, 0)) / (1 + exp(-|x|)), which also has the tiny values, and needs one exponential."""
    one = b.const(1, x.dtype)
    tail = b.math("exp", b.neg(b.abs(x)))
    return b.truediv(b.select(b.lt(x, b.const(0, x.dtype)), tail, one), b.add(one, tail))


def softplus(b: Any, x: Scalar) -> Scalar:
    tail = b.math("log1p", b.math("exp", b.neg(b.abs(x))))
    return b.add(b.maximum(x, b.const(0, x.dtype)), tail)


def log1mexp(b: Any, x: Scalar) -> Scalar:
    """log(1 - exp(x)) by the better conditioned of two forms (M. Maechler, 2012)."""
    near = b.math("log", b.neg(b.math("expm1", x)))
    far = b.math("log1p", b.neg(b.math("exp", x)))
    return b.select(b.gt(x, b.const(-np.log(2.0), x.dtype)), near, far)


def logaddexp(b: Any, x: Scalar, y: Scalar) -> Scalar:
    # Equal operands, infinities among them, would give inf - inf.
    equal = b.add(x, b.const(np.log(2.0), x.dtype))
    tail = b.math("log1p", b.math("exp", b.neg(b.abs(b.sub(x, y)))))
    return b.select(b.eq(x, y), equal, b.add(b.maximum(x, y), tail))


def hypot(b: Any, x: Scalar, y: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without overflow: the larger magnitude is factored out."""
    x, y = b.abs(x), b.abs(y)
    big, small = b.maximum(x, y), b.minimum(x, y)
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    none = b.eq(big, zero)
    ratio = b.truediv(small, b.select(none, one, big))
    length = b.mul(big, b.math("sqrt", b.add(one, b.mul(ratio, ratio))))
    infinite = b.logical_or(b.isinf(x), b.isinf(y))
    return b.select(infinite, b.const(np.inf, x.dtype), b.select(none, zero, length))


def sinh_complex(b: Any, x: Scalar) -> Scalar:
    re, im = b.real(x), b.imag(x)
    return b.complex(
        b.mul(b.math("sinh", re), b.math("cos", im)), b.mul(b.math("cosh", re), b.math("sin", im))
    )


def cosh_complex(b: Any, x: Scalar) -> Scalar:
    re, im = b.real(x), b.imag(x)
    return b.complex(
        b.mul(b.math("cosh", re), b.math("cos", im)), b.mul(b.math("sinh", re), b.math("sin", im))
    )


def sqrt_minus(b: Any, x: Scalar) -> Scalar:
    """sqrt(1 - x)."""
    return b.math("sqrt", b.sub(b.const(1, x.dtype), x))


def sqrt_plus(b: Any, x: Scalar) -> Scalar:
    """sqrt(1 + x)."""
    return b.math("sqrt", b.add(b.const(1, x.dtype), x))


# The inverse functions of a complex operand follow W. Kahan, "Branch cuts for complex elementary functions",
# 1987.


def arcsin_complex(b: Any, x: Scalar) -> Scalar:
    minus, plus = sqrt_minus(b, x), sqrt_plus(b, x)
    return b.complex(
        b.math("atan2", b.real(x), b.real(b.mul(minus, plus))),
        b.math("asinh", b.imag(b.mul(b.conj(minus), plus))),
    )


def arccos_complex(b: Any, x: Scalar) -> Scalar:
    minus, plus = sqrt_minus(b, x), sqrt_plus(b, x)
    re = b.math("atan2", b.real(minus), b.real(plus))
    return b.complex(b.add(re, re), b.math("asinh", b.imag(b.mul(b.conj(plus), minus))))


def arccosh_complex(b: Any, x: Scalar) -> Scalar:
    one = b.const(1, x.dtype)
    minus, plus = b.math("sqrt", b.sub(x, one)), sqrt_plus(b, x)
    im = b.math("atan2", b.imag(minus), b.real(plus))
    return b.complex(b.math("asinh", b.real(b.mul(b.conj(minus), plus))), b.add(im, im))


def times_i(b: Any, x: Scalar) -> Scalar:
    """i x."""
    return b.complex(b.neg(b.imag(x)), b.real(x))


def over_i(b: Any, x: Scalar) -> Scalar:
    """x / i."""
    return b.complex(b.imag(x), b.neg(b.real(x)))


def arcsinh_complex(b: Any, x: Scalar) -> Scalar:
    return over_i(b, arcsin_complex(b, times_i(b, x)))


def arctanh_complex(b: Any, x: Scalar) -> Scalar:
    """Real part log1p(4a / ((1-a)^2 + b^2)) / 4; imaginary part atan2(2b, (1-a)(1+a) - b^2) / 2."""
    re, im = b.real(x), b.imag(x)
    one = b.const(1, re.dtype)
    less = b.sub(one, re)
    ratio = b.truediv(scaled(b, re, 4.0), b.add(b.mul(less, less), b.mul(im, im)))
    angle = b.math("atan2", b.add(im, im), b.sub(b.mul(less, b.add(one, re)), b.mul(im, im)))
    return b.complex(scaled(b, b.math("log1p", ratio), 0.25), scaled(b, angle, 0.5))


def arctan_complex(b: Any, x: Scalar) -> Scalar:
    return over_i(b, arctanh_complex(b, times_i(b, x)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: parts of floating-point numbers, their neighbours, divisors of integers, and bfloat16.

Arrays of bfloat16, the upper half of float32, have the dtype of ``ml_dtypes``. Operations that only move
elements take them as they are, all others compute in float32 and round the result, as those of ``ml_dtypes``
do: a call of an `Op` inserts the casts. In the IR they are arrays of their bits, so that no pass and no target
needs to know of them: a cast is one of two rows, from bits and to bits.

Source: Google's bfloat16; rounding to the nearest even number as in ``ml_dtypes``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import OperandType, register, ufunc_rule
from graphc.ops.external import real_floats
from graphc.ops.math import frexp, ldexp
from graphc.ops.table import forms

if TYPE_CHECKING:
    from graphc.lowering.scalar_builder import Scalar, ScalarBuilder

_DOUBLE, _I64, _U64 = np.dtype("float64"), np.dtype("int64"), np.dtype("uint64")
# Of float64: bits of the fraction, bias of the exponent.
_FRACTION, _BIAS = 52, 1023


def _one_double(b: ScalarBuilder, exponent: Scalar) -> Scalar:
    """2 to an int64 power from -1022 to 1023, put together from its bits."""
    biased = b.add(exponent, b.const(_BIAS, _I64))
    bits = b.op("arith.shli", _I64, biased, b.const(_FRACTION, _I64))
    return b.op("arith.bitcast", _DOUBLE, bits)


def _limited(b: ScalarBuilder, x: Scalar, low: int, high: int) -> Scalar:
    return b.minimum(b.maximum(x, b.const(low, x.dtype)), b.const(high, x.dtype))


def _ldexp(b: ScalarBuilder, x: Scalar, n: Scalar) -> Scalar:
    n = b.cast(n, _I64)
    if x.dtype != _DOUBLE:
        # Exact in float64, so that only the result is rounded.
        return b.cast(b.mul(b.cast(x, _DOUBLE), _one_double(b, _limited(b, n, -600, 600))), x.dtype)
    n = _limited(b, n, -2200, 2200)
    for _ in range(2):
        # Steps leave subnormal numbers to the last one, so that there is one rounding.
        many, few = b.gt(n, b.const(1023, _I64)), b.lt(n, b.const(-1022, _I64))
        step = b.select(many, b.const(1023, _I64), b.select(few, b.const(-969, _I64), b.const(0, _I64)))
        x, n = b.mul(x, _one_double(b, step)), b.sub(n, step)
    return b.mul(x, _one_double(b, _limited(b, n, -1022, 1023)))


def _frexp(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Mantissa (float64) and exponent (int64)."""
    x = b.cast(x, _DOUBLE)
    tiny = b.lt(b.abs(x), b.const(np.finfo("float64").tiny, _DOUBLE))
    scaled = b.select(tiny, b.mul(x, b.const(2.0**54, _DOUBLE)), x)
    bits = b.op("arith.bitcast", _I64, scaled)
    biased = b.and_(b.op("arith.shrui", _I64, bits, b.const(_FRACTION, _I64)), b.const(0x7FF, _I64))
    exponent = b.sub(biased, b.select(tiny, b.const(_BIAS - 1 + 54, _I64), b.const(_BIAS - 1, _I64)))
    kept = b.and_(bits, b.const(~(0x7FF << _FRACTION), _I64))
    half = b.or_(kept, b.const((_BIAS - 1) << _FRACTION, _I64))
    # Zeros, infinities and NaN have no exponent.
    whole = b.logical_or(b.eq(x, b.const(0, _DOUBLE)), b.logical_or(b.isnan(x), b.isinf(x)))
    mantissa = b.select(whole, x, b.op("arith.bitcast", _DOUBLE, half))
    return mantissa, b.select(whole, b.const(0, _I64), exponent)


def _rough_log(b: ScalarBuilder, x: Scalar) -> Scalar:
    size = b.abs(b.cast(x, _DOUBLE))
    biased = b.op("arith.shrui", _I64, b.op("arith.bitcast", _I64, size), b.const(_FRACTION, _I64))
    # The fraction of 2**52 plus the integer: not all processors convert vectors of integers.
    encoded = b.or_(biased, b.const((_BIAS + _FRACTION) << _FRACTION, _I64))
    exponent = b.sub(b.op("arith.bitcast", _DOUBLE, encoded), b.const(2.0**_FRACTION + _BIAS, _DOUBLE))
    least, most = b.const(np.finfo(x.dtype).minexp, _DOUBLE), b.const(np.inf, _DOUBLE)
    found = forms.scaled(b, b.select(b.lt(exponent, least), least, exponent), math.log(2))
    found = b.select(b.lt(size, most), found, most)
    return b.cast(b.select(b.eq(size, b.const(0, _DOUBLE)), b.neg(most), found), x.dtype)


def _rough_log_reference(x: np.ndarray) -> np.ndarray:
    exponents = (np.abs(x, dtype=_DOUBLE).view(_I64) >> _FRACTION) - _BIAS
    sizes = np.maximum(exponents, np.finfo(x.dtype).minexp) * math.log(2)
    return np.where(np.isfinite(x), np.where(x == 0, -np.inf, sizes), np.inf).astype(x.dtype)


def _nextafter(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    dtype = x.dtype
    bits_type = np.dtype(f"int{dtype.itemsize * 8}")
    zero, one = b.const(0, dtype), b.const(1, bits_type)
    bits = b.op("arith.bitcast", bits_type, x)
    away = b.eq(b.gt(y, x), b.gt(x, zero))
    stepped = b.op("arith.bitcast", dtype, b.select(away, b.add(bits, one), b.sub(bits, one)))
    smallest = b.copysign(b.op("arith.bitcast", dtype, one), y)
    moved = b.select(b.eq(x, zero), smallest, stepped)
    # As in C, but for NumPy's float16: zeros of different signs are equal.
    found = b.select(b.eq(x, y), x if dtype == np.float16 else y, moved)
    return b.select(b.logical_or(b.isnan(x), b.isnan(y)), b.const(np.nan, dtype), found)


def _spacing(b: ScalarBuilder, x: Scalar) -> Scalar:
    # NumPy's is signed, but for float16.
    up = b.const(np.inf, x.dtype)
    signed = b.select(b.eq(x, b.const(0, x.dtype)), up, b.copysign(up, x))
    following = _nextafter(b, x, up if x.dtype == np.float16 else signed)
    return b.select(b.isinf(x), b.const(np.nan, x.dtype), b.sub(following, x))


def _magnitude(b: ScalarBuilder, x: Scalar) -> Scalar:
    """As uint64; that of the smallest integer, which has none in its dtype, is right, too."""
    return b.cast(b.reinterpret(b.abs(x), np.dtype(f"uint{x.dtype.itemsize * 8}")), _U64)


def _gcd(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    return b.cast(b.call("graphc_scalar.gcd", _magnitude(b, x), _magnitude(b, y)), x.dtype)


def _lcm(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    x64, y64 = _magnitude(b, x), _magnitude(b, y)
    return b.cast(b.mul(b.floordiv(x64, b.call("graphc_scalar.gcd", x64, y64)), y64), x.dtype)


def _exponent_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    return ufunc_rule(np.frexp)(types)[0], np.dtype("int32")


register(
    "ldexp",
    np.ldexp,
    "x times 2 to the power of the integer n, rounded once.",
    _ldexp,
    grad=(lambda x, n, out, g: ldexp(g, n), None),
)
register(
    "frexp_mantissa",
    lambda x: np.frexp(x)[0],
    "The number in [0.5, 1) that times a power of 2 gives x; zeros, infinities and NaN as they are.",
    lambda b, x: b.cast(_frexp(b, x)[0], x.dtype),
    dtypes=lambda types: (ufunc_rule(np.frexp)(types)[0],) * 2,
    grad=(lambda x, out, g: ldexp(g, -frexp(x)[1]),),
)
register(
    "frexp_exponent",
    lambda x: np.frexp(x)[1],
    "The exponent that belongs to frexp_mantissa.",
    lambda b, x: b.cast(_frexp(b, x)[1], np.dtype("int32")),
    dtypes=_exponent_rule,
    grad=(None,),
)
register(
    "rough_log",
    _rough_log_reference,
    "A number within 0.7 of the logarithm of the magnitude of x, or of the smallest normal number for smaller ones.",
    _rough_log,
    dtypes=real_floats,
    grad=(None,),
)
register(
    "nextafter",
    np.nextafter,
    "The floating-point number next to x in the direction of y.",
    _nextafter,
    grad=(lambda x, y, out, g: g, None),
)
register(
    "spacing",
    np.spacing,
    "Distance to the number of the next larger magnitude, with the sign of x.",
    _spacing,
    grad=(None,),
)
register("gcd", np.gcd, "Greatest common divisor of the magnitudes.", _gcd, grad=(None, None))
register("lcm", np.lcm, "Least common multiple of the magnitudes; 0 if one is 0.", _lcm, grad=(None, None))


_SINGLE, _HALF, _WORD = np.dtype("float32"), np.dtype("uint16"), np.dtype("uint32")
# A quiet NaN, and the sign of one.
_NAN, _SIGN = 0x7FC0, 0x8000


def _value_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    if types[0] != _HALF:
        raise TypeError("the bits of bfloat16 are uint16")
    return _HALF, _SINGLE


def _bits_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    return _SINGLE, _HALF


def _value_scalar(b: ScalarBuilder, bits: Scalar) -> Scalar:
    word = b.op("arith.shli", _WORD, b.cast(bits, _WORD), b.const(16, _WORD))
    return b.op("arith.bitcast", _SINGLE, word)


def _bits(x: np.ndarray) -> np.ndarray:
    word = np.asarray(x, _SINGLE).view(_WORD)
    upper = word >> np.uint32(16)
    # Half of the last kept bit, less one where that is even.
    rounded = (word + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), upper & np.uint32(_SIGN) | np.uint32(_NAN), rounded).astype(_HALF)


def _bits_scalar(b: ScalarBuilder, x: Scalar) -> Scalar:
    def word(number: int) -> Scalar:
        return b.const(number, _WORD)

    bits = b.op("arith.bitcast", _WORD, x)
    upper = b.op("arith.shrui", _WORD, bits, word(16))
    odd = b.and_(upper, word(1))
    rounded = b.op("arith.shrui", _WORD, b.add(bits, b.add(word(0x7FFF), odd)), word(16))
    nan = b.or_(b.and_(upper, word(_SIGN)), word(_NAN))
    return b.cast(b.select(b.isnan(x), nan, rounded), _HALF)


bfloat16_value = register(
    "bfloat16_value",
    lambda bits: (np.asarray(bits, _WORD) << np.uint32(16)).view(_SINGLE),
    "The numbers of bfloat16 in float32, from their bits in uint16.",
    _value_scalar,
    grad=(None,),
    dtypes=_value_rule,
    cheap=True,
)
bfloat16_bits = register(
    "bfloat16_bits",
    _bits,
    "The bits of numbers rounded to bfloat16, in uint16.",
    _bits_scalar,
    grad=(None,),
    dtypes=_bits_rule,
    cheap=True,
)

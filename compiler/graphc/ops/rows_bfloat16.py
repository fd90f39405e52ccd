# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise rows: bfloat16, the upper half of float32.

Arrays of bfloat16 have the dtype of ``ml_dtypes``. Operations that only move elements take them as they are,
all others compute in float32 and round the result, as those of ``ml_dtypes`` do: a call of an `Op` inserts the
casts. In the IR they are arrays of their bits, so that no pass and no target needs to know of them: a cast is
one of the two rows here.

Source: Google's bfloat16; rounding to the nearest even number as in ``ml_dtypes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ops.elementwise import OperandType, register

if TYPE_CHECKING:
    from graphc.lowering.scalars.builder import Scalar, ScalarBuilder

_SINGLE, _HALF, _WORD = np.dtype("float32"), np.dtype("uint16"), np.dtype("uint32")
# A quiet NaN, and the sign of one.
_NAN, _SIGN = 0x7FC0, 0x8000


def _value_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    if types[0] != _HALF:
        raise TypeError("the bits of bfloat16 are uint16")
    return _HALF, _SINGLE


def _bits_rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    return _SINGLE, _HALF


def _value(bits: np.ndarray) -> np.ndarray:
    return (np.asarray(bits, _WORD) << np.uint32(16)).view(_SINGLE)


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
    _value,
    "The numbers of bfloat16 in float32, from their bits in uint16.",
    _value_scalar,
    nin=1,
    grad=(None,),
    dtypes=_value_rule,
    cheap=True,
)
bfloat16_bits = register(
    "bfloat16_bits",
    _bits,
    "The bits of numbers rounded to bfloat16, in uint16.",
    _bits_scalar,
    nin=1,
    grad=(None,),
    dtypes=_bits_rule,
    cheap=True,
)

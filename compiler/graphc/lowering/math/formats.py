# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of the binary floating-point formats the expansions compute in."""

from __future__ import annotations

import struct
from fractions import Fraction

from graphc_runtime.record import record


@record(frozen=True)
class Format:
    """An IEEE 754 binary interchange format.

    `mantissa` is the number of stored fraction bits, `code` the `struct` letters of the float and of an
    unsigned integer of the same width.
    """

    name: str
    width: int
    mantissa: int
    bias: int
    code: str

    def round(self, value: Fraction | float) -> float:
        """`value` rounded to this format, as a Python float."""
        return float(struct.unpack(self.code[0], struct.pack(self.code[0], float(value)))[0])

    def bits(self, value: float) -> int:
        """The encoding of `value`."""
        return int(struct.unpack(self.code[1], struct.pack(self.code[0], value))[0])

    def split(self, value: Fraction, low_zeros: int = 0) -> tuple[float, float]:
        """`value` as an unevaluated sum of two numbers, the first with `low_zeros` trailing zero bits."""
        scale = Fraction(2) ** (self._exponent(value) - self.mantissa + low_zeros)
        high = Fraction(round(value / scale)) * scale
        return self.round(high), self.round(value - high)

    @property
    def magic(self) -> float:
        """1.5 * 2^mantissa: added to a small number, leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @staticmethod
    def _exponent(value: Fraction) -> int:
        exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
        return exponent if abs(value) >= Fraction(2) ** exponent else exponent - 1


F32 = Format("f32", 32, 23, 127, "fI")
F64 = Format("f64", 64, 52, 1023, "dQ")

# The constants to 192 bits, from the series in Abramowitz and Stegun, table 1.1.
LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493394")
LOG2_E = 1 / LN2
LN10 = Fraction("2.302585092994045684017991454684364207601101488628772976033327900967573")
PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592307816")

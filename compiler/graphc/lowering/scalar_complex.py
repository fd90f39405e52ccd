# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex arithmetic of ScalarBuilder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphc.lowering.scalar import Scalar


class ComplexMixin:
    """Complex scalars as pairs of real ones."""

    def _part(self: object, x: Scalar) -> np.dtype:
        return np.dtype(f"float{x.dtype.itemsize * 4}")

    def complex(self: Any, real: Scalar, imag: Scalar) -> Scalar:
        return self.op("complex.create", np.dtype(f"complex{real.dtype.itemsize * 16}"), real, imag)

    def real(self: Any, x: Scalar) -> Any:
        return self.op("complex.re", self._part(x), x) if x.dtype.kind == "c" else x

    def imag(self: Any, x: Scalar) -> Scalar:
        return self.op("complex.im", self._part(x), x) if x.dtype.kind == "c" else self.const(0, x.dtype)

    def conj(self: Any, x: Scalar) -> Scalar:
        return self.complex(self.real(x), self.neg(self.imag(x))) if x.dtype.kind == "c" else x

    def angle(self: Any, x: Scalar) -> Scalar:
        return self.math("atan2", self.imag(x), self.real(x))

    def complex_abs(self: Any, x: Scalar) -> Scalar:
        """The root of the sum of squares. Where these would overflow or vanish, the parts are multiplied by a
        power of two, which is exact.
        """
        a, b = self.abs(self.real(x)), self.abs(self.imag(x))
        part = self._part(x)
        high, down, low, up = (500, 600, -450, 600) if part.itemsize == 8 else (60, 75, -50, 100)
        big, one = self.maximum(a, b), self.const(1, part)
        large, little = (self.const(2.0**exponent, part) for exponent in (high, low))
        is_large, is_little = self.gt(big, large), self.lt(big, little)

        def power(of_large: int, of_little: int) -> Scalar:
            small = self.select(is_little, self.const(2.0**of_little, part), one)
            return self.select(is_large, self.const(2.0**of_large, part), small)

        scale = power(-down, up)
        a, b = self.mul(a, scale), self.mul(b, scale)
        length = self.math("sqrt", self.add(self.mul(a, a), self.mul(b, b)))
        infinite = self.logical_or(self.isinf(a), self.isinf(b))
        return self.select(infinite, self.const(np.inf, part), self.mul(length, power(down, -up)))

    def complex_mul(self: Any, x: Scalar, y: Scalar) -> Scalar:
        a, b, c, d = self.real(x), self.imag(x), self.real(y), self.imag(y)
        return self.complex(
            self.sub(self.mul(a, c), self.mul(b, d)), self.add(self.mul(a, d), self.mul(b, c))
        )

    def complex_div(self: Any, x: Scalar, y: Scalar) -> Scalar:
        """Smith's method (R. L. Smith, Algorithm 116, CACM 1962), which NumPy uses too."""
        a, b, c, d = self.real(x), self.imag(x), self.real(y), self.imag(y)
        by_real = self.ge(self.abs(c), self.abs(d))
        big, small = self.select(by_real, c, d), self.select(by_real, d, c)
        ratio = self.truediv(small, big)
        zero = self.const(0, self._part(x))
        # Both parts zero: divide each part by |y| = 0, as NumPy does, for signed infinities and NaN.
        by_zero = self.logical_and(self.eq(c, zero), self.eq(d, zero))
        scale = self.truediv(self.const(1, self._part(x)), self.add(big, self.mul(small, ratio)))
        real_1, imag_1 = self.add(a, self.mul(b, ratio)), self.sub(b, self.mul(a, ratio))
        real_2, imag_2 = self.add(self.mul(a, ratio), b), self.sub(self.mul(b, ratio), a)
        real = self.mul(self.select(by_real, real_1, real_2), scale)
        imag = self.mul(self.select(by_real, imag_1, imag_2), scale)
        length = self.abs(c)
        return self.complex(
            self.select(by_zero, self.truediv(a, length), real),
            self.select(by_zero, self.truediv(b, length), imag),
        )

    def complex_pow(self: Any, x: Scalar, y: Scalar) -> Scalar:
        """exp(y log(x)); by products for whole exponents below 100, as in NumPy. In double precision."""
        double = np.dtype("complex128")
        if x.dtype != double:
            return self.cast(self.complex_pow(self.cast(x, double), self.cast(y, double)), x.dtype)
        part = self._part(x)
        zero, one = self.const(0, x.dtype), self.const(1, x.dtype)
        exponent = self.real(y)
        size = self.abs(exponent)
        whole = self.logical_and(
            self.eq(self.imag(y), self.const(0, part)), self.eq(exponent, self.rint(exponent))
        )
        whole = self.logical_and(whole, self.lt(size, self.const(100, part)))
        word = np.dtype("int64")
        bits = self.cast(self.select(whole, size, self.const(0, part)), word)
        power, base = one, x
        for bit in range(7):
            odd = self.ne(self.and_(bits, self.const(1 << bit, word)), self.const(0, word))
            power = self.select(odd, self.complex_mul(power, base) if bit else base, power)
            base = self.complex_mul(base, base) if bit < 6 else base
        negative = self.lt(exponent, self.const(0, part))
        power = self.select(negative, self.complex_div(one, power), power)
        general = self.math("exp", self.complex_mul(y, self.math("log", x)))
        # Powers of 0 are 0 for positive real parts of the exponent, and otherwise unknown.
        nan = self.const(np.nan, part)
        positive = self.gt(exponent, self.const(0, part))
        of_zero = self.select(positive, zero, self.complex(nan, nan))
        of_zero = self.select(self.eq(y, zero), one, of_zero)
        return self.select(self.eq(x, zero), of_zero, self.select(whole, power, general))

    def complex_reciprocal(self: Any, x: Any) -> Any:
        """1 / x by Smith's method, with NumPy's infinities and signs of zeros."""
        a, b = self.real(x), self.imag(x)
        one = self.const(1, self._part(x))
        by_real = self.ge(self.abs(a), self.abs(b))
        big, small = self.select(by_real, a, b), self.select(by_real, b, a)
        ratio = self.truediv(small, big)
        below = self.add(big, self.mul(small, ratio))
        first, second = self.truediv(one, below), self.truediv(ratio, below)
        return self.complex(
            self.select(by_real, first, second), self.neg(self.select(by_real, second, first))
        )

    def complex_sign(self: Any, x: Scalar) -> Scalar:
        """x / |x|, 0 for 0, and a unit for one infinite part (NumPy 2)."""
        a, b = self.real(x), self.imag(x)
        part = self._part(x)
        zero, one = self.const(0, part), self.const(1, part)
        # A quarter of large numbers has a length that does not overflow.
        large = self.gt(
            self.maximum(self.abs(a), self.abs(b)), self.const(float(np.finfo(part).max) / 4, part)
        )
        quarter = self.select(large, self.const(0.25, part), one)
        p, q = self.mul(a, quarter), self.mul(b, quarter)
        length = self.abs(self.complex(p, q))
        nothing = self.eq(length, zero)
        safe = self.select(nothing, one, length)
        lone = self.ne(self.isinf(a), self.isinf(b))

        def side(z: Scalar) -> Scalar:
            unit = self.select(self.isinf(z), self.copysign(one, z), zero)
            return self.select(lone, unit, self.select(nothing, zero, self.truediv(z, safe)))

        return self.complex(side(p), side(q))

    def complex_order(self: Any, x: Scalar, y: Scalar, compare: Any) -> Scalar:
        """Lexicographic comparison, real part first; false where a part that it looks at is NaN."""
        a, b, c, d = self.real(x), self.imag(x), self.real(y), self.imag(y)
        strict = self.lt(a, c) if compare in (self.lt, self.le) else self.gt(a, c)
        known = self.logical_not(self.logical_or(self.isnan(b), self.isnan(d)))
        return self.logical_or(
            self.logical_and(strict, known), self.logical_and(self.eq(a, c), compare(b, d))
        )

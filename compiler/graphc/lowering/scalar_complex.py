# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex arithmetic of ScalarBuilder."""

from __future__ import annotations

from typing import Any

import numpy as np


class ComplexMixin:
    """Complex scalars as pairs of real ones."""

    def _part(self: Any, x: Any) -> np.dtype:
        return np.dtype(f"float{x.dtype.itemsize * 4}")

    def complex(self: Any, real: Any, imag: Any) -> Any:
        return self.op("complex.create", np.dtype(f"complex{real.dtype.itemsize * 16}"), real, imag)

    def real(self: Any, x: Any) -> Any:
        return self.op("complex.re", self._part(x), x) if x.dtype.kind == "c" else x

    def imag(self: Any, x: Any) -> Any:
        return self.op("complex.im", self._part(x), x) if x.dtype.kind == "c" else self.const(0, x.dtype)

    def conj(self: Any, x: Any) -> Any:
        return self.complex(self.real(x), self.neg(self.imag(x))) if x.dtype.kind == "c" else x

    def angle(self: Any, x: Any) -> Any:
        return self.math("atan2", self.imag(x), self.real(x))

    def complex_abs(self: Any, x: Any) -> Any:
        """hypot without overflow: the larger part is factored out."""
        a, b = self.abs(self.real(x)), self.abs(self.imag(x))
        part = self._part(x)
        big, small = self.maximum(a, b), self.minimum(a, b)
        zero = self.eq(big, self.const(0, part))
        ratio = self.truediv(small, self.select(zero, self.const(1, part), big))
        length = self.mul(big, self.math("sqrt", self.add(self.mul(ratio, ratio), self.const(1, part))))
        infinite = self.logical_or(self.isinf(a), self.isinf(b))
        return self.select(infinite, self.const(np.inf, part), self.select(zero, big, length))

    def complex_mul(self: Any, x: Any, y: Any) -> Any:
        a, b, c, d = self.real(x), self.imag(x), self.real(y), self.imag(y)
        return self.complex(
            self.sub(self.mul(a, c), self.mul(b, d)), self.add(self.mul(a, d), self.mul(b, c))
        )

    def complex_div(self: Any, x: Any, y: Any) -> Any:
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

    def complex_sign(self: Any, x: Any) -> Any:
        """x / |x|, and 0 for 0 (NumPy 2)."""
        length = self.abs(x)
        zero = self.eq(length, self.const(0, self._part(x)))
        safe = self.select(zero, self.const(1, self._part(x)), length)
        return self.complex(self.truediv(self.real(x), safe), self.truediv(self.imag(x), safe))

    def complex_order(self: Any, x: Any, y: Any, compare: Any) -> Any:
        """Lexicographic comparison, real part first."""
        a, b, c, d = self.real(x), self.imag(x), self.real(y), self.imag(y)
        strict = self.lt(a, c) if compare in (self.lt, self.le) else self.gt(a, c)
        return self.logical_or(strict, self.logical_and(self.eq(a, c), compare(b, d)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between all dtypes with the semantics of NumPy's `astype`."""

from __future__ import annotations

from typing import Any

import numpy as np

_BOOL = np.dtype("bool")


class CastMixin:
    """`cast` of ScalarBuilder."""

    def cast(self: Any, x: Any, dtype: np.dtype) -> Any:
        """Converts a scalar; complex to real drops the imaginary part, anything to bool is `!= 0`."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if dtype == _BOOL:
            return self.truth(x)
        if x.dtype.kind == "c":
            if dtype.kind == "c":
                part = np.dtype(f"float{dtype.itemsize * 4}")
                return self.complex(self.cast(self.real(x), part), self.cast(self.imag(x), part))
            return self.cast(self.real(x), dtype)
        if dtype.kind == "c":
            part = np.dtype(f"float{dtype.itemsize * 4}")
            return self.complex(self.cast(x, part), self.const(0, part))
        if x.dtype.kind == "f":
            return self._float_to_float(x, dtype) if dtype.kind == "f" else self._float_to_int(x, dtype)
        if dtype.kind == "f":
            return self.op("arith.sitofp" if x.dtype.kind == "i" else "arith.uitofp", dtype, x)
        return self._int_to_int(x, dtype)

    def _float_to_float(self: Any, x: Any, dtype: np.dtype) -> Any:
        if dtype.itemsize > x.dtype.itemsize:
            return self.op("arith.extf", dtype, x)
        if x.dtype == np.float64 and dtype == np.float16:
            x = self._round_to_odd(x)
        return self.op("arith.truncf", dtype, x)

    def _round_to_odd(self: Any, x: Any) -> Any:
        """float64 to the float32 from which float16 is rounded right, without a library call.

        Rounding twice is wrong for values near a tie of the second rounding; an odd last bit in between keeps
        them off the tie (Boldo and Melquiond, "When double rounding is odd", 2005).
        """
        single, bits = np.dtype("float32"), np.dtype("int32")
        near = self.op("arith.truncf", single, x)
        size, wide = self.abs(x), self.abs(self.op("arith.extf", x.dtype, near))
        pattern = self.op("arith.bitcast", bits, near)
        even = self.eq(self.and_(pattern, self.const(1, bits)), self.const(0, bits))
        step = self.select(self.gt(size, wide), self.const(1, bits), self.const(-1, bits))
        inexact = self.logical_or(self.lt(size, wide), self.gt(size, wide))
        odd = self.select(self.logical_and(inexact, even), self.add(pattern, step), pattern)
        return self.op("arith.bitcast", single, odd)

    def _float_to_int(self: Any, x: Any, dtype: np.dtype) -> Any:
        """Truncation toward zero.

        LLVM's plain conversion is undefined out of range, so values are first clamped into a range every
        target converts; NumPy leaves the result for such values to the platform as well. Narrow integers go
        through int64 and wrap, as NumPy does on x86-64 and AArch64.
        """
        if x.dtype == np.float16:
            x = self.cast(x, np.dtype("float32"))
        wide = np.dtype("uint64") if dtype == np.uint64 else np.dtype("int64")
        # 2**63 and 2**64 are exact in both float types; the largest value below is what the clamp may return.
        top = 2.0**64 if wide == np.uint64 else 2.0**63
        below = float(np.nextafter(x.dtype.type(top), x.dtype.type(0)))
        nan = self.isnan(x)
        safe = self.select(self.lt(x, self.const(top, x.dtype)), x, self.const(below, x.dtype))
        if wide == np.uint64:
            # Negative values wrap like the two-step conversion through int64 that x86-64 compilers emit.
            low = self.const(-(2.0**63), x.dtype)
            negative = self.lt(x, self.const(0, x.dtype))
            signed = self.select(self.gt(x, low), x, low)
            signed = self.select(negative, signed, self.const(0, x.dtype))
            from_signed = self.op("arith.fptosi", np.dtype("int64"), signed)
            positive = self.select(self.logical_or(negative, nan), self.const(0, x.dtype), safe)
            from_unsigned = self.op("arith.fptoui", np.dtype("uint64"), positive)
            result = self.select(negative, self.reinterpret(from_signed, wide), from_unsigned)
            return self.select(nan, self.const(1 << 63, wide), result)
        low = self.const(-(2.0**63), x.dtype)
        safe = self.select(self.gt(safe, low), safe, low)
        in_range = self.logical_and(self.lt(x, self.const(top, x.dtype)), self.ge(x, low))
        safe = self.select(nan, self.const(0, x.dtype), safe)
        result = self.op("arith.fptosi", wide, safe)
        # Out of range and NaN give the "integer indefinite" value, what the x86-64 instruction returns.
        result = self.select(in_range, result, self.const(-(2**63), wide))
        return self._int_to_int(result, dtype)

    def _int_to_int(self: Any, x: Any, dtype: np.dtype) -> Any:
        source = 1 if x.dtype == _BOOL else x.dtype.itemsize * 8
        target = dtype.itemsize * 8
        if source == target:
            return self.reinterpret(x, dtype)
        if target < source:
            return self.op("arith.trunci", dtype, x)
        return self.op("arith.extsi" if x.dtype.kind == "i" else "arith.extui", dtype, x)

    def reinterpret(self: Any, x: Any, dtype: np.dtype) -> Any:
        """The same bits read as another integer dtype of the same width."""
        return type(x)(x.value, np.dtype(dtype))

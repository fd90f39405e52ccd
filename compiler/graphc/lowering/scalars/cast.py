# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between all dtypes with the semantics of NumPy's `astype`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphc.lowering.scalars.builder import Scalar

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

    def _float_to_float(self: Any, x: Scalar, dtype: np.dtype) -> Scalar:
        if dtype.itemsize > x.dtype.itemsize:
            return self.op("arith.extf", dtype, x)
        if x.dtype == np.float64 and dtype == np.float16:
            x = self._round_to_odd(x)
        return self.op("arith.truncf", dtype, x)

    def _round_to_odd(self: Any, x: Scalar) -> Scalar:
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

    def _float_to_int(self: Any, x: Scalar, dtype: np.dtype) -> Scalar:
        """Truncation toward zero, and for NaN and numbers out of range what NumPy has on x86-64.

        LLVM's plain conversion is undefined out of range, so such values are replaced before and after.
        Narrow integers go through int32 and wrap, and uint32 through int64, as with the instructions that
        NumPy uses (its vectorised conversion to uint32 gives other values out of range).
        """
        if x.dtype == np.float16:
            x = self.cast(x, np.dtype("float32"))
        if dtype == np.uint64:
            return self._float_to_uint64(x)
        wide = np.dtype("int64" if dtype in (np.int64, np.uint32) else "int32")
        top = 2.0 ** (wide.itemsize * 8 - 1)
        # Numbers above -top - 1 are cut off to -top. Where -top - 1 is no number of the dtype, -top is not
        # inside either, but that is the value of everything out of range.
        inside = self.logical_and(
            self.lt(x, self.const(top, x.dtype)), self.gt(x, self.const(-top - 1, x.dtype))
        )
        safe = self.select(inside, x, self.const(0, x.dtype))
        result = self.op("arith.fptosi", wide, safe)
        return self._int_to_int(self.select(inside, result, self.const(-int(top), wide)), dtype)

    def _float_to_uint64(self: Any, x: Any) -> Any:
        """Negative numbers wrap like a conversion to int64; from 2**64 on there is 0."""
        wide, zero = np.dtype("uint64"), self.const(0, x.dtype)
        negative, nan = self.lt(x, zero), self.isnan(x)
        low = self.const(-(2.0**63), x.dtype)
        signed = self.select(self.gt(x, low), x, low)
        from_signed = self.op("arith.fptosi", np.dtype("int64"), self.select(negative, signed, zero))
        small = self.logical_and(self.ge(x, zero), self.lt(x, self.const(2.0**64, x.dtype)))
        from_unsigned = self.op("arith.fptoui", wide, self.select(small, x, zero))
        result = self.select(negative, self.reinterpret(from_signed, wide), from_unsigned)
        return self.select(nan, self.const(1 << 63, wide), result)

    def _int_to_int(self: Any, x: Scalar, dtype: np.dtype) -> Scalar:
        source = 1 if x.dtype == _BOOL else x.dtype.itemsize * 8
        target = dtype.itemsize * 8
        if source == target:
            return self.reinterpret(x, dtype)
        if target < source:
            return self.op("arith.trunci", dtype, x)
        return self.op("arith.extsi" if x.dtype.kind == "i" else "arith.extui", dtype, x)

    def reinterpret(self: object, x: Scalar, dtype: np.dtype) -> Scalar:
        """The same bits read as another integer dtype of the same width."""
        return type(x)(x.value, np.dtype(dtype))

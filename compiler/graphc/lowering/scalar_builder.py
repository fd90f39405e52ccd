# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ScalarBuilder: dtype-aware scalar code at the current insertion point.

Rows of the operation table describe their scalar lowering with it (`scalar=lambda b, x, y: b.add(x, y)`). It
knows NumPy's semantics for every dtype: bool, signed, unsigned, floating and complex. No method can trap or
invoke undefined behaviour: integer division by zero gives 0, over-wide shifts give 0 or the sign, casts
saturate the way the hardware does for the values NumPy itself leaves undefined.

Calls of C functions by ScalarBuilder: the C library, SciPy's special functions, and scalar kernels.

Complex arithmetic of ScalarBuilder.

Casts between all dtypes with the semantics of NumPy's `astype`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.build import compute_name, declare
from graphc.ir.helpers import declare_helper
from graphc.library.helpers import PURE, ScalarCall
from graphc.lowering import complex_functions
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


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


# How rows of the elementwise table name scalar kernels.
_SCALAR = "graphc_scalar."
_DOUBLE = np.dtype("float64")


class CallMixin:
    """Functions that are neither arithmetic nor in the math dialect."""

    def fma(self: Any, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        """x * y + z of float32 or float64, rounded once."""
        return self.op("math.fma", x.dtype, x, y, z)

    def external(self: Any, symbol: str, *xs: Scalar) -> Scalar:
        """A pure function ``double symbol(double, ...)``, for operands and a result of any float dtype.

        Args:
            symbol: a name that `graphc_runtime.symbols` resolves, such as ``special_d_dawsn``, or that of a
                scalar kernel (`graphc.library.scalars`), such as ``graphc_scalar.zeta``.
            xs: operands of one dtype.
        """
        return self.cast(self.call(symbol, *(self.cast(x, _DOUBLE) for x in xs)), xs[0].dtype)

    def call(self: Any, symbol: str, *xs: Scalar) -> Any:
        """A pure C function whose operands and result have one dtype."""
        dtype = xs[0].dtype
        kind = self.type(dtype)
        around = self.ir.InsertionPoint.current.block.owner
        scalar = symbol.removeprefix(_SCALAR)
        if scalar != symbol:
            whole = dtype.kind in "iu"
            declare_helper(around, ScalarCall(scalar, len(xs), whole), [kind] * len(xs), [kind])
        else:
            declare(around, symbol, [kind] * len(xs), [kind], PURE)
        return self.op("func.call", dtype, *xs, callee=self.ir.FlatSymbolRefAttr.get(symbol))


# Contraction into fused multiply-add is the one liberty taken with elementwise arithmetic.
_CONTRACT = "#arith.fastmath<contract>"
_BOOL = np.dtype("bool")


@record(frozen=True)
class Scalar:
    """A scalar SSA value and the dtype it stands for.

    Attributes:
        value: the MLIR value, of the dtype's compute type.
        dtype: what the bits mean (signedness is not in the MLIR type).
    """

    value: ir.Value
    dtype: np.dtype


class ScalarBuilder(CallMixin, CastMixin, ComplexMixin):
    """Creates scalar operations; every method takes and returns `Scalar`.

    Args:
        ir: the MLIR `ir` module, so that importing this file does not load MLIR.
    """

    def __init__(self, ir: Any) -> None:
        self.ir = ir
        self._types: dict[np.dtype, ir.Type] = {}
        self._contract = ir.Attribute.parse(_CONTRACT)

    # -- building blocks -------------------------------------------------------------------------------------

    def type(self, dtype: np.dtype) -> Any:
        found = self._types.get(dtype)
        if found is None:
            found = self._types[dtype] = self.ir.Type.parse(compute_name(np.dtype(dtype)))
        return found

    def op(self, name: str, dtype: np.dtype, *operands: Scalar, **attributes: Any) -> Scalar:
        """One operation with one result of the given dtype."""
        dtype = np.dtype(dtype)
        if name in ("arith.addf", "arith.subf", "arith.mulf"):
            attributes["fastmath"] = self._contract
        values = [x.value for x in operands]
        return Scalar(self.ir.Operation.create(name, [self.type(dtype)], values, attributes).result, dtype)

    def const(self, value: Any, dtype: np.dtype) -> Scalar:
        """A literal, converted to `dtype` first."""
        dtype = np.dtype(dtype)
        if dtype.kind == "c":
            value = complex(value)
            part = np.dtype(f"float{dtype.itemsize * 4}")
            return self.complex(self.const(value.real, part), self.const(value.imag, part))
        mlir_type = self.type(dtype)
        if dtype.kind == "f":
            attribute = self.ir.FloatAttr.get(mlir_type, float(np.asarray(value, dtype)))
        else:
            bits = 1 if dtype == _BOOL else dtype.itemsize * 8
            number = int(np.asarray(value, dtype))
            number = number - (1 << bits) if number >= 1 << (bits - 1) else number
            attribute = self.ir.IntegerAttr.get(mlir_type, number)
        return self.op("arith.constant", dtype, value=attribute)

    def _by_kind(self, x: Scalar, floating: str, signed: str, unsigned: str | None = None) -> str:
        if x.dtype.kind == "f":
            return floating
        return signed if x.dtype.kind == "i" or unsigned is None else unsigned

    # -- arithmetic ------------------------------------------------------------------------------------------

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == _BOOL:
            return self.op("arith.ori", x.dtype, x, y)
        if x.dtype.kind == "c":
            return self.op("complex.add", x.dtype, x, y)
        return self.op(self._by_kind(x, "arith.addf", "arith.addi"), x.dtype, x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == _BOOL:
            return self.op("arith.xori", x.dtype, x, y)
        if x.dtype.kind == "c":
            return self.op("complex.sub", x.dtype, x, y)
        return self.op(self._by_kind(x, "arith.subf", "arith.subi"), x.dtype, x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype == _BOOL:
            return self.op("arith.andi", x.dtype, x, y)
        if x.dtype.kind == "c":
            return self.complex_mul(x, y)
        return self.op(self._by_kind(x, "arith.mulf", "arith.muli"), x.dtype, x, y)

    def truediv(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.complex_div(x, y)
        if x.dtype.kind != "f":
            float64 = np.dtype("float64")
            x, y = self.cast(x, float64), self.cast(y, float64)
        return self.op("arith.divf", x.dtype, x, y)

    def floordiv(self, x: Scalar, y: Scalar) -> Scalar:
        """Floor division; integers divided by zero give 0."""
        if x.dtype.kind == "f":
            return self._float_divmod(x, y)[0]
        return self._int_divmod(x, y)[0]

    def mod(self, x: Scalar, y: Scalar) -> Scalar:
        """NumPy's remainder, with the divisor's sign; integers modulo zero give 0."""
        if x.dtype.kind == "f":
            return self._float_divmod(x, y)[1]
        return self._int_divmod(x, y)[1]

    def _int_divmod(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        dtype = x.dtype
        if dtype == _BOOL:
            i8 = np.dtype("int8")
            q, r = self._int_divmod(self.cast(x, i8), self.cast(y, i8))
            return q, r
        zero, one = self.const(0, dtype), self.const(1, dtype)
        by_zero = self.eq(y, zero)
        if dtype.kind == "u":
            safe = self.select(by_zero, one, y)
            q, r = self.op("arith.divui", dtype, x, safe), self.op("arith.remui", dtype, x, safe)
            return self.select(by_zero, zero, q), self.select(by_zero, zero, r)
        # INT_MIN / -1 overflows in hardware; dividing by 1 and negating gives NumPy's wrapped result.
        minus_one = self.eq(y, self.const(-1, dtype))
        safe = self.select(self.logical_or(by_zero, minus_one), one, y)
        q, r = self.op("arith.divsi", dtype, x, safe), self.op("arith.remsi", dtype, x, safe)
        inexact = self.ne(r, zero)
        adjust = self.logical_and(inexact, self.ne(self.lt(r, zero), self.lt(safe, zero)))
        q = self.select(adjust, self.sub(q, one), q)
        r = self.select(adjust, self.add(r, safe), r)
        q = self.select(minus_one, self.neg(x), q)
        return self.select(by_zero, zero, q), self.select(by_zero, zero, r)

    def _float_divmod(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        """Floor division and remainder after CPython's and NumPy's `divmod` for floats.

        Where the quotient is infinite or a divisor is, it is what the quotient rounds down to, as the array
        API standard has it, and not paired with the remainder.
        """
        dtype = x.dtype
        if dtype == np.float16:
            single = np.dtype("float32")
            q, r = self._float_divmod(self.cast(x, single), self.cast(y, single))
            return self.cast(q, dtype), self.cast(r, dtype)
        zero, one = self.const(0, dtype), self.const(1, dtype)
        r = self.op("arith.remf", dtype, x, y)
        nonzero = self.ne(r, zero)
        adjust = self.logical_and(nonzero, self.ne(self.lt(y, zero), self.lt(r, zero)))
        signed_zero = self.copysign(zero, y)
        remainder = self.select(nonzero, self.select(adjust, self.add(r, y), r), signed_zero)
        quotient = self.op("arith.divf", dtype, self.sub(x, r), y)
        below = self.logical_and(adjust, self.ne(self.abs(y), self.const(np.inf, dtype)))
        quotient = self.select(below, self.sub(quotient, one), quotient)
        floored = self.floor(quotient)
        half_up = self.gt(self.sub(quotient, floored), self.const(0.5, dtype))
        floored = self.select(half_up, self.add(floored, one), floored)
        exact = self.truediv(x, y)
        floored = self.select(self.ne(quotient, zero), floored, self.copysign(zero, exact))
        # No remainder: of an infinite number, by 0, of NaN.
        return self.select(self.ne(r, r), exact, floored), remainder

    def copysign(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("math.copysign", x.dtype, x, y)

    def neg(self, x: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return self.op("arith.negf", x.dtype, x)
        if x.dtype.kind == "c":
            return self.complex(self.neg(self.real(x)), self.neg(self.imag(x)))
        return self.sub(self.const(0, x.dtype), x)

    def abs(self, x: Scalar) -> Scalar:
        """Magnitude; complex input gives a real result."""
        if x.dtype.kind == "f":
            return self.op("math.absf", x.dtype, x)
        if x.dtype.kind == "c":
            return self.complex_abs(x)
        return self.op("math.absi", x.dtype, x) if x.dtype.kind == "i" else x

    def sign(self, x: Scalar) -> Scalar:
        if x.dtype.kind in "ub":
            return self.cast(self.ne(x, self.const(0, x.dtype)), x.dtype)
        if x.dtype.kind == "c":
            return self.complex_sign(x)
        zero = self.const(0, x.dtype)
        up = self.select(self.gt(x, zero), self.const(1, x.dtype), zero)
        result = self.select(self.lt(x, zero), self.const(-1, x.dtype), up)
        return self.select(self.isnan(x), x, result) if x.dtype.kind == "f" else result

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        """The smaller one; NaN wins."""
        return self._extremum(x, y, "arith.minimumf", "arith.minsi", "arith.minui", self.lt)

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        """The larger one; NaN wins."""
        return self._extremum(x, y, "arith.maximumf", "arith.maxsi", "arith.maxui", self.gt)

    def _extremum(
        self, x: Scalar, y: Scalar, floating: str, signed: str, unsigned: str, better: Any
    ) -> Scalar:
        if x.dtype.kind == "c":
            keep = self.logical_or(better(x, y), self.logical_or(self.isnan(x), self.eq(x, y)))
            return self.select(keep, x, y)
        return self.op(self._by_kind(x, floating, signed, unsigned), x.dtype, x, y)

    # -- comparison and logic --------------------------------------------------------------------------------

    def _compare(self, x: Scalar, y: Scalar, floating: int, signed: int, unsigned: int) -> Scalar:
        predicate = floating if x.dtype.kind == "f" else signed if x.dtype.kind == "i" else unsigned
        i64 = self.ir.IntegerType.get_signless(64)
        name = "arith.cmpf" if x.dtype.kind == "f" else "arith.cmpi"
        return self.op(name, _BOOL, x, y, predicate=self.ir.IntegerAttr.get(i64, predicate))

    def eq(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.op("complex.eq", _BOOL, x, y)
        return self._compare(x, y, 1, 0, 0)

    def ne(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.op("complex.neq", _BOOL, x, y)
        return self._compare(x, y, 13, 1, 1)

    def lt(self, x: Scalar, y: Scalar) -> Scalar:
        return self.complex_order(x, y, self.lt) if x.dtype.kind == "c" else self._compare(x, y, 4, 2, 6)

    def le(self, x: Scalar, y: Scalar) -> Scalar:
        return self.complex_order(x, y, self.le) if x.dtype.kind == "c" else self._compare(x, y, 5, 3, 7)

    def gt(self, x: Scalar, y: Scalar) -> Scalar:
        return self.complex_order(x, y, self.gt) if x.dtype.kind == "c" else self._compare(x, y, 2, 4, 8)

    def ge(self, x: Scalar, y: Scalar) -> Scalar:
        return self.complex_order(x, y, self.ge) if x.dtype.kind == "c" else self._compare(x, y, 3, 5, 9)

    def truth(self, x: Scalar) -> Scalar:
        """Nonzero, as a bool (NaN is true)."""
        return x if x.dtype == _BOOL else self.logical_not(self.eq(x, self.const(0, x.dtype)))

    def logical_not(self, x: Scalar) -> Scalar:
        x = self.truth(x)
        return self.op("arith.xori", _BOOL, x, self.const(True, _BOOL))

    def logical_and(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.andi", _BOOL, self.truth(x), self.truth(y))

    def logical_or(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.ori", _BOOL, self.truth(x), self.truth(y))

    def logical_xor(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.xori", _BOOL, self.truth(x), self.truth(y))

    def and_(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.andi", x.dtype, x, y)

    def or_(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.ori", x.dtype, x, y)

    def xor(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.xori", x.dtype, x, y)

    def invert(self, x: Scalar) -> Scalar:
        if x.dtype == _BOOL:
            return self.logical_not(x)
        ones = -1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max
        return self.xor(x, self.const(ones, x.dtype))

    def shl(self, x: Scalar, y: Scalar) -> Scalar:
        """Left shift; shifting by the width or more gives 0, as in NumPy."""
        over, amount = self._shift_amount(y)
        return self.select(over, self.const(0, x.dtype), self.op("arith.shli", x.dtype, x, amount))

    def shr(self, x: Scalar, y: Scalar) -> Scalar:
        """Right shift (arithmetic for signed); over-wide shifts give 0 or -1, as in NumPy."""
        over, amount = self._shift_amount(y)
        if x.dtype.kind == "i":
            wide = self.select(
                self.lt(x, self.const(0, x.dtype)), self.const(-1, x.dtype), self.const(0, x.dtype)
            )
            return self.select(over, wide, self.op("arith.shrsi", x.dtype, x, amount))
        return self.select(over, self.const(0, x.dtype), self.op("arith.shrui", x.dtype, x, amount))

    def _shift_amount(self, y: Scalar) -> tuple[Scalar, Scalar]:
        bits = y.dtype.itemsize * 8
        over = self._compare(
            y, self.const(bits, y.dtype), 0, 9, 9
        )  # unsigned >=: catches negative amounts too
        return over, self.select(over, self.const(0, y.dtype), y)

    def select(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        return self.op("arith.select", x.dtype, self.truth(condition), x, y)

    # -- rounding, classification, functions -----------------------------------------------------------------

    def _rounding(self, x: Scalar, name: str) -> Scalar:
        return self.op(name, x.dtype, x) if x.dtype.kind == "f" else x

    def floor(self, x: Scalar) -> Scalar:
        return self._rounding(x, "math.floor")

    def ceil(self, x: Scalar) -> Scalar:
        return self._rounding(x, "math.ceil")

    def trunc(self, x: Scalar) -> Scalar:
        return self._rounding(x, "math.trunc")

    def rint(self, x: Scalar) -> Scalar:
        """Nearest integer, halves to even."""
        return self._rounding(x, "math.roundeven")

    def isnan(self, x: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.logical_or(self.isnan(self.real(x)), self.isnan(self.imag(x)))
        return self._compare(x, x, 14, 1, 1)

    def isinf(self, x: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return self.logical_or(self.isinf(self.real(x)), self.isinf(self.imag(x)))
        if x.dtype.kind != "f":
            return self.const(False, _BOOL)
        return self.eq(self.abs(x), self.const(np.inf, x.dtype))

    def pow(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "f":
            return self.math("pow", x, y)
        if x.dtype.kind == "c":
            return self.complex_pow(x, y)
        return self._integer_pow(x, y)

    def _integer_pow(self, x: Scalar, y: Scalar) -> Scalar:
        """Square and multiply over the bits of y, which is not negative.

        Unrolled, so that loops compute several elements at once. Of 64 bits a loop that ends at the highest
        bit of y is shorter: processors multiply such numbers one by one, or slowly.
        """
        if x.dtype.itemsize == 8:
            wide = np.dtype("uint64")
            power = self.call(
                "graphc_scalar.whole_power", self.reinterpret(x, wide), self.reinterpret(y, wide)
            )
            return self.reinterpret(power, x.dtype)
        zero, one = self.const(0, x.dtype), self.const(1, x.dtype)
        result, base = one, x
        for bit in range(x.dtype.itemsize * 8):
            factor = self.and_(self.op("arith.shrui", y.dtype, y, self.const(bit, y.dtype)), one)
            result = self.select(self.ne(factor, zero), self.mul(result, base), result)
            base = self.mul(base, base)
        return result

    def math(self, name: str, *xs: Scalar) -> Scalar:
        """A libm-style function by its C name; float16 is computed in float32.

        Functions the math dialect does not have (`lgamma`, `tgamma`) become calls of the C library.
        """
        dtype = xs[0].dtype
        if dtype.kind == "c":
            return complex_functions.apply(self, name, *xs)
        if dtype == np.float16:
            single = np.dtype("float32")
            return self.cast(self.math(name, *(self.cast(x, single) for x in xs)), dtype)
        if name == "pow":
            return self.op("math.powf", dtype, *xs)
        if name in ("lgamma", "tgamma"):
            # The single precision functions are up to 7 units in the last place off.
            return self.external(name, *xs)
        return self.op(f"math.{name}", dtype, *xs)

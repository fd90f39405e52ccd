# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``ScalarBuilder``: dtype-aware scalar code at the current insertion point.

Rows of the operation table describe their scalar lowering with it (`scalar=lambda b, x, y: b.add(x, y)`). It
knows NumPy's semantics for every dtype: bool, signed, unsigned, floating and complex. No method can trap or
invoke undefined behaviour: integer division by zero gives 0, over-wide shifts give 0 or the sign, casts
saturate the way the hardware does for the values NumPy itself leaves undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.build import compute_name, declare
from graphc.ir.helpers import declare_helper
from graphc.library.helpers import PURE, ScalarCall
from graphc.lowering import complex_functions
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


# How rows of the elementwise table name scalar kernels.
_SCALAR = "graphc_scalar."
_DOUBLE = np.dtype("float64")
# Contraction into fused multiply-add is the one liberty taken with elementwise arithmetic.
_CONTRACT = "#arith.fastmath<contract>"
_BOOL = np.dtype("bool")
# Predicates of comparisons: of floats, signed and unsigned integers.
_PREDICATES = {
    "eq": (1, 0, 0),
    "ne": (13, 1, 1),
    "lt": (4, 2, 6),
    "le": (5, 3, 7),
    "gt": (2, 4, 8),
    "ge": (3, 5, 9),
    "unordered": (14, 1, 1),
    "above or same": (0, 9, 9),
}
# Operations on floats, signed and unsigned integers, bools and complex numbers.
_OPERATIONS = {
    "add": ("arith.addf", "arith.addi", "arith.addi", "arith.ori", "complex.add"),
    "sub": ("arith.subf", "arith.subi", "arith.subi", "arith.xori"),
    "mul": ("arith.mulf", "arith.muli", "arith.muli", "arith.andi"),
    "minimum": ("arith.minimumf", "arith.minsi", "arith.minui", "arith.minui"),
    "maximum": ("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.maxui"),
}


def _part(dtype: np.dtype) -> np.dtype:
    """Dtype of the parts of complex numbers."""
    return np.dtype(f"float{dtype.itemsize * 4}")


@record(frozen=True)
class Scalar:
    """A scalar SSA value and the dtype it stands for.

    Attributes:
        value: the MLIR value, of the dtype's compute type.
        dtype: what the bits mean (signedness is not in the MLIR type).
    """

    value: ir.Value
    dtype: np.dtype


class ScalarBuilder:
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
            return self.complex(*(self.const(x, _part(dtype)) for x in (value.real, value.imag)))
        mlir_type = self.type(dtype)
        if dtype.kind == "f":
            attribute = self.ir.FloatAttr.get(mlir_type, float(np.asarray(value, dtype)))
        else:
            bits = 1 if dtype == _BOOL else dtype.itemsize * 8
            number = int(np.asarray(value, dtype))
            number = number - (1 << bits) if number >= 1 << (bits - 1) else number
            attribute = self.ir.IntegerAttr.get(mlir_type, number)
        return self.op("arith.constant", dtype, value=attribute)

    def _by_kind(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        return self.op(_OPERATIONS[name]["fiubc".index(x.dtype.kind)], x.dtype, x, y)

    # -- arithmetic ------------------------------------------------------------------------------------------

    def add(self, x: Scalar, y: Scalar) -> Scalar:
        return self._by_kind("add", x, y)

    def sub(self, x: Scalar, y: Scalar) -> Scalar:
        # MLIR takes differences of complex sums, and sums of differences, for x, whatever has been rounded.
        return self.add(x, self.neg(y)) if x.dtype.kind == "c" else self._by_kind("sub", x, y)

    def mul(self, x: Scalar, y: Scalar) -> Scalar:
        is_complex = x.dtype.kind == "c"
        return complex_functions.apply(self, "mul", x, y) if is_complex else self._by_kind("mul", x, y)

    def truediv(self, x: Scalar, y: Scalar) -> Scalar:
        if x.dtype.kind == "c":
            return complex_functions.apply(self, "truediv", x, y)
        if x.dtype.kind != "f":
            float64 = np.dtype("float64")
            x, y = self.cast(x, float64), self.cast(y, float64)
        return self.op("arith.divf", x.dtype, x, y)

    def reciprocal(self, x: Scalar) -> Scalar:
        is_complex = x.dtype.kind == "c"
        one = self.const(1, x.dtype)
        return complex_functions.apply(self, "reciprocal", x) if is_complex else self.truediv(one, x)

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
        """Magnitude; complex input gives a real result. That of -x is that of x, which others may have."""
        if x.dtype.kind == "f":
            op = x.value.owner
            negated = not isinstance(op, self.ir.Block) and op.name == "arith.negf"
            return self.op("math.absf", x.dtype, Scalar(op.operands[0], x.dtype) if negated else x)
        if x.dtype.kind == "c":
            return complex_functions.apply(self, "abs", x)
        return self.op("math.absi", x.dtype, x) if x.dtype.kind == "i" else x

    def sign(self, x: Scalar) -> Scalar:
        if x.dtype.kind in "ub":
            return self.cast(self.ne(x, self.const(0, x.dtype)), x.dtype)
        if x.dtype.kind == "c":
            return complex_functions.apply(self, "sign", x)
        zero = self.const(0, x.dtype)
        up = self.select(self.gt(x, zero), self.const(1, x.dtype), zero)
        result = self.select(self.lt(x, zero), self.const(-1, x.dtype), up)
        return self.select(self.isnan(x), x, result) if x.dtype.kind == "f" else result

    def minimum(self, x: Scalar, y: Scalar) -> Scalar:
        """The smaller one; NaN wins."""
        return self._extremum("minimum", x, y, self.lt)

    def maximum(self, x: Scalar, y: Scalar) -> Scalar:
        """The larger one; NaN wins."""
        return self._extremum("maximum", x, y, self.gt)

    def _extremum(
        self, name: str, x: Scalar, y: Scalar, better: Callable[[Scalar, Scalar], Scalar]
    ) -> Scalar:
        if x.dtype.kind != "c":
            return self._by_kind(name, x, y)
        keep = self.logical_or(better(x, y), self.logical_or(self.isnan(x), self.eq(x, y)))
        return self.select(keep, x, y)

    # -- comparison and logic --------------------------------------------------------------------------------

    def _compare(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        """By the predicate for floats (ordered, but for "ne"), signed or unsigned integers."""
        if x.dtype.kind == "c":
            return complex_functions.apply(self, name, x, y)
        predicate = _PREDICATES[name][min("fiub".index(x.dtype.kind), 2)]
        i64 = self.ir.IntegerType.get_signless(64)
        operation = "arith.cmpf" if x.dtype.kind == "f" else "arith.cmpi"
        return self.op(operation, _BOOL, x, y, predicate=self.ir.IntegerAttr.get(i64, predicate))

    def eq(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("complex.eq", _BOOL, x, y) if x.dtype.kind == "c" else self._compare("eq", x, y)

    def ne(self, x: Scalar, y: Scalar) -> Scalar:
        return self.op("complex.neq", _BOOL, x, y) if x.dtype.kind == "c" else self._compare("ne", x, y)

    def lt(self, x: Scalar, y: Scalar) -> Scalar:
        return self._compare("lt", x, y)

    def le(self, x: Scalar, y: Scalar) -> Scalar:
        return self._compare("le", x, y)

    def gt(self, x: Scalar, y: Scalar) -> Scalar:
        return self._compare("gt", x, y)

    def ge(self, x: Scalar, y: Scalar) -> Scalar:
        return self._compare("ge", x, y)

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
        over = self._compare("above or same", y, self.const(bits, y.dtype))  # negative amounts, too
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
        return self._compare("unordered", x, x)

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
            return complex_functions.apply(self, "pow", x, y)
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

    # -- calls -----------------------------------------------------------------------------------------------

    def fma(self, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        """x * y + z of float32 or float64, rounded once."""
        return self.op("math.fma", x.dtype, x, y, z)

    def external(self, symbol: str, *xs: Scalar) -> Scalar:
        """A pure function ``double symbol(double, ...)``, for operands and a result of any float dtype.

        Args:
            symbol: a name that `graphc_runtime.symbols` resolves, such as ``special_d_dawsn``, or that of a
                scalar kernel (`graphc.library.scalars`), such as ``graphc_scalar.zeta``.
            xs: operands of one dtype.
        """
        return self.cast(self.call(symbol, *(self.cast(x, _DOUBLE) for x in xs)), xs[0].dtype)

    def call(self, symbol: str, *xs: Scalar) -> Scalar:
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

    # -- parts of complex numbers ----------------------------------------------------------------------------

    def complex(self, real: Scalar, imag: Scalar) -> Scalar:
        return self.op("complex.create", np.dtype(f"complex{real.dtype.itemsize * 16}"), real, imag)

    def real(self, x: Scalar) -> Scalar:
        return self.op("complex.re", _part(x.dtype), x) if x.dtype.kind == "c" else x

    def imag(self, x: Scalar) -> Scalar:
        return self.op("complex.im", _part(x.dtype), x) if x.dtype.kind == "c" else self.const(0, x.dtype)

    def conj(self, x: Scalar) -> Scalar:
        return self.complex(self.real(x), self.neg(self.imag(x))) if x.dtype.kind == "c" else x

    def angle(self, x: Scalar) -> Scalar:
        return self.math("atan2", self.imag(x), self.real(x))

    # -- casts, with the semantics of NumPy's `astype` -------------------------------------------------------

    def cast(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """Converts a scalar; complex to real drops the imaginary part, anything to bool is `!= 0`."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if dtype == _BOOL:
            return self.truth(x)
        if x.dtype.kind == "c":
            if dtype.kind == "c":
                part = _part(dtype)
                return self.complex(self.cast(self.real(x), part), self.cast(self.imag(x), part))
            return self.cast(self.real(x), dtype)
        if dtype.kind == "c":
            return self.complex(self.cast(x, _part(dtype)), self.const(0, _part(dtype)))
        if x.dtype.kind == "f":
            return self._float_to_float(x, dtype) if dtype.kind == "f" else self._float_to_int(x, dtype)
        if dtype.kind == "f":
            return self.op("arith.sitofp" if x.dtype.kind == "i" else "arith.uitofp", dtype, x)
        return self._int_to_int(x, dtype)

    def _float_to_float(self, x: Scalar, dtype: np.dtype) -> Scalar:
        if dtype.itemsize > x.dtype.itemsize:
            return self.op("arith.extf", dtype, x)
        if x.dtype == np.float64 and dtype == np.float16:
            x = self._round_to_odd(x)
        return self.op("arith.truncf", dtype, x)

    def _round_to_odd(self, x: Scalar) -> Scalar:
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

    def _float_to_int(self, x: Scalar, dtype: np.dtype) -> Scalar:
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

    def _float_to_uint64(self, x: Scalar) -> Scalar:
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

    def _int_to_int(self, x: Scalar, dtype: np.dtype) -> Scalar:
        source = 1 if x.dtype == _BOOL else x.dtype.itemsize * 8
        target = dtype.itemsize * 8
        if source == target:
            return self.reinterpret(x, dtype)
        if target < source:
            return self.op("arith.trunci", dtype, x)
        return self.op("arith.extsi" if x.dtype.kind == "i" else "arith.extui", dtype, x)

    # -- bools, which are bytes in memory -------------------------------------------------------------------

    def loaded(self, value: ir.Value, dtype: np.dtype) -> Scalar:
        """A scalar from how it is kept in memory."""
        if dtype != _BOOL:
            return Scalar(value, dtype)
        byte = Scalar(value, np.dtype("uint8"))
        return self.ne(byte, self.const(0, byte.dtype))

    def stored(self, x: Scalar) -> ir.Value:
        """A scalar as it is kept in memory."""
        return (self.cast(x, np.dtype("uint8")) if x.dtype == _BOOL else x).value

    def reinterpret(self, x: Scalar, dtype: np.dtype) -> Scalar:
        """The same bits read as another integer dtype of the same width."""
        return type(x)(x.value, np.dtype(dtype))

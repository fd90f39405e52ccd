# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar arithmetic written as Python expressions that build `arith` and `math` operations.

`Format` has the constants of the binary floating-point formats that the expansions compute in.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from graphc.ir.value import OPERATIONS
from graphc.native.value import Val
from graphc_dialects._mlir import ir
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


# arith.cmpf predicates; the unordered ones are true for NaN.
_OEQ, _OGT, _OLT, _UGT = 1, 2, 4, 9

# Coefficients above which a polynomial is evaluated as two chains: exp has ten, and its chain would be half
# of what is under way.
_LONG = 9


class Number(Val):
    """An SSA value of float or integer type. Operators build operations without fast-math flags."""

    __slots__ = ("builder", "is_float", "value")

    def __init__(self, builder: Builder, value: ir.Value, is_float: bool) -> None:
        self.builder = builder
        self.value = value
        self.is_float = is_float

    def _apply(self, name: str, *operands: Number | float) -> Number:
        b, kind = self.builder, self.value.type
        values = [x if isinstance(x, Number) else self._constant(x) for x in operands]
        operation = OPERATIONS[name][self.is_float]
        return Number(b, b.create(operation, kind, [x.value for x in values]), self.is_float)

    def _constant(self, value: float) -> Number:
        return self.builder.const(value) if self.is_float else self.builder.integer(int(value))


class Builder:
    """Builds at `ip`, in the float format of `value_type` (a scalar or vector of f32 or f64)."""

    def __init__(self, ip: ir.InsertionPoint, loc: ir.Location, value_type: ir.Type, fmt: Format) -> None:
        self.ip = ip
        self.loc = loc
        self.format = fmt
        self.float_type = value_type
        self.integer_type = self._like(ir.IntegerType.get_signless(fmt.width))
        self.flag_type = self._like(ir.IntegerType.get_signless(1))
        self._constants: dict[tuple[bool, float | int, bool], Number] = {}

    def _like(self, element: ir.Type) -> ir.Type:
        if isinstance(self.float_type, ir.VectorType):
            return ir.VectorType.get(self.float_type.shape, element)
        return element

    def create(
        self,
        name: str,
        result: ir.Type,
        operands: Sequence[Any],
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> Any:
        """The result of one operation."""
        return ir.Operation.create(
            name, results=[result], operands=operands, attributes=attributes, loc=self.loc, ip=self.ip
        ).result

    def number(self, value: ir.Value) -> Number:
        """An existing float SSA value."""
        return Number(self, value, True)

    def const(self, value: float | Fraction) -> Number:
        """A float constant, rounded to the format."""
        return self._constant(self.format.round(value), True)

    def integer(self, value: int) -> Number:
        """An integer constant of the format's width, given as its unsigned encoding or a negative number."""
        half = 1 << (self.format.width - 1)
        return self._constant((value + half) % (2 * half) - half, False)

    def _constant(self, value: float | int, is_float: bool) -> Number:
        key = (is_float, value, str(value)[0] == "-")  # -0.0 == 0.0
        known = self._constants.get(key)
        if known is not None:
            return known
        kind = self.float_type if is_float else self.integer_type
        vector = isinstance(kind, ir.VectorType)
        element = kind.element_type if vector else kind
        attribute: ir.Attribute = (
            ir.FloatAttr.get(element, value) if is_float else ir.IntegerAttr.get(element, int(value))
        )
        if vector:
            attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
        number = Number(self, self.create("arith.constant", kind, [], {"value": attribute}), is_float)
        self._constants[key] = number
        return number

    def fma(self, a: Number | float, b: Number | float, c: Number | float) -> Number:
        """`a * b + c`, rounded once."""
        operands = [(x if isinstance(x, Number) else self.const(x)).value for x in (a, b, c)]
        return Number(self, self.create("math.fma", self.float_type, operands), True)

    def polynomial(self, x: Number, coefficients: Sequence[float], square: Number | None = None) -> Number:
        """Sum of `coefficients[i] x^i` by Horner's rule; `square` is `x^2` where that is known.

        Loop iterations overlap, which hides latency as far as the processor's window reaches: a long sum is
        evaluated as two chains in `x^2`, but for the last step, which rounds what counts most.
        """
        if len(coefficients) <= _LONG:
            return self._horner(x, coefficients)
        square, (first, *rest) = square or x * x, coefficients
        even, odd = (self._horner(square, rest[start::2]) for start in (0, 1))
        return self.fma(self.fma(odd, x, even), x, first)

    def _horner(self, x: Number, coefficients: Sequence[float]) -> Number:
        total = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def bits(self, x: Number) -> Number:
        """The encoding of a float as an integer."""
        return Number(self, self.create("arith.bitcast", self.integer_type, [x.value]), False)

    def from_bits(self, n: Number) -> Number:
        """The float with a given encoding."""
        return Number(self, self.create("arith.bitcast", self.float_type, [n.value]), True)

    def _compare(self, predicate: int, a: Number, b: Number | float) -> Number:
        other = b if isinstance(b, Number) else self.const(b)
        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        flag = self.create("arith.cmpf", self.flag_type, [a.value, other.value], {"predicate": attribute})
        return Number(self, flag, False)

    def equal(self, a: Number, b: Number | float) -> Number:
        return self._compare(_OEQ, a, b)

    def greater(self, a: Number, b: Number | float) -> Number:
        return self._compare(_OGT, a, b)

    def less(self, a: Number, b: Number | float) -> Number:
        return self._compare(_OLT, a, b)

    def greater_or_nan(self, a: Number, b: Number | float) -> Number:
        return self._compare(_UGT, a, b)

    def select(self, flag: Number, a: Number | float, b: Number | float) -> Number:
        """`a if flag else b`."""
        x, y = ((v if isinstance(v, Number) else self.const(v)) for v in (a, b))
        value = self.create("arith.select", x.value.type, [flag.value, x.value, y.value])
        return Number(self, value, x.is_float)

    def at_most(self, x: Number, limit: Number | float) -> Number:
        """The smaller of both, NaN if `x` is: the form of one x86 `min` instruction."""
        bound = limit if isinstance(limit, Number) else self.const(limit)
        return self.select(self._compare(_OLT, bound, x), bound, x)

    def at_least(self, x: Number, limit: Number | float) -> Number:
        """The larger of both, NaN if `x` is."""
        bound = limit if isinstance(limit, Number) else self.const(limit)
        return self.select(self._compare(_OGT, bound, x), bound, x)

    def quotient(self, a: Number, b: Number) -> Number:
        """`a / b`, which devices may round by a unit in the last place more."""
        approximate = {"fastmath": ir.Attribute.parse("#arith.fastmath<afn>")}
        return Number(self, self.create("arith.divf", self.float_type, [a.value, b.value], approximate), True)

    def sqrt(self, x: Number) -> Number:
        return Number(self, self.create("math.sqrt", self.float_type, [x.value]), True)

    def copysign(self, magnitude: Number, sign: Number) -> Number:
        return Number(
            self, self.create("math.copysign", self.float_type, [magnitude.value, sign.value]), True
        )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on numbers, in the bodies of nests: in float64, if nothing else is said."""

from __future__ import annotations

from graphc.ir import build
from graphc_dialects._mlir import ir

# Predicates of `arith.cmpf`: ordered, and equal, less, or one of both.
_EQUAL, _LESS, _NOT_MORE = 1, 4, 5


def real(name: str, *operands: ir.Value) -> ir.Value:
    """An operation on numbers of the same type; its result is of that, too, and of integers in float64."""
    kind = operands[0].type
    kind = kind if kind == ir.F32Type.get() else ir.F64Type.get()
    return build.create(name, [kind], list(operands)).result


def real_constant(value: float) -> ir.Value:
    """A number."""
    kind = ir.F64Type.get()
    return build.create("arith.constant", [kind], [], value=ir.FloatAttr.get(kind, value)).result


def is_less(a: ir.Value, b: ir.Value, *, or_equal: bool = False) -> ir.Value:
    """Whether a is less than b, and neither is NaN."""
    return _compared(a, b, _NOT_MORE if or_equal else _LESS)


def _compared(a: ir.Value, b: ir.Value, predicate: int) -> ir.Value:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return build.create("arith.cmpf", [ir.IntegerType.get_signless(1)], [a, b], predicate=attribute).result


class Real:
    """A number; operators make operations, in their order."""

    __slots__ = ("value",)

    def __init__(self, value: ir.Value | float) -> None:
        self.value = real_constant(value) if isinstance(value, float) else value

    def _with(self, name: str, other: Real | float, swap: bool = False) -> Real:
        x, y = self.value, _value(other)
        return Real(real(f"arith.{name}f", y, x) if swap else real(f"arith.{name}f", x, y))

    def __add__(self, other: Real | float) -> Real:
        return self._with("add", other)

    def __radd__(self, other: float) -> Real:
        return self._with("add", other, swap=True)

    def __sub__(self, other: Real | float) -> Real:
        return self._with("sub", other)

    def __rsub__(self, other: float) -> Real:
        return self._with("sub", other, swap=True)

    def __mul__(self, other: Real | float) -> Real:
        return self._with("mul", other)

    def __rmul__(self, other: float) -> Real:
        return self._with("mul", other, swap=True)

    def __truediv__(self, other: Real | float) -> Real:
        return self._with("div", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._with("div", other, swap=True)

    def __neg__(self) -> Real:
        return Real(real("arith.negf", self.value))

    def __lt__(self, other: Real | float) -> ir.Value:
        return is_less(self.value, _value(other))

    def __le__(self, other: Real | float) -> ir.Value:
        return is_less(self.value, _value(other), or_equal=True)

    def __gt__(self, other: Real | float) -> ir.Value:
        return is_less(_value(other), self.value)

    def equals(self, other: Real | float) -> ir.Value:
        """Whether both are the same number."""
        return _compared(self.value, _value(other), _EQUAL)

    def of(self, function: str) -> Real:
        """A function of the math dialect."""
        return Real(real(f"math.{function}", self.value))

    def power(self, exponent: Real) -> Real:
        """Raised to a power."""
        return Real(real("math.powf", self.value, exponent.value))


def chosen(condition: ir.Value, a: Real | float, b: Real | float) -> Real:
    """One of two numbers."""
    return Real(build.select(condition, _value(a), _value(b)))


def _value(x: Real | float) -> ir.Value:
    return x.value if isinstance(x, Real) else real_constant(x)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers as unsigned integers in the same order, with NaN last."""

from __future__ import annotations

import numpy as np

from graphc.ir import build
from graphc_dialects._mlir import ir

# Predicates of `arith.cmpi` and `arith.cmpf`.
EQUAL, ABOVE, _UNORDERED = 0, 8, 14


class Keys:
    """The keys of a real element type, of 32 or 64 bits.

    Args:
        dtype: of the numbers.
        exact: whether -0.0 comes before 0.0, and is not its equal.
    """

    def __init__(self, dtype: np.dtype, *, exact: bool) -> None:
        self._dtype, self._exact = dtype, exact
        self.width = 64 if dtype.itemsize == 8 else 32
        self.type = ir.IntegerType.get_signless(self.width)
        self._sign = 1 << (self.width - 1)

    def constant(self, number: int) -> ir.Value:
        """A key by its bits as a signed number."""
        found: ir.Value = build.create(
            "arith.constant", [self.type], [], value=ir.IntegerAttr.get(self.type, number)
        ).result
        return found

    def last(self) -> ir.Value:
        """The key of NaN: none comes after it."""
        return self.constant(-1)

    def of(self, value: ir.Value) -> ir.Value:
        """The key of a number as it is in memory."""
        if self._dtype.kind != "f":
            signed = self._dtype.kind == "i"
            if ir.IntegerType(value.type).width < self.width:
                value = self._op("extsi" if signed else "extui", value)
            return self._op("xori", value, self._signs()) if signed else value
        if self._dtype == np.float16:
            value = build.create("arith.extf", [ir.F32Type.get()], [value]).result
        bits = self._op("bitcast", value)
        if not self._exact:
            bits = build.select(build.compare_index(EQUAL, bits, self._signs()), self.constant(0), bits)
        negative = self._op("shrsi", bits, self.constant(self.width - 1))
        key = self._op("xori", bits, self._op("ori", negative, self._signs()))
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _UNORDERED)
        bit = ir.IntegerType.get_signless(1)
        is_nan = build.create("arith.cmpf", [bit], [value, value], predicate=predicate).result
        return build.select(is_nan, self.last(), key)

    def number(self, key: ir.Value, kind: ir.Type) -> ir.Value:
        """The number of a key, as it is in memory."""
        if self._dtype.kind != "f":
            bits = self._op("xori", key, self._signs()) if self._dtype.kind == "i" else key
            return bits if kind == self.type else build.create("arith.trunci", [kind], [bits]).result
        top = self._op("shrui", key, self.constant(self.width - 1))
        flipped = self._op("ori", self._op("subi", top, self.constant(1)), self._signs())
        wide = ir.F64Type.get() if self.width == 64 else ir.F32Type.get()
        value = build.create("arith.bitcast", [wide], [self._op("xori", key, flipped)]).result
        return value if kind == wide else build.create("arith.truncf", [kind], [value]).result

    def _signs(self) -> ir.Value:
        return self.constant(-self._sign)

    def _op(self, name: str, *operands: ir.Value) -> ir.Value:
        found: ir.Value = build.create(f"arith.{name}", [self.type], list(operands)).result
        return found

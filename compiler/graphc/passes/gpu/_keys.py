# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers as unsigned integers in the same order, with NaN last."""

from __future__ import annotations

import numpy as np

from graphc.ir import build
from graphc.ir.value import converted, literal
from graphc_dialects._mlir import ir


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

    def last(self) -> ir.Value:
        """The key of NaN: none comes after it."""
        return literal(-1, self.type)

    def of(self, value: ir.Value) -> ir.Value:
        """The key of a number as it is in memory."""
        if self._dtype.kind != "f":
            signed = self._dtype.kind == "i"
            if ir.IntegerType(value.type).width < self.width:
                value = self._op("extsi" if signed else "extui", value)
            return value ^ -self._sign if signed else value
        if self._dtype == np.float16:
            value = build.create("arith.extf", [ir.F32Type.get()], [value]).result
        bits = self._op("bitcast", value)
        if not self._exact:
            bits = build.select(bits.equals(-self._sign), 0, bits)
        negative = self._op("shrsi", bits, literal(self.width - 1, self.type))
        key = bits ^ (negative | -self._sign)
        # NaN alone differs from itself.
        return build.select(value.differs(value), self.last(), key)

    def number(self, key: ir.Value, kind: ir.Type) -> ir.Value:
        """The number of a key, as it is in memory."""
        if self._dtype.kind != "f":
            return converted(key ^ -self._sign if self._dtype.kind == "i" else key, kind)
        flipped = ((key >> (self.width - 1)) - 1) | -self._sign
        wide = ir.F64Type.get() if self.width == 64 else ir.F32Type.get()
        value = build.create("arith.bitcast", [wide], [key ^ flipped]).result
        return value if kind == wide else build.create("arith.truncf", [kind], [value]).result

    def _op(self, name: str, *operands: ir.Value) -> ir.Value:
        return build.create(f"arith.{name}", [self.type], list(operands)).result

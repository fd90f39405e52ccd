# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on numbers in float64, in the bodies of nests."""

from __future__ import annotations

from graphc.ir import build
from graphc_dialects._mlir import ir

# Predicates of `arith.cmpf`: ordered and less; or equal.
_LESS, _NOT_MORE = 4, 5


def real(name: str, *operands: ir.Value) -> ir.Value:
    """An operation."""
    return build.create(name, [ir.F64Type.get()], list(operands)).result


def real_constant(value: float) -> ir.Value:
    """A number."""
    kind = ir.F64Type.get()
    return build.create("arith.constant", [kind], [], value=ir.FloatAttr.get(kind, value)).result


def is_less(a: ir.Value, b: ir.Value, *, or_equal: bool = False) -> ir.Value:
    """Whether a is less than b, and neither is NaN."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _NOT_MORE if or_equal else _LESS)
    return build.create("arith.cmpf", [ir.IntegerType.get_signless(1)], [a, b], predicate=predicate).result

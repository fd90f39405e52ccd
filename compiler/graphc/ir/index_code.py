# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on index values at the current insertion point."""

from __future__ import annotations

from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir


def binary(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.<name>` on index values at the current insertion point, folded where both are literals or the
    second is 0.
    """
    left, right = constant_value(a), constant_value(b)
    if right == 0 and name in ("addi", "subi"):
        return a
    if left is not None and right is not None:
        folded = {"addi": left + right, "subi": left - right, "minsi": min(left, right)}.get(name)
        if folded is not None:
            return const_index(folded)
    return ir.Operation.create(f"arith.{name}", [ir.IndexType.get()], [a, b]).result


def compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.cmpi` on index values; predicates are numbered as in MLIR (0 eq)."""
    i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
    attributes = {"predicate": ir.IntegerAttr.get(i64, predicate)}
    return ir.Operation.create("arith.cmpi", [i1], [a, b], attributes).result


def predicate_of(comparison: ir.Operation) -> int:
    """The predicate of an `arith.cmpi`, by its number."""
    return int(comparison.attributes["predicate"].value)


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.select` at the current insertion point."""
    return ir.Operation.create("arith.select", [a.type], [condition, a, b]).result

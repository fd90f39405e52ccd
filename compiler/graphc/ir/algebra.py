# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that the files of rewrite rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ir.rewrite import Rewriter, Rule, RuleTable, tensor_type
from graphc_dialects._mlir import ir


def registrar(table: RuleTable) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator `@rule("add", "sub")` that appends a rule for these graphc operations to the table."""

    def rule(*names: str) -> Callable[[Rule], Rule]:
        def register(function: Rule) -> Rule:
            for name in names:
                table.setdefault(name if "." in name else f"graphc.{name}", []).append(function)
            return function

        return register

    return rule


def kind(rewriter: Rewriter, value: ir.Value) -> str:
    """NumPy kind of a tensor's dtype: b, i, u, f or c."""
    return rewriter.dtype(value).kind


def is_unit(value: ir.Value) -> bool:
    """True if every dimension is statically 1, so that the value broadcasts against anything."""
    return all(size == 1 for size in value.type.shape)


def unit_splat(rewriter: Rewriter, value: ir.Value) -> Any:
    """The number that a constant of unit shape holds, else None."""
    number = rewriter.splat(value)
    return number if number is not None and is_unit(value) else None


def split_constant(rewriter: Rewriter, op: ir.Operation) -> tuple[Any, Any] | None:
    """(other operand, number) of a binary operation with a constant of unit shape on one side."""
    x, y = op.operands
    number = unit_splat(rewriter, y)
    if number is not None:
        return x, number
    number = unit_splat(rewriter, x)
    return None if number is None else (y, number)


def broadcast_type(values: Sequence[ir.Value]) -> ir.RankedTensorType:
    """The type of an elementwise operation of tensors of one rank, with the last one's dtype."""
    shapes = zip(*(list(value.type.shape) for value in values), strict=True)
    # A known size says more than one that is not known, and 1 broadcasts.
    shape = [max(sizes, key=lambda size: (size != 1, size)) for sizes in shapes]
    return tensor_type(shape, values[-1].type.element_type)


def is_normal(number: Any) -> bool:
    """True if a number is finite and, for floats, neither zero nor subnormal."""
    if number.dtype.kind in "biu":
        return True
    if number.dtype.kind == "c" or not np.isfinite(number):
        return False
    return bool(abs(number) >= np.finfo(number.dtype).tiny)


def negated(rewriter: Rewriter, value: ir.Value) -> ir.Value:
    """`-value`, removing a negation instead where there is one."""
    inner = rewriter.operand_of(value, "graphc.neg")
    return inner if inner is not None else rewriter.create("graphc.neg", [value], value.type)


def unary(rewriter: Rewriter, name: str, value: Any) -> ir.Value:
    """An elementwise operation that keeps the type."""
    return rewriter.create(f"graphc.{name}", [value], value.type)


def guarded(rewriter: Rewriter, x: ir.Value, bound: float, value: ir.Value) -> ir.Value:
    """`value where x >= bound else nan`."""
    condition = tensor_type(x.type.shape, ir.IntegerType.get_signless(1))
    inside = rewriter.create("graphc.ge", [x, rewriter.scalar_like(bound, x)], condition)
    return rewriter.create("graphc.switch", [inside, value, rewriter.scalar_like(np.nan, x)], value.type)

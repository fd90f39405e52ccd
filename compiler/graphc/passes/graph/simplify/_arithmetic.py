# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums, products and quotients; the algebraic-simplification pass lists the rules and their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.algebra import is_normal, kind, negated, registrar, split_constant, unary, unit_splat
from graphc.ir.rewrite import Rewriter, RuleTable

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)


def _constant_like(rw: Rewriter, number: np.generic, op: ir.Operation) -> Any:
    return rw.scalar_like(number, op.results[0])


@_rule("add")
def add_zero(rw: Rewriter, op: ir.Operation) -> Any:
    if kind(rw, op.results[0]) == "b":
        return None
    x, y = op.operands
    for value, zero in ((x, y), (y, x)):
        number = rw.splat(zero)
        if number is not None and number == 0 and rw.can_replace(op, value):
            return value
    return None


@_rule("sub")
def sub_zero(rw: Rewriter, op: ir.Operation) -> Any:
    """x - 0 -> x; 0 - x -> -x."""
    x, y = op.operands
    if kind(rw, x) == "b":
        return None
    right = rw.splat(y)
    if right is not None and right == 0 and rw.can_replace(op, x):
        return x
    left = rw.splat(x)
    return negated(rw, y) if left is not None and left == 0 and rw.can_replace(op, y) else None


@_rule("sub", "xor")
def sub_self(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    return rw.full_like(0, x) if x == y and kind(rw, x) in "biu" else None


@_rule("mul", "true_div", "floor_div")
def mul_one(rw: Rewriter, op: ir.Operation) -> Any:
    """x * 1, x / 1 -> x; x * -1, x / -1 -> -x; integers also x // 1."""
    numbers = kind(rw, op.results[0])
    if numbers not in "iuf" or (op.name == "graphc.floor_div" and numbers == "f"):
        return None
    x, y = op.operands
    for value, factor in ((x, y), (y, x))[: 2 if op.name == "graphc.mul" else 1]:
        number = rw.splat(factor)
        if number is None or not rw.can_replace(op, value):
            continue
        if number == 1:
            return value
        if number == -1 and numbers != "u" and op.name != "graphc.floor_div":
            return negated(rw, value)
    return None


@_rule("mul")
def mul_zero(rw: Rewriter, op: ir.Operation) -> Any:
    """Integers only: 0 * inf and 0 * nan are NaN."""
    if kind(rw, op.results[0]) not in "iu":
        return None
    x, y = op.operands
    for value, zero in ((x, y), (y, x)):
        number = rw.splat(zero)
        if number is not None and number == 0 and rw.can_replace(op, value):
            return rw.full_like(0, op.results[0])
    return None


@_rule("mod")
def mod_one(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    if kind(rw, x) in "iu" and rw.is_splat(y, 1) and rw.can_replace(op, x):
        return rw.full_like(0, x)
    return None


@_rule("neg")
def neg_of(rw: Rewriter, op: Any) -> Any:
    """-(-x) -> x; -(x - y) -> y - x; -(x * c) -> x * -c."""
    inner = rw.defs.get(op.operands[0])
    if inner is None:
        return None
    if inner.name == "graphc.neg":
        return inner.operands[0]
    if inner.name == "graphc.sub":
        x, y = inner.operands
        return rw.create("graphc.sub", [y, x], op.results[0].type)
    if inner.name == "graphc.mul" and kind(rw, op.results[0]) in "if":
        found = split_constant(rw, inner)
        if found is not None:
            x, number = found
            with np.errstate(all="ignore"):
                return rw.create("graphc.mul", [x, _constant_like(rw, -number, op)], op.results[0].type)
    return None


@_rule("add", "sub")
def add_of_neg(rw: Rewriter, op: ir.Operation) -> Any:
    """x + (-y) -> x - y; (-x) + y -> y - x; x - (-y) -> x + y."""
    if kind(rw, op.results[0]) == "b":
        return None
    x, y = op.operands
    inner = rw.operand_of(y, "graphc.neg")
    if inner is not None:
        return rw.create(
            "graphc.sub" if op.name == "graphc.add" else "graphc.add", [x, inner], op.results[0].type
        )
    inner = rw.operand_of(x, "graphc.neg") if op.name == "graphc.add" else None
    return None if inner is None else rw.create("graphc.sub", [y, inner], op.results[0].type)


@_rule("mul", "true_div")
def signs_of_factors(rw: Rewriter, op: Any) -> Any:
    """(-x) * (-y) -> x * y; (-x) * c -> x * -c; the same for quotients."""
    if kind(rw, op.results[0]) not in "if":
        return None
    x, y = op.operands
    inner_x, inner_y = rw.operand_of(x, "graphc.neg"), rw.operand_of(y, "graphc.neg")
    if inner_x is not None and inner_y is not None:
        return rw.create(op.name, [inner_x, inner_y], op.results[0].type)
    for inner, other, swapped in ((inner_x, y, False), (inner_y, x, True)):
        number = None if inner is None else unit_splat(rw, other)
        if number is not None:
            with np.errstate(all="ignore"):
                flipped = _constant_like(rw, -number, op)
            return rw.create(op.name, [flipped, inner] if swapped else [inner, flipped], op.results[0].type)
    return None


@_rule("add")
def gather_added_constants(rw: Rewriter, op: Any) -> Any:
    """(x + c) + d -> x + (c + d)."""
    outer = split_constant(rw, op)
    inner_op = None if outer is None else rw.defining(outer[0], "graphc.add")
    inner = None if inner_op is None else split_constant(rw, inner_op)
    if outer is None or inner is None or kind(rw, op.results[0]) not in "iuf":
        return None
    x, c, d = inner[0], inner[1], outer[1]
    with np.errstate(all="ignore"):
        total = c + d
    if kind(rw, op.results[0]) == "f" and (np.sign(c) != np.sign(d) or not np.isfinite(total)):
        return None
    return rw.create("graphc.add", [x, _constant_like(rw, total, op)], op.results[0].type)


def _as_factor(rw: Rewriter, op: ir.Operation | None) -> tuple[Any, Any, bool] | None:
    """(x, c, divides) of x * c, c * x and x / c."""
    if op is None or op.name not in ("graphc.mul", "graphc.true_div"):
        return None
    if op.name == "graphc.mul":
        found = split_constant(rw, op)
        return None if found is None else (*found, False)
    x, y = op.operands
    number = unit_splat(rw, y)
    return None if number is None or kind(rw, x) != "f" else (x, number, True)


@_rule("mul", "true_div")
def gather_factors(rw: Rewriter, op: Any) -> Any:
    """Two multiplications or divisions by constants in a row become one.

    The combined constant must be normal, so that neither (x * 1e200) * 1e200 nor x * 1e-200 * 1e-200 loses
    values.
    """
    outer = _as_factor(rw, op)
    inner = None if outer is None else _as_factor(rw, rw.defs.get(outer[0]))
    if outer is None or inner is None or kind(rw, op.results[0]) not in "iuf":
        return None
    (x, c, inner_divides), (_, d, outer_divides) = inner, outer
    divides = inner_divides and outer_divides
    with np.errstate(all="ignore"):
        mixed = c / d if outer_divides else d / c
        number = c * d if inner_divides == outer_divides else mixed
    if not (is_normal(number) and is_normal(c) and is_normal(d)):
        return None
    name = "graphc.true_div" if divides else "graphc.mul"
    return rw.create(name, [x, _constant_like(rw, number, op)], op.results[0].type)


@_rule("true_div")
def div_by_power_of_two(rw: Rewriter, op: Any) -> Any:
    x, y = op.operands
    number = unit_splat(rw, y) if kind(rw, x) == "f" else None
    if number is None or not is_normal(number) or abs(np.frexp(number)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        inverse = number.dtype.type(1) / number
    return (
        rw.create("graphc.mul", [x, _constant_like(rw, inverse, op)], op.results[0].type)
        if is_normal(inverse)
        else None
    )


@_rule("true_div")
def one_over(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    if kind(rw, op.results[0]) == "f" and rw.is_splat(x, 1) and rw.can_replace(op, y):
        return unary(rw, "reciprocal", y)
    return None


@_rule("reciprocal")
def reciprocal_of(rw: Rewriter, op: ir.Operation) -> Any:
    """1 / (1 / x) -> x; 1 / (x / y) -> y / x; 1 / exp(x) -> exp(-x)."""
    inner = rw.defs.get(op.operands[0])
    if inner is None or kind(rw, op.results[0]) != "f":
        return None
    if inner.name == "graphc.reciprocal":
        return inner.operands[0]
    if inner.name == "graphc.true_div":
        x, y = inner.operands
        return rw.create("graphc.true_div", [y, x], op.results[0].type)
    return unary(rw, "exp", negated(rw, inner.operands[0])) if inner.name == "graphc.exp" else None


@_rule("mul", "true_div")
def factor_reciprocal(rw: Rewriter, op: ir.Operation) -> Any:
    """x * (1 / y) -> x / y; x / (1 / y) -> x * y."""
    if kind(rw, op.results[0]) != "f":
        return None
    x, y = op.operands
    inner = rw.operand_of(y, "graphc.reciprocal")
    if inner is not None:
        name = "graphc.true_div" if op.name == "graphc.mul" else "graphc.mul"
        return rw.create(name, [x, inner], op.results[0].type)
    inner = rw.operand_of(x, "graphc.reciprocal") if op.name == "graphc.mul" else None
    return None if inner is None else rw.create("graphc.true_div", [y, inner], op.results[0].type)


@_rule("mul")
def mul_self(rw: Rewriter, op: ir.Operation) -> Any:
    x, y = op.operands
    return unary(rw, "sqr", x) if x == y and kind(rw, x) in "iuf" else None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums, products and quotients; the algebraic-simplification pass lists the rules and their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.patterns import is_normal, kind, registrar, split_constant, unit_splat
from graphc.ir.rewrite import Rewriter, RuleTable

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)


def _constant_like(rw: Rewriter, number: np.generic, op: ir.Operation) -> ir.Value:
    return rw.scalar_like(number, op.results[0])


@_rule("neg")
def neg_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """-(x * c) -> x * -c."""
    inner = rw.defining(op.operands[0], "graphc.mul")
    found = None if inner is None or kind(rw, op.results[0]) not in "if" else split_constant(rw, inner)
    if found is None:
        return None
    x, number = found
    with np.errstate(all="ignore"):
        return rw.create("graphc.mul", [x, _constant_like(rw, -number, op)], op.results[0].type)


@_rule("mul", "true_div")
def signs_of_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """(-x) * c -> x * -c; the same for quotients."""
    if kind(rw, op.results[0]) not in "if":
        return None
    x, y = op.operands
    inner_x, inner_y = rw.operand_of(x, "graphc.neg"), rw.operand_of(y, "graphc.neg")
    for inner, other, swapped in ((inner_x, y, False), (inner_y, x, True)):
        number = None if inner is None else unit_splat(rw, other)
        if number is not None:
            with np.errstate(all="ignore"):
                flipped = _constant_like(rw, -number, op)
            return rw.create(op.name, [flipped, inner] if swapped else [inner, flipped], op.results[0].type)
    return None


@_rule("add")
def gather_added_constants(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
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
def gather_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
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
def div_by_power_of_two(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
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

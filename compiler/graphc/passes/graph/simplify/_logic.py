# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons, logic, extrema, selection and casts; the algebraic-simplification pass lists the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir.patterns import kind, registrar, split_constant
from graphc.ir.rewrite import Rewriter, RuleTable

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)

_SELF = {"eq": True, "ne": False, "lt": False, "le": True, "gt": False, "ge": True}
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@_rule(*_SELF)
def compare_self(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """x < x and x > x are false even for NaN; the others only for integers constant."""
    x, y = op.operands
    name = op.name[7:]
    if x != y or not (kind(rw, x) in "biu" or (name in ("lt", "gt") and kind(rw, x) == "f")):
        return None
    return rw.full_like(_SELF[name], op.results[0])


@_rule("logical_not", "invert")
def not_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """not not x; ~~x; not (a == b) and, for integers, not (a < b)."""
    inner = rw.defs.get(op.operands[0])
    if inner is None:
        return None
    boolean = kind(rw, op.operands[0]) == "b"
    if inner.name == op.name or (boolean and inner.name in ("graphc.logical_not", "graphc.invert")):
        x = inner.operands[0]
        return x if x.type == op.results[0].type else None
    opposite = _OPPOSITE.get(inner.name[7:]) if boolean else None
    if opposite is None or not (opposite in ("eq", "ne") or kind(rw, inner.operands[0]) in "biu"):
        return None
    return rw.create(f"graphc.{opposite}", list(inner.operands), op.results[0].type)


@_rule("maximum", "minimum", "and", "or", "logical_and", "logical_or")
def idempotent(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """f(x, x) -> x; f(f(x, y), y) -> f(x, y)."""
    x, y = op.operands
    if x.type.element_type != op.results[0].type.element_type:
        return None
    if x == y:
        return x
    for inner_value, other in ((x, y), (y, x)):
        inner = rw.defining(inner_value, op.name)
        if inner is not None and other in list(inner.operands) and rw.can_replace(op, inner_value):
            return inner_value
    return None


@_rule("maximum", "minimum")
def gather_bounds(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """maximum(maximum(x, c), d) -> maximum(x, maximum(c, d))."""
    outer = split_constant(rw, op)
    inner_op = None if outer is None else rw.defining(outer[0], op.name)
    inner = None if inner_op is None else split_constant(rw, inner_op)
    if outer is None or inner is None or kind(rw, op.results[0]) == "c":
        return None
    both = np.maximum if op.name == "graphc.maximum" else np.minimum
    number = rw.scalar_like(both(inner[1], outer[1]), op.results[0])
    return rw.create(op.name, [inner[0], number], op.results[0].type)


@_rule("and", "or", "logical_and", "logical_or")
def logic_with_constant(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Booleans: x and true, x or false -> x; x and false -> false; x or true -> true."""
    if kind(rw, op.results[0]) != "b" or kind(rw, op.operands[0]) != "b":
        return None
    x, y = op.operands
    neutral = op.name.endswith("and")
    for value, other in ((x, y), (y, x)):
        number = rw.splat(other)
        if number is not None and rw.can_replace(op, value):
            return value if bool(number) == neutral else rw.full_like(bool(number), op.results[0])
    return None


@_rule("switch")
def switch_known(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A constant condition, equal branches, a negated condition."""
    condition, x, y = op.operands
    if x == y and rw.can_replace(op, x):
        return x
    number = rw.splat(condition)
    if number is not None:
        chosen = x if number else y
        return chosen if rw.can_replace(op, chosen) else None
    inner = rw.operand_of(condition, "graphc.logical_not")
    if inner is None or kind(rw, inner) != "b":
        return None
    return rw.create("graphc.switch", [inner, y, x], op.results[0].type)


def is_lossless(source: np.dtype, target: np.dtype) -> bool:
    """True if every value of `source` has an exact counterpart in `target`."""
    if source == target or source.kind == "b":
        return True
    if target.kind in "fc":
        part = np.empty(0, target).real.dtype
        if source.kind in "iu":
            bits = source.itemsize * 8 - (source.kind == "i")
            return bits <= np.finfo(part).nmant + 1
        own = np.empty(0, source).real.dtype
        return own.itemsize <= part.itemsize and (source.kind == "f" or target.kind == "c")
    if source.kind not in "iu" or target.kind not in "iu":
        return False
    if source.kind == target.kind:
        return source.itemsize <= target.itemsize
    return source.kind == "u" and source.itemsize < target.itemsize


@_rule("cast")
def cast_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A cast to the own dtype; a cast of a lossless cast."""
    x, type_ = op.operands[0], op.results[0].type
    if x.type.element_type == type_.element_type:
        return x
    source = rw.operand_of(x, "graphc.cast")
    if source is None or not is_lossless(rw.dtype(source), rw.dtype(x)):
        return None
    if source.type.element_type == type_.element_type:
        return source
    # From float16 to bool or int by way of a wider float is the same as directly; from int to bool likewise.
    return rw.create("graphc.cast", [source], type_)

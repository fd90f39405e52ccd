# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions: powers, roots, rounding; comparisons, logic, extrema, selection, casts.

Rules of the algebraic-simplification pass, which lists them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir.patterns import guarded, kind, registrar, split_constant, unary
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
_SELF = {"eq": True, "ne": False, "lt": False, "le": True, "gt": False, "ge": True}
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
_EXTREMES = ("graphc.maximum", "graphc.minimum")
_ROUNDINGS = ("floor", "ceil", "trunc", "round", "round_half_away")


def _root(rw: Rewriter, x: ir.Value) -> ir.Value:
    """x ** 1/2 as C's pow has it: the square root, but inf for -inf and +0 for -0."""
    condition = tensor_type(x.type.shape, ir.IntegerType.get_signless(1))
    lowest = rw.create("graphc.eq", [x, rw.scalar_like(-np.inf, x)], condition)
    root = unary(rw, "abs", unary(rw, "sqrt", x))
    return rw.create("graphc.switch", [lowest, rw.scalar_like(np.inf, x), root], x.type)


# Larger exponents stay powers: each product adds a rounding, and powers are within a unit in the last place.
_LARGEST_POWER = 7
_HALF_POWERS: dict[float, Callable[[Rewriter, ir.Value], ir.Value]] = {
    0.5: _root,
    -0.5: lambda rw, x: unary(rw, "reciprocal", _root(rw, x)),
    1.5: lambda rw, x: rw.create("graphc.mul", [unary(rw, "abs", x), _root(rw, x)], x.type),
}


def _whole_power(rw: Rewriter, x: ir.Value, n: int) -> ir.Value:
    """x to a whole exponent. Squaring a reciprocal instead of inverting a square keeps subnormal results."""
    if n in (0, 1):
        return x if n else rw.full_like(1, x)
    if n % 2 and n != -1:
        name, rest = ("graphc.mul", n - 1) if n > 0 else ("graphc.true_div", n + 1)
        return rw.create(name, [_whole_power(rw, x, rest), x], x.type)
    if n == -1:
        return unary(rw, "reciprocal", x)
    half = _whole_power(rw, x, abs(n) // 2)
    return unary(rw, "sqr", half if n > 0 else unary(rw, "reciprocal", half))


@_rule("pow")
def pow_constant(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    numbers = kind(rw, x)
    exponent = rw.splat(y) if numbers in "iuf" else None
    if exponent is None or not rw.can_replace(op, x):
        return None
    number = exponent.item()
    if numbers == "f" and number in _HALF_POWERS:
        return _HALF_POWERS[number](rw, x)
    least = -_LARGEST_POWER if numbers == "f" else 0
    return _whole_power(rw, x, int(number)) if number in range(least, _LARGEST_POWER + 1) else None


@_rule("exp2")
def exp2_of_log2(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = rw.operand_of(op.operands[0], "graphc.log2") if kind(rw, op.results[0]) == "f" else None
    return None if x is None else guarded(rw, x, 0, x)


@_rule("log1mexp")
def log_of_difference(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of y - x, 0 for equal ones, from that of minus their distance where a slope needs it; NaN for y > x."""
    switch = rw.defining(op.operands[0], "graphc.switch")
    difference = None if switch is None else rw.defining(switch.operands[2], "graphc.sub")
    equal = None if switch is None else rw.defining(switch.operands[0], "graphc.eq")
    if switch is None or difference is None or equal is None or rw.splat(switch.operands[1]) != 0:
        return None
    y, x = difference.operands
    users = [use.owner for use in x.uses]
    extremes = [user for user in users if user.name in _EXTREMES]
    if any(list(user.operands) != [x, y] for user in (equal, *extremes)) or len(extremes) != len(_EXTREMES):
        return None
    high, low = (rw.create(name, [x, y], y.type) for name in _EXTREMES)
    same = rw.create("graphc.eq", [high, low], equal.results[0].type)
    distance = rw.create("graphc.sub", [low, high], difference.results[0].type)
    value = rw.create("graphc.switch", [same, switch.operands[1], distance], switch.results[0].type)
    value = rw.create(op.name, [value], op.results[0].type)
    above = rw.create("graphc.lt", [x, y], equal.results[0].type)
    return rw.create("graphc.switch", [above, rw.scalar_like(np.nan, value), value], value.type)


@_rule("exp", "expm1")
def exp_of_log(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    inner = rw.defs.get(op.operands[0])
    if inner is None or kind(rw, op.results[0]) != "f" or inner.name not in ("graphc.log", "graphc.log1p"):
        return None
    x = inner.operands[0]
    plain = inner.name == "graphc.log"
    if (op.name == "graphc.exp") == plain:
        value = x
    else:
        name = "graphc.sub" if plain else "graphc.add"
        value = rw.create(name, [x, rw.scalar_like(1, x)], x.type)
    return guarded(rw, x, 0 if plain else -1, value)


def _square_of_length(rw: Rewriter, x: ir.Value, type_: ir.Type) -> ir.Value | None:
    """The square of abs(x) of a complex x without its root: infinite where a part is, even if one is NaN."""
    parts = [
        rw.create("graphc.sqr", [rw.create(f"graphc.{part}", [x], type_)], type_) for part in ("real", "imag")
    ]
    condition = tensor_type(type_.shape, ir.IntegerType.get_signless(1))
    infinite = rw.create("graphc.isinf", [x], condition)
    total = rw.create("graphc.add", parts, type_)
    return rw.create("graphc.switch", [infinite, rw.scalar_like(np.inf, total), total], type_)


@_rule("sqr", "sqrt")
def square_and_root(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    inner = rw.defs.get(op.operands[0])
    if inner is None:
        return None
    numbers = kind(rw, op.results[0])
    name = (op.name[7:], inner.name[7:])
    if name == ("sqr", "sqrt") and numbers == "f":
        return guarded(rw, inner.operands[0], 0, inner.operands[0])
    if name == ("sqr", "abs") and kind(rw, inner.operands[0]) == "c" and numbers == "f":
        return _square_of_length(rw, inner.operands[0], op.results[0].type)
    if name == ("sqr", "abs") and inner.operands[0].type == op.results[0].type:
        return unary(rw, "sqr", inner.operands[0])
    return None


@_rule("abs")
def abs_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    numbers, name = kind(rw, x), rw.defs[x].name if x in rw.defs else ""
    positive = (
        numbers in "bu" or name in ("graphc.abs", "graphc.exp") or (name, numbers) == ("graphc.sqr", "f")
    )
    return x if positive and x.type == op.results[0].type else None


@_rule(*_ROUNDINGS)
def round_of_rounded(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = op.operands[0]
    if x.type != op.results[0].type:
        return None
    inner = rw.defs.get(x)
    return x if kind(rw, x) in "biu" or (inner is not None and inner.name[7:] in _ROUNDINGS) else None


@_rule("second")
def second_of_equal_shape(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """`second(x, y)`, y in the shape of x, where y has it already."""
    y = op.operands[1]
    return y if rw.can_replace(op, y) else None


@_rule("conj", "real")
def trivial_unary(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of a real x."""
    x = op.operands[0]
    return x if x.type == op.results[0].type and kind(rw, x) != "c" else None


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
    # NumPy calls large integers safe in float64.
    rounded = source.kind in "iu" and source.itemsize == 8 and target.kind in "fc"
    return np.can_cast(source, target) and not rounded


@_rule("cast")
def cast_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A cast to the own dtype; a cast of a lossless cast."""
    x, type_ = op.operands[0], op.results[0].type
    if x.type.element_type == type_.element_type:
        return x
    source = rw.operand_of(x, "graphc.cast")
    if source is None or not is_lossless(rw.dtype(source), rw.dtype(x)):
        return None
    # From float16 to bool or int by way of a wider float is the same as directly; from int to bool likewise.
    return rw.create("graphc.cast", [source], type_)

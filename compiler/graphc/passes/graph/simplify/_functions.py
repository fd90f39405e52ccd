# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers, exponentials, roots and rounding; see the algebraic-simplification pass for the list of rules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir.patterns import guarded, kind, registrar, unary
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
_ROUNDINGS = ("floor", "ceil", "trunc", "round", "round_half_away")


def _root(rw: Rewriter, x: ir.Value) -> ir.Value:
    """x ** 1/2 as C's pow has it: the square root, but inf for -inf and +0 for -0."""
    condition = tensor_type(x.type.shape, ir.IntegerType.get_signless(1))
    lowest = rw.create("graphc.eq", [x, rw.scalar_like(-np.inf, x)], condition)
    root = unary(rw, "abs", unary(rw, "sqrt", x))
    return rw.create("graphc.switch", [lowest, rw.scalar_like(np.inf, x), root], x.type)


_POWERS: dict[float, Callable[[Rewriter, ir.Value], ir.Value]] = {
    0: lambda rw, x: rw.full_like(1, x),
    1: lambda rw, x: x,
    2: lambda rw, x: unary(rw, "sqr", x),
    3: lambda rw, x: rw.create("graphc.mul", [unary(rw, "sqr", x), x], x.type),
    4: lambda rw, x: unary(rw, "sqr", unary(rw, "sqr", x)),
}
# Squaring the reciprocal instead of inverting the square keeps results that are subnormal.
_FLOAT_POWERS: dict[float, Callable[[Rewriter, ir.Value], ir.Value]] = {
    **_POWERS,
    -1: lambda rw, x: unary(rw, "reciprocal", x),
    -2: lambda rw, x: unary(rw, "sqr", unary(rw, "reciprocal", x)),
    -3: lambda rw, x: _POWERS[3](rw, unary(rw, "reciprocal", x)),
    -4: lambda rw, x: _POWERS[4](rw, unary(rw, "reciprocal", x)),
    0.5: _root,
    -0.5: lambda rw, x: unary(rw, "reciprocal", _root(rw, x)),
    1.5: lambda rw, x: rw.create("graphc.mul", [unary(rw, "abs", x), _root(rw, x)], x.type),
}


@_rule("pow")
def pow_constant(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    numbers = kind(rw, x)
    if numbers not in "iuf":
        return None
    exponent = rw.splat(y)
    if exponent is None or not rw.can_replace(op, x):
        return None
    rule = (_FLOAT_POWERS if numbers == "f" else _POWERS).get(exponent.item())
    return None if rule is None else rule(rw, x)


@_rule("exp2")
def exp2_of_log2(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = rw.operand_of(op.operands[0], "graphc.log2") if kind(rw, op.results[0]) == "f" else None
    return None if x is None else guarded(rw, x, 0, x)


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
    if x.type != op.results[0].type:
        return None
    if kind(rw, x) in "bu":
        return x
    inner = rw.defs.get(x)
    if inner is None:
        return None
    return (
        x
        if inner.name in ("graphc.abs", "graphc.exp") or (inner.name == "graphc.sqr" and kind(rw, x) == "f")
        else None
    )


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

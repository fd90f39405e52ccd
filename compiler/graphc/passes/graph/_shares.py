# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials over sums of them, wherever both stand in a product.

The derivative of `log(sum(exp(x)))` by the chain rule is `g / sum(exp(x))`, spread over the axes of the sum,
times `exp(x)`: 0 / 0 where all exponentials underflow, inf / inf where one overflows. The two factors may be
far apart, with views, broadcasts, other factors and signs between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from graphc.ir.kinds import SUMS, fold_of, reduced_axes
from graphc.ir.patterns import kind, unary
from graphc.ir.rewrite import Rewriter
from graphc.ir.views import (
    JOINS,
    MOVES_AXES,
    REPEATS,
    SAME_ELEMENTS,
    SELECTED,
    UPDATES,
    order_of,
    restored_order,
)
from graphc.ir.walk import named_attributes
from graphc.ops.stable import BESSEL
from graphc_dialects._mlir import ir

# Each product is searched, so only near factors are found.
_MOST_FACTORS, _LONGEST_PATH, _MOST_TERMS = 24, 8, 8


class _Factor(NamedTuple):
    """A factor of an operand of a product.

    Attributes:
        value: the factor, or a product of several.
        power: 1 or -1.
        order: which of its axes each axis of the product is, -1 for none.
        path: the positions of the operands that lead to it.
    """

    value: ir.Value
    power: int
    order: list[int]
    path: tuple[int, ...] = ()


SOFTMAX = "softmax"
# What stands for an exponential over a sum of exponentials.
_Share = Callable[[], ir.Value]


def share_of_sum(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """exp(x) of one operand and 1 / sum(exp(x)) of the other -> softmax(x) in place of the first."""
    if kind(rw, op.results[0]) != "f":
        return None
    first, second = (_promises(rw, value) for value in op.operands)
    if not (first & _EXP and second & _SUM) and not (first & _SUM and second & _EXP):
        return None
    rank = len(op.results[0].type.shape)
    powers = (1, -1 if op.name == "graphc.true_div" else 1)
    sides = [list(_factors(rw, v, p, rank)) for v, p in zip(op.operands, powers, strict=True)]
    for above, below in ((0, 1), (1, 0)):
        for divisor in sides[below]:
            shares = _shares(rw, divisor, rank)
            for exp in sides[above] if shares else ():
                x = rw.operand_of(exp.value, "graphc.exp") if _is_in_place(exp, rank) else None
                if x is not None and exp.power > 0 and x in shares:
                    operands = list(op.operands)
                    operands[above] = _with(rw, operands[above], exp.path, shares[x]())
                    return _without(rw, op, operands, (below, *divisor.path))
    return None


def log_of_softmax(rw: Rewriter, inner: ir.Operation) -> ir.Value:
    """log(softmax(x)) -> log_softmax(x)."""
    guarded = {"guarded": inner.attributes["guarded"]} if "guarded" in inner.attributes else {}
    axes = inner.attributes["axes"]
    return rw.create("graphc.log_softmax", [inner.operands[0]], inner.results[0].type, axes=axes, **guarded)


def _is_in_place(factor: _Factor, rank: int) -> bool:
    return factor.order == list(range(rank))


def _factors(rw: Rewriter, value: ir.Value, power: int, rank: int) -> Iterator[_Factor]:
    """The factors of a value, products before what they are products of."""
    left = [_Factor(value, power, list(range(rank)))]
    for _ in range(_MOST_FACTORS):
        if not left:
            return
        factor = left.pop()
        yield factor
        op = rw.defs.get(factor.value)
        if op is not None and len(factor.path) < _LONGEST_PATH:
            left += _inner(op, factor)


def _inner(op: ir.Operation, factor: _Factor) -> Iterator[_Factor]:
    """The factors that an operation multiplies, divides or spreads."""
    moved, order = order_of(op), factor.order
    if moved is not None:
        order = [moved[axis] if axis >= 0 else -1 for axis in order]
    elif op.name in REPEATS:
        new = len(op.results[0].type.shape) - len(op.operands[0].type.shape)
        order = [max(axis - new, -1) for axis in order]
    powers = {0: 1} if moved is not None or op.name in REPEATS else _POWERS.get(op.name, {})
    for i, power in powers.items():
        yield _Factor(op.operands[i], power * factor.power, order, (*factor.path, i))


# The operands that are factors of the result, and to which power.
_POWERS = {
    "graphc.mul": {0: 1, 1: 1},
    "graphc.true_div": {0: 1, 1: -1},
    "graphc.reciprocal": {0: -1},
    "graphc.neg": {0: 1},
    "graphc.second": {1: 1},
}


# -- what may be found --------------------------------------------------------------------------------------

# What may be among the factors of a value: an exponential; a sum of exponentials, or what was 1 over one; a
# power. `_TERMS` says that a value may be a term of such a sum: an exponential, 1, or a sum of these.
# `_QUOTIENT` says that it is divided by something, `_PLACED` that elements of such a value were moved, put at
# indices, chosen or added since.
_EXP, _SUM, _TERMS, _POWER, _QUOTIENT, _PLACED = 1, 2, 4, 8, 16, 32
_FACTORS = _EXP | _SUM | _POWER | _QUOTIENT | _PLACED


_WITH_LOGARITHMS = frozenset(
    f"graphc.{name}"
    for name in ("sigmoid", "tanh", "erfc", "ndtr", "expm1", "sinh", "cosh", "softplus", "log1p", *BESSEL)
)


def may_be_merged(rw: Rewriter, value: ir.Value) -> bool:
    """True if exponentials, sigmoids or powers are among the factors of a value."""
    return bool(_promises(rw, value) & (_EXP | _SUM | _POWER))


def promise_quotient(rw: Rewriter, value: ir.Value) -> None:
    """Has other factors looked for of a value that was a quotient."""
    rw.promises[value] = _promises(rw, value) | _QUOTIENT


def may_be_placed(rw: Rewriter, value: ir.Value) -> bool:
    """True if elements of a value may come from a quotient that was computed before they were placed."""
    return bool(_promises(rw, value) & _PLACED)


def _promises(rw: Rewriter, value: ir.Value) -> int:
    """Factors that a value may have, which are searched only then."""
    promises, stack = rw.promises, [value]
    while stack:
        top = stack[-1]
        if top not in promises:
            op = rw.defs.get(top)
            left = [] if op is None else [x for x in _asked(op) if x not in promises]
            if left:
                stack += left
                continue
            promises[top] = 0 if op is None else _own_promises(rw, op, top)
        stack.pop()
    return promises[value]


def _asked(op: ir.Operation) -> list[ir.Value]:
    """The operands whose promises an operation passes on."""
    name = op.name
    if name in _POWERS:
        return [op.operands[i] for i in _POWERS[name]]
    if name in ("graphc.add", "graphc.sub") or name in JOINS:
        return list(op.operands)
    if name in UPDATES:
        return list(op.operands)[:2]
    if name == "graphc.switch":
        return list(op.operands)[1:]
    if name in SELECTED:
        return [op.operands[0]]
    through = name in MOVES_AXES or name in REPEATS or name in SUMS or name in ("graphc.sqr", "graphc.sqrt")
    return [op.operands[0]] if through else []


def _own_promises(rw: Rewriter, op: ir.Operation, value: ir.Value) -> int:
    name, asked = op.name, [rw.promises[x] for x in _asked(op)]
    if name == "graphc.exp":
        return _EXP | _TERMS
    if name in _WITH_LOGARITHMS:
        return _SUM
    if name == "graphc.pow":
        return _POWER
    found = reduce(or_, asked, 0) & _FACTORS
    moves = name not in _POWERS and name not in SUMS
    placed = _PLACED if moves and found & (_QUOTIENT | _PLACED) else 0
    if name in ("graphc.add", "graphc.sub"):
        # All terms have logarithms, or are numbers.
        terms = name == "graphc.add" and all(promised & _TERMS for promised in asked)
        known = found & (_EXP | _SUM) and all(
            promised & (_EXP | _SUM | _TERMS) or rw.constant(x) is not None
            for promised, x in zip(asked, op.operands, strict=True)
        )
        return placed | (_SUM if known else 0) | (_TERMS if terms else 0)
    if name in UPDATES or name == "graphc.switch":
        return placed
    if name in SUMS:
        return _SUM if asked[0] & _EXP or (asked[0] & _SUM and asked[0] & _QUOTIENT) else 0
    if name in ("graphc.true_div", "graphc.reciprocal"):
        found = (found & ~_PLACED) | _QUOTIENT | (asked[0] & _PLACED if len(asked) > 1 else 0)
    found |= placed
    return found | _TERMS if rw.splat(value) == 1 else found


# -- sums ----------------------------------------------------------------------------------------------------


def _is_shifted(rw: Rewriter, x: ir.Value, axes: tuple[int, ...]) -> bool:
    """True if x is `y - m` with m a maximum over axes, possibly guarded by `switch` and moved by views."""
    difference = rw.defining(x, "graphc.sub")
    if difference is None:
        return False
    op = rw.defs.get(difference.operands[1])
    while op is not None and (op.name in SAME_ELEMENTS or op.name in ("graphc.switch", "graphc.identity")):
        # Of a guarded maximum one side is a constant.
        sides = list(op.operands)[op.name == "graphc.switch" :]
        op = rw.defs.get(next((side for side in sides if rw.splat(side) is None), sides[0]))
    return op is not None and fold_of(op) == "max" and reduced_axes(op) == axes


def _shares(rw: Rewriter, divisor: _Factor, rank: int) -> dict[ir.Value, _Share]:
    """The quotient of exp(x) and a divisor that is a sum of exponentials, by x."""
    if divisor.power > 0:  # what was 1 / (1 + exp(x))
        negative = rw.operand_of(divisor.value, "graphc.sigmoid") if _is_in_place(divisor, rank) else None
        x = None if negative is None else rw.operand_of(negative, "graphc.neg")
        return {} if x is None else {x: lambda: unary(rw, "sigmoid", x)}
    total = rw.defining(divisor.value, "graphc.add")
    if total is not None and _is_in_place(divisor, rank):
        return dict(_shares_of_terms(rw, total))
    view, value, order = rw.defs.get(divisor.value), divisor.value, divisor.order
    moved = order_of(view)
    if view is not None and moved is not None:
        value, order = view.operands[0], [moved[axis] if axis >= 0 else -1 for axis in order]
    reduction = rw.defined_by(value, SUMS)
    x = None if reduction is None else rw.operand_of(reduction.operands[0], "graphc.exp")
    if reduction is None or x is None or _is_shifted(rw, x, reduced_axes(reduction)):
        return {}
    axes = list(reduced_axes(reduction))
    if not axes or len(x.type.shape) != rank or order != restored_order(rank, axes):
        return {}
    options = {"axes": reduction.attributes["axes"], "guarded": ir.BoolAttr.get(True)}
    return {x: lambda: rw.create("graphc.softmax", [x], x.type, **options)}


def _shares_of_terms(rw: Rewriter, total: ir.Operation) -> Iterator[tuple[ir.Value, _Share]]:
    """Of `exp(x) + exp(y) + ...`, of which some may be 1."""
    type_, terms = total.results[0].type, _terms(rw, total)
    exponents = [rw.operand_of(term, "graphc.exp") for term in terms]
    if any(x is None and rw.splat(term) != 1 for x, term in zip(exponents, terms, strict=True)):
        return
    for i, x in enumerate(exponents):
        others = [*exponents[:i], *exponents[i + 1 :]]
        if x is not None and all(y is None or y.type == type_ for y in (x, *(others if others[1:] else ()))):
            yield x, partial(_sigmoid, rw, x, others)


def _terms(rw: Rewriter, total: ir.Operation) -> list[ir.Value]:
    """Terms of a sum of sums, up to a limit on their number."""
    left: list[ir.Value] = list(total.operands)
    terms: list[ir.Value] = []
    while left:
        value = left.pop()
        inner = rw.defining(value, "graphc.add") if len(left) + len(terms) < _MOST_TERMS else None
        if inner is None:
            terms.append(value)
        else:
            left += inner.operands
    return terms


def _sigmoid(rw: Rewriter, x: ir.Value, others: list[ir.Value | None]) -> ir.Value:
    """`exp(x) / (exp(x) + exp(y) + ...)`; each None stands for a 1 in the place of `exp(y)`."""
    given = [y for y in others if y is not None]
    ones = len(others) - len(given)
    if ones == 1 and not given:
        return unary(rw, "sigmoid", x)
    if ones:
        given.append(rw.scalar_like(math.log(ones), x))
    rest = reduce(lambda y, z: rw.create("graphc.logaddexp", [y, z], y.type), given)
    return unary(rw, "sigmoid", rw.create("graphc.sub", [x, rest], x.type))


# -- products with another factor ----------------------------------------------------------------------------


def _with(rw: Rewriter, value: ir.Value, path: tuple[int, ...], factor: ir.Value) -> ir.Value:
    """The value with another factor of the same type at the end of a path."""
    if not path:
        return factor
    op = rw.defs[value]
    operands = list(op.operands)
    operands[path[0]] = _with(rw, operands[path[0]], path[1:], factor)
    return _again(rw, op, operands)


def _again(rw: Rewriter, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
    attributes = named_attributes(op)
    return rw.create(op.name, operands, op.results[0].type, **attributes)


def _without(rw: Rewriter, op: ir.Operation, operands: list[ir.Value], path: tuple[int, ...]) -> ir.Value:
    """An operation on other operands, with 1 for the factor at the end of a path."""
    i, *rest = path
    factor, type_ = operands[i], op.results[0].type
    if rest:
        inner = rw.defs[factor]
        operands[i] = _without(rw, inner, list(inner.operands), tuple(rest))
        return _again(rw, op, operands)
    if len(operands) == 2 and (op.name == "graphc.mul" or (op.name == "graphc.true_div" and i)):
        other = operands[1 - i]
        return other if other.type == type_ else rw.create("graphc.second", [factor, other], type_)
    operands[i] = rw.create("graphc.second", [factor, rw.scalar_like(1, factor)], factor.type)
    return _again(rw, op, operands)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work on one number in the place of many equal ones; the algebraic-simplification pass lists the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir.kinds import FOLDS, fold_of, reduced_axes
from graphc.ir.patterns import is_unit, kind, registrar
from graphc.ir.references import evaluate
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.views import MOVES_AXES, REPEATS, repeated

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
_FUNCTIONS = "cast exp log log1p expm1 sqr sqrt neg abs sigmoid softplus tanh reciprocal".split()
_OF_SEVERAL = "add sub mul true_div pow maximum minimum eq ne lt le gt ge switch".split()
# Elements of a literal that is computed here; what is larger bloats the program.
_LITERAL = 64


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


@_rule(*_FUNCTIONS, *MOVES_AXES)
def function_of_literal(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Functions of literals that other rules make: constants have been folded before."""
    array = rw.constant(op.operands[0])
    if not isinstance(array, np.ndarray) or array.size > _LITERAL:
        return None
    result = evaluate(op, [array], rw.dtype(op.results[0]))
    return rw.literal(result, tensor_type(result.shape, op.results[0].type.element_type))


@_rule(*_FUNCTIONS)
def function_of_repeated(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """f(broadcast_to(x, ...)) -> broadcast_to(f(x), ...)."""
    view = rw.defined_by(op.operands[0], REPEATS)
    if view is None:
        return None
    x, *sizes = view.operands
    type_ = op.results[0].type
    narrow = tensor_type(x.type.shape, type_.element_type)
    return repeated(rw.create(op.name, [x], narrow, **_attributes(op)), sizes, type_, rw.create)


@_rule(*_OF_SEVERAL)
def repeated_operand(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """An operand with one number in all places, where another has the result's shape: the number alone. Of
    nothing but such operands: one number.
    """
    operands = list(op.operands)
    numbers = [rw.splat(v) for v in operands]
    if all(number is not None for number in numbers) and any(rw.can_replace(op, v) for v in operands):
        return rw.full_like(evaluate(op, numbers, rw.dtype(op.results[0])).item(), op.results[0])
    for i, v in enumerate(operands):
        number = None if is_unit(v) else numbers[i]
        others = operands[:i] + operands[i + 1 :]
        if number is None or not any(not is_unit(x) and rw.can_replace(op, x) for x in others):
            continue
        operands[i] = rw.scalar_like(number, v)
        return rw.create(op.name, operands, op.results[0].type, **_attributes(op))
    return None


@_rule(*FOLDS)
def reduction_of_repeated(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of one number, a known number of times."""
    x, result, fold = op.operands[0], op.results[0], fold_of(op)
    number = None if fold == "prod" else rw.splat(x)
    count = 1
    for axis in reduced_axes(op):
        count *= max(x.type.shape[axis], 0)
    if number is None or not count or kind(rw, x) not in "biuf" or rw.dtype(x) != rw.dtype(result):
        return None
    if fold == "sum":
        if kind(rw, x) == "b":
            return None
        with np.errstate(all="ignore"):
            number = np.multiply(number, np.asarray(count).astype(number.dtype))
    return rw.full_like(number, result)

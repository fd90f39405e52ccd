# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the stabilize pass; its docstring lists them with their reasons."""

from __future__ import annotations

import numpy as np

from graphc.ir.algebra import is_normal, kind, registrar, split_constant, unary
from graphc.ir.kinds import reduce, reduced_axes
from graphc.ir.patterns import rules
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.views import dimshuffle, order_of, restored_order
from graphc.passes.graph.simplify._lines import ALGEBRA, STABLE_FORMS
from graphc.passes.graph.simplify._shares import exp_sum, log_of_softmax, share_of_sum
from graphc_dialects._mlir import ir

# The forms are written with differences: `1 + (-1) * x` is one.
_DIFFERENCES = [line for line in ALGEBRA if line.name in ("mul one", "add of neg")]
RULES: RuleTable = rules([*_DIFFERENCES, *STABLE_FORMS])
_rule = registrar(RULES)


def _is_float(rw: Rewriter, op: ir.Operation) -> bool:
    return kind(rw, op.results[0]) == "f"


_rule("log")(log_of_softmax)


def _weighted_exp(rw: Rewriter, value: ir.Value) -> ir.Value | None:
    """x + log(c) of exp(x) or c * exp(x), c a positive number."""
    x = rw.operand_of(value, "graphc.exp")
    if x is not None:
        return x
    product = rw.defining(value, "graphc.mul")
    found = None if product is None else split_constant(rw, product)
    x = None if found is None else rw.operand_of(found[0], "graphc.exp")
    if found is None or x is None or x.type != value.type or not is_normal(found[1]) or found[1] <= 0:
        return None
    return rw.create("graphc.add", [x, rw.scalar_like(np.log(found[1]), x)], x.type)


@_rule("log")
def log_ofexp_sum(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """log(c * exp(x) + d * exp(y)) -> logaddexp(x + log(c), y + log(d)) for positive numbers c and d."""
    total = rw.defining(op.operands[0], "graphc.add")
    if total is None or not _is_float(rw, op):
        return None
    if any(
        rw.operand_of(v, "graphc.exp") is None and rw.defining(v, "graphc.mul") is None
        for v in total.operands
    ):
        return None
    x = _weighted_exp(rw, total.operands[0])
    y = None if x is None else _weighted_exp(rw, total.operands[1])
    return None if y is None else rw.create("graphc.logaddexp", [x, y], op.results[0].type)


def _in_erfc(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """x, if the operation is an unlimited log(erfc(x)), log1p(-erf(x)) or log1p(erf(-x))."""
    (value,) = op.operands
    if op.name == "graphc.log":
        return rw.operand_of(value, "graphc.erfc")
    negative = rw.operand_of(value, "graphc.neg")
    x = rw.operand_of(value if negative is None else negative, "graphc.erf")
    if x is None or rw.defining(x, "graphc.minimum") is not None:  # as `log_of_erfc` leaves it
        return None
    return unary(rw, "neg", x) if negative is None else x


@_rule("log", "log1p")
def log_of_erfc(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """log(erfc(x)) -> log1p(-erf(x)) for x < 1, log_ndtr(-sqrt(2) x) + log(2) for others."""
    x = _in_erfc(rw, op) if _is_float(rw, op) else None
    if x is None or x.type != op.results[0].type:
        return None
    one, type_ = rw.scalar_like(1, x), x.type
    limited = rw.create("graphc.minimum", [x, one], type_)
    near = unary(rw, "log1p", unary(rw, "neg", unary(rw, "erf", limited)))
    scaled = rw.create("graphc.mul", [x, rw.scalar_like(-np.sqrt(2), x)], type_)
    far = rw.create("graphc.add", [unary(rw, "log_ndtr", scaled), rw.scalar_like(np.log(2), x)], type_)
    condition = tensor_type(type_.shape, ir.IntegerType.get_signless(1))
    return rw.create("graphc.switch", [rw.create("graphc.lt", [x, one], condition), near, far], type_)


# -- sums of exponentials ------------------------------------------------------------------------------------


def _with_axes_back(rw: Rewriter, value: ir.Value, like: ir.Value, axes: list[int]) -> ir.Value:
    """Inserts axes of size 1 where a reduction of `like` removed them."""
    type_ = like.type
    result = tensor_type(
        [1 if axis in axes else size for axis, size in enumerate(type_.shape)], type_.element_type
    )
    return dimshuffle(value, restored_order(len(type_.shape), axes), result, rw.create)


def _log_sum_exp(rw: Rewriter, x: ir.Value, reduction: ir.Operation) -> ir.Value:
    """The shifted form. The shift is 0 where the maximum is not finite, so that no inf - inf appears."""
    axes, type_ = reduced_axes(reduction), reduction.results[0].type
    top = reduce("max", x, axes, type_, rw.create, allow_empty=ir.BoolAttr.get(True))
    finite = rw.create("graphc.isfinite", [top], tensor_type(type_.shape, ir.IntegerType.get_signless(1)))
    shift = rw.create("graphc.switch", [finite, top, rw.scalar_like(0, top)], type_)
    centred = rw.create("graphc.sub", [x, _with_axes_back(rw, shift, x, list(axes))], x.type)
    total = reduce("sum", unary(rw, "exp", centred), axes, type_, rw.create)
    return rw.create("graphc.add", [unary(rw, "log", total), shift], type_)


@_rule("log")
def log_of_sum_of_exp(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    if not _is_float(rw, op):
        return None
    value = op.operands[0]
    view = rw.defs.get(value)
    order = order_of(view)
    found = exp_sum(rw, value if view is None or order is None else view.operands[0])
    if found is None:
        return None
    result = _log_sum_exp(rw, *found)
    return result if order is None else dimshuffle(result, order, op.results[0].type, rw.create)


_rule("true_div", "mul")(share_of_sum)

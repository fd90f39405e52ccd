# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and views; the algebraic-simplification pass lists the rules and their classes."""

from __future__ import annotations

import numpy as np

from graphc.ir.kinds import FOLDS, SUMS, reduced_axes
from graphc.ir.patterns import kind, registrar, unit_splat
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.views import (
    MOVES_AXES,
    RESHAPES,
    axes_order,
    dimshuffle,
    order_of,
    reshaped,
)
from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
_OF_NUMBERS = "exp log log1p expm1 sqr sqrt neg abs sigmoid softplus tanh reciprocal".split()


def _i64s(values: list[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(values)


def _flags(op: ir.Operation) -> dict[str, object]:
    """The attributes of a reduction besides its axes."""
    attributes = op.attributes
    return {"allow_empty": attributes["allow_empty"]} if "allow_empty" in attributes else {}


@_rule(*FOLDS)
def reduce_trivial(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Over no axes, or only over axes of size 1: a view."""
    x, axes = op.operands[0], list(reduced_axes(op))
    if not axes:
        return x
    shape = x.type.shape
    if any(shape[axis] != 1 for axis in axes):
        return None
    order = [axis for axis in range(len(shape)) if axis not in axes]
    return dimshuffle(x, order, op.results[0].type, rw.create)


@_rule(*FOLDS)
def reduce_of_reduce(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    inner = rw.defining(op.operands[0], op.name)
    if inner is None or _flags(inner) != _flags(op):
        return None
    x, first = inner.operands[0], list(reduced_axes(inner))
    kept = [axis for axis in range(len(x.type.shape)) if axis not in first]
    axes = sorted(first + [kept[axis] for axis in reduced_axes(op)])
    return rw.create(op.name, [x], op.results[0].type, axes=_i64s(axes), **_flags(op))


@_rule(*FOLDS)
def reduce_of_permutation(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Reduces before moving axes, if the kept axes come out in their old order."""
    view = rw.defs.get(op.operands[0])
    order = order_of(view)
    if view is None or order is None:
        return None
    x = view.operands[0]
    axes = list(reduced_axes(op))
    kept = [axis for position, axis in enumerate(order) if position not in axes]
    reduced = sorted(order[axis] for axis in axes if order[axis] >= 0)
    if len(order) != len(x.type.shape) or -1 in order or kept != sorted(kept):
        return None
    return rw.create(op.name, [x], op.results[0].type, axes=_i64s(reduced), **_flags(op))


@_rule(*SUMS)
def sum_of_neg(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x = rw.operand_of(op.operands[0], "graphc.neg")
    if x is None:
        return None
    type_ = op.results[0].type
    total = rw.create(op.name, [x], type_, axes=op.attributes["axes"])
    return rw.create("graphc.neg", [total], type_)


@_rule(*SUMS)
def sum_of_scaled(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """sum(x * c) -> sum(x) * c, where sum(x) cannot overflow unless the result does."""
    product = rw.defining(op.operands[0], "graphc.mul")
    if product is None or kind(rw, op.results[0]) not in "iuf":
        return None
    x, y = product.operands
    for value, factor in ((x, y), (y, x)):
        number = unit_splat(rw, factor)
        if number is None or value.type != op.operands[0].type:
            continue
        if number.dtype.kind == "f" and not (np.isfinite(number) and abs(number) >= 1):
            return None
        type_ = op.results[0].type
        total = rw.create(op.name, [value], type_, axes=op.attributes["axes"])
        return rw.create("graphc.mul", [total, rw.scalar_like(number, total)], type_)
    return None


@_rule(*MOVES_AXES)
def dimshuffle_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A view of a view; a view that changes nothing."""
    x, order = op.operands[0], axes_order(op)
    if order == list(range(len(x.type.shape))):
        return x
    inner = rw.defs.get(x)
    first = order_of(inner)
    if inner is None or first is None:
        return None
    composed = [-1 if axis < 0 else first[axis] for axis in order]
    return dimshuffle(inner.operands[0], composed, op.results[0].type, rw.create)


@_rule(*_OF_NUMBERS)
def function_of_one_number(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of a 0-d tensor before it gets axes, so that what reads the number in other ranks shares the work."""
    view = rw.defs.get(op.operands[0])
    order = order_of(view)
    if view is None or order is None or len(view.operands[0].type.shape) != 0:
        return None
    type_ = op.results[0].type
    value = rw.create(op.name, [view.operands[0]], tensor_type([], type_.element_type))
    return dimshuffle(value, order, type_, rw.create)


@_rule(*RESHAPES)
def reshape_of_reshape(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Only the last shape counts, if the inner reshape is certain to succeed."""
    inner = rw.defined_by(op.operands[0], RESHAPES)
    if inner is None:
        return None
    x, *sizes = inner.operands
    if rw.dims.count(rw.dims.shape(x)) != rw.dims.count(rw.dims.size(size) for size in sizes):
        return None
    return reshaped(x, list(op.operands)[1:], op.results[0].type, rw.create)


@_rule(*RESHAPES)
def reshape_of_units(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A reshape that only inserts and drops axes of size 1 is a view, if its sizes are those of its type.

    Others are an error, which the reshape's checks find.
    """
    (x, *sizes), type_ = op.operands, op.results[0].type
    source, target = list(x.type.shape), list(type_.shape)
    if [rw.dims.size(size) for size in sizes] != target:
        return None
    kept = [axis for axis, size in enumerate(source) if size != 1]
    if min([*source, *target], default=1) < 0 or [source[axis] for axis in kept] != [
        n for n in target if n != 1
    ]:
        return None
    rest = iter(kept)
    order = [-1 if size == 1 else next(rest) for size in target]
    return dimshuffle(x, order, type_, rw.create)

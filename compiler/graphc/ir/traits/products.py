# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.matmul`."""

from __future__ import annotations

import numpy as np

from graphc.ir.checks import CHECKS, SizeChecks
from graphc.ir.kinds import PRODUCTS, flags_of, matrix_product
from graphc.ir.parts import LiftRule, Parts, again
from graphc.ir.rewrite import Rewriter, tensor_type
from graphc.ir.totality import TOTAL, Totality
from graphc.ir.traits import BATCH, EXPENSIVE, PARTS, REFERENCE, SIZES, Batch, Batching, Sizes
from graphc_dialects._base import dim_of
from graphc_dialects._mlir import ir

PRODUCTS("graphc.matmul")


def _summed(op: ir.Operation, rank: int) -> tuple[int, int]:
    """The axes that are summed over."""
    a, b = flags_of(op)
    return rank - 2 if a else rank - 1, rank - 1 if b else rank - 2


@SIZES("graphc.matmul")
def _sizes(op: ir.Operation) -> Sizes:
    a, b = op.operands
    flags, rank = flags_of(op), len(a.type.shape)
    batch: Sizes = [((a, axis), (b, axis)) for axis in range(rank - 2)]
    return [*batch, ((a, rank - 2 + flags[0]),), ((b, rank - 1 - flags[1]),)]


@REFERENCE("graphc.matmul")
def _matmul(op: ir.Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = (np.swapaxes(x, -1, -2) if flag else x for x, flag in zip((a, b), flags_of(op), strict=True))
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"matmul: batch shapes {a.shape[:-2]} and {b.shape[:-2]} differ")
    return np.matmul(a, b)


@TOTAL("graphc.matmul")
def _is_total(totality: Totality, op: ir.Operation) -> bool:
    """Summed sizes and batch sizes agree."""
    a, b = op.operands
    rank = len(a.type.shape)
    left, right = _summed(op, rank)
    return totality.same((a, left), (b, right)) and all(
        totality.same((a, axis), (b, axis)) for axis in range(rank - 2)
    )


@CHECKS("graphc.matmul")
def _checks(checks: SizeChecks, rw: Rewriter, op: ir.Operation) -> None:
    a, b = op.operands
    rank = len(a.type.shape)
    for axis in range(rank - 2):
        message = f"matmul: batch sizes in dimension {axis} must agree, but are {{expected}} and {{given}}"
        checks.equal(rw, (b, axis), (a, axis), message)
    left, right = _summed(op, rank)
    message = "matmul: the left operand has {expected} columns, but the right one has {given} rows"
    checks.equal(rw, (b, right), (a, left), message)


# -- in loops ------------------------------------------------------------------------------------------------


@BATCH("graphc.matmul")
def _rows(b: Batching, op: ir.Operation, xs: list[Batch]) -> ir.Value:
    """One product for all rows where one side is the same in all iterations, else a batched product."""
    left, right = xs
    flags = flags_of(op)
    if left.stacked != right.stacked and len(op.results[0].type.shape) == 2:
        if left.stacked:
            return _with_fixed(b, op, left.value, flags[0], right.value, flags[1])
        # (A b_t).T = b_t.T A.T: the rows of a stack are on the left.
        moved = _with_fixed(b, op, right.value, not flags[1], left.value, not flags[0], swapped=True)
        return b.cast(moved, b.stack_type(op.results[0].type))
    x, y = b.repeated(left), b.repeated(right)
    rank = len(x.type.shape)
    for axis in range(1, rank - 2):
        y = b.fit(y, axis, dim_of(x, axis))
    summed = rank - 2 if flags[0] else rank - 1
    y = b.fit(y, rank - 1 if flags[1] else rank - 2, dim_of(x, summed))
    return matrix_product(x, y, flags, b.stack_type(op.results[0].type), b.create)


def _with_fixed(
    b: Batching,
    op: ir.Operation,
    stack: ir.Value,
    transposed: bool,
    fixed: ir.Value,
    fixed_transposed: bool,
    swapped: bool = False,
) -> ir.Value:
    """Rows `x_t` (m, k) times one matrix (k, n) as (rows * m, k) times (k, n).

    With `swapped`, the result of each row is transposed.
    """
    m_axis, k_axis = (2, 1) if transposed else (1, 2)
    inner = dim_of(fixed, 1 if fixed_transposed else 0)
    columns = fixed.type.shape[0 if fixed_transposed else 1]
    type_ = b.stack_type(op.results[0].type)
    if stack.type.shape[m_axis] == 1:
        flat = b.fit(b.dimshuffle(stack, [0, k_axis]), 1, inner)
        result = _flat_product(b, flat, fixed, fixed_transposed, columns)
        return b.cast(b.dimshuffle(result, [0, 1, -1] if swapped else [0, -1, 1]), type_)
    stack = b.fit(b.dimshuffle(stack, [0, m_axis, k_axis]), 2, inner)
    m, (rows, m_static, k_static) = dim_of(stack, 1), stack.type.shape
    flat_rows = rows * m_static if rows >= 0 and m_static >= 0 else -1
    flat = b.reshape(stack, [b.rows * m, dim_of(stack, 2)], [flat_rows, k_static])
    result = _flat_product(b, flat, fixed, fixed_transposed, columns)
    whole = b.reshape(result, [b.rows, m, dim_of(result, 1)], [rows, m_static, columns])
    return b.cast(b.dimshuffle(whole, [0, 2, 1]) if swapped else whole, type_)


def _flat_product(
    b: Batching, flat: ir.Value, fixed: ir.Value, fixed_transposed: bool, columns: int
) -> ir.Value:
    type_ = tensor_type([flat.type.shape[0], columns], fixed.type.element_type)
    return matrix_product(flat, fixed, (False, fixed_transposed), type_, b.create)


# -- in part -------------------------------------------------------------------------------------------------


def _of_matmul(rw: Rewriter, op: ir.Operation, parts: Parts) -> list[Parts] | None:
    batch = len(op.results[0].type.shape) - 2
    flags = flags_of(op)
    left: Parts = {axis: part for axis, part in parts.items() if axis < batch}
    right = dict(left)
    if batch in parts:
        left[batch + int(flags[0])] = parts[batch]
    if batch + 1 in parts:
        right[batch + 1 - int(flags[1])] = parts[batch + 1]
    return [left, right]


PARTS("graphc.matmul")(LiftRule(_of_matmul, again, relies=True))


# -- cost ----------------------------------------------------------------------------------------------------


@EXPENSIVE("graphc.matmul")
def _sums(op: ir.Operation) -> bool:
    """Not what is a product of elements."""
    return bool(op.operands[0].type.shape[-2 if flags_of(op)[0] else -1] != 1)

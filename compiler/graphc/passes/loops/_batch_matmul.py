# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of rows as products of stacks."""

from __future__ import annotations

from typing import Any

from graphc.ir.rewrite import tensor_type
from graphc.passes.loops._batch import Batch, Batcher
from graphc.passes.loops._index import binary
from graphc_dialects._base import dim_of
from graphc_dialects._mlir import ir


def flags_of(op: Any) -> tuple[bool, bool]:
    """`transpose_a` and `transpose_b`."""
    a, b = (bool(ir.BoolAttr(op.attributes[f"transpose_{side}"]).value) for side in "ab")
    return a, b


def product(b: Batcher, x: Any, y: Any, flags: tuple[bool, bool], type_: Any) -> Any:
    """`graphc.matmul`."""
    attributes = {
        "transpose_a": ir.BoolAttr.get(flags[0]),
        "transpose_b": ir.BoolAttr.get(flags[1]),
    }
    return b.create("graphc.matmul", [x, y], type_, **attributes)


def matmul(b: Batcher, op: Any, xs: list[Batch]) -> Any:
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
    return product(b, x, y, flags, b.stack_type(op.results[0].type))


def _with_fixed(
    b: Batcher,
    op: Any,
    stack: Any,
    transposed: bool,
    fixed: Any,
    fixed_transposed: bool,
    swapped: bool = False,
) -> Any:
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
    flat = b.reshape(stack, [binary("muli", b.rows, m), dim_of(stack, 2)], [flat_rows, k_static])
    result = _flat_product(b, flat, fixed, fixed_transposed, columns)
    whole = b.reshape(result, [b.rows, m, dim_of(result, 1)], [rows, m_static, columns])
    return b.cast(b.dimshuffle(whole, [0, 2, 1]) if swapped else whole, type_)


def _flat_product(b: Batcher, flat: Any, fixed: Any, fixed_transposed: bool, columns: int) -> Any:
    type_ = tensor_type([flat.type.shape[0], columns], fixed.type.element_type)
    return product(b, flat, fixed, (False, fixed_transposed), type_)

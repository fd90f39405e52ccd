# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacks whose rows are all equal, and what is known about values without running a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ir.build import cast
from graphc.ir.constants import CONSTANTS, constant_attribute, element_dtype, read_constant
from graphc.ir.references import evaluate
from graphc.ir.rewrite import tensor_type
from graphc.ir.views import REPEATS, SAME_ELEMENTS, create_here, order_of, repeated, row_at, stacked_order
from graphc.ir.walk import definition, seen_through
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir
from graphc_dialects.elementwise import ELEMENTWISE


class Lazy(dict[ir.Value, Any]):
    """Facts about values, each found when it is first asked for.

    Args:
        find: the fact about a value.
    """

    def __init__(self, find: Callable[[ir.Value], object]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, value: ir.Value) -> Any:
        found = self[value] = self._find(value)
        return found


# What a tensor value is known to be: ("splat", dtype, bytes of an element), ("value", an SSA value),
# ("row", a stack of which it is any row), or None.
Known = tuple[Any, ...] | None


def known_splat(value: ir.Value) -> Known:
    """The element that all elements of a value equal, seen through views of constants."""
    op = definition(seen_through(value, SAME_ELEMENTS))
    if op is None or op.name not in CONSTANTS or not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    array = read_constant(op)
    if array is None or not array.size:
        return None
    first = array.flat[0]
    # Bit by bit: zeros have signs, NaN equals itself.
    return splat(first) if array.tobytes() == first.tobytes() * array.size else None


def is_splat(value: ir.Value, number: float) -> bool:
    """True if all elements of a value, of which there are some, are known to be a number."""
    known = known_splat(value)
    return known is not None and bool(np.frombuffer(known[2], known[1])[0] == number)


def splat(scalar: Any) -> Known:
    """The knowledge that a value is a splat."""
    return ("splat", str(scalar.dtype), scalar.tobytes())


def known_value(value: ir.Value) -> Known:
    """Known facts about a value whose rows are of no interest."""
    return known_splat(value) or ("value", _uncast(value))


def known_row(stack: ir.Value) -> Known:
    """Known value of every row of a stack, or None where rows may differ."""
    stack = _uncast(stack)
    found = known_splat(stack)
    if found is not None:
        return found
    op = definition(stack)
    shape = list(stack.type.shape)
    # Axes of size 1 may be dropped besides: then the operand is no row.
    order = order_of(op)
    if op is not None and order is not None and order == stacked_order(len(op.operands[0].type.shape)):
        return ("value", _uncast(op.operands[0]))
    if op is not None and op.name in REPEATS:
        source = op.operands[0].type
        if (
            len(source.shape) == len(shape) - 1
            and list(source.shape) == shape[1:]
            and source.has_static_shape
        ):
            return ("value", _uncast(op.operands[0]))
        if len(source.shape) < len(shape):
            return ("row", stack)
    return ("row", stack) if shape[0] == 1 else None


def row_of(stack: ir.Value, row_type: ir.Type) -> ir.Value:
    """The one row of a stack whose rows are all equal, as a value at the current insertion point.

    There must be a row. What the stack was made of is used where possible.
    """
    stack = _uncast(stack)
    op = definition(stack)
    known = known_row(stack)
    if known is not None and known[0] == "value":
        return cast(known[1], row_type)
    if known is not None and known[0] == "splat" and row_type.has_static_shape:
        return literal(np.frombuffer(known[2], known[1])[0], row_type)
    natural = tensor_type(list(stack.type.shape)[1:], stack.type.element_type)
    if op is not None and op.name in REPEATS:
        source, *sizes = op.operands
        if known is not None and known[0] == "splat":
            source = literal(np.frombuffer(known[2], known[1])[0], tensor_type([], natural.element_type))
        if len(source.type.shape) < len(sizes):
            return cast(repeated(source, sizes[1:], natural), row_type)
    return cast(row_at(stack, const_index(0), natural), row_type)


def is_free_row(stack: ir.Value) -> bool:
    """True if `row_of` reads no memory that the stack would have to be stored in."""
    stack = _uncast(stack)
    op = definition(stack)
    known = known_row(stack)
    if known is None:
        return False
    # A splat of unknown sizes can be made anew only where the sizes are operands.
    is_static = not any(stack.type.is_dynamic_dim(axis) for axis in range(1, stack.type.rank))
    is_made = op is not None and op.name in REPEATS
    return known[0] == "value" or (known[0] == "splat" and is_static) or is_made


def known_result(op: ir.Operation, known: Mapping[ir.Value, Known]) -> Known:
    """Known facts about an operation's result if that much is known of its operands."""
    name = op.name
    if name in CONSTANTS:
        return known_splat(op.results[0]) if isinstance(op.results[0].type, ir.RankedTensorType) else None
    if name == "tensor.cast":
        return known[op.operands[0]]
    if name in SAME_ELEMENTS:
        source = known[op.operands[0]]
        return source if source is not None and source[0] == "splat" else None
    if name.removeprefix("graphc.") not in ELEMENTWISE:
        return None
    sources = [known[operand] for operand in op.operands]
    if any(source is None or source[0] != "splat" for source in sources):
        return None
    values = [np.frombuffer(source[2], source[1])[0] for source in sources if source is not None]
    try:
        result = evaluate(op, [np.asarray(v) for v in values], element_dtype(op.results[0].type.element_type))
    except (ValueError, ArithmeticError, NotImplementedError):
        return None
    return splat(result.reshape(())[()])


def literal(number: np.generic, type_: ir.Type) -> ir.Value:
    """A splat constant of a type with static shape."""
    array = np.full(list(type_.shape), number, element_dtype(type_.element_type))
    name, attribute = constant_attribute(array, type_)
    return create_here(name, [], type_, value=attribute)


def _uncast(value: ir.Value) -> ir.Value:
    return seen_through(value, ("tensor.cast",))

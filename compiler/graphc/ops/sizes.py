# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes in arguments of functions: as 0-d int64 variables for ops, and as numbers where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.errors import ArgumentError
from graphc.graph.basic import Constant, Variable, reads_of, remember
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.traversal import ancestors
from graphc.ops.dimshuffle import DimShuffle, element_of
from graphc.ops.elementwise import Elementwise, cast_to
from graphc.ops.shape import Shape, Shape_i

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

# Expressions of sizes are small; deeper ones are left to the compiler.
_MAX_DEPTH = 12


def size_of(x: Any, axis: int) -> TensorVariable:
    """The size of a dimension: a constant where it is static, else a `Shape_i`."""
    known = x.type.shape[axis]
    return known_as(known, x) if known is not None else Shape_i(axis)(x)


def known_as(value: int | np.ndarray | None, *sources: Variable) -> TensorVariable:
    """A size (int64) that is known from what ``sources`` are; the constant remembers these."""
    return remember(constant(np.asarray(value, np.int64)), *sources)


def sizes_of(x: Any) -> list[TensorVariable]:
    """All sizes, as `size_of`."""
    return [size_of(x, axis) for axis in range(x.type.ndim)]


def shape_source(x: Variable) -> Variable:
    """A substitute for ``x`` where only its sizes are read: a variable of the same shape from which
    elementwise functions of one operand compute it. Gradients thus need not keep ``x``.
    """
    for _ in range(_MAX_DEPTH):
        node = x.owner
        if node is None or not isinstance(node.op, Elementwise):
            return x
        # Operands of static size 1 have no say in the shape.
        shaping = [v for v in node.inputs if any(size != 1 for size in v.type.shape)]
        if len(shaping) != 1 or shaping[0].type.shape != x.type.shape:
            return x
        x = shaping[0]
    return x


def made_as(x: Variable) -> Variable:
    """What a vector was made of where ``x`` is an element of one; ``x`` itself otherwise.

    It says what is known of a size. A graph reads ``x``: the vector may be replaced, or be an input.
    """
    while x.owner is not None and isinstance(x.owner.op, DimShuffle) and not x.type.ndim:
        element = element_of(x.owner.inputs[0], 0)
        if element is None:
            break
        x = element
    return x


def known_value(x: Variable, depth: int = _MAX_DEPTH) -> np.ndarray | None:
    """The value of a scalar expression of constants and static sizes; None when it depends on inputs."""
    if isinstance(x, Constant):
        return x.data if x.data.size == 1 else None
    node = x.owner
    if node is None or depth == 0:
        return None
    if isinstance(node.op, Shape_i):
        size = node.inputs[0].type.shape[node.op.i]
        return None if size is None else np.asarray(size)
    if isinstance(node.op, DimShuffle):
        element = made_as(x)
        return None if element is x else known_value(element, depth - 1)
    if not isinstance(node.op, Elementwise) or x.type.ndim:
        return None
    values = [known_value(v, depth - 1) for v in node.inputs]
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        return None
    cell: Register = [None]
    node.op.perform(node, given, [cell])
    return cell[0]


def known_size(x: Any) -> int | None:
    """A size as a number, where it is known."""
    value = known_value(x)
    return None if value is None else int(value.reshape(()))


def reads_sizes(x: Variable) -> bool:
    """True if a value is known from sizes, so that it depends on what has them."""
    return any(reads_of(v) for v in ancestors([x]))


def as_size(x: TensorLike | None, what: str) -> TensorVariable:
    """One size as a 0-d int64 variable.

    Raises:
        ArgumentError: not a 0-d integer; a TypeError and a ValueError.
    """
    variable = as_tensor_variable(x)
    if variable.type.ndim:
        raise ArgumentError(f"a size of {what} must be 0-d, got {variable} of {variable.type}")
    if variable.type.kind not in "iu":
        raise ArgumentError(
            f"a size of {what} must be an integer, got {variable} of dtype {variable.type.dtype}"
        )
    variable = cast_to(variable, "int64")
    size = None if isinstance(variable, Constant) else known_size(variable)
    return variable if size is None else known_as(size, variable)


def vector_entries(x: Variable) -> list[Variable] | None:
    """The elements of a vector of known length as 0-d variables; None when its length is not known."""
    length = x.type.shape[0]
    if length is None:
        return None
    if isinstance(x, Constant):
        return [constant(value) for value in x.data]
    if x.owner is not None and isinstance(x.owner.op, Shape):
        return list(sizes_of(x.owner.inputs[0]))
    return [x[i] for i in range(length)]


def product_of(sizes: Sequence[TensorVariable]) -> TensorVariable:
    """Product of 0-d int64 variables, with what is known multiplied out."""
    known, total = 1, None
    for each in sizes:
        number = known_size(each)
        if number is not None:
            known *= number
        else:
            total = each if total is None else total * each
    if known >= 1 << 63:
        raise ValueError(f"there is no array with {known} elements or more: it is too large")
    literal = known_as(known, *(each for each in sizes if isinstance(each, Variable)))
    if total is None:
        return literal
    return total if known == 1 else total * literal

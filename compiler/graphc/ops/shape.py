# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as values: ``Shape``, ``Shape_i`` and ``MakeVector``.

Ops take sizes as 0-d int64 variables; where a size is known it is a number.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.errors import ArgumentError
from graphc.graph.basic import Apply, Constant, Flags, Maybe, Variable, Variables, only, reads_of, remember
from graphc.graph.op import FieldOp, no_cotangents, no_tangents
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors
from graphc.ops.dimshuffle import DimShuffle, element_of, emit_dimshuffle, normalize_axis
from graphc.ops.elementwise import Elementwise, cast_to

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


class _Sizes(FieldOp):
    """Base of ops that read the sizes of their input and not its elements."""

    depends_on = ()

    pullback, pushforward = no_cotangents, no_tangents


class Shape(_Sizes):
    """All sizes, as an int64 vector."""

    __props__ = ()

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        return Apply(self, [x], [TensorType("int64", (x.type.ndim,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray(inputs[0].shape, dtype=np.int64)

    def element(self, node: Apply, position: int) -> Variable | None:
        return Shape_i(position)(*node.inputs)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        return [self(inputs[0])[1:]]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        (x,) = node.inputs
        indices = [e.dim_of(x, operands[0], axis) for axis in range(x.type.ndim)]
        sizes = [e.raw(f"arith.index_cast {index} : index to i64") for index in indices]
        return [e.raw(f"tensor.from_elements {', '.join(sizes)} : {e.type_of(node.outputs[0])}")]


class Shape_i(_Sizes):
    """One size, as a 0-d int64.

    Args:
        i: the axis.
    """

    i: int

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axis(self.i, x.type.ndim, "Shape_i")
        return Apply(self, [x], [TensorType("int64", ()).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray(inputs[0].shape[self.i], dtype=np.int64)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        return [Shape_i(self.i + 1)(inputs[0])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return [e.from_index(e.dim_of(node.inputs[0], operands[0], self.i))]


class MakeVector(FieldOp):
    """A vector of 0-d operands.

    Args:
        dtype: dtype of the vector; operands are cast to it.
    """

    dtype: str = "int64"
    selects = sys.maxsize

    def make_node(self, *inputs: TensorLike) -> Apply:
        scalars = [cast_to(as_tensor_variable(x), self.dtype) for x in inputs]
        for x in scalars:
            if x.type.ndim:
                raise TypeError(f"MakeVector takes 0-d operands, got {x} of {x.type}")
        return Apply(self, scalars, [TensorType(self.dtype, (len(scalars),)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray([x[()] for x in inputs], dtype=self.dtype)

    def element(self, node: Apply, position: int) -> Variable | None:
        return node.inputs[position]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g = only(cotangents)
        return [g[i] for i in range(len(inputs))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        zero = np.zeros((), self.dtype)
        return [self(*(zero if t is None else t for t in tangents))]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        out = node.outputs[0]
        if not operands:
            return [e.raw(f'"tensor.from_elements"() : () -> {e.type_of(out)}')]
        if self.dtype == "int64":
            elements = [
                e.raw(f"tensor.extract {x}[] : {e.type_of(v)}")
                for x, v in zip(operands, node.inputs, strict=True)
            ]
            return [e.raw(f"tensor.from_elements {', '.join(elements)} : {e.type_of(out)}")]
        # Buffers hold some element types in another form, which only operations of the dialect know.
        row, loose = (e.type_of(out).replace(f"{len(operands)}x", size, 1) for size in ("1x", "?x"))
        parts = [
            e.cast_type(emit_dimshuffle(e, x, e.type_of(v), [-1], row), row, loose)
            for x, v in zip(operands, node.inputs, strict=True)
        ]
        return [e.op("graphc.join", parts, [loose] * len(parts), e.type_of(out), "axis = 0 : i64")]


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
    """The value that a vector was made of where ``x`` is an element of one; ``x`` itself otherwise.

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


def checked_size(x: Variable) -> int | None:
    """A size as a number, where it is known or a check raises unless it is right: for types of results.

    The graph reads ``x``, with its check, and never the number.
    """
    while x.owner is not None and type(x.owner.op).__name__ == "CheckAndRaise":
        x = x.owner.inputs[0]
    return known_size(x)


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

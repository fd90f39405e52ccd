# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Reshape``, ``SpecifyShape`` and ``BroadcastTo``: ops whose result shape is given by size operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.elementwise import is_discrete
from graphc.ops.sizes import as_size, known_size, sizes_of
from graphc_runtime.errors import ShapeError

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc_runtime.thunk import Register


class Sized(Op):
    """Base: the operands are x and one size for each dimension of the result; derivatives pass through x."""

    __props__ = ()
    selects = 1

    def _emit_as(
        self, name: str, node: Apply, operands: Sequence[str], e: Emitter, attributes: str = ""
    ) -> list[str]:
        sizes = [e.index(v, operand) for v, operand in zip(node.inputs[1:], operands[1:], strict=True)]
        types = [e.type_of(node.inputs[0])] + ["index"] * len(sizes)
        return [e.op(name, [operands[0], *sizes], types, e.type_of(node.outputs[0]), attributes)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], *([False] for _ in node.inputs[1:])]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None if tangents[0] is None else self(tangents[0], *inputs[1:])]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        none: list[Variable | None] = [None] * (len(inputs) - 1)
        if cotangents[0] is None or is_discrete(inputs[0]):
            return [None, *none]
        return [self._back(inputs[0], cotangents[0]), *none]

    def _back(self, x: Variable, g: Variable) -> Variable:
        raise NotImplementedError


def _shape_of(values: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(int(size) for size in values)


class Reshape(Sized):
    """The elements of x, in row-major order, in another shape."""

    view_map = {0: [0]}

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        sizes = tuple(as_size(size, "reshape") for size in sizes)
        shape: list[Any] = [known_size(size) for size in sizes]
        if any(size is not None and size < 0 for size in shape):
            raise ValueError(
                f"Reshape takes sizes of at least 0, got {shape}; the function reshape() resolves -1"
            )
        given: tuple[Any, ...] = x.type.shape
        if None not in given and None not in shape and prod(given) != prod(shape):
            raise ValueError(f"cannot reshape {x}{describe(x.location)} of shape {given} to {tuple(shape)}")
        unknown = [axis for axis, size in enumerate(shape) if size is None]
        if None not in given and len(unknown) == 1:
            others = prod(size for size in shape if size is not None)
            if others and prod(given) % others == 0:
                shape[unknown[0]] = prod(given) // others
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        if any(size < 0 for size in shape) or prod(shape) != x.size:
            raise ValueError(
                f"cannot reshape an array of shape {x.shape} and {x.size} elements to "
                f"{shape}{describe(node.location)}"
            )
        output_storage[0][0] = x.reshape(shape)

    def _back(self, x: Variable, g: Variable) -> Variable:
        return self(g, *sizes_of(x))

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.reshape", node, operands, e)


class SpecifyShape(Sized):
    """x, whose shape is checked at run time and known from here on."""

    view_map = {0: [0]}
    error: type[Exception] = ShapeError

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        if len(sizes) != x.type.ndim:
            raise ValueError(f"specify_shape needs {x.type.ndim} sizes for {x} of {x.type}, got {len(sizes)}")
        sizes = tuple(as_size(size, "specify_shape") for size in sizes)
        shape = []
        for axis, (given, size) in enumerate(zip(x.type.shape, map(known_size, sizes), strict=True)):
            if given is not None and size is not None and given != size:
                raise ValueError(
                    f"specify_shape expects size {size} in dimension {axis}, but {x}{describe(x.location)} "
                    f"has "
                    f"the static shape {x.type.shape}"
                )
            shape.append(given if size is None else size)
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        if x.shape != shape:
            raise self.error(
                f"expected shape {shape}, got {x.shape} for {node.inputs[0]}{describe(node.location)}"
            )
        output_storage[0][0] = x

    def _back(self, x: Variable, g: Variable) -> Variable:
        return g

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.specify_shape", node, operands, e)


class FitIndex(SpecifyShape):
    """x, whose shape has to be the given one because x is an index (a mask, one of several arrays) or is
    indexed by a mask: IndexError, as in NumPy.
    """

    error = IndexError

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.specify_shape", node, operands, e, "index = true")


class BroadcastTo(Sized):
    """x repeated along missing leading dimensions and those of static size 1."""

    def make_node(self, x: TensorLike, *sizes: Any) -> Apply:
        x = as_tensor_variable(x)
        sizes = tuple(as_size(size, "broadcast_to") for size in sizes)
        shape = [known_size(size) for size in sizes]
        missing = len(shape) - x.type.ndim
        if missing < 0:
            raise ValueError(f"cannot broadcast {x} of {x.type} to {len(shape)} dimensions")
        for axis, have in enumerate(x.type.shape, missing):
            if have not in (None, 1):
                if shape[axis] not in (None, have):
                    raise ValueError(
                        f"cannot broadcast dimension {axis - missing} of {x}{describe(x.location)}, of size "
                        f"{have}, "
                        f"to {shape[axis]}"
                    )
                shape[axis] = have
        if any(size is not None and size < 0 for size in shape):
            raise ValueError(f"sizes must be at least 0, got {tuple(shape)}")
        return Apply(self, [x, *sizes], [TensorType(x.type.dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x, shape = inputs[0], _shape_of(inputs[1:])
        static = node.inputs[0].type.shape
        missing = len(shape) - x.ndim
        for axis, have in enumerate(x.shape):
            if static[axis] != 1 and have != shape[axis + missing]:
                note = "; a size that is 1 only at run time does not broadcast" if have == 1 else ""
                raise ValueError(
                    f"cannot broadcast an array of shape {x.shape} to {shape}{describe(node.location)}{note}"
                )
        output_storage[0][0] = np.broadcast_to(x, shape).copy()

    def _back(self, x: Variable, g: Variable) -> Variable:
        missing = g.type.ndim - x.type.ndim
        g = g.sum(axis=tuple(range(missing))) if missing else g
        ones = tuple(
            axis
            for axis, (mine, theirs) in enumerate(zip(x.type.shape, g.type.shape, strict=True))
            if mine == 1 and theirs != 1
        )
        return g.sum(axis=ones, keepdims=True) if ones else g

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit_as("graphc.broadcast_to", node, operands, e)

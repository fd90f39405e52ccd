# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as values: ``Shape``, ``Shape_i`` and ``MakeVector``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.axes import normalize_axis
from graphc.ops.dimshuffle import emit_dimshuffle
from graphc.ops.elementwise import cast_to

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc_runtime.thunk import Register


class _Sizes(Op):
    """Base of ops that read the sizes of their input and not its elements."""

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None]


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

    __props__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axis(self.i, x.type.ndim, "Shape_i")
        return Apply(self, [x], [TensorType("int64", ()).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray(inputs[0].shape[self.i], dtype=np.int64)

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return [e.from_index(e.dim_of(node.inputs[0], operands[0], self.i))]


class MakeVector(Op):
    """A vector of 0-d operands.

    Args:
        dtype: dtype of the vector; operands are cast to it.
    """

    __props__ = ("dtype",)
    selects = sys.maxsize

    def __init__(self, dtype: str = "int64") -> None:
        self.dtype = dtype

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
        (g,) = cotangents
        if g is None or np.dtype(self.dtype).kind not in "fc":
            return [None] * len(inputs)
        return [g[i] for i in range(len(inputs))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if all(t is None for t in tangents) or np.dtype(self.dtype).kind not in "fc":
            return [None]
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

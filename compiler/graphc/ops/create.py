# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Iota``: equally spaced numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.elementwise import cast_to, is_discrete
from graphc.ops.sizes import as_size, known_size
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc_runtime.thunk import Register


class Iota(Op):
    """``start + step * i`` for i in range(length).

    Args:
        dtype: dtype of the result; start and step are cast to it.
    """

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, start: TensorLike, step: TensorLike, length: TensorLike) -> Apply:
        ends = [cast_to(as_tensor_variable(x), self.dtype) for x in (start, step)]
        if any(x.type.ndim for x in ends):
            raise TypeError(f"start and step must be 0-d, got {ends[0]} and {ends[1]}")
        length = as_size(length, "arange")
        size = known_size(length)
        if size is not None and size < 0:
            raise ValueError(f"a length must be at least 0, got {size}")
        return Apply(self, [*ends, length], [TensorType(self.dtype, (size,)).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        start, step, length = inputs
        if length < 0:
            raise ValueError(f"a length must be at least 0, got {length}{describe(node.location)}")
        numbers = np.arange(int(length)).astype(self.dtype)
        with np.errstate(all="ignore"):
            output_storage[0][0] = np.asarray(start + step * numbers, dtype=self.dtype)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,) = cotangents
        if g is None or is_discrete(outputs[0]):
            return [None, None, None]
        return [pt.sum(g), pt.sum(g * self(0, 1, inputs[2])), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        start, step = (0 if t is None else t for t in tangents[:2])
        if is_discrete(outputs[0]) or (tangents[0] is None and tangents[1] is None):
            return [None]
        return [self(start, step, inputs[2])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        start, step, length = node.inputs
        types = [e.type_of(start), e.type_of(step), "index"]
        values = [operands[0], operands[1], e.index(length, operands[2])]
        return [e.op("graphc.iota", values, types, e.type_of(node.outputs[0]))]

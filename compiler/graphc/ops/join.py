# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Join``: concatenation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.emit.types import NAMES
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import TensorType
from graphc.ops.axes import normalize_axis
from graphc.ops.elementwise import cast_to, is_discrete
from graphc.ops.rows_arithmetic import promote
from graphc.ops.sizes import size_of
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


class Join(Op):
    """Concatenate along an axis; operands are cast to one dtype.

    Args:
        axis: the axis, at least 0.
    """

    __props__ = ("axis",)
    selects = sys.maxsize

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def make_node(self, *inputs: TensorLike) -> Apply:
        if not inputs:
            raise ValueError("join needs at least one operand")
        xs = [as_tensor_variable(x) for x in inputs]
        ndim = xs[0].type.ndim
        if any(x.type.ndim != ndim for x in xs):
            raise TypeError(
                "the operands of join must have equal numbers of dimensions, got "
                f"{', '.join(f'{x} of type {x.type}' for x in xs)}; x[None] adds a dimension"
            )
        normalize_axis(self.axis, ndim, "join")
        dtype = promote(*(x.type.numpy_dtype for x in xs)).name
        xs = [cast_to(x, dtype) for x in xs]
        return Apply(self, xs, [TensorType(dtype, self._static(xs)).make_variable()])

    def _static(self, xs: Sequence[Variable]) -> list[int | None]:
        shape: list[int | None] = []
        for axis, sizes in enumerate(zip(*(x.type.shape for x in xs), strict=True)):
            if axis == self.axis:
                shape.append(None if None in sizes else sum(sizes))
                continue
            known = {size for size in sizes if size is not None}
            if len(known) > 1:
                shapes = ", ".join(str(x.type.shape) for x in xs)
                raise ValueError(
                    f"join along axis {self.axis}: sizes differ in dimension {axis}; shapes are {shapes}"
                )
            shape.append(known.pop() if known else None)
        return shape

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        try:
            output_storage[0][0] = np.concatenate(inputs, axis=self.axis)
        except ValueError:
            shapes = ", ".join(str(x.shape) for x in inputs)
            raise ValueError(
                f"join along axis {self.axis}{describe(node.location)}: all other sizes must agree; shapes "
                f"are {shapes}"
            ) from None

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,) = cotangents
        if g is None or is_discrete(outputs[0]):
            return [None] * len(inputs)
        terms: list[Variable | None] = []
        start: TensorVariable = constant(np.zeros((), np.int64))
        for x in inputs:
            stop = start + size_of(x, self.axis)
            # The last sizes of the other dimensions may be known from x alone.
            part = g[(slice(None),) * self.axis + (slice(start, stop),)]
            terms.append(pt.specify_shape(part, x.type.shape))
            start = stop
        return terms

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if is_discrete(outputs[0]) or all(t is None for t in tangents):
            return [None]
        return [self(*(pt.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)))]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        out = node.outputs[0]
        shape = list(out.type.shape)
        shape[self.axis] = None
        sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
        common = f"tensor<{sizes}{NAMES[out.type.dtype]}>"
        parts = []
        for position, (x, operand) in enumerate(zip(node.inputs, operands, strict=True)):
            self._check(e, node, position, operand)
            parts.append(e.cast_type(operand, e.type_of(x), common))
        attrs = f"axis = {self.axis} : i64"
        return [e.op("graphc.join", parts, [common] * len(parts), e.type_of(out), attrs)]

    def _check(self, e: Emitter, node: Apply, position: int, operand: str) -> None:
        """Sizes that become static in the common type are checked before the cast, which checks nothing."""
        out = node.outputs[0].type.shape
        for axis, size in enumerate(node.inputs[position].type.shape):
            if axis != self.axis and size is None and out[axis] is not None:
                given, expected = e.dim_of(node.inputs[position], operand, axis), e.const_index(out[axis])
                message = (
                    f"join along axis {self.axis}: operand {position} has size {{given}} in dimension "
                    f"{axis}, "
                    f"the others have {{expected}}"
                )
                e.check(e.compare("eq", given, expected), given, expected, message)

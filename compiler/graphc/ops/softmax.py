# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Softmax`` and ``LogSoftmax``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.dimshuffle import attribute, normalize_axes
from graphc.ops.elementwise import cast_to, pulled
from graphc.ops.math import exp
from graphc.ops.reduce import sum as sum_

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc_runtime.thunk import Register


def _log_softmax(x: np.ndarray, axes: tuple[int, ...], guarded: bool = False) -> np.ndarray:
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
        shifted = x - (np.where(np.isfinite(top), top, 0) if guarded else top)
        return shifted - np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True))


class _Normalized(Op):
    """Base.

    Args:
        axes: axes over which the exponentials sum to 1, ascending.
    """

    takes_as_stored = False

    __props__: ClassVar[tuple[str, ...]] = ("axes",)
    _dialect = ""

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axes={list(self.axes)}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.kind == "c":
            raise TypeError(f"{type(self).__name__} takes real numbers, got {x} of {x.type}")
        if x.type.kind != "f":
            x = cast_to(x, "float64")
        normalize_axes(self.axes, x.type.ndim, type(self).__name__)
        return Apply(self, [x], [x.type.make_variable()])

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None if tangents[0] is None else self._forward(outputs[0], tangents[0])]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (out,) = cotangents, outputs
        return [None if g is None else pulled(g, lambda g: self._back(out, g), along=self.axes)]

    def _sum(self, x: Variable) -> Variable:
        return sum_(x, axis=self.axes, keepdims=True)

    def _forward(self, out: Variable, t: Variable) -> Variable:
        raise NotImplementedError

    def _back(self, out: Variable, g: Variable) -> Variable:
        raise NotImplementedError

    def _attributes(self) -> str:
        return attribute("axes", self.axes)

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types, out = [e.type_of(node.inputs[0])], e.type_of(node.outputs[0])
        return [e.op(f"graphc.{self._dialect}", operands, types, out, self._attributes())]


class Softmax(_Normalized):
    """exp(x) / sum(exp(x)) over axes, without overflow.

    Args:
        axes: as above.
        guarded: an infinite maximum is not subtracted: a row has NaN only where it is infinite itself, as the
            quotient has. So does the compiler's form of ``log(sum(exp(x)))``, which can then share the work.
    """

    _dialect = "softmax"
    __props__ = ("axes", "guarded")

    def __init__(self, axes: Sequence[int], guarded: bool = False) -> None:
        super().__init__(axes)
        self.guarded = guarded

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        logarithm = _log_softmax(inputs[0], self.axes, self.guarded)
        output_storage[0][0] = np.asarray(np.exp(logarithm), dtype=inputs[0].dtype)

    def _attributes(self) -> str:
        return super()._attributes() + (", guarded = true" if self.guarded else "")

    def _forward(self, out: Variable, t: Variable) -> Variable:
        return (t - self._sum(t * out)) * out

    def _back(self, out: Variable, g: Variable) -> Variable:
        return self._forward(out, g)


class LogSoftmax(_Normalized):
    """x - log(sum(exp(x))) over axes, without overflow."""

    _dialect = "log_softmax"

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray(_log_softmax(inputs[0], self.axes), dtype=inputs[0].dtype)

    def _forward(self, out: Variable, t: Variable) -> Variable:
        return t - self._sum(t * exp(out))

    def _back(self, out: Variable, g: Variable) -> Variable:
        return g - self._sum(g) * exp(out)

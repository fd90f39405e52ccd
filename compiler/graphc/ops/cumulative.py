# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, and first-order linear recurrences, along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.emit.emitter import dense
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, only
from graphc.graph.op import FieldOp
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import is_discrete
from graphc.ops.counting import Gather, Scatter
from graphc.ops.create import arange, ones_like, zeros_like
from graphc.ops.join import concatenate
from graphc.ops.kernel import KernelOp
from graphc.ops.math import bitwise_or, eq, isnan, switch
from graphc.ops.shaping import all_batched, dimshuffle, moveaxis, swapaxes

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

_UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _neutral(kind: str, dtype: np.dtype) -> np.generic:
    if kind in ("add", "mul"):
        return dtype.type(kind == "mul")
    if dtype.kind == "b":
        return np.bool_(kind == "min")
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    if dtype.kind == "f":
        return dtype.type(-np.inf if kind == "max" else np.inf)
    return dtype.type(limits.min if kind == "max" else limits.max)


def _emit_initial(value: np.generic | int, node: Apply, operand: str, e: Emitter) -> str:
    """A stack of one row of a number."""
    x = node.inputs[-1]
    dtype, shape = x.type.dtype, x.type.shape[1:]
    scalar = e.tensor_type(dtype, ())
    text = f"{dense(np.asarray(value, dtype))} : {scalar}"
    literal = (
        e.op("graphc.constant", (), (), scalar, f"value = {text}")
        if dtype.startswith("u")
        else e.raw(f"arith.constant {text}")
    )
    sizes = [e.const_index(1), *(e.dim_of(x, operand, axis) for axis in range(1, x.type.ndim))]
    return e.broadcast(literal, scalar, sizes, e.tensor_type(dtype, (1, *shape)))


class _Running(FieldOp):
    """Base of ops that make each row from the one before."""

    takes_as_stored = False

    reverse: bool = False

    def _emit(
        self,
        name: str,
        node: Apply,
        operands: Sequence[str],
        e: Emitter,
        neutral: np.generic | int,
        attrs: str,
    ) -> list[str]:
        """The operation with its initial row, and with as many steps as there are rows."""
        initial = _emit_initial(neutral, node, operands[-1], e)
        x = node.inputs[-1]
        shape = (1, *x.type.shape[1:])
        types = [*(e.type_of(v) for v in node.inputs), e.tensor_type(x.type.dtype, shape), "index"]
        steps = e.dim_of(x, operands[-1], 0)
        flags = f"reverse = {str(self.reverse).lower()}, keep_initial = false, reassociate = false"
        return [e.op(name, [*operands, initial, steps], types, e.type_of(node.outputs[0]), f"{flags}{attrs}")]

    def _moved(self, row: Variable, x: Variable) -> TensorVariable:
        """Rows moved by one step, with zeros (or what ``x`` says) where the first step reads."""
        if self.reverse:
            return concatenate([row[1:], x], axis=0)
        return concatenate([x, row[:-1]], axis=0)


class Cumulative(_Running):
    """``out[i] = out[i - 1] (+) x[i]`` along the first axis.

    Args:
        kind: add, mul, max, min. Extremes propagate NaN.
        reverse: begin with the last row.
    """

    __props__ = ("kind", "reverse")

    def __init__(self, kind: str, reverse: bool = False) -> None:
        if kind not in _UFUNCS:
            raise ValueError(
                f"the kind of a running operation must be one of {', '.join(_UFUNCS)}, got {kind!r}"
            )
        self.kind = kind
        self.reverse = bool(reverse)

    def __str__(self) -> str:
        return f"Cumulative{{{self.kind}{', reverse' if self.reverse else ''}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = operand(x, f"{self} takes an array with at least one dimension", 1, error=TypeError)
        if self.kind in ("max", "min") and x.type.kind == "c":
            raise TypeError(f"{self} needs numbers that can be compared, got {x} of type {x.type}")
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (x,) = inputs
        step = -1 if self.reverse else 1
        with np.errstate(all="ignore"):
            value = _UFUNCS[self.kind].accumulate(x[::step], axis=0, dtype=x.dtype)[::step]
        output_storage[0][0] = np.ascontiguousarray(value)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x,), (out,), g = inputs, outputs, only(cotangents)
        if self.kind == "add":
            return [Cumulative("add", not self.reverse)(g)]
        if self.kind == "mul":
            # With s[i] = g[i] + x[i + 1] s[i + 1] the derivative is s[i] out[i - 1]: nothing is divided.
            one, zero = ones_like(x[:1]), zeros_like(x[:1])
            following = LinearRecurrence(not self.reverse)
            s = following(following._moved(x, zero), g)
            return [s * self._moved(out, one)]
        positions = self._positions(x, out)
        return [_put_rows(g, positions)]

    def _positions(self, x: Variable, out: Variable) -> TensorVariable:
        """For each row the position of the last element so far that equals the extreme."""
        rows = arange(x.shape[0])
        rows = dimshuffle(rows, (0, *["x"] * (x.type.ndim - 1)))
        first = x.shape[0] - 1 if self.reverse else constant(np.int64(0))
        # A NaN stays the extreme, and is not equal to itself.
        found = eq(x, out) if is_discrete(x) else bitwise_or(eq(x, out), isnan(x))
        return Cumulative("min" if self.reverse else "max", self.reverse)(switch(found, rows, first))

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (x,), (out,), t = inputs, outputs, only(tangents)
        if self.kind == "add":
            return [self(t)]
        if self.kind == "mul":
            # out[i] = x[i] out[i - 1], so t_out[i] = x[i] t_out[i - 1] + t[i] out[i - 1].
            before = self._moved(out, ones_like(x[:1]))
            return [LinearRecurrence(self.reverse)(x, t * before)]
        last = Gather()(moveaxis(t, 0, -1), moveaxis(self._positions(x, out), 0, -1))
        return [moveaxis(last, -1, 0)]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        neutral = _neutral(self.kind, node.inputs[0].type.numpy_dtype)
        return self._emit("graphc.cumulative", node, operands, e, neutral, f', kind = "{self.kind}"')

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: TensorVariable) -> list[Variable]:
        """The new axis goes after the first."""
        return [swapaxes(self(swapaxes(inputs[0], 0, 1)), 0, 1)]


class Running(KernelOp):
    """As `Cumulative`, along the last axis.

    Args:
        kind, reverse: as for `Cumulative`.
    """

    kernel = "running"
    dtype_rule = "0 -> 0"
    __props__ = ("kind", "reverse")

    def __init__(self, kind: str | int, reverse: bool = False) -> None:
        self.first_axis = Cumulative(kind if isinstance(kind, str) else list(_UFUNCS)[kind], reverse)
        self.kind = list(_UFUNCS).index(self.first_axis.kind)
        self.reverse = bool(reverse)

    def __str__(self) -> str:
        return f"Running{{{self.first_axis.kind}{', reverse' if self.reverse else ''}}}"

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if self.kind > 1 and node.outputs[0].type.kind == "c":
            raise TypeError(f"{self} needs numbers that can be compared, got {node.inputs[0].type}")
        return node

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x,), (out,), g = inputs, outputs, only(cotangents)
        if self.kind == 0:
            return [Running("add", not self.reverse)(g)]
        x, out, g = (moveaxis(v, -1, 0) for v in (x, out, g))
        (found,) = self.first_axis.pullback([x], [out], [g])
        return [None if found is None else moveaxis(found, 0, -1)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (x,), (out,), t = inputs, outputs, only(tangents)
        if self.kind == 0:
            return [self(t)]
        x, out, t = (moveaxis(v, -1, 0) for v in (x, out, t))
        (found,) = self.first_axis.pushforward([x], [out], [t])
        return [None if found is None else moveaxis(found, 0, -1)]


def _put_rows(g: Variable, positions: Variable) -> TensorVariable:
    """Adds the elements of g, along the first axis, at positions of an array of zeros."""
    last = moveaxis(g, 0, -1)
    return moveaxis(Scatter("add")(zeros_like(last), last, moveaxis(positions, 0, -1)), -1, 0)


class LinearRecurrence(_Running):
    """``out[i] = a[i] * out[i - 1] + b[i]`` along the first axis, from zero.

    Args:
        reverse: begin with the last row.
    """

    def make_node(self, a: TensorLike, b: TensorLike) -> Apply:
        a, b = as_tensor_variable(a), as_tensor_variable(b)
        if a.type.ndim == 0 or a.type.ndim != b.type.ndim or a.type.dtype != b.type.dtype:
            raise TypeError(f"{self} takes two arrays of one dtype and rank, got types {a.type} and {b.type}")
        static = [x or y for x, y in zip(b.type.shape, a.type.shape, strict=True)]
        return Apply(self, [a, b], [TensorType(b.type.dtype, static).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        a, b = inputs
        if a.shape != b.shape:
            raise ValueError(f"{self} takes arrays of one shape, got {a.shape} and {b.shape}")
        out = np.empty_like(b, order="C")
        previous = np.zeros(b.shape[1:], b.dtype)
        with np.errstate(all="ignore"):
            for i in range(len(b))[:: -1 if self.reverse else 1]:
                out[i] = previous = a[i] * previous + b[i]
        output_storage[0][0] = out

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (a, _), (out,), g = inputs, outputs, only(cotangents)
        zero = zeros_like(a[:1])
        back = LinearRecurrence(not self.reverse)
        s = back(back._moved(a, zero), g)
        return [s * self._moved(out, zero), s]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (a, _), (out,), (t_a, t_b) = inputs, outputs, tangents
        terms: list[Variable] = [] if t_b is None else [t_b]
        if t_a is not None:
            terms.append(t_a * self._moved(out, zeros_like(a[:1])))
        return [self(a, terms[0] if len(terms) == 1 else terms[0] + terms[1])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        return self._emit("graphc.linear_recurrence", node, operands, e, 0, "")

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """The new axis goes after the first."""
        a, b = (swapaxes(x, 0, 1) for x in all_batched(inputs, batched, size))
        return [swapaxes(self(a, b), 0, 1)]

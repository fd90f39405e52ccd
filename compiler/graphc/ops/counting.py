# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops along the last axis: counts, the largest elements, order, search, elements at positions.

Some results have as many elements as a mask has true ones, or as numbers add up to. How many these are is an
operand, a 0-d integer: a sum that the compiler also computes where only the size is needed. A wrong one is
not noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, describe, only
from graphc.graph.op import linear, multilinear
from graphc.ops.advanced import Put, Take
from graphc.ops.create import arange, ones_like, zeros_like
from graphc.ops.create import zeros as zeros_
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.math import cast, eq, ge, le, switch
from graphc.ops.shaping import broadcast_to
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


KINDS = ("set", "add", "mul", "max", "min")


class Gather(KernelOp):
    """Elements at positions along the last axis: ``out[..., i] = x[..., indices[..., i]]``.

    Negative positions count from the end; those out of bounds raise IndexError.
    """

    kernel = "gather"
    dtype_rule = "0 int64 -> 0"
    selects = 1
    depends_on = (0,)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, indices) = only(cotangents), inputs
        return [Scatter("add")(zeros_like(x), g, indices), None]

    pushforward = multilinear


class Scatter(KernelOp):
    """x changed at positions along the last axis, one after the other, by the elements of y.

    Operands: x, y, indices (of y's shape).

    Args:
        kind: what happens to an element: set, add, mul, max or min.
    """

    kernel = "scatter"
    dtype_rule = "0 0 int64 -> 0"
    __props__ = ("kind",)
    depends_on = (0, 1)

    def __init__(self, kind: str | int = "set") -> None:
        self.kind = KINDS.index(kind) if isinstance(kind, str) else kind

    def __str__(self) -> str:
        return f"Scatter{{{KINDS[self.kind]}}}"

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if self.kind in (3, 4) and node.outputs[0].type.kind == "c":
            raise TypeError(f"{self} needs numbers that can be compared, got complex ones")
        return node

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (out,), (x, y, indices) = only(cotangents), outputs, inputs
        g_y = Gather()(g, indices)
        if KINDS[self.kind] == "add":
            return [g, g_y, None]
        if KINDS[self.kind] == "set":
            return [
                Scatter("set")(g, zeros_like(y), indices),
                switch(self._is_last(x, indices), g_y, 0),
                None,
            ]
        if KINDS[self.kind] == "mul":
            factor = Scatter("mul")(ones_like(x), y, indices)
            return [g * factor, g_y * self._others(x, y, indices), None]
        return [switch(eq(x, out), g, 0), switch(eq(y, Gather()(out, indices)), g_y, 0), None]

    def _is_last(self, x: Variable, indices: Variable) -> TensorVariable:
        """Flags of the last write to each position."""
        order = broadcast_to(arange(indices.shape[-1]), indices.shape)
        start = zeros_(x.shape, dtype="int64")
        return eq(Gather()(Scatter("set")(start, order, indices), indices), order)

    def _others(self, x: Variable, y: Variable, indices: Variable) -> TensorVariable:
        """For each element of y the product of everything else that its position is multiplied by."""
        zero = eq(y, 0)
        rest = Gather()(Scatter("mul")(x, switch(zero, 1, y), indices), indices)
        start = zeros_(x.shape, dtype="int64")
        zeros = Gather()(Scatter("add")(start, cast(zero, "int64"), indices), indices)
        divided = rest / switch(zero, 1, y)
        return switch(zero, switch(eq(zeros, 1), rest, 0), switch(eq(zeros, 0), divided, 0))

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return NotImplemented if self.kind > 1 else linear(self, inputs, outputs, tangents)


class _Permutation(KernelOp):
    """Base of ops that put the elements of the first operand in another order."""

    selects = 1
    depends_on = (0,)

    def ordered(self, outputs: Variables) -> Variable | None:
        """The positions that sort the result; None where it is sorted."""
        return None

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], *["int64"] * (len(given) - 1)], [given[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, *others) = only(cotangents), inputs
        order = self.ordered(outputs)
        g = g if order is None else Gather()(g, order)
        return [Scatter("set")(x.zeros_like(), g, ArgSort()(x)), *[None] * len(others)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        order, tangent = self.ordered(outputs), Gather()(only(tangents), ArgSort()(inputs[0]))
        return [tangent if order is None else Scatter("set")(tangent.zeros_like(), tangent, order)]


class Sort(_Permutation):
    """The elements along the last axis in ascending order; NaN last, complex numbers by their real part
    first.
    """

    kernel = "sort"


class ArgSort(DiscreteOp):
    """Positions (int64) that sort the last axis; equal elements stay in their order."""

    kernel = "argsort"
    dtype_rule = "0 -> int64"


class Partition(_Permutation):
    """The last axis with the elements of some ranks where sorting would put them; smaller ones before
    each, larger ones after. Operands: array, vector of ranks.

    Derivatives are those of a stable sort: of equal elements, earlier ones are at earlier places. The order
    between ranks is taken from the result, because no other operation need have the same.
    """

    kernel = "partition"

    def ordered(self, outputs: Variables) -> Variable:
        found: Variable = ArgSort()(outputs[0])
        return found


class ArgPartition(DiscreteOp):
    """Positions (int64) of elements in an order such as that of `Partition`."""

    kernel = "argpartition"
    dtype_rule = "0 int64 -> int64"


class SearchSorted(DiscreteOp):
    """Insertion positions in a sorted last axis (int64).

    Args:
        right: after equal elements instead of before them.
    """

    kernel = "searchsorted"
    right: bool = False

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        common = promote(*(np.dtype(x) for x in given)).name
        return [common, common], ["int64"]


class _Selecting(DiscreteOp):
    """Base: operands are vectors; what they select has a length that depends on their elements."""

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if node.outputs[0].type.ndim != 1:
            x = node.inputs[0]
            raise TypeError(
                f"{self} takes vectors, got {x} of type {x.type}{describe(x.location)}: rows may have "
                "results of different lengths"
            )
        return node

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        raise VectorizeError(f"{self} cannot take a batch: its results could have different lengths")


class FlatNonzero(_Selecting):
    """Positions (int64) of the true elements. Operands: mask, their number."""

    kernel = "flatnonzero"
    dtype_rule = "bool -> int64"


class RepeatPositions(_Selecting):
    """Every position as often as it says. Operands: counts, their sum."""

    kernel = "repeat_positions"
    dtype_rule = "int64 -> int64"


class RepeatLength(DiscreteOp):
    """Number of positions of `RepeatPositions`; negative numbers raise ValueError."""

    kernel = "repeat_length"
    dtype_rule = "int64 -> int64"


class Compress(_Selecting):
    """The elements where a mask is true. Operands: array, mask, the number of true elements."""

    kernel = "compress"
    dtype_rule = "0 bool -> 0"
    selects = 1
    depends_on = (0,)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, mask, count) = only(cotangents), inputs
        return [Put(0, True)(zeros_like(x), g, FlatNonzero()(mask, count)), None, None]

    pushforward = multilinear

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        if any(batched[1:]):
            return super().batch(node, inputs, batched, size)
        x, mask, count = inputs
        return [Take(1)(x, FlatNonzero()(mask, count))]


class CountTrue(DiscreteOp):
    """Number (int64) of true elements along the last axis."""

    kernel = "count_true"
    dtype_rule = "bool -> int64"


class BinLength(DiscreteOp):
    """The largest number plus 1; negative numbers raise ValueError."""

    kernel = "bin_length"
    dtype_rule = "int64 -> int64"


class Contained(DiscreteOp):
    """Membership of elements in a sorted array. Operands: elements, sorted ones of the same dtype."""

    kernel = "contained"
    dtype_rule = "0 1 -> bool"


class CountBins(_Selecting):
    """Histogram of numbers below a length. Operands: numbers, length."""

    kernel = "count_bins"
    dtype_rule = "int64 -> int64"


class _Weighted(_Selecting):
    """Base of ops whose second operand is summed."""

    depends_on = (1,)

    pushforward = multilinear


class SumBins(_Weighted):
    """For each number below a length the sum of its weights. Operands: numbers, weights, length."""

    kernel = "sum_bins"
    dtype_rule = "int64 1 -> 1"

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [None, Gather()(only(cotangents), inputs[0]), None]


class Histogram(_Selecting):
    """Number (int64) of elements in each bin. Operands: elements, left edges, last edge, of one dtype.

    Args:
        uniform: whether the bins have equal widths.
    """

    kernel = "histogram"
    dtype_rule = "0 1 2 -> int64"
    uniform: bool


class WeightedHistogram(_Weighted):
    """Sum of the weights of the elements in each bin. Operands: elements, weights, left edges, last edge.

    Args:
        uniform: as for `Histogram`.
    """

    kernel = "weighted_histogram"
    dtype_rule = "0 1 2 3 -> 1"
    uniform: bool

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g, (x, _, edges, last) = only(cotangents), inputs
        place = edges.searchsorted(x, side="right") - 1
        inside = ge(place, 0) & le(x, last)
        return [None, switch(inside, Gather()(g, switch(inside, place, 0)), 0), None, None]


class TopK(KernelOp):
    """The largest elements along the last axis in descending order, NaN first, and their positions (int64).

    Operands: array, number of elements.

    Args:
        smallest: the smallest in ascending order instead, NaN last.
    """

    kernel = "topk"
    dtype_rule = "0 -> 0 int64"
    smallest: bool = False

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if node.outputs[0].type.kind == "c":
            raise TypeError(f"{self} takes real numbers, got {node.inputs[0]} of type {node.inputs[0].type}")
        return node

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False], [False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [Scatter("set")(inputs[0].zeros_like(), only(cotangents), outputs[1]), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [Gather()(only(tangents), outputs[1]), None]

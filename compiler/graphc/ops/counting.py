# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that count: true elements, numbers, elements in intervals; and the largest few elements.

Ops whose results have as many elements as a mask has true ones, or as numbers add up to.

How many these are is an operand, a 0-d integer: a sum that the compiler also computes where only the size is
needed. A wrong one is not noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Maybe, Variable, Variables, describe
from graphc.ops.advanced import Put, Take
from graphc.ops.create import zeros_like
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.math import ge, le, switch
from graphc.ops.scattering import Gather, Scatter

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike


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

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
    ) -> list[Variable]:
        raise VectorizeError(f"{self} cannot take a batch: its results could have different lengths")


class FlatNonzero(_Selecting):
    """Positions (int64) of the true elements. Operands: mask, their number."""

    kernel = "flatnonzero"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["bool"], ["int64"]


class RepeatPositions(_Selecting):
    """Every position as often as it says. Operands: counts, their sum."""

    kernel = "repeat_positions"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["int64"], ["int64"]


class RepeatLength(DiscreteOp):
    """Number of positions of `RepeatPositions`; negative numbers raise ValueError."""

    kernel = "repeat_length"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["int64"], ["int64"]


class Compress(_Selecting):
    """The elements where a mask is true. Operands: array, mask, the number of true elements."""

    kernel = "compress"
    selects = 1

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "bool"], [given[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, mask, count) = cotangents, inputs
        if g is None or is_discrete(x):
            return [None, None, None]
        return [Put(0, True)(zeros_like(x), g, FlatNonzero()(mask, count)), None, None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        return [self(tangents[0], *inputs[1:])]

    def batch(
        self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool], size: Variable | int
    ) -> list[Variable]:
        if any(batched[1:]):
            return super().batch(node, inputs, batched, size)
        x, mask, count = inputs
        return [Take(1)(x, FlatNonzero()(mask, count))]


class CountTrue(DiscreteOp):
    """Number (int64) of true elements along the last axis."""

    kernel = "count_true"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["bool"], ["int64"]


class BinLength(DiscreteOp):
    """The largest number plus 1; negative numbers raise ValueError."""

    kernel = "bin_length"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["int64"], ["int64"]


class Contained(DiscreteOp):
    """Membership of elements in a sorted array. Operands: elements, sorted ones of the same dtype."""

    kernel = "contained"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["bool"]


class CountBins(_Selecting):
    """Histogram of numbers below a length. Operands: numbers, length."""

    kernel = "count_bins"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["int64"], ["int64"]


class _Weighted(_Selecting):
    """Base of ops whose second operand is summed."""

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 1] for i in range(len(node.inputs))]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[1] is None or is_discrete(inputs[1]):
            return [None]
        return [self(inputs[0], tangents[1], *inputs[2:])]


class SumBins(_Weighted):
    """For each number below a length the sum of its weights. Operands: numbers, weights, length."""

    kernel = "sum_bins"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return ["int64", given[1]], [given[1]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (numbers, weights, _) = cotangents, inputs
        if g is None or is_discrete(weights):
            return [None, None, None]
        return [None, Gather()(g, numbers), None]


class Histogram(_Selecting):
    """Number (int64) of elements in each bin. Operands: elements, left edges, last edge, of one dtype.

    Args:
        uniform: whether the bins have equal widths.
    """

    kernel = "histogram"
    __props__ = ("uniform",)

    def __init__(self, uniform: bool) -> None:
        self.uniform = bool(uniform)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["int64"]


class WeightedHistogram(_Weighted):
    """Sum of the weights of the elements in each bin. Operands: elements, weights, left edges, last edge.

    Args:
        uniform: as for `Histogram`.
    """

    kernel = "weighted_histogram"
    __props__ = ("uniform",)

    def __init__(self, uniform: bool) -> None:
        self.uniform = bool(uniform)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, [given[1]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, weights, edges, last) = cotangents, inputs
        if g is None or is_discrete(weights):
            return [None] * 4
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
    __props__ = ("smallest",)

    def __init__(self, smallest: bool = False) -> None:
        self.smallest = bool(smallest)

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, [given[0], "int64"]

    def make_node(self, *inputs: TensorLike) -> Apply:
        node = super().make_node(*inputs)
        if node.outputs[0].type.kind == "c":
            raise TypeError(f"{self} takes real numbers, got {node.inputs[0]} of type {node.inputs[0].type}")
        return node

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False], [False, False]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        x, g = inputs[0], cotangents[0]
        if g is None or is_discrete(x):
            return [None, None]
        return [Scatter("set")(x.zeros_like(), g, outputs[1]), None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None, None]
        return [Gather()(tangents[0], outputs[1]), None]

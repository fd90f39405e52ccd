# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose results have as many elements as a mask has true ones, or as numbers add up to.

How many these are is an operand, a 0-d integer: a sum that the compiler also computes where only the size is
needed. A wrong one is not noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphc.errors import VectorizeError
from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.ops.advanced import Put, Take
from graphc.ops.create import zeros_like
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import DiscreteOp

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike


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

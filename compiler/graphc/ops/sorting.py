# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that order the elements along the last axis, and that search in ordered ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.rows_arithmetic import promote
from graphc.ops.scattering import Gather, Scatter

if TYPE_CHECKING:
    from graphc.graph.tensor.variable import TensorVariable


class _Permutation(KernelOp):
    """Base of ops that put the elements of the first operand in another order."""

    def positions(self, inputs: Variables) -> Variable:
        """Where each element of the result comes from."""
        raise NotImplementedError

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], *["int64"] * (len(given) - 1)], [given[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, *others) = cotangents, inputs
        rest: list[Variable | None] = [None] * len(others)
        if g is None or is_discrete(x):
            return [None, *rest]
        zero = x.zeros_like()
        return [Scatter("set")(zero, g, self.positions(inputs)), *rest]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        return [Gather()(tangents[0], self.positions(inputs))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]


class Sort(_Permutation):
    """The elements along the last axis in ascending order; NaN last, complex numbers by their real part
    first.
    """

    kernel = "sort"

    def positions(self, inputs: Variables) -> TensorVariable:
        return ArgSort()(inputs[0])


class ArgSort(DiscreteOp):
    """Positions (int64) that sort the last axis; equal elements stay in their order."""

    kernel = "argsort"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["int64"]


class Partition(_Permutation):
    """The last axis with the elements of some ranks where sorting would put them; smaller ones before
    each, larger ones after. Operands: array, vector of ranks.
    """

    kernel = "partition"

    def positions(self, inputs: Variables) -> TensorVariable:
        return ArgPartition()(*inputs)


class ArgPartition(DiscreteOp):
    """Positions (int64) of what `Partition` returns."""

    kernel = "argpartition"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "int64"], ["int64"]


class SearchSorted(DiscreteOp):
    """Where values would go in a sorted last axis (int64).

    Args:
        right: after equal elements instead of before them.
    """

    kernel = "searchsorted"
    __props__ = ("right",)

    def __init__(self, right: bool = False) -> None:
        self.right = right

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        common = promote(*(np.dtype(x) for x in given)).name
        return [common, common], ["int64"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that order the elements along the last axis, and that search in ordered ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.ops.elementwise import is_discrete
from graphc.ops.kernel import DiscreteOp, KernelOp
from graphc.ops.rows_arithmetic import promote
from graphc.ops.scattering import Gather, Scatter


class _Permutation(KernelOp):
    """Base of ops that put the elements of the first operand in another order."""

    selects = 1

    def ordered(self, outputs: Variables) -> Variable | None:
        """The positions that sort the result; None where it is sorted."""
        return None

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], *["int64"] * (len(given) - 1)], [given[0]]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (g,), (x, *others) = cotangents, inputs
        rest: list[Variable | None] = [None] * len(others)
        if g is None or is_discrete(x):
            return [None, *rest]
        order = self.ordered(outputs)
        g = g if order is None else Gather()(g, order)
        return [Scatter("set")(x.zeros_like(), g, ArgSort()(x)), *rest]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if tangents[0] is None or is_discrete(inputs[0]):
            return [None]
        order, tangent = self.ordered(outputs), Gather()(tangents[0], ArgSort()(inputs[0]))
        return [tangent if order is None else Scatter("set")(tangent.zeros_like(), tangent, order)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]


class Sort(_Permutation):
    """The elements along the last axis in ascending order; NaN last, complex numbers by their real part
    first.
    """

    kernel = "sort"


class ArgSort(DiscreteOp):
    """Positions (int64) that sort the last axis; equal elements stay in their order."""

    kernel = "argsort"

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return given, ["int64"]


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

    def dtypes(self, *given: str) -> tuple[Sequence[str], Sequence[str]]:
        return [given[0], "int64"], ["int64"]


class SearchSorted(DiscreteOp):
    """Insertion positions in a sorted last axis (int64).

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
